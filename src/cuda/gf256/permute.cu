// Products by byte permutes. Three bits of four elements are the selector of one instruction that
// looks four bytes up in a table of eight, in two registers: three lookups, for bits 0 to 2, 4 to 6
// and for 3 and 7, and half as many xors multiply four elements, without shared memory for each.
// What turns the elements into selectors, 13 instructions for eight, serves all rows of C.
//
// Limited by memory, and for four rows of C by the permutes as well. Measured on an H200, 1.2 GB
// moved, as the share of a copy of as many bytes: 10 + 1 shards 0.96, 4 + 2 0.96, 10 + 2 0.89, 4 +
// 4 0.89; rows that begin at different places of a 16-byte word: 10 + 1 0.87, 4 + 2 0.85.
#include "cuda/gf256/columns.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gf256 {
namespace permute_file {

constexpr int kDepth = 16;  // rows of B, at most

template <int kRows_, bool kAligned_>
struct Config {
  static constexpr int kRows = kRows_;
  static constexpr bool kAligned = kAligned_;

  // More lines in a strip read tables less often, and leave room for fewer blocks.
  static constexpr int kLines = kRows == 1 ? 4 : 8;
  static constexpr int kStrip = kLines * kLine;
  static constexpr int kPitch = kStrip + 2 * kColumns;  // room at both ends
  static constexpr int kResults = kAligned ? 0 : kRows;
  static constexpr int kBlocks = kRows == 1 ? 9 : kRows == 2 ? 6 : 4;

  static constexpr int kTurns = kAligned ? 16 : 6;
  static constexpr int kShared = kDepth * (int(sizeof(Source)) + kRows * 20) + kRows * 8;
};

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

/// One of the eight bytes of a and b for each of the four lowest digits of `digits`, below 8 in
/// base 16.
__device__ unsigned look_up(unsigned a, unsigned b, unsigned digits) {
  unsigned result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(digits));
  return result;
}

template <class Config>
__global__ void __launch_bounds__(kStripThreads, Config::kBlocks)
    permute_kernel(const __grid_constant__ Gf256Problem p, const __grid_constant__ Strips strips) {
  constexpr int kRows = Config::kRows, kLines = Config::kLines, kStrip = Config::kStrip;
  constexpr int kPitch = Config::kPitch;
  constexpr bool kAligned = Config::kAligned;
  constexpr int kParts = kStrip / (32 * kColumns);  // 16 columns of a thread each
  __shared__ uint4 tables[kDepth][kRows];           // low and high
  __shared__ unsigned rests[kDepth][kRows];
  __shared__ Source from[kDepth];
  __shared__ std::uint8_t* to[kRows];
  extern __shared__ uint4 dynamic[];

  const int lane = int(threadIdx.x) % 32, k = int(p.k);
  const unsigned words =
      shared_address(dynamic) + threadIdx.x / 32 * ((k + Config::kResults) * kPitch);
  const unsigned results = words + k * kPitch + kColumns;

  for (std::int64_t tile = blockIdx.y; tile < p.tiles.rows; tile += gridDim.y) {
    const std::int64_t i0 = tile * kRows;
    const int m = int(p.m - i0 < kRows ? p.m - i0 : kRows);
    if (tile != blockIdx.y) __syncthreads();
    for (int x = int(threadIdx.x); x < k * kRows; x += kStripThreads) {
      const int l = x / kRows, r = x % kRows;
      const Table t = table_of(r < m ? p.row_a(i0 + r)[l] : 0, p.poly);
      tables[l][r] = make_uint4(t.low[0], t.low[1], t.high[0], t.high[1]);
      rests[l][r] = t.rest;
      if (r == 0) from[l] = source_of<kAligned, true>(p.row_b(l) + strips.first);
    }
    // Rows that there are not are not stored.
    if (int(threadIdx.x) < kRows)
      to[threadIdx.x] = p.row_c(i0 + (int(threadIdx.x) < m ? threadIdx.x : 0)) + strips.first;
    __syncthreads();

    const WarpStrips mine(strips);
    const std::int64_t step = std::int64_t(mine.step) * kStrip;
    std::int64_t j = mine.next * kStrip;
    if (mine.left > 0) copy_strip<kDepth, kLines, kPitch, kAligned, true>(words, from, k, j);
#pragma unroll 1
    for (int left = mine.left; left > 0; --left, j += step) {
      Words old[kRows][kParts] = {};
      if (kAligned && p.accumulate) {
#pragma unroll
        for (int r = 0; r < kRows; ++r)
#pragma unroll
          for (int part = 0; part < kParts; ++part)
            old[r][part] = load_words(to[r] + j + (part * 32 + lane) * kColumns);
      }
      commit_copies();
      wait_for_copies<0>();
      __syncwarp();
      // Of eight columns, in two words of B: the first word has bytes 0 and 1 of both by turns, the
      // second bytes 2 and 3.
      unsigned sum[kRows][2 * kParts][2] = {};
      const auto add_rows = [&]<int kCount>(int l) {
        Words x[kCount][kParts];
#pragma unroll
        for (int s = 0; s < kCount; ++s)
#pragma unroll
          for (int part = 0; part < kParts; ++part) {
            const unsigned at = words + (l + s) * kPitch + part * 32 * kColumns;
            if constexpr (kAligned) {
              x[s][part] = load_shared(at + lane * kColumns);
            } else {
              // Words of four columns, those of a warp side by side.
              const unsigned shift = from[l + s].shift;
#pragma unroll
              for (int i = 0; i < 4; ++i)
                x[s][part].w[i] =
                    load_shared_shifted(at + (i * 32 + lane) * 4 + shift / 4 * 4, shift);
            }
          }
#pragma unroll
        for (int s = 0; s < kCount; ++s) {
#pragma unroll
          for (int h = 0; h < 2 * kParts; ++h) {
            const unsigned u = x[s][h / 2].w[h % 2 * 2], v = x[s][h / 2].w[h % 2 * 2 + 1];
            const unsigned low = select<0x0F0F0F0F>(u, v << 4);
            const unsigned high = select<0x0F0F0F0F>(u >> 4, v);
            const unsigned low7 = low & 0x77777777, high7 = high & 0x77777777;
            const unsigned rest = (low >> 3 & 0x11111111) | (high >> 2 & 0x22222222);
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
              const uint4 t = tables[l + s][r];
              const unsigned t8 = rests[l + s][r];
#pragma unroll
              for (int e = 0; e < 2; ++e) {
                unsigned& to_add = sum[r][h][e];
                to_add = to_add ^ look_up(t.x, t.y, low7 >> 16 * e) ^
                         look_up(t.z, t.w, high7 >> 16 * e) ^ look_up(t8, 0, rest >> 16 * e);
              }
            }
          }
        }
      };
      int l = 0;
#pragma unroll 1
      for (; l + 4 <= k; l += 4) add_rows.template operator()<4>(l);
      if (k & 2) add_rows.template operator()<2>(l);
      if (k & 1) add_rows.template operator()<1>(k - 1);
      __syncwarp();
      if (left > 1) copy_strip<kDepth, kLines, kPitch, kAligned, true>(words, from, k, j + step);

#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          Words result;
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const auto& s = sum[r][2 * part + h];
            result.w[2 * h] = __byte_perm(s[0], s[1], 0x6420);
            result.w[2 * h + 1] = __byte_perm(s[0], s[1], 0x7531);
          }
          if constexpr (kAligned) {
            add_words(result, old[r][part]);
            if (r < m) store_words(to[r] + j + (part * 32 + lane) * kColumns, result);
          } else {
#pragma unroll
            for (int i = 0; i < 4; ++i)
              store_shared_word(results + r * kPitch + ((part * 4 + i) * 32 + lane) * 4,
                                result.w[i]);
          }
        }
      }
      if constexpr (!kAligned) {
        __syncwarp();
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          if (r < m)
            store_strip<kStrip / kColumns, 32>(results + r * kPitch, lane, to[r] + j, p.accumulate);
        __syncwarp();
      }
    }
  }
  compute_edges(p, strips, kStrip);
}

template <int kRows>
void launch_permute(const Gf256Args& args, const CudaQueue& queue) {
  const int misalignment = common_misalignment(args);
  const auto with = [&]<bool kAligned>() {
    using C = Config<kRows, kAligned>;
    launch_strips<permute_kernel<C>>(queue, gf256_problem(args, queue, kRows, C::kStrip), C::kStrip,
                                     misalignment, C::kBlocks, args.accumulate ? 1 : C::kTurns,
                                     C::kShared,
                                     kStripWarps * (int(args.k) + C::kResults) * C::kPitch);
  };
  if (misalignment >= 0)
    with.template operator()<true>();
  else
    with.template operator()<false>();
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

/// By the times of both kernels on an H200: those of this one are as 4 to turn a row of B into
/// selectors and 3 for each row of C.
const char* declines(const Gf256Args& args, const DeviceInfo&) {
  const std::int64_t rows = std::min<std::int64_t>(args.m, 4);
  if (args.k > kDepth || args.k * (4 + 3 * rows) > 117)
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
