// What every kernel's host side needs: operands as the device sees them, grids of any size, checked
// launches.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "cuda/device.hpp"
#include "cuda/pointers.hpp"

namespace mblas::cuda {

/// The `declines` of kernels that can run everything.
template <class Args>
const char* declines_nothing(const Args&, const DeviceInfo&) {
  return nullptr;
}

/// Whether code that was compiled for compute capability 9.0 and up is what runs: only that for
/// exactly the device's own is sure to.
inline bool runs_clusters(const DeviceInfo& device) {
  const auto compiled = compiled_capabilities();
  return device.capability >= 90 &&
         std::find(compiled.begin(), compiled.end(), device.capability) != compiled.end();
}

/// Whether what runs may be Hopper's own instructions, which later devices lack.
inline bool runs_hopper(const DeviceInfo& device) {
  return device.capability == 90 && runs_clusters(device);
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Launches on the queue's device and stream. Grids hold 2^31 - 1 blocks: kernels stride over the
/// rest.
template <class... Parameters, class... Arguments>
void launch(const CudaQueue& queue, void (*kernel)(Parameters...), std::int64_t blocks,
            dim3 threads, const Arguments&... arguments) {
  const DeviceGuard guard(queue.device().ordinal);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(unsigned(std::min<std::int64_t>(blocks, std::numeric_limits<int>::max())));
  config.blockDim = threads;
  config.stream = queue.stream();
  cuda_check(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "kernel launch");
}

/// Launches one grid, with these attributes and `shared` bytes of dynamic shared memory.
template <class... Parameters, class... Arguments>
void launch_with(std::span<cudaLaunchAttribute> attributes, const CudaQueue& queue,
                 void (*kernel)(Parameters...), dim3 grid, dim3 threads, std::size_t shared,
                 const Arguments&... arguments) {
  constexpr std::size_t kUnasked = 48 << 10;  // more is given to kernels that ask for it
  const DeviceGuard guard(queue.device().ordinal);
  // Of one kernel always the same: launches by other threads may ask for other sizes, of which
  // those beyond a kernel's own are at most so large (shared_bytes_for() in early.cuh).
  if (shared > kUnasked)
    allow_shared(reinterpret_cast<const void*>(kernel),
                 std::max(shared, queue.device().shared_memory / 2), queue.device().ordinal);
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.stream = queue.stream();
  config.attrs = attributes.data();
  config.numAttrs = unsigned(attributes.size());
  cuda_check(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "kernel launch");
}

/// Launches one grid, with `shared` bytes of dynamic shared memory.
template <class... Parameters, class... Arguments>
void launch_grid(const CudaQueue& queue, void (*kernel)(Parameters...), dim3 grid, dim3 threads,
                 std::size_t shared, const Arguments&... arguments) {
  launch_with({}, queue, kernel, grid, threads, shared, arguments...);
}

/// The tiles of a batch of matrices, numbered along the rows, then the columns, then the batch.
struct Tiles {
  std::int64_t rows, cols, batch;

  struct Place {
    std::int64_t row, col, batch;
  };
  __host__ __device__ std::int64_t count() const { return rows * cols * batch; }
  __device__ Place operator[](std::int64_t t) const {
    const std::int64_t line = t / cols;
    return {line % rows, t % cols, line / rows};
  }
};

/// An Operand in a kernel: `stride` in bytes, `pointers` in device memory. In gf256 an entry is a
/// row.
template <class Void>
struct DeviceOperand {
  using Byte = typename Operand<Void>::Byte;

  Void* data = nullptr;
  std::int64_t stride = 0;
  Void* const* pointers = nullptr;

  __device__ Void* at(std::int64_t entry) const {
    Void* const p = pointers ? pointers[entry] : static_cast<Byte*>(data) + entry * stride;
    __builtin_assume(__isGlobal(p));  // which loads and stores to use
    return p;
  }
  /// The operand whose entry 0 is entry `first` of this one.
  DeviceOperand from(std::int64_t first) const {
    if (pointers) return {nullptr, 0, pointers + first};
    return {static_cast<Byte*>(data) + first * stride, stride, nullptr};
  }
};
using DeviceInput = DeviceOperand<const void>;
using DeviceOutput = DeviceOperand<void>;

/// Bytes of workspace that place() takes for an operand of `count` entries.
template <class Void>
std::size_t placed_bytes(const Operand<Void>& x, std::int64_t count) {
  return x.pointers && count > 1 ? pointer_bytes(count) : 0;
}

/// Brings `x`, of `count` entries `stride` bytes apart, to the device; its pointers go to the front
/// of `workspace`, which is shortened by them.
template <class Void>
DeviceOperand<Void> place(const Operand<Void>& x, std::int64_t count, std::int64_t stride,
                          const CudaQueue& queue, std::span<std::byte>& workspace) {
  if (!x.pointers) return {x.data, stride, nullptr};
  if (count == 1) return {x.pointers[0], 0, nullptr};
  auto* table = reinterpret_cast<Void**>(workspace.data());
  write_pointers(x.pointers, count, const_cast<const void**>(table), queue);
  workspace = workspace.subspan(placed_bytes(x, count));
  return {nullptr, 0, table};
}

}  // namespace mblas::cuda
