// Shared memory beyond what every kernel may have.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

#include "cuda/device.hpp"

namespace mblas::cuda {

/// Lets blocks of `kernel` have `bytes` of shared memory; once on each of the first 64 devices.
template <class Kernel>
void allow_shared(Kernel* kernel, int bytes, int device, std::atomic<std::uint64_t>& allowed) {
  const std::uint64_t bit = device < 64 ? std::uint64_t{1} << device : 0;
  if (bit & allowed.load(std::memory_order_relaxed)) return;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "shared memory of a kernel");
  allowed.fetch_or(bit, std::memory_order_relaxed);
}

}  // namespace mblas::cuda
