// The engine for residues: a file of its own, to be compiled side by side.
#include "cuda/gemm/hopper/run.cuh"

namespace mblas::cuda::gemm::hopper {

template void run_engine<Residues>(int, Problem<std::uint32_t>, const Source&, const Source&,
                                   const CudaQueue&);

}  // namespace mblas::cuda::gemm::hopper
