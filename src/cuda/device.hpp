// The CUDA runtime as the cuda and cublas backends share it: errors, devices, queues. Plain C++
// over the statically linked runtime, so that a machine without a driver gets an answer and not a
// crash.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mblas/backend.hpp"

namespace mblas::cuda {

/// Throws what `error` means as an mblas::Error and leaves no stale error behind in the runtime.
void cuda_check(cudaError_t error, const char* what);

/// Makes `device` current and brings back what was.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = -1;  // -1: nothing to bring back
};

/// Lets blocks of `kernel` have `bytes` of shared memory on the current device, `device`; always as
/// many. What the thread has asked for lately it does not ask the driver for again, which takes a
/// quarter of a microsecond.
void allow_shared(const void* kernel, std::size_t bytes, int device);

/// While it lives, the calling thread may allocate and initialise although a stream is being
/// captured: neither becomes part of the graph. False where the driver is gone.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept;
  ~RelaxedCapture();
  explicit operator bool() const { return active_; }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool active_;
};

struct Devices {
  std::string unavailable;        ///< empty, or why there is no usable device
  std::vector<DeviceInfo> infos;  ///< by ordinal
  int driver_version = 0;  ///< 1000 * major + 10 * minor of the CUDA that the driver supports
  int runtime_version = 0;
};

/// The machine's devices, looked up once. Creates no context on them.
const Devices& devices();

/// "CUDA 13.0, driver for 13.1; 0: NVIDIA H200 (9.0, 132 SMs, 139.8 GiB)".
std::string describe_devices();

/// "13.0" of 13000.
std::string version_text(int version);

/// A stream of one device, and its memory.
class CudaQueue : public Queue {
 public:
  /// Status::InvalidArgument where there is no device of that ordinal.
  explicit CudaQueue(const QueueOptions& options);
  ~CudaQueue() override;

  cudaStream_t stream() const { return stream_; }

  void* allocate(std::size_t bytes) override;
  void deallocate(void* p) noexcept override;
  std::size_t memory_free() const override;
  void copy(const Copy2D& copy, CopyKind kind) override;
  void copy_all(std::span<const Copy2D> copies, CopyKind kind) override;
  void synchronize() override;
  bool capturing() const override;
  /// Whether the next kernel may be launched to start while what comes before it ends: into a graph
  /// that is being captured only right after one kernel.
  bool takes_early_launches() const;
  void mark(int i) override;
  double elapsed_ms(int from, int to) override;

 private:
  cudaStreamCaptureStatus capture_status() const;

  cudaStream_t stream_;
  bool owns_stream_;
  std::array<cudaEvent_t, 64> events_ = {};  // made when first marked
};

/// What both backends are: device memory and CudaQueues.
class DeviceBackend : public Backend {
 public:
  Memory memory() const override { return Memory::Device; }
  const std::string& unavailable() override { return devices().unavailable; }
  std::string describe() override { return describe_devices(); }
  int device_count() override { return int(devices().infos.size()); }
  std::unique_ptr<Queue> make_queue(const QueueOptions& options) override {
    return std::make_unique<CudaQueue>(options);
  }
};

}  // namespace mblas::cuda
