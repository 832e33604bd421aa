// tensor_mma as the one that may be faster than a kernel that copies operands.
#pragma once

#include <cstdint>

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

/// Most rows, columns and k that a block of one warp takes there.
inline constexpr std::int64_t kMmaWarp = 32;

/// Its own estimate of its time, copies of operands included; infinity where it declines, or would
/// copy those of a batch.
double tensor_mma_microseconds(const GemmArgs& args, const DeviceInfo& device);

/// tensor_wgmma's, to be held against that; infinity where it declines.
double tensor_wgmma_microseconds(const GemmArgs& args, const DeviceInfo& device);

}  // namespace mblas::cuda::gemm
