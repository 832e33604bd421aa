// The tiles of `tensor_f64_tma` for complex<double>.
#include "cuda/gemm/tensor_f64_tma_run.cuh"

namespace mblas::cuda::gemm::tma64 {
namespace {

template <class Tile>
void run(const Problem<Complex<double>>& p, bool x_along_k, bool y_along_k,
         const CudaQueue& queue) {
  if (x_along_k && y_along_k)
    launch_tiles<Tile, true, true, false>(p, queue);
  else if (x_along_k)
    launch_tiles<Tile, true, false, false>(p, queue);
  else if (y_along_k)
    launch_tiles<Tile, false, true, false>(p, queue);
  else
    launch_tiles<Tile, false, false, false>(p, queue);
}

}  // namespace

void run_tile(int tile, const Problem<Complex<double>>& p, bool x_along_k, bool y_along_k, bool,
              const CudaQueue& queue) {
  const auto with = [&]<int kTile, int kWarpX, int kWarpY>() {
    constexpr const TileInfo& t = kComplexTiles[kTile];
    run<Tile<Complex<double>, t.x, t.y, kWarpX, kWarpY, t.stages, t.blocks>>(p, x_along_k,
                                                                             y_along_k, queue);
  };
  switch (tile) {
    case 0:
      return with.template operator()<0, 32, 32>();
    case 1:
      return with.template operator()<1, 32, 24>();
    case 2:
      return with.template operator()<2, 32, 16>();
    case 3:
      return with.template operator()<3, 32, 24>();
    default:
      return with.template operator()<4, 32, 16>();
  }
}

}  // namespace mblas::cuda::gemm::tma64
