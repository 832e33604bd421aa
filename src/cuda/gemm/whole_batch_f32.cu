#include "cuda/gemm/whole_batch.cuh"

namespace mblas::cuda::whole_batch {

void run_f32(const GemmArgs& args, const Plan& plan, const Config& config, const CudaQueue& queue) {
  if (plan.shape.vectors)
    launch_size<float, true, kFloatVectors>(args, plan, config, queue);
  else
    launch_size<float, false, kFloats>(args, plan, config, queue);
}

}  // namespace mblas::cuda::whole_batch
