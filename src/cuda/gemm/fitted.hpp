// fitted as the one to which other kernels leave what they take longer for.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

inline constexpr double kFittedCyclesPerMicrosecond = 1980;

/// Its own estimate of its time, in cycles; infinite where it does not take the call.
double fitted_cycles(const GemmArgs& args, const DeviceInfo& device);

}  // namespace mblas::cuda::gemm
