// A few vectors times a matrix, as thin_isa.cpp has it, by instructions that multiply the elements
// of four bytes and add the products up: half the instructions of products of widened elements, so
// that eight vectors are limited by reading the matrix. Across rows, those that are multiplied
// together are interleaved element by element in registers.
//
// thin_vnni.cpp and thin_bf16.cpp say how, as a T, which adds to what thin_lines.hpp has: Sum (of
// the accumulator's type), Sums (a register of them) and Start (what sums begin with).
#pragma once

#include <utility>

#include "cpu/gemm/thin_lines.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

constexpr int kLanesOfSums = 16;
constexpr std::int64_t kMostRows = 64;

/// Vectors whose sums of that many columns fit the registers.
template <class T>
constexpr int kMostWhole = 20 / kDepth<T>;

/// Rows whose products are added up before the sums are stored: as many streams as the processor's
/// own fetches follow, while reading takes the time. On a Zen 5, 4096 by 4096 elements in the third
/// level, ms by these and by 32 rows (16 of two vectors): bytes 2 vectors 0.31 and 0.38, 4 0.49 and
/// 0.73, 8 0.87 and 0.95; bfloat16 2 0.92 and 1.05, 4 1.18 and 1.45, 8 1.32 and 1.40.
template <class T>
std::int64_t rows_at_once(int vectors, bool far) {
  if (vectors == 1 || (far && vectors == 2)) return 8;
  if (!far && follows_few_rows()) return vectors <= kDepth<T> ? 8 : vectors <= 6 ? 16 : kMostRows;
  return vectors == 2 ? 16 : far && kDepth<T> == 4 ? kMostRows : 32;
}

/// Adds the products of a register of Q rows with R vectors from x on.
template <class T, int Q, int R>
MBLAS_INLINE void multiply(typename T::Sums (&sums)[Q][R], const __m512i (&m)[Q],
                           const typename T::Element* x, std::int64_t x_ld) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    __m512i xs = _mm512_loadu_si512(x + r * x_ld);
    if (Q > 1) pin(xs);
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) sums[q][r] = T::add(sums[q][r], m[q], xs);
  }
}

/// Q rows from M on times R vectors from x on: sums at y, to which `start` is added.
template <class T, int R, int Q, bool Far>
MBLAS_INLINE void dot_rows(const ThinPart& g, const typename T::Element* M,
                           const typename T::Element* x, const typename T::Start* start,
                           typename T::Sum* y, typename T::Watch& watch) {
  const auto after =
      ahead<Far>(g.cols * sizeof(typename T::Element),
                 Q * g.ld * std::int64_t(sizeof(typename T::Element)), lines_ahead<Q>(g));
  typename T::Sums sums[Q][R] = {};
  typename T::Watch seen = watch;
  std::int64_t p = 0;
  for (; p + kWidth<T> <= g.cols; p += kWidth<T>) {
    const std::int64_t further = after(p * std::int64_t(sizeof(typename T::Element)));
    __m512i m[Q];
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      fetch<Far>(M + q * g.ld + p, further);
      m[q] = T::all(M + q * g.ld + p);
      seen.note(m[q]);
    }
    multiply<T>(sums, m, x + p, g.x_ld);
  }
  // Else GCC 12 has the sums in memory too, and writes them there in each round.
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) asm("" : "+v"(sums[q][r]));
  if (p < g.cols) {
    __m512i m[Q];
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      m[q] = T::first(M + q * g.ld + p, int(g.cols - p));
      seen.note(m[q]);
    }
    multiply<T>(sums, m, x + p, g.x_ld);
  }
  using Lanes = Vector<typename T::Sum>;
  Lanes all[R * Q];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) all[r * Q + q] = __builtin_bit_cast(Lanes, sums[q][r]);
  typename T::Sum totals[round_up(R * Q, kLanesOfSums)];
  add_lanes_of<R * Q>(all, totals);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      const auto sum = T::total(totals[r * Q + q], start[r]);
      auto& total = y[r * g.y_ld + q];
      total = g.adds ? total + sum : sum;
    }
  watch = seen;
}

/// All rows times R vectors.
template <class T, int R, bool Far>
void dot_all(const ThinPart& g, std::int64_t first) {
  constexpr int Q = kWith<R>;
  const auto* const M = static_cast<const typename T::Element*>(g.M);
  const auto* const x = static_cast<const typename T::Element*>(g.x) + first * g.x_ld;
  auto* const y = static_cast<typename T::Sum*>(g.y) + first * g.y_ld;
  typename T::Start start[R];
  for (int r = 0; r < R; ++r) start[r] = T::start(x + r * g.x_ld, g.cols, kDepth<T>);
  const std::int64_t part = T::kLimited ? kThinPart : g.rows;
  for (std::int64_t i = 0; i < g.rows;) {
    const std::int64_t end = smaller(i + part, g.rows);
    typename T::Watch watch;
    bool* const beyond = T::kLimited ? g.beyond + i / kThinPart : nullptr;
    for (; i + Q <= end; i += Q) dot_rows<T, R, Q, Far>(g, M + i * g.ld, x, start, y + i, watch);
    for (; i < end; ++i) dot_rows<T, R, 1, Far>(g, M + i * g.ld, x, start, y + i, watch);
    if (watch.beyond(g.limits)) *beyond = true;
  }
}

/// Where a block of rows is among all of them.
struct Turn {
  bool first, last;
  std::int64_t all_rows;
};

MBLAS_INLINE __mmask16 some_lanes(int count) {
  return first_lanes(int(smaller(larger(count, 0), kLanesOfSums)));
}

/// Interleaved rows of as many columns as are taken at a time.
template <class T>
using Strip = __m512i[kMostRows / kDepth<T>][kDepth<T>];

/// Adds some rows, times elements of R vectors, to the sums of columns, all of which there are if
/// kAll, else `count`. The rows are from M on or, where that is null, in `strip`, where they are
/// left if kLeaves. The sums are in the order that interleave() gives until those of the last rows
/// are added.
template <class T, int R, bool Far, bool kAll, bool kLeaves>
MBLAS_INLINE void add_columns(const ThinPart& g, const typename T::Element* M, Strip<T>& strip,
                              const typename T::Element* x, const typename T::Start* start,
                              typename T::Sum* y, bool* beyond, const Turn& turn, int count,
                              std::int64_t further) {
  constexpr int D = kDepth<T>;
  const std::int64_t y_ld = g.y_ld;
  typename T::Sums sums[R][D];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < D; ++i)
      sums[r][i] = turn.first ? T::begin(start[r]) : T::load(y + r * y_ld + i * kLanesOfSums);
  typename T::Watch watch;
  const auto add = [&](std::int64_t p, std::int64_t rows) __attribute__((always_inline)) {
    __m512i m[D];
    if (M != nullptr) {
#pragma GCC unroll 4
      for (int d = 0; d < D; ++d) {
        // Past the last row x has zeros.
        const auto* const row = M + (p + (d < rows ? d : 0)) * g.ld;
        // More rows than the first-level cache has ways would drive each other out of it.
        fetch<Far, Far || (R > 2)>(row, further);
        m[d] = kAll ? T::all(row) : T::first(row, count);
        watch.note(m[d]);
      }
      T::interleave(m);
    }
#pragma GCC unroll 4
    for (int d = 0; d < D; ++d) {
      if (M == nullptr)
        m[d] = strip[p / D][d];
      else if (kLeaves)
        strip[p / D][d] = m[d];
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      int four;
      __builtin_memcpy(&four, x + (p / D * g.vectors + r) * D, sizeof four);
      const __m512i xs = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int i = 0; i < D; ++i) sums[r][i] = T::add(sums[r][i], m[i], xs);
    }
  };
  std::int64_t p = 0;
  for (; p + D <= g.rows; p += D) add(p, D);
  if (p < g.rows) add(p, g.rows - p);
  if (M != nullptr && watch.beyond(g.limits)) *beyond = true;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    if (turn.last) T::order(sums[r]);
#pragma GCC unroll 4
    for (int i = 0; i < D; ++i) {
      auto* const to = y + r * y_ld + i * kLanesOfSums;
      kAll || !turn.last ? T::store(to, sums[r][i])
                         : T::store(to, sums[r][i], some_lanes(count - i * kLanesOfSums));
    }
  }
}

/// A block of rows, times R vectors.
template <class T, int R, bool Far>
void add_all(const ThinPart& g, std::int64_t first, const Turn& turn) {
  constexpr std::int64_t kSize = sizeof(typename T::Element);
  const auto* const M = static_cast<const typename T::Element*>(g.M);
  const auto* const x = static_cast<const typename T::Element*>(g.x) + first * kDepth<T>;
  auto* const y = static_cast<typename T::Sum*>(g.y) + first * g.y_ld;
  const auto after = ahead<Far>(g.cols * kSize, rows_at_once<T>(g.vectors, Far) * g.ld * kSize);
  typename T::Start start[R];
  for (int r = 0; r < R && turn.first; ++r)
    start[r] = T::start(x + r * kDepth<T>, turn.all_rows, g.vectors * kDepth<T>);
  Strip<T> strip;
  const auto columns = [&]<bool kAll>(std::int64_t j) __attribute__((always_inline)) {
    const int count = kAll ? kWidth<T> : int(g.cols - j);
    const std::int64_t further = after(j * kSize);
    bool* const beyond = T::kLimited ? g.beyond + j / kThinPart : nullptr;
    if constexpr (R <= kMostWhole<T>) {
      add_columns<T, R, Far, kAll, false>(g, M + j, strip, x, start, y + j, beyond, turn, count,
                                          further);
    } else {  // rows whose distance is a power of two are not in the first-level cache any more
      constexpr int kHalf = R / 2;
      add_columns<T, kHalf, Far, kAll, true>(g, M + j, strip, x, start, y + j, beyond, turn, count,
                                             further);
      add_columns<T, R - kHalf, Far, kAll, false>(g, nullptr, strip, x + kHalf * kDepth<T>,
                                                  start + kHalf, y + kHalf * g.y_ld + j, beyond,
                                                  turn, count, further);
    }
  };
  std::int64_t j = 0;
  for (; j + kWidth<T> <= g.cols; j += kWidth<T>) columns.template operator()<true>(j);
  if (j < g.cols) columns.template operator()<false>(j);
}

template <class T>
struct Table {
  void (*dot[2][kMostAtOnce])(const ThinPart&, std::int64_t);  // [far][vectors - 1]
  void (*add[2][kMostAtOnce])(const ThinPart&, std::int64_t, const Turn&);
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
  for_dot_groups<typename T::Element, typename T::Element, typename T::Sum>(
      whole,
      [](const ThinPart& g, int first, int count) { kTable<T>.dot[g.far][count - 1](g, first); });
}

template <class T>
void add(const ThinPart& whole) {
  for_add_groups<typename T::Element, typename T::Element, typename T::Sum>(
      whole, rows_at_once<T>(whole.vectors, whole.far),
      [&](const ThinPart& g, int first, int count, std::int64_t p) {
        const Turn turn{p == 0, p + g.rows == whole.rows, whole.rows};
        kTable<T>.add[g.far][count - 1](g, first, turn);
      });
}

template <class T>
DotRange pack(const ThinVectors& v) {
  using Element = typename T::Element;
  constexpr std::int64_t kTogether = kDepth<T>, kUnit = kTogether * sizeof(Element);
  const std::int64_t k = round_up(v.k, kWidth<T>), whole = v.k / kTogether * kTogether;
  DotRange range;
  for (std::int64_t r = 0; r < v.vectors; ++r) {
    const auto* const x = static_cast<const Element*>(v.from) + r * v.vector;
    auto* const to = static_cast<Element*>(v.to) + r * (v.for_dot ? k : kTogether);
    const std::int64_t step = v.for_dot ? kTogether : v.vectors * kTogether;  // between units
    if (v.depth == 1 && v.for_dot)
      __builtin_memcpy(to, x, std::size_t(whole) * sizeof(Element));
    else
#pragma GCC unroll 4
      for (std::int64_t p = 0; p < whole; p += kTogether) {
        auto* const unit = to + p / kTogether * step;
        if (v.depth == 1)
          __builtin_memcpy(unit, x + p, kUnit);
        else
          for (int i = 0; i < kTogether; ++i) unit[i] = x[(p + i) * v.depth];
      }
    for (std::int64_t p = whole; p < k; ++p)
      to[p / kTogether * step + p % kTogether] = p < v.k ? x[p * v.depth] : Element(0);
    for (std::int64_t p = 0; p < v.k; ++p) T::note(range, x[p * v.depth]);
  }
  return range;
}

template <class T>
constexpr ThinKernels row(DType in) {
  return {in, kWidth<T>, sizeof(typename T::Element), pack<T>, dot<T>, add<T>, T::kLimited};
}

}  // namespace
}  // namespace mblas::cpu::MBLAS_ISA
