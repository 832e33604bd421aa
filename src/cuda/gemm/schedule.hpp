// How the steps along k of tiles are shared out among blocks, for kernels whose last round of tiles
// would leave blocks idle.
#pragma once

#include <cstdint>

namespace mblas::cuda::gemm {

/// What one visit to a tile computes: `part` < 0 where that is all.
struct Piece {
  int tile, first, steps, part;
};

/// The first `whole` tiles are computed one by one. The steps along k of those after them, `steps`
/// each, are cut into `ranges`, at least as many as tiles and at most as many as blocks, as equal
/// as can be, which may begin and end inside of tiles ("stream-K", M. Osama et al., PPoPP 2023).
/// What is not all of a tile's goes to `parts`: two places of a tile's size for each range, for the
/// first and the second tile that it touches.
struct Schedule {
  int tiles, whole, steps, ranges;
  int length, longer;  ///< steps of a range; how many of them have one more

  constexpr int begin(int range) const {
    return range * length + (range < longer ? range : longer);
  }

  /// The range with this step of the cut tiles.
  constexpr int range_of(int step) const {
    const int in_longer = longer * (length + 1);
    return step < in_longer ? step / (length + 1) : longer + (step - in_longer) / length;
  }

  /// Whole tiles of a block.
  constexpr int rounds_of(int block, int blocks) const {
    return (whole - block + blocks - 1) / blocks;
  }

  /// Steps of all pieces of a block.
  constexpr int steps_of(int block, int blocks) const {
    return rounds_of(block, blocks) * steps +
           (block < ranges ? begin(block + 1) - begin(block) : 0);
  }

  /// The piece in which step number `at` of block `block` of `blocks` is; false: it has no such
  /// step.
  constexpr bool find_piece(int block, int blocks, int at, Piece& piece) const {
    const int rounds = rounds_of(block, blocks);
    const int n = at / steps;
    if (n < rounds) {
      piece = {block + n * blocks, 0, steps, -1};
      return true;
    }
    if (block >= ranges) return false;
    const int first = begin(block), end = begin(block + 1), now = first + at - rounds * steps;
    if (now >= end) return false;
    const int tile = now / steps, start = tile * steps;
    const int skipped = first > start ? first - start : 0;
    const int last = end - start < steps ? end - start : steps, count = last - skipped;
    piece = {whole + tile, skipped, count, count == steps ? -1 : 2 * block + (first < start)};
    return true;
  }
};

/// Of numbers of which no product is beyond 2^30.
constexpr Schedule schedule_of(std::int64_t tiles, std::int64_t whole, std::int64_t steps,
                               std::int64_t ranges) {
  const auto cut = int((tiles - whole) * steps), count = int(ranges);
  return {int(tiles),
          int(whole),
          int(steps),
          count,
          count > 0 ? cut / count : 0,
          count > 0 ? cut % count : 0};
}

}  // namespace mblas::cuda::gemm
