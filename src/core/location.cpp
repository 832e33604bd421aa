#include "core/location.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdint>

#include "core/registry.hpp"

namespace mblas {
namespace {

// The driver's interface, from its public documentation: no toolkit is needed to ask it.
constexpr int kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9, kLegacyIpc = 10,
              kRangeStart = 11, kRangeSize = 12;
constexpr unsigned kTypeDevice = 2;

/// Libraries loaded since the process started; a change means that the driver may have come.
unsigned long long loaded_count() {
  unsigned long long adds = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &adds);
  return adds;
}

}  // namespace

std::atomic<std::int64_t> no_driver_at{-1};

Locator::Locator() : query_(driver_query()) {}

Locator::Query Locator::driver_query() {
  static std::atomic<Query> query{nullptr};
  static std::atomic<unsigned long long> searched_at{0};
  if (auto found = query.load(std::memory_order_acquire)) return found;
  const unsigned long long adds = loaded_count();
  if (searched_at.load(std::memory_order_relaxed) == adds) return nullptr;
  // The handle is kept: the driver stays for as long as its entry is used here.
  if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
    const auto found = reinterpret_cast<Query>(dlsym(driver, "cuPointerGetAttributes"));
    query.store(found, std::memory_order_release);
    return found;
  }
  searched_at.store(adds, std::memory_order_relaxed);
  return nullptr;
}

bool look_for_driver(std::int64_t now) {
  if (Locator::driver_query()) return true;
  no_driver_at.store(now, std::memory_order_relaxed);
  return false;
}

Place Locator::ask(const void* p) {
  if (!p) return {};
  for (Backend* backend : user_backends())
    if (backend->memory() == Memory::Device && backend->owns(p))
      return {Memory::Device, 0, backend};
  if (!query_) return {};
  if (is_inside(p)) return known_;
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  unsigned type = 0, managed = 0, whole = 0;
  int ordinal = 0;
  std::uintptr_t start = 0;
  std::size_t size = 0;
  int attributes[] = {kMemoryType, kIsManaged, kDeviceOrdinal, kLegacyIpc, kRangeStart, kRangeSize};
  void* data[] = {&type, &managed, &ordinal, &whole, &start, &size};
  // Fails only where the driver was never initialised: then no memory is its own. Memory it does
  // not know leaves the type at zero.
  if (query_(6, attributes, data, address) != 0) return {};
  if (managed) return {Memory::Managed, ordinal};
  const Place place{type == kTypeDevice ? Memory::Device : Memory::Host, ordinal};
  if (type == kTypeDevice && whole) {
    known_ = place;
    start_ = start;
    size_ = size;
  }
  return place;
}

}  // namespace mblas
