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
// Elements of C for sums along rows of both operands, and the least k. By AVX2 on a Zen 4
// 24×24×20000 is 1.03 times as fast so as with B packed, 32×32 0.97, 8×8×1024 1.5, 5×5×600 3.
constexpr std::int64_t kMostAlong = 576, kLeastAlong = 256;
// Likewise for a k of few chunks, whose larger products threads share better by C: 24×24×2000 by
// two took 1.3 times as long, of double 16×16×2000 1.5 times.
constexpr std::int64_t kMostShort = 128;
constexpr std::int64_t kAlignment = 64;

struct Plan {
  std::int64_t chunks;
  int threads;
  bool along;   // sums go along rows of A and of the transpose of B
  bool turned;  // sums are those of the transpose of C
  bool pack_b;
  std::int64_t sum_bytes, pack_bytes;  // of a chunk's sums; of a thread
};

/// Do sums go along the rows of both operands, without packing?
bool is_along(const GemmArgs& args) {
  return !is_transposed(args.transA) && is_transposed(args.transB) && !is_complex(args.in) &&
         args.m * args.n <= kMostAlong && args.k >= kLeastAlong;
}

Plan plan(const GemmArgs& args, const GemmPanels& panels, int num_threads) {
  Plan p;
  p.chunks = divide_up(args.k, kChunk) * args.batch;
  const double work = double(args.m + 2) * double(args.n + panels.nr / 4) * double(args.k) /
                      (panels.nr / 2) * double(args.batch);
  p.threads = int(std::min<std::int64_t>(threads_for(work, kGemmGrain, num_threads), p.chunks));
  p.along = is_along(args);
  p.turned = is_transposed(args.transA) && is_transposed(args.transB);
  p.pack_b = is_transposed(args.transB) && !p.along && !p.turned;
  p.sum_bytes = round_up(args.m * args.n * panels.size, kAlignment);
  p.pack_bytes = 0;
  if (p.along)
    p.pack_bytes = args.m * args.n * kSplitVector;
  else if (p.pack_b)
    p.pack_bytes = round_up(kDepth * round_up(args.n, panels.nr) * panels.size, kAlignment);
  return p;
}

/// The product of the transposes, which is the transpose of C.
GemmTile transposed(const GemmTile& t) {
  GemmTile to = t;
  to.A = t.B, to.a_row = t.b_col, to.a_col = t.b_row, to.conj_a = t.conj_b, to.m = t.n;
  to.B = t.A, to.b_row = t.a_col, to.b_col = t.a_row, to.conj_b = t.conj_a, to.n = t.m;
  return to;
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
  const bool may_be_short = is_along(args) && args.m * args.n <= kMostShort && args.batch == 1;
  if (args.k < 2 * kChunk && !may_be_short) return "k is less than 4096";
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
      const GemmTile problem = tile_of(args, c / per_problem);
      const GemmTile whole = p.turned ? transposed(problem) : problem;
      const std::int64_t first = c % per_problem * kChunk;
      const std::int64_t last = std::min(first + kChunk, args.k);
      std::byte* const own = packed + thread * p.pack_bytes;
      if (p.along) {
        for (std::int64_t k0 = first; k0 < last; k0 += kDepth)
          isa().split[int(args.in)]({advance(whole.A, k0, panels.size), whole.a_row,
                                     advance(whole.B, k0, panels.size), whole.b_col, whole.m,
                                     whole.n, std::min(kDepth, last - k0), kDepth, k0 == first,
                                     k0 + kDepth >= last, own, sums + c * p.sum_bytes});
        continue;
      }
      for (std::int64_t k0 = first; k0 < last; k0 += kDepth) {
        GemmTile t = whole;
        t.k = std::min(kDepth, last - k0);
        t.A = advance(whole.A, k0 * whole.a_col, panels.size);
        t.B = advance(whole.B, k0 * whole.b_row, panels.size);
        const std::int64_t next = k0 + 2 * kDepth;
        fetch_ahead(advance(whole.A, next * whole.a_col, panels.size), whole.m, whole.a_row,
                    whole.a_col, kDepth, panels.size);
        fetch_ahead(advance(whole.B, next * whole.b_row, panels.size), whole.n, whole.b_col,
                    whole.b_row, kDepth, panels.size);
        t.C = sums + c * p.sum_bytes;
        t.ldc = whole.n;
        t.alpha = {1, 0};
        t.beta = {k0 > first ? 1.0 : 0.0, 0};
        std::int64_t b_panel = 1;
        if (p.pack_b) {
          panels.pack_b(own, t.B, t.b_row, t.b_col, t.k, t.n, panels.nr);
          t.B = own;
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
      const std::int64_t row = p.turned ? 1 : args.n, col = p.turned ? args.m : 1;
      const T alpha = scalar<T>(args.alpha), beta = scalar<T>(args.beta);
      for (std::int64_t b = 0; b < args.batch; ++b) {
        auto* C = static_cast<T*>(args.C.at(b, sizeof(T)));
        std::byte* const first = sums + b * per_problem * p.sum_bytes;
        T* const sum = reinterpret_cast<T*>(first);
        for (std::int64_t c = 1; c < per_problem; ++c) {
          const T* const next = reinterpret_cast<const T*>(first + c * p.sum_bytes);
          for (std::int64_t e = 0; e < args.m * args.n; ++e) sum[e] += next[e];
        }
        for (std::int64_t i = 0; i < args.m; ++i) {
          for (std::int64_t j = 0; j < args.n; ++j) {
            const T each = sum[i * row + j * col];
            T& out = C[i * args.C.ld + j];
            out = beta == T{} ? scaled(alpha, each) : scaled(alpha, each) + scaled(beta, out);
          }
        }
      }
    }
  });
}

}  // namespace mblas::cpu
