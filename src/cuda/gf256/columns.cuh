// How the kernels for few rows move a row of B or C: sixteen columns a thread, wherever the row
// begins. Where all rows begin at the same place of a 16-byte word those are one load or one store.
// Else a thread loads the two words that its columns lie in and shifts them; results are shifted
// the other way with the help of the neighbour, so that all but the ends of what a warp stores are
// whole words as well. What of C is beside the warps' columns is computed byte by byte.
#pragma once

#include "cuda/gf256/gf256.cuh"

namespace mblas::cuda::gf256 {

constexpr int kColumns = 16;  // a thread's, and the bytes of the widest load and store

/// The columns of C in strips, one for a warp at a time: `count` of them from column `first` on.
struct Strips {
  std::int64_t first, count;

  __device__ std::int64_t begin(std::int64_t strip, int width) const {
    return first + strip * width;
  }
};

/// Where in a 16-byte word the rows of B and C begin, if all do at the same place; else -1.
inline int common_misalignment(const Gf256Args& args) {
  const auto place = [](const void* row) {
    return int(reinterpret_cast<std::uintptr_t>(row) % kColumns);
  };
  const int first = place(args.C.at(0, 1));
  const auto all_there = [&](const auto& x, std::int64_t rows) {
    if (!x.pointers)
      return rows == 0 || (place(x.data) == first && (rows == 1 || x.ld % kColumns == 0));
    return std::all_of(x.pointers, x.pointers + rows,
                       [&](const void* p) { return place(p) == first; });
  };
  return all_there(args.B, args.k) && all_there(args.C, args.m) ? first : -1;
}

/// Strips `width` columns wide, whose words are aligned where the rows' are at `misalignment`, and
/// which else leave room on both sides for what words may hold of other columns.
inline Strips strips_of(std::int64_t n, int width, int misalignment) {
  const int margin = misalignment < 0 ? kColumns : 0;
  const std::int64_t first = margin ? margin : (kColumns - misalignment) % kColumns;
  return {first, std::max<std::int64_t>(0, (n - first - margin) / width)};
}

/// Blocks of `warps`, up to `each` on a multiprocessor, that go through the strips of `rows` rows
/// of tiles.
inline dim3 grid_of(const Strips& strips, std::int64_t rows, int warps, int each,
                    const CudaQueue& queue) {
  const std::int64_t most = std::int64_t(queue.device().compute_units) * each;
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(strips.count, warps));
  return dim3(unsigned(std::min(blocks, most)), unsigned(std::min<std::int64_t>(rows, 65535)));
}

struct Words {
  unsigned w[4];
};

__device__ inline Words load_words(const std::uint8_t* at) {
  const uint4 v = *reinterpret_cast<const uint4*>(at);
  return {v.x, v.y, v.z, v.w};
}
__device__ inline void store_words(std::uint8_t* at, const Words& v) {
  *reinterpret_cast<uint4*>(at) = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]);
}

__device__ inline unsigned misalignment(const std::uint8_t* at) {
  return unsigned(reinterpret_cast<std::uintptr_t>(at)) % kColumns;
}

/// The 16 from byte `shift` (below 16) on of the 32 that `low` and `high` are.
__device__ inline Words shifted(const Words& low, const Words& high, unsigned shift) {
  unsigned x[6], y[5];
  const auto word = [&](int i) { return i < 4 ? low.w[i] : high.w[i - 4]; };
#pragma unroll
  for (int i = 0; i < 6; ++i) x[i] = shift & 8 ? word(i + 2) : word(i);
#pragma unroll
  for (int i = 0; i < 5; ++i) y[i] = shift & 4 ? x[i + 1] : x[i];
  Words result;
#pragma unroll
  for (int i = 0; i < 4; ++i) result.w[i] = __funnelshift_r(y[i], y[i + 1], 8 * (shift & 3));
  return result;
}

/// The 16 bytes at `at`; not aligned: out of the 32 of the words that they may lie in.
template <bool kAligned>
__device__ Words load_columns(const std::uint8_t* at) {
  if constexpr (kAligned) {
    return load_words(at);
  } else {
    const unsigned shift = misalignment(at);
    return shifted(load_words(at - shift), load_words(at - shift + kColumns), shift);
  }
}

/// The 16 aligned bytes at `at` where `has`; else `value` stays as it is. Asked for where the
/// program says so, a step ahead of their use, which the compiler would undo.
__device__ inline void load_words_if(bool has, const std::uint8_t* at, unsigned (&value)[4]) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %4, 0;"
      "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%5]; }"
      : "+r"(value[0]), "+r"(value[1]), "+r"(value[2]), "+r"(value[3])
      : "r"(int(has)), "l"(__cvta_generic_to_global(at)));
}

/// Stores 16 bytes of each thread of a warp at `at`, or none where `has` is false. kThreads
/// threads, as far apart as they can be, have what is next to each other in a row.
template <bool kAligned, int kThreads>
__device__ void store_columns(std::uint8_t* at, const Words& value, bool has) {
  if constexpr (kAligned) {
    if (has) store_words(at, value);
    return;
  }
  // A thread stores the word that its first byte lies in, with the last bytes of the thread before
  // it. The first thread's word is in two places: its own bytes begin the strip, and those of the
  // last thread end it.
  constexpr int kDistance = 32 / kThreads, kAfter = kThreads * kColumns;
  const int lane = int(threadIdx.x) % 32;
  const unsigned shift = misalignment(at);
  Words before;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    before.w[i] = __shfl_sync(~0u, value.w[i], (lane + 32 - kDistance) % 32);
  if (!has) return;
  std::uint8_t* const to = at - shift;
  if (shift == 0) {
    store_words(to, value);
    return;
  }
  const Words word = shifted(before, value, kColumns - shift);
  if (lane >= kDistance) {
    store_words(to, word);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    std::uint8_t* const part = to + 4 * i;
    if (shift <= 4 * i || shift >= 4 * i + 4) {
      *reinterpret_cast<unsigned*>(part + (shift <= 4 * i ? 0 : kAfter)) = word.w[i];
    } else {
#pragma unroll
      for (int b = 0; b < 4; ++b)
        part[b + (4 * i + b >= int(shift) ? 0 : kAfter)] = std::uint8_t(word.w[i] >> 8 * b);
    }
  }
}

/// The columns beside the strips, of all rows of C, by all threads of the grid. Column `a_col` of A
/// belongs to the first row of B.
template <int kThreads>
__device__ void compute_edges(const Gf256Problem& p, const Strips& strips, int width,
                              std::int64_t a_col = 0) {
  const std::int64_t inner = strips.count * width, edge = p.n - inner;
  const std::int64_t step = std::int64_t(gridDim.x) * gridDim.y * kThreads;
  const std::int64_t block = std::int64_t(blockIdx.y) * gridDim.x + blockIdx.x;
  for (std::int64_t x = block * kThreads + threadIdx.x; x < p.m * edge; x += step) {
    const std::int64_t i = x / edge, e = x % edge,
                       j = inner == 0 || e < strips.first ? e : e + inner;
    const std::uint8_t* a = p.row_a(i) + a_col;
    std::uint8_t* c = p.row_c(i) + j;
    unsigned sum = p.accumulate ? *c : 0;
#pragma unroll 4
    for (std::int64_t l = 0; l < p.k; ++l) sum ^= multiply(p.row_b(l)[j], a[l], p.poly);
    *c = std::uint8_t(sum);
  }
}

/// Of the bits of kMask those of a, else those of b.
template <unsigned kMask>
__device__ unsigned select(unsigned a, unsigned b) {
  unsigned result;
  asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(result) : "r"(a), "r"(b), "n"(kMask));
  return result;
}

}  // namespace mblas::cuda::gf256
