// One thread computes one element of C, straight from global memory. Limited by the loads: every
// element of A is read n times and every element of B m times, and only the caches help. It is the
// plainest kernel that is right, which the others are compared with.
#include "cuda/gemm/gemm.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace naive_file {

constexpr int kTileM = 8, kTileN = 32;  // a warp goes along a row of C
constexpr int kThreads = kTileM * kTileN;

template <class In, class Out>
__global__ void __launch_bounds__(kThreads)
    naive_kernel(const __grid_constant__ GemmProblem<Accumulator<In>> p) {
  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto tile = p.tiles[t];
    const std::int64_t i = tile.row * kTileM + threadIdx.y;
    const std::int64_t j = tile.col * kTileN + threadIdx.x;
    if (i >= p.m || j >= p.n) continue;

    const In* a = static_cast<const In*>(p.A.at(tile.batch)) + i * p.a.row;
    const In* b = static_cast<const In*>(p.B.at(tile.batch)) + j * p.b.col;
    Accumulator<In> sum{};
    for (std::int64_t l = 0; l < p.k; ++l) {
      sum = multiply_add(widen(a[l * p.a.col], p.conjugate_a), widen(b[l * p.b.row], p.conjugate_b),
                         sum);
    }
    store(p, sum, static_cast<Out*>(p.C.at(tile.batch)) + i * p.ldc + j);
  }
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  with_gemm_types(args.in, args.out, [&]<class In, class Out>() {
    const auto problem = gemm_problem<In, Out>(args, queue, kTileM, kTileN);
    launch(queue, naive_kernel<In, Out>, problem.tiles.count(), dim3(kTileN, kTileM), problem);
  });
}

}  // namespace naive_file

Kernel<GemmArgs> naive() {
  using namespace naive_file;
  return {"naive", "one thread per element of C, no reuse but the caches'", declines_emulation,
          gemm_pointer_bytes, run};
}

}  // namespace mblas::cuda::gemm
