// A batch of matrices cut into tiles, numbered so that threads take contiguous runs of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/parallel.hpp"

namespace mblas::cpu {

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

struct Tile {
  std::int64_t batch, i, j, rows, cols;
};

struct Tiling {
  std::int64_t m, n, batch;
  std::int64_t tile_m, tile_n;

  std::int64_t rows() const { return divide_up(m, tile_m); }
  std::int64_t cols() const { return divide_up(n, tile_n); }
  std::int64_t count() const { return batch * rows() * cols(); }
  Tile operator[](std::int64_t index) const {
    const std::int64_t i = index / cols() % rows() * tile_m, j = index % cols() * tile_n;
    return {index / cols() / rows(), i, j, std::min(tile_m, m - i), std::min(tile_n, n - j)};
  }

  /// Calls f(tile, thread) for every tile, on at most `threads` threads.
  template <class F>
  void for_each(int threads, const F& f) const {
    parallel(int(std::min<std::int64_t>(threads, count())), [&](int thread, int granted) {
      const Range range = share_of(count(), thread, granted);
      for (std::int64_t t = range.begin; t < range.end; ++t) f((*this)[t], thread);
    });
  }
};

/// Bytes that a thread should move for its start to pay.
inline constexpr double kCopyGrain = 128 << 10;

/// Threads for moving batch × m × n elements of `size` bytes.
constexpr int copy_threads(std::int64_t batch, std::int64_t m, std::int64_t n, int size, int most) {
  return threads_for(double(batch) * double(m) * double(n) * size, kCopyGrain, most);
}

}  // namespace mblas::cpu
