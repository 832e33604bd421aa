// What the results were measured on.
#pragma once

#include <cstddef>
#include <string>

namespace mblas::bench {

std::string cpu_model();
int cpu_cores();
/// Bytes of host memory that can be had without swapping.
std::size_t memory_available();
/// Bytes of the last cache before memory.
std::size_t last_level_cache();
/// Driver version and clocks of an NVIDIA GPU by nvidia-smi; empty where that cannot be had.
std::string gpu_driver();
std::string gpu_clocks(int ordinal);
std::string compiler();
/// The source's commit.
std::string commit();
/// Now, in UTC, ISO 8601.
std::string date();

}  // namespace mblas::bench
