// The engine for half: a file of its own, to be compiled side by side.
#include "cuda/gemm/hopper/run.cuh"

namespace mblas::cuda::gemm::hopper {

template void run_engine<__half>(int, Problem<float>, const Source&, const Source&,
                                 const CudaQueue&);

}  // namespace mblas::cuda::gemm::hopper
