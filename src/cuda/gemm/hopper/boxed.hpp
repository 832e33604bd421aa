// Products whose operands the copy engine brings as boxes of batches of matrices.
#pragma once

#include <algorithm>

#include "cuda/gemm/hopper/tensor_map.hpp"
#include "cuda/launch.cuh"

namespace mblas::cuda::gemm::hopper {

/// Why it is not one for a kernel with all of a multiprocessor's shared memory, or nullptr.
inline const char* declines_boxes(const GemmArgs& args, const DeviceInfo& device) {
  constexpr std::size_t kShared = 227 << 10;
  constexpr std::int64_t kMostCoordinate = std::int64_t{1} << 30;
  if (!runs_hopper(device)) return "needs compute capability 9.0 and code for it";
  if (device.shared_memory < kShared) return "needs more shared memory";
  if (std::max({args.m, args.n, args.k, args.batch}) >= kMostCoordinate)
    return "for sizes of less than 2^30";
  if (args.k == 0) return "for products of some depth";
  if (args.batch > 1 && (args.A.pointers || args.B.pointers))
    return "for matrices at equal distances";
  const int size = size_of(args.in);
  if (!is_mappable(args.A, args.batch, size) || !is_mappable(args.B, args.batch, size))
    return "for distances of less than 2^40 bytes";
  return nullptr;
}

}  // namespace mblas::cuda::gemm::hopper
