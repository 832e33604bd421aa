// Tiny complex products.
#include "cuda/gemm/tiny_simt.cuh"

namespace mblas::cuda::tiny {

void run_complex(const GemmArgs& args, const CudaQueue& queue) {
  if (args.in == DType::cf32)
    run_simt<Complex<float>, 4, 4, 4, 64 << 10>(args, queue);
  else
    run_simt<Complex<double>, 4, 2, 4, 48 << 10>(args, queue);
}

}  // namespace mblas::cuda::tiny
