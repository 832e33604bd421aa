// The fourth rung: a block turns several tiles, in two buffers of shared memory. While one tile is
// written the next one is read, with one barrier for each.
#include "cuda/kernels.hpp"
#include "cuda/transpose/ladder.cuh"

namespace mblas::cuda::transpose {
namespace double_buffered_file {

constexpr int kTile = 32;
constexpr int kThreads = kTile * kTile;
constexpr int kTilesEach = 4;

template <class T>
__global__ void __launch_bounds__(kThreads)
    double_buffered_kernel(const __grid_constant__ TransposeProblem p,
                           const __grid_constant__ Tiles tiles) {
  using Tile = SwizzledTile<T, kTile, kTile, kTile>;
  __shared__ T shared[2][kTile * kTile];

  const auto load = [&](std::int64_t t, T* buffer) {
    const auto tile = tiles[t];
    Tile::load(buffer, static_cast<const T*>(p.A.at(tile.batch)), p, tile.row * kTile,
               tile.col * kTile);
  };
  load(blockIdx.x, shared[0]);
  int buffer = 0;
  for (std::int64_t t = blockIdx.x; t < tiles.count(); t += gridDim.x, buffer ^= 1) {
    __syncthreads();
    if (t + gridDim.x < tiles.count()) load(t + gridDim.x, shared[buffer ^ 1]);
    const auto tile = tiles[t];
    Tile::store(shared[buffer], static_cast<T*>(p.B.at(tile.batch)), p, tile.row * kTile,
                tile.col * kTile);
  }
}

void run(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const TransposeProblem problem = transpose_problem(args, queue);
  const Tiles tiles = {ceil_div(args.m, kTile), ceil_div(args.n, kTile), args.batch};
  const auto bits = address_bits(args.A, args.batch) | address_bits(args.B, args.batch);
  with_untyped(size_of(args.type), bits, [&]<class T>() {
    launch(queue, double_buffered_kernel<T>, ceil_div(tiles.count(), kTilesEach),
           dim3(kTile, kTile), problem, tiles);
  });
}

}  // namespace double_buffered_file

Kernel<TransposeArgs> double_buffered() {
  using namespace double_buffered_file;
  return {"double_buffered", "four 32x32 tiles a block, one read while another is written",
          declines_nothing, transpose_pointer_bytes, run};
}

}  // namespace mblas::cuda::transpose
