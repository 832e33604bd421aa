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

/// Calls a function of the driver, none of whose results is ignored.
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
  call("cuMemHostRegister_v2", data_, memory.size(), 0U);
}

Pinned::Pinned(Pinned&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}

Pinned::~Pinned() {
  if (data_) driver().get<int(void*)>("cuMemHostUnregister")(data_);
}

Graph::Graph(void* stream, const std::function<void()>& work) : stream_(stream) {
  constexpr int kThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  void* graph = nullptr;
  call("cuStreamBeginCapture_v2", stream, kThreadLocal);
  try {
    work();
  } catch (...) {
    driver().get<int(void*, void**)>("cuStreamEndCapture")(stream, &graph);
    throw;
  }
  call("cuStreamEndCapture", stream, &graph);
  const int result = driver().get<int(void**, void*, unsigned long long)>(
      "cuGraphInstantiateWithFlags")(&executable_, graph, 0);
  call("cuGraphDestroy", graph);
  if (result != 0)
    throw Error(Status::DeviceError, fmt::format("cuGraphInstantiate: error {}", result));
}

Graph::~Graph() { driver().get<int(void*)>("cuGraphExecDestroy")(executable_); }

void Graph::launch() const { call("cuGraphLaunch", executable_, stream_); }

double shared_words_per_second(int device) {
  return 1e3 * attribute(Attribute::ClockRateKHz, device) *
         attribute(Attribute::Multiprocessors, device) * attribute(Attribute::WarpSize, device);
}

}  // namespace mblas::bench
