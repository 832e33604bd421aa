#include "cuda/gemm/tensor_batch_halves.cuh"

namespace mblas::cuda::tensor_batch {

void run_bf16(const GemmArgs& args, const HalfPlan& plan, const Config& config,
              const CudaQueue& queue) {
  launch_halves<__nv_bfloat16, kHalfSizes>(args, plan, config, queue);
}

}  // namespace mblas::cuda::tensor_batch
