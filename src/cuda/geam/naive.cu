// One thread computes one element of C. Memory-bound: a transposed operand is read down its
// columns, a sector of 32 bytes for each element, of which the caches save what they can.
#include "cuda/geam/geam.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::geam {
namespace naive_file {

constexpr int kTileM = 8, kTileN = 32;  // a warp goes along a row of C
constexpr int kThreads = kTileM * kTileN;

template <class T, class Acc>
__device__ T read(const GeamTerm<Acc>& x, std::int64_t batch, std::int64_t i, std::int64_t j) {
  if (!x.present) return T{};
  return static_cast<const T*>(x.X.at(batch))[x.transposed ? j * x.ld + i : i * x.ld + j];
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    naive_kernel(const __grid_constant__ GeamProblem<Accumulator<T>> p) {
  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto tile = p.tiles[t];
    const std::int64_t i = tile.row * kTileM + threadIdx.y;
    const std::int64_t j = tile.col * kTileN + threadIdx.x;
    if (i >= p.m || j >= p.n) continue;
    const T a = read<T>(p.a, tile.batch, i, j);
    const T b = read<T>(p.b, tile.batch, i, j);
    static_cast<T*>(p.C.at(tile.batch))[i * p.ldc + j] = sum(p, a, b);
  }
}

void run(const GeamArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  with_geam_type(args.type, [&]<class T>() {
    const auto problem = geam_problem<T>(args, queue, kTileM, kTileN);
    launch(queue, naive_kernel<T>, problem.tiles.count(), dim3(kTileN, kTileM), problem);
  });
}

}  // namespace naive_file

Kernel<GeamArgs> naive() {
  using namespace naive_file;
  return {"naive", "one thread per element of C", declines_nothing, geam_pointer_bytes, run};
}

}  // namespace mblas::cuda::geam
