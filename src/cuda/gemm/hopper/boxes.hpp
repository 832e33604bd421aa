// How wide the boxes are that the copy engine brings of an operand of 16 bits that does not run
// along k.
#pragma once

#include <cstdint>

namespace mblas::cuda::gemm::hopper {

/// Elements that a line has, and a box of more rows of C.
constexpr int kBoxOf16Bits = 64;

/// Whether tiles of so many rows have kernels for narrower boxes of the rows' operand. What boxes
/// of a line have more than C has rows the engine would fill with zeros, row by row: bf16
/// 16×4096×4096 TT 10.9 us, by narrow ones 9.4.
constexpr bool has_narrow_boxes(int rows) { return rows == 64; }

/// Whether tiles whose columns are no whole boxes have kernels for products of which neither
/// operand runs along k: the last box brings what is the next tile's. Not where that is much of it
/// (bf16 TN 320×3584×4864 by 80×128 in clusters of four 23.9 us, 21.1 by 192×64), nor of 64 rows
/// (256×2048×4096 by 64×80 18.2 us, 12.1 by 64×64).
constexpr bool has_whole_boxes(int rows, int cols) { return rows == 128 && cols > 96; }

/// Bytes of a box's row, of `size` rows of C: there is a swizzle for 32, 64 and 128.
constexpr int box_bytes_of(std::int64_t size) { return size <= 16 ? 32 : size <= 32 ? 64 : 128; }

}  // namespace mblas::cuda::gemm::hopper
