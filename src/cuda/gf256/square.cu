// Square tiles: each byte of A and of B is read from global memory once for 16 products, with 16
// rows and columns of both in shared memory. Of little use for a product with few rows: of C's 16
// in a tile four are there where four shards are coded.
#include "cuda/gf256/tile.cuh"

namespace mblas::cuda::gf256 {

Kernel<Gf256Args> square() {
  return fixed_tile<FixedTile<16, 16, 16>>("square",
                                           "16x16 tiles in shared memory, logarithms and powers");
}

}  // namespace mblas::cuda::gf256
