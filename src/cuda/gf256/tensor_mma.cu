// Binary tensor cores on bytes as they lie. Times a coefficient is an 8×8 matrix of bits, so a
// column of C is a matrix of 8m×8k bits times the 8k bits of a column of B: the parities of what
// `and` and population count give. The instruction wants 32 bits along k in a register: 4 bytes of
// one column, and which ones does not matter, as the matrix can be arranged to suit. Four threads
// load 16 columns of all rows, 16 bytes at a time, and turn squares of 4 bytes; the eight bits of a
// byte of C come to one thread as sums of four products, so that the results need no exchange
// either, and the four threads store 16 columns of four rows.
//
// A sum of 32 bits gives one bit, so what limits 10 + 4 shards is packing: 160 instructions for 16
// bytes of C a thread, on the pipes of the integers and of the multiply-adds by halves, beside 32
// to turn squares and 32 products. For many rows of B the tensor cores limit: 19,700 products of
// bits a cycle of a multiprocessor with k of 256, 14,500 with 128.
//
// Measured on an H200, 1.2 GB moved, as the share of a copy of as many bytes: 20 + 4 shards 0.94,
// 10 + 4 0.84, 64 + 8 0.82, 32 + 16 0.77, 100 + 20 0.53. Lookups in tables in shared memory could
// not exceed 0.38 and 0.24 for the last two: two loads of a byte for each product. Rows that begin
// at different places of a 16-byte word: 0.39, 0.36 and 0.33 for 10 + 4, 20 + 4 and 32 + 16.
#include "cuda/gf256/columns.cuh"
#include "cuda/gf256/selection.hpp"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gf256 {
namespace tensor_mma_file {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kStrip = 8 * kColumns;  // columns of a warp
constexpr int kGroup = 4;             // rows of C whose bits one sum of four products has
constexpr int kRows = 32;             // of C in a tile
constexpr int kSources = 16;   // rows of B whose bytes of a column fill a register of four threads
constexpr int kMostWords = 7;  // such registers for a column

/// Blocks that a multiprocessor is to hold.
constexpr int blocks_of(int words, bool aligned, bool one) {
  if (words == 1) return aligned ? 5 : 7;
  if (words == 2) return aligned && !one ? 3 : 4;
  return words == 4 ? 3 : 2;
}

/// Bit b of byte i of the result is bit i of c x^b: what c times an element is, as an 8×8 matrix of
/// bits.
__device__ inline std::uint64_t bit_matrix(unsigned c, unsigned poly) {
  std::uint64_t x = 0;
#pragma unroll
  for (int b = 0; b < 8; ++b, c = times_x(c, poly)) x |= std::uint64_t(c) << 8 * b;
  const auto swap = [&](int distance, std::uint64_t mask) {
    const std::uint64_t t = (x ^ x >> distance) & mask;
    x ^= t ^ t << distance;
  };
  swap(7, 0x00AA00AA00AA00AA);
  swap(14, 0x0000CCCC0000CCCC);
  swap(28, 0x00000000F0F0F0F0);
  return x;
}

/// d += the popcounts of a b: a 16 columns of C, b 8 rows of bits, 128 or 256 bits along k.
__device__ void multiply(unsigned (&d)[4], unsigned a0, unsigned a1, unsigned b0) {
  asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a0), "r"(a1), "r"(b0));
}
__device__ void multiply(unsigned (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                         unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, "
      "%7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// Bytes of a and b, where the program has it: not once for each use.
template <unsigned kBytes>
__device__ unsigned pick(unsigned a, unsigned b) {
  unsigned result;
  asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "n"(kBytes));
  return result;
}

/// kWords registers have the bytes of a column: of up to 16 kWords rows of B. kOne: C has only one
/// group of rows.
template <int kWords, bool kAligned, bool kOne>
__global__ void __launch_bounds__(kThreads, blocks_of(kWords, kAligned, kOne))
    mma_kernel(const __grid_constant__ Gf256Problem p, const __grid_constant__ Strips strips,
               std::int64_t a_col) {
  __shared__ unsigned bits[kRows / kGroup][4][kWords][32];  // as the lanes of a warp take them
  __shared__ const std::uint8_t* from[kWords * kSources];
  __shared__ std::uint8_t* to[kRows];

  const int lane = int(threadIdx.x) % 32, part = lane % 4;
  const int k = int(p.k);
  const std::int64_t step = std::int64_t(gridDim.x) * kWarps;

  for (std::int64_t tile = blockIdx.y; tile < p.tiles.rows; tile += gridDim.y) {
    const std::int64_t i0 = tile * kRows;
    const int m = int(p.m - i0 < kRows ? p.m - i0 : kRows);
    const int groups = kOne ? 1 : (m + kGroup - 1) / kGroup;
    if (tile != blockIdx.y) __syncthreads();
    // Rows that there are not are others: of B, as their coefficients are 0; of C, as they are not
    // stored.
    for (int x = int(threadIdx.x); x < kWords * kSources; x += kThreads)
      from[x] = k == 0 ? nullptr : p.row_b(x < k ? x : x - x % 4 < k ? x - x % 4 : 0);
    if (int(threadIdx.x) < kRows)
      to[threadIdx.x] = p.row_c(i0 + (int(threadIdx.x) < m ? threadIdx.x : 0));
    for (int x = int(threadIdx.x); x < groups * kGroup * kWords * kSources; x += kThreads) {
      const int r = x / (kWords * kSources), l = x % (kWords * kSources);
      const unsigned c = r < m && l < k ? p.row_a(i0 + r)[a_col + l] : 0;
      const std::uint64_t matrix = bit_matrix(c, p.poly);
      // Byte l / 4 mod 4 of the register that lane l mod 4 of four has.
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int owner = (r % kGroup * 2 + i % 2) * 4 + l % 4;
        auto* bytes =
            reinterpret_cast<std::uint8_t*>(&bits[r / kGroup][i / 2][l / kSources][owner]);
        bytes[l / 4 % 4] = std::uint8_t(matrix >> 8 * i);
      }
    }
    __syncthreads();

    // Sixteen columns of four rows in sixteen; turned, a word for each column.
    unsigned data[kWords][4][4];
    const auto turn = [&](const auto& raw) {
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        const auto& u = raw[w];
        auto& v = data[w];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const unsigned a = pick<0x5140>(u[0][i], u[1][i]), b = pick<0x5140>(u[2][i], u[3][i]);
          const unsigned c = pick<0x7362>(u[0][i], u[1][i]), d = pick<0x7362>(u[2][i], u[3][i]);
          v[0][i] = pick<0x5410>(a, b);  // column 4 i
          v[1][i] = pick<0x7632>(a, b);
          v[2][i] = pick<0x5410>(c, d);
          v[3][i] = pick<0x7632>(c, d);
        }
      }
    };
    const auto multiply_group = [&](const unsigned(&b)[4][kWords], std::uint8_t* at, bool has) {
      Words old = {};
      if (p.accumulate) old = load_columns<kAligned>(at);
      Words sum = {};
#pragma unroll
      for (int q = 3; q >= 0; --q) {  // bits 2 q and 2 q + 1
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          unsigned d[2][4] = {};  // columns 4 i and 4 i + 1, 4 i + 2 and 4 i + 3
#pragma unroll
          for (int h = 0; h < 2; ++h) {
#pragma unroll
            for (int w = 0; w + 1 < kWords; w += 2)
              multiply(d[h], data[w][2 * h][i], data[w][2 * h + 1][i], data[w + 1][2 * h][i],
                       data[w + 1][2 * h + 1][i], b[q][w], b[q][w + 1]);
            if constexpr (kWords % 2)
              multiply(d[h], data[kWords - 1][2 * h][i], data[kWords - 1][2 * h + 1][i],
                       b[q][kWords - 1]);
          }
          const auto last_bytes = [&](int bit) {
            return __byte_perm(d[0][bit] + (d[1][bit] << 16), d[0][2 + bit] + (d[1][2 + bit] << 16),
                               0x6240);
          };
          const unsigned two = select<0x01010101>(last_bytes(0), last_bytes(1) << 1);
          sum.w[i] = select<0x03030303>(two, sum.w[i] << 2);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) sum.w[i] ^= old.w[i];
      store_columns<kAligned, 8>(at, sum, has);
    };
    const auto bits_of = [&](int group, unsigned(&b)[4][kWords]) {
#pragma unroll
      for (int x = 0; x < 4 * kWords; ++x)
        b[x / kWords][x % kWords] = bits[group][x / kWords][x % kWords][lane];
    };

    const std::int64_t strip = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / 32;
    std::int64_t j = strips.begin(strip, kStrip) + lane / 4 * kColumns;
    std::int64_t left = strip < strips.count ? (strips.count - strip + step - 1) / step : 0;
    if constexpr (kAligned && kWords <= 2) {
      // The next strip is on its way while one is multiplied. Rows that there are not stay 0.
      unsigned next[kWords][4][4] = {};
      const std::uint8_t* rows[kWords * 4];
#pragma unroll
      for (int x = 0; x < kWords * 4; ++x) rows[x] = from[x * 4 + part];
      const auto load = [&](std::int64_t at) {
#pragma unroll
        for (int x = 0; x < kWords * 4; ++x)
          load_words_if(x * 4 < k, rows[x] + at, next[x / 4][x % 4]);
      };
      unsigned b[4][kWords];
      if constexpr (kOne) bits_of(0, b);
      std::uint8_t* const only = to[part];
      if (left > 0) load(j);
      for (; left > 0; --left, j += step * kStrip) {
        turn(next);
        if (left > 1) load(j + step * kStrip);
        if constexpr (kOne) {
          multiply_group(b, only + j, part < m);
        } else {
#pragma unroll 1
          for (int group = 0; group < groups; ++group) {
            bits_of(group, b);
            multiply_group(b, to[group * kGroup + part] + j, group * kGroup + part < m);
          }
        }
      }
    } else {
      for (; left > 0; --left, j += step * kStrip) {
#pragma unroll
        for (int x = 0; x < kWords * 4; ++x) {
          Words row = {};
          if (x * 4 < k) row = load_columns<kAligned>(from[x * 4 + part] + j);
#pragma unroll
          for (int i = 0; i < 4; ++i) data[x / 4][x % 4][i] = row.w[i];
        }
        turn(data);
#pragma unroll 1
        for (int group = 0; group < groups; ++group) {
          unsigned b[4][kWords];
          bits_of(group, b);
          multiply_group(b, to[group * kGroup + part] + j, group * kGroup + part < m);
        }
      }
    }
  }
  compute_edges<kThreads>(p, strips, kStrip, a_col);
}

template <int kWords, bool kAligned, bool kOne>
void launch_mma(const CudaQueue& queue, const Gf256Problem& problem, const Strips& strips,
                std::int64_t a_col) {
  const dim3 grid =
      grid_of(strips, problem.tiles.rows, kWarps, blocks_of(kWords, kAligned, kOne), queue);
  launch_grid(queue, mma_kernel<kWords, kAligned, kOne>, grid, dim3(kThreads), 0, problem, strips,
              a_col);
}

void run(const Gf256Args& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const int misalignment = common_misalignment(args);
  const Strips strips = strips_of(args.n, kStrip, misalignment);
  Gf256Problem problem = gf256_problem(args, queue, kRows, kStrip);
  const DeviceInput all_b = problem.B;
  const auto launch_as = [&]<int kWords>(std::int64_t a_col) {
    const auto with = [&]<bool kAligned>() {
      if (kWords <= 2 && args.m <= kGroup)
        launch_mma<kWords, kAligned, kWords <= 2>(queue, problem, strips, a_col);
      else
        launch_mma<kWords, kAligned, false>(queue, problem, strips, a_col);
    };
    if (misalignment >= 0)
      with.template operator()<true>();
    else
      with.template operator()<false>();
  };
  // Equal parts of k, the later ones added to what the earlier ones have left in C.
  const std::int64_t parts = std::max<std::int64_t>(1, ceil_div(args.k, kMostWords * kSources));
  const std::int64_t depth = ceil_div(ceil_div(args.k, parts), kSources) * kSources;
  for (std::int64_t l = 0; l == 0 || l < args.k; l += depth) {
    problem.B = all_b.from(l);
    problem.k = std::min(depth, args.k - l);
    if (l > 0) problem.accumulate = true;
    if (problem.k <= kSources)
      launch_as.template operator()<1>(l);
    else if (problem.k <= 2 * kSources)
      launch_as.template operator()<2>(l);
    else if (problem.k <= 4 * kSources)
      launch_as.template operator()<4>(l);
    else
      launch_as.template operator()<kMostWords>(l);
  }
}

const char* declines(const Gf256Args& args, const DeviceInfo& device) {
  const bool hopper = device.capability == 90 && runs_clusters(device);
  return hopper && tensor_b1_pays(args) ? "tensor_b1 is estimated to be faster" : nullptr;
}

}  // namespace tensor_mma_file

Kernel<Gf256Args> tensor_mma() {
  using namespace tensor_mma_file;
  return {"tensor_mma", "binary tensor cores on bytes as they lie, parities packed", declines,
          gf256_pointer_bytes, run};
}

}  // namespace mblas::cuda::gf256
