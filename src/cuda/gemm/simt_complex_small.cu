// The small tiles of `simt` for complex<float>.
#include "cuda/gemm/simt_run.cuh"

namespace mblas::cuda::simt {

void run_tile_64x32(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<64, 32, 8, 32, 16, 8, 4, 4>>(p, a, b, queue);
}
void run_tile_32x64(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<32, 64, 8, 16, 32, 4, 4, 4>>(p, a, b, queue);
}
void run_tile_32x32(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<32, 32, 8, 16, 16, 4, 4, 6>>(p, a, b, queue);
}
void run_tile_32x16(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<32, 16, 8, 16, 16, 4, 4, 10>>(p, a, b, queue);
}
void run_tile_16x32(const Problem<Complex<float>>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<16, 32, 8, 16, 16, 4, 4, 10>>(p, a, b, queue);
}

}  // namespace mblas::cuda::simt
