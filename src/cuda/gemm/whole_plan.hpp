// What the estimates of `whole_batch` and `tensor_batch` have in common: blocks with one product of
// a batch or a few, of which a multiprocessor has several at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

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

/// A configuration, and what it is estimated to take.
struct Choice {
  Config config;  ///< group 0: none fits
  double cycles = std::numeric_limits<double>::infinity();
};

/// That of least cycles. cycles_of(size)(configuration): what one of that size takes.
template <class Shape, class CyclesOf>
Choice least(const Shape& s, std::span<const int> groups, CyclesOf&& cycles_of) {
  Choice best;
  for (const auto& size : s.sizes()) {
    const auto cycles_of_size = cycles_of(size);
    for (const int group : groups) {
      const Config c{size.rows, size.cols, group};
      if (!s.fits(c)) continue;
      const double cycles = cycles_of_size(c);
      if (cycles < best.cycles) best = {c, cycles};
    }
  }
  return best;
}

/// What a kernel's blocks take, in cycles of 1.98 GHz.
struct Pace {
  double waits;        ///< from a block's first copies to its last results, of few bytes
  double block, next;  ///< a block besides; where it follows another one
  double in, out;      ///< a copy to shared memory, one from there
  double memory;       ///< bytes from and to memory in a cycle
};

/// What blocks have to do.
struct Load {
  double blocks, at_once;        ///< of the multiprocessor that has most
  double bytes;                  ///< of shared memory that a block takes
  double copies_in, copies_out;  ///< of a block
  double moved;                  ///< bytes from and to memory, of all multiprocessors' blocks
};

/// Of a shape's configuration; `moved`: Load::moved.
template <class Shape>
Load load_of(const Shape& s, const Config& c, double moved) {
  return {double(divide_up(divide_up(s.batch, c.group), s.processors)),
          blocks_at_once(s.share(c), s.threads(c), s.bytes(c), s.shared_bytes),
          double(s.bytes(c)),
          double(c.group * s.copies_in),
          double(c.group * s.copies_out),
          moved};
}

/// Cycles of a launch. multiply(n): what n blocks that begin together multiply for, `each`: what
/// one does where others hide what it waits for.
template <class Multiply>
double cycles_of(const Load& load, const Pace& pace, double each, Multiply&& multiply) {
  constexpr double kStart = 2430;        // of a launch
  constexpr double kWaitsByte = 0.0228;  // of what a block brings
  // In a multiprocessor's first round of blocks all wait for memory and then all multiply; later
  // some do while others wait. A second round takes half of what the first does at least.
  constexpr double kAgain = 0.5, kWorkHides = 1.39, kMemoryHides = 3;
  const double besides = load.copies_in * pace.in + load.copies_out * pace.out + pace.block;
  const auto round = [&](double blocks) {
    return pace.waits + kWaitsByte * load.bytes + multiply(blocks) + blocks * besides;
  };
  const double rounds = load.blocks / load.at_once, memory = load.moved / pace.memory / rounds;
  const double first = round(std::min(load.at_once, load.blocks)) + std::min(rounds, 1.0) * memory;
  if (rounds <= 1) return kStart + first;
  const double work = load.at_once * (each + besides + pace.next);
  const double next =
      partly_hidden(partly_hidden(round(1), work, kWorkHides), memory, kMemoryHides);
  return kStart + first + kAgain * (round(load.at_once) + memory) +
         std::max(rounds - 1 - kAgain, 0.0) * next;
}

}  // namespace mblas::cuda::whole
