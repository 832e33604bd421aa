// thin_batch as the one that another kernel is held against.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

/// An estimate of its time for f32 and cf32; infinite where it does not take the call.
double thin_batch_microseconds(const GemmArgs& args, const DeviceInfo& device);

}  // namespace mblas::cuda::gemm
