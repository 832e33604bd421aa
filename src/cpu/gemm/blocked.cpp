// The blocked product: C in tiles of what the packed operands of one thread leave in the caches
// (blocked_isa.cpp computes a tile). Tiles go to threads by index and no thread needs another's
// packing, which costs some packing twice and no synchronisation; the bits of the result do not
// depend on how many threads there are.
#include <algorithm>

#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"

namespace mblas::cpu {
namespace {

// Multiply-adds that a thread should get: about 10 µs.
constexpr double kGrain = 1 << 18;
constexpr std::int64_t kAlignment = 64;

const GemmTileKernel& kernel_for(const GemmArgs& args) {
  return *std::find_if(isa().gemm.begin(), isa().gemm.end(), [&](const GemmTileKernel& kernel) {
    return kernel.in == args.in && kernel.out == args.out;
  });
}

struct Plan {
  Tiling tiling;
  int threads;
  std::int64_t thread_bytes;  // workspace of a thread
};

/// `size` in equal parts of at most `most`, whole multiples of `unit`; at least `parts` of them
/// where there are as many units.
std::int64_t part_of(std::int64_t size, std::int64_t most, std::int64_t unit, std::int64_t parts) {
  return round_up(divide_up(size, std::max(parts, divide_up(size, most))), unit);
}

Plan plan(const GemmArgs& args, const GemmTileKernel& kernel, int num_threads) {
  const double work = double(args.batch) * double(args.m) * double(args.n) * double(args.k);
  const int threads = threads_for(work, kGrain, num_threads);
  std::int64_t mc = part_of(args.m, kernel.mc, kernel.mr, 1);
  std::int64_t nc = part_of(args.n, kernel.nc, kernel.nr, 1);
  Tiling tiling{args.m, args.n, args.batch, mc, nc};
  // Few tiles: halve their longer side until every thread has one.
  while (tiling.count() < threads && (tiling.tile_m > kernel.mr || tiling.tile_n > kernel.nr)) {
    if (tiling.tile_m > kernel.mr && (tiling.tile_m >= tiling.tile_n || tiling.tile_n <= kernel.nr))
      tiling.tile_m = part_of(args.m, kernel.mc, kernel.mr, 2 * tiling.rows());
    else
      tiling.tile_n = part_of(args.n, kernel.nc, kernel.nr, 2 * tiling.cols());
  }
  const std::int64_t kc = std::min<std::int64_t>(args.k, kernel.kc);
  const std::int64_t elements =
      tiling.tile_m * kc + kc * tiling.tile_n + tiling.tile_m * tiling.tile_n;
  return {tiling, int(std::min<std::int64_t>(threads, tiling.count())),
          round_up(elements * kernel.packed_size, kAlignment)};
}

}  // namespace

std::size_t gemm_blocked_workspace(const GemmArgs& args, const DeviceInfo& device) {
  const Plan p = plan(args, kernel_for(args), device.num_threads);
  return std::size_t(p.threads * p.thread_bytes);
}

void gemm_blocked(const GemmArgs& args, Queue& queue) {
  const GemmTileKernel& kernel = kernel_for(args);
  const Plan p = plan(args, kernel, queue.device().num_threads);
  const Strides a = strides_of(args.transA, args.A.ld), b = strides_of(args.transB, args.B.ld);
  const int in_size = size_of(args.in), out_size = size_of(args.out);
  p.tiling.for_each(p.threads, [&](const Tile& tile, int thread) {
    GemmTile t{};
    t.a_row = a.row;
    t.a_col = a.col;
    t.b_row = b.row;
    t.b_col = b.col;
    t.ldc = args.C.ld;
    t.conj_a = is_conjugated(args.transA);
    t.conj_b = is_conjugated(args.transB);
    t.m = tile.rows;
    t.n = tile.cols;
    t.k = args.k;
    t.alpha = args.alpha;
    t.beta = args.beta;
    if (args.k > 0) {
      t.A =
          static_cast<const std::byte*>(args.A.at(tile.batch, in_size)) + tile.i * a.row * in_size;
      t.B =
          static_cast<const std::byte*>(args.B.at(tile.batch, in_size)) + tile.j * b.col * in_size;
    }
    t.C = static_cast<std::byte*>(args.C.at(tile.batch, out_size)) +
          (tile.i * args.C.ld + tile.j) * out_size;
    kernel.run(t, queue.workspace.data() + thread * p.thread_bytes);
    if (!args.epilogue.is_none())
      gemm_finish_block(args, tile.batch, tile.i, tile.j, tile.rows, tile.cols);
  });
}

}  // namespace mblas::cpu
