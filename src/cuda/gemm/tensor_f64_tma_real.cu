// The tiles of `tensor_f64_tma` for doubles.
#include "cuda/gemm/tensor_f64_tma_run.cuh"

namespace mblas::cuda::gemm::tma64 {
namespace {

template <class Tile>
void run(const Problem<double>& p, bool x_along_k, bool y_along_k, bool swapped,
         const CudaQueue& queue) {
  if (x_along_k)
    launch_tiles<Tile, true, true, false>(p, queue);
  else if (!y_along_k)
    launch_tiles<Tile, false, false, true>(p, queue);
  else if (swapped)
    launch_tiles<Tile, false, true, true>(p, queue);
  else
    launch_tiles<Tile, false, true, false>(p, queue);
}

}  // namespace

void run_tile(int tile, const Problem<double>& p, bool x_along_k, bool y_along_k, bool swapped,
              const CudaQueue& queue) {
  switch (tile) {
    case 0:
      return run<Tile<double, 128, 128, 64, 32, kTiles[0].stages>>(p, x_along_k, y_along_k, swapped,
                                                                   queue);
    case 1:
      return run<Tile<double, 128, 64, 32, 32, kTiles[1].stages>>(p, x_along_k, y_along_k, swapped,
                                                                  queue);
    case 2:
      return run<Tile<double, 64, 64, 32, 32, kTiles[2].stages>>(p, x_along_k, y_along_k, swapped,
                                                                 queue);
    case 3:
      return run<Tile<double, 64, 32, 32, 32, kTiles[3].stages>>(p, x_along_k, y_along_k, swapped,
                                                                 queue);
    default:
      return run<Tile<double, 64, 64, 32, 32, kTiles[4].stages, kTiles[4].blocks>>(
          p, x_along_k, y_along_k, swapped, queue);
  }
}

}  // namespace mblas::cuda::gemm::tma64
