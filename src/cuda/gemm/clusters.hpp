// Clusters of blocks: how many a device holds at once, and what they are for.
#pragma once

#include <algorithm>
#include <cmath>

namespace mblas::cuda::gemm {

/// Clusters of `blocks` blocks with a multiprocessor for each block: none leaves its part of the
/// device, so of many blocks fewer fit than multiprocessors would allow. Figures of an H200, which
/// has 132.
constexpr double clusters_at_once(int blocks, int processors) {
  const int most = blocks <= 2   ? 132 / blocks
                   : blocks == 3 ? 39
                   : blocks == 4 ? 30
                   : blocks <= 6 ? 17
                                 : 15;
  return most * processors / 132.0;
}

constexpr int whole_clusters_at_once(int blocks, int processors) {
  return std::max(int(clusters_at_once(blocks, processors)), 1);
}

/// How many blocks a multiprocessor has at most, of `count` clusters of `blocks` blocks.
inline double blocks_each(double count, int blocks, int processors) {
  return std::ceil(count / clusters_at_once(blocks, processors));
}

/// Whether tiles of rows×cols on Hopper's tensor cores have kernels whose clusters join slices of
/// k.
constexpr bool has_joined(int rows, int cols) { return rows == 64 && cols <= 128; }
/// And whether they have kernels whose clusters are tiles side by side, which share the rows'
/// operand: of 64 rows, or of more rows than columns.
constexpr bool has_across(int rows, int cols) {
  return rows == 64 ? cols <= 128 : cols < 128 && cols % 64 != 0;
}

}  // namespace mblas::cuda::gemm
