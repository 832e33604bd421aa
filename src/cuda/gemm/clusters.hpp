// How many clusters of blocks a device holds at once.
#pragma once

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

}  // namespace mblas::cuda::gemm
