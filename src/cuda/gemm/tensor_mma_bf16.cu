// The kernels of tensor_mma.cuh for bfloat16.
#include "cuda/gemm/tensor_mma.cuh"

namespace mblas::cuda::gemm {

template void run_mma<__nv_bfloat16>(const MmaProblem<float>&, const CudaQueue&);

}  // namespace mblas::cuda::gemm
