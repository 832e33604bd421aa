// The engine for float in three planes of bfloat16: a file of its own, to be compiled side by side.
#include "cuda/gemm/hopper/run.cuh"

namespace mblas::cuda::gemm::hopper {

template void run_engine<Bf16x3>(int, Problem<float>, const Source&, const Source&,
                                 const CudaQueue&);

}  // namespace mblas::cuda::gemm::hopper
