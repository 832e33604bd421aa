// Products by byte permutes. Three bits of four elements are the selector of one instruction that
// looks four bytes up in a table of eight, in two registers: three lookups, for bits 0 to 2, 4 to 6
// and for 3 and 7, and half as many xors multiply four elements, without shared memory for each.
// What turns the elements into selectors, 13 instructions for eight, serves all rows of C.
//
// Limited by memory for one row of C or of B, and by the permutes beyond that. Measured on an H200,
// 1.2 GB moved, as the share of a copy of as many bytes: 10 + 1 shards 0.96, 4 + 2 0.85, one row of
// B added to four of C 0.94; rows that begin at different places of a 16-byte word: 10 + 1 0.72, 4
// + 2 0.60.
#include "cuda/gf256/columns.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gf256 {
namespace permute_file {

constexpr int kThreads = 128;
constexpr int kStrip = 32 * kColumns;  // columns of a warp
constexpr int kDepth = 16;             // rows of B, at most

/// Blocks that a multiprocessor is to hold.
constexpr int blocks_of(int rows) {
  const int blocks[] = {9, 7, 6, 5};
  return blocks[rows - 1];
}

/// A coefficient's products by 0 … 7, by 16 times those, and by 0, 8, 128 and 136: a byte each.
struct Table {
  unsigned low[2], high[2], rest;
};

__device__ Table table_of(unsigned a, unsigned poly) {
  unsigned power[8];
#pragma unroll
  for (int i = 0; i < 8; ++i, a = times_x(a, poly)) power[i] = a;
  const auto four = [](unsigned x, unsigned y) { return x << 8 | y << 16 | (x ^ y) << 24; };
  Table t;
  t.low[0] = four(power[0], power[1]);
  t.low[1] = t.low[0] ^ power[2] * 0x01010101;
  t.high[0] = four(power[4], power[5]);
  t.high[1] = t.high[0] ^ power[6] * 0x01010101;
  t.rest = four(power[3], power[7]);
  return t;
}

template <int kRows, bool kAligned>
__global__ void __launch_bounds__(kThreads, blocks_of(kRows))
    permute_kernel(const __grid_constant__ Gf256Problem p, const __grid_constant__ Strips strips) {
  __shared__ uint4 tables[kDepth][kRows];  // low and high
  __shared__ unsigned rests[kDepth][kRows];
  __shared__ const std::uint8_t* from[kDepth];
  __shared__ std::uint8_t* to[kRows];

  const int lane = int(threadIdx.x) % 32, k = int(p.k);
  const std::int64_t step = std::int64_t(gridDim.x) * (kThreads / 32);
  for (std::int64_t tile = blockIdx.y; tile < p.tiles.rows; tile += gridDim.y) {
    const std::int64_t i0 = tile * kRows;
    const int m = int(p.m - i0 < kRows ? p.m - i0 : kRows);
    if (tile != blockIdx.y) __syncthreads();
    for (int x = int(threadIdx.x); x < k * kRows; x += kThreads) {
      const int l = x / kRows, r = x % kRows;
      const Table t = table_of(r < m ? p.row_a(i0 + r)[l] : 0, p.poly);
      tables[l][r] = make_uint4(t.low[0], t.low[1], t.high[0], t.high[1]);
      rests[l][r] = t.rest;
      if (r == 0) from[l] = p.row_b(l);
    }
    // Rows that there are not are not stored.
    if (int(threadIdx.x) < kRows)
      to[threadIdx.x] = p.row_c(i0 + (int(threadIdx.x) < m ? threadIdx.x : 0));
    __syncthreads();

    std::int64_t strip = std::int64_t(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
    std::int64_t j = strips.begin(strip, kStrip) + lane * kColumns;
    for (; strip < strips.count; strip += step, j += step * kStrip) {
      Words old[kRows] = {};
      if (p.accumulate) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) old[r] = load_columns<kAligned>(to[r] + j);
      }
      // Of eight columns, in two words of B: the first word has bytes 0 and 1 of both by turns, the
      // second bytes 2 and 3.
      unsigned sum[kRows][2][2] = {};
      const auto steps = [&]<int kCount>(int& l) {
#pragma unroll 1
        for (; l + kCount <= k; l += kCount) {
          Words x[kCount];
#pragma unroll
          for (int s = 0; s < kCount; ++s) x[s] = load_columns<kAligned>(from[l + s] + j);
#pragma unroll
          for (int s = 0; s < kCount; ++s) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              const unsigned u = x[s].w[2 * h], v = x[s].w[2 * h + 1];
              const unsigned low = select<0x0F0F0F0F>(u, v << 4);
              const unsigned high = select<0x0F0F0F0F>(u >> 4, v);
              const unsigned low7 = low & 0x77777777, high7 = high & 0x77777777;
              const unsigned rest = (low >> 3 & 0x11111111) | (high >> 2 & 0x22222222);
#pragma unroll
              for (int r = 0; r < kRows; ++r) {
                const uint4 t = tables[l + s][r];
                const unsigned t8 = rests[l + s][r];
#pragma unroll
                for (int e = 0; e < 2; ++e)
                  sum[r][h][e] ^= __byte_perm(t.x, t.y, low7 >> 16 * e) ^
                                  __byte_perm(t.z, t.w, high7 >> 16 * e) ^
                                  __byte_perm(t8, 0, rest >> 16 * e);
              }
            }
          }
        }
      };
      int l = 0;
      steps.template operator()<4>(l);
      steps.template operator()<2>(l);
      steps.template operator()<1>(l);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        Words result;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          result.w[2 * h] = __byte_perm(sum[r][h][0], sum[r][h][1], 0x6420) ^ old[r].w[2 * h];
          result.w[2 * h + 1] =
              __byte_perm(sum[r][h][0], sum[r][h][1], 0x7531) ^ old[r].w[2 * h + 1];
        }
        store_columns<kAligned, 32>(to[r] + j, result, r < m);
      }
    }
  }
  compute_edges<kThreads>(p, strips, kStrip);
}

template <int kRows>
void launch_permute(const Gf256Args& args, const CudaQueue& queue) {
  const int misalignment = common_misalignment(args);
  const Strips strips = strips_of(args.n, kStrip, misalignment);
  const Gf256Problem problem = gf256_problem(args, queue, kRows, kStrip);
  const dim3 grid = grid_of(strips, problem.tiles.rows, kThreads / 32, blocks_of(kRows), queue);
  launch_grid(queue, misalignment >= 0 ? permute_kernel<kRows, true> : permute_kernel<kRows, false>,
              grid, dim3(kThreads), 0, problem, strips);
}

void run(const Gf256Args& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  switch (args.m) {
    case 1:
      return launch_permute<1>(args, queue);
    case 2:
      return launch_permute<2>(args, queue);
    case 3:
      return launch_permute<3>(args, queue);
    default:
      return launch_permute<4>(args, queue);
  }
}

/// By the times of both kernels on an H200: those of this one are as 3 to turn a row of B into
/// selectors and 2 for each row of C.
const char* declines(const Gf256Args& args, const DeviceInfo&) {
  const std::int64_t rows = std::min<std::int64_t>(args.m, 4);
  if (args.k > kDepth || args.k * (3 + 2 * rows) > 65)
    return "with so many rows of B the tensor cores are faster";
  return nullptr;
}

}  // namespace permute_file

Kernel<Gf256Args> permute() {
  using namespace permute_file;
  return {"permute", "table lookups by byte permutes in registers", declines, gf256_pointer_bytes,
          run};
}

}  // namespace mblas::cuda::gf256
