// One thread moves one element. Memory-bound: B is written along its rows, A read down its columns,
// a sector of 32 bytes for each element, of which the caches save what they can.
#include "cuda/kernels.hpp"
#include "cuda/transpose/transpose.cuh"

namespace mblas::cuda::transpose {
namespace naive_file {

constexpr int kTileM = 32, kTileN = 8;  // a warp goes along a row of B
constexpr int kThreads = kTileM * kTileN;

template <class T>
__global__ void __launch_bounds__(kThreads)
    naive_kernel(const __grid_constant__ TransposeProblem p, const __grid_constant__ Tiles tiles) {
  for (std::int64_t t = blockIdx.x; t < tiles.count(); t += gridDim.x) {
    const auto tile = tiles[t];
    const std::int64_t j = tile.row * kTileN + threadIdx.y;
    const std::int64_t i = tile.col * kTileM + threadIdx.x;
    if (i >= p.m || j >= p.n) continue;
    static_cast<T*>(p.B.at(tile.batch))[j * p.ldb + i] =
        static_cast<const T*>(p.A.at(tile.batch))[i * p.lda + j];
  }
}

void run(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const TransposeProblem problem = transpose_problem(args, queue);
  const Tiles tiles = {ceil_div(args.n, kTileN), ceil_div(args.m, kTileM), args.batch};
  const auto bits = address_bits(args.A, args.batch) | address_bits(args.B, args.batch);
  with_untyped(size_of(args.type), bits, [&]<class T>() {
    launch(queue, naive_kernel<T>, tiles.count(), dim3(kTileM, kTileN), problem, tiles);
  });
}

}  // namespace naive_file

Kernel<TransposeArgs> naive() {
  using namespace naive_file;
  return {"naive", "one thread per element", declines_nothing, transpose_pointer_bytes, run};
}

}  // namespace mblas::cuda::transpose
