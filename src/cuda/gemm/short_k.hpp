// What other rows have to know of short_k.
#pragma once

#include <cstdint>

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

/// Up to which k it has most batches of a type.
inline std::int64_t short_k_most_depth(DType in) {
  return in == DType::f32 ? 32 : in == DType::cf32 ? 24 : 16;
}

/// Its own estimate of its time; infinite where it does not take the call.
double short_k_microseconds(const GemmArgs& args, const DeviceInfo& device);

}  // namespace mblas::cuda::gemm
