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
  const auto with = [&]<int kTile, int kWarpX, int kWarpY>() {
    constexpr const TileInfo& t = kTiles[kTile];
    run<Tile<double, t.x, t.y, kWarpX, kWarpY, t.stages, t.blocks>>(p, x_along_k, y_along_k,
                                                                    swapped, queue);
  };
  switch (tile) {
    case 0:
      return with.template operator()<0, 64, 32>();
    case 1:
      return with.template operator()<1, 32, 40>();
    case 2:
      return with.template operator()<2, 32, 32>();
    case 3:
      return with.template operator()<3, 32, 24>();
    case 4:
      return with.template operator()<4, 32, 16>();
    case 5:
      return with.template operator()<5, 32, 40>();
    case 6:
      return with.template operator()<6, 32, 32>();
    default:
      return with.template operator()<7, 32, 24>();
  }
}

}  // namespace mblas::cuda::gemm::tma64
