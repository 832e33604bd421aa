// Products with few rows or few columns: every element of the large matrix is used once for each of
// them, so they are limited by reading it (thin_isa.cpp). The long side of C goes to threads; a
// long k is cut into chunks as well, whose sums are added in the order of k, so that bits do not
// depend on the number of threads. Problems of a batch go to threads whole where there are enough.
//
// Packing the matrix costs more than its use: with 8 rows of 4096×4096 float is 2 to 3 times as
// fast as `packed` on a Zen 4 EPYC, bfloat16 and int8 1.5 times as `dot`, half 8 times as
// `blocked`. Bytes have kernels of their own where the CPU adds up four products at once
// (thin_vnni.cpp).
//
// On that EPYC, whose first-level cache has 32 KiB, a matrix of 64 MiB is read 10 to 15 percent
// faster if it is fetched into the second level, and one of up to 1 MiB in half to nine tenths of
// the time; where the second level holds it already, one row takes up to 1.3 times as long. By
// AVX2 one vector times a matrix that the caches hold has it fetched into the first level.
#include <algorithm>
#include <mutex>
#include <span>

#include "core/finish.hpp"
#include "cpu/cache.hpp"
#include "cpu/declines.hpp"
#include "cpu/gemm/dot_limits.hpp"
#include "cpu/isa.hpp"
#include "cpu/kept.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"
#include "cpu/visit.hpp"

namespace mblas::cpu {
namespace {

constexpr double kGrain = 96 << 10;            // bytes of the matrix that pay for a thread's start
constexpr std::int64_t kChunk = 16384;         // of k
constexpr std::int64_t kPart = kThinPart;      // of the long side, that go to one thread together
constexpr std::int64_t kSumBytes = 128 << 10;  // of sums that stay in the second-level cache
constexpr std::int64_t kAlignment = 64;
// Most vectors: beyond, packing pays, the sooner the more instructions multiply that want packed
// operands (`amx`, `dot`), and where a conversion takes as long as them.
constexpr std::int64_t kMostPlain = 24, kMostConverted = 48;
// Along the rows where nothing is fetched to the second level: 16 columns of 4096×4096 took 1.3
// times as long as `packed` on an Emerald Rapids Xeon, 12 of float 0.85 times.
constexpr std::int64_t kMostFloatAlong = 12, kMostDoubleAlong = 10;
// Likewise, in bytes of a row of C, where the matrix streams by on Zen: there `packed` has 14 of
// its rows fetched at a time (a Zen 5, `packed` over `thin`: 4096×8×4096 of float 1.5 and of double
// 0.92, 2000×8×2000 of double 0.73, 4096×12×4096 of float 0.81, 4096×10×4096 of double 0.67; an
// Emerald Rapids Xeon, 8 columns 1.25 and more, 10 and 12 0.9 to 1.1).
constexpr std::int64_t kMostStreamed = 32;
constexpr std::int64_t kMostBeforeKept = 3;  // `amx` and `dot` may keep the matrix packed
constexpr std::int64_t kMostBf16 = 20, kMostInt8 = 16;
// Where there are tiles: along the rows (thin_amx.cpp), and across them.
constexpr std::int64_t kMostAlongTiles = 16, kMostBf16Tiles = 10, kMostInt8Tiles = 8;
// Of a product with several vectors, else the way to the sums and from them outweighs it; elements
// of the matrix from which on it pays for more than kFew vectors.
constexpr std::int64_t kLeastDepth = 64, kLeastLength = 64, kFew = 8, kLeastMatrix = 1 << 18;
constexpr std::int64_t kLeastAcross = 1 << 20;  // likewise, of bytes whose rows are added up
constexpr std::int64_t kLeastAlong = 16;  // k for each vector where sums go along rows, or more
constexpr std::int64_t kSmallFirst = 32 << 10;  // a first-level cache that streams crowd
// Vectors, and bytes of the matrix, from which on rows that are added up are fetched to the second
// level by a Zen with a larger one (a Zen 5, 4096×4096 NT: float 8 rows 0.93 of the time, 16 0.88,
// double 8 0.92, 4 1.1; a Xeon up to 1.2).
constexpr int kLeastFarAcross = 7;
constexpr double kFarAcross = 24 << 20;

const ThinKernels* native_kernel(DType in) {
  for (const ThinKernels& kernel : isa().thin)
    if (kernel.in == in) return &kernel;
  return nullptr;
}
const ThinKernels& kernel_for(DType in, bool dot, int vectors) {
  for (const std::span<const ThinKernels> kernels : isa().thin_dot)
    for (const ThinKernels& kernel : kernels)
      if (kernel.in == in && (dot || kernel.add) && vectors >= kernel.least &&
          (kernel.group == 0 || vectors <= kernel.group))
        return kernel;
  return *native_kernel(in);
}

bool has(std::span<const DotKernel> kernels, DType in) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const DotKernel& kernel) { return kernel.in == in; });
}
/// Are there instructions that multiply and add up several elements of the type at once?
bool has_dot_products(DType in) {
  return size_of(in) <= 2 && (has(isa().dot, in) || has(isa().amx, in));
}
/// Does everything that multiplies the type convert it first?
bool is_converted(DType in) { return size_of(in) <= 2 && !has_dot_products(in); }

/// Bytes of the matrix.
double matrix_bytes(const GemmArgs& args) {
  return double(std::max(args.m, args.n)) * double(args.k) * size_of(args.in);
}
/// Is that much more than the second-level cache holds? Where the first-level cache is small the
/// matrix is fetched into the second anyway.
bool streams(double bytes) {
  const CacheSizes& cache = cache_sizes();
  return cache.first > kSmallFirst && bytes > 4 * double(cache.second);
}

/// `dot`: sums go along the rows of the matrix. `columns`: of C are the few. `streams`: see there.
std::int64_t most_vectors(DType in, bool dot, bool columns, bool streams) {
  if (is_converted(in)) return kMostConverted;
  const bool tiles = has(isa().amx, in);
  if (in == DType::bf16) return !tiles ? kMostBf16 : dot ? kMostAlongTiles : kMostBf16Tiles;
  if (in == DType::i8) return !tiles ? kMostInt8 : dot ? kMostAlongTiles : kMostInt8Tiles;
  if (!dot) return kMostPlain;
  if (const int most = native_kernel(in)->most_along[columns]) return most;
  if (cache_sizes().first <= kSmallFirst) return kMostPlain;
  if (columns && streams && follows_few_rows()) return kMostStreamed / size_of(in);
  return in == DType::f32 ? kMostFloatAlong : kMostDoubleAlong;
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
  std::int64_t block;         // of the long side, whose sums are kept at a time; all for chunks
  std::int64_t x_bytes;       // of all packed vectors
  std::int64_t native_bytes;  // likewise for the native kernel, where the other one has limits
  std::int64_t flag_bytes;    // of what is beyond these, by chunk and part
  std::int64_t sums_ld;       // of the sums of a block, a row for each vector
  std::int64_t sum_bytes;     // of the sums of a block, for all chunks
  std::int64_t turned_bytes;  // of the same as rows of C, where an epilogue needs them so
  int threads;
  int buffers;             // for sums: of each thread, or one where there are chunks
  bool by_entry;           // threads take whole problems of a batch
  bool far, few, streams;  // as in ThinPart

  std::int64_t head_bytes() const { return x_bytes + native_bytes + flag_bytes; }
  std::int64_t bytes() const { return head_bytes() + buffers * (sum_bytes + turned_bytes); }
};

Plan plan(const GemmArgs& args, int num_threads) {
  Plan p{};
  p.shape = shape_of(args);
  const ThinKernels& kernel = kernel_for(args.in, p.shape.dot, p.shape.vectors);
  const std::int64_t sums = p.shape.vectors * size_of(accumulator_of(args.in));
  // A short long side with a long k leaves too few parts for the threads; where k is cut may not
  // depend on how many there are.
  p.chunks = divide_up(args.k, kChunk);
  p.parts = divide_up(p.shape.length, kPart);
  const double matrix = matrix_bytes(args);
  const int most = threads_for(matrix * double(args.batch), kGrain, num_threads);
  p.by_entry = args.batch > 1 && (args.batch >= 4 * most || matrix < 4 * kGrain);
  p.threads = int(std::min<std::int64_t>(most, p.by_entry ? args.batch : p.parts * p.chunks));
  p.buffers = p.by_entry || p.chunks > 1 ? 1 : p.threads;
  p.block = p.shape.length;
  if (p.chunks == 1) p.block = std::min(p.block, std::max(kSumBytes / sums / kPart * kPart, kPart));
  const auto x_bytes = [&](const ThinKernels& of) {
    return round_up(round_up(args.k, of.step) * (of.group ? of.group : p.shape.vectors) * of.x_size,
                    kAlignment);
  };
  p.x_bytes = x_bytes(kernel);
  if (kernel.limited) {
    p.native_bytes = x_bytes(*native_kernel(args.in));
    p.flag_bytes = round_up(p.chunks * p.parts, kAlignment);
  }
  p.sums_ld = round_up(p.block, kPart);
  p.sum_bytes = round_up(p.chunks * p.sums_ld * sums, kAlignment);
  p.turned_bytes = p.shape.columns && needs_finish(args) ? round_up(p.block * sums, kAlignment) : 0;
  const CacheSizes& cache = cache_sizes();
  const bool vectors_few = p.shape.vectors <= kFewVectors;
  p.few = !p.shape.dot && matrix <= double(kernel.few[!vectors_few]);
  if (cache.first <= kSmallFirst)
    p.far = matrix > double(cache.first) && !(p.few && vectors_few) &&
            (p.shape.vectors > 1 || matrix > double(kernel.near));
  else
    p.far = !p.shape.dot && p.shape.vectors >= kLeastFarAcross && size_of(args.in) >= 4 &&
            matrix > kFarAcross && follows_few_rows();
  p.streams = streams(matrix);
  return p;
}

/// Vectors, packed for a kernel.
struct Vectors {
  const ThinKernels& kernel;
  std::byte* data;
};

/// Problem `entry` of the call.
template <class Sum>
class Product {
 public:
  Product(const GemmArgs& args, const Plan& plan, std::int64_t entry, std::byte* workspace)
      : args_(args),
        plan_(plan),
        shape_(plan.shape),
        entry_(entry),
        fast_{kernel_for(args.in, shape_.dot, shape_.vectors), workspace},
        native_{*native_kernel(args.in), workspace + plan.x_bytes},
        beyond_(reinterpret_cast<bool*>(native_.data + plan.native_bytes)),
        buffers_(workspace + plan.head_bytes()) {}

  void run(int threads) {
    const DotRange range = plan_.few ? DotRange{} : pack(fast_);
    limits_ = limits_with(range, args_.k);
    std::fill_n(beyond_, fast_.kernel.limited ? plan_.chunks * plan_.parts : 0, false);
    const std::int64_t count = shape_.vectors * plan_.sums_ld;  // of sums
    parallel(threads, [&](int thread, int granted) {
      const Range tasks = share_of(plan_.parts * plan_.chunks, thread, granted);
      for (std::int64_t t = tasks.begin; t < tasks.end;) {
        // Consecutive parts of one chunk are one piece of work.
        const std::int64_t chunk = t / plan_.parts, part = t % plan_.parts;
        const std::int64_t parts = std::min(tasks.end - t, plan_.parts - part);
        const std::int64_t end = std::min((part + parts) * kPart, shape_.length);
        if (plan_.chunks > 1) {
          multiply(chunk, part * kPart, end, sums(0) + chunk * count + part * kPart);
        } else {
          for (std::int64_t i = part * kPart; i < end; i += plan_.block) {
            const std::int64_t length = std::min(plan_.block, end - i);
            multiply(0, i, i + length, sums(thread));
            finish(i, length, thread);
          }
        }
        t += parts;
      }
    });
    if (plan_.chunks == 1) return;
    for (std::int64_t c = 1; c < plan_.chunks; ++c)
      for (std::int64_t i = 0; i < count; ++i) sums(0)[i] += sums(0)[c * count + i];
    finish(0, shape_.length, 0);
  }

 private:
  /// Sums, and sums as rows of C, of a buffer.
  Sum* sums(int buffer) const {
    return reinterpret_cast<Sum*>(buffers_ + buffer * (plan_.sum_bytes + plan_.turned_bytes));
  }
  Sum* turned(int buffer) const {
    return reinterpret_cast<Sum*>(reinterpret_cast<std::byte*>(sums(buffer)) + plan_.sum_bytes);
  }

  const std::byte* vectors() const {
    return static_cast<const std::byte*>(
        (shape_.columns ? args_.B : args_.A).at(entry_, size_of(args_.in)));
  }
  DotRange pack(const Vectors& x) const {
    return x.kernel.pack(
        {vectors(), shape_.vector, shape_.depth, args_.k, shape_.vectors, shape_.dot, x.data});
  }

  /// Sums of [begin, end) of the long side, the former a multiple of kPart, over a chunk of k.
  void multiply(std::int64_t chunk, std::int64_t begin, std::int64_t end, Sum* y) {
    bool* const beyond = beyond_ + chunk * plan_.parts + begin / kPart;
    multiply(fast_, chunk, begin, end, y, beyond);
    if (!fast_.kernel.limited) return;
    for (std::int64_t i = begin; i < end; i += kPart) {
      if (!beyond[(i - begin) / kPart]) continue;
      std::call_once(native_packed_, [&] { pack(native_); });
      multiply(native_, chunk, i, std::min(i + kPart, end), y + (i - begin), nullptr);
    }
  }
  void multiply(const Vectors& x, std::int64_t chunk, std::int64_t begin, std::int64_t end, Sum* y,
                bool* beyond) const {
    const int size = size_of(args_.in);
    const auto* const M =
        static_cast<const std::byte*>((shape_.columns ? args_.A : args_.B).at(entry_, size));
    const std::int64_t k0 = chunk * kChunk, depth = std::min(kChunk, args_.k - k0);
    ThinPart g{};
    g.ld = shape_.ld;
    g.vectors = shape_.vectors;
    g.far = plan_.far;
    g.few = plan_.few;
    g.streams = plan_.streams;
    g.limits = limits_;
    g.beyond = beyond;
    const int together = x.kernel.group ? x.kernel.group : shape_.dot ? 1 : shape_.vectors;
    if (plan_.few) {
      g.x = vectors() + k0 * shape_.depth * size;
      g.x_ld = shape_.vector;
      g.x_depth = shape_.depth;
    } else {
      g.x = x.data + k0 * together * x.kernel.x_size;
      g.x_ld = shape_.dot ? round_up(args_.k, x.kernel.step) : 1;
      g.x_depth = together;
    }
    g.y = y;
    g.y_ld = plan_.sums_ld;
    if (shape_.dot) {
      g.M = M + (begin * shape_.ld + k0) * size;
      g.rows = end - begin;
      g.cols = depth;
      x.kernel.dot(g);
    } else {
      g.M = M + (k0 * shape_.ld + begin) * size;
      g.rows = depth;
      g.cols = end - begin;
      x.kernel.add(g);
    }
  }

  /// C from the sums of a buffer, which are of `length` of the long side from `first` on.
  void finish(std::int64_t first, std::int64_t length, int buffer) const {
    const std::int64_t i = shape_.columns ? first : 0, j = shape_.columns ? 0 : first;
    const std::int64_t m = shape_.columns ? length : args_.m, n = shape_.columns ? args_.n : length;
    const Sum* const from = sums(buffer);
    const std::int64_t ld = plan_.sums_ld;
    if (needs_finish(args_) && shape_.columns) {
      Sum* const to = turned(buffer);
      for (std::int64_t p = 0; p < length; ++p)
        for (int r = 0; r < shape_.vectors; ++r) to[p * shape_.vectors + r] = from[r * ld + p];
      return gemm_finish_sums(args_, to, shape_.vectors, entry_, i, j, m, n);
    }
    if (!shape_.columns && (needs_finish(args_) || args_.in != DType::i8))
      return gemm_finish_sums(args_, from, ld, entry_, i, j, m, n);
    visit_gemm_types(args_.in, args_.out, [&]<class In, class Out>(Type<In>, Type<Out>) {
      if constexpr (std::is_same_v<wide_t<In>, Sum>) {
        auto* const C = static_cast<Out*>(args_.C.at(entry_, sizeof(Out))) + i * args_.C.ld + j;
        scale(from, shape_.columns ? 1 : ld, shape_.columns ? ld : 1, C, m, n);
      }
    });
  }

  /// C = alpha sums + beta C, sum (i, j) of m×n being sums[i * row + j * col].
  template <class Out>
  void scale(const Sum* sums, std::int64_t row, std::int64_t col, Out* C, std::int64_t m,
             std::int64_t n) const {
    const auto alpha = scalar<Sum>(args_.alpha), beta = scalar<Sum>(args_.beta);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        Out& out = C[i * args_.C.ld + j];
        const Sum sum = alpha * sums[i * row + j * col];
        out = Out(beta == 0 ? sum : sum + beta * widen(out));
      }
    }
  }

  const GemmArgs& args_;
  const Plan& plan_;
  const Shape& shape_;
  const std::int64_t entry_;
  const Vectors fast_, native_;
  DotLimits limits_;    // of elements of the matrix, that fast_ may be used
  bool* const beyond_;  // by chunk and part: it may not
  std::once_flag native_packed_;
  std::byte* const buffers_;
};

}  // namespace

const char* gemm_thin_declines(const GemmArgs& args, const DeviceInfo& device) {
  if (const char* reason = unless_native(args, device)) return reason;
  if (!native_kernel(args.in)) return "real types only";
  const std::int64_t few = std::min(args.m, args.n), length = std::max(args.m, args.n);
  const Shape shape = shape_of(args);
  const bool converts = is_converted(args.in), dot = shape.dot;
  if (few > most_vectors(args.in, dot, shape.columns, streams(matrix_bytes(args))))
    return "too many rows and columns";
  if (args.k == 0) return "k is 0";
  // Of half, planes are kept, which have twice the bytes.
  if (few > kMostBeforeKept && args.in != DType::f16 && has_dot_products(args.in) &&
      is_kept(args, args.n > args.m))
    return "a plan keeps the matrix packed";
  if (few > 1 && (args.k < kLeastDepth || length < kLeastLength)) return "too small";
  if (few > 1 && !converts && dot && args.k < std::max(kLeastDepth + 1, kLeastAlong * few))
    return "short rows, whose sums take longer to add up";
  if (few > kFew && !converts &&
      args.k * length < (args.in == DType::i8 && !dot ? kLeastAcross : kLeastMatrix))
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
        return Product<float>(args, p, b, memory).run(threads);
      case DType::f64:
        return Product<double>(args, p, b, memory).run(threads);
      default:
        return Product<std::uint32_t>(args, p, b, memory).run(threads);
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
