// The instructions that kernels ask for by name, each wrapped once.
#pragma once

#include <type_traits>

#include "cuda/element.cuh"

namespace mblas::cuda {

__device__ inline unsigned shared_address(const void* p) {
  return unsigned(__cvta_generic_to_shared(p));
}

/// `x`, of which the compiler knows nothing: what follows from it is computed where it is needed
/// and takes no registers before, while sums need them all.
__device__ inline int late(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

/// threadIdx.x, read anew for the same reason.
__device__ inline int thread_now() {
  int x;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
  return x;
}

/// A build with MBLAS_STALLS lets a warp stop here now and then, at random, for some microseconds.
/// Others are late then who are early else, and the results show a wait that is missing.
__device__ inline void stall() {
#ifdef MBLAS_STALLS
  const unsigned seed = unsigned(clock64()) + threadIdx.x / 32 * 977 + blockIdx.x * 131;
  const unsigned random = seed * 0x9e3779b9u;
  if (random >> 29 == 0) __nanosleep(1000 + (random >> 12) % 2048);
#endif
}

/// Copies the first `bytes` of kBytes, and zeros for the rest. `kCached`: 16 bytes, too, by way of
/// the first-level cache, as fewer are; what many blocks read at a time is asked for once by each
/// multiprocessor then.
template <int kBytes, bool kCached = false>
__device__ void copy_async(unsigned dst, const void* src, int bytes) {
  if constexpr (kBytes == 16 && !kCached) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(dst), "l"(src), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
  }
}
template <int kBytes>
__device__ void copy_async(unsigned dst, const void* src) {
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(dst), "l"(src), "n"(kBytes)
                 : "memory");
  }
}
/// Copies kBytes, 4 or 8, or zeros if they are not there, and reads nothing then.
template <int kBytes>
__device__ void copy_async_or_zeros(unsigned dst, const void* src, bool there) {
  asm volatile(
      "{\n"
      ".reg .pred none;\n"
      "setp.eq.u32 none, %2, 0;\n"
      "cp.async.ca.shared.global [%0], [%1], %3, none;\n"
      "}" ::"r"(dst),
      "l"(src), "r"(unsigned(there)), "n"(kBytes)
      : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kNewer>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewer) : "memory");
  stall();
}

// From compute capability 9.0 on.

/// All threads of the cluster meet. What they wrote before is seen after.
__device__ inline void sync_cluster() {
  stall();
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
/// The same, but nothing is waited for that they wrote, which would be until the whole device sees
/// it: where they only read, or have initialised barriers and fenced that.
__device__ inline void meet_cluster() {
  stall();
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
/// The 16 bytes that block `rank` of the cluster has at this block's address `at`.
template <class V>
__device__ V load_shared_of(unsigned at, unsigned rank) {
  static_assert(sizeof(V) == 16);
  union {
    unsigned words[4];
    V vector;
  } x;
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
  asm volatile("ld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.words[0]), "=r"(x.words[1]), "=r"(x.words[2]), "=r"(x.words[3])
               : "r"(there)
               : "memory");
  return x.vector;
}

/// The bits of a float, rounded to those that the tensor cores read; ties away from zero.
__device__ inline unsigned round_to_tf32(unsigned x) {
  asm("cvt.rna.tf32.f32 %0, %0;" : "+r"(x));
  return x;
}

/// d += a b of 16 rows, 8 columns and 32 bytes of k.
template <class In>
__device__ void multiply_tile(Accumulator<In> (&d)[4], const unsigned (&a)[4], unsigned b0,
                              unsigned b1) {
  if constexpr (std::is_same_v<In, __half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else if constexpr (std::is_same_v<In, __nv_bfloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else if constexpr (std::is_same_v<In, Tf32>)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// The same with 16 bytes of k, of 16-bit elements; the first half of `a`.
template <class T>
__device__ void multiply_half_tile(float (&d)[4], const unsigned (&a)[4], unsigned b0) {
  if constexpr (std::is_same_v<T, __half>)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
  else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
}

/// d += a b of 16×4 by 4×8. Lane 4 g + t holds (g, t) and (g + 8, t) of A, (t, g) of B, and of D
/// (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1).
__device__ inline void multiply_tile(double (&d)[4], const double (&a)[2], double b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(b));
#elif __CUDA_ARCH__ >= 800
#pragma unroll
  for (int r = 0; r < 2; ++r)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[2 * r]), "+d"(d[2 * r + 1])
        : "d"(a[r]), "d"(b));
#endif
}

/// Four 8×8 matrices of 16-bit elements: lane l holds where row l % 8 of matrix l / 8 begins.
template <bool kTransposed>
__device__ void load_matrices(unsigned (&x)[4], unsigned address) {
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
}

}  // namespace mblas::cuda
