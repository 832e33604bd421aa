#include "mblas/launches.hpp"

#if defined(MBLAS_HAVE_CUDA) || defined(MBLAS_HAVE_CUBLAS)

#include <memory>
#include <type_traits>
#include <utility>

#include "cuda/device.hpp"

namespace mblas {
namespace {

/// By way of a graph: what a stream is given while it is captured can be looked at.
std::vector<Launch> captured(const cuda::CudaQueue& queue, const std::function<void()>& work) {
  const cuda::DeviceGuard guard(queue.device().ordinal);
  cuda::cuda_check(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeThreadLocal),
                   "cudaStreamBeginCapture");
  const auto end_capture = [&] {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(queue.stream(), &graph);
    using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)>;
    return std::pair(error, Graph(graph, cudaGraphDestroy));
  };
  try {
    work();
  } catch (...) {
    end_capture();
    cudaGetLastError();  // what went wrong is in flight already
    throw;
  }
  const auto [error, graph] = end_capture();
  cuda::cuda_check(error, "cudaStreamEndCapture");
  std::size_t count = 0;
  cuda::cuda_check(cudaGraphGetNodes(graph.get(), nullptr, &count), "cudaGraphGetNodes");
  std::vector<cudaGraphNode_t> nodes(count);
  cuda::cuda_check(cudaGraphGetNodes(graph.get(), nodes.data(), &count), "cudaGraphGetNodes");
  int most_threads = 1;
  cuda::cuda_check(cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor,
                                          queue.device().ordinal),
                   "cudaDeviceGetAttribute");
  std::vector<Launch> list;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    cuda::cuda_check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
    if (type != cudaGraphNodeTypeKernel) continue;
    cudaKernelNodeParams p = {};
    cudaFuncAttributes attributes = {};
    // Kernels of other libraries' runtimes cannot be asked.
    if (cudaGraphKernelNodeGetParams(node, &p) != cudaSuccess ||
        cudaFuncGetAttributes(&attributes, p.func) != cudaSuccess) {
      cudaGetLastError();  // which also forgets it
      continue;
    }
    const int threads = int(p.blockDim.x * p.blockDim.y * p.blockDim.z);
    int blocks = 0;
    cuda::cuda_check(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, p.func, threads, p.sharedMemBytes),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    list.push_back({{int(p.gridDim.x), int(p.gridDim.y), int(p.gridDim.z)},
                    {int(p.blockDim.x), int(p.blockDim.y), int(p.blockDim.z)},
                    attributes.numRegs,
                    attributes.sharedSizeBytes + p.sharedMemBytes,
                    double(blocks) * threads / most_threads});
  }
  return list;
}

}  // namespace

void* stream_of(const Queue& queue) {
  const auto* own = dynamic_cast<const cuda::CudaQueue*>(&queue);
  return own ? own->stream() : nullptr;
}

std::vector<Launch> launches_of(Queue& queue, const std::function<void()>& work) {
  const auto* own = dynamic_cast<const cuda::CudaQueue*>(&queue);
  return own ? captured(*own, work) : std::vector<Launch>();
}

}  // namespace mblas

#else

namespace mblas {

void* stream_of(const Queue&) { return nullptr; }
std::vector<Launch> launches_of(Queue&, const std::function<void()>&) { return {}; }

}  // namespace mblas

#endif
