// How much of a product's tiles is inside of C, for kernels whose warps leave out what is not.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mblas::cuda::gemm {

/// A side of C in tiles of `tile`, of which a warp has `warp` and leaves out `piece` at once.
struct Inside {
  double mean;     ///< share of a tile, of all of them
  double busiest;  ///< share that the warp with most of a tile has of its own, of all of them
  double most;     ///< of the tile with most

  constexpr Inside(std::int64_t size, int tile, int warp, int piece) {
    const std::int64_t tiles = (size + tile - 1) / tile;
    const std::int64_t rest = (size - (tiles - 1) * tile + piece - 1) / piece * piece;
    const double of_last = double(std::min<std::int64_t>(rest, warp)) / warp;
    mean = double((tiles - 1) * tile + rest) / double(tiles * tile);
    busiest = (double(tiles - 1) + of_last) / double(tiles);
    most = tiles > 1 ? 1 : of_last;
  }
};

/// The share of a tile's multiply-adds that takes time, where blocks take so many tiles one after
/// another: of a single one that of the tile with most. `together`: how far warps wait for the
/// busiest of their tile.
constexpr double share_inside(const Inside& rows, const Inside& cols, double rounds,
                              double together) {
  const double mean =
      together * rows.busiest * cols.busiest + (1 - together) * rows.mean * cols.mean;
  return mean + (rows.most * cols.most - mean) / std::max(rounds, 1.0);
}

}  // namespace mblas::cuda::gemm
