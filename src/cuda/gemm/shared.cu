// Tiles of A and B are staged in shared memory, and each thread keeps a square of C in registers,
// so that an element is read from global memory once a tile and from shared memory once for kMicro
// multiplications. Limited by the shared-memory loads (2 kMicro for kMicro^2 multiply-adds) and by
// waiting for each tile.
#include "cuda/gemm/gemm.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace shared_file {

constexpr int kThreads = 16;              // in each direction
constexpr int kMicro = 4;                 // elements of C per thread in each direction
constexpr int kTile = kThreads * kMicro;  // of C
constexpr int kTileK = 16;
constexpr int kBlock = kThreads * kThreads;
static_assert(kTile * kTileK % kBlock == 0, "every thread loads as many elements");

/// A tile of an operand, by depth and then by row of A or column of B. The padding spreads the
/// stores of a warp that walks along the depth over the banks.
template <class Acc>
using Panel = Acc[kTileK][kTile + 1];

/// Fills `panel` from the operand at `x`: `outer` is the stride along the tile, `depth` along k.
/// Consecutive threads take consecutive addresses. Elements outside the operand become 0, on both
/// sides of a product.
template <class In>
__device__ void load(Panel<Accumulator<In>>& panel, const In* x, std::int64_t outer,
                     std::int64_t depth, std::int64_t outer_size, std::int64_t depth_size,
                     bool conjugate) {
  const int thread = int(threadIdx.y) * kThreads + int(threadIdx.x);
#pragma unroll
  for (int e = thread; e < kTile * kTileK; e += kBlock) {
    const int l = depth == 1 ? e % kTileK : e / kTile;
    const int i = depth == 1 ? e / kTileK : e % kTile;
    panel[l][i] = i < outer_size && l < depth_size ? widen(x[i * outer + l * depth], conjugate)
                                                   : Accumulator<In>{};
  }
}

template <class In, class Out>
__global__ void __launch_bounds__(kBlock)
    shared_kernel(const __grid_constant__ GemmProblem<Accumulator<In>> p) {
  using Acc = Accumulator<In>;
  __shared__ Panel<Acc> panel_a, panel_b;

  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto tile = p.tiles[t];
    const std::int64_t i0 = tile.row * kTile, j0 = tile.col * kTile;
    const In* a = static_cast<const In*>(p.A.at(tile.batch)) + i0 * p.a.row;
    const In* b = static_cast<const In*>(p.B.at(tile.batch)) + j0 * p.b.col;

    Acc sum[kMicro][kMicro] = {};
    for (std::int64_t l0 = 0; l0 < p.k; l0 += kTileK) {
      load(panel_a, a + l0 * p.a.col, p.a.row, p.a.col, p.m - i0, p.k - l0, p.conjugate_a);
      load(panel_b, b + l0 * p.b.row, p.b.col, p.b.row, p.n - j0, p.k - l0, p.conjugate_b);
      __syncthreads();
#pragma unroll 4
      for (int l = 0; l < kTileK; ++l) {
        Acc row[kMicro], col[kMicro];
#pragma unroll
        for (int e = 0; e < kMicro; ++e) {
          row[e] = panel_a[l][threadIdx.y + e * kThreads];
          col[e] = panel_b[l][threadIdx.x + e * kThreads];
        }
#pragma unroll
        for (int r = 0; r < kMicro; ++r)
#pragma unroll
          for (int c = 0; c < kMicro; ++c) sum[r][c] = multiply_add(row[r], col[c], sum[r][c]);
      }
      __syncthreads();
    }

    Out* c0 = static_cast<Out*>(p.C.at(tile.batch));
#pragma unroll
    for (int r = 0; r < kMicro; ++r) {
      const std::int64_t i = i0 + threadIdx.y + r * kThreads;
#pragma unroll
      for (int c = 0; c < kMicro; ++c) {
        const std::int64_t j = j0 + threadIdx.x + c * kThreads;
        if (i < p.m && j < p.n) store(p, sum[r][c], c0 + i * p.ldc + j);
      }
    }
  }
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  with_gemm_types(args.in, args.out, [&]<class In, class Out>() {
    const auto problem = gemm_problem<In, Out>(args, queue, kTile, kTile);
    launch(queue, shared_kernel<In, Out>, problem.tiles.count(), dim3(kThreads, kThreads), problem);
  });
}

}  // namespace shared_file

Kernel<GemmArgs> shared() {
  using namespace shared_file;
  return {"shared", "64x64 tiles through shared memory, 4x4 elements of C per thread",
          declines_emulation, gemm_pointer_bytes, run};
}

}  // namespace mblas::cuda::gemm
