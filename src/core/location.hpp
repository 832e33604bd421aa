// Which side a pointer is on.
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/registry.hpp"
#include "mblas/backend.hpp"

namespace mblas {

struct Place {
  Memory memory = Memory::Host;
  int ordinal = 0;  // of the device that holds it
  const Backend* owner =
      nullptr;  // a registered backend whose own memory it is; null: CUDA's or the host's
};

/// Asks the CUDA driver, if this process has loaded one, and the registered device backends. Never
/// loads or initialises the driver itself: where nobody did, no pointer can be the device's. Made
/// once a call: finding out whether the driver has come since the last time costs more than a
/// question. A pointer into the allocation that the last answer was about is not asked about again:
/// those of a batch mostly lie in one. That holds for allocations of cudaMalloc, which are on one
/// device; of reserved addresses the driver knows only the whole range, whose parts may differ.
class Locator {
 public:
  Locator();
  Place locate(const void* p) { return is_near(p) ? known_ : ask(p); }
  /// Whether p is in the allocation of CUDA's that locate() was last asked about. No where programs
  /// have device backends of their own: these are asked first, whose memory may be a part of it.
  bool is_near(const void* p) const { return is_inside(p) && !has_device_backends(); }
  /// Whether every pointer is to the host's memory.
  bool only_host() const { return !query_ && !has_device_backends(); }

 private:
  using Query = int (*)(unsigned count, int* attributes, void** data, std::uintptr_t pointer);
  friend bool look_for_driver(std::int64_t now);
  Query query_;  // null: no driver here
  Place known_;  // of all addresses in an allocation, which begins at start_
  std::uintptr_t start_ = 0;
  std::size_t size_ = 0;
  bool is_inside(const void* p) const {
    return reinterpret_cast<std::uintptr_t>(p) - start_ < size_;
  }
  Place ask(const void* p);
  static Query driver_query();
};

/// When look_for_driver() last found none.
extern std::atomic<std::int64_t> no_driver_at;
/// Has this process loaded the CUDA driver?
bool look_for_driver(std::int64_t now);

/// False where memory of a device may be in use. Looks for the driver at most once a tick of the
/// system's coarse clock: between loading the driver and the first memory it gives lie many.
inline bool only_host_memory() {
  if (has_device_backends()) return false;
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  const std::int64_t now = std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  return no_driver_at.load(std::memory_order_relaxed) == now || !look_for_driver(now);
}

}  // namespace mblas
