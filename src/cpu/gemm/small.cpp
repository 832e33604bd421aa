// The product of matrices that the first-level cache holds, or the second if there is little to do:
// nothing is packed but a transposed B, and that on the stack. What limits it is the way to the
// kernel, which a single product of a few vectors therefore takes straight from its arguments; a
// batch is shared out to the threads.
#include <algorithm>
#include <limits>
#include <utility>

#include "cpu/gemm/packed.hpp"
#include "cpu/kernels.hpp"
#include "cpu/parallel.hpp"
#include "cpu/tiles.hpp"

namespace mblas::cpu {
namespace {

constexpr std::int64_t kShort = 128;  // sizes of what the first-level cache may hold

/// Are its vectors of 64 bytes?
bool has_wide_vectors(const GemmPanels& panels) { return panels.nr / 2 * panels.size >= 64; }

// Bytes of a matrix times a vector that its own kernel does not do faster: where sums go along the
// matrix's rows. One row times a matrix is done faster here as long as the caches hold it (float on
// a Zen 4: 1×128×128 1.9 times as fast, 1×350×350 1.2 to 1.4, 1×30×2000 4). Along rows the way to
// `thin` takes 0.3 µs (a Zen 5: 5×1×391 of float 0.38 to 0.08 µs; 120 products with up to 4096
// multiply-adds 1.7 times as fast, with up to 16384 1.6, up to 65536 1.2, beyond even).
constexpr std::int64_t kSmallVectorBytes = 192 << 10;
// But a row times a turned B: of many short rows of double `thin` adds several up at a time
// (1×774×20 0.44), and with vectors of 32 bytes from so many multiply-adds on (1×6×2101 0.48).
constexpr std::int64_t kShortRows = 20, kManyRows = 128, kMostByNarrow = 4096;
bool is_slow_vector(const GemmArgs& args) {
  const bool row = args.m == 1 && is_transposed(args.transB);
  if (args.n != 1 && !row) return false;
  const std::int64_t work = args.m * args.n * args.k;
  if (is_complex(args.in))  // of which no sums go along rows here
    return work > kMostByNarrow || std::max({args.m, args.n, args.k}) > kShort;
  return work * size_of(args.in) > kSmallVectorBytes ||
         (row && work > kMostByNarrow && !has_wide_vectors(panels_of(args))) ||
         (row && args.in == DType::f64 && args.k <= kShortRows && args.n > kManyRows);
}

/// Is C a column, its elements neighbours, of a matrix that memory runs across k of? Then its
/// transpose is a row times a matrix. (A Zen 5, float: 227×1×16 0.62 to 0.13 µs.)
bool is_row_turned(const GemmArgs& args) {
  return args.n == 1 && args.m > 1 && args.C.ld == 1 && is_transposed(args.transA) &&
         !is_complex(args.in) && args.epilogue.is_none();
}
GemmArgs turned(const GemmArgs& args) {
  GemmArgs row = args;
  std::swap(row.m, row.n);
  std::swap(row.A, row.B);
  row.transA = is_transposed(args.transB) ? Op::NoTrans : Op::Trans;
  row.transB = Op::NoTrans;
  row.C.ld = args.m;
  return row;
}

// Those of a product up to which packing does not pay, if one thread does it in either way.
constexpr std::int64_t kSmallAlone = 120 * 120 * 120;

// Of products with a size over that. Taller ones need C fetched ahead of its use.
constexpr std::int64_t kLongestRows = 1024, kLongest = 4096, kLongBytes = 512 << 10;
constexpr std::int64_t kFewColumns = 8, kLeastThin = 64;  // `thin` is faster from these on

SmallWay way_of(const GemmArgs& args) {
  if (is_complex(args.in)) return SmallWay::Rows;
  const GemmPanels& panels = panels_of(args);
  return small_way(is_transposed(args.transA), is_transposed(args.transB), args.m, args.n, args.k,
                   panels.nr / 2, panels.size);
}
/// Against a product of no more than kSmallWork with a size over kShort, of so many multiply-adds
/// of vectors. Others are up to 1.6 times as fast on a Zen 4, twice on a Xeon, as by `packed`,
/// `split` or, few rows, `thin`: the way to those takes 0.4 µs.
const char* reason_against_long(const GemmArgs& args, SmallWay way, double fmas) {
  // `packed` may give other bits, so the choice must not depend on the number of threads.
  if (threads_for(fmas, kGemmGrain, std::numeric_limits<int>::max()) > 1)
    return "a size over 128 and work for threads";
  if (args.m > kLongestRows) return "over 1024 rows";
  const auto span = [&](const auto& x, std::int64_t rows, std::int64_t cols, Op op) {
    return is_transposed(op) ? cols * x.ld : rows * x.ld;
  };
  const std::int64_t elements = span(args.A, args.m, args.k, args.transA) +
                                span(args.B, args.k, args.n, args.transB) +
                                span(args.C, args.m, args.n, Op::NoTrans);
  if (elements > kLongBytes / size_of(args.in)) return "operands of more than 512 KiB";
  if (way == SmallWay::Rows && args.n <= kFewColumns && std::min(args.m, args.k) >= kLeastThin)
    return "few columns";
  return nullptr;
}

/// Vector multiply-adds of a product from which on a second thread pays, on CPUs whose cores meet
/// soon: to start and to end together takes two threads of a Zen 4 1.3 µs, which is as long as half
/// of 44 cubed by AVX2 (float 48³ 1.05 times as fast, 52³ 1.2, 64³ 1.4, 96³ 1.05 to 1.4). On an
/// Emerald Rapids Xeon it takes oneDNN 3 µs, and one thread computes what the caches hold. Of
/// vectors of 64 bytes there must be twice as many (a Zen 5, one thread over two: float 128×128×16
/// 1.6 times as fast, 16×128×128 and 64³ TT 1.18, double 56³ 1.08; two over one: float 80³ 1.13,
/// double 64³ 1.10).
constexpr double kSecondGrain = 14336, kSecondGrainWide = 2 * kSecondGrain;
constexpr std::int64_t kLeastDepth = 16;  // k, or C takes the time

double fmas_of(const GemmArgs& args, int nr) {
  return double(args.m * args.n * args.k) / (nr / 2) * (is_complex(args.in) ? 2 : 1);
}

bool pairs_pay() { return meets_soon() && keeps_threads(); }

/// Threads for one product. Longer ones have fewer multiply-adds for what they read and write.
int threads_for_one(const GemmArgs& args, int most) {
  if (std::max({args.m, args.n, args.k}) > kShort || args.k < kLeastDepth || !pairs_pay()) return 1;
  const GemmPanels& panels = panels_of(args);
  const double grain = has_wide_vectors(panels) ? kSecondGrainWide : kSecondGrain;
  return fmas_of(args, panels.nr) >= grain ? std::min(most, 2) : 1;
}

/// Do rows of B fall into a few sets of the first-level cache, from which a strip of two vectors of
/// them is gone before the next one comes? `thin` reads twice as many columns of a few at a time.
/// (A Zen 5, `thin` over `small`: float 4x1024x64 1.4, 4x512x128 1.25, 6x512x64 1.0; double
/// 4x512x64 1.45, 6x512x64 1.3; three rows of either 0.9, by AVX2 0.95.)
bool rows_collide(const GemmArgs& args, const GemmPanels& panels) {
  constexpr std::int64_t kLeast = 4, kMost = 8, kMostOfTwoSets = 5;
  if (args.m < kLeast || args.k < kLeastThin || is_complex(args.in) || is_transposed(args.transB) ||
      !has_wide_vectors(panels))
    return false;
  const std::int64_t row = args.B.ld * panels.size;
  return (row % 4096 == 0 && args.m <= kMost) || (row % 2048 == 0 && args.m <= kMostOfTwoSets);
}

/// Product `b` as GemmPanels::small takes it.
GemmTile small_tile(const GemmArgs& args, SmallWay way, std::int64_t b) {
  GemmTile t = tile_of(args, b);
  t.way = way;
  return t;
}

/// Of a product for panels.
const char* reason_against(const GemmArgs& args, SmallWay way, int num_threads) {
  // No product of such sizes overflows.
  const std::int64_t longest = std::max({args.m, args.n, args.k});
  if (longest > kLongest) return "a size over 4096";
  const bool is_long = longest > kShort;
  const std::int64_t work = args.m * args.n * args.k;
  if (is_slow_vector(args)) return "a matrix times a vector";
  const int nr = panels_of(args).nr;
  if (is_long || work > kSmallWork) {
    const double fmas = fmas_of(args, nr);
    if (work > kSmallWork && (is_long || work > kSmallAlone ||
                              threads_for(fmas, kGemmGrain, num_threads) > (pairs_pay() ? 2 : 1)))
      return "more multiply-adds than those of 72 cubed, of 120 cubed for one thread or two";
    if (is_long)
      if (const char* reason = reason_against_long(args, way, fmas)) return reason;
  }
  if (rows_collide(args, panels_of(args))) return "rows of B that collide in the first-level cache";
  if (is_transposed(args.transB) && way == SmallWay::Rows &&
      args.k * round_up(args.n, nr) * size_of(args.in) > kSmallBytes)
    return "a transposed B of more than 32 KiB";
  return nullptr;
}

[[gnu::noinline]] bool multiply_unless_declined(const GemmArgs& args) {
  if (unless_panels(args) || threads_for_one(args, 2) > 1) return false;
  const SmallWay way = way_of(args);
  if (reason_against(args, way, std::numeric_limits<int>::max())) return false;
  panels_of(args).small(small_tile(args, way, 0), 1, 0, 0, 0);
  return true;
}

/// Computes the rows [i, i + m) by the columns [j, j + n) of product `b`.
void multiply(const GemmArgs& args, SmallWay way, std::int64_t b, std::int64_t i, std::int64_t m,
              std::int64_t j, std::int64_t n) {
  if (m == 0 || n == 0) return;
  const GemmPanels& panels = panels_of(args);
  GemmTile t = small_tile(args, way, b);
  t.A = advance(t.A, i * t.a_row, panels.size);
  t.B = advance(t.B, j * t.b_col, panels.size);
  t.C = advance(t.C, i * t.ldc + j, panels.size);
  t.m = m;
  t.n = n;
  panels.small(t, 1, 0, 0, 0);
  if (!args.epilogue.is_none()) gemm_finish_block(args, b, i, j, m, n);
}

/// Do threads take columns of a product, in whole panels? Else rows.
bool shares_columns(const GemmArgs& args, const GemmPanels& panels, int threads) {
  // Multiply-adds that reading an element takes, as in packed.cpp, or packing it; and the end of a
  // row of C where another thread's begins, which is fetched along with it.
  constexpr double kRead = 12, kPack = 16, kEnd = 300;
  const double each_col = kRead + (is_transposed(args.transB) ? kPack : 0);
  const auto cost = [&](std::int64_t rows, std::int64_t cols) {  // of a step of k
    return double(rows) * double(round_up(cols, panels.nr / 2)) + kRead * double(rows) +
           each_col * double(cols);
  };
  const std::int64_t cols = round_up(divide_up(args.n, threads), panels.nr);
  return cost(args.m, std::min(cols, args.n)) + kEnd * double(args.m) / double(args.k) <
         cost(divide_up(args.m, threads), args.n);
}

}  // namespace

const char* gemm_small_declines(const GemmArgs& args, const DeviceInfo& device) {
  if (is_row_turned(args)) return gemm_small_declines(turned(args), device);
  if (const char* reason = unless_panels(args)) return reason;
  return reason_against(args, way_of(args), device.num_threads);
}

bool gemm_small_immediate(const GemmArgs& args) {
  if (is_row_turned(args)) return gemm_small_immediate(turned(args));
  if (args.in <= DType::f64 && args.out == args.in && panels_of(args).one(args)) return true;
  return multiply_unless_declined(args);
}

void gemm_small(const GemmArgs& args, Queue& queue) {
  if (is_row_turned(args)) return gemm_small(turned(args), queue);
  const GemmPanels& panels = panels_of(args);
  const int most = queue.device().num_threads;
  const SmallWay way = way_of(args);
  if (args.batch == 1) {
    parallel(threads_for_one(args, most), [&](int thread, int granted) {
      const bool by_columns = granted > 1 && shares_columns(args, panels, granted);
      const Range all_rows{0, args.m}, all_cols{0, args.n};
      const Range rows = by_columns ? all_rows : share_of(args.m, thread, granted);
      const Range cols = by_columns ? share_of(args.n, thread, granted, panels.nr) : all_cols;
      multiply(args, way, 0, rows.begin, rows.end - rows.begin, cols.begin, cols.end - cols.begin);
    });
    return;
  }
  // Tiny products are no multiply-adds but the way in and out of the microkernel.
  const double work = double(args.m) * double(args.n) * double(args.k + 8) / (panels.nr / 2);
  const int threads = threads_for(work * double(args.batch), kGemmGrain, most);
  const bool strided =
      args.epilogue.is_none() && !args.A.pointers && !args.B.pointers && !args.C.pointers;
  parallel(threads, [&](int thread, int granted) {
    const Range problems = share_of(args.batch, thread, granted);
    if (strided)
      return panels.small(small_tile(args, way, problems.begin), problems.end - problems.begin,
                          args.A.stride, args.B.stride, args.C.stride);
    for (std::int64_t b = problems.begin; b < problems.end; ++b)
      multiply(args, way, b, 0, args.m, 0, args.n);
  });
}

}  // namespace mblas::cpu
