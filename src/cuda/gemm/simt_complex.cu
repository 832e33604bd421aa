// The tiles of `simt` for complex<float>: 8x8 elements of C per thread, or fewer where tiles are
// few.
#include "cuda/gemm/simt_run.cuh"

namespace mblas::cuda::simt {

void run_tile_128x64(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<128, 64, 16, 64, 32, 8, 3, 2>>(p, a, b, queue);
}
void run_tile_64x64(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<64, 64, 16, 32, 32, 4, 3, 3>>(p, a, b, queue);
}
void run_tile_32x32(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<32, 32, 16, 16, 16, 4, 4, 6>>(p, a, b, queue);
}

void run_tile_32x16(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<32, 16, 16, 16, 16, 4, 4, 10>>(p, a, b, queue);
}
void run_tile_16x32(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<16, 32, 16, 16, 16, 4, 4, 10>>(p, a, b, queue);
}

}  // namespace mblas::cuda::simt
