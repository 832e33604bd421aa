// Products of float, double and their complex types: the microkernels, the packing and the loops
// around them that one thread runs (packed.cpp, small.cpp and split.cpp drive them).
//
// Limited by the multiply-add units if the operands arrive in time. A microkernel keeps up to
// kMR rows by two vectors of C in registers: enough independent sums to cover the latency of the
// multiply-adds, few enough for the registers, and fewer loads than multiply-adds. Rows of C go
// along the vectors, so B is read by vectors and A by broadcast elements, which have no order to
// keep: A is used as it lies, transposed or not. Where enough panels of B pass by, a slice of it is
// copied column by column: read as one stream in place of one a row, it makes the loop 9 to 11
// percent faster where the core is shared with another thread, and 2.6 percent where it is not.
// With AVX2's 16 registers a single vector of C meets twice as many rows.
// There is a microkernel for every number of rows; m is cut into slices of nearly equal height, so
// that no slice is thin. Columns past the last whole vector are masked. An element's sum depends on
// k alone, not on the slice or panel that it falls into. On an Emerald Rapids Xeon the largest
// microkernel runs at 0.98 of the peak of its multiply-adds.
//
// What comes from beyond the second-level cache, C and the next rows of A, is fetched a line or two
// at a time between steps of k. All at once, at a microkernel's start, such fetches take the few
// buffers that a core has for lines on their way, and B, which passes by from the second level,
// waits: on that Xeon this cost float 1024³ and 2048³ 1.5 to 3 percent. Columns of A that are
// contiguous are copied for several slices at a time, since one slice uses less than a line of
// each: one after the other they cost a transposed A of 1024³ a tenth of the speed.
//
// Complex products: one sum of re(a) b and one of im(a) b over interleaved b, combined at the end,
// which takes no more multiply-adds than separated parts and no unpacking.
//
// By AVX-512 the two multiply-adds of a row can read its element of A themselves, twice, for two
// rows of float in three and one of double in two, the others by a broadcast that both use: an
// instruction less for a load more. A core whose other thread is busy has few of either to spare,
// and a step of 41 instructions in place of 50 is 8 to 11 percent faster there (128³ to 1024³ on an
// Emerald Rapids Xeon); alone on a core it makes no difference, but that two of three rows of
// double were 3 percent slower. A Zen 5 has no loads to spare: it takes float squares 2 to 3
// percent longer so, double 1 to 2, complex 256×32×256 with A transposed 10 to 18, and has each row
// broadcast but beside three vectors (2 percent the other way). Where rows of A lie as they are, of
// three that share a pointer the one at that does so, as multiply-adds with an indexed address are
// two operations, and steps come in pairs (3 to 7 percent).
//
// After K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
// 34(3), 2008, and F. Van Zee, R. van de Geijn, "BLIS", ACM TOMS 41(3), 2015.
#include <limits>
#include <utility>

#include "cpu/gemm/few_rows.hpp"
#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr int kSteps = 4;  // of k at a time where operands are packed
#else
constexpr int kSteps = 1;
#endif
#if defined(__AVX512F__)
constexpr bool kMemoryOperands = true;  // multiply-adds broadcast an element from memory themselves
#else
constexpr bool kMemoryOperands = false;
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
  // Rows by a single vector: kMR of them are too few sums to cover the latency where kMR is 6.
  static constexpr int kTall = kSteps > 1 && !kComplex ? 2 * kMR : kMR;
};

template <class T>
constexpr bool kTaller = T::kTall > T::kMR;

// Rows by three vectors, which take fewer instructions than a panel and a narrow one beside it
// (float 4096×48×4096 and 256×48×256 by AVX-512 1.3 times as fast, 1000×24×1000 by AVX2 1.35,
// double 256×24×256 1.4).
constexpr int kWideRows = kMemoryOperands ? 9 : kSteps > 1 ? 4 : 0;
template <class T>
constexpr int kWide = kWideRows > 0 && !T::kComplex ? 3 * T::kV : T::kNR;  // columns of the widest
/// Columns of a packed panel of n, which one microkernel takes if it can.
template <class T>
MBLAS_INLINE std::int64_t panel_width(std::int64_t n) {
  return n > T::kNR && n <= kWide<T> ? kWide<T> : T::kNR;
}

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kWay = 4096;  // bytes after which lines fall into the same set
constexpr std::int64_t kWays = 8;    // lines of a set, or more

/// C = sums, C + sums, or whatever alpha and beta say.
enum class Finish { Store, Add, Scale };

/// Rows of memory to be fetched into the second-level cache, some lines at a time.
struct Fetch {
  const std::byte* row = nullptr;
  std::int64_t rows = 0, pitch = 0, bytes = 0, at = 0;

  MBLAS_INLINE void go(std::int64_t lines) {
    for (; lines > 0 && rows > 0; --lines) {
      __builtin_prefetch(row + at, 0, 2);
      at += kLine;
      if (at >= bytes) {
        at = 0;
        row += pitch;
        --rows;
      }
    }
  }
};

/// What the microkernels of a block share. Strides and steps in bytes; a step leads from one
/// microkernel's operand to the next one's.
template <class T>
struct Micro {
  using Real = typename T::Real;
  std::int64_t k;
  std::int64_t a_row, a_col, b_row, c_row;
  std::int64_t a_step, b_step, c_step;
  Real alpha, beta;
  // Complex types: what the two sums are multiplied by for the conjugations; and, for the parts
  // that are multiplied by the imaginary part of a scalar.
  Vector<Real> sign_re, sign_im;
  Vector<Real> alpha_im, beta_im;
  bool alpha_is_real, beta_is_real;
  Finish finish;
  bool read_c;
  bool memory_operands;  // some multiply-adds read elements of A themselves
  bool prefetch;
  std::int64_t ahead;  // of C where it is prefetched, in bytes: to what a later microkernel writes
  std::int64_t a_ahead = 0;   // likewise of rows of A, where they are
  bool fetches_rows = false;  // of A, so many slices and lines ahead
  std::int64_t slices_ahead = 0, lines_ahead = 0;
  int tail;  // lanes of the last vector, where it is masked
  // Steps of k after each of which kRowsOfC rows of C and some lines of what comes next are
  // fetched; 0: C at once. Fetches from beyond the second-level cache that come all at once leave
  // none of the core's few buffers for lines to B, which comes from that cache.
  std::int64_t chunk;
  Fetch next;
  std::int64_t lines;
};

constexpr std::int64_t kPrefetchFrom = 16 << 10;  // bytes of C
constexpr std::int64_t kFetchFrom = 128 << 10;    // bytes of A
// Likewise, of rows that pass by a panel of B: from the third-level cache the processor's own
// fetches do better (double 20000×16×32 on a Zen 5 EPYC, 5 MB: 7 percent).
constexpr std::int64_t kFetchRowsFrom = 6 << 20;
// By AVX-512 rows of at least so many bytes are fetched where they lie while they pass by one
// panel, of three vectors from so many bytes of A on and of one from so many (float 256×32×256 and
// 1000×32×128 on an Emerald Rapids Xeon 1.13 times as fast; by one vector 0.96 times, and 16 MB in
// the third level of a Zen 5 0.9 times).
constexpr std::int64_t kLongRow = 256;
constexpr std::int64_t kFetchWideFrom = 2 << 20, kFetchOneFrom = 24 << 20;
// Lines ahead: over one, on a Zen 5, 4096×24×4096 of double 1.2 to 1.4 times as fast, 4096×16×4096
// and 100000×16×100 of either 1.1 to 1.25, 20000×16×200 of double 1.3; on that Xeon 100000×32×100
// and 100000×16×100 of float 1.3 to 1.5. There rows in the same set of the first-level cache drive
// each other out of it before they are used (1000×32×1024 and 4096×32×4096 1.05 to 1.1 times as
// long): one.
constexpr std::int64_t kLinesAhead = 8;
constexpr std::int64_t kShort = 48;
constexpr std::int64_t kLeastChunk = 2;
constexpr int kRowsOfC = kMemoryOperands ? 2 : 1;      // that are fetched at a chunk
constexpr int kAtOnce = kMemoryOperands ? 2 : kSteps;  // steps of which chunks are multiples
// Columns of A, where they lie, that are fetched ahead, and k from which on they are (TN on an
// Emerald Rapids Xeon: float 128³ 1.06 times as fast, 500×48×500 and 1000×64×300 1.4).
constexpr std::int64_t kColumnsAhead = 8, kFetchColumnsFrom = 65;
constexpr std::int64_t kAheadOfB = 32;  // rows: 1 to 3 percent at 256³ to 1024³ on a Zen 4 EPYC

template <class V, int... I>
MBLAS_INLINE V swap_pairs(const V& v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ 1)...);
}
template <class V>
MBLAS_INLINE V swap_pairs(const V& v) {
  return swap_pairs(v, std::make_integer_sequence<int, int(sizeof(V) / sizeof(v[0]))>());
}
/// even, odd, even …
template <class Real>
MBLAS_INLINE Vector<Real> alternate(Real even, Real odd) {
  Vector<Real> v;
  for (int i = 0; i < int(sizeof(v) / sizeof(Real)); ++i) v[i] = i % 2 ? odd : even;
  return v;
}

/// v, rounded as it is: left to itself the compiler fuses one product or another of a sum, not the
/// same one in every microkernel.
template <class V>
MBLAS_INLINE V rounded(V v) {
  pin(v);
  return v;
}

/// sums += y * x. By AVX2 in the form that leaves the sums where they are: GCC takes any of the
/// three where several steps of k follow each other, and then copies or spills sums.
template <class Real, class V>
MBLAS_INLINE void add_product(V& sums, const Real& y, const V& x) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (sizeof(Real) == 4)
    asm("vfmadd231ps %1, %2, %0" : "+x"(sums) : "x"(_mm256_set1_ps(y)), "x"(x));
  else
    asm("vfmadd231pd %1, %2, %0" : "+x"(sums) : "x"(_mm256_set1_pd(y)), "x"(x));
#else
  sums += y * x;
#endif
}

/// sums[v] += y * x[v], y in memory. `reads`: where multiply-adds can, each reads y itself.
template <class Real, int NV, class V>
MBLAS_INLINE void add_row(V (&sums)[NV], [[maybe_unused]] bool reads, const std::byte* from,
                          const V (&x)[NV]) {
#if defined(__AVX512F__)
  // In the order of the rows, which GCC would change and then copy sums.
  if (NV >= 2 && reads) {
    using Aliased [[gnu::may_alias, gnu::aligned(1)]] = Real;
    const auto& y = *reinterpret_cast<const Aliased*>(from);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      if constexpr (sizeof(Real) == 4)
        asm volatile("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sums[v]) : "v"(x[v]), "m"(y));
      else
        asm volatile("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(sums[v]) : "v"(x[v]), "m"(y));
    return;
  }
#endif
  Real y;
  __builtin_memcpy(&y, from, sizeof y);
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) add_product(sums[v], y, x[v]);
}

/// A vector of C from its sums.
template <Finish How, class T, class V>
MBLAS_INLINE V finish(const Micro<T>& s, const V& sums, const V& c) {
  if constexpr (How == Finish::Store) return sums;
  if constexpr (How == Finish::Add) return c + sums;
  V result = rounded(s.alpha * sums);
  if constexpr (T::kComplex) {
    // A real scalar scales the parts: 0 times an infinite part would make the other one NaN.
    if (!s.alpha_is_real) result = rounded(result + swap_pairs(sums) * s.alpha_im);
    if (!s.beta_is_real) result = rounded(result + swap_pairs(c) * s.beta_im);
  }
  if (s.read_c) result += s.beta * c;
  return result;
}

/// write() with what becomes of the sums as a constant.
template <class T, class Write>
MBLAS_INLINE void by_finish(const Micro<T>& s, const Write& write) {
  if (s.finish == Finish::Store)
    write(std::integral_constant<Finish, Finish::Store>());
  else if (s.finish == Finish::Add)
    write(std::integral_constant<Finish, Finish::Add>());
  else
    write(std::integral_constant<Finish, Finish::Scale>());
}

/// H rows by NV vectors of C, the last one masked if Tail, `count` times. `Rows`: the rows of A are
/// contiguous, else its columns are. `Reads`: some multiply-adds read elements of A themselves.
template <class T, int H, int NV, bool Tail, bool Rows, bool Reads>
void micro(Micro<T>& s, const std::byte* a, const std::byte* b, std::byte* c, std::int64_t count) {
  using Real = typename T::Real;
  using V = Vector<Real>;
  constexpr int sets = T::kParts;
  // Three rows share a pointer: one for each row would not fit the registers.
  constexpr int groups = Rows ? (H + 2) / 3 : 1;
  // Locals, which the stores to C cannot change.
  const std::int64_t row = Rows ? s.a_row : T::kSize, col = Rows ? T::kSize : s.a_col;
  const std::int64_t k = s.k, b_row = s.b_row, c_row = s.c_row;
  const std::int64_t a_step = s.a_step, b_step = s.b_step, c_step = s.c_step;
  constexpr bool kSpread = NV == 2 && !Tail;  // few others are in a block
  constexpr bool kConstant = kSteps > 1 && (kSpread || (kTaller<T> && NV == 1 && !Tail));
  constexpr std::int64_t kPackedCol = (Rows ? 1 : H) * T::kSize, kPackedRow = NV * kVectorBytes;
  const bool packed = kConstant && col == kPackedCol && b_row == kPackedRow;
  // Likewise at distances that few registers hold: columns of A where they lie, beside packed B,
  // and rows of a B as narrow as three vectors.
  constexpr bool kStrides = kSteps > 1 && !T::kComplex && ((kSpread && !Rows) || NV == 3);
  const bool strided = kStrides && !packed && (NV == 3 || b_row == kPackedRow);
  constexpr bool kPairs = kMemoryOperands && Rows && !T::kComplex;
  // Columns of A where they lie are a line or two each, which the processor does not foresee.
  const bool fetches_a = kMemoryOperands && !Rows && col != kPackedCol && k >= kFetchColumnsFrom;
  // Of small operands nothing needs fetching, and a loop of a few steps ends in a branch that is
  // foreseen wrongly (float 33×48×33 took 1.3 times as long).
  const bool fetches_b =
      kSpread && !packed && !strided && (kSteps == 1 || s.chunk > 0 || s.prefetch);
  const bool fetches_rows = kPairs && s.fetches_rows;
  const std::int64_t chunk = fetches_rows                 ? kLine / T::kSize
                             : kSpread && s.chunk > 0     ? s.chunk
                             : fetches_b && k > kAheadOfB ? k - kAheadOfB
                                                          : k;
  const std::int64_t ahead = kAheadOfB * b_row, past = b_step - k * b_row;
  const std::byte* const first = b;
  const int tail = s.tail;
  for (; count > 0; --count, a += a_step, b += b_step, c += c_step) {
    V sums[sets][H][NV];
#pragma GCC unroll 16
    for (int i = 0; i < H; ++i)
#pragma GCC unroll 3
      for (int v = 0; v < NV; ++v)
#pragma GCC unroll 3
        for (int set = 0; set < sets; ++set) sums[set][i][v] = V{};
    if (s.prefetch && !(kSpread && s.chunk > 0)) {
#pragma GCC unroll 16
      for (int i = 0; i < H; ++i)
#pragma GCC unroll 3
        for (int v = 0; v < NV; ++v)
          __builtin_prefetch(c + s.ahead + i * c_row + v * kVectorBytes, 1);
    }
    if (Rows && s.a_ahead > 0) {
      for (std::int64_t at = s.a_ahead; at < s.a_ahead + k * T::kSize; at += kLine)
#pragma GCC unroll 16
        for (int i = 0; i < H; ++i) __builtin_prefetch(a + i * row + at);
    }
    const std::byte* base[groups];
    const std::byte* from_b = b;
#pragma GCC unroll 16
    for (int g = 0; g < groups; ++g) base[g] = a + 3 * g * row;
    const std::byte* fetched = c + s.ahead;
    std::int64_t left = k;
    do {
      if (fetches_rows) {
        const std::int64_t lines = (left * T::kSize + kLine - 1) / kLine;
        const std::int64_t next =
            s.slices_ahead * H * row +
            (lines > s.lines_ahead
                 ? s.lines_ahead * kLine
                 : H * row + (s.lines_ahead - lines) * kLine - (k - left) * T::kSize);
#pragma GCC unroll 16
        for (int i = 0; i < H; ++i) __builtin_prefetch(base[i / 3] + i % 3 * row + next);
      } else if (kSpread && s.chunk > 0) {
        if (s.prefetch) {
#pragma GCC unroll 2
          for (int i = 0; i < kRowsOfC; ++i, fetched += c_row)
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) __builtin_prefetch(fetched + v * kVectorBytes, 1);
        }
        s.next.go(s.lines);
      }
      // Not what follows the panel in memory, which may be what another thread writes, but the next
      // one, in the end that of the next slice of A.
      const std::int64_t fetched_b = !fetches_b         ? 0
                                     : left > kAheadOfB ? ahead
                                     : count > 1        ? ahead + past
                                                        : ahead - k * b_row + (first - b);
      const auto step = [&](std::int64_t at_a, std::int64_t at_b, bool fetch_b)
          __attribute__((always_inline)) {
        V x[NV];
#pragma GCC unroll 3
        for (int v = 0; v < NV; ++v) {
          const std::byte* from = from_b + at_b + v * kVectorBytes;
          x[v] = Tail && v == NV - 1 ? load_first<V>(from, tail) : load<V>(from);
          pin(x[v]);
          if (fetch_b) __builtin_prefetch(from + fetched_b);
        }
#pragma GCC unroll 16
        for (int i = 0; i < H; ++i) {
          const std::byte* from = (Rows ? base[i / 3] + i % 3 * row : base[0] + i * row) + at_a;
          const bool reads = Reads && (Rows                ? i % 3 == 0
                                       : sizeof(Real) == 4 ? i % 3 != 1
                                                           : i % 2 == 1);
#pragma GCC unroll 3
          for (int set = 0; set < sets; ++set)
            add_row<Real>(sums[set][i], reads, from + set * int(sizeof(Real)), x);
        }
      };
      const auto go = [&](std::int64_t a_bytes, std::int64_t b_bytes)
          __attribute__((always_inline)) {
#pragma GCC unroll 16
        for (int g = 0; g < groups; ++g) base[g] += a_bytes;
        from_b += b_bytes;
      };
      std::int64_t p = smaller(chunk, left);
      // At constant distances a step takes 23 instructions beside 26, of which a core that another
      // thread shares has none to spare. B is one stream, which the processor follows by itself.
      if (packed) {
        for (; p >= kSteps; p -= kSteps) {
#pragma GCC unroll 4
          for (int u = 0; u < kSteps; ++u) step(u * kPackedCol, u * kPackedRow, false);
          go(kSteps * kPackedCol, kSteps * kPackedRow);
        }
      }
      if (strided) {
        const std::int64_t b_each = NV == 3 ? b_row : kPackedRow;
        for (; p >= kSteps; p -= kSteps) {
#pragma GCC unroll 4
          for (int u = 0; u < kSteps; ++u) step(u * col, u * b_each, false);
          go(kSteps * col, kSteps * b_each);
        }
      }
      if constexpr (kPairs) {
        for (; p >= 2; p -= 2) {
          step(0, 0, kSpread);
          step(T::kSize, b_row, kSpread);
          go(2 * T::kSize, 2 * b_row);
        }
      }
      if (fetches_a) {
        for (; p > 0; --p) {
          __builtin_prefetch(base[0] + kColumnsAhead * col);
          __builtin_prefetch(base[0] + kColumnsAhead * col + (H - 1) * T::kSize);
          step(0, 0, kSpread);
          go(col, b_row);
        }
      }
      for (; p > 0; --p) {
        step(0, 0, kSpread);
        go(col, b_row);
      }
      left -= chunk;
    } while (left > 0);
    const auto write = [&]<Finish How>(std::integral_constant<Finish, How>)
        __attribute__((always_inline)) {
      const bool reads = How == Finish::Add || (How == Finish::Scale && s.read_c);
#pragma GCC unroll 16
      for (int i = 0; i < H; ++i) {
#pragma GCC unroll 3
        for (int v = 0; v < NV; ++v) {
          std::byte* to = c + i * c_row + v * kVectorBytes;
          V sum = sums[0][i][v];
          if constexpr (T::kComplex)
            sum = sum * s.sign_re + swap_pairs(sums[sets - 1][i][v]) * s.sign_im;
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
    by_finish(s, write);
  }
}

template <class T>
using MicroKernel = void (*)(Micro<T>&, const std::byte*, const std::byte*, std::byte*,
                             std::int64_t);

enum Width { kTwo, kTwoMasked, kOneMasked };

template <class T>
struct MicroTable {
  MicroKernel<T> of[2][3][T::kMR];  // [rows of A contiguous][width][height - 1]
};
template <class T, bool Reads, int... H>
constexpr MicroTable<T> micro_table(std::integer_sequence<int, H...>) {
  return {{{{micro<T, H + 1, 2, false, false, Reads>...},
            {micro<T, H + 1, 2, true, false, Reads>...},
            {micro<T, H + 1, 1, true, false, false>...}},
           {{micro<T, H + 1, 2, false, true, Reads>...},
            {micro<T, H + 1, 2, true, true, Reads>...},
            {micro<T, H + 1, 1, true, true, false>...}}}};
}
template <class T, bool Reads>
constexpr MicroTable<T> kMicro = micro_table<T, Reads>(std::make_integer_sequence<int, T::kMR>());
template <class T>
MBLAS_INLINE const auto& micro_kernels(const Micro<T>& s, bool rows) {
  return (kMemoryOperands && s.memory_operands ? kMicro<T, kMemoryOperands> : kMicro<T, false>)
      .of[rows];
}

template <class T>
struct TallTable {
  MicroKernel<T> of[2][2][T::kTall];  // [rows of A contiguous][masked][height - 1]
};
template <class T, int... H>
constexpr TallTable<T> tall_table(std::integer_sequence<int, H...>) {
  return {
      {{{micro<T, H + 1, 1, false, false, false>...}, {micro<T, H + 1, 1, true, false, false>...}},
       {{micro<T, H + 1, 1, false, true, false>...}, {micro<T, H + 1, 1, true, true, false>...}}}};
}
template <class T>
constexpr TallTable<T> kTallMicro = tall_table<T>(std::make_integer_sequence<int, T::kTall>());

template <class T>
struct WideTable {
  MicroKernel<T> of[2][2][kWideRows + 1];  // [rows of A contiguous][masked][height - 1]
};
template <class T, int... H>
constexpr WideTable<T> wide_table(std::integer_sequence<int, H...>) {
  return {{{{micro<T, H + 1, 3, false, false, kMemoryOperands>...},
            {micro<T, H + 1, 3, true, false, kMemoryOperands>...}},
           {{micro<T, H + 1, 3, false, true, kMemoryOperands>...},
            {micro<T, H + 1, 3, true, true, kMemoryOperands>...}}}};
}
template <class T>
constexpr WideTable<T> kWideMicro = wide_table<T>(std::make_integer_sequence<int, kWideRows>());

// Steps of k up to which a panel of B one vector wide stays in registers, beside the sums of some
// rows; rows of C from which on it does.
constexpr int kMostResident = kVectorRegisters == 32 ? 24 : 0;
constexpr std::int64_t kLeastResident = 32;

/// C one vector wide, of m rows and K steps of k. Row after row passes by as one stream, and no
/// loop over k ends in a branch that is foreseen wrongly: a microkernel's takes a fifth longer
/// where the second-level cache holds A and C, and half as long again where it does not (float
/// 100000×16×16 on a Zen 5 EPYC).
template <class T, int K>
void resident(const Micro<T>& s, const std::byte* a, const std::byte* b, std::byte* c,
              std::int64_t m) {
  using Real = typename T::Real;
  using V = Vector<Real>;
  constexpr int kTogether = K <= 16 ? 8 : 4;
  constexpr std::int64_t kAhead = 64;  // rows
  const std::int64_t a_row = s.a_row, c_row = s.c_row;
  // The processor's own fetches follow rows of a line.
  const bool fetches_a = K * T::kSize > kLine && s.a_ahead > 0;
  const int tail = s.tail;
  V x[K];
#pragma GCC unroll 32
  for (int p = 0; p < K; ++p) {
    x[p] = load_first<V>(b + p * s.b_row, tail);
    pin(x[p]);
  }
  const auto rows = [&]<int H>(std::integral_constant<int, H>) __attribute__((always_inline)) {
    V sums[H];
    if (s.ahead > 0) {
#pragma GCC unroll 8
      for (int i = 0; i < H; ++i) __builtin_prefetch(c + (kAhead + i) * c_row, 1);
    }
    if (fetches_a) {
#pragma GCC unroll 8
      for (int i = 0; i < H; ++i)
#pragma GCC unroll 4
        for (std::int64_t at = 0; at < K * T::kSize; at += kLine)
          __builtin_prefetch(a + (kAhead + i) * a_row + at);
    }
#pragma GCC unroll 8
    for (int i = 0; i < H; ++i) sums[i] = V{};
#pragma GCC unroll 32
    for (int p = 0; p < K; ++p)
#pragma GCC unroll 8
      for (int i = 0; i < H; ++i) {
        Real y;
        __builtin_memcpy(&y, a + i * a_row + p * T::kSize, sizeof y);
        sums[i] += y * x[p];
      }
    const auto write = [&]<Finish How>(std::integral_constant<Finish, How>)
        __attribute__((always_inline)) {
      const bool reads = How == Finish::Add || (How == Finish::Scale && s.read_c);
#pragma GCC unroll 8
      for (int i = 0; i < H; ++i) {
        std::byte* const to = c + i * c_row;
        store_first(to, finish<How>(s, sums[i], reads ? load_first<V>(to, tail) : V{}), tail);
      }
    };
    by_finish(s, write);
    a += H * a_row;
    c += H * c_row;
  };
  for (; m >= kTogether; m -= kTogether) rows(std::integral_constant<int, kTogether>());
  for (; m > 0; --m) rows(std::integral_constant<int, 1>());
}

template <class T>
using Resident = void (*)(const Micro<T>&, const std::byte*, const std::byte*, std::byte*,
                          std::int64_t);
template <class T>
struct ResidentTable {
  Resident<T> of[kMostResident];  // [k - 1]
};
template <class T, int... K>
constexpr ResidentTable<T> resident_table(std::integer_sequence<int, K...>) {
  return {{resident<T, K + 1>...}};
}
template <class T>
constexpr ResidentTable<T> kResident =
    resident_table<T>(std::make_integer_sequence<int, kMostResident>());

/// Slices of nearly equal height for m rows.
struct Slices {
  std::int64_t count, height, taller;  // the first `taller` have height + 1
  std::int64_t height_of(std::int64_t i) const { return height + (i < taller); }
  std::int64_t begin_of(std::int64_t i) const { return i * height + smaller(i, taller); }
};
template <class T>
MBLAS_INLINE Slices slices_of(std::int64_t m, std::int64_t most = T::kMR) {
  if (m <= most) return {1, m, 0};  // divisions take longer than the smallest products
  const std::int64_t count = (m + most - 1) / most;
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
    const Real alpha_im = Real(t.alpha.im), beta_im = Real(t.beta.im);
    s.alpha_is_real = alpha_im == 0;
    s.beta_is_real = beta_im == 0;
    s.alpha_im = alternate(Real(-alpha_im), alpha_im);
    s.beta_im = alternate(Real(-beta_im), beta_im);
    s.read_c = s.read_c || t.beta.im != 0;
    plain = plain && t.alpha.im == 0 && t.beta.im == 0;
    s.sign_re = alternate(Real(1), t.conj_b ? Real(-1) : Real(1));
    s.sign_im = alternate(t.conj_a != t.conj_b ? Real(1) : Real(-1), t.conj_a ? Real(-1) : Real(1));
  }
  s.chunk = s.lines = 0;
  s.memory_operands = kMemoryOperands && spares_loads();
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

/// Columns of a packed panel that holds `width` of nr.
template <class T>
MBLAS_INLINE std::int64_t packed_width(std::int64_t width, std::int64_t nr = T::kNR) {
  return kTaller<T> && width <= T::kV ? T::kV : nr;
}

/// Sets up what of C is fetched when. A short k leaves no time to fetch what is written next, so
/// that is what a later microkernel writes: the next one along a row, where the processor's own
/// fetches help. By AVX-512 what is only written along rows is left to them, as stores wait aside
/// (an Emerald Rapids Xeon, k from 16 to 128, C of 360 KB to 64 MB: float 1.02 to 1.14 times as
/// fast, double 1.03 to 1.16; with k of 512 even), but for those of one panel (100000×32×32;
/// 100000×32×100 and 20000×48×200 on a Zen 5 1.13 and 1.15).
template <class T>
MBLAS_INLINE void fetch_c(Micro<T>& s, const GemmTile& t, bool by_rows, bool one_panel) {
  const bool far = t.m * t.n * T::kSize > kPrefetchFrom;
  const bool reads = s.finish == Finish::Add || (s.finish == Finish::Scale && s.read_c);
  s.prefetch = far && (reads || !by_rows || one_panel || !kMemoryOperands);
  s.ahead = !far || t.k > kShort ? 0 : by_rows ? T::kNR * T::kSize : 3 * T::kMR * s.c_row;
  s.chunk = t.k / (T::kMR / kRowsOfC + 1) / kAtOnce * kAtOnce;
  // With constant steps what comes between chunks takes as many instructions as a chunk of four
  // (4096×4096×32 on a Zen 4 whose core is shared: float and double 1.35 times as fast without).
  if (s.chunk < kLeastChunk || (kSteps > 1 && t.k <= kShort)) s.chunk = 0;
  // Where nothing is fetched there is nothing to stop for; what A needs by rows fetch_a sets.
  if (!s.prefetch && (kMemoryOperands || (kSteps > 1 && !by_rows))) s.chunk = 0;
}

/// Spreads the fetches of so many lines of A over a microkernel, in chunks of their own by AVX-512
/// where C has none.
template <class T>
MBLAS_INLINE void fetch_a(Micro<T>& s, std::int64_t lines) {
  constexpr std::int64_t kTogether = 8;
  if (kMemoryOperands && !s.prefetch) {
    s.chunk = s.k / ((lines + kTogether - 1) / kTogether) / kAtOnce * kAtOnce;
    s.chunk = smaller(larger(s.chunk, kTogether), s.k);
  }
  if (s.chunk == 0) return;
  const std::int64_t chunks = s.k / s.chunk;
  s.lines = (lines + chunks - 1) / chunks;
}

/// Do rows of A, side by side, fall into the same set of the first-level cache?
template <class T>
MBLAS_INLINE bool rows_collide(const Micro<T>& s) {
  const std::int64_t off = s.a_row & (kWay - 1);
  return smaller(off, kWay - off) < kLine;
}

/// Sets up whether rows of A are fetched where they lie and pass by one panel.
template <class T>
MBLAS_INLINE void fetch_rows(Micro<T>& s, const GemmTile& t) {
  const std::int64_t row_bytes = t.k * T::kSize;
  const std::int64_t from = t.n <= T::kV ? kFetchOneFrom : t.n > T::kNR ? kFetchWideFrom : 0;
  s.fetches_rows = row_bytes >= kLongRow && t.a_bytes > from;
  if (!s.fetches_rows) return;
  const std::int64_t lines = (row_bytes + kLine - 1) / kLine;
  const std::int64_t ahead = rows_collide(s) && !follows_few_rows() ? 1 : kLinesAhead;
  s.slices_ahead = ahead / lines;
  s.lines_ahead = ahead % lines;
  s.chunk = 0;  // C, if at all, at once
}

/// Slices of a panel one vector wide: of fewer rows where these collide (float 100×8×1024 took half
/// as long again with 12).
template <class T>
MBLAS_INLINE Slices tall_slices_of(const Micro<T>& s, std::int64_t m, bool rows) {
  return slices_of<T>(m, rows && rows_collide(s) ? smaller(kWays, T::kTall) : T::kTall);
}

/// Does one microkernel take all columns of B: as it lies, or packed as wide?
template <class T>
MBLAS_INLINE bool is_wide(const GemmTile& t, std::int64_t b_panel) {
  return panel_width<T>(t.n) > T::kNR && (b_panel == 1 || t.b_row == kWide<T>);
}

template <class T>
MBLAS_INLINE Slices slices_by_rows(const GemmTile& t, std::int64_t b_panel) {
  return slices_of<T>(t.m, is_wide<T>(t, b_panel) ? kWideRows : T::kMR);
}

/// Slice after slice of A, each multiplied by all panels of B; prepare(u, i, h) says where slice u,
/// the h rows from row i, lies.
template <class T, class Prepare>
MBLAS_INLINE void multiply_rows(Micro<T>& s, const GemmTile& t, const std::byte* B, std::byte* C,
                                std::int64_t b_panel, bool rows, const Prepare& prepare) {
  const Slices slices = slices_by_rows<T>(t, b_panel);
  if constexpr (T::kNR < kWide<T>) {
    if (is_wide<T>(t, b_panel)) {
      const MicroKernel<T>* const kernels = kWideMicro<T>.of[rows][t.n < kWide<T>];
      s.tail = int(t.n - T::kNR);
      s.a_step = s.b_step = s.c_step = 0;
      for (std::int64_t u = 0, i = 0; u < slices.count; ++u) {
        const std::int64_t h = slices.height_of(u);
        const std::byte* const a = prepare(u, i, h);
        kernels[h - 1](s, a, B, C + i * s.c_row, 1);
        i += h;
      }
      return;
    }
  }
  const auto& kernels = micro_kernels<T>(s, rows);
  const std::int64_t whole = t.n / T::kNR, left = t.n % T::kNR;
  const Panel last = panel_of<T>(left);
  const std::int64_t b_row = s.b_row,
                     last_row = b_panel == 1 ? b_row : packed_width<T>(left) * T::kSize;
  s.tail = last.tail;
  s.a_step = 0;
  s.b_step = T::kNR * b_panel * T::kSize;
  s.c_step = T::kNR * T::kSize;
  for (std::int64_t u = 0, i = 0; u < slices.count; ++u) {
    const std::int64_t h = slices.height_of(u);
    const std::byte* const a = prepare(u, i, h);
    std::byte* const c = C + i * s.c_row;
    if (whole > 0) kernels[kTwo][h - 1](s, a, B, c, whole);
    if (left > 0) {
      if (kTaller<T>) s.b_row = last_row;
      kernels[last.width][h - 1](s, a, B + whole * s.b_step, c + whole * s.c_step, 1);
      if (kTaller<T>) s.b_row = b_row;
    }
    i += h;
  }
}

/// Panel after panel of B, each multiplied by all slices of A. `sliced`: A is as pack_a leaves it.
template <class T>
MBLAS_INLINE void multiply_panels(Micro<T>& s, const GemmTile& t, const std::byte* A,
                                  const std::byte* B, std::byte* C, std::int64_t b_panel,
                                  bool sliced) {
  Slices slices = slices_of<T>(t.m);
  const bool rows = !sliced && t.a_col == 1;
  s.b_step = 0;
  for (std::int64_t j = 0; j < t.n; j += T::kNR) {
    const Panel panel = panel_of<T>(t.n - j);
    s.tail = panel.tail;
    const MicroKernel<T>* kernels = micro_kernels<T>(s, rows)[panel.width];
    if constexpr (kTaller<T>) {
      if (b_panel != 1) s.b_row = packed_width<T>(t.n - j) * T::kSize;
      if (panel.width == kOneMasked && !sliced) {
        slices = tall_slices_of<T>(s, t.m, rows);
        kernels = kTallMicro<T>.of[rows][panel.tail < T::kV];
      }
    }
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
      kernels[h - 1](s, a, B + j * b_panel * T::kSize, c, count);
      a += count * s.a_step;
      c += count * s.c_step;
    }
  }
}

/// All slices of A by a B of three vectors of columns at most, whose rows are contiguous.
template <class T>
void multiply_wide(Micro<T>& s, const GemmTile& t) {
  const Slices slices = slices_of<T>(t.m, kWideRows);
  const MicroKernel<T>* const kernels = kWideMicro<T>.of[t.a_col == 1][t.n < kWide<T>];
  const auto* a = static_cast<const std::byte*>(t.A);
  auto* c = static_cast<std::byte*>(t.C);
  s.tail = int(t.n - T::kNR);
  s.b_step = 0;
  // First the taller slices, then the others.
  for (int part = 0; part < 2; ++part) {
    const std::int64_t h = slices.height + (part == 0);
    const std::int64_t count = part == 0 ? slices.taller : slices.count - slices.taller;
    if (count == 0) continue;
    s.a_step = h * s.a_row;
    s.c_step = h * s.c_row;
    kernels[h - 1](s, a, static_cast<const std::byte*>(t.B), c, count);
    a += count * s.a_step;
    c += count * s.c_step;
  }
}

/// Packs `count` columns of h contiguous elements, `pitch` bytes apart.
template <class T>
MBLAS_INLINE void copy_columns(std::byte* dst, const std::byte* src, std::int64_t pitch,
                               std::int64_t h, std::int64_t count) {
  const std::int64_t bytes = h * T::kSize;
#if defined(__AVX2__)
  // By whole vectors, what is too much being overwritten by the next column.
  using V = Vector<std::uint32_t>;
  const std::int64_t whole = (bytes - 1) / kVectorBytes * kVectorBytes;
  if (whole <= kVectorBytes && whole + kVectorBytes <= 2 * bytes) {
    const int lanes = int(bytes - whole) / 4;
    for (; count > 1; --count, src += pitch, dst += bytes) {
      if (whole > 0) store(dst, load<V>(src));
      store(dst + whole, load_first<V>(src + whole, lanes));
    }
  }
#endif
  for (; count > 0; --count, src += pitch, dst += bytes)
    __builtin_memcpy(dst, src, std::size_t(bytes));
}

/// Packs `count` slices of A whose columns are contiguous: [slice][depth][height].
template <class T>
MBLAS_INLINE void copy_slices(std::byte* dst, const std::byte* src, std::int64_t pitch,
                              const Slices& slices, std::int64_t first, std::int64_t last,
                              std::int64_t depth) {
  constexpr std::int64_t steps = 16;  // of k at a time: a line of A goes to two slices
  const std::int64_t begin = slices.begin_of(first);
  for (std::int64_t p = 0; p < depth; p += steps) {
    for (std::int64_t u = first, i = 0; u < last; i = slices.begin_of(++u) - begin) {
      const std::int64_t h = slices.height_of(u);
      copy_columns<T>(dst + (i * depth + p * h) * T::kSize, src + i * T::kSize + p * pitch, pitch,
                      h, smaller(steps, depth - p));
    }
  }
}

/// Packs a slice of h contiguous rows: [depth][height]. Whole vectors are written, what is too much
/// being overwritten by what comes later, and at the end up to a vector of what follows.
template <class T>
void transpose_slice(std::byte* dst, const std::byte* src, std::int64_t pitch, std::int64_t h,
                     std::int64_t depth) {
  constexpr int size = T::kSize, step = kBlock<size>, lanes = kVectorBytes / 16;
  constexpr std::int64_t group = kSquare<size>;
  using V = Vector<typename Bits<size>::type>;
  const std::int64_t column = h * size, whole = depth / step * step;
  for (std::int64_t i = (h - 1) / group * group; i >= 0; i -= group) {
    const std::byte* row[group];  // the last one instead of those that do not exist
    for (int r = 0; r < group; ++r) row[r] = src + smaller(i + r, h - 1) * pitch;
    std::byte* to = dst + i * size;
    for (std::int64_t p = 0; p < whole; p += step) {
      V v[step];
#pragma GCC unroll 4
      for (int r = 0; r < step; ++r)
        v[r] = gather_lanes<V>([&](int l) __attribute__((always_inline)) {
          static_assert(lanes * step == group);
          return row[l * step + r] + p * size;
        });
      transpose_lanes<size>(v);
#pragma GCC unroll 4
      for (int r = 0; r < step; ++r, to += column) store(to, v[r]);
    }
  }
  for (std::int64_t p = whole; p < depth; ++p)
    for (std::int64_t i = 0; i < h; ++i)
      __builtin_memcpy(dst + p * column + i * size, src + i * pitch + p * size, size);
}

/// Few steps of k: elements of A are in registers, and rows of C are written as a few streams, each
/// from its begin to where the rows of B leave the first-level cache. Panels would write 64 bytes
/// of each row at a time and take as long for their way in and out as for the sums.
template <class T, int K>
void shallow(const GemmTile& t) {
  const Micro<T> s = micro_of<T>(t);
  using Real = typename T::Real;
  using V = Vector<Real>;
  constexpr int kTogether = int(smaller(4, (kVectorRegisters - 1) / (K + 1)));
  constexpr std::int64_t most = (16 << 10) / (K * kLine) * (kLine / T::kSize);  // columns
  for (std::int64_t j0 = 0; j0 < t.n; j0 += most) {
    const std::int64_t cols = smaller(most, t.n - j0);
    const auto* const B = static_cast<const std::byte*>(t.B) + j0 * T::kSize;
    const auto rows = [&]<int H, Finish How>(std::integral_constant<int, H>,
                                             std::integral_constant<Finish, How>, std::int64_t i)
        __attribute__((always_inline)) {
      const bool reads = How == Finish::Add || (How == Finish::Scale && s.read_c);
      const auto* const a = static_cast<const std::byte*>(t.A) + i * s.a_row;
      auto* const C = static_cast<std::byte*>(t.C) + i * s.c_row + j0 * T::kSize;
      V x[H][K];
#pragma GCC unroll 4
      for (int r = 0; r < H; ++r)
#pragma GCC unroll 8
        for (int p = 0; p < K; ++p) {
          Real y;
          __builtin_memcpy(&y, a + r * s.a_row + p * s.a_col, sizeof y);
          x[r][p] = V{} + y;
          pin(x[r][p]);
        }
      const auto some = [&](std::int64_t j, int count) __attribute__((always_inline)) {
        V sums[H];
#pragma GCC unroll 4
        for (int r = 0; r < H; ++r) sums[r] = V{};
#pragma GCC unroll 8
        for (int p = 0; p < K; ++p) {
          const std::byte* const from = B + p * s.b_row + j * T::kSize;
          V b = count < T::kV ? load_first<V>(from, count) : load<V>(from);
          if (H > 1) pin(b);
#pragma GCC unroll 4
          for (int r = 0; r < H; ++r) sums[r] += x[r][p] * b;
        }
#pragma GCC unroll 4
        for (int r = 0; r < H; ++r) {
          std::byte* const to = C + r * s.c_row + j * T::kSize;
          if (count < T::kV)
            store_first(to, finish<How>(s, sums[r], reads ? load_first<V>(to, count) : V{}), count);
          else
            store(to, finish<How>(s, sums[r], reads ? load<V>(to) : V{}));
        }
      };
      std::int64_t j = 0;
      for (; j + T::kV <= cols; j += T::kV) some(j, T::kV);
      if (j < cols) some(j, int(cols - j));
    };
    const auto all = [&]<Finish How>(std::integral_constant<Finish, How> how)
        __attribute__((always_inline)) {
      std::int64_t i = 0;
      for (; i + kTogether <= t.m; i += kTogether)
        rows(std::integral_constant<int, kTogether>(), how, i);
      for (; i < t.m; ++i) rows(std::integral_constant<int, 1>(), how, i);
    };
    by_finish(s, all);
  }
}

/// Steps of k up to which it is done so. Not measured with 32 registers.
template <class T>
constexpr int kMostShallow = kVectorRegisters == 16 && !T::kComplex ? 6 : 0;
template <class T>
struct ShallowTable {
  void (*of[kMostShallow<T> + 1])(const GemmTile&);  // [k - 1]
};
template <class T, int... K>
constexpr ShallowTable<T> shallow_table(std::integer_sequence<int, K...>) {
  return {{shallow<T, K + 1>...}};
}
template <class T>
constexpr ShallowTable<T> kShallow =
    shallow_table<T>(std::make_integer_sequence<int, kMostShallow<T>>());
template <class T>
void shallow_of(const GemmTile& t) {
  kShallow<T>.of[t.k - 1](t);
}

template <class T>
void block_rows(const GemmTile& t, std::int64_t b_panel, std::byte* copies, SliceCopies how) {
  Micro<T> s = micro_of<T>(t);
  const bool one_panel = t.n <= T::kNR || is_wide<T>(t, b_panel);
  fetch_c(s, t, true, one_panel);
  const auto* A = static_cast<const std::byte*>(t.A);
  const std::int64_t a_row = s.a_row, a_col = s.a_col, row_bytes = t.k * T::kSize;
  const bool rows = t.a_col == 1, there = how == SliceCopies::There;
  const Slices slices = slices_by_rows<T>(t, b_panel);
  // Slices that are copied and fetched together: columns of one are less than a line or two.
  constexpr std::int64_t most = larger(kCopiedColumn / (T::kMR * T::kSize), 1);
  const std::int64_t together = copies && !rows && !there ? most : 1;
  const auto fetch_of = [&](std::int64_t i, std::int64_t h) -> Fetch {
    if (there) return {copies + i * row_bytes, 1, 0, h * row_bytes};
    if (rows) return {A + i * a_row, h, a_row, row_bytes};
    return {A + i * a_row, t.k, a_col, h * T::kSize};
  };
  // A comes from beyond the second-level cache; what is next is fetched meanwhile.
  const bool far = t.m * row_bytes > kFetchFrom && !(kMemoryOperands && one_panel);
  if (kMemoryOperands && !T::kComplex && one_panel && rows && !copies) fetch_rows<T>(s, t);
  if (far && t.k > 0) {
    const Fetch next = fetch_of(0, together * T::kMR);
    const std::int64_t microkernels = larger(t.n / T::kNR, 1) * together;
    fetch_a(s, (next.rows * (next.bytes / kLine + 1) + microkernels - 1) / microkernels);
  }
  const auto prepare = [&](std::int64_t u, std::int64_t i, std::int64_t h) -> const std::byte* {
    const std::byte* const from = A + i * a_row;
    const std::int64_t first = u - u % together;
    if (far && s.chunk == 0 && i + 4 * h <= t.m)
      fetch_of(i + 3 * h, h).go(std::numeric_limits<std::int64_t>::max());
    std::byte* const to =
        copies + (i - (how == SliceCopies::InTurn ? slices.begin_of(first) : 0)) * row_bytes;
    if (u == first) {
      const std::int64_t end = smaller(first + together, slices.count);
      const std::int64_t next = slices.begin_of(end);
      const std::int64_t next_rows = slices.begin_of(smaller(end + together, slices.count)) - next;
      if (far && next_rows > 0) s.next = fetch_of(next, next_rows);
      if (copies && !there && rows)
        transpose_slice<T>(to, from, a_row, h, t.k);
      else if (copies && !there)
        copy_slices<T>(to, from, a_col, slices, first, end, t.k);
    }
    if (!copies) return from;
    s.a_col = h * T::kSize;
    return to;
  };
  const auto* const B = static_cast<const std::byte*>(t.B);
  auto* const C = static_cast<std::byte*>(t.C);
  if (kTaller<T> && t.n <= T::kV && !copies)
    return multiply_panels<T>(s, t, A, B, C, b_panel, false);
  multiply_rows<T>(s, t, B, C, b_panel, rows && !copies, prepare);
}

template <class T>
void block_panels(const GemmTile& t, std::int64_t b_panel, bool sliced) {
  Micro<T> s = micro_of<T>(t);
  fetch_c(s, t, false, false);
  const bool rows = !sliced && t.a_col == 1;
  const std::int64_t row_bytes = t.k * T::kSize;
  if (s.ahead > 0 && rows && row_bytes >= kLine && t.m * row_bytes > kFetchRowsFrom)
    s.a_ahead = s.ahead / s.c_row * s.a_row;
  if constexpr (!T::kComplex && kMostResident > 0) {
    if (rows && t.n <= T::kV && t.k > 0 && t.k <= kMostResident && t.m >= kLeastResident) {
      s.tail = int(t.n);
      return kResident<T>.of[t.k - 1](s, static_cast<const std::byte*>(t.A),
                                      static_cast<const std::byte*>(t.B),
                                      static_cast<std::byte*>(t.C), t.m);
    }
  }
  if constexpr (T::kNR < kWide<T>) {
    if (!sliced && is_wide<T>(t, b_panel)) return multiply_wide<T>(s, t);
  }
  multiply_panels<T>(s, t, static_cast<const std::byte*>(t.A), static_cast<const std::byte*>(t.B),
                     static_cast<std::byte*>(t.C), b_panel, sliced);
}

/// dst (depth rows, `pitch` bytes apart) = transpose of src (width×depth).
template <class T>
MBLAS_INLINE void transpose_panel(const std::byte* src, std::int64_t src_pitch, std::byte* dst,
                                  std::int64_t pitch, std::int64_t width, std::int64_t depth) {
  constexpr int size = T::kSize, step = kBlock<size>, rows = kSquare<size>;
  std::int64_t i = 0;
  // By 16 bytes of each row, which takes half as many shuffles as whole vectors do, if the first-
  // level cache keeps the lines of those rows.
  const std::int64_t off = src_pitch & (kWay - 1);
  if (smaller(off, kWay - off) >= 4 * kLine) {
    const std::int64_t whole = depth / step * step;
    for (; i + rows <= width; i += rows)
      for (std::int64_t p = 0; p < whole; p += step)
        transpose_tall<size>(src + i * src_pitch + p * size, src_pitch, dst + p * pitch + i * size,
                             pitch);
    if (whole < depth)
      transpose_block<size>(src + whole * size, src_pitch, dst + whole * pitch, pitch, i,
                            depth - whole);
  }
  if (i < width)
    transpose_block<size>(src + i * src_pitch, src_pitch, dst + i * size, pitch, width - i, depth);
}

/// Packs `cols` columns of B, depth rows, into panels of nr columns: [panel][depth][nr], filled
/// with zeros; kV in place of nr for the columns that are left where these are as few.
template <class T>
void pack_b(void* to, const void* from, std::int64_t b_row, std::int64_t b_col, std::int64_t depth,
            std::int64_t cols, std::int64_t nr) {
  constexpr int size = T::kSize;
  // Along its rows B is read as a few streams, not as one line from each of many pages; along its
  // columns, those of a panel to the end.
  const std::int64_t steps = b_col == 1 ? 16 : depth;
  auto* dst = static_cast<std::byte*>(to);
  const auto* src = static_cast<const std::byte*>(from);
  for (std::int64_t p0 = 0; p0 < depth; p0 += steps) {
    const std::int64_t rows = smaller(steps, depth - p0);
    for (std::int64_t j = 0; j < cols; j += nr) {
      const std::int64_t width = smaller(nr, cols - j);
      const std::byte* x = src + (p0 * b_row + j * b_col) * size;
      const std::int64_t row = packed_width<T>(width, nr);
      std::byte* y = dst + (j * depth + p0 * row) * size;
      if (width < row) __builtin_memset(y, 0, std::size_t(rows * row * size));
      if (b_col == 1) {
        for (std::int64_t p = 0; p < rows; ++p, x += b_row * size, y += row * size) {
          if (width == nr) {
            using V = Vector<std::uint64_t>;
            for (std::int64_t v = 0; v < nr * size; v += kVectorBytes) store(y + v, load<V>(x + v));
          } else {
            __builtin_memcpy(y, x, std::size_t(width * size));
          }
        }
      } else {
        transpose_panel<T>(x, b_col * size, y, row * size, width, rows);
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
  copy_slices<T>(dst, src, a_col * size, slices, 0, slices.count, depth);
}

/// Columns and k from which on a few rows are multiplied as few_rows.hpp does it, with the sums of
/// some columns on the stack.
constexpr std::int64_t kLeastFewColumns = 32, kLeastFewDepth = 16, kFewSums = 8 << 10;
// Bytes of B, or of a row of it, up to which the sums stay in registers: its rows are in the first-
// level cache, or not far and next to each other.
constexpr std::int64_t kFewNear = 96 << 10, kFewNearRow = 512;

/// Few rows of A times a B with contiguous rows, with the bits of the microkernels.
template <class T, int R>
void few_rows(const Micro<T>& s, const GemmTile& t, const std::byte* A, const std::byte* B,
              std::byte* C) {
  using Real = typename T::Real;
  using V = Vector<Real>;
  constexpr std::int64_t most = kFewSums / (R * T::kSize) / T::kV * T::kV;
  alignas(64) Real sums[R * most];
  const auto* const x = reinterpret_cast<const Real*>(A);
  const auto* const M = reinterpret_cast<const Real*>(B);
  for (std::int64_t j = 0; j < t.n; j += most) {
    const std::int64_t cols = smaller(most, t.n - j);
    multiply_few<Real, R>(M + j, t.b_row, x, t.a_row, t.a_col, sums, most, cols, t.k, true,
                          [](std::int64_t, const Real*) {});
    const auto write = [&]<Finish How>(std::integral_constant<Finish, How>)
        __attribute__((always_inline)) {
      const bool reads = How == Finish::Add || (How == Finish::Scale && s.read_c);
      for (int r = 0; r < R; ++r) {
        std::byte* to = C + r * s.c_row + j * T::kSize;
        for (std::int64_t i = 0; i < cols; i += T::kV, to += kVectorBytes) {
          const V sum = load<V>(sums + r * most + i);
          const int left = int(smaller(cols - i, T::kV));
          if (left == T::kV)
            store(to, finish<How>(s, sum, reads ? load<V>(to) : V{}));
          else
            store_first(to, finish<How>(s, sum, reads ? load_first<V>(to, left) : V{}), left);
        }
      }
    };
    by_finish(s, write);
  }
}

/// Vectors beside so many rows, two to four, for which there are eight sums or more.
template <int R>
constexpr int kFewWide = R == 2 ? 4 : 3;

/// R rows by NV vectors of C, the last one masked if Tail.
template <class T, int R, int NV, bool Tail>
MBLAS_INLINE void few_by_vectors(const Micro<T>& s, const std::byte* a, const std::byte* b,
                                 std::byte* c, int tail) {
  using Real = typename T::Real;
  using V = Vector<Real>;
  const std::int64_t a_row = s.a_row, a_col = s.a_col, b_row = s.b_row;
  V sums[R][NV] = {};
  for (std::int64_t p = 0; p < s.k; ++p, a += a_col, b += b_row) {
    V x[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      x[v] = Tail && v == NV - 1 ? load_first<V>(b + v * kVectorBytes, tail)
                                 : load<V>(b + v * kVectorBytes);
      pin(x[v]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) add_row<Real>(sums[r], false, a + r * a_row, x);
  }
  const auto write = [&]<Finish How>(std::integral_constant<Finish, How>)
      __attribute__((always_inline)) {
    const bool reads = How == Finish::Add || (How == Finish::Scale && s.read_c);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        std::byte* const to = c + r * s.c_row + v * kVectorBytes;
        if (Tail && v == NV - 1)
          store_first(to, finish<How>(s, sums[r][v], reads ? load_first<V>(to, tail) : V{}), tail);
        else
          store(to, finish<How>(s, sums[r][v], reads ? load<V>(to) : V{}));
      }
  };
  by_finish(s, write);
}

/// few_rows() where B is near: the sums stay in registers.
template <class T, int R>
void few_rows_near(const Micro<T>& s, const GemmTile& t, const std::byte* A, const std::byte* B,
                   std::byte* C) {
  constexpr int most = kFewWide<R>;
  std::int64_t j = 0;
  const auto go = [&]<int NV>(std::integral_constant<int, NV>) __attribute__((always_inline)) {
    const std::byte* const b = B + j * T::kSize;
    std::byte* const c = C + j * T::kSize;
    const int left = int(smaller(t.n - j, NV * T::kV));
    if (left == NV * T::kV)
      few_by_vectors<T, R, NV, false>(s, A, b, c, 0);
    else
      few_by_vectors<T, R, NV, true>(s, A, b, c, left - (NV - 1) * T::kV);
    j += left;
  };
  while (j < t.n) {
    const std::int64_t left = (t.n - j + T::kV - 1) / T::kV;
    if (left == most || left > most + 1)
      go(std::integral_constant<int, most>());
    else if (left > 2)  // not one vector in the end, whose sums are too few
      go(std::integral_constant<int, most - 1>());
    else if (left == 2)
      go(std::integral_constant<int, 2>());
    else
      go(std::integral_constant<int, 1>());
  }
}

template <class T>
using FewRows = void (*)(const Micro<T>&, const GemmTile&, const std::byte*, const std::byte*,
                         std::byte*);
/// Null: not for them.
template <class T>
MBLAS_INLINE FewRows<T> few_rows_of(const GemmTile& t) {
  if constexpr (!T::kComplex) {
    constexpr FewRows<T> near[] = {few_rows_near<T, 2>, few_rows_near<T, 3>, few_rows_near<T, 4>};
    const std::int64_t row = t.n * T::kSize;
    if (t.m >= 2 && t.m <= 4 && t.n > T::kV && (row <= kFewNearRow || t.k * row <= kFewNear))
      return near[t.m - 2];
    constexpr FewRows<T> of[kFewVectors] = {few_rows<T, 1>, few_rows<T, 2>, few_rows<T, 3>};
    if (t.m <= kFewVectors && t.n >= kLeastFewColumns && t.k >= kLeastFewDepth) return of[t.m - 1];
  }
  return nullptr;
}

/// `count` products one after the other, with nothing but the stack.
template <class T, bool Packed>
void small_batch(const GemmTile& t, std::int64_t count, std::int64_t stride_a,
                 std::int64_t stride_b, std::int64_t stride_c) {
  Micro<T> s = micro_of<T>(t);
  s.prefetch = false;
  s.ahead = 0;
  const auto* A = static_cast<const std::byte*>(t.A);
  const auto* B = static_cast<const std::byte*>(t.B);
  auto* C = static_cast<std::byte*>(t.C);
  const bool rows = t.a_col == 1, taller = kTaller<T> && t.n <= T::kV && t.m > T::kMR;
  const FewRows<T> few = Packed ? nullptr : few_rows_of<T>(t);
  GemmTile own = t;  // with B as it is multiplied
  if constexpr (Packed) {
    own.b_row = panel_width<T>(t.n);
    s.b_row = own.b_row * T::kSize;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto slice = [&](std::int64_t, std::int64_t row, std::int64_t) {
      return A + row * s.a_row;
    };
    if (few) {
      few(s, t, A, B, C);
    } else if (taller && !Packed) {
      multiply_panels<T>(s, t, A, B, C, 1, false);
    } else if constexpr (Packed) {
      alignas(64) std::byte packed[kSmallBytes];
      pack_b<T>(packed, B, t.b_row, t.b_col, t.k, t.n, own.b_row);
      multiply_rows<T>(s, own, packed, C, t.k, rows, slice);
    } else {
      multiply_rows<T>(s, t, B, C, 1, rows, slice);
    }
    A += stride_a * T::kSize;
    B += stride_b * T::kSize;
    C += stride_c * T::kSize;
  }
}

constexpr int kDotColumns = dot_columns(kVectorBytes);

/// R rows of A by Q of B transposed, along k.
template <class T, int R, int Q>
void dots(const Micro<T>& s, const std::byte* a, const std::byte* b, std::int64_t b_row,
          std::byte* c) {
  using Real = typename T::Real;
  using V = Vector<Real>;
  V sums[R * Q] = {};
  const auto step = [&](std::int64_t p, const auto& read) __attribute__((always_inline)) {
    V x[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      x[r] = read(a + r * s.a_row + p * T::kSize);
      pin(x[r]);  // or each multiply-add reads it again
    }
#pragma GCC unroll 4
    for (int q = 0; q < Q; ++q) {
      V y = read(b + q * b_row + p * T::kSize);
      pin(y);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sums[r * Q + q] += x[r] * y;
    }
  };
  std::int64_t p = 0;
  for (; p + T::kV <= s.k; p += T::kV)
    step(
        p, [](const std::byte* from) __attribute__((always_inline)) { return load<V>(from); });
  if (const int tail = int(s.k - p); tail > 0)
    step(
        p, [&](const std::byte* from)
               __attribute__((always_inline)) { return load_first<V>(from, tail); });
  Real totals[round_up(R * Q, T::kV)];
  add_lanes_of<R * Q>(sums, totals);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int q = 0; q < Q; ++q) {
      auto* const to = reinterpret_cast<Real*>(c + r * s.c_row) + q;
      const Real sum = totals[r * Q + q];
      if (s.finish == Finish::Store)
        *to = sum;
      else if (s.finish == Finish::Add)
        *to = finish<Finish::Add>(s, sum, *to);
      else
        *to = finish<Finish::Scale>(s, sum, s.read_c ? *to : Real{});
    }
}

template <class T>
using Dots = void (*)(const Micro<T>&, const std::byte*, const std::byte*, std::int64_t,
                      std::byte*);
template <class T>
struct DotsTable {
  Dots<T> of[kDotRows * kDotColumns];  // [rows - 1][columns - 1]
};
template <class T, int... I>
constexpr DotsTable<T> dots_table(std::integer_sequence<int, I...>) {
  return {{dots<T, I / kDotColumns + 1, I % kDotColumns + 1>...}};
}
template <class T>
constexpr DotsTable<T> kDots =
    dots_table<T>(std::make_integer_sequence<int, kDotRows * kDotColumns>());

/// Products of SmallWay::Dots.
template <class T>
void small_dots(const GemmTile& t, std::int64_t count, std::int64_t stride_a, std::int64_t stride_b,
                std::int64_t stride_c) {
  alignas(64) std::byte across[kSmallBytes];
  Micro<T> s = micro_of<T>(t);
  const auto* A = static_cast<const std::byte*>(t.A);
  const auto* B = static_cast<const std::byte*>(t.B);
  auto* C = static_cast<std::byte*>(t.C);
  const std::int64_t pitch = dots_pitch(t.k, T::kV) * T::kSize;
  const bool a_across = t.a_col != 1, b_across = t.b_row != 1;
  if (a_across) s.a_row = pitch;
  const std::int64_t b_row = b_across ? pitch : t.b_col * T::kSize;
  for (std::int64_t batch = 0; batch < count; ++batch) {
    const std::byte *a = A, *b = B;
    std::byte* free = across;
    if (a_across) {
      transpose_block<T::kSize>(A, t.a_col * T::kSize, free, pitch, t.k, t.m);
      a = free;
      free += t.m * pitch;
    }
    if (b_across) {
      transpose_block<T::kSize>(B, t.b_row * T::kSize, free, pitch, t.k, t.n);
      b = free;
    }
    for (std::int64_t i = 0; i < t.m; i += kDotRows)
      for (std::int64_t j = 0; j < t.n; j += kDotColumns) {
        const std::int64_t rows = smaller(kDotRows, t.m - i), cols = smaller(kDotColumns, t.n - j);
        kDots<T>.of[(rows - 1) * kDotColumns + cols - 1](s, a + i * s.a_row, b + j * b_row, b_row,
                                                         C + i * s.c_row + j * T::kSize);
      }
    A += stride_a * T::kSize;
    B += stride_b * T::kSize;
    C += stride_c * T::kSize;
  }
}

/// A part of a product of SmallWay::Columns: as many rows and columns of C as the stack has room
/// for, transposed.
template <class T>
MBLAS_INLINE void few_columns(const Micro<T>& s, const GemmTile& t, typename T::Real* sums,
                              std::int64_t pitch) {
  using Real = typename T::Real;
  GemmTile across = t;
  across.A = t.B;
  across.a_row = t.b_col;
  across.a_col = t.b_row;
  across.B = t.A;
  across.b_row = t.a_col;
  across.b_col = t.a_row;
  across.C = sums;
  across.ldc = pitch;
  across.m = t.n;
  across.n = t.m;
  across.alpha = {1};
  across.beta = {};
  small_batch<T, false>(across, 1, 0, 0, 0);
  auto* const C = static_cast<std::byte*>(t.C);
  if (s.finish == Finish::Store)
    return transpose_block<T::kSize>(reinterpret_cast<const std::byte*>(sums), pitch * T::kSize, C,
                                     s.c_row, t.n, t.m);
  for (std::int64_t i = 0; i < t.m; ++i) {
    auto* const to = reinterpret_cast<Real*>(C + i * s.c_row);
    for (std::int64_t j = 0; j < t.n; ++j) {
      const Real sum = sums[j * pitch + i];
      to[j] = s.finish == Finish::Add ? finish<Finish::Add>(s, sum, to[j])
                                      : finish<Finish::Scale>(s, sum, s.read_c ? to[j] : Real{});
    }
  }
}

/// Products of SmallWay::Columns.
template <class T>
void small_columns(const GemmTile& t, std::int64_t count, std::int64_t stride_a,
                   std::int64_t stride_b, std::int64_t stride_c) {
  using Real = typename T::Real;
  constexpr std::int64_t room = kSmallBytes / T::kSize;
  alignas(64) Real sums[room];
  const Micro<T> s = micro_of<T>(t);
  const std::int64_t cols = smaller(t.n, room / T::kV);
  const std::int64_t rows = smaller(room / cols / T::kV * T::kV, round_up(t.m, T::kV));
  const auto at = [](const void* p, std::int64_t elements) {
    return static_cast<const std::byte*>(p) + elements * T::kSize;
  };
  for (std::int64_t batch = 0; batch < count; ++batch)
    for (std::int64_t j = 0; j < t.n; j += cols)
      for (std::int64_t i = 0; i < t.m; i += rows) {
        GemmTile part = t;
        part.A = at(t.A, batch * stride_a + i);
        part.B = at(t.B, batch * stride_b + j * t.b_col);
        part.C = static_cast<std::byte*>(t.C) + (batch * stride_c + i * t.ldc + j) * T::kSize;
        part.m = smaller(rows, t.m - i);
        part.n = smaller(cols, t.n - j);
        few_columns<T>(s, part, sums, rows);
      }
}

template <class T>
void small(const GemmTile& t, std::int64_t count, std::int64_t stride_a, std::int64_t stride_b,
           std::int64_t stride_c) {
  if constexpr (!T::kComplex) {
    if (t.way == SmallWay::Dots) return small_dots<T>(t, count, stride_a, stride_b, stride_c);
    if (t.way == SmallWay::Columns) return small_columns<T>(t, count, stride_a, stride_b, stride_c);
  }
  const auto run = t.b_col != 1 && t.k > 0 ? small_batch<T, true> : small_batch<T, false>;
  run(t, count, stride_a, stride_b, stride_c);
}

/// H rows from row i on by the columns from j on, which are NV vectors of `Bytes`, or fewer if
/// Tail, of C, with all of k. op(B) has contiguous rows from b on. What a call takes from its
/// arguments to the first multiply-add and from the last one back outweighs the product, so there
/// are few arguments and no tables of what blocks share; and vectors are as short as can be, as
/// masked stores hold up loads from nearby.
template <class T, int H, int NV, int Bytes, bool Tail>
bool tiny(const GemmArgs& g, std::int64_t i0, std::int64_t j0, const std::byte* b,
          std::int64_t b_row) {
  using Real = typename T::Real;
  using V = Vector<Real, Bytes>;
  const bool trans_a = g.transA == Op::Trans || g.transA == Op::ConjTrans;
  const std::int64_t a_ld = g.A.ld * T::kSize, c_row = g.C.ld * T::kSize;
  const std::int64_t a_row = trans_a ? T::kSize : a_ld, a_col = trans_a ? a_ld : T::kSize;
  const auto* a = static_cast<const std::byte*>(g.A.data) + i0 * a_row;
  b += j0 * T::kSize;
  auto* c = static_cast<std::byte*>(g.C.data) + i0 * c_row + j0 * T::kSize;
  const int n = int(g.n - j0);
  constexpr int groups = (H + 2) / 3;  // as in micro()
  const int tail = n - (NV - 1) * (Bytes / T::kSize);
  V sums[H][NV];
#pragma GCC unroll 16
  for (int i = 0; i < H; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) sums[i][v] = V{};
  const std::byte* base[groups];
#pragma GCC unroll 16
  for (int i = 0; i < groups; ++i) base[i] = a + 3 * i * a_row;
  std::int64_t p = g.k;
  do {
    V x[NV];
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) {
      x[v] = Tail && v == NV - 1 ? load_first<V>(b + v * Bytes, tail) : load<V>(b + v * Bytes);
      pin(x[v]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < H; ++i) {
      Real y;
      __builtin_memcpy(&y, base[i / 3] + i % 3 * a_row, sizeof y);
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) sums[i][v] += y * x[v];
    }
#pragma GCC unroll 16
    for (int i = 0; i < groups; ++i) base[i] += a_col;
    b += b_row;
  } while (--p > 0);
  // The same bits as finish() gives: products with 1 are exact.
  const Real alpha = Real(g.alpha.re), beta = Real(g.beta.re);
  if (alpha != 1) {
#pragma GCC unroll 16
    for (int i = 0; i < H; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) sums[i][v] = rounded(alpha * sums[i][v]);
  }
  if (beta != 0) {
    const std::byte* from = c;
#pragma GCC unroll 16
    for (int i = 0; i < H; ++i, from += c_row)
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v)
        sums[i][v] += beta * (Tail && v == NV - 1 ? load_first<V>(from + v * Bytes, tail)
                                                  : load<V>(from + v * Bytes));
  }
#pragma GCC unroll 16
  for (int i = 0; i < H; ++i, c += c_row) {
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) {
      if (Tail && v == NV - 1)
        store_first(c + v * Bytes, sums[i][v], tail);
      else
        store(c + v * Bytes, sums[i][v]);
    }
  }
  return true;
}

constexpr int kTinyWidths = 4;  // 16, 32 … bytes
template <class T>
using Tiny = bool (*)(const GemmArgs&, std::int64_t, std::int64_t, const std::byte*, std::int64_t);
template <class T>
struct TinyTable {
  Tiny<T> of[2 * kTinyWidths][T::kMR];  // [twice the width, and 1 if masked][height - 1]
  unsigned char width[T::kNR + 1];      // the first index by columns
};
template <class T, int Width, bool Tail, int H>
constexpr Tiny<T> tiny_of() {
  constexpr int bytes = 16 << Width;
  if constexpr (bytes <= kVectorBytes)
    return tiny<T, H, 1, bytes, Tail>;
  else if constexpr (bytes == 2 * kVectorBytes)
    return tiny<T, H, 2, kVectorBytes, Tail>;
  else
    return nullptr;
}
template <class T, int... H>
constexpr TinyTable<T> tiny_table(std::integer_sequence<int, H...>) {
  TinyTable<T> table{{{tiny_of<T, 0, false, H + 1>()...},
                      {tiny_of<T, 0, true, H + 1>()...},
                      {tiny_of<T, 1, false, H + 1>()...},
                      {tiny_of<T, 1, true, H + 1>()...},
                      {tiny_of<T, 2, false, H + 1>()...},
                      {tiny_of<T, 2, true, H + 1>()...},
                      {tiny_of<T, 3, false, H + 1>()...},
                      {tiny_of<T, 3, true, H + 1>()...}},
                     {}};
  for (int n = 1; n <= T::kNR; ++n) {
    const int bytes = n * T::kSize;
    const int width = bytes <= 16 ? 0 : bytes <= 32 ? 1 : bytes <= 64 ? 2 : 3;
    table.width[n] = static_cast<unsigned char>(2 * width + (bytes != 16 << width));
  }
  return table;
}
template <class T>
constexpr TinyTable<T> kTiny = tiny_table<T>(std::make_integer_sequence<int, T::kMR>());

/// Kernels by height for n ≤ kNR columns.
template <class T>
MBLAS_INLINE const Tiny<T>* tiny_kernels(std::int64_t n) {
  return kTiny<T>.of[kTiny<T>.width[n]];
}

/// Some microkernels' worth of C. Apart, so that one() has no frame.
template <class T>
[[gnu::noinline]] bool several(const GemmArgs& g, const std::byte* b, std::int64_t b_row) {
  const int m = int(g.m), slices = (m + T::kMR - 1) / T::kMR;
  const int height = slices == 1   ? m
                     : slices == 2 ? m / 2
                     : slices == 3 ? m / 3  // quicker than a division by what may be anything
                                   : m / slices;
  const int taller = m - height * slices;
  for (int j = 0; j < g.n; j += T::kNR) {
    const Tiny<T>* const kernels = tiny_kernels<T>(smaller(g.n - j, T::kNR));
    for (int i = 0, h; i < m; i += h) {
      h = height + (i < taller * (height + 1));
      kernels[h - 1](g, i, j, b, b_row);
    }
  }
  return true;
}

constexpr std::int64_t kMostTiny = 64;  // k

/// The same with B transposed onto the stack first, by vectors as wide as those that will be read
/// where that can be: parts of one in several stores hold up the load.
template <class T>
[[gnu::noinline]] bool several_transposed(const GemmArgs& g) {
  constexpr int size = T::kSize, step = kBlock<size>;
  constexpr std::int64_t pitch = 2 * T::kNR * size;
  alignas(64) std::byte b[kMostTiny * pitch];
  const auto* from = static_cast<const std::byte*>(g.B.data);
  const std::int64_t ld = g.B.ld * size;
  std::int64_t j = 0;
  const auto columns = [&](int wide, int deep, const auto& transpose)
      __attribute__((always_inline)) {
    for (; j + wide <= g.n; j += wide) {
      std::int64_t p = 0;
      for (; p + deep <= g.k; p += deep)
        transpose(from + j * ld + p * size, b + p * pitch + j * size);
      if (p < g.k)
        transpose_block<size>(from + j * ld + p * size, ld, b + p * pitch + j * size, pitch, wide,
                              g.k - p);
    }
  };
  columns(kSquare<size>, step,
          [&](const std::byte* x, std::byte* y) { transpose_tall<size>(x, ld, y, pitch); });
  if constexpr (kVectorBytes == 64) {
    constexpr int half = kVectorBytes / 2, side = kSquare<size, half>;
    columns(side, side, [&](const std::byte* x, std::byte* y) {
      transpose_square<size, half>(x, ld, y, pitch);
    });
  }
  if (j < g.n) transpose_block<size>(from + j * ld, ld, b + j * size, pitch, g.n - j, g.k);
  return several<T>(g, b, pitch);
}

/// By dots or by columns. Apart from one(), which has no stack.
template <class T>
[[gnu::noinline]] bool one_otherwise(const GemmArgs& g, SmallWay way) {
  const bool trans_a = g.transA == Op::Trans || g.transA == Op::ConjTrans;
  const bool trans_b = g.transB == Op::Trans || g.transB == Op::ConjTrans;
  const GemmTile tile{.A = g.A.data,
                      .a_row = trans_a ? 1 : g.A.ld,
                      .a_col = trans_a ? g.A.ld : 1,
                      .B = g.B.data,
                      .b_row = trans_b ? 1 : g.B.ld,
                      .b_col = trans_b ? g.B.ld : 1,
                      .C = g.C.data,
                      .ldc = g.C.ld,
                      .conj_a = false,
                      .conj_b = false,
                      .m = g.m,
                      .n = g.n,
                      .k = g.k,
                      .alpha = g.alpha,
                      .beta = g.beta};
  if (way == SmallWay::Dots)
    small_dots<T>(tile, 1, 0, 0, 0);
  else
    small_columns<T>(tile, 1, 0, 0, 0);
  return true;
}

/// GemmPanels::one.
template <class T>
bool one(const GemmArgs& g) {
  constexpr std::int64_t most_m = 32, most_n = 2 * T::kNR;
  if (g.k > kMostTiny) return false;
  const bool trans_b = g.transB == Op::Trans || g.transB == Op::ConjTrans;
  const auto* b = static_cast<const std::byte*>(g.B.data);
  const std::int64_t b_row = g.B.ld * T::kSize;
  if (!trans_b && g.m <= T::kMR && g.n <= T::kNR)
    return tiny_kernels<T>(g.n)[g.m - 1](g, 0, 0, b, b_row);
  if (g.m > most_m || g.n > most_n) return false;
  const bool trans_a = g.transA == Op::Trans || g.transA == Op::ConjTrans;
  const SmallWay way = small_way(trans_a, trans_b, g.m, g.n, g.k, T::kV, T::kSize);
  if (way != SmallWay::Rows) return one_otherwise<T>(g, way);
  return trans_b ? several_transposed<T>(g) : several<T>(g, b, b_row);
}

template <class T>
constexpr auto one_of() {
  if constexpr (T::kComplex)
    return nullptr;
  else
    return one<T>;
}

template <class T>
constexpr GemmPanels row() {
  return {T::kTag,       T::kMR,          T::kNR,          kWide<T>,      T::kSize,
          (kSteps > 1),  kMemoryOperands, kMostShallow<T>, block_rows<T>, block_panels<T>,
          shallow_of<T>, pack_a<T>,       pack_b<T>,       small<T>,      one_of<T>()};
}

}  // namespace

constinit const GemmPanels gemm_panels[4] = {
    row<Element<DType::f32, float>>(),
    row<Element<DType::f64, double>>(),
    row<Element<DType::cf32, float>>(),
    row<Element<DType::cf64, double>>(),
};

}  // namespace mblas::cpu::MBLAS_ISA
