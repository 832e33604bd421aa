// Kernels that start while the one before them in the stream ends ("programmatic dependent launch",
// from compute capability 9.0 on). Between calls one after another that saves 1 to 2 us.
#pragma once

#include <span>

#include "cuda/launch.cuh"

namespace mblas::cuda {

/// What a kernel of launch_early() does before all else: waits until the kernels before it are done
/// and their results visible, and lets the next one come.
__device__ inline void begin_early() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// What precedes a launch in its stream. A graph that is being captured takes such launches after
/// kernels only.
enum class After { Anything, Kernel };

inline bool starts_early(After after, const CudaQueue& queue) {
  return runs_clusters(queue.device()) && (after == After::Kernel || !queue.capturing());
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
void launch_early(After after, const CudaQueue& queue, void (*kernel)(Parameters...), dim3 grid,
                  dim3 threads, std::size_t shared, const Arguments&... arguments) {
  launch_with(LaunchAttributes(starts_early(after, queue)), queue, kernel, grid, threads, shared,
              arguments...);
}

}  // namespace mblas::cuda
