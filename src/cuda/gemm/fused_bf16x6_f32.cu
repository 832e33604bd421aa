// Products of f32 by `fused_bf16x6`.
#include "cuda/gemm/hopper/fused.cuh"

namespace mblas::cuda::gemm::fused {

template void run_fused<float>(int, bool, const Problem<float>&, const CudaQueue&);

}  // namespace mblas::cuda::gemm::fused
