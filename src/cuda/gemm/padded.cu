// fp64 tiles in padded shared memory, for A that is stored by columns: A and B are then both read
// along rows of memory, both tiles are read by depth, and the column of padding keeps the threads
// of a warp out of each other's banks. One element of C per thread. Limited by shared memory: two
// loads of eight bytes for every multiply-add.
#include "cuda/gemm/gemm.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace padded_file {

template <int kEdge>
__global__ void __launch_bounds__(kEdge* kEdge)
    padded_kernel(const __grid_constant__ GemmProblem<double> p) {
  __shared__ double tile_a[kEdge][kEdge + 1], tile_b[kEdge][kEdge + 1];
  const int x = int(threadIdx.x), y = int(threadIdx.y);
  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto tile = p.tiles[t];
    const std::int64_t i0 = tile.row * kEdge, j0 = tile.col * kEdge;
    const auto* a = static_cast<const double*>(p.A.at(tile.batch)) + i0;
    const auto* b = static_cast<const double*>(p.B.at(tile.batch)) + j0;

    double sum = 0;
    for (std::int64_t l0 = 0; l0 < p.k; l0 += kEdge) {
      const bool inside = l0 + y < p.k;
      tile_a[y][x] = inside && i0 + x < p.m ? a[(l0 + y) * p.a.col + x] : 0;
      tile_b[y][x] = inside && j0 + x < p.n ? b[(l0 + y) * p.b.row + x] : 0;
      __syncthreads();
#pragma unroll
      for (int l = 0; l < kEdge; ++l) sum = multiply_add(tile_a[l][y], tile_b[l][x], sum);
      __syncthreads();
    }
    if (i0 + y < p.m && j0 + x < p.n)
      store(p, sum, static_cast<double*>(p.C.at(tile.batch)) + (i0 + y) * p.ldc + j0 + x);
  }
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f64) return "computes double only";
  if (!is_transposed(args.transA)) return "for A stored by columns";
  if (is_transposed(args.transB)) return "for B stored by rows";
  return declines_emulation(args, device);
}

template <int kEdge>
void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const auto problem = gemm_problem<double, double>(args, queue, kEdge, kEdge);
  launch(queue, padded_kernel<kEdge>, problem.tiles.count(), dim3(kEdge, kEdge), problem);
}

}  // namespace padded_file

Kernel<GemmArgs> padded(int edge) {
  using namespace padded_file;
  const auto row = [](std::string_view name, std::string_view note, auto run) {
    return Kernel<GemmArgs>{name, note, declines, gemm_pointer_bytes, run};
  };
  switch (edge) {
    case 32:
      return row("padded_32", "fp64, A by columns: 32x32 tiles with padded rows", run<32>);
    case 16:
      return row("padded_16", "fp64, A by columns: 16x16 tiles with padded rows", run<16>);
    case 8:
      return row("padded_8", "fp64, A by columns: 8x8 tiles with padded rows", run<8>);
    case 4:
      return row("padded_4", "fp64, A by columns: 4x4 tiles with padded rows", run<4>);
    case 2:
      return row("padded_2", "fp64, A by columns: 2x2 tiles with padded rows", run<2>);
    default:
      return row("padded_1", "fp64, A by columns: one thread a block", run<1>);
  }
}

}  // namespace mblas::cuda::gemm
