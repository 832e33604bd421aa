// The least tiles of `simt`: a warp or two each, for small matrices and few of them.
#include "cuda/gemm/simt_run.cuh"

namespace mblas::cuda::simt {

void run_tile_32x32(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<32, 32, 16, 16, 32, 4, 3, 10>>(p, a, b, queue);
}
void run_tile_64x32(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<64, 32, 16, 32, 16, 8, 3, 6>>(p, a, b, queue);
}
void run_tile_32x64(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<32, 64, 16, 16, 32, 4, 3, 6>>(p, a, b, queue);
}

void run_tile_32x16(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<32, 16, 16, 32, 16, 8, 3, 16>>(p, a, b, queue);
}
void run_tile_16x32(const Problem<float>& p, Copy a, Copy b, const CudaQueue& queue) {
  run_tiles<Tile<16, 32, 16, 16, 32, 4, 3, 16>>(p, a, b, queue);
}

}  // namespace mblas::cuda::simt
