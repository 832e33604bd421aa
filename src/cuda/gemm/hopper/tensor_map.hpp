// Descriptions of matrices in memory by which the copy engine finds them.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm::hopper {

/// A batch of row-major matrices as boxes are copied out of it or into it. The chunks of 16 bytes
/// of a box of up to 128 bytes a row are swizzled in shared memory; elements outside of a matrix
/// are read as zeros and not written.
struct BoxedMatrices {
  CUtensorMapDataType type;
  int size;                 ///< bytes of an element
  const void* data;         ///< a multiple of 16 bytes
  std::int64_t rows, cols;  ///< of a matrix, each less than 2^31
  std::int64_t ld, stride;  ///< elements between rows, and between matrices: multiples of 16 bytes
  std::int64_t count;       ///< matrices
  int box_rows;             ///< up to 256
  int box_bytes = 128;      ///< of a row of a box: 32, 64, 128 or up to 256 elements
};

/// Whether a map can describe the distances of rows and of `count` matrices, elements of `size`
/// bytes.
template <class Void>
bool is_mappable(const Operand<Void>& x, std::int64_t count, int size) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
  const bool strided = count > 1 && !x.pointers;
  return x.ld < kMostBytes / size && (!strided || x.stride < kMostBytes / size);
}

/// Throws Status::NotSupported where the driver has no such thing, Internal if it refuses.
CUtensorMap tensor_map(const BoxedMatrices& x);

}  // namespace mblas::cuda::gemm::hopper
