// Tiles as flat as the product: few rows, many columns, and a depth of their own, all known to the
// compiler.
#include "cuda/gf256/tile.cuh"

namespace mblas::cuda::gf256 {

Kernel<Gf256Args> tile() {
  return fixed_tile<FixedTile<4, 64, 16>>("tile", "4x64 tiles of depth 16 in shared memory");
}

}  // namespace mblas::cuda::gf256
