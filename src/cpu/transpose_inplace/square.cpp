// Square matrices whose leading dimension stays: each pair of tiles across the diagonal is swapped
// through a buffer in the first-level cache. Every element is read once and written once: copy
// speed is the limit.
#include <algorithm>
#include <cstring>
#include <optional>

#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"
#include "cpu/transpose/blocked.hpp"

namespace mblas::cpu {

namespace {

/// The tiles on and above the diagonal of a square of `side` tiles, numbered without gaps but for
/// half a row where `side` is odd: row r shares its line of the numbering with row side - 1 - r.
struct UpperTriangle {
  std::int64_t side;

  std::int64_t lines() const { return divide_up(side, 2); }
  std::int64_t line_length() const { return side + 1; }
  struct Index {
    std::int64_t i, j;
  };
  std::optional<Index> at(std::int64_t line, std::int64_t c) const {
    const std::int64_t other = side - 1 - line;
    if (c < side - line) return Index{line, line + c};
    if (other == line) return std::nullopt;
    return Index{other, c - 1};
  }
};

}  // namespace

void transpose_inplace_square(const TransposeInplaceArgs& args, Queue& queue) {
  constexpr std::int64_t buffer_bytes = 16 << 10;
  const int size = size_of(args.type);
  const std::int64_t side = transpose_side(size), pitch = args.A.ld * size;
  const TransposeBlock block = transpose_block(size);
  const UpperTriangle triangle{divide_up(args.m, side)};
  const Tiling tiling{triangle.lines(), triangle.line_length(), args.batch, 1, 1};
  const int threads = copy_threads(args.batch, args.m, args.m, size, queue.device().num_threads);
  tiling.for_each(threads, [&](const Tile& tile, int /*thread*/) {
    const auto index = triangle.at(tile.i, tile.j);
    if (!index) return;
    const std::int64_t i = index->i * side, j = index->j * side;
    const std::int64_t rows = std::min(side, args.m - i), cols = std::min(side, args.m - j);
    alignas(64) std::byte buffer[buffer_bytes];
    auto* A = static_cast<std::byte*>(args.A.at(tile.batch, size));
    std::byte* upper = A + i * pitch + j * size;
    std::byte* lower = A + j * pitch + i * size;
    const std::int64_t buffer_pitch = side * size;
    block(upper, pitch, buffer, buffer_pitch, rows, cols);
    if (i != j) block(lower, pitch, upper, pitch, cols, rows);
    for (std::int64_t r = 0; r < cols; ++r)
      std::memcpy(lower + r * pitch, buffer + r * buffer_pitch, std::size_t(rows * size));
  });
}

}  // namespace mblas::cpu
