// Products with one row or one column: every element of the matrix is used once, so they are
// limited by reading it (gemv_isa.cpp). The long side of C goes to threads; a long k is cut into
// chunks as well, whose sums are added in the order of k, so that bits do not depend on the number
// of threads.
//
// On a Zen 4 EPYC, whose first-level cache has 32 KiB, a matrix of 64 MiB is read 10 to 15 percent
// faster if it is fetched into the second level, one that this holds 10 percent slower.
#include <algorithm>

#include "cpu/cache.hpp"
#include "cpu/gemm/packed.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"

namespace mblas::cpu {
namespace {

constexpr double kGrain = 96 << 10;     // bytes of the matrix that pay for a thread's start
constexpr std::int64_t kChunk = 16384;  // of k
constexpr std::int64_t kPart = 64;      // elements of C that go to one thread together
constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kSmallFirst = 32 << 10;  // a first-level cache that streams crowd

/// y = M x for one problem, in terms of the call.
struct Shape {
  bool rows;  // results are rows of M as stored: dot products along them
  std::int64_t length;
  std::int64_t ld;
  std::int64_t x_stride, y_stride;
};

Shape shape_of(const GemmArgs& args) {
  if (args.n == 1)
    return {!is_transposed(args.transA), args.m, args.A.ld,
            is_transposed(args.transB) ? 1 : args.B.ld, args.C.ld};
  return {is_transposed(args.transB), args.n, args.B.ld, is_transposed(args.transA) ? args.A.ld : 1,
          1};
}

struct Plan {
  Shape shape;
  std::int64_t parts, chunks;
  std::int64_t x_bytes;    // of a packed x
  std::int64_t sum_bytes;  // of the sums of all chunks
  int threads;
  bool far;
};

Plan plan(const GemmArgs& args, int num_threads) {
  Plan p;
  p.shape = shape_of(args);
  const int size = size_of(args.in);
  // Short results with a long k leave too few parts for the threads; where k is cut may not depend
  // on how many there are.
  p.chunks = divide_up(args.k, kChunk);
  p.parts = divide_up(p.shape.length, kPart);
  p.x_bytes = p.shape.x_stride == 1 ? 0 : round_up(args.k * size, kAlignment);
  p.sum_bytes = round_up(p.chunks * p.shape.length * size, kAlignment);
  p.threads = int(std::min<std::int64_t>(
      threads_for(double(p.shape.length) * double(args.k) * size, kGrain, num_threads),
      p.parts * p.chunks));
  const CacheSizes& cache = cache_sizes();
  p.far = cache.first <= kSmallFirst && p.shape.length * args.k * size > cache.second;
  return p;
}

template <class Real>
void run(const GemmArgs& args, const Plan& p, const GemvKernels& kernels, std::byte* workspace) {
  const Shape& s = p.shape;
  auto* const packed_x = reinterpret_cast<Real*>(workspace);
  auto* const sums = reinterpret_cast<Real*>(workspace + p.x_bytes);
  const Real alpha = Real(args.alpha.re), beta = Real(args.beta.re);
  for (std::int64_t b = 0; b < args.batch; ++b) {
    const auto* M = static_cast<const Real*>((args.n == 1 ? args.A : args.B).at(b, sizeof(Real)));
    const auto* x = static_cast<const Real*>((args.n == 1 ? args.B : args.A).at(b, sizeof(Real)));
    auto* y = static_cast<Real*>(args.C.at(b, sizeof(Real)));
    if (s.x_stride != 1) {
      for (std::int64_t i = 0; i < args.k; ++i) packed_x[i] = x[i * s.x_stride];
      x = packed_x;
    }
    parallel(p.threads, [&](int thread, int granted) {
      const Range tasks = share_of(p.parts * p.chunks, thread, granted);
      for (std::int64_t t = tasks.begin; t < tasks.end;) {
        // Consecutive parts of one chunk are one piece of work.
        const std::int64_t chunk = t / p.parts, part = t % p.parts;
        const std::int64_t count = std::min(tasks.end - t, p.parts - part);
        const std::int64_t first = part * kPart;
        const std::int64_t length = std::min(count * kPart, s.length - first);
        const std::int64_t k0 = chunk * kChunk, depth = std::min(kChunk, args.k - k0);
        GemvPart g{};
        g.ld = s.ld;
        g.far = p.far;
        g.x = x + k0;
        g.y = sums + chunk * s.length + first;
        if (s.rows) {
          g.M = M + first * s.ld + k0;
          g.rows = length;
          g.cols = depth;
          kernels.dot(g);
        } else {
          g.M = M + k0 * s.ld + first;
          g.rows = depth;
          g.cols = length;
          kernels.add(g);
        }
        t += count;
      }
    });
    for (std::int64_t i = 0; i < s.length; ++i) {
      Real sum = 0;
      for (std::int64_t c = 0; c < p.chunks; ++c) sum += sums[c * s.length + i];
      Real& out = y[i * s.y_stride];
      out = beta == 0 ? alpha * sum : alpha * sum + beta * out;
    }
  }
}

}  // namespace

const char* gemm_gemv_declines(const GemmArgs& args, const DeviceInfo&) {
  if (const char* reason = unless_panels(args)) return reason;
  if (is_complex(args.in)) return "float and double only";
  if (args.m != 1 && args.n != 1) return "neither one row nor one column";
  return args.k == 0 ? "k is 0" : nullptr;
}

std::size_t gemm_gemv_workspace(const GemmArgs& args, const DeviceInfo& device) {
  const Plan p = plan(args, device.num_threads);
  return std::size_t(p.x_bytes + p.sum_bytes);
}

void gemm_gemv(const GemmArgs& args, Queue& queue) {
  const Plan p = plan(args, queue.device().num_threads);
  std::byte* const workspace = queue.workspace.data();
  if (args.in == DType::f32)
    run<float>(args, p, isa().gemv[0], workspace);
  else
    run<double>(args, p, isa().gemv[1], workspace);
}

}  // namespace mblas::cpu
