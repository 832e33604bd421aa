// Large products over GF(2^8) on Hopper's binary tensor cores.
//
// A product of bytes is 24 products of bits (bit_products.hpp), so C takes 24 binary products of
// matrices: the parities of popcounts over k say where a constant is xored into C. A and B are
// packed before: their 24 linear forms, a bit for each element, k innermost, for which B is
// transposed. That reads the operands once and writes three times as much, at the speed of memory.
// Larger problems go through the workspace in blocks.
//
// Limit: the tensor cores, 24 bits for each product of bytes: 320 T products of bytes a second at
// the 15,400 TOPS that they reach by themselves on an H200. There 4096^3 takes 0.31 ms, 0.05 of
// which are for packing, and 8192^3 2.3 ms: 220 and 240 T.
#include "cuda/gemm/hopper/tensor_map.hpp"
#include "cuda/gf256/tensor_b1.cuh"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gf256 {
namespace tensor_b1_file {

constexpr int kThreads = 256;
constexpr int kGranuleDepth = 8 * b1::kGranule;  // of k
constexpr int kWords = b1::kGranule / 4;         // of a granule
constexpr int kPackedCols = 128;                 // by a block
constexpr std::int64_t kLeastSize = 64;          // below, most of a tile would be padding

/// The bits that the linear forms add up, as masks of whole words.
struct Forms {
  std::uint32_t u[kPairs][8], v[kPairs][8];
};

/// A part of an operand, and where its forms go: those of a line (a row of A, a column of B) are
/// `granules` along k.
struct Packing {
  DeviceInput from;
  std::int64_t rows, first_col, end_col;
  unsigned granules;
  std::uint32_t* to;
  std::int64_t words;  ///< of one form
  Forms forms;

  __device__ const std::uint8_t* row(std::int64_t i) const {
    return static_cast<const std::uint8_t*>(from.at(i));
  }
};

/// Bytes [at, at + 16) of a row that ends at `end`, with zeros from there on; any alignment.
__device__ uint4 load(const std::uint8_t* row, std::int64_t at, std::int64_t end) {
  const std::uint8_t* const p = row + at;
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (address % 16 == 0 && at + 16 <= end) return *reinterpret_cast<const uint4*>(p);
  unsigned words[4] = {};
  if (at >= 3 && at + 20 <= end) {  // the words that have them are the row's
    const auto* const from = reinterpret_cast<const unsigned*>(p - address % 4);
    unsigned low = from[0];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned high = from[i + 1];
      words[i] = __funnelshift_r(low, high, unsigned(address % 4 * 8));
      low = high;
    }
  } else {
#pragma unroll
    for (int i = 0; i < 16; ++i)
      if (at + i < end) words[i / 4] |= unsigned(p[i]) << i % 4 * 8;
  }
  return {words[0], words[1], words[2], words[3]};
}

/// Four matrices of 8×8 bits, each in one byte of all words, transposed: bit i of that byte of word
/// j becomes bit j of that of word i.
__device__ void transpose_bits(unsigned (&words)[8]) {
  const auto swap = [](unsigned& low, unsigned& high, int by, unsigned mask) {
    const unsigned differ = (low >> by ^ high) & mask;
    high ^= differ;
    low ^= differ << by;
  };
#pragma unroll
  for (int i = 0; i < 4; ++i) swap(words[i], words[i + 4], 4, 0x0f0f0f0f);
#pragma unroll
  for (int i = 0; i < 4; ++i) swap(words[i + i / 2 * 2], words[i + i / 2 * 2 + 2], 2, 0x33333333);
#pragma unroll
  for (int i = 0; i < 8; i += 2) swap(words[i], words[i + 1], 1, 0x55555555);
}

/// Four words, as rows of four bytes, transposed.
__device__ void transpose_bytes(unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
  const unsigned ab = __byte_perm(a, b, 0x5140), ab2 = __byte_perm(a, b, 0x7362);
  const unsigned cd = __byte_perm(c, d, 0x5140), cd2 = __byte_perm(c, d, 0x7362);
  a = __byte_perm(ab, cd, 0x5410);
  b = __byte_perm(ab, cd, 0x7632);
  c = __byte_perm(ab2, cd2, 0x5410);
  d = __byte_perm(ab2, cd2, 0x7632);
}

/// The forms of 32 elements whose bits i are planes[i] go to word `at` of each form.
__device__ void store_forms(const Packing& p, const unsigned (&planes)[8], std::int64_t at) {
  std::uint32_t* to = p.to + at;
#pragma unroll
  for (int pair = 0; pair < kPairs; ++pair) {
    unsigned u = 0, v = 0;
#pragma unroll
    for (int bit = 0; bit < 8; ++bit) {
      u ^= planes[bit] & p.forms.u[pair][bit];
      v ^= planes[bit] & p.forms.v[pair][bit];
    }
    to[0] = u;
    to[p.words] = v;
    to[2 * p.words] = u ^ v;
    to += 3 * p.words;
  }
}

/// A: a thread packs 32 elements of a row into a word, element 4 i + j into bit 8 j + i.
__global__ void __launch_bounds__(kThreads) pack_rows(const __grid_constant__ Packing p) {
  const unsigned at = blockIdx.x * kThreads + threadIdx.x, line = p.granules * kWords;
  if (at >= p.words) return;
  const std::int64_t k = p.first_col + at % line * 32;
  const std::uint8_t* const row = p.row(at / line);
  const uint4 low = load(row, k, p.end_col), high = load(row, k + 16, p.end_col);
  unsigned words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  transpose_bits(words);
  store_forms(p, words, at);
}

/// B: a block packs 256 rows of 128 columns, by way of shared memory; a thread the words of 32 rows
/// of 4 columns. Eight threads have those of a column.
__global__ void __launch_bounds__(kThreads) pack_columns(const __grid_constant__ Packing p) {
  constexpr int kPitch = 32 * kPackedCols + 16;  // of 32 rows; the 16 keep threads' banks apart
  __shared__ alignas(16) std::uint8_t tile[kWords * kPitch];
  const std::int64_t granule = blockIdx.x % p.granules;
  const std::int64_t first = std::int64_t(blockIdx.x / p.granules) * kPackedCols;
  const int thread = int(threadIdx.x);
#pragma unroll
  for (int i = 0; i < kGranuleDepth; i += kThreads / 8) {
    const int row = i + thread / 8, col = thread % 8 * 16;
    const std::int64_t k = granule * kGranuleDepth + row;
    uint4 x = {};
    if (k < p.rows) x = load(p.row(k), p.first_col + first + col, p.end_col);
    *reinterpret_cast<uint4*>(&tile[row / 32 * kPitch + row % 32 * kPackedCols + col]) = x;
  }
  __syncthreads();
  const int word = thread % kWords, col = thread / kWords * 4;
  unsigned planes[4][8];  // of rows 4 i + j: byte c, bit i; then of column c
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      planes[j][i] = *reinterpret_cast<const unsigned*>(
          &tile[word * kPitch + (4 * i + j) * kPackedCols + col]);
    transpose_bits(planes[j]);
  }
#pragma unroll
  for (int bit = 0; bit < 8; ++bit)
    transpose_bytes(planes[0][bit], planes[1][bit], planes[2][bit], planes[3][bit]);
  const std::int64_t line = std::int64_t(p.granules) * kWords;
  if (first + col >= p.words / line) return;
#pragma unroll
  for (int c = 0; c < 4; ++c)
    store_forms(p, planes[c],
                b1::column_place(int(first) + col + c) * line + granule * kWords + word);
}

constexpr std::int64_t round_up(std::int64_t x, std::int64_t step) {
  return ceil_div(x, step) * step;
}

/// Extents of the blocks that the problem is cut into, the last ones in each direction excepted.
struct Blocks {
  std::int64_t m, n, k;
  std::size_t bytes_a, bytes_b;  ///< packed
};

Blocks blocks_of(const Gf256Args& args) {
  constexpr std::int64_t kMostDepth = 8192, kMostBytes = 128 << 20;  // of either operand
  const auto cut = [](std::int64_t extent, std::int64_t most, int step) {
    return std::min(extent, round_up(ceil_div(extent, ceil_div(extent, most)), step));
  };
  Blocks blocks;
  blocks.k = cut(args.k, kMostDepth, kGranuleDepth);
  const std::int64_t line = kProducts * b1::kGranule * ceil_div(blocks.k, kGranuleDepth);
  constexpr int kStep = 256;  // of tiles, in both directions
  const std::int64_t lines = kMostBytes / line / kStep * kStep;
  blocks.m = cut(args.m, lines, kStep);
  blocks.n = cut(args.n, lines, kStep);
  blocks.bytes_a = std::size_t(round_up(blocks.m * line, 256));
  blocks.bytes_b = std::size_t(round_up(blocks.n, b1::kColumnGroup) * line);
  return blocks;
}

const char* declines(const Gf256Args& args, const DeviceInfo& device) {
  if (!runs_hopper(device)) return "needs compute capability 9.0 and code for it";
  if (device.shared_memory < b1::kShared) return "needs more shared memory";
  if (std::min({args.m, args.n, args.k}) < kLeastSize) return "for larger sizes";
  return nullptr;
}

std::size_t workspace_bytes(const Gf256Args& args, const DeviceInfo& device) {
  const Blocks blocks = blocks_of(args);
  return gf256_pointer_bytes(args, device) + blocks.bytes_a + blocks.bytes_b;
}

void run(const Gf256Args& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Gf256Problem problem = gf256_problem(args, queue, b1::kTileRows, b1::kTileCols);
  const Blocks blocks = blocks_of(args);
  std::byte* const packed_a = queue.workspace.data() + gf256_pointer_bytes(args, queue.device());
  std::byte* const packed_b = packed_a + blocks.bytes_a;

  thread_local Memo<unsigned, BitProducts> memo;
  const BitProducts& products = memo(args.poly, [&] { return bit_products(args.poly); });
  b1::Problem p;
  std::copy_n(products.constant, kProducts, p.constant);
  Packing packing;
  for (int pair = 0; pair < kPairs; ++pair) {
    for (int bit = 0; bit < 8; ++bit) {
      packing.forms.u[pair][bit] = products.u[pair] >> bit & 1 ? ~0u : 0;
      packing.forms.v[pair][bit] = products.v[pair] >> bit & 1 ? ~0u : 0;
    }
  }
  // The packed lines as matrices, one for each product.
  const auto map = [&](const std::byte* data, std::int64_t lines, int box) {
    const std::int64_t depth = std::int64_t(packing.granules) * b1::kGranule;
    return gemm::hopper::tensor_map({CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, data, lines, depth, depth,
                                     lines * depth, kProducts, box});
  };

  for (std::int64_t k0 = 0; k0 < args.k; k0 += blocks.k) {
    const std::int64_t k = std::min(blocks.k, args.k - k0);
    packing.granules = unsigned(ceil_div(k, kGranuleDepth));
    p.granules = int(packing.granules);
    p.accumulate = args.accumulate || k0 > 0;
    for (std::int64_t i0 = 0; i0 < args.m; i0 += blocks.m) {
      p.m = std::min(blocks.m, args.m - i0);
      packing.from = problem.A.from(i0);
      packing.rows = p.m;
      packing.first_col = k0;
      packing.end_col = k0 + k;
      packing.to = reinterpret_cast<std::uint32_t*>(packed_a);
      packing.words = p.m * packing.granules * kWords;
      launch(queue, pack_rows, ceil_div(packing.words, kThreads), kThreads, packing);
      p.a = map(packed_a, p.m, b1::kTileRows);
      p.C = problem.C.from(i0);
      p.cluster = p.m > b1::kTileRows ? 2 : 1;
      p.rows = unsigned(ceil_div(p.m, b1::kTileRows * p.cluster));
      for (std::int64_t j0 = 0; j0 < args.n; j0 += blocks.n) {
        p.n = std::min(blocks.n, args.n - j0);
        p.first_col = j0;
        p.cols = unsigned(ceil_div(p.n, b1::kTileCols));
        const std::int64_t cols = round_up(p.n, b1::kColumnGroup);
        packing.from = problem.B.from(k0);
        packing.rows = k;
        packing.first_col = j0;
        packing.end_col = j0 + p.n;
        packing.to = reinterpret_cast<std::uint32_t*>(packed_b);
        packing.words = cols * packing.granules * kWords;
        launch(queue, pack_columns, ceil_div(cols, kPackedCols) * packing.granules, kThreads,
               packing);
        p.b = map(packed_b, cols, b1::kTileCols / 2);
        run_engine(p, queue);
      }
    }
  }
}

}  // namespace tensor_b1_file

Kernel<Gf256Args> tensor_b1() {
  using namespace tensor_b1_file;
  return {"tensor_b1", "24 binary products on Hopper's tensor cores", declines, workspace_bytes,
          run};
}

}  // namespace mblas::cuda::gf256
