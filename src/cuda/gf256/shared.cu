// A product is two lookups: the coefficient's multiples of the low and of the high half of the
// byte, 16 of each. A block builds those tables in shared memory for a square of A and uses them
// for kThreads columns, whose sums stay in registers. A warp looks up one coefficient at a time, so
// its 16-byte table is read without bank conflicts. Limited by the shared-memory loads, two for
// each product.
#include "cuda/gf256/gf256.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gf256 {
namespace shared_file {

constexpr int kThreads = 256;  // and columns of C in a tile
constexpr int kRows = 16;      // of C in a tile
constexpr int kDepth = 16;     // rows of B for which the tables are built at a time
static_assert(kRows * kDepth == kThreads, "each thread builds the table of one coefficient");

struct Table {
  std::uint8_t low[16], high[16];  // a x for x below 16, and a times 16 x
};

__device__ void build(Table& table, unsigned a, unsigned poly) {
  const auto fill = [&](std::uint8_t(&half)[16]) {
    half[0] = 0;
#pragma unroll
    for (int bit = 1; bit < 16; bit *= 2, a = times_x(a, poly))
#pragma unroll
      for (int x = 0; x < bit; ++x) half[bit + x] = std::uint8_t(half[x] ^ a);
  };
  fill(table.low);
  fill(table.high);
}

__global__ void __launch_bounds__(kThreads) shared_kernel(const __grid_constant__ Gf256Problem p) {
  __shared__ Table tables[kDepth][kRows];

  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto tile = p.tiles[t];
    const std::int64_t i0 = tile.row * kRows;
    const std::int64_t j = tile.col * kThreads + threadIdx.x;
    unsigned sum[kRows] = {};
    for (std::int64_t l0 = 0; l0 < p.k; l0 += kDepth) {
      const int depth = int(threadIdx.x) % kDepth, row = int(threadIdx.x) / kDepth;
      const bool inside = i0 + row < p.m && l0 + depth < p.k;
      build(tables[depth][row], inside ? p.row_a(i0 + row)[l0 + depth] : 0, p.poly);
      __syncthreads();
      if (j < p.n) {
        for (int l = 0; l < kDepth && l0 + l < p.k; ++l) {
          const unsigned b = p.row_b(l0 + l)[j];
#pragma unroll
          for (int r = 0; r < kRows; ++r)
            sum[r] ^= tables[l][r].low[b & 15] ^ tables[l][r].high[b >> 4];
        }
      }
      __syncthreads();
    }
    if (j < p.n) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (i0 + r >= p.m) break;
        std::uint8_t* c = p.row_c(i0 + r) + j;
        *c = std::uint8_t(p.accumulate ? *c ^ sum[r] : sum[r]);
      }
    }
  }
}

void run(const Gf256Args& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Gf256Problem problem = gf256_problem(args, queue, kRows, kThreads);
  launch(queue, shared_kernel, problem.tiles.count(), dim3(kThreads), problem);
}

}  // namespace shared_file

Kernel<Gf256Args> shared() {
  using namespace shared_file;
  return {"shared", "split tables of each coefficient in shared memory", declines_nothing,
          gf256_pointer_bytes, run};
}

}  // namespace mblas::cuda::gf256
