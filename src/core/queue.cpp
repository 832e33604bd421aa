// The host queue and the defaults of a host backend: all that a backend without a device needs.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/memory_info.hpp"
#include "mblas/backend.hpp"

namespace mblas {

namespace {
constexpr std::align_val_t kAlignment{256};
}

Queue::~Queue() = default;

void* Queue::allocate(std::size_t bytes) {
  void* p = ::operator new(bytes, kAlignment, std::nothrow);
  if (!p)
    throw Error(Status::OutOfMemory, "no host memory for " + std::to_string(bytes) + " bytes");
  return p;
}

void Queue::deallocate(void* p) noexcept { ::operator delete(p, kAlignment); }

std::size_t Queue::memory_free() const { return host_memory().available; }

void Queue::copy(const Copy2D& c, CopyKind /*kind*/) {
  if (c.width == c.dst_pitch && c.width == c.src_pitch) {
    std::memcpy(c.dst, c.src, std::size_t(c.width) * std::size_t(c.rows));
    return;
  }
  for (std::int64_t i = 0; i < c.rows; ++i)
    std::memcpy(static_cast<std::byte*>(c.dst) + i * c.dst_pitch,
                static_cast<const std::byte*>(c.src) + i * c.src_pitch, std::size_t(c.width));
}

void Queue::mark(int i) {
  stamps_[i] = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

double Queue::elapsed_ms(int from, int to) { return double(stamps_[to] - stamps_[from]) * 1e-6; }

Backend::~Backend() = default;

const std::string& Backend::unavailable() {
  static const std::string available;
  return available;
}

std::string Backend::describe() { return std::string(name()); }

std::unique_ptr<Queue> Backend::make_queue(const QueueOptions& options) {
  DeviceInfo info;
  info.name = "host";
  info.memory = memory();
  info.ordinal = options.device;
  info.memory_bytes = host_memory().total;
  return std::make_unique<Queue>(std::move(info));
}

}  // namespace mblas
