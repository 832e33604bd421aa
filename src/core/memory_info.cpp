#include "core/memory_info.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "cpu/isa.hpp"

namespace mblas {

HostMemory host_memory() {
  const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
  HostMemory memory{page * std::size_t(sysconf(_SC_PHYS_PAGES)),
                    page * std::size_t(std::max(0L, sysconf(_SC_AVPHYS_PAGES)))};
  // The page cache counts as used above, though it is given up on demand.
  if (std::FILE* f = std::fopen("/proc/meminfo", "re")) {
    char line[128];
    unsigned long long kilobytes;
    while (std::fgets(line, sizeof line, f))
      if (std::sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
        memory.available = std::size_t(kilobytes) * 1024;
    std::fclose(f);
  }
  return memory;
}

const std::string& host_name() {
  static const std::string name = [] {
    std::string model = "CPU";
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("model name")) continue;
      if (const std::size_t colon = line.find(": "); colon != line.npos)
        model = line.substr(colon + 2);
      break;
    }
    return model + ", " + cpu::isa().title;
  }();
  return name;
}

}  // namespace mblas
