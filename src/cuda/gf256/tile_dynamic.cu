// Tiles whose three sizes are arguments of the kernel, in dynamic shared memory: they can suit the
// product, for the price of loops that the compiler does not know.
#include "cuda/gf256/tile.cuh"

namespace mblas::cuda::gf256 {

Kernel<Gf256Args> tile_dynamic() {
  return any_tile<std::uint8_t>("tile_dynamic", "tiles of any size in dynamic shared memory");
}

}  // namespace mblas::cuda::gf256
