// The kernels of tensor_mma.cuh for half.
#include "cuda/gemm/tensor_mma.cuh"

namespace mblas::cuda::gemm {

template void run_mma<__half>(const MmaProblem<float>&, const CudaQueue&);

}  // namespace mblas::cuda::gemm
