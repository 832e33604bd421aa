#include "blocks.hpp"

#include <algorithm>
#include <cmath>

#include "random.hpp"

namespace mblas::cases {
namespace {

constexpr std::int64_t kRowsAtOnce = 64;    // of a block: keeps its sums in cache
constexpr std::int64_t kSmallMatrix = 256;  // elements below which sampling saves nothing
constexpr std::int64_t kEdgeSegment = 1024;
constexpr std::int64_t kRandomSegment = 64;
constexpr std::int64_t kCorner = 4;
constexpr std::int64_t kCell = 32;        // a cell's side at least
constexpr std::int64_t kSpreadShare = 8;  // of what is allowed, the part that is spread
constexpr double kMostSampled = 0x1p22;   // elements in all
constexpr double kMostWork = 0x1p31;      // cost in all

struct Chooser {
  std::int64_t m, n;
  std::vector<Block>& out;

  void add(Block block) {
    block.i = std::clamp<std::int64_t>(block.i, 0, m - 1);
    block.j = std::clamp<std::int64_t>(block.j, 0, n - 1);
    block.rows = std::min(block.rows, m - block.i);
    block.cols = std::min(block.cols, n - block.j);
    out.push_back(block);
  }
  void whole(std::int64_t b) {
    for (std::int64_t i = 0; i < m; i += kRowsAtOnce) add({b, i, 0, kRowsAtOnce, n});
  }
  void corners(std::int64_t b) {
    for (const std::int64_t i : {std::int64_t(0), m - kCorner})
      for (const std::int64_t j : {std::int64_t(0), n - kCorner}) add({b, i, j, kCorner, kCorner});
  }
  void edges(std::int64_t b) {
    for (const std::int64_t i : {std::int64_t(0), m - 1})
      for (std::int64_t j = 0; j < n; j += kEdgeSegment) add({b, i, j, 1, kEdgeSegment});
    for (const std::int64_t j : {std::int64_t(0), n - 1})
      for (std::int64_t i = 0; i < m; i += kEdgeSegment) add({b, i, j, kEdgeSegment, 1});
  }
  /// One in each of about `count` cells: kernels that fail do so in parts of tiles, anywhere.
  void spread(std::int64_t b, std::int64_t count, Random& random) {
    const double across = std::sqrt(double(count) * double(n) / double(m));
    const auto cols = std::clamp(std::int64_t(across), std::int64_t(1), n);
    const auto rows = std::clamp((count + cols - 1) / cols, std::int64_t(1), m);
    const auto place = [&](std::int64_t cell, std::int64_t cells, std::int64_t size) {
      const std::int64_t begin = cell * size / cells, end = (cell + 1) * size / cells;
      return begin + random.below(end - begin);
    };
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c) {
        const std::int64_t i = place(r, rows, m);
        add({b, i, place(c, cols, n), kCorner, kCorner});
      }
  }
  void edge_segment(std::int64_t b, Random& random) {
    const bool far = random.below(2) != 0;
    if (random.below(m + n) < n)
      add({b, far ? m - 1 : 0, random.below(n), 1, kRandomSegment});
    else
      add({b, random.below(m), far ? n - 1 : 0, kRandomSegment, 1});
  }
};

}  // namespace

Selection select_blocks(std::int64_t m, std::int64_t n, std::int64_t batch, double cost,
                        double full_up_to, std::uint64_t seed) {
  Selection selection;
  if (m == 0 || n == 0 || batch == 0) return selection;
  Chooser choose{m, n, selection.blocks};
  const double entry = double(m) * double(n);
  selection.sampled = entry * double(batch) * cost > full_up_to && entry > double(kSmallMatrix);
  const auto allowed = std::int64_t(std::min(kMostSampled, kMostWork / cost) /
                                    double(batch));  // of an entry's edges
  for (std::int64_t b = 0; b < batch; ++b) {
    if (!selection.sampled) {
      choose.whole(b);
      continue;
    }
    Random random(seed, std::uint64_t(b));
    choose.corners(b);
    if (2 * (m + n) <= allowed)
      choose.edges(b);
    else
      for (std::int64_t i = 0; i < std::max<std::int64_t>(1, allowed / kRandomSegment); ++i)
        choose.edge_segment(b, random);
    choose.spread(
        b,
        std::max(std::min(allowed / (kSpreadShare * kCorner * kCorner), m * n / (kCell * kCell)),
                 std::max<std::int64_t>(2, 256 / batch)),
        random);
  }
  return selection;
}

}  // namespace mblas::cases
