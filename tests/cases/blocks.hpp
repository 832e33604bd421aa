// Which elements of a result are checked.
#pragma once

#include <cstdint>
#include <vector>

namespace mblas::cases {

/// rows × cols elements of matrix `b` of a batch, from (i, j) on.
struct Block {
  std::int64_t b, i, j, rows, cols;
};

struct Selection {
  std::vector<Block> blocks;
  bool sampled = false;  ///< not every element is in a block
};

/// Every element of `batch` m×n matrices where their total cost is at most `full_up_to`; else of
/// each matrix its corners, its edges (all of them as long as they are not too many) and small
/// blocks all over it, each at random in a cell of its own. `cost` is the work of one element.
Selection select_blocks(std::int64_t m, std::int64_t n, std::int64_t batch, double cost,
                        double full_up_to, std::uint64_t seed);

}  // namespace mblas::cases
