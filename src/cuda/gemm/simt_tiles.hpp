// The tiles of `simt` and which one a product gets: an estimate of clock cycles for each tile and
// each number of slices of k, of which the least is taken. docs/BENCHMARKING.md holds it against
// measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

namespace mblas::cuda::simt {

struct TileInfo {
  int m, n, depth;  ///< of the tile; of a step along k
  int blocks;       ///< that share a multiprocessor
  double rate;      ///< multiply-adds a cycle of a multiprocessor that is full of blocks
  double alone;     ///< how many blocks' share of time a block takes that has it for itself
  bool clusters;    ///< slices can be added up inside a cluster
};

/// By number; figures of an H200.
inline constexpr TileInfo kTiles[] = {
    {128, 256, 16, 1, 106, 1.0, false},  {256, 128, 16, 1, 106, 1.0, false},
    {128, 128, 16, 2, 100, 1.95, false}, {64, 128, 16, 3, 94, 1.2, true},
    {64, 64, 16, 4, 82, 1.15, true},     {128, 16, 32, 2, 45, 1.3, true},
    {16, 128, 32, 2, 45, 1.3, true},
};
inline constexpr int kTileCount = int(std::size(kTiles));

/// What the choice depends on.
struct Shape {
  std::int64_t m, n, k, batch;
  bool turned_a, turned_b;  ///< copied element by element
  int processors;
  bool clusters;                 ///< the device has them
  std::int64_t workspace_bytes;  ///< that slices may take
  int element_bytes;
};

struct Choice {
  int tile = 0, slices = 1;
  bool cluster = false;
  double cycles = 0;
};

/// Elements of a row of a slice's results in the workspace.
constexpr std::int64_t slice_pitch(std::int64_t n) { return (n + 3) / 4 * 4; }

inline double cycles_of(const Shape& x, const Choice& c) {
  const TileInfo& t = kTiles[c.tile];
  const auto count = [](std::int64_t a, int b) { return (a + b - 1) / b; };
  const double blocks =
      double(count(x.m, t.m)) * double(count(x.n, t.n)) * double(x.batch) * c.slices;
  const double depth = double(count(count(x.k, t.depth), c.slices) * t.depth);
  const double turned = 0.04 * (x.turned_a * t.m + x.turned_b * t.n);
  const double block = depth * (t.m * t.n / t.rate + turned) + 1200 + 0.15 * t.m * t.n;

  // Blocks of one multiprocessor: rounds that fill it, and the rest. Clusters are packed onto as
  // few multiprocessors as hold them.
  const double each = std::ceil(blocks / x.processors);
  const double rounds = std::floor(each / t.blocks), rest = each - rounds * t.blocks;
  const double last = c.cluster && each > 1 ? t.blocks : std::max(rest, t.alone);
  double cycles = (rounds * t.blocks + (rest > 0 ? last : 0)) * block;
  if (c.slices > 1 && c.cluster) {
    cycles = (each > 1 ? 1.12 : 1) * cycles + 2000 + 500 * c.slices;
  } else if (c.slices > 1) {
    const double bytes = double(x.m * x.batch) * double(x.n) * x.element_bytes;
    cycles += 6500 + 40 * c.slices + bytes * (c.slices + 1) / 2000;
  }
  return cycles;
}

inline Choice choose(const Shape& x) {
  Choice best;
  best.cycles = cycles_of(x, best);
  const auto consider = [&](int tile, int slices, bool cluster) {
    Choice c{tile, slices, cluster};
    c.cycles = cycles_of(x, c);
    if (c.cycles < best.cycles) best = c;
  };
  const double slice = double(x.m * x.batch) * double(slice_pitch(x.n)) * x.element_bytes;
  for (int tile = 0; tile < kTileCount; ++tile) {
    const TileInfo& t = kTiles[tile];
    const std::int64_t steps = (x.k + t.depth - 1) / t.depth;
    consider(tile, 1, false);
    if (t.clusters && x.clusters)
      for (int slices = 2; slices <= 8 && slices <= steps; slices *= 2)
        consider(tile, slices, true);
    for (int slices = 2;
         slices <= 512 && slices * 4 <= steps && slices * slice <= double(x.workspace_bytes);
         slices += std::max(slices / 4, 1))
      consider(tile, slices, false);
  }
  return best;
}

}  // namespace mblas::cuda::simt
