// Sums of matrices in blocks of C, spread over the threads; blocked_isa.cpp computes one.
#include "cpu/transpose/blocked.hpp"

#include <algorithm>

#include "cpu/cache.hpp"
#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"

namespace mblas::cpu {
namespace {

int threads_of(const GeamArgs& args, const DeviceInfo& device) {
  return copy_threads(args.batch, args.m, args.n, size_of(args.type), device.num_threads);
}

bool has_a(const GeamArgs& args) { return args.alpha != Scalar{}; }
bool has_b(const GeamArgs& args) { return args.beta != Scalar{}; }

/// Blocks of tile_m×tile_n. `buffers`: null, or 2 kGeamBuffer bytes a thread.
void run_blocks(const GeamArgs& args, std::int64_t tile_m, std::int64_t tile_n, int threads,
                std::byte* buffers, bool stream) {
  const int size = size_of(args.type);
  const auto run = isa().geam[int(args.type)];
  // The address of op(X)(i, j).
  const auto at = [size](const Input& X, Op op, const Tile& tile) {
    const Strides s = strides_of(op, X.ld);
    return static_cast<const std::byte*>(X.at(tile.batch, size)) +
           (tile.i * s.row + tile.j * s.col) * size;
  };
  const Tiling tiling{args.m, args.n, args.batch, tile_m, tile_n};
  tiling.for_each(threads, [&](const Tile& tile, int thread) {
    run({.A = has_a(args) ? at(args.A, args.transA, tile) : nullptr,
         .lda = args.A.ld,
         .trans_a = is_transposed(args.transA),
         .conj_a = is_conjugated(args.transA),
         .B = has_b(args) ? at(args.B, args.transB, tile) : nullptr,
         .ldb = args.B.ld,
         .trans_b = is_transposed(args.transB),
         .conj_b = is_conjugated(args.transB),
         .C = static_cast<std::byte*>(args.C.at(tile.batch, size)) +
              (tile.i * args.C.ld + tile.j) * size,
         .ldc = args.C.ld,
         .m = tile.rows,
         .n = tile.cols,
         .alpha = args.alpha,
         .beta = args.beta,
         .buffer = buffers ? buffers + thread * 2 * kGeamBuffer : nullptr,
         .stream = stream});
  });
}

/// Do the operands and C exceed the second-level caches of the threads?
bool past_caches(const GeamArgs& args, int threads) {
  const double matrices = 1 + has_a(args) + has_b(args);
  return matrices * double(args.batch) * double(args.m) * double(args.n) * size_of(args.type) >
         double(cache_sizes().second) * threads;
}

/// Is it one transpose, with nothing to compute?
bool moves_only(const GeamArgs& args) {
  constexpr Scalar one{1, 0};
  return (args.alpha == one && !has_b(args) && args.transA == Op::Trans) ||
         (args.beta == one && !has_a(args) && args.transB == Op::Trans);
}

}  // namespace

const char* geam_streamed_declines(const GeamArgs& args, const DeviceInfo&) {
  const bool transposed =
      (has_a(args) && is_transposed(args.transA)) || (has_b(args) && is_transposed(args.transB));
  return transposed ? nullptr : "needs a transposed operand";
}

std::size_t geam_streamed_workspace(const GeamArgs& args, const DeviceInfo& device) {
  return std::size_t(threads_of(args, device) * std::max(2 * kGeamBuffer, kStreamBuffer));
}

void geam_streamed(const GeamArgs& args, Queue& queue) {
  const int threads = threads_of(args, queue.device());
  const bool stream = past_caches(args, threads);
  if (stream && moves_only(args)) {
    const bool a = has_a(args);
    TransposeArgs move;
    move.type = untyped(size_of(args.type));
    move.m = args.n;
    move.n = args.m;
    move.A = a ? args.A : args.B;
    move.B = args.C;
    move.batch = args.batch;
    transpose_streams(move, queue.workspace.data(), threads);
    return;
  }
  const std::int64_t most = kGeamSide / size_of(args.type);
  std::int64_t side = most;
  // Smaller ones where that leaves too few for all threads.
  while (side > 64 && divide_up(args.m, side) * divide_up(args.n, side) * args.batch < 4 * threads)
    side /= 2;
  run_blocks(args, side, side, threads, queue.workspace.data(), stream);
}

void geam_blocked(const GeamArgs& args, Queue& queue) {
  // Narrow enough that a row of squares of a transposed operand stays in the second-level cache.
  constexpr std::int64_t tile_m = 64, tile_n = 1024;
  const int threads = threads_of(args, queue.device());
  run_blocks(args, tile_m, tile_n, threads, nullptr, past_caches(args, threads));
}

}  // namespace mblas::cpu
