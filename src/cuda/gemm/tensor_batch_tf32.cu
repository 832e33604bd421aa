#include "cuda/gemm/tensor_batch.cuh"

namespace mblas::cuda::tensor_batch {

void run_tf32(const GemmArgs& args, const Plan& plan, const Config& config,
              const CudaQueue& queue) {
  launch_size<Tf32, kFloatSizes>(args, plan, config, queue);
}

}  // namespace mblas::cuda::tensor_batch
