// Which batches fill a device, so that a block of its own for each matrix is no loss.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

inline bool fills_device(const GemmArgs& args, const DeviceInfo& device) {
  return args.batch >= device.compute_units / 2;
}

}  // namespace mblas::cuda::gemm
