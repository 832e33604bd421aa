// The product of a small C and a long k: k is cut into chunks, whose products threads compute into
// sums of their own; these are added in the order of k. Where the chunks lie depends on k alone, so
// the bits do not depend on the number of threads. Limited by reading A and B once.
#include <algorithm>

#include "cpu/gemm/packed.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"
#include "cpu/visit.hpp"

namespace mblas::cpu {
namespace {

constexpr std::int64_t kChunk = 2048;  // of k, whose products a thread adds up in one C
constexpr std::int64_t kDepth = 512;   // of k at a time: the operands' parts fit the caches
constexpr std::int64_t kMost = 64;     // rows and columns of C
constexpr std::int64_t kAlignment = 64;

struct Plan {
  std::int64_t chunks;
  int threads;
  bool pack_b;
  std::int64_t sum_bytes, pack_bytes;  // of a chunk's sums; of a thread
};

Plan plan(const GemmArgs& args, const GemmPanels& panels, int num_threads) {
  Plan p;
  p.chunks = divide_up(args.k, kChunk) * args.batch;
  const double work = double(args.m + 2) * double(args.n + panels.nr / 4) * double(args.k) /
                      (panels.nr / 2) * double(args.batch);
  p.threads = int(std::min<std::int64_t>(threads_for(work, kGemmGrain, num_threads), p.chunks));
  p.pack_b = is_transposed(args.transB);
  p.sum_bytes = round_up(args.m * args.n * panels.size, kAlignment);
  p.pack_bytes =
      p.pack_b ? round_up(kDepth * round_up(args.n, panels.nr) * panels.size, kAlignment) : 0;
  return p;
}

/// Fetches rows of `bytes` bytes into the second-level cache. They may lie past the operand's end.
void fetch(const void* p, std::int64_t rows, std::int64_t pitch, std::int64_t bytes) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t at = 0; at < bytes; at += 64)
      __builtin_prefetch(static_cast<const std::byte*>(p) + i * pitch + at, 0, 2);
}

/// Fetches `depth` steps of k of an operand that has `count` rows or columns.
void fetch_ahead(const void* p, std::int64_t count, std::int64_t step, std::int64_t stride,
                 std::int64_t depth, int size) {
  if (stride == 1)
    fetch(p, count, step * size, depth * size);
  else if (stride == count)
    fetch(p, 1, 0, depth * count * size);
  else
    fetch(p, depth, stride * size, count * size);
}

}  // namespace

const char* gemm_split_declines(const GemmArgs& args, const DeviceInfo&) {
  if (const char* reason = unless_panels(args)) return reason;
  if (args.m > kMost || args.n > kMost) return "C has more than 64 rows or columns";
  if (args.k < 2 * kChunk) return "k is less than 4096";
  return nullptr;
}

std::size_t gemm_split_workspace(const GemmArgs& args, const DeviceInfo& device) {
  const Plan p = plan(args, panels_of(args), device.num_threads);
  return std::size_t(p.chunks * p.sum_bytes + p.threads * p.pack_bytes);
}

void gemm_split(const GemmArgs& args, Queue& queue) {
  const GemmPanels& panels = panels_of(args);
  const Plan p = plan(args, panels, queue.device().num_threads);
  const std::int64_t per_problem = p.chunks / args.batch;
  std::byte* const sums = queue.workspace.data();
  std::byte* const packed = sums + p.chunks * p.sum_bytes;
  parallel(p.threads, [&](int thread, int granted) {
    const Range chunks = share_of(p.chunks, thread, granted);
    for (std::int64_t c = chunks.begin; c < chunks.end; ++c) {
      const GemmTile whole = tile_of(args, c / per_problem);
      const std::int64_t first = c % per_problem * kChunk;
      const std::int64_t last = std::min(first + kChunk, args.k);
      for (std::int64_t k0 = first; k0 < last; k0 += kDepth) {
        GemmTile t = whole;
        t.k = std::min(kDepth, last - k0);
        t.A = advance(whole.A, k0 * whole.a_col, panels.size);
        t.B = advance(whole.B, k0 * whole.b_row, panels.size);
        const std::int64_t next = k0 + 2 * kDepth;
        fetch_ahead(advance(whole.A, next * whole.a_col, panels.size), args.m, whole.a_row,
                    whole.a_col, kDepth, panels.size);
        fetch_ahead(advance(whole.B, next * whole.b_row, panels.size), args.n, whole.b_col,
                    whole.b_row, kDepth, panels.size);
        t.C = sums + c * p.sum_bytes;
        t.ldc = args.n;
        t.alpha = {1, 0};
        t.beta = {k0 > first ? 1.0 : 0.0, 0};
        std::int64_t b_panel = 1;
        if (p.pack_b) {
          std::byte* const to = packed + thread * p.pack_bytes;
          panels.pack_b(to, t.B, t.b_row, t.b_col, t.k, t.n);
          t.B = to;
          t.b_row = panels.nr;
          t.b_col = 1;
          b_panel = t.k;
        }
        panels.block_panels(t, b_panel, false);
      }
    }
  });
  visit_geam_type(args.in, [&]<class T>(Type<T>) {
    if constexpr (!std::is_same_v<T, half> && !std::is_same_v<T, bfloat16>) {
      const T alpha = scalar<T>(args.alpha), beta = scalar<T>(args.beta);
      for (std::int64_t b = 0; b < args.batch; ++b) {
        auto* C = static_cast<T*>(args.C.at(b, sizeof(T)));
        const std::byte* const first = sums + b * per_problem * p.sum_bytes;
        for (std::int64_t i = 0; i < args.m; ++i) {
          for (std::int64_t j = 0; j < args.n; ++j) {
            T sum{};
            for (std::int64_t c = 0; c < per_problem; ++c)
              sum += reinterpret_cast<const T*>(first + c * p.sum_bytes)[i * args.n + j];
            T& out = C[i * args.C.ld + j];
            out = beta == T{} ? scaled(alpha, sum) : scaled(alpha, sum) + scaled(beta, out);
          }
        }
      }
    }
  });
}

}  // namespace mblas::cpu
