// The tiles of `tensor_f64` and which one a product gets, with k in how many parts: an estimate of
// clock cycles for each, of which the least is taken. docs/BENCHMARKING.md holds it against
// measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "cuda/gemm/estimates.hpp"
#include "cuda/gemm/inside.hpp"

namespace mblas::cuda::gemm::mma64 {

struct TileInfo {
  int rows, cols, depth;  ///< of the tile; of a step along k
  int blocks;             ///< that share a multiprocessor
  double full, alone;     ///< share of its multiply-adds by all of them, and by one for itself
  /// A warp's of them, where warps outside of C do not multiply.
  int warp_rows = rows, warp_cols = cols;
};

/// By number; figures of an H100.
inline constexpr TileInfo kTiles[] = {
    {128, 64, 16, 2, 0.88, 0.81, 64, 32}, {64, 64, 16, 3, 0.86, 0.78, 32, 32},
    {64, 32, 32, 2, 0.82, 0.76},          {32, 32, 32, 3, 0.64, 0.58},
    {32, 16, 32, 2, 0.33, 0.26},          {16, 16, 32, 4, 0.25, 0.27},
};
inline constexpr TileInfo kComplexTiles[] = {
    {64, 64, 8, 2, 0.94, 0.74, 32, 32}, {64, 32, 16, 1, 0.80, 0.88}, {32, 32, 16, 2, 0.92, 0.79},
    {32, 16, 32, 2, 0.80, 0.675},       {16, 16, 32, 3, 0.67, 0.62},
};
inline constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

struct Shape {
  std::span<const TileInfo> tiles;
  std::int64_t m, n, k, batch;
  int products;  ///< real ones of an element's
  int units, element_bytes;
  double memory = 4.9e12;  ///< bytes a second that it can deliver: an H200's
};

/// `tile` < 0: there is none.
struct Plan {
  int tile = -1;
  int splits = 1;
  std::int64_t depth = 0;  ///< of a part
  double cycles = std::numeric_limits<double>::infinity();
};

/// Bytes of one part of every result.
inline double part_bytes(const Shape& s) {
  return double(s.element_bytes) * double(s.m) * double(s.n) * double(s.batch);
}

/// Is k long enough for so many parts, and are there not too many bytes of them?
inline bool allows_parts(const Shape& s, int splits) {
  constexpr std::int64_t kLeastDepth = 64;
  constexpr double kMostPartsBytes = 256 << 20;
  return splits == 1 || (s.k / splits >= kLeastDepth && part_bytes(s) * splits <= kMostPartsBytes);
}

inline double tiles_of(const Shape& s, const TileInfo& t) {
  return double(divide_up(s.m, t.rows)) * double(divide_up(s.n, t.cols)) * double(s.batch);
}

/// In cycles of 1.98 GHz, as all of these constants.
inline Plan plan_of(const Shape& s, int tile, int splits) {
  constexpr double kHertz = 1.98e9, kMultiplyAdds = 128;  // of a multiprocessor
  constexpr double kStart = 502;  // of a launch, until the first block begins
  constexpr double kTile = 2630;  // a tile's beginning and end
  // That a multiprocessor writes.
  const double result_bytes = s.products == 1 ? 17.7 : 12.9;
  // Of A and B, where the second-level cache has them; and of what memory can deliver, where it
  // does not.
  constexpr double kCachedBytes = 2300, kMemoryShare = 0.83, kCacheBytes = 30e6;
  // Of real numbers, cycles of a step along k at least; whose first ones are asked for together
  // where k is whole. In parts of k, of which a multiprocessor has few blocks, cycles of each part,
  // one after another. Fitted to 250 products with k of 256 to 500,000 on an H200: 7 % off.
  constexpr double kStep = 752, kAhead = 8, kPart = 101, kPartsHide = 2.9;
  constexpr double kPartsCachedBytes = 1465, kPartsMemoryShare = 1.015, kPartsKernel = 4391;
  constexpr double kSecondKernel = 3590;
  constexpr double kSums = 99;       // elements that the second kernel adds up
  constexpr double kTogether = 0.7;  // of a block's warps: see share_inside()

  const TileInfo& t = s.tiles[std::size_t(tile)];
  Plan plan;
  plan.tile = tile;
  plan.depth = divide_up(divide_up(s.k, splits), t.depth) * t.depth;
  plan.splits = s.k == 0 ? 1 : int(divide_up(s.k, plan.depth));
  const double launched = tiles_of(s, t) * plan.splits, at_once = double(s.units) * t.blocks;
  const double inside =
      share_inside({s.m, t.rows, t.warp_rows, t.warp_rows}, {s.n, t.cols, t.warp_cols, t.warp_cols},
                   std::ceil(launched / at_once), kTogether);
  const double products =
      inside * t.rows * t.cols * s.products * double(plan.depth) / kMultiplyAdds;
  const double results = double(std::min<std::int64_t>(t.rows, s.m)) *
                         double(std::min<std::int64_t>(t.cols, s.n)) * s.element_bytes;
  const bool real_parts = plan.splits > 1 && s.products == 1;
  const double waited = double(plan.depth / t.depth) - (real_parts ? 0 : kAhead);
  const double steps = s.products == 1 ? std::max(waited, 0.0) : 0;
  const auto round = [&](double blocks) {  // of a multiprocessor
    return std::max({products / t.alone, blocks * products / t.full, steps * kStep}) + kTile +
           blocks * results / result_bytes;
  };
  const double full = std::floor(launched / at_once);
  const double rest = std::ceil((launched - full * at_once) / s.units);
  const double rounds = full * round(t.blocks) + (rest > 0 ? round(rest) : 0);
  const double memory = double(s.m + s.n) * double(s.k) * double(s.batch) * s.element_bytes;
  // Where one takes much longer it hides the other; else they hinder each other.
  const double a_cycle = s.memory / kHertz;  // bytes
  const double adding = double(s.m) * double(s.n) * double(s.batch) / kSums;
  if (real_parts) {
    const double read =
        reading(memory, kCacheBytes, kPartsCachedBytes, kPartsMemoryShare * a_cycle);
    plan.cycles = kStart + partly_hidden(rounds, read, kPartsHide) + kPartsKernel + adding +
                  kPart * plan.splits;
  } else {
    const double rate = memory > kCacheBytes ? kMemoryShare * a_cycle : kCachedBytes;
    plan.cycles = kStart + std::hypot(rounds, memory / rate);
    if (plan.splits > 1) plan.cycles += kSecondKernel + adding;
  }
  return plan;
}

/// The plan of least cycles.
inline Plan choose(const Shape& s) {
  Plan best;
  for (int tile = 0; tile < int(s.tiles.size()); ++tile) {
    const TileInfo& t = s.tiles[std::size_t(tile)];
    for (const int splits : kSplits) {
      // Not into more parts than fill the device once.
      if (!allows_parts(s, splits) ||
          (splits > 1 && tiles_of(s, t) * splits > double(s.units * t.blocks)))
        break;
      const Plan plan = plan_of(s, tile, splits);
      if (plan.cycles < best.cycles) best = plan;
    }
  }
  return best;
}

}  // namespace mblas::cuda::gemm::mma64
