// tensor_mma as the one that may be faster than a kernel that copies operands.
#pragma once

#include <algorithm>

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

inline constexpr std::int64_t kMmaWarp = 32;  // most rows, columns and k of a warp by itself
inline bool is_tf32(const GemmArgs& args) {
  return args.in == DType::f32 && args.compute == Compute::TF32;
}

/// Whether each product of a batch has a block of one warp there.
inline bool has_mma_warp(const GemmArgs& args) {
  return size_of(args.in) == 2 && args.k > 0 && std::max({args.m, args.n, args.k}) <= kMmaWarp;
}

/// Its own estimate of its time, copies of operands included; infinity where it declines, or would
/// copy those of a batch.
double tensor_mma_microseconds(const GemmArgs& args, const DeviceInfo& device);

}  // namespace mblas::cuda::gemm
