// Pointer arrays reach the device as kernel parameters, 480 at a time: a copy from pageable host
// memory would have to wait for the stream, and a captured one would read the array when the graph
// is replayed.
#include <algorithm>
#include <array>

#include "cuda/launch.cuh"
#include "cuda/pointers.hpp"

namespace mblas::cuda {
namespace {

constexpr int kChunk =
    480;  // with the other parameters just under the 4 KiB that every driver takes

struct Chunk {
  const void* pointers[kChunk];
};

__global__ void write_chunk(const __grid_constant__ Chunk chunk, int count, const void** dst) {
  for (int i = int(threadIdx.x); i < count; i += int(blockDim.x)) dst[i] = chunk.pointers[i];
}

constexpr int kArchitectures[] = {__CUDA_ARCH_LIST__};  // 100 * major + 10 * minor

constexpr auto kCapabilities = [] {
  std::array<int, std::size(kArchitectures)> result{};
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = kArchitectures[i] / 10;
  return result;
}();

}  // namespace

void write_pointers(const void* const* src, std::int64_t count, const void** dst,
                    const CudaQueue& queue) {
  for (std::int64_t done = 0; done < count; done += kChunk) {
    Chunk chunk;
    const int size = int(std::min<std::int64_t>(kChunk, count - done));
    std::copy_n(src + done, size, chunk.pointers);
    launch(queue, write_chunk, 1, 128, chunk, size, dst + done);
  }
}

std::span<const int> compiled_capabilities() { return kCapabilities; }

void check_kernel_image() {
  cudaFuncAttributes attributes;
  cuda_check(cudaFuncGetAttributes(&attributes, write_chunk), "the cuda kernels");
}

}  // namespace mblas::cuda
