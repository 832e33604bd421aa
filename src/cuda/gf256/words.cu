// Several bytes in a word: a thread loads, adds and stores 2, 4 or 8 neighbouring columns at once.
// `tile_dynamic` is the same with one byte. Each product still costs its lookups.
#include "cuda/gf256/tile.cuh"

namespace mblas::cuda::gf256 {

Kernel<Gf256Args> words(int bytes) {
  switch (bytes) {
    case 8:
      return any_tile<std::uint64_t>("words_8", "tiles of words of 8 bytes");
    case 4:
      return any_tile<std::uint32_t>("words_4", "tiles of words of 4 bytes");
    default:
      return any_tile<std::uint16_t>("words_2", "tiles of words of 2 bytes");
  }
}

}  // namespace mblas::cuda::gf256
