#include <algorithm>
#include <cstdint>

#include "core/finish.hpp"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/simt.hpp"
#include "cuda/gemm/tensor_cores.hpp"
#include "cuda/gemm/tensor_mma.hpp"

namespace mblas::cuda::gemm {
namespace tensor_cores_file {

/// `share`: of tensor_mma's estimate.
double least_microseconds(const GemmArgs& args, const DeviceInfo& device, double share) {
  const double mma = share * tensor_mma_microseconds(args, device);
#ifdef MBLAS_HAVE_HOPPER
  return std::min(mma, tensor_wgmma_microseconds(args, device));
#else
  return mma;
#endif
}

}  // namespace tensor_cores_file

double tensor_cores_microseconds(const GemmArgs& args, const DeviceInfo& device) {
  return tensor_cores_file::least_microseconds(args, device, 1);
}

double tf32_microseconds(const GemmArgs& args, const DeviceInfo& device) {
  // Of 780 products on an H200: tensor_mma's blocks take longer than estimated where one side is
  // long and the others are short.
  constexpr std::int64_t kLong = 4096, kShort = 64, kShortSum = 128;
  constexpr double kTooLow = 1.6;
  const bool is_long = std::max(args.m, args.n) >= kLong && std::min(args.m, args.n) <= kShort &&
                       args.k <= kShortSum;
  return tensor_cores_file::least_microseconds(args, device, is_long ? kTooLow : 1);
}

bool is_for_simt(const GemmArgs& args, const DeviceInfo& device) {
  // simt's estimates of longer sums are too low: the factor was best for 310 products on an H200.
  constexpr std::int64_t kLong = 800, kMostDepth = 4096;
  constexpr double kTooLow = 1.2;
  if (!is_tf32(args) || args.k > kMostDepth || args.batch != 1 || args.keeper || needs_finish(args))
    return false;
  return (args.k >= kLong ? kTooLow : 1) *
             simt_microseconds_of_many(args.in, simt_microseconds(args, device)) <
         tf32_microseconds(args, device);
}

}  // namespace mblas::cuda::gemm
