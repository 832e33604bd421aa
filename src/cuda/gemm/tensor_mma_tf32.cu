// The kernels of tensor_mma.cuh for float as TF32.
#include "cuda/gemm/tensor_mma.cuh"

namespace mblas::cuda::gemm {

template void run_mma<Tf32>(const MmaProblem<float>&, const CudaQueue&);

}  // namespace mblas::cuda::gemm
