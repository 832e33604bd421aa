// Products of f32 by `fused_bf16x6`.
#include "cuda/gemm/hopper/fused.cuh"

namespace mblas::cuda::gemm::fused {

template <>
void run_fused<float>(int tile, bool vectors, const Problem<float>& p, const CudaQueue& queue) {
  run_fused_by<float>(tile, vectors, p, queue);
}

}  // namespace mblas::cuda::gemm::fused
