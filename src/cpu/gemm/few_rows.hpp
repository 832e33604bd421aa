// One, two or three rows times a matrix that is read along its rows, some of these at a time. What
// they are multiplied by is in registers and the sums, which pass by, are in the first-level cache:
// the matrix is read as a few streams, and there are as many independent sums as columns. Limited
// by the way from the second-level cache to the first (one row), or by the multiply-adds (three).
#pragma once

#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

/// Rows of the matrix at a time: R for each of them, R sums and a vector of the matrix are in 16
/// registers.
template <int R>
constexpr int kFewSteps = int(smaller(8, 12 / R));

/// y (R rows, y_ld elements apart, with room for whole vectors) = or, unless `start`, += x M for K
/// rows of M and `cols` columns; element p of row r of x lies at x[r * x_row + p * x_col].
/// fetch(j, from) is called where column j of a row is the first of 64 bytes.
template <class Real, int R, int K, class Fetch>
MBLAS_INLINE void add_few(const Real* M, std::int64_t ld, const Real* x, std::int64_t x_row,
                          std::int64_t x_col, Real* y, std::int64_t y_ld, std::int64_t cols,
                          bool start, const Fetch& fetch) {
  using V = Vector<Real>;
  constexpr int lanes = kLanes<Real>;
  V xs[R][K];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int p = 0; p < K; ++p) {
      xs[r][p] = V{} + x[r * x_row + p * x_col];
      pin(xs[r][p]);
    }
  const auto add = [&](std::int64_t j, int count, bool fetches) __attribute__((always_inline)) {
    V sums[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sums[r] = start ? V{} : load<V>(y + r * y_ld + j);
#pragma GCC unroll 8
    for (int p = 0; p < K; ++p) {
      const Real* const from = M + p * ld + j;
      if (fetches) fetch(j, from);
      V m = count < lanes ? load_first<V>(from, count) : load<V>(from);
      if (R > 1) pin(m);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sums[r] += xs[r][p] * m;
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) store(y + r * y_ld + j, sums[r]);
  };
  std::int64_t j = 0;
  constexpr int line = int(larger(64 / kVectorBytes, 1));
  for (; j + line * lanes <= cols; j += line * lanes)
#pragma GCC unroll 4
    for (int v = 0; v < line; ++v) add(j + v * lanes, lanes, v == 0);
  for (; j < cols; j += lanes) {
    if (j + lanes <= cols)
      add(j, lanes, true);
    else
      add(j, int(cols - j), true);
  }
}

/// The same for k rows of M.
template <class Real, int R, class Fetch>
MBLAS_INLINE void multiply_few(const Real* M, std::int64_t ld, const Real* x, std::int64_t x_row,
                               std::int64_t x_col, Real* y, std::int64_t y_ld, std::int64_t cols,
                               std::int64_t k, bool start, const Fetch& fetch) {
  constexpr int steps = kFewSteps<R>;
  std::int64_t p = 0;
  const auto go = [&]<int K>(std::integral_constant<int, K>) __attribute__((always_inline)) {
    for (; p + K <= k; p += K)
      add_few<Real, R, K>(M + p * ld, ld, x + p * x_col, x_row, x_col, y, y_ld, cols,
                          start && p == 0, fetch);
  };
  go(std::integral_constant<int, steps>());
  go(std::integral_constant<int, steps / 2>());
  go(std::integral_constant<int, 1>());
}

}  // namespace
}  // namespace mblas::cpu::MBLAS_ISA
