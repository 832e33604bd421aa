// What block sizes follow: the sizes of the data caches.
#pragma once

#include <cstdint>

namespace mblas::cpu {

/// Bytes: of the first and second level of one core, and of the last level, which cores share.
/// Those of a common CPU where the system does not tell.
struct CacheSizes {
  std::int64_t first, second, last;
};
const CacheSizes& cache_sizes();

}  // namespace mblas::cpu
