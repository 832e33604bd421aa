// What the rungs with a swizzled tile share. Column c of row r of a tile of 32 columns lies at
// (r + c) mod 32: rows and columns both meet all banks, without padding.
#pragma once

#include "cuda/transpose/transpose.cuh"

namespace mblas::cuda::transpose {

/// Tiles of kCols columns of A and 32 rows, moved by kThreadsX×kThreadsY threads.
template <class T, int kCols, int kThreadsX, int kThreadsY>
struct SwizzledTile {
  static constexpr int kRows = 32;
  static constexpr int kThreads = kThreadsX * kThreadsY;

  __device__ static int at(int row, int col) { return row * kRows + (row + col) % kRows; }

  __device__ static void load(T* shared, const T* a, const TransposeProblem& p, std::int64_t i0,
                              std::int64_t j0) {
#pragma unroll
    for (int r = 0; r < kRows; r += kThreadsY) {
#pragma unroll
      for (int c = 0; c < kCols; c += kThreadsX) {
        const int row = r + int(threadIdx.y), col = c + int(threadIdx.x);
        if (i0 + row < p.m && j0 + col < p.n)
          shared[at(col, row)] = a[(i0 + row) * p.lda + j0 + col];
      }
    }
  }
  __device__ static void store(const T* shared, T* b, const TransposeProblem& p, std::int64_t i0,
                               std::int64_t j0) {
#pragma unroll
    for (int c = 0; c < kCols; c += kThreadsY) {
#pragma unroll
      for (int r = 0; r < kRows; r += kThreadsX) {
        const int row = r + int(threadIdx.x), col = c + int(threadIdx.y);
        if (i0 + row < p.m && j0 + col < p.n)
          b[(j0 + col) * p.ldb + i0 + row] = shared[at(col, row)];
      }
    }
  }
};

}  // namespace mblas::cuda::transpose
