// Pointer arrays reach the device as kernel parameters, 480 or 4064 at a time: a copy from pageable
// host memory would have to wait for the stream, and a captured one would read the array when the
// graph is replayed. (cudaMemcpyBatchAsync has copies that are done with their source when it
// returns, in a third of the time; but behind a stream that is held, 80 KB were read later.)
#include <algorithm>
#include <array>

#include "cuda/launch.cuh"
#include "cuda/pointers.hpp"

namespace mblas::cuda {
namespace {

// With the other parameters just under the 4 KiB that every driver takes, and the 32764 bytes that
// all those do which CUDA 13 runs on.
constexpr int kChunk = 480, kLongChunk = CUDART_VERSION >= 13000 ? 4064 : kChunk;

template <int kCount>
struct Chunk {
  const void* pointers[kCount];
};

template <int kCount>
__global__ void write_chunk(const __grid_constant__ Chunk<kCount> chunk, int count,
                            const void** dst) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) dst[i] = chunk.pointers[i];
}

/// The first pointers of `src`, up to kCount; returns how many.
template <int kCount>
std::int64_t write_first(const void* const* src, std::int64_t count, const void** dst,
                         const CudaQueue& queue) {
  constexpr int kThreads = 128;
  Chunk<kCount> chunk;
  const int size = int(std::min<std::int64_t>(kCount, count));
  std::copy_n(src, size, chunk.pointers);
  launch(queue, write_chunk<kCount>, ceil_div(size, kThreads), kThreads, chunk, size, dst);
  return size;
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
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t left = count - done;
    done += left > kChunk ? write_first<kLongChunk>(src + done, left, dst + done, queue)
                          : write_first<kChunk>(src + done, left, dst + done, queue);
  }
}

std::span<const int> compiled_capabilities() { return kCapabilities; }

void check_kernel_image() {
  cudaFuncAttributes attributes;
  cuda_check(cudaFuncGetAttributes(&attributes, write_chunk<kChunk>), "the cuda kernels");
}

}  // namespace mblas::cuda
