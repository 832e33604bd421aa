#include "cuda/device.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "mblas/error.hpp"

namespace mblas::cuda {
namespace {

/// Outcomes that say the backend cannot run here, as opposed to a device that failed.
bool means_unavailable(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorInitializationError:
    case cudaErrorStubLibrary:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
      return true;
    default:
      return false;
  }
}

std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

/// For calls whose failure must not be heard: destructors, and a driver that is shutting down.
void ignore(cudaError_t error) noexcept {
  if (error != cudaSuccess) cudaGetLastError();
}

int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  cuda_check(cudaDeviceGetAttribute(&value, name, device), "cudaDeviceGetAttribute");
  return value;
}

DeviceInfo info_of(int device) {
  cudaDeviceProp properties = {};
  cuda_check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  DeviceInfo info;
  info.name = properties.name;
  info.memory = Memory::Device;
  info.ordinal = device;
  info.compute_units = properties.multiProcessorCount;
  info.capability = 10 * properties.major + properties.minor;
  info.shared_memory = properties.sharedMemPerBlockOptin;
  info.memory_bytes = properties.totalGlobalMem;
  // Kilohertz of two transfers each, and bits.
  info.memory_rate = 2e3 * attribute(cudaDevAttrMemoryClockRate, device) *
                     attribute(cudaDevAttrGlobalMemoryBusWidth, device) / 8;
  return info;
}

Devices probe() {
  Devices result;
  ignore(cudaRuntimeGetVersion(&result.runtime_version));
  ignore(cudaDriverGetVersion(&result.driver_version));
  if (result.driver_version == 0) {
    result.unavailable = "no CUDA driver: libcuda.so.1 of the NVIDIA driver was not found";
    return result;
  }
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  ignore(error);
  if (error == cudaErrorInsufficientDriver) {
    result.unavailable = "the NVIDIA driver is too old: it supports CUDA " +
                         version_text(result.driver_version) + ", this build needs " +
                         version_text(result.runtime_version) + ": " + text_of(error);
  } else if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    result.unavailable = "no CUDA device: " + text_of(cudaErrorNoDevice);
  } else if (error != cudaSuccess) {
    result.unavailable = "CUDA cannot start: " + text_of(error);
  } else {
    try {
      for (int device = 0; device < count; ++device) result.infos.push_back(info_of(device));
    } catch (const Error& e) {
      result.infos.clear();
      result.unavailable = e.what();
    }
  }
  return result;
}

#if CUDART_VERSION >= 13000
/// Whether the device can copy from and to the host memory at `p` by itself.
bool is_pinned(const void* p) {
  cudaPointerAttributes attributes = {};
  cuda_check(cudaPointerGetAttributes(&attributes, p), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeHost;
}
#endif

const DeviceInfo& checked_info(int device) {
  const Devices& all = devices();
  if (!all.unavailable.empty()) throw Error(Status::BackendUnavailable, all.unavailable);
  const int count = int(all.infos.size());
  if (device < 0 || device >= count)
    throw Error(Status::InvalidArgument, "CUDA device " + std::to_string(device) + ": there are " +
                                             std::to_string(count) + ", numbered from 0");
  return all.infos[std::size_t(device)];
}

}  // namespace

void cuda_check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  const Status status = error == cudaErrorMemoryAllocation ? Status::OutOfMemory
                        : means_unavailable(error)         ? Status::BackendUnavailable
                                                           : Status::DeviceError;
  throw Error(status, std::string(what) + ": " + text_of(error));
}

DeviceGuard::DeviceGuard(int device) {
  int current = 0;
  cuda_check(cudaGetDevice(&current), "cudaGetDevice");
  if (current == device) return;
  cuda_check(cudaSetDevice(device), "cudaSetDevice");
  previous_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (previous_ >= 0) ignore(cudaSetDevice(previous_));
}

void allow_shared(const void* kernel, std::size_t bytes, int device) {
  struct Allowed {
    const void* kernel;
    std::size_t bytes;
    int device;
    bool operator==(const Allowed&) const = default;
  };
  constexpr std::size_t kRemembered = 64;
  thread_local Allowed lately[kRemembered] = {};
  Allowed& place = lately[reinterpret_cast<std::uintptr_t>(kernel) / 16 % kRemembered];
  const Allowed now = {kernel, bytes, device};
  if (place == now) return;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)),
             "shared memory of a kernel");
  place = now;
}

RelaxedCapture::RelaxedCapture() noexcept {
  const cudaError_t error = cudaThreadExchangeStreamCaptureMode(&mode_);
  active_ = error == cudaSuccess;
  ignore(error);
}

RelaxedCapture::~RelaxedCapture() {
  if (active_) ignore(cudaThreadExchangeStreamCaptureMode(&mode_));
}

const Devices& devices() {
  static const Devices result = probe();
  return result;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string describe_devices() {
  const Devices& all = devices();
  std::string text = "CUDA " + version_text(all.runtime_version);
  text += all.driver_version ? ", driver for " + version_text(all.driver_version) : ", no driver";
  for (const DeviceInfo& d : all.infos) {
    char gib[32];
    std::snprintf(gib, sizeof gib, "%.1f", double(d.memory_bytes) / double(1 << 30));
    text += "; " + std::to_string(d.ordinal) + ": " + d.name + " (" +
            std::to_string(d.capability / 10) + "." + std::to_string(d.capability % 10) + ", " +
            std::to_string(d.compute_units) + " SMs, " + gib + " GiB)";
  }
  return text;
}

CudaQueue::CudaQueue(const QueueOptions& options)
    : Queue(checked_info(options.device)),
      stream_(static_cast<cudaStream_t>(options.stream)),
      owns_stream_(options.own_stream) {
  if (!owns_stream_) return;
  const DeviceGuard guard(device().ordinal);
  cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

CudaQueue::~CudaQueue() {
  for (const cudaEvent_t event : events_)
    if (event) ignore(cudaEventDestroy(event));
  if (owns_stream_) ignore(cudaStreamDestroy(stream_));
}

void* CudaQueue::allocate(std::size_t bytes) {
  const DeviceGuard guard(device().ordinal);
  const RelaxedCapture relaxed;
  void* p = nullptr;
  const cudaError_t error = cudaMalloc(&p, bytes);
  if (error == cudaErrorMemoryAllocation) {
    ignore(error);
    throw Error(Status::OutOfMemory, "cudaMalloc of " + std::to_string(bytes) + " bytes on " +
                                         device().name + ": " + text_of(error));
  }
  cuda_check(error, "cudaMalloc");
  // For staged operands: kernels read the padding between rows along with the elements beside it.
  if (owns_stream_) ignore(cudaMemsetAsync(p, 0, bytes, stream_));
  return p;
}

void CudaQueue::deallocate(void* p) noexcept {
  const RelaxedCapture relaxed;
  ignore(cudaFree(p));
}

std::size_t CudaQueue::memory_free() const {
  const DeviceGuard guard(device().ordinal);
  std::size_t available = 0, total = 0;
  cuda_check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  return available;
}

void CudaQueue::copy(const Copy2D& copy, CopyKind kind) {
  if (copy.width == 0 || copy.rows == 0) return;
  const DeviceGuard guard(device().ordinal);
  const cudaMemcpyKind direction = kind == CopyKind::HostToDevice   ? cudaMemcpyHostToDevice
                                   : kind == CopyKind::DeviceToHost ? cudaMemcpyDeviceToHost
                                                                    : cudaMemcpyDeviceToDevice;
  const auto width = std::size_t(copy.width);
  if (copy.rows == 1 || (copy.dst_pitch == copy.width && copy.src_pitch == copy.width)) {
    cuda_check(
        cudaMemcpyAsync(copy.dst, copy.src, width * std::size_t(copy.rows), direction, stream_),
        "cudaMemcpyAsync");
    return;
  }
  auto* dst = static_cast<std::byte*>(copy.dst);
  const auto* src = static_cast<const std::byte*>(copy.src);
  // Rows further apart than the 2-D copy can step are few: no device holds many.
  const std::int64_t max_pitch = attribute(cudaDevAttrMaxPitch, device().ordinal);
  if (std::max(copy.dst_pitch, copy.src_pitch) > max_pitch) {
    for (std::int64_t i = 0; i < copy.rows; ++i)
      cuda_check(cudaMemcpyAsync(dst + i * copy.dst_pitch, src + i * copy.src_pitch, width,
                                 direction, stream_),
                 "cudaMemcpyAsync");
    return;
  }
  constexpr std::int64_t kMaxRows = std::int64_t(1) << 30;
  for (std::int64_t i = 0; i < copy.rows; i += kMaxRows)
    cuda_check(
        cudaMemcpy2DAsync(dst + i * copy.dst_pitch, std::size_t(copy.dst_pitch),
                          src + i * copy.src_pitch, std::size_t(copy.src_pitch), width,
                          std::size_t(std::min(kMaxRows, copy.rows - i)), direction, stream_),
        "cudaMemcpy2DAsync");
}

// Copies that are issued together cost little beyond their bytes; one by one, two microseconds
// each, in which the link moves 100 KB.
void CudaQueue::copy_all(std::span<const Copy2D> copies, CopyKind kind) {
#if CUDART_VERSION >= 13000
  // Memory that is not pinned keeps the host busy anyway. The default stream takes no batches.
  const bool batch = stream_ && kind != CopyKind::DeviceToDevice && copies.size() > 1 &&
                     std::ranges::all_of(copies, [kind](const Copy2D& copy) {
                       const void* host = kind == CopyKind::HostToDevice ? copy.src : copy.dst;
                       return copy.rows == 1 && copy.width > 0 && is_pinned(host);
                     });
  if (batch) {
    const DeviceGuard guard(device().ordinal);
    constexpr std::size_t kMost = 32;
    std::array<void*, kMost> to;
    std::array<const void*, kMost> from;
    std::array<std::size_t, kMost> bytes;
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
    while (!copies.empty()) {
      const std::size_t count = std::min(kMost, copies.size());
      for (std::size_t i = 0; i < count; ++i) {
        to[i] = copies[i].dst;
        from[i] = copies[i].src;
        bytes[i] = std::size_t(copies[i].width);
      }
      std::size_t first = 0;  // of the copies that the attributes are for
      cuda_check(cudaMemcpyBatchAsync(to.data(), from.data(), bytes.data(), count, &attributes,
                                      &first, 1, stream_),
                 "cudaMemcpyBatchAsync");
      copies = copies.subspan(count);
    }
    return;
  }
#endif
  Queue::copy_all(copies, kind);
}

void CudaQueue::synchronize() {
  const DeviceGuard guard(device().ordinal);
  cuda_check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

cudaStreamCaptureStatus CudaQueue::capture_status() const {
  const DeviceGuard guard(device().ordinal);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cuda_check(cudaStreamIsCapturing(stream_, &status), "cudaStreamIsCapturing");
  return status;
}

bool CudaQueue::capturing() const { return capture_status() != cudaStreamCaptureStatusNone; }

bool CudaQueue::takes_early_launches() const {
  const cudaStreamCaptureStatus status = capture_status();
  if (status != cudaStreamCaptureStatusActive) return status == cudaStreamCaptureStatusNone;
#if CUDART_VERSION >= 13000
  const DeviceGuard guard(device().ordinal);
  cudaStreamCaptureStatus now;
  unsigned long long id;
  cudaGraph_t graph;
  const cudaGraphNode_t* nodes;
  const cudaGraphEdgeData* edges;
  std::size_t count = 0;
  cuda_check(cudaStreamGetCaptureInfo(stream_, &now, &id, &graph, &nodes, &edges, &count),
             "cudaStreamGetCaptureInfo");
  if (count != 1 || (edges && edges[0].type != cudaGraphDependencyTypeDefault)) return false;
  cudaGraphNodeType type;
  cuda_check(cudaGraphNodeGetType(nodes[0], &type), "cudaGraphNodeGetType");
  return type == cudaGraphNodeTypeKernel;
#else
  return false;
#endif
}

void CudaQueue::mark(int i) {
  const DeviceGuard guard(device().ordinal);
  cudaEvent_t& event = events_.at(std::size_t(i));
  if (!event) cuda_check(cudaEventCreate(&event), "cudaEventCreate");
  cuda_check(cudaEventRecord(event, stream_), "cudaEventRecord");
}

double CudaQueue::elapsed_ms(int from, int to) {
  const DeviceGuard guard(device().ordinal);
  const cudaEvent_t start = events_.at(std::size_t(from)), stop = events_.at(std::size_t(to));
  if (!start || !stop) throw Error(Status::Internal, "elapsed_ms: a stamp was never marked");
  cuda_check(cudaEventSynchronize(start), "cudaEventSynchronize");
  cuda_check(cudaEventSynchronize(stop), "cudaEventSynchronize");
  float ms = 0;
  cuda_check(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
  return double(ms);
}

}  // namespace mblas::cuda
