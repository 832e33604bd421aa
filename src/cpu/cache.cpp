#include "cpu/cache.hpp"

#include <unistd.h>

#include <algorithm>

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

}  // namespace mblas::cpu
