// The blocked transpose on plain pointers, for the kernels that build on it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/isa.hpp"

namespace mblas::cpu {

/// Rows and columns of a block: 128 bytes of small elements, so that both sides use whole cache
/// lines, and few enough lines for the first-level cache.
constexpr std::int64_t transpose_side(int size) { return size == 1 ? 128 : size <= 4 ? 64 : 32; }

/// The block transpose for elements of `size` bytes.
inline TransposeBlock transpose_block(int size) {
  return isa().transpose[int(untyped(size)) - int(DType::b1)];
}

/// A batch of matrices: matrix b of A is read, that of B written.
void transpose_batch(const TransposeArgs& args, int threads);

/// The same past the caches; `buffers` has kStreamBuffer bytes a thread.
void transpose_streams(const TransposeArgs& args, std::byte* buffers, int threads);

}  // namespace mblas::cpu
