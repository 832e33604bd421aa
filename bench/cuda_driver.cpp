#include "cuda_driver.hpp"

#include <fmt/format.h>

#include <utility>

#include "mblas/error.hpp"
#include "shared_library.hpp"

namespace mblas::bench {
namespace {

const SharedLibrary& driver() {
  static const SharedLibrary library("libcuda.so.1");
  return library;
}

/// Calls a function of the driver; DeviceError, with its name, where that fails.
template <class... Args>
void call(const char* name, Args... args) {
  if (const int result = driver().get<int(Args...)>(name)(args...); result != 0)
    throw Error(Status::DeviceError, fmt::format("{}: error {}", name, result));
}

/// Of cuda.h's CUdevice_attribute.
enum class Attribute : int { WarpSize = 10, ClockRateKHz = 13, Multiprocessors = 16 };

int attribute(Attribute name, int device) {
  int value = 0;
  call("cuDeviceGetAttribute", &value, name, device);
  return value;
}

}  // namespace

Pinned::Pinned(std::span<const std::byte> memory) : data_(const_cast<std::byte*>(memory.data())) {
  const int result = driver().get<int(void*, std::size_t, unsigned)>("cuMemHostRegister_v2")(
      data_, memory.size(), 0);
  if (result != 0)
    throw Error(Status::DeviceError,
                fmt::format("cuMemHostRegister of {} bytes: error {}", memory.size(), result));
}

Pinned::Pinned(Pinned&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}

Pinned::~Pinned() {
  if (data_) driver().get<int(void*)>("cuMemHostUnregister")(data_);
}

Graph::Graph(void* stream, const std::function<void()>& work) : stream_(stream) {
  constexpr int kThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  struct Captured {
    void* graph = nullptr;
    ~Captured() {
      if (graph) driver().get<int(void*)>("cuGraphDestroy")(graph);
    }
  } captured;
  call("cuStreamBeginCapture_v2", stream, kThreadLocal);
  try {
    work();
  } catch (...) {
    driver().get<int(void*, void**)>("cuStreamEndCapture")(stream, &captured.graph);
    throw;
  }
  call("cuStreamEndCapture", stream, &captured.graph);
  call("cuGraphInstantiateWithFlags", &executable_, captured.graph, 0ULL);
}

Graph::~Graph() { driver().get<int(void*)>("cuGraphExecDestroy")(executable_); }

void Graph::launch() const { call("cuGraphLaunch", executable_, stream_); }

double shared_words_per_second(int device) {
  return 1e3 * attribute(Attribute::ClockRateKHz, device) *
         attribute(Attribute::Multiprocessors, device) * attribute(Attribute::WarpSize, device);
}

}  // namespace mblas::bench
