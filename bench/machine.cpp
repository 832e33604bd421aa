#include "machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <thread>

namespace mblas::bench {
namespace {

/// The text after "key…: " in a file of such lines.
std::string value_in(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == line.npos) continue;
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
  const std::string model = value_in("/proc/cpuinfo", "model name");
  return model.empty() ? "unknown" : model;
}

int cpu_cores() { return int(std::thread::hardware_concurrency()); }

std::size_t memory_available() {
  const std::string kilobytes = value_in("/proc/meminfo", "MemAvailable");
  if (!kilobytes.empty()) return std::size_t(std::stoull(kilobytes)) * 1024;
  return std::size_t(sysconf(_SC_PHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE));
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
