// tensor_mma as the one that may be faster than another kernel's copies of its operands.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

/// Its own estimate of its time, where it takes the operands as they lie; else infinity.
double tensor_mma_microseconds(const GemmArgs& args, const DeviceInfo& device);

}  // namespace mblas::cuda::gemm
