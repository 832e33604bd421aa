// The copy engine: boxes of matrices to and from shared memory, and runs of bytes.
#pragma once

#include <cuda.h>

#include "cuda/gemm/hopper/barrier.cuh"

namespace mblas::cuda::gemm::hopper {

/// The box of `map` from element (row, col) of matrix `batch` on goes to `to`; its bytes count for
/// `done`.
__device__ inline void load_box(unsigned to, const CUtensorMap& map, int col, int row, int batch,
                                Barrier done) {
  stall();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(&map), "r"(col), "r"(row), "r"(batch), "r"(done.address)
      : "memory");
}

/// The same, to the same place in every block of the cluster whose bit is set.
__device__ inline void load_box_to(unsigned short blocks, unsigned to, const CUtensorMap& map,
                                   int col, int row, int batch, Barrier done) {
  stall();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(&map), "r"(col), "r"(row), "r"(batch), "r"(done.address), "h"(blocks)
      : "memory");
}

/// `bytes` from `from` on, multiples of 16 both, go to `to`; they count for `done`.
__device__ inline void load_run(unsigned to, const void* from, unsigned bytes, Barrier done) {
  stall();
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(done.address)
      : "memory");
}

/// The box of shared memory goes to `map`.
__device__ inline void store_box(unsigned from, const CUtensorMap& map, int col, int row,
                                 int batch) {
  stall();
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
      "r"(col), "r"(row), "r"(batch), "r"(from)
      : "memory");
}
/// This thread's stores since the last time are a group.
__device__ inline void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Until all but the `kNewer` newest groups of this thread's stores have read shared memory.
template <int kNewer>
__device__ void wait_stores_read() {
  stall();
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kNewer) : "memory");
}

/// Four 8×8 matrices of 16-bit elements: lane l says where row l % 8 of matrix l / 8 goes or, if
/// kTransposed, its column, and holds two neighbours of row l / 4 of each.
template <bool kTransposed = false>
__device__ void store_matrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
  if constexpr (kTransposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}
__device__ inline void store_shared(unsigned to, std::uint16_t x) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(x) : "memory");
}
__device__ inline void store_shared(unsigned to, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}
__device__ inline void store_shared(unsigned to, uint4 x) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z),
               "r"(x.w)
               : "memory");
}
__device__ inline void store_shared(unsigned to, uint2 x) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(x.x), "r"(x.y) : "memory");
}
/// Of 2, 4, 8 or 16 bytes.
template <class T>
__device__ T load_shared(unsigned from) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  if constexpr (sizeof(T) == 2) {
    std::uint16_t x;
    asm volatile("ld.shared.b16 %0, [%1];" : "=h"(x) : "r"(from) : "memory");
    return reinterpret_cast<const T&>(x);
  } else {
    unsigned words[sizeof(T) / 4];
    if constexpr (sizeof(T) == 4)
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(words[0]) : "r"(from) : "memory");
    else if constexpr (sizeof(T) == 8)
      asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                   : "=r"(words[0]), "=r"(words[1])
                   : "r"(from)
                   : "memory");
    else
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                   : "r"(from)
                   : "memory");
    return reinterpret_cast<const T&>(words);
  }
}

__device__ inline void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

}  // namespace mblas::cuda::gemm::hopper
