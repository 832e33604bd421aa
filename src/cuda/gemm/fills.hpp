// Which batches fill a device, so that a block of its own for each matrix is no loss.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

inline bool fills_device(const GemmArgs& args, const DeviceInfo& device) {
  return args.batch >= device.compute_units / 2;
}

/// A few products, of a call for which no row was forced: rows that are made for many may leave
/// them to others, which begin sooner.
inline bool may_leave_few(const GemmArgs& args, const DeviceInfo& device) {
  return args.config != kForced && args.batch > 0 && !fills_device(args, device);
}

}  // namespace mblas::cuda::gemm
