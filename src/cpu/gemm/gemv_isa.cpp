// Matrix times vector for float and double: limited by reading the matrix once. Rows are taken some
// at a time, so that several streams are under way and the vector is read once for all of them;
// each row's sums are the same whatever rows go with it.
#include <utility>

#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kRows = 8;  // at a time: half of the registers for their sums
#else
constexpr int kRows = 4;
#endif
constexpr int kUnroll = 2;  // vectors of a row at a time

/// Prefetches ahead in a row.
template <bool Far>
MBLAS_INLINE void fetch_ahead(const void* p) {
  if constexpr (Far)
    __builtin_prefetch(static_cast<const std::byte*>(p) + 16 * 64, 0, 2);
  else
    __builtin_prefetch(static_cast<const std::byte*>(p) + 8 * 64);
}

template <class Real, int R, bool Far>
void dot_rows(const GemvPart& g, const Real* M, Real* y) {
  using V = Vector<Real>;
  constexpr int lanes = kLanes<Real>, step = kUnroll * lanes;
  const auto* x = static_cast<const Real*>(g.x);
  V sums[R][kUnroll] = {};
  std::int64_t p = 0;
  for (; p + step <= g.cols; p += step) {
#pragma GCC unroll 2
    for (int u = 0; u < kUnroll; ++u) {
      const V xv = load<V>(x + p + u * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Real* from = M + r * g.ld + p + u * lanes;
        fetch_ahead<Far>(from);
        sums[r][u] += load<V>(from) * xv;
      }
    }
  }
#pragma GCC unroll 2
  for (int u = 0; u < kUnroll; ++u) {
    const std::int64_t left = g.cols - p - u * lanes;
    const int count = left > lanes ? lanes : left > 0 ? int(left) : 0;
    if (count > 0) {
      const V xv = load_first<V>(x + p + u * lanes, count);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sums[r][u] += load_first<V>(M + r * g.ld + p + u * lanes, count) * xv;
    }
  }
  for (int r = 0; r < R; ++r) {
    const V both = sums[r][0] + sums[r][1];
    Real total = 0;
    for (int i = 0; i < lanes; ++i) total += both[i];
    y[r] = total;
  }
}

template <class Real, bool Far>
void dot_all(const GemvPart& g) {
  const auto* M = static_cast<const Real*>(g.M);
  auto* y = static_cast<Real*>(g.y);
  std::int64_t i = 0;
  for (; i + kRows <= g.rows; i += kRows) dot_rows<Real, kRows, Far>(g, M + i * g.ld, y + i);
  if constexpr (kRows > 4)
    for (; i + 4 <= g.rows; i += 4) dot_rows<Real, 4, Far>(g, M + i * g.ld, y + i);
  for (; i < g.rows; ++i) dot_rows<Real, 1, Far>(g, M + i * g.ld, y + i);
}

template <class Real, int R, bool Far>
void add_rows(const GemvPart& g, std::int64_t row, std::int64_t begin, std::int64_t end,
              bool first) {
  using V = Vector<Real>;
  constexpr int lanes = kLanes<Real>;
  const auto* M = static_cast<const Real*>(g.M) + row * g.ld;
  const auto* x = static_cast<const Real*>(g.x) + row;
  auto* y = static_cast<Real*>(g.y);
  std::int64_t j = begin;
  for (; j + lanes <= end; j += lanes) {
    V sum = first ? V{} : load<V>(y + j);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Real* from = M + r * g.ld + j;
      fetch_ahead<Far>(from);
      sum += x[r] * load<V>(from);
    }
    store(y + j, sum);
  }
  if (const int count = int(end - j); count > 0) {
    V sum = first ? V{} : load_first<V>(y + j, count);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum += x[r] * load_first<V>(M + r * g.ld + j, count);
    store_first(y + j, sum, count);
  }
}

template <class Real, bool Far>
void add_all(const GemvPart& g) {
  // The results of one pass stay in the first-level cache.
  constexpr std::int64_t pass = (16 << 10) / sizeof(Real);
  for (std::int64_t begin = 0; begin < g.cols; begin += pass) {
    const std::int64_t end = smaller(begin + pass, g.cols);
    std::int64_t p = 0;
    for (; p + 8 <= g.rows; p += 8) add_rows<Real, 8, Far>(g, p, begin, end, p == 0);
    for (; p < g.rows; ++p) add_rows<Real, 1, Far>(g, p, begin, end, p == 0);
  }
}

template <class Real>
void dot(const GemvPart& g) {
  g.far ? dot_all<Real, true>(g) : dot_all<Real, false>(g);
}
template <class Real>
void add(const GemvPart& g) {
  g.far ? add_all<Real, true>(g) : add_all<Real, false>(g);
}

}  // namespace

constinit const GemvKernels gemv_kernels[2] = {{dot<float>, add<float>},
                                               {dot<double>, add<double>}};

}  // namespace mblas::cpu::MBLAS_ISA
