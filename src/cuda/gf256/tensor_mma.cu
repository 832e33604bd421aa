// Binary tensor cores on bytes as they lie. Times a coefficient is an 8×8 matrix of bits, so a
// column of C is a matrix of 8m×8k bits times the 8k bits of a column of B: the parities of what
// `and` and population count give. The instruction wants 32 bits along k in a register: 4 bytes of
// one column, and which ones does not matter, as the matrix can be arranged to suit. Four threads
// have 16 columns of all rows, 16 bytes at a time, and turn squares of 4 bytes; the eight bits of a
// byte of C come to one thread as sums of four products, so that the results need no exchange
// either, and the four threads store 16 columns of four rows.
//
// A sum of 32 bits gives one bit, so what limits 10 + 4 shards is packing: 152 instructions for 16
// bytes of C a thread, on the pipes of the integers and of the multiply-adds by halves, beside 24
// to turn squares and 32 products. For many rows of B the tensor cores limit: 19,700 products of
// bits a cycle of a multiprocessor with k of 256, 14,500 with 128.
//
// Measured on an H200, 1.2 GB moved, as the share of a copy of as many bytes: 20 + 4 shards 0.95,
// 10 + 4 0.95, 64 + 8 0.86, 32 + 16 0.75, 100 + 20 0.55. Lookups in tables in shared memory could
// not exceed 0.38 and 0.24 for the last two: two loads of a byte for each product. Rows that begin
// at different places of a 16-byte word: 0.77, 0.83 and 0.48 for 10 + 4, 20 + 4 and 32 + 16.
#include "cuda/gf256/columns.cuh"
#include "cuda/gf256/selection.hpp"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gf256 {
namespace tensor_mma_file {

constexpr int kGroup = 4;  // rows of C whose bits one sum of four products has
constexpr int kRows = 32;  // of C in a tile
constexpr int kQuad = 4;   // rows of B that four threads have a byte each of
constexpr int kMostQuads = 28;
constexpr int kPiece = kLine;  // columns that a warp multiplies at a time

/// A kernel for up to kQuad kQuads_ rows of B, of which a strip has kLines_ lines. kOne_: C has
/// only one group of rows.
template <int kQuads_, int kLines_, bool kAligned_, bool kOne_>
struct Config {
  static constexpr int kQuads = kQuads_, kLines = kLines_;
  static constexpr bool kAligned = kAligned_, kOne = kOne_;

  static constexpr int kSources = kQuads * kQuad;
  static constexpr int kWords = (kQuads + 3) / 4;     // registers with a column's bytes
  static constexpr bool kSmall = 8 * kSources < 256;  // sums of so many bits fit a byte
  static constexpr int kGroups = kOne ? 1 : kRows / kGroup;
  static constexpr int kStrip = kLines * kLine;
  // A load of 16 bytes by a quarter of a warp then finds each bank once.
  static constexpr int kPitch = kStrip + 32;
  /// Strips on their way, and rows of results.
  static constexpr int kDepth = kAligned && kSources * kLines <= 48 ? 2 : 1;
  static constexpr int kResults = kAligned ? 0 : kGroup;
  static constexpr int kBlocks = kQuads > 16 ? 2 : kQuads > 8 || (kQuads == 5 && kAligned) ? 3 : 4;
  static constexpr int kTurns = kQuads > 8 ? 1 : kOne&& kAligned ? 16 : 4;

  static constexpr int kShared =
      kGroups * 4 * kWords * 32 * 4 + kSources * int(sizeof(Source)) + kRows * 8;
  static constexpr int kDynamic = kStripWarps * (kDepth * kSources + kResults) * kPitch;
};

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

/// 16 columns of `count` times four rows of B, the words of four rows each; turned, a word for each
/// column. What it has of rows that there are not does not matter.
__device__ inline void turn(int count, const Words (&rows)[4], unsigned (&columns)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const auto row = [&](int x) { return rows[x].w[i]; };
    if (count == 1) {
      columns[0][i] = row(0);
      columns[1][i] = pick<0x3211>(row(0), 0);
      columns[2][i] = pick<0x3212>(row(0), 0);
      columns[3][i] = pick<0x3213>(row(0), 0);
      continue;
    }
    const unsigned a = pick<0x5140>(row(0), row(1)), c = pick<0x7362>(row(0), row(1));
    if (count == 3) {
      columns[0][i] = pick<0x4410>(a, row(2));
      columns[1][i] = pick<0x5532>(a, row(2));
      columns[2][i] = pick<0x6610>(c, row(2));
      columns[3][i] = pick<0x7732>(c, row(2));
    } else {
      const unsigned b = pick<0x5140>(row(2), row(3)), d = pick<0x7362>(row(2), row(3));
      columns[0][i] = pick<0x5410>(a, b);
      columns[1][i] = pick<0x7632>(a, b);
      columns[2][i] = pick<0x5410>(c, d);
      columns[3][i] = pick<0x7632>(c, d);
    }
  }
}

/// 256 a + b, on the pipe of the multiply-adds.
__device__ unsigned append(unsigned a, unsigned b) {
  unsigned result;
  asm("mad.lo.u32 %0, %1, 256, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}

template <class Config>
__global__ void __launch_bounds__(kStripThreads, Config::kBlocks)
    mma_kernel(const __grid_constant__ Gf256Problem p, const __grid_constant__ Strips strips,
               std::int64_t a_col) {
  constexpr bool kAligned = Config::kAligned, kOne = Config::kOne;
  constexpr int kWords = Config::kWords, kQuads = Config::kQuads, kSources = Config::kSources;
  constexpr int kStrip = Config::kStrip, kPitch = Config::kPitch, kDepth = Config::kDepth;
  constexpr int kSlot = kSources * kPitch;
  constexpr bool kSmall = Config::kSmall;
  __shared__ unsigned bits[Config::kGroups][4][kWords][32];  // as the lanes of a warp take them
  __shared__ Source from[kSources];
  __shared__ std::uint8_t* to[kRows];
  extern __shared__ uint4 dynamic[];

  const int lane = int(threadIdx.x) % 32, part = lane % 4, quad = lane / 4;
  const int k = int(p.k);
  const unsigned slots =
      shared_address(dynamic) + threadIdx.x / 32 * (Config::kDynamic / kStripWarps);
  const unsigned results = slots + kDepth * kSlot + part * kPitch + kColumns;

  for (std::int64_t tile = blockIdx.y; tile < p.tiles.rows; tile += gridDim.y) {
    const std::int64_t i0 = tile * kRows;
    const int m = int(p.m - i0 < kRows ? p.m - i0 : kRows);
    const int groups = kOne ? 1 : (m + kGroup - 1) / kGroup;
    if (tile != blockIdx.y) __syncthreads();
    // Rows of B that there are not are not copied: whatever is there, their coefficients are 0.
    // Rows of C are not stored.
    for (int x = int(threadIdx.x); x < kSources; x += kStripThreads)
      from[x] =
          x < k ? source_of<kAligned, false>(p.row_b(x) + strips.first) : Source{nullptr, 0, 0};
    if (int(threadIdx.x) < kRows)
      to[threadIdx.x] = p.row_c(i0 + (int(threadIdx.x) < m ? threadIdx.x : 0)) + strips.first;
    __syncthreads();

    const WarpStrips mine(strips);
    const std::int64_t step = std::int64_t(mine.step) * kStrip;
    std::int64_t j = mine.next * kStrip;
    const auto load = [&](unsigned slot, int number, std::int64_t at) {
      if (number < mine.left)
        copy_strip<kSources, Config::kLines, kPitch, kAligned, false>(slot, from, k, at);
      commit_copies();
    };
#pragma unroll 1
    for (int d = 0; d < kDepth; ++d) load(slots + d * kSlot, d, j + d * step);

    for (int x = int(threadIdx.x); x < groups * kGroup * kWords * 16; x += kStripThreads) {
      const int r = x / (kWords * 16), l = x % (kWords * 16);
      const unsigned c = r < m && l < k ? p.row_a(i0 + r)[a_col + l] : 0;
      const std::uint64_t matrix = bit_matrix(c, p.poly);
      // Byte l / 4 mod 4 of the register that lane l mod 4 of four has.
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int owner = (r % kGroup * 2 + i % 2) * 4 + l % 4;
        auto* bytes = reinterpret_cast<std::uint8_t*>(&bits[r / kGroup][i / 2][l / 16][owner]);
        bytes[l / 4 % 4] = std::uint8_t(matrix >> 8 * i);
      }
    }
    __syncthreads();

    // Sixteen columns of four rows in sixteen; turned, a word for each column.
    unsigned data[kWords][4][4];
    // Of this thread's words in a slot.
    const unsigned place = part * kPitch + quad * (kAligned ? 16 : 8);
    unsigned places[kQuads] = {}, shifts[kQuads] = {};
    if constexpr (!kAligned) {
#pragma unroll
      for (int x = 0; x < kQuads; ++x) {
        const unsigned shift = from[x * kQuad + part].shift;
        places[x] = place + x * kQuad * kPitch + shift / 4 * 4;
        shifts[x] = shift;
      }
    }
    const auto read = [&](unsigned piece) {
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        Words u[4];
#pragma unroll
        for (int x = 0; x < 4; ++x) {
          const int q = w * 4 + x;
          if (q >= kQuads) continue;
          if constexpr (kAligned) {
            u[x] = load_shared(piece + place + q * kQuad * kPitch);
          } else {
            // Pairs of words, half a piece apart: a warp's are in different banks.
#pragma unroll
            for (int i = 0; i < 4; ++i)
              u[x].w[i] = load_shared_shifted(piece + places[q] + i / 2 * (kPiece / 2) + i % 2 * 4,
                                              shifts[q]);
          }
        }
        turn(kQuads - w * 4, u, data[w]);
      }
    };
    // Row `part` of a group of C, the columns of this thread in a piece.
    const auto multiply_group = [&](const unsigned(&b)[4][kWords]) {
      const auto products = [&](int q, int h, int i, unsigned(&d)[4]) {
        d[0] = d[1] = d[2] = d[3] = 0;
#pragma unroll
        for (int w = 0; w + 1 < kWords; w += 2)
          multiply(d, data[w][2 * h][i], data[w][2 * h + 1][i], data[w + 1][2 * h][i],
                   data[w + 1][2 * h + 1][i], b[q][w], b[q][w + 1]);
        if constexpr (kWords % 2)
          multiply(d, data[kWords - 1][2 * h][i], data[kWords - 1][2 * h + 1][i], b[q][kWords - 1]);
      };
      Words sum = {};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        unsigned& word = sum.w[i];
        if (kSmall && i == 0) {
          // Bit by bit, on the pipe of the integers.
#pragma unroll
          for (int h = 0; h < 2; ++h) {  // columns 2 h and 2 h + 1
            unsigned d[4][4];
#pragma unroll
            for (int q = 0; q < 4; ++q) products(q, h, i, d[q]);
#pragma unroll
            for (int x = 0; x < 16; ++x)
              word = __funnelshift_r(word, d[x / 2 % 4][x / 8 * 2 + x % 2], 1);
          }
          continue;
        }
#pragma unroll
        for (int q = 3; q >= 0; --q) {  // bits 2 q and 2 q + 1
          unsigned d[2][4];             // columns 4 i and 4 i + 1, 4 i + 2 and 4 i + 3
          products(q, 0, i, d[0]);
          products(q, 1, i, d[1]);
#pragma unroll
          for (int bit = 1; bit >= 0; --bit) {
            const unsigned c0 = d[0][bit], c1 = d[0][2 + bit], c2 = d[1][bit], c3 = d[1][2 + bit];
            const unsigned bytes = kSmall ? append(append(append(c3, c2), c1), c0)
                                          : __byte_perm(c0 + (c2 << 16), c1 + (c3 << 16), 0x6240);
            word = select<0x01010101>(bytes, word << 1);
          }
        }
      }
      return sum;
    };
    const auto bits_of = [&](int group, unsigned(&b)[4][kWords]) {
#pragma unroll
      for (int x = 0; x < 4 * kWords; ++x)
        b[x / kWords][x % kWords] = bits[group][x / kWords][x % kWords][lane];
    };

    // Four rows of C from `row` of this thread on, a piece of them.
    const auto compute_group = [&](const unsigned(&b)[4][kWords], std::uint8_t* row, int piece,
                                   bool has) {
      if constexpr (kAligned) {
        std::uint8_t* const at = row + piece + quad * kColumns;
        Words old = {};
        if (p.accumulate) old = load_words(at);
        add_words(old, multiply_group(b));
        if (has) store_words(at, old);
      } else {
        const Words sum = multiply_group(b);
#pragma unroll
        for (int h = 0; h < 2; ++h)
          store_shared_pair(results + piece + h * (kPiece / 2) + quad * 8, sum.w[2 * h],
                            sum.w[2 * h + 1]);
        if (piece < kStrip - kPiece) return;
        __syncwarp();
        if (has) store_strip<kStrip / kColumns, 8>(results, quad, row, p.accumulate);
        __syncwarp();
      }
    };

    unsigned b[4][kWords];
    if constexpr (kOne) bits_of(0, b);
    std::uint8_t* const only = to[part];
    unsigned slot = slots;
#pragma unroll 1
    for (int i = 0; i < mine.left; ++i, j += step) {
      wait_for_copies<kDepth - 1>();
      __syncwarp();
#pragma unroll 1
      for (int piece = 0; piece < kStrip; piece += kPiece) {
        read(slot + piece);
        if (piece == kStrip - kPiece) {
          // The columns are in registers: the slot is free.
          __syncwarp();
          load(slot, i + kDepth, j + kDepth * step);
          slot = slot == slots + (kDepth - 1) * kSlot ? slots : slot + kSlot;
        }
        if constexpr (kOne) {
          compute_group(b, only + j, piece, part < m);
        } else {
#pragma unroll 1
          for (int group = 0; group < groups; ++group) {
            bits_of(group, b);
            compute_group(b, to[group * kGroup + part] + j, piece, group * kGroup + part < m);
          }
        }
      }
    }
  }
  compute_edges(p, strips, kStrip, a_col);
}

template <class C>
void launch_mma(const CudaQueue& queue, const Gf256Problem& problem, int misalignment,
                std::int64_t a_col) {
  launch_strips<mma_kernel<C>>(queue, problem, C::kStrip, misalignment, C::kBlocks,
                               problem.accumulate ? 1 : C::kTurns, C::kShared, C::kDynamic, a_col);
}

void run(const Gf256Args& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const int misalignment = common_misalignment(args);
  Gf256Problem problem = gf256_problem(args, queue, kRows, kPiece);
  const DeviceInput all_b = problem.B;
  // Long strips where a warp has several.
  const bool few = args.m <= kGroup && args.n >= 64 * 4 * kLine * queue.device().compute_units;
  const auto launch_as = [&]<bool kAligned>(std::int64_t a_col) {
    const auto with = [&]<class C>(const C&) {
      launch_mma<C>(queue, problem, misalignment, a_col);
    };
    if (few && problem.k <= 12)
      with(Config<3, 4, kAligned, true>());
    else if (few && problem.k <= 20)
      with(Config < 5, kAligned ? 2 : 4, kAligned, true > ());
    else if (problem.k <= 16)
      with(Config<4, 1, kAligned, false>());
    else if (problem.k <= 32)
      with(Config<8, 1, kAligned, false>());
    else if (problem.k <= 64)
      with(Config<16, 1, kAligned, false>());
    else
      with(Config<kMostQuads, 1, kAligned, false>());
  };
  // Equal parts of k, the later ones added to what the earlier ones have left in C.
  using Most = Config<kMostQuads, 1, false, false>;
  const bool fits = queue.device().shared_memory >= Most::kShared + Most::kDynamic;
  const std::int64_t most = fits ? Most::kSources : 64;
  const std::int64_t parts = std::max<std::int64_t>(1, ceil_div(args.k, most));
  const std::int64_t depth = std::max<std::int64_t>(1, ceil_div(ceil_div(args.k, parts), 16)) * 16;
  for (std::int64_t l = 0; l == 0 || l < args.k; l += depth) {
    problem.B = all_b.from(l);
    problem.k = std::min(depth, args.k - l);
    if (l > 0) problem.accumulate = true;
    if (misalignment >= 0)
      launch_as.template operator()<true>(l);
    else
      launch_as.template operator()<false>(l);
  }
}

const char* declines(const Gf256Args& args, const DeviceInfo& device) {
  return runs_hopper(device) && tensor_b1_pays(args) ? "tensor_b1 is estimated to be faster"
                                                     : nullptr;
}

}  // namespace tensor_mma_file

Kernel<Gf256Args> tensor_mma() {
  using namespace tensor_mma_file;
  return {"tensor_mma", "binary tensor cores on bytes as they lie, parities packed", declines,
          gf256_pointer_bytes, run};
}

}  // namespace mblas::cuda::gf256
