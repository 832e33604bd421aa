#include "machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "commit.hpp"

namespace mblas::bench {
namespace {

/// The text after "key…: " in a file of such lines.
std::string value_in(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos || line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != key)
      continue;
    return line.substr(std::min(line.find_first_not_of(" \t", colon + 1), line.size()));
  }
  return {};
}

std::string nvidia_smi(const std::string& query, int ordinal) {
  const std::string command = fmt::format(
      "nvidia-smi --query-gpu={} --format=csv,noheader --id={} 2>/dev/null", query, ordinal);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  char line[256] = "";
  if (!pipe || !std::fgets(line, sizeof line, pipe.get())) return {};
  std::string text = line;
  text.erase(std::find(text.begin(), text.end(), '\n'), text.end());
  return text;
}

}  // namespace

std::string cpu_model() {
  const std::string model = cpu_info("model name");
  return model.empty() ? "unknown" : model;
}

std::string cpu_info(std::string_view key) { return value_in("/proc/cpuinfo", key); }

std::string cpu_extensions() {
  std::istringstream all(cpu_info("flags"));
  std::string chosen;
  for (std::string flag; all >> flag;)
    for (const std::string_view start : {"avx", "fma", "f16c", "amx", "gfni", "vaes", "sse4"})
      if (flag.starts_with(start)) chosen += (chosen.empty() ? "" : " ") + flag;
  return chosen;
}

int cpu_cores() { return int(std::thread::hardware_concurrency()); }

std::size_t memory_available() {
  const std::string kilobytes = value_in("/proc/meminfo", "MemAvailable");
  if (!kilobytes.empty()) return std::size_t(std::stoull(kilobytes)) * 1024;
  return std::size_t(sysconf(_SC_PHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE));
}

std::size_t first_level_cache() {
  return std::size_t(std::max(0L, sysconf(_SC_LEVEL1_DCACHE_SIZE)));
}
std::size_t second_level_cache() {
  return std::size_t(std::max(0L, sysconf(_SC_LEVEL2_CACHE_SIZE)));
}
std::size_t last_level_cache() {
  constexpr std::size_t kGuess = std::size_t(32) << 20;
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return l3 > 0 ? std::size_t(l3) : l2 > 0 ? std::size_t(l2) : kGuess;
}

std::string gpu_driver() { return nvidia_smi("driver_version", 0); }
std::string gpu_clocks(int ordinal) {
  return nvidia_smi("clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit", ordinal);
}

std::string compiler() {
#ifdef __clang__
  return fmt::format("clang {}", __clang_version__);
#else
  return fmt::format("gcc {}", __VERSION__);
#endif
}

std::string commit() { return MBLAS_COMMIT; }

std::string date() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace mblas::bench
