#include "cuda/gemm/whole_batch.cuh"

namespace mblas::cuda::whole_batch {

void run_cf32(const GemmArgs& args, const Plan& plan, const Config& config,
              const CudaQueue& queue) {
  if (plan.shape.vectors)
    launch_size<Complex<float>, true, kComplexVectors>(args, plan, config, queue);
  else
    launch_size<Complex<float>, false, kComplexes>(args, plan, config, queue);
}

}  // namespace mblas::cuda::whole_batch
