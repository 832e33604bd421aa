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

/// Of cuda.h's CUdevice_attribute.
enum class Attribute : int { WarpSize = 10, ClockRateKHz = 13, Multiprocessors = 16 };

int attribute(Attribute name, int device) {
  int value = 0;
  const int result =
      driver().get<int(int*, Attribute, int)>("cuDeviceGetAttribute")(&value, name, device);
  if (result != 0)
    throw Error(Status::DeviceError,
                fmt::format("cuDeviceGetAttribute({}): error {}", int(name), result));
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

double shared_words_per_second(int device) {
  return 1e3 * attribute(Attribute::ClockRateKHz, device) *
         attribute(Attribute::Multiprocessors, device) * attribute(Attribute::WarpSize, device);
}

}  // namespace mblas::bench
