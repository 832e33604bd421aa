// Sums along the rows of both operands of a small C: products of vectors of neighbours in k are
// added up lane by lane, and the lanes in the end. Nothing is packed or transposed, and of C as
// many elements are in registers as leave room for a vector of each row of A beside them; so loads
// are fewer than multiply-adds, which limit it. An element's sum is the same whatever rows and
// columns go with it.
#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

// Rows of A and of B at a time. Without fused multiply-adds products take a register as well.
constexpr int kRows = kVectorRegisters == 32 ? 4 : 3;
constexpr int kCols = kVectorRegisters == 32 ? 6 : kVectorBytes == 32 ? 4 : 3;

// Bytes of a row at a time. In the loop itself fetches leave no registers for addresses, and those
// of a whole part at once wait for each other (8×8×100000 from memory took 1.3 times as long).
constexpr std::int64_t kFetched = 256;

/// The next bytes of `rows` rows, to the second-level cache. They may lie past the operand's end.
template <class T>
MBLAS_INLINE void fetch(const T* p, std::int64_t ld, int rows) {
  for (int r = 0; r < rows; ++r, p += ld)
#pragma GCC unroll 8
    for (int at = 0; at < kFetched; at += 64)
      __builtin_prefetch(reinterpret_cast<const std::byte*>(p) + at, 0, 2);
}

/// What the rows of a block share: where they begin, their lanes and sums, and whether what comes
/// after each of them is fetched.
struct Block {
  const void *A, *B;
  std::byte *lanes, *sums;
  bool fetch_a, fetch_b;
};

/// R rows of A by Q rows of B, from those of `at` on.
template <class T, int R, int Q>
void along_rows(const SplitPart& g, const Block& at) {
  using Sums = Vector<T>;
  constexpr int step = kLanes<T>;
  const auto* const A = static_cast<const T*>(at.A);
  const auto* const B = static_cast<const T*>(at.B);
  Sums sums[R][Q];
  const auto lanes = [&](int r, int q) __attribute__((always_inline)) {
    return at.lanes + (r * g.n + q) * std::int64_t(sizeof(Sums));
  };
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) sums[r][q] = g.first ? Sums{} : load<Sums>(lanes(r, q));
  std::int64_t p = 0;
  const std::int64_t whole = g.k / step * step;
  while (p < whole) {  // to where the next lines are fetched, or to the end
    std::int64_t end = whole;
    if (at.fetch_a || at.fetch_b) {
      end = smaller(whole, p + kFetched / sizeof(T));
      if (at.fetch_a) fetch<T>(A + p + g.ahead, g.lda, R);
      if (at.fetch_b) fetch<T>(B + p + g.ahead, g.ldb, Q);
    }
    for (; p < end; p += step) {
      Sums a[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        a[r] = load<Sums>(A + r * g.lda + p);
        pin(a[r]);
      }
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q) {
        Sums b = load<Sums>(B + q * g.ldb + p);
        if (R > 1) pin(b);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) sums[r][q] += a[r] * b;
      }
    }
  }
  if (p < g.k) {
    const int count = int(g.k - p);
    Sums a[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) a[r] = load_first<Sums>(A + r * g.lda + p, count);
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      const Sums b = load_first<Sums>(B + q * g.ldb + p, count);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sums[r][q] += a[r] * b;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      if (g.last) {
        pin(sums[r][q]);
        reinterpret_cast<T*>(at.sums)[r * g.n + q] = add_lanes(sums[r][q]);
      } else {
        store(lanes(r, q), sums[r][q]);
      }
    }
}

using AlongRows = void (*)(const SplitPart&, const Block&);
template <class T>
struct Table {
  AlongRows by[kRows][kCols];
};
template <class T, int R, int... Q>
constexpr void fill(Table<T>& table, std::integer_sequence<int, Q...>) {
  ((table.by[R][Q] = along_rows<T, R + 1, Q + 1>), ...);
}
template <class T, int... R>
constexpr Table<T> table(std::integer_sequence<int, R...>) {
  Table<T> all{};
  (fill<T, R>(all, std::make_integer_sequence<int, kCols>()), ...);
  return all;
}
template <class T>
constexpr Table<T> kTable = table<T>(std::make_integer_sequence<int, kRows>());

/// Calls f(first, count) for groups of `most` of `all` at most, nearly as many in each.
template <class F>
MBLAS_INLINE void for_groups(std::int64_t all, int most, const F& f) {
  const std::int64_t groups = (all + most - 1) / most, each = all / groups, more = all % groups;
  for (std::int64_t g = 0, first = 0; g < groups; ++g) {
    const std::int64_t count = each + (g < more);
    f(first, int(count));
    first += count;
  }
}

template <class T>
void along(const SplitPart& g) {
  constexpr std::int64_t size = sizeof(T);
  for_groups(
      g.n, kCols, [&](std::int64_t j, int cols) __attribute__((always_inline)) {
        const auto* const B = static_cast<const T*>(g.B) + j * g.ldb;
        for_groups(
            g.m, kRows, [&](std::int64_t i, int rows) __attribute__((always_inline)) {
              const std::int64_t at = i * g.n + j;
              kTable<T>.by[rows - 1][cols - 1](
                  g, {static_cast<const T*>(g.A) + i * g.lda, B,
                      static_cast<std::byte*>(g.lanes) + at * kVectorBytes,
                      static_cast<std::byte*>(g.sums) + at * size, j == 0, i == 0});
            });
      });
}

}  // namespace

constinit const SplitKernel split_along[2] = {along<float>, along<double>};

}  // namespace mblas::cpu::MBLAS_ISA
