// The tile of `tensor_f64_tma` for complex<double>.
#include "cuda/gemm/tensor_f64_tma_run.cuh"

namespace mblas::cuda::gemm::tma64 {

void run_tile(int, const Problem<Complex<double>>& p, bool x_along_k, bool y_along_k, bool,
              const CudaQueue& queue) {
  using Only = Tile<Complex<double>, 64, 128, 32, 32, kComplexTiles[0].stages>;
  if (x_along_k && y_along_k)
    launch_tiles<Only, true, true, false>(p, queue);
  else if (x_along_k)
    launch_tiles<Only, true, false, false>(p, queue);
  else if (y_along_k)
    launch_tiles<Only, false, true, false>(p, queue);
  else
    launch_tiles<Only, false, false, false>(p, queue);
}

}  // namespace mblas::cuda::gemm::tma64
