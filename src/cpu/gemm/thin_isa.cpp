// A few vectors times a matrix whose elements are used once for each: limited by reading the matrix
// once, and from some four vectors of 16-bit elements on by the multiply-adds. The matrix is read
// where it lies and converted in registers; the vectors, which pass by again and again, are packed
// in the type that is computed in.
//
// Along the rows of the matrix (dot) and across them (add) a block of sums stays in registers:
// every vector by several rows, or by several vectors of columns. Fewer loads than multiply-adds
// are needed so, and several streams are under way. Sums of columns go to memory between blocks of
// rows, few enough for the TLB. An element's sum is the same whatever rows and columns go with it,
// and vectors but for how many they are.
#include <utility>

#include "cpu/gemm/few_rows.hpp"
#include "cpu/gemm/thin_parts.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

/// Vectors of columns at a time: more than four of several vectors' sums were slower to store.
template <int R>
constexpr int kColumns = R <= 2 ? kWith<R> : int(smaller(4, kWith<R>));

/// Are a few vectors multiplied as few_rows.hpp does it?
template <class T>
constexpr bool kFew = std::is_same_v<typename T::Element, typename T::Sum>;

/// Rows whose columns are added up before the sums are stored: as many streams of wide elements as
/// the processor's own fetches follow, while reading and not multiplying takes the time. Where the
/// second level is fetched into they may be more (6 and 8 rows of float 12 and 5 % on a Zen 4), on
/// a Zen 5 16 are better than 32 for more than six vectors of wide elements (8 of double 8 %, of
/// float 5 %) and up to six of others (4 of half 15 %). `few`: what the caches hold needs no
/// streams (4 and 5 rows of float and double 300×300 to 2000×2000 on a Zen 4 by AVX2 1.1 to 1.3
/// times as fast with 64 rows as with 8, from memory 0.7 times; by 32 registers from the second
/// level 256 rather than 64 1.0 to 1.05). A Zen 3 takes 8×4096×4096 of float and double 0.8 of the
/// time with 12 rows, up to three vectors of double 0.83 to 0.93 with 6.
template <class T>
MBLAS_INLINE std::int64_t rows_at_once(int vectors, bool far, bool few) {
  constexpr bool wide = sizeof(typename T::Element) == sizeof(typename T::Sum);
  if (kVectorRegisters == 16 && wide && far && follows_rows_far()) {
    if (vectors > 5) return 12;
    if (vectors <= 3 && sizeof(typename T::Element) == 8) return 6;
  }
  if (few && kVectorRegisters == 32) return 256;
  if (few && vectors <= 5) return 64;
  if (vectors <= (wide ? 5 : 2)) return 8;
  if (far && vectors <= kMostAtOnce && sizeof(typename T::Element) == 4) return 64;
  return !far && follows_few_rows() && (vectors > 6) == wide ? 16 : 32;
}

/// Lines ahead of a matrix from memory; 0: as others have it. On a Zen 3, one and two vectors times
/// 4096×4096 of float and double take 0.73 to 0.85 of the time with 8 of wide elements as with 32,
/// more of them 0.85 to 1.05, likewise along rows; narrow ones with 16 rather than 32 0.9 to 1.0.
template <class T, bool Far>
MBLAS_INLINE std::int64_t close_lines() {
  constexpr int narrow = sizeof(typename T::Sum) / sizeof(typename T::Element);
  return kVectorRegisters == 16 && Far && follows_rows_far() ? 8 * narrow : 0;
}

/// Is what is multiplied several times loaded once? On a Zen 4 3 rows of 512×512 are 1.27 times as
/// fast so, of float 2048×2048 1.17; 2 and 3 rows of double from memory take 1.1 to 1.2 times as
/// long. What is converted is in registers anyway.
template <class T, int R>
constexpr bool kPins = sizeof(typename T::Element) == 4 ||
                       (sizeof(typename T::Element) == 8 && R > 3);

/// Elements as stored, as they are multiplied (Operand, and X in packed vectors) and as they are
/// added up (Sum). A row's elements are taken kStep at a time, columns kDepth rows at a time.
template <DType Tag, class ElementT, class RealT>
struct Floats {
  static constexpr DType kTag = Tag;
  using Element = ElementT;
  using X = RealT;
  using Sum = RealT;
  using Sums = Vector<Sum>;
  using Operand = Sums;
  static constexpr int kStep = kLanes<Sum>, kDepth = 1;

  static MBLAS_INLINE Operand row(const Element* p) {
    if constexpr (sizeof(Element) == sizeof(Sum))
      return load<Operand>(p);
    else
      return widened(p);
  }
  /// The first `count`, and zeros.
  static MBLAS_INLINE Operand row_first(const Element* p, int count) {
    if constexpr (sizeof(Element) == sizeof(Sum)) {
      return load_first<Operand>(p, count);
    } else {
      Element some[kStep] = {};
      __builtin_memcpy(some, p, std::size_t(count) * sizeof(Element));
      return row(some);
    }
  }
  static MBLAS_INLINE Operand columns(const Element* p, const Element*) { return row(p); }
  static MBLAS_INLINE Operand columns_first(const Element* p, const Element*, int count) {
    return row_first(p, count);
  }
  static MBLAS_INLINE X everywhere(const X* x) { return *x; }
  template <class Y>
  static MBLAS_INLINE void add(Sums& sums, const Operand& m, const Y& x) {
    sums += x * m;
  }
};

#if defined(__AVX2__)
/// Neighbours in a row, or of two rows, in pairs.
struct Int8 {
  static constexpr DType kTag = DType::i8;
  using Element = std::int8_t;
  using X = std::int16_t;
  using Sum = std::uint32_t;
  using Sums = Vector<Sum>;
  using Operand = Sums;
  static constexpr int kStep = 2 * kLanes<Sum>, kDepth = 2;

  static MBLAS_INLINE Operand row(const Element* p) { return pairs_along(p); }
  static MBLAS_INLINE Operand row_first(const Element* p, int count) {
    Element some[kStep] = {};
    __builtin_memcpy(some, p, std::size_t(count));
    return row(some);
  }
  static MBLAS_INLINE Operand columns(const Element* p, const Element* next) {
    return pairs_across(p, next);
  }
  static MBLAS_INLINE Operand columns_first(const Element* p, const Element* next, int count) {
    Element some[2][kLanes<Sum>] = {};
    __builtin_memcpy(some[0], p, std::size_t(count));
    __builtin_memcpy(some[1], next, std::size_t(count));
    return columns(some[0], some[1]);
  }
  static MBLAS_INLINE Operand everywhere(const X* x) {
    Sum both;
    __builtin_memcpy(&both, x, sizeof both);
    return Operand{} + both;
  }
  static MBLAS_INLINE void add(Sums& sums, const Operand& m, const Operand& x) {
    sums += multiply_pairs(m, x);
  }
};
#else
using Int8 = Floats<DType::i8, std::int8_t, std::uint32_t>;
#endif

/// Q rows from M on times R vectors from x on: sums at y. `lines`: of close_lines().
template <class T, int R, int Q, bool Far, bool Fetches>
MBLAS_INLINE void dot_rows(const ThinPart& g, const typename T::Element* M, const typename T::X* x,
                           typename T::Sum* y, std::int64_t lines) {
  using Sums = typename T::Sums;
  using Operand = typename T::Operand;
  constexpr int size = sizeof(typename T::Element), step = T::kStep;
  constexpr int sets = R == 1 ? 2 : 1, unroll = int(larger(sets, kLine / (step * size)));
  const auto after =
      ahead<Far>(g.cols * size, Q * g.ld * size, lines > 0 ? lines : lines_ahead<Q>(g));
  Sums sums[sets][Q][R] = {};
  std::int64_t p = 0;
  for (; p + unroll * step <= g.cols; p += unroll * step) {
    const std::int64_t further = after(p * size);
#pragma GCC unroll 4
    for (int u = 0; u < unroll; ++u) {
      Operand m[Q];
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q) {
        const auto* const from = M + q * g.ld + p + u * step;
        if (Fetches && u * step * size % kLine == 0) fetch<Far>(from, further);
        m[q] = T::row(from);
        if (R > 1 && kPins<T, R>) pin(m[q]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        Operand xs = load<Operand>(x + r * g.x_ld + p + u * step);
        if (Q > 1 && kPins<T, R>) pin(xs);
#pragma GCC unroll 8
        for (int q = 0; q < Q; ++q) T::add(sums[u % sets][q][r], m[q], xs);
      }
    }
  }
#pragma GCC unroll 4
  for (int u = 0; u < unroll; ++u, p += step) {
    const int count = int(smaller(step, g.cols - p));
    if (count <= 0) break;
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      const Operand m = T::row_first(M + q * g.ld + p, count);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        T::add(sums[u % sets][q][r], m, load<Operand>(x + r * g.x_ld + p));
    }
  }
  const auto sum_of = [&](int q, int r) __attribute__((always_inline)) {
    Sums sum = sums[0][q][r];
    if constexpr (sets == 2) sum += sums[1][q][r];
    // Or GCC 12, which sees parts of it taken, leaves all sums in memory during the loop.
    if (kVectorRegisters == 16) pin(sum);
    return sum;
  };
  // Likewise some of as many as the registers hold, where they are added up together.
  if constexpr (kVectorRegisters == 32 || R * Q < 12) {
    Sums all[R * Q];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q) all[r * Q + q] = sum_of(q, r);
    typename T::Sum totals[round_up(R * Q, kLanes<typename T::Sum>)];
    add_lanes_of<R * Q>(all, totals);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      auto* const to = y + r * g.y_ld;
      if (g.adds)
#pragma GCC unroll 8
        for (int q = 0; q < Q; ++q) to[q] += totals[r * Q + q];
      else
        __builtin_memcpy(to, totals + r * Q, Q * sizeof *to);
    }
  } else {
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q)
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Sums sum = sum_of(q, r);
        auto& total = y[r * g.y_ld + q];
        total = g.adds ? total + add_lanes(sum) : add_lanes(sum);
      }
  }
}

/// Rows at a time. Of a single vector's sums the registers leave room for more, which are more
/// streams from memory (float and double 4096×1×4096 on a Zen 4 1.08 times as fast with six rows as
/// with four, 1.2 times with four as with two).
template <class T, int R>
constexpr int kTogether = kVectorRegisters == 16 && R == 1 && sizeof(typename T::Element) >= 4
                              ? 6
                              : kWith<R>;

/// Two and three vectors of float are faster without fetches on a Zen 5, as loads take as long as
/// multiply-adds: from the second level and from memory (400 and 3000 columns and rows 1.03
/// to 1.1), from the third level at 0.97 to 1.02. One vector (0.94 to 1.2), four (0.9 from memory)
/// and double (0.94 to 1.04) are left as they are.
template <class T, int R>
constexpr bool kLeavesFetches = kVectorRegisters == 32 && T::kTag == DType::f32 &&
                                (R == 2 || R == 3);

/// All rows times R vectors.
template <class T, int R, bool Far>
void dot_all(const ThinPart& g, std::int64_t first) {
  constexpr int Q = kTogether<T, R>;
  const auto* M = static_cast<const typename T::Element*>(g.M);
  const auto* const x = static_cast<const typename T::X*>(g.x) + first * g.x_ld;
  auto* y = static_cast<typename T::Sum*>(g.y) + first * g.y_ld;
  const std::int64_t lines = close_lines<T, Far>();
  const auto multiply = [&]<bool Fetches>() __attribute__((always_inline)) {
    std::int64_t i = 0;
    for (; i + Q <= g.rows; i += Q)
      dot_rows<T, R, Q, Far, Fetches>(g, M + i * g.ld, x, y + i, lines);
    for (; i < g.rows; ++i) dot_rows<T, R, 1, Far, Fetches>(g, M + i * g.ld, x, y + i, lines);
  };
  if constexpr (kLeavesFetches<T, R> && !Far)
    if (follows_few_rows()) return multiply.template operator()<false>();
  multiply.template operator()<true>();
}

/// Adds some rows, times elements of R vectors, to the sums of N vectors of columns; of `count`
/// columns where N is 0.
template <class T, int R, int N, bool Far>
MBLAS_INLINE void add_columns(const ThinPart& g, const typename T::Element* M,
                              const typename T::X* x, typename T::Sum* y, bool start, int count,
                              std::int64_t further) {
  using Sums = typename T::Sums;
  using Operand = typename T::Operand;
  constexpr int lanes = kLanes<typename T::Sum>, n = N == 0 ? 1 : N;
  constexpr int bytes = lanes * int(sizeof(typename T::Element));
  Sums sums[R][n];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < n; ++v) {
      const auto* const from = y + r * g.y_ld + v * lanes;
      sums[r][v] = start ? Sums{} : N == 0 ? load_first<Sums>(from, count) : load<Sums>(from);
    }
  for (std::int64_t p = 0; p < g.rows; p += T::kDepth, x += g.x_depth * T::kDepth) {
    const auto* const from = M + p * g.ld;
    // Past the last row x has a zero.
    const auto* const next = T::kDepth == 2 && p + 1 < g.rows ? from + g.ld : from;
    Operand m[n];
#pragma GCC unroll 8
    for (int v = 0; v < n; ++v) {
      if (v * bytes % kLine == 0) {
        fetch<Far>(from + v * lanes, further);
        if constexpr (T::kDepth == 2) fetch<Far>(next + v * lanes, further);
      }
      m[v] = N == 0 ? T::columns_first(from, next, count)
                    : T::columns(from + v * lanes, next + v * lanes);
      if (R > 1 && kPins<T, R>) pin(m[v]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto xs = T::everywhere(x + r * (g.x_ld * T::kDepth));
#pragma GCC unroll 8
      for (int v = 0; v < n; ++v) T::add(sums[r][v], m[v], xs);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < n; ++v) {
      auto* const to = y + r * g.y_ld + v * lanes;
      if (N == 0)
        store_first(to, sums[r][v], count);
      else
        store(to, sums[r][v]);
    }
}

/// A block of rows, times R vectors. `start`: it is the first one.
template <class T, int R, bool Far>
void add_all(const ThinPart& g, std::int64_t first, bool start) {
  constexpr int N = kColumns<R>, lanes = kLanes<typename T::Sum>;
  const auto* const M = static_cast<const typename T::Element*>(g.M);
  const auto* const x = static_cast<const typename T::X*>(g.x) + first * (g.x_ld * T::kDepth);
  auto* const y = static_cast<typename T::Sum*>(g.y) + first * g.y_ld;
  constexpr int size = sizeof(typename T::Element);
  if constexpr (kFew<T> && R <= kFewVectors && !Far) {
    if (g.few && g.vectors == R) {
      const auto after = ahead<Far>(g.cols * size, kFewSteps<R> * g.ld * size);
      return multiply_few<typename T::Sum, R>(
          M, g.ld, x, g.x_ld, g.x_depth, y, g.y_ld, g.cols, g.rows, start,
          [&](std::int64_t j, const typename T::Element* from)
              __attribute__((always_inline)) { fetch<Far>(from, after(j * size)); });
    }
  }
  const auto after = ahead<Far>(g.cols * size, rows_at_once<T>(g.vectors, Far, g.few) * g.ld * size,
                                close_lines<T, Far>());
  std::int64_t j = 0;
  for (; j + N * lanes <= g.cols; j += N * lanes)
    add_columns<T, R, N, Far>(g, M + j, x, y + j, start, 0, after(j * size));
  if constexpr (N > 2)
    for (; j + 2 * lanes <= g.cols; j += 2 * lanes)
      add_columns<T, R, 2, Far>(g, M + j, x, y + j, start, 0, after(j * size));
  for (; j < g.cols; j += lanes)
    add_columns<T, R, 0, Far>(g, M + j, x, y + j, start, int(smaller(lanes, g.cols - j)),
                              after(j * size));
}

template <class T>
struct Table {
  void (*dot[2][kMostAtOnce])(const ThinPart&, std::int64_t);  // [far][vectors - 1]
  void (*add[2][kMostAtOnce])(const ThinPart&, std::int64_t, bool);
};
template <class T, int... R>
constexpr Table<T> table(std::integer_sequence<int, R...>) {
  return {{{dot_all<T, R + 1, false>...}, {dot_all<T, R + 1, true>...}},
          {{add_all<T, R + 1, false>...}, {add_all<T, R + 1, true>...}}};
}
template <class T>
constexpr Table<T> kTable = table<T>(std::make_integer_sequence<int, kMostAtOnce>());

template <class T>
void dot(const ThinPart& whole) {
  for_dot_groups<typename T::Element, typename T::X, typename T::Sum>(
      whole,
      [](const ThinPart& g, int first, int count) { kTable<T>.dot[g.far][count - 1](g, first); });
}

template <class T>
void add(const ThinPart& whole) {
  for_add_groups<typename T::Element, typename T::X, typename T::Sum>(
      whole, rows_at_once<T>(whole.vectors, whole.far, whole.few),
      [](const ThinPart& g, int first, int count, std::int64_t p) {
        kTable<T>.add[g.far][count - 1](g, first, p == 0);
      });
}

template <class T>
DotRange pack(const ThinVectors& v) {
  const auto* const from = static_cast<const typename T::Element*>(v.from);
  auto* const to = static_cast<typename T::X*>(v.to);
  using X = typename T::X;
  const std::int64_t k = round_up(v.k, T::kStep), depth = T::kDepth;
  // Vector after vector: a loop over a few of them takes several times as long.
  for (std::int64_t r = 0; r < v.vectors; ++r) {
    const auto* const x = from + r * v.vector;
    if (v.for_dot) {
      X* const row = to + r * k;
      if (std::is_same_v<typename T::Element, X> && v.depth == 1)
        __builtin_memcpy(row, x, std::size_t(v.k) * sizeof(X));
      else
        for (std::int64_t p = 0; p < v.k; ++p) row[p] = X(widen(x[p * v.depth]));
      for (std::int64_t p = v.k; p < k; ++p) row[p] = X(0);
    } else {
      // Unrolled below: else bfloat16 4×256×256 takes 2 to 3.5 times as long by GCC 12.
      const auto at = [&](std::int64_t p) __attribute__((always_inline)) {
        return to + (p / depth * v.vectors + r) * depth + p % depth;
      };
#pragma GCC unroll 8
      for (std::int64_t p = 0; p < v.k; ++p) *at(p) = X(widen(x[p * v.depth]));
      for (std::int64_t p = v.k; p < k; ++p) *at(p) = X(0);
    }
  }
  return {};
}

// Vectors whose sums go along the rows by 16 registers. A Zen 4 by AVX2, ms by `thin` and by
// `packed`: float 8×4096×4096 NT 7.5 and 11.0, 16 15.2 and 15.7, 24 18.9 and 18.0; 4096×8×4096 8.0
// and 8.3, 1000×8×1000 0.29 and 0.22, 4096×16×4096 13.9 and 9.3; double 8×4096×4096 NT 15.6 and
// 19.4, 12 23.4 and 22.1, 4096×8×4096 15.6 and 12.9.
template <class Real>
constexpr int kMostRowsAlong = sizeof(Real) == 4 ? 16 : 8;
constexpr int kMostColumnsAlong = 6;

// Bytes of a matrix that the third level may hold: times one vector it is read 1.1 to 1.2 times as
// fast on a Zen 4 if it is fetched to the first level (float and double 1000×1×1000, 1×600×1000).
constexpr std::int64_t kNear = 16 << 20;
// Likewise of ThinPart::few: up to three rows of float and double 300×300 to 1400×1400 are 1.05 to
// 1.2 times as fast, of 2000×2000 of float 0.9 times, of 4096×4096 0.8 times.
constexpr std::int64_t kFewBytes = 8 << 20;
// By 32 registers, for any number of vectors: what a second level of 1 MB holds beside the rest.
constexpr std::int64_t kFewBytesOf32 = 640 << 10;

template <class T>
constexpr ThinKernels row() {
  ThinKernels kernels = {T::kTag, T::kStep, int(sizeof(typename T::X)), pack<T>, dot<T>, add<T>};
  if (kVectorRegisters == 16 && kFew<T>) {
    kernels.most_along[0] = kMostRowsAlong<typename T::Sum>;
    kernels.most_along[1] = kMostColumnsAlong;
    kernels.near = kNear;
    kernels.few[0] = kFewBytes;
    kernels.few[1] = kNear;
  }
  if (kVectorRegisters == 32 && kFew<T>) kernels.few[0] = kernels.few[1] = kFewBytesOf32;
  return kernels;
}

using enum DType;

}  // namespace

constinit const ThinKernels thin_kernels[5] = {
    row<Floats<f32, float, float>>(),
    row<Floats<f64, double, double>>(),
    row<Floats<f16, half, float>>(),
    row<Floats<bf16, bfloat16, float>>(),
    row<Int8>(),
};

}  // namespace mblas::cpu::MBLAS_ISA
