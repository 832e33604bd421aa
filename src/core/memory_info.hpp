// How much memory the host has.
#pragma once

#include <cstddef>

namespace mblas {
struct HostMemory {
  std::size_t total, available;  // bytes
};
HostMemory host_memory();
}  // namespace mblas
