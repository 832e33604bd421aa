// What the results were measured on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mblas::bench {

std::string cpu_model();
/// A line of /proc/cpuinfo, such as "cpu family" or "stepping"; empty where there is none.
std::string cpu_info(std::string_view key);
/// The vector and matrix extensions among the CPU's flags.
std::string cpu_extensions();
int cpu_cores();
/// Bytes of host memory that can be had without swapping.
std::size_t memory_available();
/// Bytes of a core's first and second level of cache; 0 where unknown.
std::size_t first_level_cache();
std::size_t second_level_cache();
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
