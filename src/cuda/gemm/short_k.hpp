// What other rows have to know of short_k.
#pragma once

#include <cstdint>

#include "mblas/types.hpp"

namespace mblas::cuda::gemm {

/// The largest k of batches that it takes of a type.
inline std::int64_t short_k_most_depth(DType in) {
  return in == DType::f32 ? 32 : in == DType::cf32 ? 24 : 16;
}

}  // namespace mblas::cuda::gemm
