// The transpose in blocks that the first-level cache holds, spread over the threads. Limited by
// memory: each cache line is read once and written once.
#include "cpu/transpose/blocked.hpp"

#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"

namespace mblas::cpu {

void transpose_batch(const TransposeArgs& args, int threads) {
  const int size = size_of(args.type);
  const std::int64_t side = transpose_side(size);
  const TransposeBlock block = transpose_block(size);
  // Tiles of B, numbered along its rows.
  const Tiling tiling{args.n, args.m, args.batch, side, side};
  tiling.for_each(threads, [&](const Tile& tile, int /*thread*/) {
    const auto* A = static_cast<const std::byte*>(args.A.at(tile.batch, size));
    auto* B = static_cast<std::byte*>(args.B.at(tile.batch, size));
    block(A + (tile.j * args.A.ld + tile.i) * size, args.A.ld * size,
          B + (tile.i * args.B.ld + tile.j) * size, args.B.ld * size, tile.cols, tile.rows);
  });
}

void transpose_blocked(const TransposeArgs& args, Queue& queue) {
  transpose_batch(args, copy_threads(args.batch, args.m, args.n, size_of(args.type),
                                     queue.device().num_threads));
}

}  // namespace mblas::cpu
