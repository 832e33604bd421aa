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

/// Tile after tile, in and out.
template <class T, int kCols, int kThreadsX, int kThreadsY>
__global__ void __launch_bounds__(kThreadsX* kThreadsY)
    swizzled_tiles(const __grid_constant__ TransposeProblem p,
                   const __grid_constant__ Tiles tiles) {
  using Tile = SwizzledTile<T, kCols, kThreadsX, kThreadsY>;
  __shared__ T shared[kCols * Tile::kRows];

  for (std::int64_t t = blockIdx.x; t < tiles.count(); t += gridDim.x) {
    const auto tile = tiles[t];
    const std::int64_t i0 = tile.row * Tile::kRows, j0 = tile.col * kCols;
    Tile::load(shared, static_cast<const T*>(p.A.at(tile.batch)), p, i0, j0);
    __syncthreads();
    Tile::store(shared, static_cast<T*>(p.B.at(tile.batch)), p, i0, j0);
    __syncthreads();
  }
}

template <int kCols, int kThreadsX, int kThreadsY>
void run_swizzled(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const TransposeProblem problem = transpose_problem(args, queue);
  const Tiles tiles = {ceil_div(args.m, 32), ceil_div(args.n, kCols), args.batch};
  const auto bits = address_bits(args.A, args.batch) | address_bits(args.B, args.batch);
  with_untyped(size_of(args.type), bits, [&]<class T>() {
    launch(queue, swizzled_tiles<T, kCols, kThreadsX, kThreadsY>, tiles.count(),
           dim3(kThreadsX, kThreadsY), problem, tiles);
  });
}

}  // namespace mblas::cuda::transpose
