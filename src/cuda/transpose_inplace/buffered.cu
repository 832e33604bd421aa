// Any shape at twice the memory traffic: the matrix is transposed into the workspace and copied
// back. Small matrices of a batch go through it together.
#include <algorithm>

#include "cuda/kernels.hpp"
#include "cuda/transpose/transpose.cuh"

namespace mblas::cuda::transpose_inplace {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBytes = std::int64_t(256) << 20;  // of more than one matrix at a time

/// Copies a batch of dense rows×cols matrices to rows ld apart.
template <class T>
__global__ void __launch_bounds__(kThreads)
    copy_kernel(const T* source, DeviceOutput B, std::int64_t rows, std::int64_t cols,
                std::int64_t ld, std::int64_t count) {
  const std::int64_t step = std::int64_t(gridDim.x) * kThreads;
  for (std::int64_t e = std::int64_t(blockIdx.x) * kThreads + threadIdx.x; e < count; e += step) {
    const std::int64_t row = e / cols;
    static_cast<T*>(B.at(row / rows))[row % rows * ld + e % cols] = source[e];
  }
}

std::int64_t matrix_bytes(const TransposeInplaceArgs& args) {
  return args.m * args.n * size_of(args.type);
}

std::size_t workspace_bytes(const TransposeInplaceArgs& args, const DeviceInfo&) {
  const std::int64_t bytes = matrix_bytes(args);
  const std::int64_t together = std::clamp<std::int64_t>(kMaxBytes / bytes, 1, args.batch);
  return placed_bytes(args.A, args.batch) + std::size_t(together * bytes);
}

void run(const TransposeInplaceArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  std::span<std::byte> workspace = queue.workspace;
  const int size = size_of(args.type);
  const DeviceOutput A = place(args.A, args.batch, args.A.stride * size, queue, workspace);
  const auto bits = address_bits(args.A, args.batch);
  const std::int64_t bytes = matrix_bytes(args);
  const std::int64_t together = std::int64_t(workspace.size()) / bytes;

  for (std::int64_t first = 0; first < args.batch; first += together) {
    const std::int64_t batch = std::min(together, args.batch - first);
    const DeviceOutput part = A.from(first);
    transpose::run_shared({args.m, args.n, args.A.ld, args.m, batch,
                           DeviceInput{part.data, part.stride, part.pointers},
                           DeviceOutput{workspace.data(), bytes, nullptr}},
                          size, bits, queue);
    const std::int64_t count = args.m * args.n * batch;
    with_untyped(size, bits, [&]<class T>() {
      launch(queue, copy_kernel<T>, ceil_div(count, kThreads), dim3(kThreads),
             reinterpret_cast<const T*>(workspace.data()), part, args.n, args.m, args.ldb, count);
    });
  }
}

}  // namespace

Kernel<TransposeInplaceArgs> buffered() {
  return {"buffered", "through the workspace and back, any shape", declines_nothing,
          workspace_bytes, run};
}

}  // namespace mblas::cuda::transpose_inplace
