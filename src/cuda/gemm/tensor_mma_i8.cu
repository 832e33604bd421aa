// The kernels of tensor_mma.cuh for int8.
#include "cuda/gemm/tensor_mma.cuh"

namespace mblas::cuda::gemm {

template void run_mma<std::int8_t>(const MmaProblem<std::uint32_t>&, const CudaQueue&);

}  // namespace mblas::cuda::gemm
