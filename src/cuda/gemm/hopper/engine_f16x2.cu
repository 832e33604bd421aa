// The engine for float in two scaled planes of half: a file of its own, to be compiled side by
// side.
#include "cuda/gemm/hopper/run.cuh"

namespace mblas::cuda::gemm::hopper {

template void run_engine<F16x2>(int, Problem<float>, const Source&, const Source&,
                                const CudaQueue&);

}  // namespace mblas::cuda::gemm::hopper
