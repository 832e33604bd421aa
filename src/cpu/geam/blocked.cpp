// Sums of matrices in blocks of C, spread over the threads; blocked_isa.cpp computes one.
#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"

namespace mblas::cpu {

void geam_blocked(const GeamArgs& args, Queue& queue) {
  // Narrow enough that a row of squares of a transposed operand stays in the second-level cache.
  constexpr std::int64_t tile_m = 64, tile_n = 1024;
  const int size = size_of(args.type);
  const auto run = isa().geam[int(args.type)];
  const bool has_a = args.alpha != Scalar{}, has_b = args.beta != Scalar{};
  // The address of op(X)(i, j).
  const auto at = [size](const Input& X, Op op, const Tile& tile) {
    const Strides s = strides_of(op, X.ld);
    return static_cast<const std::byte*>(X.at(tile.batch, size)) +
           (tile.i * s.row + tile.j * s.col) * size;
  };
  const Tiling tiling{args.m, args.n, args.batch, tile_m, tile_n};
  const int threads = copy_threads(args.batch, args.m, args.n, size, queue.device().num_threads);
  tiling.for_each(threads, [&](const Tile& tile, int /*thread*/) {
    run({.A = has_a ? at(args.A, args.transA, tile) : nullptr,
         .lda = args.A.ld,
         .trans_a = is_transposed(args.transA),
         .conj_a = is_conjugated(args.transA),
         .B = has_b ? at(args.B, args.transB, tile) : nullptr,
         .ldb = args.B.ld,
         .trans_b = is_transposed(args.transB),
         .conj_b = is_conjugated(args.transB),
         .C = static_cast<std::byte*>(args.C.at(tile.batch, size)) +
              (tile.i * args.C.ld + tile.j) * size,
         .ldc = args.C.ld,
         .m = tile.rows,
         .n = tile.cols,
         .alpha = args.alpha,
         .beta = args.beta});
  });
}

}  // namespace mblas::cpu
