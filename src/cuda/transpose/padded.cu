// The third rung, one way: rows of the tile in shared memory are one element longer than the tile,
// which spreads a column over the banks. Threads as in the exercise that it comes from, 16x16 and
// one element each: too little on its way to memory to be fast.
#include "cuda/kernels.hpp"
#include "cuda/transpose/transpose.cuh"

namespace mblas::cuda::transpose {
namespace padded_file {

constexpr int kTile = 16;
constexpr int kThreads = kTile * kTile;

template <class T>
__global__ void __launch_bounds__(kThreads)
    padded_kernel(const __grid_constant__ TransposeProblem p, const __grid_constant__ Tiles tiles) {
  __shared__ T square[kTile][kTile + 1];

  for (std::int64_t t = blockIdx.x; t < tiles.count(); t += gridDim.x) {
    const auto tile = tiles[t];
    const T* a = static_cast<const T*>(p.A.at(tile.batch));
    T* b = static_cast<T*>(p.B.at(tile.batch));
    const std::int64_t i0 = tile.row * kTile, j0 = tile.col * kTile;
    if (i0 + threadIdx.y < p.m && j0 + threadIdx.x < p.n)
      square[threadIdx.y][threadIdx.x] = a[(i0 + threadIdx.y) * p.lda + j0 + threadIdx.x];
    __syncthreads();
    if (i0 + threadIdx.x < p.m && j0 + threadIdx.y < p.n)
      b[(j0 + threadIdx.y) * p.ldb + i0 + threadIdx.x] = square[threadIdx.x][threadIdx.y];
    __syncthreads();
  }
}

void run(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  run_padded(transpose_problem(args, queue), size_of(args.type),
             address_bits(args.A, args.batch) | address_bits(args.B, args.batch), queue);
}

}  // namespace padded_file

void run_padded(const TransposeProblem& problem, int size, std::uintptr_t bits,
                const CudaQueue& queue) {
  using namespace padded_file;
  const Tiles tiles = {ceil_div(problem.m, kTile), ceil_div(problem.n, kTile), problem.batch};
  with_untyped(size, bits, [&]<class T>() {
    launch(queue, padded_kernel<T>, tiles.count(), dim3(kTile, kTile), problem, tiles);
  });
}

Kernel<TransposeArgs> padded() {
  using namespace padded_file;
  return {"padded", "16x16 tiles through shared memory, padded against bank conflicts",
          declines_nothing, transpose_pointer_bytes, run};
}

}  // namespace mblas::cuda::transpose
