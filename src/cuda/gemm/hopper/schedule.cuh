// Which tiles of C, in which order, by which block.
#pragma once

#include <cstdint>

namespace mblas::cuda::gemm::hopper {

/// Which tiles, in which order, and what of k. Everything is counted in clusters, of `cluster`
/// tiles one below the other or side by side.
struct Schedule {
  unsigned rows, cols;  ///< clusters of one matrix
  unsigned height;      ///< rows of clusters that are gone through together, for the L2 cache
  unsigned whole;       ///< so many are not cut along k
  unsigned slices;      ///< each of the others is
  unsigned items;       ///< whole ones and slices
  int steps;            ///< stages of k
  int slice_steps;
  unsigned cluster;  ///< 1, 2 or 4 blocks
  bool across;       ///< its tiles are side by side; none is cut then
  bool joined;       ///< each block has one slice; a tile's are a cluster, which adds them up

  /// Blocks that are launched as a cluster.
  __host__ __device__ unsigned together() const { return joined ? slices : cluster; }

  /// A cluster's tiles, or a slice of them.
  struct Item {
    int row, col, batch;  ///< of clusters
    int begin, end;       ///< steps
    unsigned slice;       ///< the number among all slices, where `cut`
    bool cut;
  };
  __device__ int steps_of(unsigned index) const {
    if (index < whole) return steps;
    const int begin = int((index - whole) % slices) * slice_steps;
    return min(steps, begin + slice_steps) - begin;
  }
  __device__ Item operator[](unsigned index) const {
    Item item;
    unsigned number = index;
    item.cut = index >= whole;
    item.slice = index - whole;
    item.begin = 0;
    item.end = steps;
    if (item.cut) {
      number = whole + item.slice / slices;
      item.begin = int(item.slice % slices) * slice_steps;
      item.end = min(steps, item.begin + slice_steps);
    }
    const unsigned matrix = rows * cols, band = height * cols;
    item.batch = number < matrix ? 0 : int(number / matrix);
    const unsigned at = number - unsigned(item.batch) * matrix;
    const unsigned first = at / band * height, here = min(height, rows - first);
    item.row = int(first + at % band % here);
    item.col = int(at % band / here);
    return item;
  }
};

}  // namespace mblas::cuda::gemm::hopper
