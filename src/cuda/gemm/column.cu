// One-dimensional register tiling: tiles of A and B are staged in shared memory, and each thread
// computes kMicro elements of a column of C, for which it reads an element of B once. Limited by
// shared memory: kMicro + 1 loads for kMicro multiply-adds, half of what one element per thread
// needs; `shared` tiles in both directions.
#include "cuda/gemm/gemm.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace column_file {

constexpr int kTile = 64, kTileK = 8, kMicro = 8;
constexpr int kThreads = kTile * kTile / kMicro;
static_assert(kTile * kTileK == kThreads, "every thread loads one element of each tile");

template <class T>
__global__ void __launch_bounds__(kThreads)
    column_kernel(const __grid_constant__ GemmProblem<T> p) {
  __shared__ T tile_a[kTile][kTileK + 1], tile_b[kTileK][kTile + 1];
  const int thread = int(threadIdx.x), x = thread % kTile, y = thread / kTile * kMicro;
  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto tile = p.tiles[t];
    const std::int64_t i0 = tile.row * kTile, j0 = tile.col * kTile;
    const T* a = static_cast<const T*>(p.A.at(tile.batch));
    const T* b = static_cast<const T*>(p.B.at(tile.batch));

    T sum[kMicro] = {};
    for (std::int64_t l0 = 0; l0 < p.k; l0 += kTileK) {
      // Consecutive threads take consecutive addresses of A and of B, whichever way they lie.
      const int i = p.a.col == 1 ? thread / kTileK : thread % kTile;
      const int al = p.a.col == 1 ? thread % kTileK : thread / kTile;
      const int j = p.b.col == 1 ? thread % kTile : thread / kTileK;
      const int bl = p.b.col == 1 ? thread / kTile : thread % kTileK;
      tile_a[i][al] =
          i0 + i < p.m && l0 + al < p.k ? a[(i0 + i) * p.a.row + (l0 + al) * p.a.col] : T{};
      tile_b[bl][j] =
          j0 + j < p.n && l0 + bl < p.k ? b[(l0 + bl) * p.b.row + (j0 + j) * p.b.col] : T{};
      __syncthreads();
#pragma unroll
      for (int l = 0; l < kTileK; ++l) {
        const T right = tile_b[l][x];
#pragma unroll
        for (int e = 0; e < kMicro; ++e) sum[e] = multiply_add(tile_a[y + e][l], right, sum[e]);
      }
      __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < kMicro; ++e) {
      if (i0 + y + e < p.m && j0 + x < p.n)
        store(p, sum[e], static_cast<T*>(p.C.at(tile.batch)) + (i0 + y + e) * p.ldc + j0 + x);
    }
  }
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::f64) return "computes float and double only";
  return declines_emulation(args, device);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const auto launch_as = [&]<class T>() {
    const auto problem = gemm_problem<T, T>(args, queue, kTile, kTile);
    launch(queue, column_kernel<T>, problem.tiles.count(), dim3(kThreads), problem);
  };
  if (args.in == DType::f32)
    launch_as.template operator()<float>();
  else
    launch_as.template operator()<double>();
}

}  // namespace column_file

Kernel<GemmArgs> column() {
  using namespace column_file;
  return {"column", "64x64 tiles through shared memory, eight elements of a column of C per thread",
          declines, gemm_pointer_bytes, run};
}

}  // namespace mblas::cuda::gemm
