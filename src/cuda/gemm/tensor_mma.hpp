// tensor_mma as the one that may be faster than a kernel that copies operands.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

/// Its own estimate of its time, copies of operands included; infinity where it declines, or would
/// copy those of a batch.
double tensor_mma_microseconds(const GemmArgs& args, const DeviceInfo& device);

}  // namespace mblas::cuda::gemm
