// gemm of float through half on Hopper's tensor cores: each operand is scaled and split into two
// planes, of whose four products three are computed (hopper/planes.cuh), half as many as of planes
// of bfloat16. What is far below the largest of its row of op(A) or column of op(B) is less exact
// (docs/ACCURACY.md), so this is for those who ask for it. NaN and infinities are left to simt, as
// tensor_bf16x6 leaves them.
//
// Limit: the engine's with three times the multiply-adds, and scaling and splitting at the speed of
// memory: 12 bytes for each element of A and B.
#include "cuda/gemm/hopper/planes_call.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace tensor_fp16x3_file {

constexpr char kName[] = "tensor_fp16x3";
using Product = hopper::PlaneProduct<hopper::F16x2, hopper::kF16x2Tiles, kName>;

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32) return "for f32";
  if (args.compute != Compute::FP16x3) return "computes in half planes only";
  return Product::declines_engine(args, device);
}

}  // namespace tensor_fp16x3_file

Kernel<GemmArgs> tensor_fp16x3() {
  using namespace tensor_fp16x3_file;
  return Product::row("float as two scaled planes of half on Hopper's tensor cores", declines);
}

}  // namespace mblas::cuda::gemm
