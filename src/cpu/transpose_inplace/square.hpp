// The square transpose in place, in pieces that threads can share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpu/cache.hpp"
#include "cpu/tiles.hpp"
#include "cpu/transpose/blocked.hpp"

namespace mblas::cpu {

/// A square matrix of elements of `size` bytes, cut into tiles whose rows are two cache lines:
/// memory is fastest in pairs of them. The tiles of a pair across the diagonal lie along a row of
/// tiles and down a column of them. Hardware prefetches along the row; the tile down the column is
/// fetched ahead by hand.
struct SquareInplace {
  std::byte* A;
  std::int64_t order, pitch;
  int size;

  static constexpr std::int64_t kTileBytes = 128;
  std::int64_t side() const { return kTileBytes / size; }

  /// Transposes a row of tiles: those in columns [j0, j1) from the diagonal on, with what is across
  /// the diagonal. `i` and `j0` are multiples of side().
  void transpose_row(std::int64_t i, std::int64_t j0, std::int64_t j1) const {
    const TransposeBlock block = transpose_block(size);
    const std::int64_t ahead = 2 * side(), rows = std::min(side(), order - i);
    for (std::int64_t j = std::max(i, j0); j < j1; j += side()) {
      for (std::int64_t r = j + ahead; r < std::min(j + ahead + side(), j1); ++r) {
        __builtin_prefetch(at(r, i), 1, 2);
        __builtin_prefetch(at(r, i) + 64, 1, 2);
      }
      swap(block, i, j, rows, std::min(side(), order - j));
    }
  }

 private:
  std::byte* at(std::int64_t i, std::int64_t j) const { return A + i * pitch + j * size; }

  /// The tile at (i, j), above the diagonal or on it, and the one at (j, i).
  void swap(TransposeBlock block, std::int64_t i, std::int64_t j, std::int64_t rows,
            std::int64_t cols) const {
    alignas(64) std::byte buffer[kTileBytes * kTileBytes];
    std::byte *upper = at(i, j), *lower = at(j, i);
    block(upper, pitch, buffer, kTileBytes, rows, cols);
    if (i != j) block(lower, pitch, upper, pitch, cols, rows);
    for (std::int64_t r = 0; r < cols; ++r)
      std::memcpy(lower + r * pitch, buffer + r * kTileBytes, std::size_t(rows * size));
  }
};

/// Is a matrix of `bytes` best transposed in place past the caches? Not where much of it may be
/// found in the last one.
inline bool inplace_past_caches(double bytes) { return bytes > double(cache_sizes().last) / 2; }

/// The same past the caches: pairs of blocks of up to a kilobyte's width are read by whole rows and
/// written so, one of them by way of a buffer in the second-level cache.
struct SquareStreamed {
  std::byte* A;
  std::int64_t order, pitch;
  int size;

  static constexpr std::int64_t kBufferBytes = 544 << 10;  // a block, 64 bytes between its rows
  static constexpr std::int64_t kWorkspace = kBufferBytes + kStreamBuffer;

  std::int64_t side() const { return size == 1 ? 512 : 1024 / size; }
  std::int64_t blocks() const { return divide_up(order, side()); }
  std::int64_t pairs() const { return blocks() * (blocks() + 1) / 2; }

  /// Transposes pairs [begin, end). `workspace` has kWorkspace bytes.
  void transpose(std::int64_t begin, std::int64_t end, std::byte* workspace) const {
    std::int64_t pair = 0;
    for (std::int64_t i = 0; i < blocks() && pair < end; ++i) {
      for (std::int64_t j = i; j < blocks() && pair < end; ++j, ++pair)
        if (pair >= begin) swap(i * side(), j * side(), workspace);
    }
  }

 private:
  std::byte* at(std::int64_t i, std::int64_t j) const { return A + i * pitch + j * size; }

  /// Four rows side by side, as memory is read faster in several streams than in one. Rows are too
  /// short for Zen's prefetchers (f32 8192² on a Zen 5 EPYC 28.7 ms, and 24.2 with the next four
  /// asked for).
  void copy_rows(std::byte* to, std::int64_t to_pitch, const std::byte* from, std::int64_t rows,
                 std::int64_t bytes) const {
    constexpr std::int64_t line = 64;
    static const bool fetches = follows_few_rows();
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      if (fetches)
        for (std::int64_t s = r + 4; s < std::min(r + 8, rows); ++s)
          for (std::int64_t b = 0; b < bytes; b += line)
            __builtin_prefetch(from + s * pitch + b, 0, 2);
      std::int64_t b = 0;
      for (; b + line <= bytes; b += line)
        for (std::int64_t s = r; s < r + 4; ++s)
          std::memcpy(to + s * to_pitch + b, from + s * pitch + b, line);
      for (std::int64_t s = r; s < r + 4 && b < bytes; ++s)
        std::memcpy(to + s * to_pitch + b, from + s * pitch + b, std::size_t(bytes - b));
    }
    for (; r < rows; ++r) std::memcpy(to + r * to_pitch, from + r * pitch, std::size_t(bytes));
  }

  void swap(std::int64_t i, std::int64_t j, std::byte* workspace) const {
    const TransposePanelKernel run = isa().transpose_panel[int(untyped(size)) - int(DType::b1)];
    const std::int64_t rows = std::min(side(), order - i), cols = std::min(side(), order - j);
    const std::int64_t copy_pitch = side() * size + 64;
    std::byte *upper = at(i, j), *lower = at(j, i), *buffer = workspace + kBufferBytes;
    copy_rows(workspace, copy_pitch, upper, rows, cols * size);
    if (i != j) run({lower, pitch, upper, pitch, cols, rows, buffer});
    run({workspace, copy_pitch, lower, pitch, rows, cols, buffer});
  }
};

}  // namespace mblas::cpu
