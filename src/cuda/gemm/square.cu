// The first step from the plain kernel: square tiles of A and B are staged in shared memory and
// each thread computes one element of C, so that an element is read from global memory once for
// kEdge products. Limited by shared memory: two loads for every multiply-add. The edge of the tile
// is the edge of the block, and trades reuse for the number of blocks that share a multiprocessor:
// 32 is the most that a block of 1024 threads allows, 1 is no tile at all.
#include "cuda/gemm/gemm.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace square_file {

template <class T, int kEdge>
__global__ void __launch_bounds__(kEdge* kEdge)
    square_kernel(const __grid_constant__ GemmProblem<T> p) {
  __shared__ T tile_a[kEdge][kEdge], tile_b[kEdge][kEdge];
  const int x = int(threadIdx.x), y = int(threadIdx.y);
  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto tile = p.tiles[t];
    const std::int64_t i0 = tile.row * kEdge, j0 = tile.col * kEdge;
    const T* a = static_cast<const T*>(p.A.at(tile.batch));
    const T* b = static_cast<const T*>(p.B.at(tile.batch));

    T sum{};
    for (std::int64_t l0 = 0; l0 < p.k; l0 += kEdge) {
      // Consecutive threads take consecutive addresses of A and of B, whichever way they lie.
      const int i = p.a.col == 1 ? y : x, al = p.a.col == 1 ? x : y;
      const int j = p.b.col == 1 ? x : y, bl = p.b.col == 1 ? y : x;
      tile_a[i][al] =
          i0 + i < p.m && l0 + al < p.k ? a[(i0 + i) * p.a.row + (l0 + al) * p.a.col] : T{};
      tile_b[bl][j] =
          j0 + j < p.n && l0 + bl < p.k ? b[(l0 + bl) * p.b.row + (j0 + j) * p.b.col] : T{};
      __syncthreads();
#pragma unroll
      for (int l = 0; l < kEdge; ++l) sum = multiply_add(tile_a[y][l], tile_b[l][x], sum);
      __syncthreads();
    }
    if (i0 + y < p.m && j0 + x < p.n)
      store(p, sum, static_cast<T*>(p.C.at(tile.batch)) + (i0 + y) * p.ldc + j0 + x);
  }
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::f64) return "computes float and double only";
  return declines_emulation(args, device);
}

template <int kEdge>
void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const auto launch_as = [&]<class T>() {
    const auto problem = gemm_problem<T, T>(args, queue, kEdge, kEdge);
    launch(queue, square_kernel<T, kEdge>, problem.tiles.count(), dim3(kEdge, kEdge), problem);
  };
  if (args.in == DType::f32)
    launch_as.template operator()<float>();
  else
    launch_as.template operator()<double>();
}

}  // namespace square_file

Kernel<GemmArgs> square(int edge) {
  using namespace square_file;
  const auto row = [](std::string_view name, std::string_view note, auto run) {
    return Kernel<GemmArgs>{name, note, declines, gemm_pointer_bytes, run};
  };
  switch (edge) {
    case 32:
      return row("square_32", "32x32 tiles, one element of C per thread", run<32>);
    case 16:
      return row("square_16", "16x16 tiles, one element of C per thread", run<16>);
    case 8:
      return row("square_8", "8x8 tiles, one element of C per thread", run<8>);
    case 4:
      return row("square_4", "4x4 tiles, one element of C per thread", run<4>);
    case 2:
      return row("square_2", "2x2 tiles, one element of C per thread", run<2>);
    default:
      return row("square_1", "one thread a block, no tile", run<1>);
  }
}

}  // namespace mblas::cuda::gemm
