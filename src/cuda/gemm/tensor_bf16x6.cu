// gemm of float, real or complex, through bfloat16 on Hopper's tensor cores: each operand is split
// into three planes, of whose nine products six are computed (hopper/planes.cuh), 7.5 times as fast
// as the ordinary cores multiply floats; docs/ACCURACY.md has the errors. Operands that planes do
// not suit are found when they are split, on the device: the engine then leaves the product to
// simt's kernels, which are launched in any case and otherwise do nothing.
//
// Limit: the engine's with six times the multiply-adds, and the splitting at the speed of memory:
// 10 bytes for each element of A and B; of complex ones 20 for A's and 32 for B's.
#include <limits>

#include "cuda/gemm/fitted.hpp"
#include "cuda/gemm/hopper/planes_call.cuh"
#include "cuda/gemm/tensor_bf16x6.hpp"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace tensor_bf16x6_file {

constexpr char kName[] = "tensor_bf16x6";
using Product = hopper::PlaneProduct<hopper::Bf16x3, hopper::kBf16x3Tiles, kName>;

constexpr double kLaunches = 8;  // microseconds that no call takes less than

/// Microseconds of a call by the models.
double estimate(const GemmArgs& args, const DeviceInfo& device) {
  constexpr double kBytes = 3.3e6;        // of splitting a microsecond
  constexpr double kResultBytes = 4.3e6;  // likewise, which the engine writes at the end
  double sum = 0;
  Product::for_each_block(args, [&](const GemmArgs& part, bool) {
    const double results = double(size_of(part.out)) * double(part.m) * double(part.n);
    sum += kLaunches + Product::split_bytes(part) / kBytes +
           Product::plan_of(part, device).microseconds +
           results * double(part.batch) / kResultBytes;
  });
  return sum;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::cf32) return "for f32 and cf32";
  if (args.compute != Compute::Default && args.compute != Compute::BF16x6)
    return "computes in bfloat16 planes only";
  if (const char* reason = declines_halfway(args)) return reason;
  if (const char* reason = Product::declines_engine(args, device)) return reason;
  // docs/ACCURACY.md: shorter sums need the bound of BF16x6.
  constexpr std::int64_t kShortest = 16;
  if (args.compute == Compute::Default && hopper::by_parts(args).k < kShortest)
    return "for longer sums";
  if (args.compute == Compute::Default && args.config == kOwnChoice) {
    const double others = std::min(simt_microseconds(args, device),
                                   fitted_cycles(args, device) / kFittedCyclesPerMicrosecond);
    if (others < kLaunches || estimate(args, device) > others)
      return "estimated to be slower than simt or fitted";
  }
  return nullptr;
}

}  // namespace tensor_bf16x6_file

double tensor_bf16x6_microseconds(const GemmArgs& args, const DeviceInfo& device) {
  using namespace tensor_bf16x6_file;
  return Product::declines_engine(args, device) ? std::numeric_limits<double>::infinity()
                                                : estimate(args, device);
}

Kernel<GemmArgs> tensor_bf16x6() {
  using namespace tensor_bf16x6_file;
  return Product::row(
      "float, real or complex, as three planes of bfloat16 on Hopper's tensor cores", declines);
}

}  // namespace mblas::cuda::gemm
