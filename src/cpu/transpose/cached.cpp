// Transposes whose operands the second-level caches hold: bands of rows, transposed in registers
// straight from A to B. Small matrices of a batch are one band each.
#include "cpu/cache.hpp"
#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"
#include "cpu/transpose/blocked.hpp"

namespace mblas::cpu {

const char* transpose_cached_declines(const TransposeArgs& args, const DeviceInfo& device) {
  const int size = size_of(args.type);
  const double bytes = 2.0 * double(args.batch) * double(args.m) * double(args.n) * size;
  const int threads = copy_threads(args.batch, args.m, args.n, size, device.num_threads);
  return bytes <= double(cache_sizes().second) * threads ? nullptr
                                                         : "larger than the second-level caches";
}

void transpose_cached(const TransposeArgs& args, Queue& queue) {
  const int size = size_of(args.type);
  // Rows of A whose lines, and those of B that they end in, stay in the first-level cache.
  constexpr std::int64_t band = 128, most_cols = 1024;
  const TransposeBlock block = transpose_block(size);
  const int threads = copy_threads(args.batch, args.m, args.n, size, queue.device().num_threads);
  const Tiling tiling{args.m, args.n, args.batch, band, most_cols};
  tiling.for_each(threads, [&](const Tile& tile, int /*thread*/) {
    const auto* A = static_cast<const std::byte*>(args.A.at(tile.batch, size));
    auto* B = static_cast<std::byte*>(args.B.at(tile.batch, size));
    block(A + (tile.i * args.A.ld + tile.j) * size, args.A.ld * size,
          B + (tile.j * args.B.ld + tile.i) * size, args.B.ld * size, tile.rows, tile.cols);
  });
}

}  // namespace mblas::cpu
