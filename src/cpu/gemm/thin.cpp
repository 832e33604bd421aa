// Products with few rows or few columns: every element of the large matrix is used once for each of
// them, so they are limited by reading it (thin_isa.cpp). The long side of C goes to threads; a
// long k is cut into chunks as well, whose sums are added in the order of k, so that bits do not
// depend on the number of threads. Problems of a batch go to threads whole where there are enough.
//
// On a Zen 4 EPYC, whose first-level cache has 32 KiB, a matrix of 64 MiB is read 10 to 15 percent
// faster if it is fetched into the second level, one that this holds 10 percent slower.
#include <algorithm>
#include <span>

#include "core/finish.hpp"
#include "cpu/cache.hpp"
#include "cpu/declines.hpp"
#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"
#include "cpu/visit.hpp"

namespace mblas::cpu {
namespace {

constexpr double kGrain = 96 << 10;     // bytes of the matrix that pay for a thread's start
constexpr std::int64_t kChunk = 16384;  // of k
constexpr std::int64_t kPart = 64;      // elements of the long side that go to one thread together
constexpr std::int64_t kAlignment = 64;
// Vectors from which on packing pays: where there are instructions for the type that need packed
// operands or, of int8, are several times as fast, and where a conversion takes as long as them.
constexpr std::int64_t kMostPlain = 24, kMostInt8 = 8, kMostConverted = 48;
// Of a product with several vectors, else the way to the sums and from them outweighs it; elements
// of the matrix from which on it pays for more than kFew vectors.
constexpr std::int64_t kLeastDepth = 64, kLeastLength = 64, kFew = 8, kLeastMatrix = 1 << 18;
constexpr std::int64_t kSmallFirst = 32 << 10;  // a first-level cache that streams crowd

const ThinKernels* kernel_for(DType in) {
  for (const ThinKernels& kernel : isa().thin)
    if (kernel.in == in) return &kernel;
  return nullptr;
}

/// Are there instructions that multiply and add up several elements of the type at once?
bool has_dot_products(DType in) {
  const auto has = [&](std::span<const DotKernel> kernels) {
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](const DotKernel& kernel) { return kernel.in == in; });
  };
  return has(isa().dot) || has(isa().amx);
}

/// A product as a matrix M times a few vectors, in terms of the call. Strides in elements.
struct Shape {
  bool columns;  // of C are the few; else its rows
  bool dot;      // sums go along the rows of M as stored
  int vectors;
  std::int64_t length;  // of the long side of C
  std::int64_t ld;
  std::int64_t vector, depth;  // between vectors; between the elements of one
};

Shape shape_of(const GemmArgs& args) {
  const Strides a = strides_of(args.transA, args.A.ld), b = strides_of(args.transB, args.B.ld);
  if (args.n <= args.m)
    return {true, !is_transposed(args.transA), int(args.n), args.m, args.A.ld, b.col, b.row};
  return {false, is_transposed(args.transB), int(args.m), args.n, args.B.ld, a.row, a.col};
}

struct Plan {
  Shape shape;
  std::int64_t parts, chunks;
  std::int64_t x_length;            // of a packed vector
  std::int64_t x_bytes, sum_bytes;  // of all packed vectors; of the sums of all chunks
  std::int64_t turned_bytes;        // of the sums as columns of C, where an epilogue needs them
  int threads;
  bool by_entry;  // threads take whole problems of a batch
  bool far;

  std::int64_t bytes() const { return x_bytes + sum_bytes + turned_bytes; }
};

Plan plan(const GemmArgs& args, int num_threads) {
  const ThinKernels& kernel = *kernel_for(args.in);
  Plan p;
  p.shape = shape_of(args);
  const std::int64_t sums = p.shape.length * p.shape.vectors;
  const std::int64_t sum_size = size_of(accumulator_of(args.in));
  // A short long side with a long k leaves too few parts for the threads; where k is cut may not
  // depend on how many there are.
  p.chunks = divide_up(args.k, kChunk);
  p.parts = divide_up(p.shape.length, kPart);
  p.x_length = round_up(args.k, kernel.step);
  p.x_bytes = round_up(p.x_length * p.shape.vectors * kernel.x_size, kAlignment);
  p.sum_bytes = round_up(p.chunks * sums * sum_size, kAlignment);
  p.turned_bytes =
      p.shape.columns && needs_finish(args) ? round_up(sums * sum_size, kAlignment) : 0;
  const double matrix = double(p.shape.length) * double(args.k) * size_of(args.in);
  const int most = threads_for(matrix * double(args.batch), kGrain, num_threads);
  p.by_entry = args.batch > 1 && (args.batch >= 4 * most || matrix < 4 * kGrain);
  p.threads = int(std::min<std::int64_t>(most, p.by_entry ? args.batch : p.parts * p.chunks));
  const CacheSizes& cache = cache_sizes();
  p.far = cache.first <= kSmallFirst && matrix > double(cache.second);
  return p;
}

/// C = alpha sums + beta C, sum (i, j) of m×n being sums[i * row + j * col].
template <class Sum, class Out>
void scale(const GemmArgs& args, const Sum* sums, std::int64_t row, std::int64_t col, Out* C) {
  const auto alpha = scalar<Sum>(args.alpha), beta = scalar<Sum>(args.beta);
  for (std::int64_t i = 0; i < args.m; ++i) {
    for (std::int64_t j = 0; j < args.n; ++j) {
      Out& out = C[i * args.C.ld + j];
      const Sum sum = alpha * sums[i * row + j * col];
      out = Out(beta == 0 ? sum : sum + beta * widen(out));
    }
  }
}

/// Problem `entry` of the call on `threads` threads.
template <class Sum>
void run(const GemmArgs& args, const Plan& p, std::int64_t entry, int threads,
         std::byte* workspace) {
  const ThinKernels& kernel = *kernel_for(args.in);
  const Shape& s = p.shape;
  const int size = size_of(args.in);
  std::byte* const x = workspace;
  auto* const sums = reinterpret_cast<Sum*>(x + p.x_bytes);
  auto* const turned = reinterpret_cast<Sum*>(x + p.x_bytes + p.sum_bytes);
  const std::int64_t count = s.vectors * s.length;
  const auto* const M =
      static_cast<const std::byte*>((s.columns ? args.A : args.B).at(entry, size));
  kernel.pack({(s.columns ? args.B : args.A).at(entry, size), s.vector, s.depth, args.k, s.vectors,
               s.dot, x});
  parallel(threads, [&](int thread, int granted) {
    const Range tasks = share_of(p.parts * p.chunks, thread, granted);
    for (std::int64_t t = tasks.begin; t < tasks.end;) {
      // Consecutive parts of one chunk are one piece of work.
      const std::int64_t chunk = t / p.parts, part = t % p.parts;
      const std::int64_t parts = std::min(tasks.end - t, p.parts - part);
      const std::int64_t first = part * kPart;
      const std::int64_t length = std::min(parts * kPart, s.length - first);
      const std::int64_t k0 = chunk * kChunk, depth = std::min(kChunk, args.k - k0);
      ThinPart g{};
      g.ld = s.ld;
      g.vectors = s.vectors;
      g.far = p.far;
      g.x = x + k0 * (s.dot ? 1 : s.vectors) * kernel.x_size;
      g.x_ld = p.x_length;
      g.y = sums + chunk * count + first;
      g.y_ld = s.length;
      if (s.dot) {
        g.M = M + (first * s.ld + k0) * size;
        g.rows = length;
        g.cols = depth;
        kernel.dot(g);
      } else {
        g.M = M + (k0 * s.ld + first) * size;
        g.rows = depth;
        g.cols = length;
        kernel.add(g);
      }
      t += parts;
    }
  });
  for (std::int64_t c = 1; c < p.chunks; ++c)
    for (std::int64_t i = 0; i < count; ++i) sums[i] += sums[c * count + i];

  const bool finishes = needs_finish(args);
  if (finishes && s.columns) {
    for (std::int64_t i = 0; i < s.length; ++i)
      for (int r = 0; r < s.vectors; ++r) turned[i * s.vectors + r] = sums[r * s.length + i];
    return gemm_finish_sums(args, entry, turned, s.vectors);
  }
  if (!s.columns && (finishes || args.in != DType::i8))
    return gemm_finish_sums(args, entry, sums, s.length);
  visit_gemm_types(args.in, args.out, [&]<class In, class Out>(Type<In>, Type<Out>) {
    if constexpr (std::is_same_v<wide_t<In>, Sum>)
      scale(args, sums, s.columns ? 1 : s.length, s.columns ? s.length : 1,
            static_cast<Out*>(args.C.at(entry, sizeof(Out))));
  });
}

}  // namespace

const char* gemm_thin_declines(const GemmArgs& args, const DeviceInfo& device) {
  if (const char* reason = unless_native(args, device)) return reason;
  if (!kernel_for(args.in)) return "real types only";
  const std::int64_t few = std::min(args.m, args.n), length = std::max(args.m, args.n);
  const bool converts = size_of(args.in) <= 2 && !has_dot_products(args.in);
  const std::int64_t most = converts               ? kMostConverted
                            : args.in == DType::i8 ? kMostInt8
                                                   : kMostPlain;
  if (few > most) return "too many rows and columns";
  if (args.k == 0) return "k is 0";
  if (few > 1 && (args.k < kLeastDepth || length < kLeastLength)) return "too small";
  if (few > kFew && !converts && args.k * length < kLeastMatrix)
    return "a small matrix, which is packed soon";
  return nullptr;
}

std::size_t gemm_thin_workspace(const GemmArgs& args, const DeviceInfo& device) {
  const Plan p = plan(args, device.num_threads);
  return std::size_t((p.by_entry ? p.threads : 1) * p.bytes());
}

void gemm_thin(const GemmArgs& args, Queue& queue) {
  const Plan p = plan(args, queue.device().num_threads);
  std::byte* const workspace = queue.workspace.data();
  const auto entry = [&](std::int64_t b, int threads, std::byte* memory) {
    switch (accumulator_of(args.in)) {
      case DType::f32:
        return run<float>(args, p, b, threads, memory);
      case DType::f64:
        return run<double>(args, p, b, threads, memory);
      default:
        return run<std::uint32_t>(args, p, b, threads, memory);
    }
  };
  if (!p.by_entry) {
    for (std::int64_t b = 0; b < args.batch; ++b) entry(b, p.threads, workspace);
    return;
  }
  parallel(p.threads, [&](int thread, int granted) {
    const Range entries = share_of(args.batch, thread, granted);
    for (std::int64_t b = entries.begin; b < entries.end; ++b)
      entry(b, 1, workspace + thread * p.bytes());
  });
}

}  // namespace mblas::cpu
