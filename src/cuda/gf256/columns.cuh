// How the kernels for few rows move rows of B and C, wherever each begins. The columns are cut into
// strips. A warp has the words of a strip of all rows of B copied to shared memory, the next
// strip's while one is multiplied, so that how much is on its way does not depend on registers.
// Rows that begin at different places of a 16-byte word are read there from any byte on. Their
// results take the same way back: to shared memory as they are, from there as whole aligned words.
// What of C is beside the strips is computed byte by byte.
#pragma once

#include <atomic>

#include "cuda/gf256/gf256.cuh"

namespace mblas::cuda::gf256 {

constexpr int kColumns = 16;  // a thread's, and the bytes of the widest load and store
constexpr int kLine = 128;    // bytes that are read best together

constexpr int kStripThreads = 128;
constexpr int kStripWarps = kStripThreads / 32;

/// The columns of C in strips: `count` of them from column `first` on.
struct Strips {
  std::int64_t first, count;
};

/// Strips of one warp: `left` of them from number `next` on, `step` apart.
struct WarpStrips {
  std::int64_t next;
  int step, left;

  __device__ explicit WarpStrips(const Strips& strips)
      : next(std::int64_t(blockIdx.x) * kStripWarps + threadIdx.x / 32),
        step(int(gridDim.x) * kStripWarps),
        left(next < strips.count ? int((strips.count - next - 1) / step) + 1 : 0) {}
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

/// Launches a kernel on n columns in strips of `width`, whose words are aligned where the rows' are
/// at `misalignment`, and which else leave room on both sides for what words may hold of other
/// columns. `each` blocks are to be on a multiprocessor at a time, with `shared` bytes that the
/// kernel declares and `dynamic` more, and up to `turns` times as many in all: blocks that begin at
/// different times read from places that are far apart, which memory likes.
template <auto kKernel, class... Arguments>
void launch_strips(const CudaQueue& queue, const Gf256Problem& problem, int width, int misalignment,
                   int each, int turns, int shared, int dynamic, const Arguments&... arguments) {
  constexpr int kReserved = 1 << 10;        // of shared memory, for each block
  constexpr std::int64_t kLeastStrips = 3;  // of a warp, where there is more than one turn
  const int margin = misalignment < 0 ? kColumns : 0;
  Strips strips;
  strips.first = margin ? margin : (kColumns - misalignment) % kColumns;
  strips.count = std::max<std::int64_t>(0, (problem.n - strips.first - margin) / width);

  const DeviceInfo& device = queue.device();
  const int memory = int(device.shared_memory);
  const int fitting = (memory + kReserved) / (shared + dynamic + kReserved);
  const std::int64_t most = std::int64_t(device.compute_units) * std::clamp(fitting, 1, each);
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(strips.count, kStripWarps));
  const std::int64_t turn = std::min(blocks, most);
  const dim3 grid(unsigned(std::clamp(blocks / kLeastStrips, turn, turn * turns)),
                  unsigned(std::min<std::int64_t>(problem.tiles.rows, 65535)));

  static std::atomic<std::uint64_t> prepared;  // devices
  const std::uint64_t bit = device.ordinal < 64 ? std::uint64_t{1} << device.ordinal : 0;
  if (!(bit & prepared.load(std::memory_order_relaxed))) {
    const DeviceGuard guard(device.ordinal);
    const auto set = [](cudaFuncAttribute attribute, int value) {
      cuda_check(cudaFuncSetAttribute(kKernel, attribute, value), "shared memory of a kernel");
    };
    cudaFuncAttributes kernel;
    cuda_check(cudaFuncGetAttributes(&kernel, kKernel), "shared memory of a kernel");
    // What is declared counts where a launch has to be allowed more than 48 KiB.
    set(cudaFuncAttributeMaxDynamicSharedMemorySize, memory - int(kernel.sharedSizeBytes));
    set(cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    prepared.fetch_or(bit, std::memory_order_relaxed);
  }
  launch_grid(queue, kKernel, grid, dim3(kStripThreads), std::size_t(dynamic), problem, strips,
              arguments...);
}

struct Words {
  unsigned w[4];
};

// Asynchronous copies, and loads and stores of shared memory that other threads of the warp or such
// copies wrote: in the order of the program.

__device__ inline unsigned shared_address(const void* p) {
  return unsigned(__cvta_generic_to_shared(p));
}
__device__ inline void copy_words(unsigned to, const std::uint8_t* from) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to),
               "l"(__cvta_generic_to_global(from))
               : "memory");
}
/// What this thread has asked for since the last time becomes a group.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until at most the newest kPending groups of this thread are on their way.
template <int kPending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
__device__ inline Words load_shared(unsigned at) {
  Words v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
               : "r"(at)
               : "memory");
  return v;
}
__device__ inline unsigned load_shared_word(unsigned at) {
  unsigned v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  return v;
}
__device__ inline unsigned load_shared_byte(unsigned at) {
  unsigned v;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  return v;
}
__device__ inline void store_shared_word(unsigned at, unsigned v) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
__device__ inline void store_shared_pair(unsigned at, unsigned v, unsigned w) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(v), "r"(w) : "memory");
}

/// The 16 bytes from `bits` / 8 (below 8) after the multiple of 8 `at` on.
__device__ inline Words load_shared_bytes(unsigned at, unsigned bits) {
  unsigned x[6], y[5];
#pragma unroll
  for (int i = 0; i < 6; i += 2)
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                 : "=r"(x[i]), "=r"(x[i + 1])
                 : "r"(at + 4 * i)
                 : "memory");
#pragma unroll
  for (int i = 0; i < 5; ++i) y[i] = bits & 32 ? x[i + 1] : x[i];
  Words result;
#pragma unroll
  for (int i = 0; i < 4; ++i) result.w[i] = __funnelshift_r(y[i], y[i + 1], bits);
  return result;
}
/// The word from `shift` % 4 bytes after the multiple of 4 `at` on.
__device__ inline unsigned load_shared_shifted(unsigned at, unsigned shift) {
  return __funnelshift_r(load_shared_word(at), load_shared_word(at + 4), 8 * (shift % 4));
}

__device__ inline Words load_words(const std::uint8_t* at) {
  __builtin_assume(__isGlobal(at));
  const uint4 v = *reinterpret_cast<const uint4*>(at);
  return {v.x, v.y, v.z, v.w};
}
__device__ inline void store_words(std::uint8_t* at, const Words& v) {
  __builtin_assume(__isGlobal(at));
  *reinterpret_cast<uint4*>(at) = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]);
}
__device__ inline void add_words(Words& sum, const Words& v) {
#pragma unroll
  for (int i = 0; i < 4; ++i) sum.w[i] ^= v.w[i];
}

__device__ inline unsigned misalignment(const std::uint8_t* at, int size = kColumns) {
  return unsigned(reinterpret_cast<std::uintptr_t>(at)) % unsigned(size);
}

/// Where a row's strips are copied from: 16 bytes at a time from `from` on, of which `skip` words
/// and `shift` bytes of the next one come before column 0.
struct alignas(16) Source {
  const std::uint8_t* from;
  int skip;
  unsigned shift;
};

/// `row`: at column 0 of the first strip. kByLines: a warp is to read whole lines.
template <bool kAligned, bool kByLines>
__device__ Source source_of(const std::uint8_t* row) {
  if constexpr (kAligned) return {row, 0, 0};
  const unsigned before = misalignment(row, kByLines ? kLine : kColumns);
  return {row - before, int(before / kColumns), before % kColumns};
}

/// A warp copies kLines lines of each of `rows` rows, those of the strip `at` bytes after the first
/// one, to `to`, rows kPitch apart; one word more where a row is not aligned. There are kMost
/// sources: as many as four accesses of the warp read, or a multiple.
template <int kMost, int kLines, int kPitch, bool kAligned, bool kByLines>
__device__ void copy_strip(unsigned to, const Source* sources, int rows, std::int64_t at) {
  constexpr int kWords = kLines * kLine / kColumns;
  constexpr int kAcross = kWords < 32 ? kWords : 32;  // lanes in a row
  constexpr int kDown = 32 / kAcross, kAhead = 4;
  const int lane = int(threadIdx.x) % 32, down = lane / kAcross, word = lane % kAcross;
  at += word * kColumns;
  to += down * kPitch + word * kColumns;
#pragma unroll(kAligned&& kMost <= 12 ? 3 : 1)
  for (int first = 0; first < kMost; first += kAhead * kDown) {
    if (first >= rows) break;
    Source s[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const Source& source = sources[first + i * kDown + down];
      s[i] = {source.from, kByLines && !kAligned ? source.skip : 0, 0};
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int row = first + i * kDown;
#pragma unroll
      for (int w = 0; w < kWords; w += kAcross)
        if (row + down < rows && word + w >= s[i].skip)
          copy_words(to + row * kPitch + (w - s[i].skip) * kColumns, s[i].from + at + w * kColumns);
    }
  }
  if constexpr (!kAligned && kByLines) {
    // The line that the last columns lie in.
    constexpr int kLineWords = kLine / kColumns;
    const int last = kWords + lane % kLineWords;
#pragma unroll 1
    for (int row = lane / kLineWords; row < rows; row += 32 / kLineWords) {
      const Source s = sources[row];
      if (last - s.skip < kWords + (s.shift > 0))
        copy_words(to + (row - down) * kPitch + (last - word - s.skip) * kColumns,
                   s.from + at + (last - word) * kColumns);
    }
  } else if constexpr (!kAligned) {
#pragma unroll 1
    for (int row = lane; row < rows; row += 32) {
      const Source s = sources[row];
      if (s.shift > 0)
        copy_words(to + (row - down) * kPitch + (kWords - word) * kColumns,
                   s.from + at + (kWords - word) * kColumns);
    }
  }
}

/// kThreads threads, `index` among them, store kWords words of 16 bytes from `from` in shared
/// memory to `to`, wherever that is, or add them to what is there: all but the ends as aligned
/// words. The 16 bytes before and after `from` may be read.
template <int kWords, int kThreads>
__device__ void store_strip(unsigned from, int index, std::uint8_t* to, bool add) {
  __builtin_assume(__isGlobal(to));
  const unsigned shift = misalignment(to), bits = 8 * (-shift % 8);
  // Words are counted from the one that column 0 lies in.
  const unsigned words = from - shift - bits / 8 + index * kColumns;
  std::uint8_t* const aligned = to - shift + index * kColumns;
#pragma unroll
  for (int i = 0; i < kWords; i += kThreads) {
    if (i == 0 && index == 0 && shift > 0) continue;
    Words v = load_shared_bytes(words + i * kColumns, bits);
    if (add) add_words(v, load_words(aligned + i * kColumns));
    store_words(aligned + i * kColumns, v);
  }
  if (shift == 0) return;
    // The ends have 16 bytes together.
#pragma unroll
  for (int i = 0; i < kColumns; i += kThreads) {
    const int end = i + index;
    if (end >= kColumns) continue;
    const int column = end + (end < kColumns - int(shift) ? 0 : (kWords - 1) * kColumns);
    const unsigned v = load_shared_byte(from + column);
    to[column] = std::uint8_t(add ? v ^ to[column] : v);
  }
}

/// The columns beside the strips, of all rows of C, by all threads of the grid. Column `a_col` of A
/// belongs to the first row of B.
__device__ inline void compute_edges(const Gf256Problem& p, const Strips& strips, int width,
                                     std::int64_t a_col = 0) {
  const std::int64_t inner = strips.count * width, edge = p.n - inner;
  const std::int64_t step = std::int64_t(gridDim.x) * gridDim.y * kStripThreads;
  const std::int64_t block = std::int64_t(blockIdx.y) * gridDim.x + blockIdx.x;
  for (std::int64_t x = block * kStripThreads + threadIdx.x; x < p.m * edge; x += step) {
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
