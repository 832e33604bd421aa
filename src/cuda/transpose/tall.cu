// The fifth rung: a tile of twice the columns. Each block passes as many barriers as before for
// twice the elements, and each thread has twice as many of them on their way.
#include "cuda/kernels.hpp"
#include "cuda/transpose/ladder.cuh"

namespace mblas::cuda::transpose {
namespace {

constexpr int kCols = 64, kThreadsX = 32, kThreadsY = 32;

template <class T>
__global__ void __launch_bounds__(kThreadsX* kThreadsY)
    tall_kernel(const __grid_constant__ TransposeProblem p, const __grid_constant__ Tiles tiles) {
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

void run(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const TransposeProblem problem = transpose_problem(args, queue);
  const Tiles tiles = {ceil_div(args.m, 32), ceil_div(args.n, kCols), args.batch};
  const auto bits = address_bits(args.A, args.batch) | address_bits(args.B, args.batch);
  with_untyped(size_of(args.type), bits, [&]<class T>() {
    launch(queue, tall_kernel<T>, tiles.count(), dim3(kThreadsX, kThreadsY), problem, tiles);
  });
}

}  // namespace

Kernel<TransposeArgs> tall() {
  return {"tall", "64x32 tiles: half the barriers, twice the bytes on their way", declines_nothing,
          transpose_pointer_bytes, run};
}

}  // namespace mblas::cuda::transpose
