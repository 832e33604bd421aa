// Do two sets of matrices share elements? Exact: submatrices of one array, whose address ranges
// interleave without a common element, do not.
#pragma once

#include <cstdint>
#include <vector>

namespace mblas {

/// `rows` rows of `width` bytes, `pitch` bytes apart.
struct Extent {
  std::uintptr_t begin = 0;
  std::int64_t pitch = 0, width = 0, rows = 0;

  std::uintptr_t end() const { return begin + std::uintptr_t((rows - 1) * pitch + width); }
};

bool share(const Extent& x, const Extent& y);

/// Index pair of the first write that shares elements with another write or with a read.
struct Clash {
  enum { None, Writes, WriteAndRead } kind = None;
  std::size_t write = 0, other = 0;
};
/// O((w + r) log w) where extents rarely interleave.
Clash find_clash(const std::vector<Extent>& writes, const std::vector<Extent>& reads);

}  // namespace mblas
