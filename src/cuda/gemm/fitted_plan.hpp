// How `fitted` cuts a matrix of C into tiles, and how long that takes: an estimate of clock cycles
// for each number of tiles, of which the least is taken. docs/BENCHMARKING.md holds it against
// measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cuda/gemm/estimates.hpp"

namespace mblas::cuda::fitted {

inline constexpr int kDepth = 16, kStages = 3;  // of k in a panel; panels of each operand
inline constexpr int kMostSide = 128;           // of a tile, in rows or columns

/// How panels lie in shared memory, in elements: `outer` rows of op(A) or columns of op(B) by
/// kDepth of k. Where memory runs along k, so does the panel, and `pad` follows on every `group` of
/// the outer dimension; else steps of k are `pad_across` more than a multiple of `whole` apart.
struct Layout {
  int group, pad, pad_across, whole;

  constexpr int pitch(int outer) const { return int(divide_up(outer, whole)) * whole + pad_across; }
  constexpr int size(bool along_k, int outer) const {
    return along_k ? outer * kDepth + outer / group * pad : kDepth * pitch(outer);
  }
};

/// What threads, or warps, have of a tile, and figures of an H100 for it.
struct Unit {
  int rows, cols;            ///< at most
  int step_rows, step_cols;  ///< a tile's sides are multiples of these
  int lanes;                 ///< that have one
  int most;                  ///< of a block
  int element_bytes;
  int products;    ///< real ones of an element's
  Layout a, b;     ///< of panels
  int warps;       ///< of which a multiprocessor has registers
  double start;    ///< cycles of a launch, and of its first panels and last results
  double panel;    ///< cycles until a panel is there and multiplied, if that takes no time
  double rate;     ///< multiply-adds of a multiprocessor in a cycle
  double copied;   ///< bytes of panels that a multiprocessor copies in a cycle
  double loose;    ///< how much longer it takes element by element
  double bytes;    ///< of A, B and C, from and to memory, in a cycle
  double results;  ///< bytes that a multiprocessor writes in a cycle where rows start anywhere
};
// clang-format off
inline constexpr Unit kFloat = {
    4, 8, 4, 8, 1, 256, 4, 1, {4, 4, 0, 4}, {8, 4, 0, 4}, 20, 8080, 956, 97, 27.5, 1.51, 1815, 9.2};
inline constexpr Unit kComplexFloat = {
    8, 4, 8, 4, 1, 256, 8, 4, {8, 2, 0, 2}, {4, 2, 0, 2}, 16, 9830, 2766, 95.8, 54.5, 0.83, 1036, 5.1};
inline constexpr Unit kDouble = {
    32, 32, 16, 8, 32, 8, 8, 1, {1, 4, 4, 16}, {1, 4, 4, 16}, 16, 6040, 1494, 293, 103, 2.9, 1630, 8.4};
// clang-format on

struct Shape {
  std::int64_t m, n, k, batch;
  bool along_a, along_b;  ///< op(A) and op(B) run along k in memory
  bool loose, loose_c;    ///< rows of A or B, or of C, do not start at multiples of 16 bytes
  int processors;
  std::int64_t shared_bytes;  ///< of a multiprocessor
};

/// Each matrix of C in down×across tiles of rows×cols; `down` 0: it cannot be cut so.
struct Tiling {
  int down = 0, across = 0, rows = 0, cols = 0;
  double cycles = std::numeric_limits<double>::infinity();

  int panel_a(const Shape& s, const Unit& u) const {
    return whole_vectors(u, u.a.size(s.along_a, rows));
  }
  int panel_b(const Shape& s, const Unit& u) const {
    return whole_vectors(u, u.b.size(s.along_b, cols));
  }
  /// Between rows of results in shared memory, of which those that are written together begin in
  /// different banks.
  int pitch_c(const Unit& u) const {
    const int vector = 16 / u.element_bytes;
    return int(divide_up(cols, 4 * vector)) * 4 * vector + 32 / u.element_bytes;
  }
  std::int64_t shared_bytes(const Shape& s, const Unit& u) const {
    return std::max(kStages * (panel_a(s, u) + panel_b(s, u)), rows * pitch_c(u)) *
           std::int64_t(u.element_bytes);
  }
  int threads(const Unit& u) const {
    return int(divide_up(divide_up(rows, u.rows) * divide_up(cols, u.cols) * u.lanes, 32)) * 32;
  }

 private:
  static int whole_vectors(const Unit& u, int elements) {
    const int vector = 16 / u.element_bytes;
    return int(divide_up(elements, vector)) * vector;
  }
};

/// In cycles of 1.98 GHz.
inline double cycles_of(const Shape& s, const Tiling& t, const Unit& u) {
  constexpr std::int64_t kOfBlock = 1 << 10;  // of shared memory, besides
  const int warps = t.threads(u) / 32;
  const double panels = double(divide_up(s.k, kDepth));
  // Of warps that have a share each, tiles at the edges take as much less as they are smaller.
  const double tiles = double(t.down) * t.across;
  const double sums = u.lanes == 1 ? double(warps) * 32 * u.rows * u.cols
                                   : double(divide_up(s.m, u.step_rows) * u.step_rows) *
                                         double(divide_up(s.n, u.step_cols) * u.step_cols) / tiles;
  const double products = sums * double(divide_up(s.k, 4) * 4) * u.products;
  const double sides = double(s.m) / t.down + double(s.n) / t.across;
  const double copied = panels * kDepth * sides * u.element_bytes * (s.loose ? 1 + u.loose : 1);
  const double results = s.loose_c ? double(s.m) * double(s.n) / tiles * u.element_bytes : 0;
  const double block = products / u.rate + copied / u.copied + results / u.results;
  const auto at_once = std::max<std::int64_t>(
      std::min<std::int64_t>(u.warps / warps, s.shared_bytes / (t.shared_bytes(s, u) + kOfBlock)),
      1);
  const double blocks = tiles * double(s.batch);
  const double full = std::floor(blocks / double(s.processors * at_once));
  const double rest = std::ceil((blocks - full * double(s.processors * at_once)) / s.processors);
  const double rounds = full * (panels * u.panel + double(at_once) * block) +
                        (rest > 0 ? panels * u.panel + rest * block : 0);
  const double bytes = double(u.element_bytes) * double(s.batch) *
                       (double(s.m + s.n) * double(s.k) + double(s.m) * double(s.n));
  // Where one takes much longer it hides the other; else they hinder each other.
  return u.start + std::hypot(rounds, bytes / u.bytes);
}

inline Tiling tiling_of(const Shape& s, int down, int across, const Unit& u) {
  constexpr int kLeastThreads = 64;  // one warp's copies are not done soon enough
  Tiling t{down, across, 0, 0};
  const auto side = [](std::int64_t all, int parts, int step) {
    return std::min<std::int64_t>(divide_up(all, std::int64_t(parts) * step) * step,
                                  kMostSide + step);
  };
  t.rows = int(side(s.m, down, u.step_rows));
  t.cols = int(side(s.n, across, u.step_cols));
  if (t.rows > kMostSide || t.cols > kMostSide || t.threads(u) > u.most * u.lanes ||
      t.threads(u) < kLeastThreads || divide_up(s.m, t.rows) != down ||
      divide_up(s.n, t.cols) != across || t.shared_bytes(s, u) > s.shared_bytes)
    return {};
  t.cycles = cycles_of(s, t, u);
  return t;
}

/// That of least cycles.
inline Tiling choose(const Shape& s, const Unit& u) {
  constexpr int kMore = 9;  // numbers of parts that are tried, up to twice the fewest or more
  constexpr std::int64_t kMostTiles = 1 << 12;
  const std::int64_t least_down = divide_up(s.m, kMostSide);
  const std::int64_t least_across = divide_up(s.n, kMostSide);
  Tiling best;
  if (least_down > kMostTiles || least_across > kMostTiles / least_down) return best;
  const auto parts = [](std::int64_t least, int i) { return int(least + i * divide_up(least, 8)); };
  // Of equals the first one: long rows of C.
  for (int across = 0; across < kMore; ++across)
    for (int down = 0; down < kMore; ++down) {
      const Tiling t = tiling_of(s, parts(least_down, down), parts(least_across, across), u);
      if (t.cycles < best.cycles) best = t;
    }
  return best;
}

}  // namespace mblas::cuda::fitted
