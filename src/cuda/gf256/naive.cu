// One thread computes one byte of C, multiplying by shifts and conditional xors: no table, any
// polynomial. Limited by arithmetic, eight steps for each product.
#include "cuda/gf256/gf256.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gf256 {
namespace naive_file {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) naive_kernel(const __grid_constant__ Gf256Problem p) {
  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto tile = p.tiles[t];
    const std::int64_t j = tile.col * kThreads + threadIdx.x;
    if (j >= p.n) continue;
    const std::uint8_t* a = p.row_a(tile.row);
    std::uint8_t* c = p.row_c(tile.row) + j;
    unsigned sum = p.accumulate ? *c : 0;
    for (std::int64_t l = 0; l < p.k; ++l) sum ^= multiply(p.row_b(l)[j], a[l], p.poly);
    *c = std::uint8_t(sum);
  }
}

void run(const Gf256Args& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Gf256Problem problem = gf256_problem(args, queue, 1, kThreads);
  launch(queue, naive_kernel, problem.tiles.count(), dim3(kThreads), problem);
}

}  // namespace naive_file

Kernel<Gf256Args> naive() {
  using namespace naive_file;
  return {"naive", "one thread per byte of C, shifts and xors", declines_nothing,
          gf256_pointer_bytes, run};
}

}  // namespace mblas::cuda::gf256
