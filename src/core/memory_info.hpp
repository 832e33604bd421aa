// The host: how much memory it has, and what it is called.
#pragma once

#include <cstddef>
#include <string>

namespace mblas {
struct HostMemory {
  std::size_t total, available;  // bytes
};
HostMemory host_memory();
/// The CPU as it calls itself, and the instruction set in use: "AMD EPYC 7B13, AVX2".
const std::string& host_name();
}  // namespace mblas
