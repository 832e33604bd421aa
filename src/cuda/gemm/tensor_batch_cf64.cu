#include "cuda/gemm/tensor_batch.cuh"

namespace mblas::cuda::tensor_batch {

void run_cf64(const GemmArgs& args, const Plan& plan, const Config& config,
              const CudaQueue& queue) {
  launch_size<Complex<double>, kComplexSizes>(args, plan, config, queue);
}

}  // namespace mblas::cuda::tensor_batch
