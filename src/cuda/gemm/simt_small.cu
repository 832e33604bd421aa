// The tiles of `simt` for products that have few of the wide ones, or are narrow: four warps.
#include "cuda/gemm/simt_run.cuh"

namespace mblas::cuda::simt {

void run_tile_64x128(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<64, 128, 16, 32, 64, 4, 3, 3>>(p, a, b, queue);
}
void run_tile_64x64(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<64, 64, 16, 32, 32, 4, 3, 5>>(p, a, b, queue);
}
void run_tile_128x16(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<128, 16, 32, 32, 16, 8, 4, 2>>(p, a, b, queue);
}
void run_tile_16x128(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<16, 128, 32, 16, 32, 4, 4, 2>>(p, a, b, queue);
}
void run_tile_128x32(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<128, 32, 16, 32, 32, 4, 4, 4>>(p, a, b, queue);
}
void run_tile_32x128(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<32, 128, 16, 32, 32, 4, 4, 4>>(p, a, b, queue);
}

}  // namespace mblas::cuda::simt
