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

/// Bytes of a box's row, of `size` rows of C: there is a swizzle for 32, 64 and 128.
constexpr int box_bytes_of(std::int64_t size) { return size <= 16 ? 32 : size <= 32 ? 64 : 128; }

}  // namespace mblas::cuda::gemm::hopper
