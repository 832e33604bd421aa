// The tiles of `simt` and which one a product gets: an estimate of clock cycles for each tile and
// each number of slices of k, of which the least is taken. docs/BENCHMARKING.md holds it against
// measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <tuple>

#include "cuda/gemm/clusters.hpp"
#include "cuda/gemm/groups.hpp"

namespace mblas::cuda::simt {

struct TileInfo {
  int m, n, depth;  ///< of the tile; of a step along k
  int blocks;       ///< that share a multiprocessor
  double rate;      ///< multiply-adds of a multiprocessor full of blocks in a cycle of cycles_of()
  double alone;     ///< how many blocks' share of time a block takes that has it for itself
  bool clusters;    ///< slices can be added up inside a cluster
};

/// Of float, figures of an H100, and of complex<float>, whose multiply-adds are four each, of an
/// H200; by number.
inline constexpr TileInfo kTiles[] = {
    {128, 256, 16, 1, 126, 1.0, false},    {256, 128, 16, 1, 126, 1.0, false},
    {128, 128, 16, 2, 121.5, 1.85, false}, {64, 128, 16, 3, 115.5, 1.12, true},
    {64, 64, 16, 5, 112, 1.18, true},      {128, 16, 32, 2, 80.5, 1.03, true},
    {16, 128, 32, 2, 78, 1.03, true},      {128, 32, 16, 4, 108.5, 1.15, true},
    {32, 128, 16, 4, 108, 1.13, true},     {64, 32, 16, 6, 100.5, 1.1, true},
    {32, 64, 16, 6, 100, 1.16, true},      {32, 32, 16, 12, 78, 1.62, true},
    {32, 16, 16, 19, 61.5, 3.45, true},    {16, 32, 16, 19, 60, 3.37, true},
};
inline constexpr TileInfo kComplexTiles[] = {
    {128, 64, 8, 2, 26.4, 1.5, true},  {64, 64, 8, 3, 27.2, 1.02, true},
    {64, 32, 8, 4, 26.2, 1.05, true},  {32, 64, 8, 4, 25.7, 1.03, true},
    {32, 32, 8, 6, 25.1, 1.15, true},  {32, 16, 8, 10, 20.2, 1.42, true},
    {16, 32, 8, 10, 19.6, 1.43, true},
};

/// Whether blocks of such a tile can have ranges of steps, of several tiles: smaller ones have no
/// registers for it, nor have those to which both operands come element by element but in order.
constexpr bool has_ranges(int tile_bytes, bool both_by_elements) {
  return tile_bytes >= 64 * 128 * 4 && !both_by_elements;
}

/// What the choice depends on.
struct Shape {
  std::span<const TileInfo> tiles;
  std::int64_t m, n, k, batch;
  bool turned_a, turned_b;  ///< contiguous along k: transposed on the way
  /// Bytes of an operand that is contiguous along the tile, but not at multiples of 16 bytes; 0: it
  /// is not so.
  double loose_a, loose_b;
  bool loose_c;  ///< rows of C do not start at multiples of 16 bytes
  int processors;
  bool clusters;                 ///< the device has them
  std::int64_t workspace_bytes;  ///< that slices may take
  int element_bytes;

  auto key() const {
    return std::tuple(tiles.data(), m, n, k, batch, turned_a, turned_b, loose_a, loose_b, loose_c,
                      processors, clusters, workspace_bytes, element_bytes);
  }
};

/// The first `whole` tiles are not cut; k of each of the others is, into `slices`, or that of all
/// of them into `ranges`.
struct Choice {
  int tile = 0, slices = 1;
  bool cluster = false;
  std::int64_t whole = 0;
  int ranges = 0;
  bool repack = false;  ///< loose operands are copied to the workspace first
  double cycles = 0;
};

constexpr std::int64_t tiles_of(const Shape& x, const TileInfo& t) {
  return (x.m + t.m - 1) / t.m * ((x.n + t.n - 1) / t.n) * x.batch;
}

constexpr std::int64_t steps_of(const Shape& x, const TileInfo& t) {
  return (x.k + t.depth - 1) / t.depth;
}

/// Bytes of workspace in which the slices or ranges leave their sums.
inline double slice_bytes(const Shape& x, const Choice& c) {
  const TileInfo& t = x.tiles[std::size_t(c.tile)];
  double parts = 2 * c.ranges;
  if (c.slices > 1 && !c.cluster) parts = double(tiles_of(x, t) - c.whole) * c.slices;
  return parts * t.m * t.n * x.element_bytes;
}

/// Cycles of 1.7 GHz, though the clock may be higher: fitted to the times of 66 products of all ops
/// on an H200, each with those of the configurations that took at most 2.2 times as long as its
/// fastest; what concerns rows that start anywhere to those of 40 more. Rates of float, kTurned and
/// kLoose: to those of 96 on an H100, uncut and in clusters. Tiles of less than 64×64 and kWait: to
/// those of 725 products and batches there. Complex tiles: to those of 352 on an H200.
inline double cycles_of(const Shape& x, const Choice& c) {
  constexpr double kStart = 3800;                    // of a launch
  constexpr double kRound = 2100;                    // of its first copies and last stores
  constexpr double kRoundElement = 0.16;             // likewise, for each of the tile
  constexpr double kElement = 0.12, kScalar = 0.03;  // of C; more where its rows start anywhere
  constexpr double kTurned = 0.05, kLoose = 0.055;   // an element that is copied by itself
  constexpr double kWait = 760;    // of a step that comes through registers, however little it is
  constexpr double kBytes = 2500;  // of A, B and C a cycle, from memory
  constexpr double kCluster = 1250, kClusterSlice = 107;
  constexpr double kSecondKernel = 4000, kSlice = 260, kSliceBytes = 3800;
  constexpr double kCopyKernel = 3500, kCopyBytes = 1800;

  const TileInfo& t = x.tiles[std::size_t(c.tile)];
  const double loose_bytes = x.loose_a + x.loose_b;
  const bool waits = loose_bytes > 0 && !c.repack;
  const std::int64_t steps = steps_of(x, t);
  const double elements = t.m * t.n;
  const double store = (kElement + kScalar * x.loose_c) * elements;
  const auto multiply = [&](std::int64_t depth_steps) {
    double copies = kTurned * (x.turned_a * t.m + x.turned_b * t.n);
    if (waits) copies += kLoose * (!x.turned_a * t.m + !x.turned_b * t.n);
    return double(depth_steps * t.depth) * (elements / t.rate + copies);
  };
  // Of so many blocks' share of a multiprocessor.
  const auto last = [&](double blocks, std::int64_t depth_steps, double stores) {
    return std::max(blocks * (multiply(depth_steps) + stores * store),
                    waits ? kWait * double(depth_steps) : 0);
  };

  const double round = kRound + kRoundElement * elements;
  const double cut = double(tiles_of(x, t) - c.whole);
  double cycles, parts = c.slices;  // of a tile that is cut
  if (c.ranges > 0) {
    const double each = std::ceil(double(c.ranges) / x.processors);
    const double share = each < t.blocks ? std::max(each, t.alone) : each;
    const auto length = std::int64_t(std::ceil(cut * double(steps) / c.ranges));
    constexpr double kTiles = 2;  // that a range touches
    cycles = last(share, length, kTiles) + kTiles * round;
    parts = 1 + c.ranges / cut;
  } else {
    // Blocks of one multiprocessor: rounds that fill it, and the rest.
    const double each = c.cluster ? gemm::blocks_each(cut, c.slices, x.processors)
                                  : gemm::blocks_each(cut * c.slices, 1, x.processors);
    const double rounds = std::floor(each / t.blocks), rest = each - rounds * t.blocks;
    const std::int64_t slice = (steps + c.slices - 1) / c.slices;
    cycles = rounds * last(t.blocks, slice, 1) +
             (rest > 0 ? last(std::max(rest, t.alone), slice, 1) : 0) +
             std::ceil(each / t.blocks) * round;
  }
  const double bytes = double(x.element_bytes) * double(x.batch) *
                       (double(x.m + x.n) * double(x.k) + double(x.m) * double(x.n));
  cycles = kStart + std::max(cycles, bytes / kBytes);
  if (c.cluster)
    cycles += kCluster + kClusterSlice * c.slices;
  else if (parts > 1)
    cycles += kSecondKernel + kSlice * parts / gemm::groups_for(std::int64_t(parts)) +
              (slice_bytes(x, c) + cut * elements * x.element_bytes) / kSliceBytes;
  if (c.repack)
    cycles += kCopyKernel * ((x.loose_a > 0) + (x.loose_b > 0)) + 2 * loose_bytes / kCopyBytes;
  return cycles + double(c.whole / x.processors) * (multiply(steps) + store + round / t.blocks);
}

/// A configuration: everything of a choice but what follows from the shape. Tiles go by size, as
/// types have tiles of their own.
struct Config {
  int m, n, slices;
  bool cluster, cut, repack;
};

/// f(config) for every tile of a table and number of slices, in the order of their numbers.
template <class F>
constexpr void for_each_config(std::span<const TileInfo> tiles, F&& f) {
  for (const bool repack : {false, true})
    for (const TileInfo& t : tiles) {
      f(Config{t.m, t.n, 1, false, false, repack});
      f(Config{t.m, t.n, 1, false, true, repack});
      for (int slices = 2; t.clusters && slices <= 8; slices *= 2)
        f(Config{t.m, t.n, slices, true, false, repack});
      for (int slices = 2; slices <= 512; slices += std::max(slices / 4, 1))
        f(Config{t.m, t.n, slices, false, false, repack});
    }
}

/// The choice of least cycles; of a configuration where that is given: with 0 slices where the
/// shape does not allow it.
inline Choice choose(const Shape& x, const Config* only = nullptr) {
  Choice best;
  best.cycles = only ? std::numeric_limits<double>::infinity() : cycles_of(x, best);
  if (only) best.slices = 0;
  const auto consider = [&](int tile, int slices, bool cluster, std::int64_t whole,
                            int ranges = 0) {
    Choice c{tile, slices, cluster, whole, ranges};
    if (slice_bytes(x, c) > double(x.workspace_bytes)) return;
    for (const bool repack : {false, true}) {
      if (repack && x.loose_a + x.loose_b == 0) break;
      const TileInfo& t = x.tiles[std::size_t(tile)];
      if (only && (only->m != t.m || only->n != t.n || only->slices != slices ||
                   only->cluster != cluster || only->cut != (ranges > 0) || only->repack != repack))
        continue;
      const bool elements = x.loose_a + x.loose_b > 0 && !repack && !x.turned_a && !x.turned_b;
      if (ranges > 0 && !has_ranges(t.m * t.n * x.element_bytes, elements)) continue;
      c.repack = repack;
      c.cycles = cycles_of(x, c);
      if (c.cycles < best.cycles) best = c;
    }
  };
  for (int tile = 0; tile < int(x.tiles.size()); ++tile) {
    const TileInfo& t = x.tiles[std::size_t(tile)];
    const std::int64_t steps = steps_of(x, t);
    const std::int64_t tiles = tiles_of(x, t), round = std::int64_t(x.processors) * t.blocks;
    consider(tile, 1, false, 0);
    if (t.clusters && x.clusters)
      for (int slices = 2; slices <= 8 && slices <= steps; slices *= 2)
        consider(tile, slices, true, 0);
    const std::int64_t whole = tiles / round * round, cut = tiles - whole;
    for (int slices = 2; slices <= 512 && slices * 4 <= steps; slices += std::max(slices / 4, 1))
      consider(tile, slices, false, whole);
    // Those that fill the multiprocessors.
    for (int each = 1; each <= t.blocks && cut > 0; ++each)
      if (const std::int64_t slices = each * x.processors / cut; slices > 1 && slices * 4 <= steps)
        consider(tile, int(slices), false, whole);
    for (int each = 1; each <= t.blocks && cut > 0; ++each) {
      constexpr std::int64_t kLeastSteps = 4, kMostSteps = 1 << 30;
      const std::int64_t all = cut * steps, ranges = std::int64_t(each) * x.processors;
      if (ranges > cut && all >= ranges * kLeastSteps && all < kMostSteps)
        consider(tile, 1, false, whole, int(ranges));
    }
  }
  return best;
}

}  // namespace mblas::cuda::simt
