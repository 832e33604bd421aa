// What the estimates of `whole_batch` and `tensor_batch` have in common: blocks with one product of
// a batch or a few, of which a multiprocessor has several at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace mblas::cuda::whole {

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

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

/// round(n), what a multiprocessor takes for n blocks at a time, for all of them, one after
/// another.
template <class Round>
double rounds_of(double blocks, double at_once, int processors, const Round& round) {
  const double wave = processors * at_once;
  const double full = std::floor(blocks / wave);
  const double rest = std::ceil((blocks - full * wave) / processors);
  return full * round(at_once) + (rest > 0 ? round(rest) : 0);
}

}  // namespace mblas::cuda::whole
