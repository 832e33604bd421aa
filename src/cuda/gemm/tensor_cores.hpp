// What tensor_mma and tensor_wgmma are estimated to take, for rows that compete with both.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

/// The less of both, of those that are built; infinity where both decline.
double tensor_cores_microseconds(const GemmArgs& args, const DeviceInfo& device);

/// The same for a product that asks for TF32, held against rows that take floats whole, which is
/// more than it asks for.
double tf32_microseconds(const GemmArgs& args, const DeviceInfo& device);

/// Whether it asks for TF32 and both leave it to simt.
bool is_for_simt(const GemmArgs& args, const DeviceInfo& device);

}  // namespace mblas::cuda::gemm
