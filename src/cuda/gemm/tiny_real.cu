// Tiny products of float and double.
#include "cuda/gemm/tiny_simt.cuh"

namespace mblas::cuda::tiny {

void run_real(const GemmArgs& args, const CudaQueue& queue) {
  if (args.in == DType::f32)
    run_simt<float, 4, 4, 6, 36 << 10>(args, queue);
  else
    run_simt<double, 4, 4, 4, 64 << 10>(args, queue);
}

}  // namespace mblas::cuda::tiny
