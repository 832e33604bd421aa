// Any shape at twice the memory traffic: the matrix is transposed into the workspace by the best
// kernel out of place, and copied back. The workspace is one re-packed operand; small matrices of a
// batch go through it together.
#include <algorithm>

#include "cuda/kernels.hpp"
#include "cuda/transpose/transpose.cuh"
#include "cuda/transpose/turn.cuh"

namespace mblas::cuda::transpose_inplace {
namespace buffered_file {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBytes = std::int64_t(256) << 20;  // of more than one matrix at a time

/// Copies a batch of dense rows×cols matrices to rows ld apart, four elements a thread.
template <class T>
__global__ void __launch_bounds__(kThreads)
    copy_kernel(const T* source, const __grid_constant__ DeviceOutput B, std::int64_t rows,
                std::int64_t cols, std::int64_t ld, const __grid_constant__ turn::Part part) {
  begin_early();
  const std::int64_t batch = part.batch + blockIdx.z, row = part.col + blockIdx.y;
  const T* from = source + (batch * rows + row) * cols;
  T* to = static_cast<T*>(B.at(batch)) + row * ld;
  const std::int64_t first = std::int64_t(blockIdx.x) * (4 * kThreads) + threadIdx.x;
  T x[4];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (first + k * kThreads < cols) x[k] = from[first + k * kThreads];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (first + k * kThreads < cols) to[first + k * kThreads] = x[k];
}

std::int64_t matrix_bytes(const TransposeInplaceArgs& args) {
  return args.m * args.n * size_of(args.type);
}

std::size_t workspace_bytes(const TransposeInplaceArgs& args, const DeviceInfo&) {
  const std::int64_t bytes = matrix_bytes(args);
  const std::int64_t together = std::clamp<std::int64_t>(kMaxBytes / bytes, 1, args.batch);
  return placed_bytes(args.A, args.batch) + std::size_t(together * bytes);
}

void copy_back(const TransposeInplaceArgs& args, const DeviceOutput& to, const std::byte* from,
               std::int64_t batch, const CudaQueue& queue) {
  const int size = size_of(args.type);
  const bool packed =
      args.ldb == args.m && !to.pointers && (batch == 1 || to.stride == matrix_bytes(args));
  if (packed) {
    const DeviceGuard guard(queue.device().ordinal);
    cuda_check(cudaMemcpyAsync(to.data, from, std::size_t(batch * matrix_bytes(args)),
                               cudaMemcpyDeviceToDevice, queue.stream()),
               "copy within the device");
    return;
  }
  with_untyped(size, address_bits(args.A, args.batch), [&]<class T>() {
    const auto blocks = unsigned(ceil_div(args.m, 4 * kThreads));
    turn::for_each_part(args.n, batch, [&](const turn::Part& part, unsigned y, unsigned z) {
      launch_early(queue, copy_kernel<T>, dim3(blocks, y, z), kThreads, 0,
                   reinterpret_cast<const T*>(from), to, args.n, args.m, args.ldb, part);
    });
  });
}

void run(const TransposeInplaceArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  std::span<std::byte> workspace = queue.workspace;
  const int size = size_of(args.type);
  const DeviceOutput A = place(args.A, args.batch, args.A.stride * size, queue, workspace);
  const auto bits = access_bits(args.A, args.batch, size);
  const std::int64_t bytes = matrix_bytes(args);
  const std::int64_t together = std::int64_t(workspace.size()) / bytes;

  for (std::int64_t first = 0; first < args.batch; first += together) {
    const std::int64_t batch = std::min(together, args.batch - first);
    const DeviceOutput part = A.from(first);
    const TransposeProblem there = {args.m,
                                    args.n,
                                    args.A.ld,
                                    args.m,
                                    batch,
                                    DeviceInput{part.data, part.stride, part.pointers},
                                    DeviceOutput{workspace.data(), bytes, nullptr}};
    const auto out_bits = std::uintptr_t(args.m * size) | (batch > 1 ? std::uintptr_t(bytes) : 0);
    transpose::run_best(there, size, bits | out_bits, queue);
    copy_back(args, part, workspace.data(), batch, queue);
  }
}

}  // namespace buffered_file

Kernel<TransposeInplaceArgs> buffered() {
  using namespace buffered_file;
  return {"buffered", "through the workspace and back, any shape", declines_nothing,
          workspace_bytes, run};
}

}  // namespace mblas::cuda::transpose_inplace
