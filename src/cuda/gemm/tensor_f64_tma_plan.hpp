// The tiles of `tensor_f64_tma` and which one a product gets: an estimate of clock cycles for each
// tile, with the tiles after the last full round whole or cut along k, or each in slices of k by a
// cluster, of which the least is taken.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "cuda/gemm/clusters.hpp"
#include "cuda/gemm/estimates.hpp"
#include "cuda/gemm/inside.hpp"
#include "cuda/gemm/schedule.hpp"

namespace mblas::cuda::gemm::tma64 {

struct TileInfo {
  int x, y, depth;  ///< of the tile's sides; of a step along k
  int stages;       ///< steps whose boxes are under way or in use
  double rate;      ///< share of the tensor cores' multiply-adds
  double ends;      ///< cycles of a tile's beginning and end, in which C is written
  double loose;     ///< more for an element, where rows of C start anywhere
  int blocks = 1;   ///< of a multiprocessor
};

/// What is left out at once of either side where it is outside of C, by tiles of which a
/// multiprocessor has two.
inline constexpr int kPieceX = 16, kPieceY = 8;

/// Warps of a block that ask for boxes; one, where both operands run along k.
inline constexpr int kProducers = 4;

/// Whether slices of k may be a cluster's, which adds them up, and several warps ask for boxes: the
/// largest tiles lack the registers, and are seldom too few for all multiprocessors.
constexpr bool joins(int x, int y, int products) {
  return x * y * (products == 1 ? 1 : 2) < 128 * 128;
}

/// By number; figures of an H100.
// clang-format off
inline constexpr TileInfo kTiles[] = {
    {128, 128, 16, 6, 0.980, 6739, 0.83},
    {64, 80, 16, 9, 0.924, 3337, 0.68},
    {64, 64, 16, 8, 0.939, 2886, 0.28},
    {64, 48, 16, 11, 0.906, 2376, 0.28},
    {64, 32, 16, 12, 0.847, 1536, 0.09},
    {64, 80, 16, 5, 0.929, 2757, 0.64, 2},
    {64, 64, 16, 6, 0.961, 2292, 0.48, 2},
    {64, 48, 16, 7, 0.927, 1903, 0.55, 2},
};
// clang-format on
/// But for the first figures of an H200.
inline constexpr TileInfo kComplexTiles[] = {
    {64, 128, 8, 8, 0.946, 10550, 0.77},  {64, 48, 8, 7, 0.886, 7092, 0.77, 2},
    {64, 32, 8, 8, 0.870, 4098, 0.77, 2}, {64, 48, 8, 10, 0.915, 7615, 0.77},
    {64, 32, 8, 12, 0.907, 5147, 0.77},
};
inline constexpr int kSlices[] = {2, 3, 4, 6};  // of k, in which a cluster computes a tile

struct Shape {
  std::span<const TileInfo> tiles;
  std::int64_t x, y, k, batch;  ///< the sides of X and Y in C
  int products;                 ///< real ones of an element's
  int units, element_bytes;
  bool loose_c = false;                 ///< rows of C do not start at multiples of 16 bytes
  bool along_x = true, along_y = true;  ///< a side's box is one, else they are 128 bytes wide
  double memory = 4.9e12;               ///< bytes a second that it can deliver: an H200's
};

/// A configuration: a tile by its size and how many of them a multiprocessor has at a time, whether
/// the last ones are cut, and in how many slices of k a cluster computes each.
struct Config {
  int x, y, blocks;
  bool cut;
  int slices = 1;

  bool operator==(const Config&) const = default;
};

/// Which of the first `whole` tiles a block takes in the place of `tile`, its own of a round of
/// `blocks`: one more to the right in each round, so that of tiles at the edges of C, which take
/// less, each block has some.
constexpr int dealt(int tile, int whole, int blocks) {
  const int round = tile / blocks, first = round * blocks;
  const int count = whole - first < blocks ? whole - first : blocks;
  return first + (tile - first + round) % count;
}

/// use(tile, configuration) for every one that there is.
void for_each_config(std::span<const TileInfo> tiles, int products, auto&& use) {
  for (int tile = 0; tile < int(tiles.size()); ++tile) {
    const TileInfo& t = tiles[std::size_t(tile)];
    for (const bool cut : {false, true}) use(tile, Config{t.x, t.y, t.blocks, cut});
    if (joins(t.x, t.y, products))
      for (const int slices : kSlices) use(tile, Config{t.x, t.y, t.blocks, false, slices});
  }
}

/// `tile` < 0: there is none.
struct Plan {
  int tile = -1;
  std::int64_t tiles = 0, whole = 0, ranges = 0, steps = 0;
  int slices = 1;
  bool skips = false;  ///< what is outside of C is left out
  double part_bytes = 0;
  double cycles = std::numeric_limits<double>::infinity();
};

/// What depends on whether all tiles are cut, as those of a long k are, of real numbers.
struct Costs {
  double start;  ///< of a launch, until the first block begins
  // From asking for a box until it is there: while all blocks ask, and how much longer where what
  // is read is more than a cache holds, and no other block reads the same.
  double boxes, memory;
  double multiply;  ///< of the time that the tile's rate says
  double second_kernel;
  double part_bytes;  ///< that all blocks write
  double part;        ///< of each part of a tile, one after another
};
inline constexpr Costs kWholeTiles = {3029, 3668, 2106, 1, 3361, 2264, 200};
/// Fitted to 2,700 times of 260 products with k of 256 to 500,000 on an H200: 10 % off.
inline constexpr Costs kAllCut = {6194, 2517, 2362, 0.908, 4350, 1477, 34};

/// In cycles of 1.98 GHz, as all of these constants.
inline Plan plan_of(const Shape& s, int tile, const Config& config) {
  constexpr double kHertz = 1.98e9, kMultiplyAdds = 128;  // of a multiprocessor
  constexpr double kCacheBytes = 50e6;
  constexpr double kBox = 86;  // from one that is asked for to the next
  // Of what shared memory takes longer to deliver, where X does not run along k.
  constexpr double kAcross = 2.50;
  constexpr double kAlone = 1.19;  // of one block's multiply-adds, where there could be two
  const double join = s.products == 1 ? 5950 : 3548;  // until a cluster has added up its slices
  constexpr double kMemoryShare = 1.30;               // of A, B and C, which caches hold in part
  // Where all tiles are cut: what a cache has, of memory's rate, and what more it has not where
  // there are several tiles; bytes from the second-level cache in a cycle; and of what is read
  // again, the part that memory delivers where tiles do not begin their parts of k together.
  constexpr double kCachedShare = 2.29, kMissedShare = 0.866, kCacheRate = 4346, kAgain = 0.58;
  constexpr double kTwice = 1.1;  // of that where a multiprocessor has two blocks
  constexpr double kSums = 36.3;  // elements that the second kernel adds up
  constexpr int kLeastSteps = 4;  // of a range, or a slice
  constexpr double kMostPartBytes = 256 << 20;
  constexpr double kMost = 1 << 30;  // tiles; steps of a block, and those that are cut
  constexpr double kTogether = 0.3;  // of a tile's warps: see share_inside()
  // Skipping takes some hundred cycles of a tile: of doubles no more than this is to be inside.
  constexpr double kMostInside = 0.78;

  const TileInfo& t = s.tiles[std::size_t(tile)];
  Plan plan;
  const std::int64_t tiles_x = divide_up(s.x, t.x), tiles_y = divide_up(s.y, t.y);
  plan.steps = divide_up(s.k, t.depth);
  const double tiles = double(tiles_x) * double(tiles_y) * double(s.batch);
  if (tiles * config.slices > kMost || (tiles / s.units + 1) * double(plan.steps) > kMost)
    return plan;
  plan.tiles = tiles_x * tiles_y * s.batch;
  const int units = s.units * t.blocks;
  plan.whole = config.cut ? plan.tiles / units * units : plan.tiles;
  plan.slices = config.slices;
  const std::int64_t left = plan.tiles - plan.whole;
  const double lines = double(s.x + s.y);
  const double bytes = lines * double(s.k) * double(s.batch) * s.element_bytes;
  if (config.slices > 1 && plan.steps < kLeastSteps * config.slices) return Plan{};
  if (config.cut) {
    plan.ranges = std::min<std::int64_t>(units, left * plan.steps / kLeastSteps);
    // As many of each tile, which then read the same lines at the same time, where a cache does
    // not have them all and few blocks are idle for that.
    constexpr std::int64_t kFew = 12;
    const std::int64_t rest = left > 0 ? plan.ranges % left : 0;
    if (plan.whole == 0 && rest * kFew <= plan.ranges && bytes > kCacheBytes) plan.ranges -= rest;
    if (plan.ranges <= left || double(left * plan.steps) > kMost) return Plan{};
    plan.part_bytes = 2.0 * double(plan.ranges) * t.x * t.y * s.element_bytes;
    if (plan.part_bytes > kMostPartBytes) return Plan{};
  }

  const double read = double(tiles_x) * double(s.y) + double(tiles_y) * double(s.x);
  const std::int64_t blocks =
      std::min<std::int64_t>(std::max(plan.whole * plan.slices, plan.ranges), s.units);
  const bool all_cut = config.cut && plan.whole == 0 && s.products == 1;
  const Costs& cost = all_cut ? kAllCut : kWholeTiles;
  const double way = cost.boxes * double(blocks) / s.units +
                     cost.memory * lines / read * std::min(bytes / kCacheBytes, 1.0);
  const int wide = 128 / s.element_bytes;
  const double boxes = (s.along_x ? 1 : t.x / wide) + (s.along_y ? 1 : t.y / wide);
  const bool shared = joins(t.x, t.y, s.products) && !s.along_x;
  const double multiply = cost.multiply * double(t.x) * t.y * t.depth * s.products / kMultiplyAdds /
                          t.rate *
                          (s.along_x || s.products > 1 ? 1 : 1 + kAcross / t.x + kAcross / t.y);
  double inside = 1;  // share of a tile's multiply-adds that are
  if (t.blocks > 1) {
    const Inside in_x(s.x, t.x, t.x / 2, kPieceX), in_y(s.y, t.y, t.y / 2, kPieceY);
    plan.skips = s.products > 1 || (s.batch > 1 && in_x.mean * in_y.mean < kMostInside);
    if (plan.skips) inside = share_inside(in_x, in_y, std::ceil(tiles / units), kTogether);
  }
  // While so many blocks of a multiprocessor are in work.
  const auto step = [&](std::int64_t at_once) {
    const double share = at_once < t.blocks ? kAlone : double(at_once);
    return std::max({share * inside * multiply, way / t.stages,
                     kBox * (shared ? std::ceil(boxes / kProducers) : boxes)});
  };

  const double elements = double(t.x) * t.y, ends = t.ends + (s.loose_c ? t.loose : 0) * elements;
  const std::int64_t each = divide_up(plan.whole, s.units), rest = each % t.blocks;
  if (config.slices > 1) {
    const std::int64_t steps = divide_up(plan.steps, config.slices);
    const double clustered = blocks_each(double(plan.tiles), config.slices, s.units);
    plan.cycles =
        std::ceil(clustered / t.blocks) *
        (double(steps) * step(std::int64_t(std::min(clustered, double(t.blocks)))) + ends + join);
  } else {
    plan.cycles = double(each / t.blocks) * (double(plan.steps) * step(t.blocks) + ends);
    if (rest > 0) plan.cycles += double(plan.steps) * step(rest) + ends;
  }
  double second = 0;
  if (config.cut) {
    plan.cycles +=
        double(divide_up(left * plan.steps, plan.ranges)) * step(divide_up(plan.ranges, s.units)) +
        ends;
    second = cost.second_kernel +
             double(plan.ranges) * elements * s.element_bytes / cost.part_bytes +
             double(left) * elements / kSums + cost.part * double(plan.ranges) / double(left);
  }
  // What is read and written hinders the multiplying where it takes as long, and is hidden by it
  // where that takes much longer.
  const double a_cycle = s.memory / kHertz;  // bytes
  double moved = bytes + double(s.x) * double(s.y) * double(s.batch) * s.element_bytes;
  if (all_cut) {
    const bool apart = plan.ranges % left != 0;
    const double missed = left == 1 ? 1 : kMissedShare;
    const double all = bytes * (apart ? 1 + kAgain * (read / lines - 1) : 1);
    const double sides =
        double(std::min<std::int64_t>(t.x, s.x) + std::min<std::int64_t>(t.y, s.y));
    moved = std::max(reading(all, kCacheBytes, kCachedShare * a_cycle, missed * a_cycle),
                     tiles * sides * double(s.k) * s.element_bytes / kCacheRate);
    if (t.blocks > 1) moved *= kTwice;
    plan.cycles = cost.start + std::hypot(plan.cycles, moved) + second;
  } else {
    plan.cycles = cost.start + std::hypot(plan.cycles + second, moved / (kMemoryShare * a_cycle));
  }
  plan.tile = tile;
  return plan;
}

/// The plan of least cycles; the configuration's where that is given.
inline Plan choose(const Shape& s, const Config* only = nullptr) {
  Plan best;
  for_each_config(s.tiles, s.products, [&](int tile, const Config& config) {
    if (only && *only != config) return;
    const Plan plan = plan_of(s, tile, config);
    if (plan.tile >= 0 && plan.cycles < best.cycles) best = plan;
  });
  return best;
}

/// Whether `other`, by its own estimate of cycles, is faster.
inline bool is_left_to(double other, const Plan& plan) { return other < plan.cycles; }

}  // namespace mblas::cuda::gemm::tma64
