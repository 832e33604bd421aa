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
  double start;         ///< microseconds of a tile besides its steps
  double step, shared;  ///< of a step, of a block alone and of each of two
  constexpr int rows() const { return 64 * consumers; }
};
/// Times are fitted, with those of microseconds_of().
constexpr TileInfo kTiles[] = {{16, 2, 2, 0.22, 0.66, 0.88}, {32, 2, 2, 0.00, 0.73, 0.94},
                               {48, 3, 1, 0.67, 0.89, 0.89}, {64, 3, 1, 0.71, 0.96, 0.96},
                               {96, 2, 1, 1.16, 0.73, 0.73}, {128, 2, 1, 0.97, 0.93, 0.93}};

/// Bytes of shared memory of a block at most, of so many on a multiprocessor.
constexpr int room_of(int blocks) { return (blocks == 2 ? 111 : 225) << 10; }

/// Bytes of the planes of a step of a tile of so many columns.
constexpr int image_bytes(int cols) { return 3 * cols * kDepth * 2; }

/// A call as it is computed: `length` rows by `width` real columns.
struct Shape {
  std::int64_t length, width, depth, batch;
  bool shared;     ///< the short operand, by the batch
  int copy_bytes;  ///< of the long operand at once
  bool along_k;    ///< it is
  int processors;
  double memory;  ///< bytes a microsecond
  std::int64_t short_matrices() const { return shared ? 1 : batch; }
  auto key() const {
    return std::tuple(length, width, depth, batch, shared, copy_bytes, along_k, processors, memory);
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

/// Fitted to 3,617 times of 342 products on an H200, of all tiles and some numbers of parts each:
/// 9 % off. The plan of least time takes 2 % longer than the fastest that was measured.
inline double microseconds_of(const Shape& x, const TileInfo& t, int parts) {
  constexpr double kLaunches = 4.6, kImageBytes = 1.39e6, kResultBytes = 2.78e6;
  constexpr double kOverlap = 2.62;  // of copies and products
  constexpr double kMemory = 0.88;   // of the rate
  constexpr double kAdd = 1.23, kAddPart = 0.12, kAddBytes = 3.08e6;
  const Tiling tiling = tiling_of(x, t);
  const double rows = double(tiling.rows), cols = double(tiling.cols);
  const double steps = double(tiling.steps), batch = double(x.batch);
  const double items = rows * cols * parts * batch;
  const double rounds = std::ceil(items / (x.processors * t.blocks));
  const double loose = x.copy_bytes == 16 ? 1 : x.copy_bytes == 8 ? 1.14 : x.along_k ? 1.67 : 1.25;
  const double step = loose * (items > x.processors ? t.shared : t.step);
  const double multiply = rounds * (t.start + std::ceil(steps / parts) * step);
  const double read =
      t.start + 4 * batch * double(x.length) * double(x.depth) / (kMemory * x.memory);
  double time =
      kLaunches + std::pow(std::pow(multiply, kOverlap) + std::pow(read, kOverlap), 1 / kOverlap);
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
