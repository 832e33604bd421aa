// Products of float, double and their complex types: the microkernels, the packing and the loops
// around them that one thread runs (packed.cpp, small.cpp and split.cpp drive them).
//
// Limited by the multiply-add units if the operands arrive in time. A microkernel keeps up to
// kMR rows by two vectors of C in registers: enough independent sums to cover the latency of the
// multiply-adds, few enough for the registers, and fewer loads than multiply-adds. Rows of C go
// along the vectors, so B is read by vectors and A by broadcast elements, which have no order to
// keep: A is used as it lies, transposed or not, and packing it only makes it contiguous. There is
// a microkernel for every number of rows; m is cut into slices of nearly equal height, so that no
// slice is thin. Columns past the last whole vector are masked. An element's sum depends on k
// alone, not on the slice or panel that it falls into. On an Emerald Rapids Xeon the largest
// microkernel runs at 0.98 of the peak of its multiply-adds.
//
// Complex products: one sum of re(a) b and one of im(a) b over interleaved b, combined at the end,
// which takes no more multiply-adds than separated parts and no unpacking.
//
// After K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
// 34(3), 2008, and F. Van Zee, R. van de Geijn, "BLIS", ACM TOMS 41(3), 2015.
#include <utility>

#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorRegisters = 32;
#else
constexpr int kVectorRegisters = 16;
#endif

template <DType Tag, class RealT>
struct Element {
  static constexpr DType kTag = Tag;
  using Real = RealT;
  static constexpr bool kComplex = is_complex(Tag);
  static constexpr int kParts = kComplex ? 2 : 1;
  static constexpr int kSize = kParts * int(sizeof(Real));
  static constexpr int kV = kVectorBytes / kSize;  // elements of a vector
  static constexpr int kNR = 2 * kV;
  // Sums for every row and vector, two for complex types, beside two vectors of B and a broadcast.
  static constexpr int kMR = (kVectorRegisters - 4) / (2 * kParts);
};

/// C = sums, C + sums, or whatever alpha and beta say.
enum class Finish { Store, Add, Scale };

/// What the microkernels of a block share. Strides and steps in bytes; a step leads from one
/// microkernel's operand to the next one's.
template <class T>
struct Micro {
  using Real = typename T::Real;
  std::int64_t k;
  std::int64_t a_row, a_col, b_row, c_row;
  std::int64_t a_step, b_step, c_step;
  Real alpha, beta;
  Real alpha_im, beta_im;                   // complex types
  Real sign_re_im, sign_im_re, sign_im_im;  // complex types: of the conjugations
  Finish finish;
  bool read_c;
  bool prefetch;
  std::int64_t ahead;  // of C where it is prefetched, in bytes: to what a later microkernel writes
  int tail;            // lanes of the last vector, where it is masked
};

constexpr std::int64_t kPrefetchFrom = 16 << 10;  // bytes of C
constexpr std::int64_t kFetchFrom = 128 << 10;    // bytes of A
constexpr std::int64_t kShort = 48;

template <class V, int... I>
MBLAS_INLINE V swap_pairs(const V& v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ 1)...);
}
template <class V>
MBLAS_INLINE V swap_pairs(const V& v) {
  return swap_pairs(v, std::make_integer_sequence<int, int(sizeof(V) / sizeof(v[0]))>());
}
template <class V, class Real>
MBLAS_INLINE V alternate(Real even, Real odd) {
  V v;
  for (int i = 0; i < int(sizeof(V) / sizeof(Real)); ++i) v[i] = i % 2 ? odd : even;
  return v;
}

/// Keeps v in a register here, and whatever computed it apart from what uses it.
template <class V>
MBLAS_INLINE void pin([[maybe_unused]] V& v) {
#if defined(__AVX512F__)
  asm volatile("" : "+v"(v));
#elif defined(__x86_64__)
  asm volatile("" : "+x"(v));
#elif defined(__aarch64__)
  asm volatile("" : "+w"(v));
#endif
}

/// v, rounded as it is: left to itself the compiler fuses one product or another of a sum, not the
/// same one in every microkernel.
template <class V>
MBLAS_INLINE V rounded(V v) {
  pin(v);
  return v;
}

/// A vector of C from its sums.
template <Finish How, class T, class V>
MBLAS_INLINE V finish(const Micro<T>& s, const V& sums, const V& c) {
  if constexpr (How == Finish::Store) return sums;
  if constexpr (How == Finish::Add) return c + sums;
  V result = rounded(s.alpha * sums);
  if constexpr (T::kComplex) {
    using Real = typename T::Real;
    // A real scalar scales the parts: 0 times an infinite part would make the other one NaN.
    if (s.alpha_im != 0)
      result = rounded(result + swap_pairs(sums) * alternate<V>(Real(-s.alpha_im), s.alpha_im));
    if (s.beta_im != 0)
      result = rounded(result + swap_pairs(c) * alternate<V>(Real(-s.beta_im), s.beta_im));
  }
  if (s.read_c) result += s.beta * c;
  return result;
}

/// H rows by NV vectors of C, the last one masked if Tail, `count` times. `Rows`: the rows of A are
/// contiguous, else its columns are.
template <class T, int H, int NV, bool Tail, bool Rows>
void micro(const Micro<T>& s, const std::byte* a, const std::byte* b, std::byte* c,
           std::int64_t count) {
  using Real = typename T::Real;
  using V = Vector<Real>;
  constexpr int sets = T::kParts;
  // Three rows share a pointer: one for each row would not fit the registers. (Unrolling the loop
  // over k gains nothing, and makes the compiler spill sums.)
  constexpr int groups = Rows ? (H + 2) / 3 : 1;
  // Locals, which the stores to C cannot change.
  const std::int64_t row = Rows ? s.a_row : T::kSize, col = Rows ? T::kSize : s.a_col;
  const std::int64_t k = s.k, b_row = s.b_row, c_row = s.c_row;
  const std::int64_t a_step = s.a_step, b_step = s.b_step, c_step = s.c_step;
  const int tail = s.tail;
  for (; count > 0; --count, a += a_step, b += b_step, c += c_step) {
    V sums[sets][H][NV];
#pragma GCC unroll 16
    for (int i = 0; i < H; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v)
#pragma GCC unroll 2
        for (int set = 0; set < sets; ++set) sums[set][i][v] = V{};
    if (s.prefetch) {
#pragma GCC unroll 16
      for (int i = 0; i < H; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v)
          __builtin_prefetch(c + s.ahead + i * c_row + v * kVectorBytes, 1);
    }
    const std::byte* base[groups];
    const std::byte* from_b = b;
#pragma GCC unroll 16
    for (int g = 0; g < groups; ++g) base[g] = a + 3 * g * row;
    for (std::int64_t p = k; p > 0; --p) {
      V x[NV];
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) {
        const std::byte* from = from_b + v * kVectorBytes;
        x[v] = Tail && v == NV - 1 ? load_first<V>(from, tail) : load<V>(from);
      }
#pragma GCC unroll 16
      for (int i = 0; i < H; ++i) {
        const std::byte* from = Rows ? base[i / 3] + i % 3 * row : base[0] + i * row;
#pragma GCC unroll 2
        for (int set = 0; set < sets; ++set) {
          Real y;
          __builtin_memcpy(&y, from + set * int(sizeof(Real)), sizeof y);
#pragma GCC unroll 2
          for (int v = 0; v < NV; ++v) sums[set][i][v] += y * x[v];
        }
      }
#pragma GCC unroll 16
      for (int g = 0; g < groups; ++g) base[g] += col;
      from_b += b_row;
    }
    const auto write = [&]<Finish How>(std::integral_constant<Finish, How>)
        __attribute__((always_inline)) {
      const bool reads = How == Finish::Add || (How == Finish::Scale && s.read_c);
#pragma GCC unroll 16
      for (int i = 0; i < H; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) {
          std::byte* to = c + i * c_row + v * kVectorBytes;
          V sum = sums[0][i][v];
          if constexpr (T::kComplex)
            sum = sum * alternate<V>(Real(1), s.sign_re_im) +
                  swap_pairs(sums[sets - 1][i][v]) * alternate<V>(s.sign_im_re, s.sign_im_im);
          if (Tail && v == NV - 1) {
            const V old = reads ? load_first<V>(to, tail) : V{};
            store_first(to, finish<How>(s, sum, old), tail);
          } else {
            const V old = reads ? load<V>(to) : V{};
            store(to, finish<How>(s, sum, old));
          }
        }
      }
    };
    if (s.finish == Finish::Store)
      write(std::integral_constant<Finish, Finish::Store>());
    else if (s.finish == Finish::Add)
      write(std::integral_constant<Finish, Finish::Add>());
    else
      write(std::integral_constant<Finish, Finish::Scale>());
  }
}

template <class T>
using MicroKernel = void (*)(const Micro<T>&, const std::byte*, const std::byte*, std::byte*,
                             std::int64_t);

enum Width { kTwo, kTwoMasked, kOneMasked };

template <class T>
struct MicroTable {
  MicroKernel<T> of[2][3][T::kMR];  // [rows of A contiguous][width][height - 1]
};
template <class T, int... H>
constexpr MicroTable<T> micro_table(std::integer_sequence<int, H...>) {
  return {{{{micro<T, H + 1, 2, false, false>...},
            {micro<T, H + 1, 2, true, false>...},
            {micro<T, H + 1, 1, true, false>...}},
           {{micro<T, H + 1, 2, false, true>...},
            {micro<T, H + 1, 2, true, true>...},
            {micro<T, H + 1, 1, true, true>...}}}};
}
template <class T>
constexpr MicroTable<T> kMicro = micro_table<T>(std::make_integer_sequence<int, T::kMR>());

/// Slices of nearly equal height for m rows.
struct Slices {
  std::int64_t count, height, taller;  // the first `taller` have height + 1
  std::int64_t height_of(std::int64_t i) const { return height + (i < taller); }
};
template <class T>
MBLAS_INLINE Slices slices_of(std::int64_t m) {
  if (m <= T::kMR) return {1, m, 0};  // divisions take longer than the smallest products
  const std::int64_t count = (m + T::kMR - 1) / T::kMR;
  return {count, m / count, m % count};
}

template <class T>
MBLAS_INLINE Micro<T> micro_of(const GemmTile& t) {
  using Real = typename T::Real;
  Micro<T> s;
  s.k = t.k;
  s.a_row = t.a_row * T::kSize;
  s.a_col = t.a_col * T::kSize;
  s.b_row = t.b_row * T::kSize;
  s.c_row = t.ldc * T::kSize;
  s.alpha = Real(t.alpha.re);
  s.beta = Real(t.beta.re);
  s.read_c = t.beta.re != 0;
  bool plain = t.alpha.re == 1;
  if constexpr (T::kComplex) {
    s.alpha_im = Real(t.alpha.im);
    s.beta_im = Real(t.beta.im);
    s.read_c = s.read_c || t.beta.im != 0;
    plain = plain && t.alpha.im == 0 && t.beta.im == 0;
    s.sign_re_im = t.conj_b ? Real(-1) : Real(1);
    s.sign_im_re = t.conj_a != t.conj_b ? Real(1) : Real(-1);
    s.sign_im_im = t.conj_a ? Real(-1) : Real(1);
  }
  s.finish = plain && t.beta.re == 0   ? Finish::Store
             : plain && t.beta.re == 1 ? Finish::Add
                                       : Finish::Scale;
  return s;
}

/// The microkernel of `cols` columns that are left.
struct Panel {
  Width width;
  int tail;
};
template <class T>
MBLAS_INLINE Panel panel_of(std::int64_t cols) {
  if (cols >= T::kNR) return {kTwo, 0};
  if (cols > T::kV) return {kTwoMasked, int(cols - T::kV) * T::kParts};
  return {kOneMasked, int(cols) * T::kParts};
}

/// Sets up what of C is fetched when. A short k leaves no time to fetch what is written next, so
/// that is fetched a few microkernels ahead.
template <class T>
MBLAS_INLINE void fetch_c(Micro<T>& s, const GemmTile& t, bool by_rows) {
  s.prefetch = t.m * t.n * T::kSize > kPrefetchFrom;
  s.ahead = !s.prefetch || t.k > kShort   ? 0
            : by_rows && t.n > 4 * T::kNR ? 4 * T::kNR * T::kSize
                                          : 3 * T::kMR * s.c_row;
}

/// Slice after slice of A, each multiplied by all panels of B; prepare(i, h) says where the h rows
/// from row i lie.
template <class T, class Prepare>
MBLAS_INLINE void multiply_rows(Micro<T>& s, const GemmTile& t, const std::byte* B, std::byte* C,
                                std::int64_t b_panel, bool rows, const Prepare& prepare) {
  const Slices slices = slices_of<T>(t.m);
  const std::int64_t whole = t.n / T::kNR, left = t.n % T::kNR;
  const Panel last = panel_of<T>(left);
  s.tail = last.tail;
  s.a_step = 0;
  s.b_step = T::kNR * b_panel * T::kSize;
  s.c_step = T::kNR * T::kSize;
  for (std::int64_t u = 0, i = 0; u < slices.count; ++u) {
    const std::int64_t h = slices.height_of(u);
    const std::byte* const a = prepare(i, h);
    std::byte* const c = C + i * s.c_row;
    if (whole > 0) kMicro<T>.of[rows][kTwo][h - 1](s, a, B, c, whole);
    if (left > 0)
      kMicro<T>.of[rows][last.width][h - 1](s, a, B + whole * s.b_step, c + whole * s.c_step, 1);
    i += h;
  }
}

/// Panel after panel of B, each multiplied by all slices of A. `sliced`: A is as pack_a leaves it.
template <class T>
MBLAS_INLINE void multiply_panels(Micro<T>& s, const GemmTile& t, const std::byte* A,
                                  const std::byte* B, std::byte* C, std::int64_t b_panel,
                                  bool sliced) {
  const Slices slices = slices_of<T>(t.m);
  const bool rows = !sliced && t.a_col == 1;
  s.b_step = 0;
  for (std::int64_t j = 0; j < t.n; j += T::kNR) {
    const Panel panel = panel_of<T>(t.n - j);
    s.tail = panel.tail;
    const std::byte* a = A;
    std::byte* c = C + j * T::kSize;
    // First the taller slices, then the others.
    for (int part = 0; part < 2; ++part) {
      const std::int64_t h = slices.height + (part == 0);
      const std::int64_t count = part == 0 ? slices.taller : slices.count - slices.taller;
      if (count == 0) continue;
      if (sliced) s.a_col = h * T::kSize;
      s.a_step = sliced ? h * t.k * T::kSize : h * s.a_row;
      s.c_step = h * s.c_row;
      kMicro<T>.of[rows][panel.width][h - 1](s, a, B + j * b_panel * T::kSize, c, count);
      a += count * s.a_step;
      c += count * s.c_step;
    }
  }
}

/// Packs `count` columns of h contiguous elements, `pitch` bytes apart.
template <class T>
MBLAS_INLINE void copy_columns(std::byte* dst, const std::byte* src, std::int64_t pitch,
                               std::int64_t h, std::int64_t count) {
  for (std::int64_t p = 0; p < count; ++p, src += pitch, dst += h * T::kSize) {
    if (h == T::kMR)
      __builtin_memcpy(dst, src, T::kMR * T::kSize);
    else
      __builtin_memcpy(dst, src, std::size_t(h * T::kSize));
  }
}

/// Copies a slice of A, h rows of it: rows that are contiguous stay so, kc + kSlicePad elements
/// apart, else to [k][h].
template <class T>
MBLAS_INLINE void copy_slice(std::byte* dst, const std::byte* src, const GemmTile& t,
                             std::int64_t h) {
  if (t.a_col == 1) {
    const std::int64_t pitch = (t.k + kSlicePad / T::kSize) * T::kSize;
    for (std::int64_t i = 0; i < h; ++i)
      __builtin_memcpy(dst + i * pitch, src + i * t.a_row * T::kSize, std::size_t(t.k * T::kSize));
    return;
  }
  copy_columns<T>(dst, src, t.a_col * T::kSize, h, t.k);
}

/// Fetches rows of `bytes` bytes, `pitch` apart, into the second-level cache.
MBLAS_INLINE void fetch(const std::byte* p, std::int64_t rows, std::int64_t pitch,
                        std::int64_t bytes) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + i * pitch + at, 0, 2);
}

template <class T>
void block_rows(const GemmTile& t, std::int64_t b_panel, std::byte* slice) {
  Micro<T> s = micro_of<T>(t);
  fetch_c(s, t, true);
  const auto* A = static_cast<const std::byte*>(t.A);
  const std::int64_t a_row = s.a_row, a_col = s.a_col;
  const bool rows = t.a_col == 1;
  if (slice) s.a_row = (t.k + kSlicePad / T::kSize) * T::kSize;
  // Slices of A come from beyond the second-level cache; the next one is fetched meanwhile.
  const bool far = t.m * t.k * T::kSize > kFetchFrom;
  const std::int64_t distance = t.k > kShort ? 1 : 3;
  multiply_rows<T>(s, t, static_cast<const std::byte*>(t.B), static_cast<std::byte*>(t.C), b_panel,
                   rows, [&](std::int64_t i, std::int64_t h) {
                     const std::byte* const from = A + i * a_row;
                     if (far && i + distance * T::kMR < t.m) {
                       const std::byte* const ahead = from + distance * h * a_row;
                       if (rows)
                         fetch(ahead, h, a_row, t.k * T::kSize);
                       else
                         fetch(ahead, t.k, a_col, h * T::kSize);
                     }
                     if (!slice) return from;
                     copy_slice<T>(slice, from, t, h);
                     if (!rows) s.a_col = h * T::kSize;
                     return static_cast<const std::byte*>(slice);
                   });
}

template <class T>
void block_panels(const GemmTile& t, std::int64_t b_panel, bool sliced) {
  Micro<T> s = micro_of<T>(t);
  fetch_c(s, t, false);
  multiply_panels<T>(s, t, static_cast<const std::byte*>(t.A), static_cast<const std::byte*>(t.B),
                     static_cast<std::byte*>(t.C), b_panel, sliced);
}

/// Packs columns [first, last) of B, depth rows, into panels of kNR columns: [panel][depth][kNR],
/// filled with zeros.
template <class T>
void pack_b(void* to, const void* from, std::int64_t b_row, std::int64_t b_col, std::int64_t depth,
            std::int64_t cols) {
  constexpr int nr = T::kNR, size = T::kSize;
  constexpr std::int64_t steps = 16;  // along its rows B is read as a few streams, not as one line
                                      // from each of many pages
  auto* dst = static_cast<std::byte*>(to);
  const auto* src = static_cast<const std::byte*>(from);
  for (std::int64_t p0 = 0; p0 < depth; p0 += steps) {
    const std::int64_t rows = smaller(steps, depth - p0);
    for (std::int64_t j = 0; j < cols; j += nr) {
      const std::int64_t width = smaller(nr, cols - j);
      const std::byte* x = src + (p0 * b_row + j * b_col) * size;
      std::byte* y = dst + (j * depth + p0 * nr) * size;
      if (width < nr) __builtin_memset(y, 0, std::size_t(rows * nr * size));
      if (b_col == 1) {
        for (std::int64_t p = 0; p < rows; ++p, x += b_row * size, y += nr * size) {
          if (width == nr) {
            using V = Vector<std::uint64_t>;
            store(y, load<V>(x));
            store(y + kVectorBytes, load<V>(x + kVectorBytes));
          } else {
            __builtin_memcpy(y, x, std::size_t(width * size));
          }
        }
      } else {
        transpose_block<size>(x, b_col * size, y, nr * size, width, rows);
      }
    }
  }
}

/// Packs m rows of A, `depth` deep. Rows that are contiguous stay so, packed_row elements apart.
/// Else slice by slice, as multiply_panels() reads them: [slice][depth][height].
template <class T>
void pack_a(void* to, const void* from, std::int64_t a_row, std::int64_t a_col, std::int64_t m,
            std::int64_t depth, std::int64_t packed_row) {
  constexpr int size = T::kSize;
  auto* dst = static_cast<std::byte*>(to);
  const auto* src = static_cast<const std::byte*>(from);
  if (a_col == 1) {
    for (std::int64_t i = 0; i < m; ++i)
      __builtin_memcpy(dst + i * packed_row * size, src + i * a_row * size,
                       std::size_t(depth * size));
    return;
  }
  const Slices slices = slices_of<T>(m);
  constexpr std::int64_t steps = 16;  // as in pack_b
  for (std::int64_t p0 = 0; p0 < depth; p0 += steps) {
    for (std::int64_t u = 0, i = 0; u < slices.count; i += slices.height_of(u++)) {
      const std::int64_t h = slices.height_of(u);
      copy_columns<T>(dst + (i * depth + p0 * h) * size, src + (i + p0 * a_col) * size,
                      a_col * size, h, smaller(steps, depth - p0));
    }
  }
}

/// `count` products one after the other, with nothing but the stack.
template <class T, bool Packed>
void small_batch(const GemmTile& t, std::int64_t count, std::int64_t stride_a,
                 std::int64_t stride_b, std::int64_t stride_c) {
  Micro<T> s = micro_of<T>(t);
  s.prefetch = false;
  const auto* A = static_cast<const std::byte*>(t.A);
  const auto* B = static_cast<const std::byte*>(t.B);
  auto* C = static_cast<std::byte*>(t.C);
  const bool rows = t.a_col == 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto slice = [&](std::int64_t row, std::int64_t) { return A + row * s.a_row; };
    if constexpr (Packed) {
      alignas(64) std::byte packed[kSmallBytes];
      s.b_row = T::kNR * T::kSize;
      pack_b<T>(packed, B, t.b_row, t.b_col, t.k, t.n);
      multiply_rows<T>(s, t, packed, C, t.k, rows, slice);
    } else {
      multiply_rows<T>(s, t, B, C, 1, rows, slice);
    }
    A += stride_a * T::kSize;
    B += stride_b * T::kSize;
    C += stride_c * T::kSize;
  }
}

template <class T>
void small(const GemmTile& t, std::int64_t count, std::int64_t stride_a, std::int64_t stride_b,
           std::int64_t stride_c) {
  const auto run = t.b_col != 1 && t.k > 0 ? small_batch<T, true> : small_batch<T, false>;
  run(t, count, stride_a, stride_b, stride_c);
}

template <class T>
constexpr GemmPanels row() {
  return {T::kTag,         T::kMR,    T::kNR,    T::kSize, block_rows<T>,
          block_panels<T>, pack_a<T>, pack_b<T>, small<T>};
}

}  // namespace

constinit const GemmPanels gemm_panels[4] = {
    row<Element<DType::f32, float>>(),
    row<Element<DType::f64, double>>(),
    row<Element<DType::cf32, float>>(),
    row<Element<DType::cf64, double>>(),
};

}  // namespace mblas::cpu::MBLAS_ISA
