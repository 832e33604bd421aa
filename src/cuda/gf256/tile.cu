// Tiles as flat as the product: few rows, many columns, and a depth of their own, all known to the
// compiler.
#include "cuda/gf256/tile.cuh"

namespace mblas::cuda::gf256 {
namespace tile_file {

void run(const Gf256Args& args, Queue& queue) {
  run_tile<std::uint8_t>(args, static_cast<const CudaQueue&>(queue), FixedTile<4, 64, 16>());
}

}  // namespace tile_file

Kernel<Gf256Args> tile() {
  return {"tile", "4x64 tiles of depth 16 in shared memory", declines_nothing, gf256_pointer_bytes,
          tile_file::run};
}

}  // namespace mblas::cuda::gf256
