#include "pinned.hpp"

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

}  // namespace mblas::bench
