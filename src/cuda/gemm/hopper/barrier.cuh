// Barriers in shared memory, fences and the sizes of register files: what the warps of the Hopper
// kernels wait for and say to each other. PTX ISA, sections on mbarrier, cluster barriers, proxies.
#pragma once

#include "cuda/gemm/instructions.cuh"

namespace mblas::cuda::gemm::hopper {

/// An mbarrier by its address in shared memory. A phase ends when all arrivals and all bytes that
/// were expected are in; phases alternate between parities 0 and 1. Between blocks it orders what
/// copies and tensor cores do, which needs no wider scope than a block's: that would cost a fence
/// of the whole device and the first-level cache each time.
struct Barrier {
  unsigned address;

  __device__ void init(int arrivals) const {
    stall();
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals)
                 : "memory");
  }
  __device__ void arrive() const {
    stall();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
  }
  /// Arrives when what this thread has asked for by copy_async() is there.
  __device__ void arrive_after_copies() const {
    stall();
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address) : "memory");
  }
  /// Arrives, and makes the phase last until `bytes` have been copied.
  __device__ void arrive_expecting(unsigned bytes) const {
    stall();
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes)
                 : "memory");
  }
  /// Arrives at the barrier of this address in block `rank` of the cluster.
  __device__ void arrive_at(unsigned rank) const {
    stall();
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
        "}" ::"r"(address),
        "r"(rank)
        : "memory");
  }
  /// Whether the phase of this parity has ended; does not wait.
  __device__ bool has_ended(unsigned parity) const {
    unsigned ended;
    asm volatile(
        "{\n"
        ".reg .pred ended;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
        "selp.u32 %0, 1, 0, ended;\n"
        "}"
        : "=r"(ended)
        : "r"(address), "r"(parity)
        : "memory");
    return ended != 0;
  }
  /// Until the phase of this parity has ended.
  __device__ void wait(unsigned parity) const {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(address),
        "r"(parity)
        : "memory");
    stall();
  }
};

/// Initialised barriers become visible to the cluster and to copies.
__device__ inline void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline unsigned rank_in_cluster() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Which warpgroup of the block this is. The compiler sees that a warp's threads have the same and
/// keeps what follows from it, such as descriptors of operands, in the registers of the warp.
__device__ inline int warpgroup() { return __shfl_sync(~0u, int(threadIdx.x) / 128, 0); }

/// `threads` of the block meet at a barrier by number, 1 to 15; arriving does not wait.
__device__ inline void sync_named(int number, int threads) {
  stall();
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
  stall();
}
/// The same; whether it holds for any of them.
__device__ inline bool any_named(int number, int threads, bool holds) {
  unsigned any;
  stall();
  asm volatile(
      "{\n"
      ".reg .pred mine, any;\n"
      "setp.ne.u32 mine, %3, 0;\n"
      "bar.red.or.pred any, %1, %2, mine;\n"
      "selp.u32 %0, 1, 0, any;\n"
      "}"
      : "=r"(any)
      : "r"(number), "r"(threads), "r"(unsigned(holds))
      : "memory");
  stall();
  return any != 0;
}
__device__ inline void arrive_named(int number, int threads) {
  stall();
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/// What this thread wrote to shared memory becomes visible to copies and tensor cores.
__device__ inline void fence_shared_for_copies() {
  stall();
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// A kernel that was launched early waits until those before it are done and their results visible;
/// before that it may not touch the memory of its operands.
__device__ inline void wait_for_earlier_kernels() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
/// From here on the next kernel may be launched early, once every block has come here.
__device__ inline void let_next_kernel_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/// The warps of a warpgroup take, or leave, registers: a multiple of 8 a thread.
template <int kCount>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

}  // namespace mblas::cuda::gemm::hopper
