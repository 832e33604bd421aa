// How a product of float in planes that are made on the way is cut, and how long that takes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <tuple>

namespace mblas::cuda::gemm::fused {

constexpr int kDepth = 32;  // floats along k of a step
constexpr int kMostParts = 64;

/// Tiles, by their real columns. Those who multiply are warpgroups of 64 rows each: as many as have
/// registers, since each of them waits for its own instructions most of the time.
struct TileInfo {
  int cols, consumers;
  int blocks;           ///< that share a multiprocessor
  bool both;            ///< the block splits the short operand as well
  double start;         ///< microseconds of a tile besides its steps
  double step, shared;  ///< of a step, where no multiprocessor has two items and else
  constexpr int rows() const { return 64 * consumers; }
};
/// Times are fitted, with those of microseconds_of().
constexpr TileInfo kTiles[] = {
    {16, 2, 2, false, 0.23, 0.66, 0.91}, {32, 2, 2, false, 0.02, 0.73, 0.98},
    {48, 3, 1, false, 1.45, 0.87, 0.88}, {64, 3, 1, false, 1.64, 0.90, 0.96},
    {96, 2, 1, false, 1.79, 0.77, 0.82}, {128, 2, 1, false, 2.07, 1.02, 1.07},
    {64, 2, 1, true, 1.02, 0.91, 0.91},  {96, 2, 1, true, 1.56, 1.15, 1.15},
    {128, 2, 1, true, 2.02, 1.26, 1.26}};

/// Bytes of shared memory of a block at most, of so many on a multiprocessor.
constexpr int room_of(int blocks) { return (blocks == 2 ? 111 : 225) << 10; }

/// Bytes of the planes of a step of a tile of so many columns.
constexpr int image_bytes(int cols) { return 3 * cols * kDepth * 2; }

/// A call as it is computed: `length` rows by `width` real columns.
struct Shape {
  std::int64_t length, width, depth, batch;
  bool shared;                  ///< the short operand, by the batch
  int copy_bytes;               ///< of the long operand at once
  bool along_k, short_along_k;  ///< it is, and the short one
  bool complex;
  int processors;
  double memory;  ///< bytes a microsecond
  std::int64_t short_matrices() const { return shared ? 1 : batch; }
  auto key() const {
    return std::tuple(length, width, depth, batch, shared, copy_bytes, along_k, short_along_k,
                      complex, processors, memory);
  }
};

/// A matrix in tiles, and k in steps.
struct Tiling {
  std::int64_t rows, cols, steps;
};
constexpr Tiling tiling_of(const Shape& x, const TileInfo& t) {
  return {(x.length + t.rows() - 1) / t.rows(), (x.width + t.cols - 1) / t.cols,
          (x.depth + kDepth - 1) / kDepth};
}

struct Plan {
  int tile = -1;  ///< of kTiles
  int parts = 1;
  double microseconds = 0;
};

/// Fitted to 4,193 times of 750 products on an H200, of several tiles and numbers of parts each:
/// 9 % off. The plan of least time takes 1 % longer than the fastest that was measured.
inline double microseconds_of(const Shape& x, const TileInfo& t, int parts) {
  constexpr double kLaunch = 2.47, kLaunches = 3.95, kImageBytes = 1.65e6, kResultBytes = 5.08e6;
  constexpr double kOverlap = 3.8;  // of copies and products
  constexpr double kMemory = 0.69;  // of the rate
  constexpr double kAdd = 1.1, kAddPart = 0.083, kAddBytes = 3.75e6;
  const Tiling tiling = tiling_of(x, t);
  const double rows = double(tiling.rows), cols = double(tiling.cols);
  const double steps = double(tiling.steps), batch = double(x.batch);
  const double items = rows * cols * parts * batch;
  const double rounds = std::ceil(items / (x.processors * t.blocks));
  double step = items > x.processors ? t.shared : t.step;
  if (x.copy_bytes == 8) step *= 1.04;
  if (x.copy_bytes == 4) step *= t.both ? 1.17 : x.along_k ? 1.37 : 1.25;
  if (t.both) step *= (x.short_along_k ? 1.05 : 1) * (x.complex ? 0.94 : 1);
  const double multiply = rounds * (t.start + std::ceil(steps / parts) * step);
  const double floats =
      double(x.length) + (t.both ? double(x.width) / (x.complex ? 2 : 1) : 0);  // for each of k
  const double read = t.start + 4 * batch * floats * double(x.depth) / (kMemory * x.memory);
  double time = (t.both ? kLaunch : kLaunches) +
                std::pow(std::pow(multiply, kOverlap) + std::pow(read, kOverlap), 1 / kOverlap);
  if (!t.both)
    time += double(x.short_matrices()) * cols * steps * image_bytes(t.cols) / kImageBytes;
  time += 4 * batch * double(x.length) * double(x.width) / kResultBytes;
  if (parts > 1)
    time += kAdd + kAddPart * parts +
            4 * batch * rows * t.rows() * cols * t.cols * (parts + 1) / kAddBytes;
  return time;
}

inline Plan choose(const Shape& x) {
  Plan best;
  for (int tile = 0; tile < int(std::size(kTiles)); ++tile) {
    const std::int64_t steps = tiling_of(x, kTiles[tile]).steps;
    for (int parts = 1; parts <= kMostParts && (parts == 1 || parts * 2 <= steps);
         parts += std::max(parts / 8, 1)) {
      const double time = microseconds_of(x, kTiles[tile], parts);
      if (best.tile < 0 || time < best.microseconds) best = {tile, parts, time};
    }
  }
  return best;
}

}  // namespace mblas::cuda::gemm::fused
