// The large tiles of `simt` for complex<float>: 8x8 and 8x4 elements of C per thread.
#include "cuda/gemm/simt_run.cuh"

namespace mblas::cuda::simt {

void run_tile_128x64(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<128, 64, 8, 64, 32, 8, 4, 2>>(p, a, b, queue);
}
void run_tile_64x64(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<64, 64, 8, 32, 32, 4, 4, 3, 144>>(p, a, b, queue);
}

}  // namespace mblas::cuda::simt
