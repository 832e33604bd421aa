// The second rung: a 32x32 tile is read along A's rows into shared memory and written along B's
// rows out of it, so that both sides are coalesced. What limits it is the shared memory: a warp
// writes down a column of the tile, whose 32 elements lie in one bank.
#include "cuda/kernels.hpp"
#include "cuda/transpose/transpose.cuh"

namespace mblas::cuda::transpose {
namespace shared_file {

constexpr int kTile = 32;
constexpr int kRows = 8;  // of threads; each moves kTile / kRows elements
constexpr int kThreads = kTile * kRows;

template <class T>
__global__ void __launch_bounds__(kThreads)
    shared_kernel(const __grid_constant__ TransposeProblem p, const __grid_constant__ Tiles tiles) {
  __shared__ T square[kTile][kTile];

  for (std::int64_t t = blockIdx.x; t < tiles.count(); t += gridDim.x) {
    const auto tile = tiles[t];
    const T* a = static_cast<const T*>(p.A.at(tile.batch));
    T* b = static_cast<T*>(p.B.at(tile.batch));
    const std::int64_t i0 = tile.row * kTile, j0 = tile.col * kTile;
    for (int r = int(threadIdx.y); r < kTile; r += kRows) {
      const std::int64_t i = i0 + r, j = j0 + threadIdx.x;
      if (i < p.m && j < p.n) square[threadIdx.x][r] = a[i * p.lda + j];
    }
    __syncthreads();
    for (int r = int(threadIdx.y); r < kTile; r += kRows) {
      const std::int64_t i = i0 + threadIdx.x, j = j0 + r;
      if (i < p.m && j < p.n) b[j * p.ldb + i] = square[r][threadIdx.x];
    }
    __syncthreads();
  }
}

void run(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const TransposeProblem problem = transpose_problem(args, queue);
  const Tiles tiles = {ceil_div(args.m, kTile), ceil_div(args.n, kTile), args.batch};
  with_untyped(size_of(args.type),
               address_bits(args.A, args.batch) | address_bits(args.B, args.batch), [&]<class T>() {
                 launch(queue, shared_kernel<T>, tiles.count(), dim3(kTile, kRows), problem, tiles);
               });
}

}  // namespace shared_file

Kernel<TransposeArgs> shared() {
  using namespace shared_file;
  return {"shared", "32x32 tiles through shared memory: coalesced, with bank conflicts",
          declines_nothing, transpose_pointer_bytes, run};
}

}  // namespace mblas::cuda::transpose
