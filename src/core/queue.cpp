// The host queue and the defaults of a host backend: all that a backend without a device needs.
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/host_memory.hpp"
#include "core/memory_info.hpp"
#include "cpu/kernels.hpp"
#include "mblas/backend.hpp"

namespace mblas {

namespace {

constexpr std::size_t kAlignment = 256;
// A workspace from this size on asks for huge pages: packed operands are read all over again, and
// misses of the TLB would cost a kernel a good part of its speed.
constexpr std::size_t kHugePage = std::size_t{2} << 20, kHugeFrom = kHugePage / 8;

/// In front of what allocate_host() returns: the alignment of the whole.
struct Header {
  std::align_val_t alignment;
};
static_assert(sizeof(Header) <= kAlignment);

}  // namespace

void* allocate_host(std::size_t bytes) {
  std::size_t whole = bytes + kAlignment;
  const bool huge = bytes >= kHugeFrom;
  if (huge) whole = (whole + kHugePage - 1) / kHugePage * kHugePage;
  const std::align_val_t alignment{huge ? kHugePage : kAlignment};
  void* p = whole > bytes ? ::operator new(whole, alignment, std::nothrow) : nullptr;
  if (!p)
    throw Error(Status::OutOfMemory, "no host memory for " + std::to_string(bytes) + " bytes");
  if (huge) madvise(p, whole, MADV_HUGEPAGE);  // where the system has none, the others will do
  new (p) Header{alignment};
  return static_cast<std::byte*>(p) + kAlignment;
}

void deallocate_host(void* p) noexcept {
  if (!p) return;
  void* const whole = static_cast<std::byte*>(p) - kAlignment;
  ::operator delete(whole, static_cast<const Header*>(whole)->alignment);
}

Queue::~Queue() = default;

void* Queue::allocate(std::size_t bytes) { return allocate_host(bytes); }
void Queue::deallocate(void* p) noexcept { deallocate_host(p); }

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

FinishPass Backend::finish() const { return memory() == Memory::Host ? cpu::gemm_finish : nullptr; }

std::unique_ptr<Queue> Backend::make_queue(const QueueOptions& options) {
  DeviceInfo info;
  info.name = host_name();
  info.memory = memory();
  info.ordinal = options.device;
  info.memory_bytes = host_memory().total;
  return std::make_unique<Queue>(std::move(info));
}

}  // namespace mblas
