// What the files with products of a few vectors share: how much of them is in registers, what is
// fetched ahead, and groups of vectors. Local to the including object, as simd.hpp is.
#pragma once

#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

constexpr std::int64_t kLine = 64;
// Vectors. With 16 registers sums of more leave room for half a line of the matrix only, which is
// gone from the first level when the other half is due (float 16×4096×4096 took 1.6 times as long,
// 8×1000×1000 1.2).
constexpr int kMostAtOnce = kVectorRegisters == 16 ? 6 : 8;
constexpr std::int64_t kCached = 128 << 10;  // bytes of the matrix that groups of vectors share

/// Rows, or vectors of columns, whose sums with R vectors fit the registers beside a register for
/// each of them and one for an element of a vector.
template <int R>
constexpr int kWith = int(smaller(kVectorRegisters / 4, (kVectorRegisters - 1) / (R + 1)));

/// Where to prefetch while rows pass by: some bytes ahead, and near their end what is read after
/// it.
template <bool Far>
struct Ahead {
  // From memory 32 lines are better than 16 by AVX2 on a Zen 4: float 8×4096×4096 NT 1.16 times as
  // fast, double 1.24, 4096×1×4096 1.04.
  static constexpr std::int64_t kBytes = (!Far ? 8 : kVectorRegisters == 16 ? 32 : 16) * kLine;
  std::int64_t bytes;
  std::int64_t turn, after;  // bytes before the end of a row; from it to the begin of what is next

  MBLAS_INLINE std::int64_t operator()(std::int64_t at) const {
    return at < turn ? bytes : bytes + after;
  }
};
template <bool Far>
MBLAS_INLINE Ahead<Far> ahead(std::int64_t row_bytes, std::int64_t to_next,
                              std::int64_t lines = 0) {
  const std::int64_t bytes = lines > 0 ? lines * kLine : Ahead<Far>::kBytes;
  return {bytes, row_bytes - bytes, to_next - row_bytes};
}
template <bool Far, bool Second = Far>
MBLAS_INLINE void fetch(const void* p, std::int64_t ahead) {
  const auto* const at = static_cast<const std::byte*>(p) + ahead;
  if constexpr (Second)
    __builtin_prefetch(at, 0, 2);
  else
    __builtin_prefetch(at);
}

/// Calls f(first, count) for groups of nearly as many vectors, kMostAtOnce at most.
template <class F>
MBLAS_INLINE void for_groups(int vectors, const F& f) {
  const int groups = (vectors + kMostAtOnce - 1) / kMostAtOnce;
  for (int g = 0, first = 0; g < groups; ++g) {
    const int count = vectors / groups + (g < vectors % groups);
    f(first, count);
    first += count;
  }
}

/// Rows, or columns, of a block that the second-level cache keeps from one group to the next; all
/// of them where there is one group.
MBLAS_INLINE std::int64_t block_of(const ThinPart& g, std::int64_t all, std::int64_t bytes) {
  return g.vectors <= kMostAtOnce ? all : larger(kCached / larger(bytes, 1) / 64 * 64, 64);
}

/// Lines ahead of each of Q rows of a matrix that streams by: together as many as are on their way
/// at a time. 0: as ahead() has it. (4096×4096 on a Zen 5, with kKeptBytes, over 8 lines of each: 8
/// vectors of float and of bfloat16 1.6 times as fast, of double 1.55, of bytes 1.25, 4 of double
/// 1.15; on an Emerald Rapids Xeon 0.97 to 1.1.)
template <int Q>
MBLAS_INLINE std::int64_t lines_ahead(const ThinPart& g) {
  return g.streams && kVectorRegisters == 32 ? 128 / larger(Q, 3) : 0;
}

/// Bytes of some vectors that the first-level cache keeps while rows pass by, and vectors from
/// which on it pays to multiply by no more of them at a time: beside fewer, more rows pass by
/// together, which share a load of each vector.
constexpr std::int64_t kKeptBytes = 32 << 10;
constexpr int kLeastKept = 5;

/// Calls f(part, first, count) for parts of some rows, groups of vectors of elements of type X and,
/// where the matrix streams by, parts of the columns.
template <class Element, class X, class Sum, class F>
MBLAS_INLINE void for_dot_groups(const ThinPart& whole, const F& f) {
  const std::int64_t block = block_of(whole, whole.rows, whole.cols * sizeof(Element));
  for (std::int64_t i = 0; i < whole.rows; i += block) {
    ThinPart g = whole;
    g.M = static_cast<const Element*>(whole.M) + i * g.ld;
    g.y = static_cast<Sum*>(whole.y) + i;
    g.rows = smaller(block, whole.rows - i);
    if (g.beyond) g.beyond += i / kThinPart;
    for_groups(g.vectors, [&](int first, int count) {
      const std::int64_t all = whole.cols, bytes = count * all * std::int64_t(sizeof(X));
      const bool cut = kVectorRegisters == 32 && g.streams && count >= kLeastKept;
      const std::int64_t parts = cut ? (bytes - 1) / kKeptBytes + 1 : 1;
      const std::int64_t cols = ((all - 1) / parts / kLine + 1) * kLine;
      for (std::int64_t p = 0; p < all; p += cols) {
        ThinPart part = g;
        part.M = static_cast<const Element*>(g.M) + p;
        part.x = static_cast<const X*>(g.x) + p;
        part.cols = smaller(cols, all - p);
        part.adds = p > 0;
        f(part, first, count);
      }
    });
  }
}

/// Calls f(part, first, count, p) for parts of `rows` rows, those from row p on, and some columns,
/// and groups of vectors of elements of type X.
template <class Element, class X, class Sum, class F>
MBLAS_INLINE void for_add_groups(const ThinPart& whole, std::int64_t rows, const F& f) {
  const std::int64_t block = block_of(whole, whole.cols, rows * sizeof(Element));
  for (std::int64_t p = 0; p < whole.rows; p += rows) {
    for (std::int64_t j = 0; j < whole.cols; j += block) {
      ThinPart g = whole;
      g.M = static_cast<const Element*>(whole.M) + p * g.ld + j;
      g.x = static_cast<const X*>(whole.x) + p * g.x_depth;
      g.y = static_cast<Sum*>(whole.y) + j;
      g.rows = smaller(rows, whole.rows - p);
      g.cols = smaller(block, whole.cols - j);
      if (g.beyond) g.beyond += j / kThinPart;
      for_groups(g.vectors, [&](int first, int count) { f(g, first, count, p); });
    }
  }
}

}  // namespace
}  // namespace mblas::cpu::MBLAS_ISA
