// The engine for float rounded to 11 bits: a file of its own, to be compiled side by side.
#include "cuda/gemm/hopper/run.cuh"

namespace mblas::cuda::gemm::hopper {

template void run_engine<Tf32>(int, Problem<float>, const Source&, const Source&, const CudaQueue&);

}  // namespace mblas::cuda::gemm::hopper
