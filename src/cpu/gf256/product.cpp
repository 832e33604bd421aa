#include "cpu/gf256/product.hpp"

#include <algorithm>

#include "cpu/cache.hpp"
#include "cpu/parallel.hpp"
#include "cpu/tiles.hpp"

namespace mblas::cpu {
namespace {

constexpr std::int64_t kLine = 64;

/// Columns and rows of a thread's part below which expanding A, and copying B, would cost as much
/// as the products.
constexpr std::int64_t kLeastColumns = 1024, kLeastRows = 64;

/// Operands of so many times what the threads' second-level caches hold are not waited for there:
/// C is written past them.
constexpr double kStreamed = 4;

/// Bytes of B and C below which nothing is gained by that, whatever the caches.
constexpr double kCachedBytes = 512 << 10;

template <class Void>
Rows rows_of(const Operand<Void>& X) {
  // The kernel only writes to C's rows.
  return {static_cast<std::byte*>(const_cast<void*>(X.data)), X.ld,
          const_cast<void* const*>(X.pointers)};
}

/// Do all rows of C begin at the same distance from a line's begin?
bool lines_agree(const Gf256Args& args) {
  if (!args.C.pointers) return args.m == 1 || args.C.ld % kLine == 0;
  const auto offset = [&](std::int64_t i) {
    return reinterpret_cast<std::uintptr_t>(args.C.pointers[i]) % kLine;
  };
  for (std::int64_t i = 1; i < args.m; ++i)
    if (offset(i) != offset(0)) return false;
  return true;
}

}  // namespace

Gf256Threads gf256_threads(const Gf256Args& args, double grain, int most) {
  const double work = double(args.m) * double(args.n) * double(args.k + 1);
  const int threads = threads_for(work, grain, most);
  const auto columns =
      int(std::clamp<std::int64_t>(args.n / kLeastColumns, 1, std::int64_t(threads)));
  const auto rows = int(std::clamp<std::int64_t>(args.m / kLeastRows, 1, threads / columns));
  return {rows, columns};
}

bool gf256_is_small(const Gf256Args& args, double grain, std::size_t coefficient_bytes) {
  const double m = double(args.m), n = double(args.n), k = double(args.k);
  return args.poly == gf256::kDefaultPoly && (m + k) * n <= kCachedBytes &&
         m * n * (k + 1) < 2 * grain && m * k * double(coefficient_bytes) <= double(kGf256Small);
}

Gf256Columns gf256_whole(const Gf256Args& args, const void* coefficients) {
  return {.m = args.m,
          .k = args.k,
          .A = rows_of(args.A),
          .B = rows_of(args.B),
          .C = rows_of(args.C),
          .begin = 0,
          .end = args.n,
          .accumulate = args.accumulate,
          .stream = false,
          .coefficients = coefficients};
}

std::size_t gf256_thread_bytes(const Gf256Args& args, std::size_t coefficient_bytes) {
  const double whole =
      double(args.m) * double(std::min(args.k, kGf256Depth)) * double(coefficient_bytes);
  const auto block = std::int64_t(std::min(whole, double(kGf256Block)));
  return std::size_t(round_up(block, kLine) + kGf256Panel);
}

void gf256_run(const Gf256Args& args, Gf256Threads threads, const void* coefficients,
               std::byte* memory, std::size_t thread_bytes, void (*columns)(const Gf256Columns&)) {
  const double bytes = double(args.m + args.k) * double(args.n);
  const double caches = double(cache_sizes().second) * threads.count();
  Gf256Columns all = gf256_whole(args, coefficients);
  all.stream = bytes > kStreamed * caches && lines_agree(args);
  const Tiling tiles{args.m, args.n, 1, divide_up(args.m, threads.rows),
                     round_up(divide_up(args.n, threads.columns), kLine)};
  tiles.for_each(threads.count(), [&](const Tile& tile, int thread) {
    Gf256Columns part = all;
    part.first_row = tile.i;
    part.m = tile.rows;
    part.begin = tile.j;
    part.end = tile.j + tile.cols;
    std::byte* const mine = memory + std::size_t(thread) * thread_bytes;
    part.panel = reinterpret_cast<std::uint8_t*>(mine);
    part.block = mine + kGf256Panel;
    columns(part);
  });
}

}  // namespace mblas::cpu
