// What the second-level cache holds on to. Reads that are marked to be evicted last stay when what
// is written beside them makes room: transposes and sums of matrices beyond the cache take up to
// 2 % less time. A mark outlives its kernel, though, and all of them together would take a quarter
// of the cache from the kernels that follow: so the last ones are taken back.
#pragma once

#include <cstdint>

#include "cuda/launch.cuh"

namespace mblas::cuda {

/// How an access is marked: an operand of its instruction, or not at all.
using CacheMark = std::uint64_t;
struct NoMark {};
/// Besides, the whole line is fetched into the cache, as what is about to be read: asked for sector
/// by sector it takes tiles that read rows from any address up to 1 % more time, the others not.
/// Where little else of the line is read, as of thin matrices with gaps, that costs up to 24 %.
struct LineMark {
  CacheMark mark;
};

__device__ inline CacheMark evicted_as_usual() {
  CacheMark mark;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(mark));
  return mark;
}
__device__ inline CacheMark evicted_last() {
  CacheMark mark;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(mark));
  return mark;
}

template <class V>
__device__ V load_marked(const V* p, NoMark) {
  return *p;
}
/// Never moved to before begin_early(). Elements of one or two bytes are read without a mark.
#define MBLAS_LOAD_MARKED(size)                                                        \
  V v;                                                                                 \
  const auto from = __cvta_generic_to_global(p);                                       \
  if constexpr (sizeof(V) == 16)                                                       \
    asm volatile("ld.global.L2::cache_hint" size ".v4.b32 {%0, %1, %2, %3}, [%4], %5;" \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                          \
                 : "l"(from), "l"(mark));                                              \
  else if constexpr (sizeof(V) == 8)                                                   \
    asm volatile("ld.global.L2::cache_hint" size ".v2.b32 {%0, %1}, [%2], %3;"         \
                 : "=r"(v.x), "=r"(v.y)                                                \
                 : "l"(from), "l"(mark));                                              \
  else if constexpr (sizeof(V) == 4)                                                   \
    asm volatile("ld.global.L2::cache_hint" size ".b32 %0, [%1], %2;"                  \
                 : "=r"(v)                                                             \
                 : "l"(from), "l"(mark));                                              \
  else                                                                                 \
    v = *p;                                                                            \
  return v
template <class V>
__device__ V load_marked(const V* p, CacheMark mark) {
  MBLAS_LOAD_MARKED("");
}
template <class V>
__device__ V load_marked(const V* p, LineMark line) {
  const CacheMark mark = line.mark;
  MBLAS_LOAD_MARKED(".L2::128B");
}
#undef MBLAS_LOAD_MARKED

inline constexpr int kLine = 128;  ///< bytes of a line of the cache

/// Takes the marks back of the lines that hold `rows` rows of `bytes` bytes, `pitch` bytes apart.
template <int kThreads>
__device__ void take_marks_back(const void* first, std::int64_t pitch, int rows, int bytes) {
  if (pitch == bytes) {  // no gaps
    bytes *= rows;
    rows = 1;
  }
  const auto start = std::uintptr_t(__cvta_generic_to_global(first));
  const int lines = bytes / kLine + 2;  // that they touch at most
  for (int x = int(threadIdx.x); x < rows * lines; x += kThreads) {
    const auto row = start + x / lines * pitch, end = row + bytes;
    const auto line = row / kLine * kLine + x % lines * kLine;
    if (line < end)
      asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(line) : "memory");
  }
}

/// blockIdx, read anew: what is computed of it does not stay in registers until then.
__device__ inline uint3 block_anew() {
  uint3 block;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block.x));
  asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(block.y));
  asm volatile("mov.u32 %0, %%ctaid.z;" : "=r"(block.z));
  return block;
}

/// Which blocks of a launch mark what they read, and which of them take that back.
struct Hold {
  bool marks = false;
  std::int64_t back_from = 0;  ///< the first block that does, in the order of their numbers

  __device__ CacheMark mark() const { return marks ? evicted_last() : evicted_as_usual(); }
  __device__ bool takes_back(const uint3& block) const {
    return marks &&
           block.x + gridDim.x * (block.y + std::int64_t(gridDim.y) * block.z) >= back_from;
  }
};

/// What does not fit the device's last cache, and what of it is marked when a kernel ends.
inline constexpr std::int64_t kCachedBytes = 64 << 20, kMarkedBytes = 32 << 20;

/// For blocks that read `bytes` bytes in all. Measured on devices that run clusters only.
inline Hold hold_of(std::int64_t bytes, std::int64_t blocks, const DeviceInfo& device) {
  if (bytes <= kCachedBytes || !runs_clusters(device)) return {};
  return {true, blocks - std::int64_t(double(blocks) * double(kMarkedBytes) / double(bytes)) - 1};
}

}  // namespace mblas::cuda
