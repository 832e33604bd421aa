// What the estimates of `whole_batch` and `tensor_batch` have in common: blocks with one product of
// a batch or a few, of which a multiprocessor has several at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/gemm/estimates.hpp"

namespace mblas::cuda::whole {

/// Threads that a block has at most, blocks that a multiprocessor has registers for then.
struct Share {
  int threads, blocks;
};

struct Config {
  int rows = 0, cols = 0;  ///< of a thread or a warp
  int group = 0;           ///< products of a block; 0: there is none
};

/// How many blocks of so many threads and bytes of shared memory a multiprocessor has at a time.
inline double blocks_at_once(const Share& share, std::int64_t threads, std::int64_t bytes,
                             std::int64_t shared_bytes) {
  constexpr std::int64_t kOfBlock = 1 << 10;  // of shared memory, besides
  return std::max<double>(1, double(std::min(share.threads * share.blocks / threads,
                                             (shared_bytes + kOfBlock) / (bytes + kOfBlock))));
}

}  // namespace mblas::cuda::whole
