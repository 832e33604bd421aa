// Kernels that start while the one before them in the stream ends ("programmatic dependent launch",
// from compute capability 9.0 on). Between calls one after another that saves 1 to 2 us, between
// those of a graph 0.3 to 0.9.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/launch.cuh"

namespace mblas::cuda {

/// What a kernel of launch_early() does before it touches memory: waits until the kernels before it
/// are done and their results visible, and lets the next one come. What can be found out without,
/// such as its tile, comes before.
__device__ inline void begin_early() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

inline bool starts_early(const CudaQueue& queue) {
  return runs_clusters(queue.device()) && queue.takes_early_launches();
}

/// Bytes of shared memory to ask for, where a block needs `bytes`, so that a multiprocessor takes
/// no more than `each` blocks. Those of a kernel that starts early fill the room that the one
/// before leaves, multiprocessor by multiprocessor, and stay there: of 252 blocks of which three
/// fit some had three for themselves and others one (f32 334×788×5536 125 us, and 90 with two on
/// each).
inline std::size_t shared_bytes_for(std::int64_t each, std::size_t bytes,
                                    const DeviceInfo& device) {
  constexpr std::size_t kOfBlock = 1 << 10, kUnit = 128;  // taken besides; in which it is given
  const std::size_t all = device.shared_memory + kOfBlock;
  const auto others = std::size_t(std::clamp<std::int64_t>(each, 1, 1 << 10)) + 1;
  const std::size_t too_many = std::max(all / others, kOfBlock) - kOfBlock;
  return std::clamp(too_many / kUnit * kUnit + kUnit, bytes, std::max(bytes, device.shared_memory));
}

/// The attributes of a launch that may start early, in clusters of so many blocks along x.
class LaunchAttributes {
 public:
  explicit LaunchAttributes(bool early, unsigned cluster = 1) {
    if (early) {
      attributes_[count_].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes_[count_++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1) {
      attributes_[count_].id = cudaLaunchAttributeClusterDimension;
      attributes_[count_++].val.clusterDim = {cluster, 1, 1};
    }
  }
  operator std::span<cudaLaunchAttribute>() { return {attributes_, count_}; }

 private:
  cudaLaunchAttribute attributes_[2] = {};
  std::size_t count_ = 0;
};

/// launch_grid() for kernels that call begin_early(). Their files must be compiled for the device's
/// own capability: code of an older PTX does not wait.
template <class... Parameters, class... Arguments>
void launch_early(const CudaQueue& queue, void (*kernel)(Parameters...), dim3 grid, dim3 threads,
                  std::size_t shared, const Arguments&... arguments) {
  launch_with(LaunchAttributes(starts_early(queue)), queue, kernel, grid, threads, shared,
              arguments...);
}

/// The same of blocks that multiprocessors share evenly.
template <class... Parameters, class... Arguments>
void launch_evenly(const CudaQueue& queue, void (*kernel)(Parameters...), dim3 grid, dim3 threads,
                   std::size_t shared, const Arguments&... arguments) {
  const DeviceInfo& device = queue.device();
  const std::int64_t blocks = std::int64_t(grid.x) * grid.y * grid.z;
  const std::int64_t each = ceil_div(blocks, std::max(device.compute_units, 1));
  launch_early(queue, kernel, grid, threads, shared_bytes_for(each, shared, device), arguments...);
}

}  // namespace mblas::cuda
