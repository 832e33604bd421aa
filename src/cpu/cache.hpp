// What block sizes follow: the sizes of the data caches, and of the pages.
#pragma once

#include <cstdint>

namespace mblas::cpu {

/// Bytes: of the first and second level of one core, and of the last level, which cores share.
/// Those of a common CPU where the system does not tell.
struct CacheSizes {
  std::int64_t first, second, last;
};
const CacheSizes& cache_sizes();

/// Does the system back large workspaces with huge pages where it is asked to (Queue::allocate
/// does)?
bool huge_pages();

}  // namespace mblas::cpu
