// What pointers.cu offers to plain C++: pointer arrays in device memory, and what the kernels were
// built for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mblas::cuda {

class CudaQueue;

/// Bytes of workspace that `count` pointers take.
constexpr std::size_t pointer_bytes(std::int64_t count) {
  return (std::size_t(count) * sizeof(void*) + 255) / 256 * 256;
}

/// Writes `count` pointers from host memory to `dst` in device memory, in order with the queue.
/// They travel inside kernel launches: the host array is free again at once, and a captured graph
/// keeps them.
void write_pointers(const void* const* src, std::int64_t count, const void** dst,
                    const CudaQueue& queue);

/// The capabilities (10 * major + minor) that the kernels were compiled for.
std::span<const int> compiled_capabilities();

/// Throws Status::BackendUnavailable where the current device cannot run the compiled kernels.
void check_kernel_image();

}  // namespace mblas::cuda
