#include "blocks.hpp"

#include <algorithm>

#include "random.hpp"

namespace mblas::cases {
namespace {

constexpr std::int64_t kRowsAtOnce = 64;    // of a block: keeps its sums in cache
constexpr std::int64_t kSmallMatrix = 256;  // elements below which sampling saves nothing
constexpr std::int64_t kEdgeSegment = 1024;
constexpr std::int64_t kRandomSegment = 64;
constexpr std::int64_t kCorner = 4;
constexpr double kMostSampled = 0x1p22;  // elements in all
constexpr double kMostWork = 0x1p31;     // cost in all

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
    for (std::int64_t i = 0; i < std::max<std::int64_t>(2, 256 / batch); ++i)
      choose.add({b, random.below(m), random.below(n), kCorner, kCorner});
  }
  return selection;
}

}  // namespace mblas::cases
