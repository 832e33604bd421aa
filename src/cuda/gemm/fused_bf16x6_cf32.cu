// Products of cf32 by `fused_bf16x6`.
#include "cuda/gemm/hopper/fused.cuh"

namespace mblas::cuda::gemm::fused {

template void run_fused<Complex<float>>(int, bool, const Problem<Complex<float>>&,
                                        const CudaQueue&);

}  // namespace mblas::cuda::gemm::fused
