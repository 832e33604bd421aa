#include "core/overlap.hpp"

#include <algorithm>
#include <numeric>

namespace mblas {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); }

/// Do the bytes [from, from + width) meet a row of y? `from` counts from y's first byte.
bool meets_row(std::int64_t from, std::int64_t width, const Extent& y) {
  if (y.rows == 1 || y.pitch == 0) return from < y.width && from + width > 0;
  // Row j meets where j * pitch + y.width > from and j * pitch < from + width.
  const std::int64_t first = std::max<std::int64_t>(0, floor_div(from - y.width, y.pitch) + 1);
  const std::int64_t last = std::min(y.rows - 1, floor_div(from + width - 1, y.pitch));
  return first <= last;
}

}  // namespace

bool share(const Extent& x, const Extent& y) {
  if (x.rows <= 0 || y.rows <= 0 || x.width <= 0 || y.width <= 0) return false;
  if (x.end() <= y.begin || y.end() <= x.begin) return false;
  if (x.rows > y.rows) return share(y, x);
  const std::int64_t offset = std::int64_t(x.begin - y.begin);  // wraps to negative as it should
  if (x.rows > 2 && x.pitch == y.pitch && x.width <= x.pitch && y.width <= y.pitch) {
    // One pitch: every row of x has the same columns relative to y's rows, so the rows of x that
    // meet y's column range do so for all i at once, and only the row ranges remain to compare.
    const std::int64_t row = floor_div(offset, x.pitch), column = offset - row * x.pitch;
    const auto rows_meet = [&](std::int64_t shift) {  // x row i lies on y row i + shift
      return std::max<std::int64_t>(0, -shift) < std::min(x.rows, y.rows - shift);
    };
    return (column < y.width && rows_meet(row)) ||
           (column + x.width > x.pitch && rows_meet(row + 1));
  }
  for (std::int64_t i = 0; i < x.rows; ++i)
    if (meets_row(offset + i * x.pitch, x.width, y)) return true;
  return false;
}

Clash find_clash(const std::vector<Extent>& writes, const std::vector<Extent>& reads) {
  // Sorted by begin, with the largest end so far: what may reach an address is a suffix of what
  // begins before it, walked backwards until no earlier end can reach. Scratch of the thread: calls
  // with pointer batches do not allocate once it has grown.
  static thread_local std::vector<std::size_t> order;
  static thread_local std::vector<std::uintptr_t> reach;
  order.resize(writes.size());
  reach.resize(writes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto begin_of = [&](std::size_t i) { return writes[i].begin; };
  if (!std::ranges::is_sorted(order, {}, begin_of)) std::ranges::sort(order, {}, begin_of);
  for (std::size_t i = 0; i < order.size(); ++i)
    reach[i] = std::max(i ? reach[i - 1] : 0, writes[order[i]].end());

  // The write that shares elements with x among the first `count` in order; writes.size() if none
  // does.
  const auto find = [&](const Extent& x, std::size_t count) {
    for (std::size_t i = count; i-- > 0 && reach[i] > x.begin;)
      if (share(writes[order[i]], x)) return order[i];
    return writes.size();
  };
  for (std::size_t i = 0; i < order.size(); ++i)
    if (const std::size_t w = find(writes[order[i]], i); w != writes.size())
      return {Clash::Writes, w, order[i]};
  for (std::size_t r = 0; r < reads.size() && !writes.empty(); ++r) {
    // Mostly the reads are elsewhere altogether.
    if (reads[r].end() <= writes[order.front()].begin || reads[r].begin >= reach.back()) continue;
    const auto before = std::ranges::lower_bound(order, reads[r].end(), {}, begin_of);
    if (const std::size_t w = find(reads[r], std::size_t(before - order.begin()));
        w != writes.size())
      return {Clash::WriteAndRead, w, r};
  }
  return {};
}

}  // namespace mblas
