#include "cpu/cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace mblas::cpu {
namespace {

std::int64_t size_or(int name, std::int64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

}  // namespace

const CacheSizes& cache_sizes() {
  static const CacheSizes sizes = [] {
    CacheSizes s;
    s.first = std::max<std::int64_t>(size_or(_SC_LEVEL1_DCACHE_SIZE, 32 << 10), 16 << 10);
    s.second = std::max<std::int64_t>(size_or(_SC_LEVEL2_CACHE_SIZE, 512 << 10), 128 << 10);
    s.last = std::max(size_or(_SC_LEVEL3_CACHE_SIZE, 0), s.second);
    return s;
  }();
  return sizes;
}

bool huge_pages() {
  static const bool granted = [] {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string modes;
    std::getline(file, modes);
    return modes.find("[always]") != modes.npos || modes.find("[madvise]") != modes.npos;
  }();
  return granted;
}

}  // namespace mblas::cpu
