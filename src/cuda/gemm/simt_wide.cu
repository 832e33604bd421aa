// The tiles of `simt` for large products: 16x8 elements of C per thread.
#include "cuda/gemm/simt_run.cuh"

namespace mblas::cuda::simt {

void run_tile_128x256(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<128, 256, 16, 64, 64, 4, 4, 1>>(p, a, b, queue);
}
void run_tile_256x128(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<256, 128, 16, 64, 64, 4, 4, 1>>(p, a, b, queue);
}
void run_tile_128x128(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<128, 128, 16, 64, 64, 4, 3, 2>>(p, a, b, queue);
}

}  // namespace mblas::cuda::simt
