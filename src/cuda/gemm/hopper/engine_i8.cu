// The engine for int8: a file of its own, to be compiled side by side.
#include "cuda/gemm/hopper/run.cuh"

namespace mblas::cuda::gemm::hopper {

template void run_engine<std::int8_t>(int, Problem<std::uint32_t>, const Source&, const Source&,
                                      const CudaQueue&);

}  // namespace mblas::cuda::gemm::hopper
