// fused_bf16x6 as the one to which another kernel leaves what it takes longer for.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

/// Its own estimate of its time; infinite where it would not take the call by its own choice.
double fused_bf16x6_microseconds(const GemmArgs& args, const DeviceInfo& device);

}  // namespace mblas::cuda::gemm
