// Columns of a product over GF(2^8), for the files that are compiled once per instruction set. How
// a coefficient multiplies a vector of bytes is the business of their Field; what is here keeps it
// fed.
//
// A vector of B serves as many rows of C as the registers hold sums for. A code of up to
// Field::kRows parity shards therefore reads each byte of the data once, from where it lies; the
// limit is then how much memory one core can ask for: lines are prefetched some columns ahead,
// which the hardware does too late for ten rows at a time, and C beyond the caches is written past
// them, which saves reading it. For more rows of C, B passes through a panel in the first-level
// cache, as rows a power of two apart would drive one another out of it between two uses, and their
// addresses out of the translation buffers; the next panel's lines are fetched meanwhile.
//
// The parity of a code whose numbers of data and of parity shards are even takes three products in
// place of four: there the coefficients of two rows and two columns side by side are a, b above
// b, a, and (a x + b y, b x + a y) = (a (x + y) + (a + b) y, a (x + y) + (a + b) x). It is looked
// for in the coefficients, so that products that happen to have it gain as well.
//
// A Field has a Coefficient, which multiplies by one byte of A and of which g.coefficients has 256;
// the Operator that it becomes in registers; the Factor that a vector of B becomes; and kPairs, are
// there registers for paired rows. It may have an Expander, which finds the coefficients of squares
// of A without looking them up: where C has few columns, that takes longer than the products.
#pragma once

#include "cpu/isa.hpp"
#include "cpu/simd.hpp"
#include "cpu/transpose/stream.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

using Bytes = Vector<std::uint8_t>;

/// Vectors of B that are multiplied at a time.
constexpr int kVectors = kVectorBytes > 16 ? 2 : 1;
constexpr std::int64_t kChunk = kVectors * kVectorBytes;
/// Columns of a panel: few where it is deep.
constexpr std::int64_t kLeastWidth = kGf256Panel / kGf256Depth, kMostWidth = 1024;
static_assert(kLeastWidth % kChunk == 0 && kLeastWidth % kLine == 0);

/// Bytes of B that are prefetched before they are needed.
constexpr std::int64_t kAhead = 12 << 10, kLeastAhead = 256;

MBLAS_INLINE std::uint8_t* row(const Rows& rows, std::int64_t i) {
  return reinterpret_cast<std::uint8_t*>(rows.pointers ? static_cast<std::byte*>(rows.pointers[i])
                                                       : rows.data + i * rows.ld);
}

/// The first `count` bytes, fewer than a vector; the others are zero, and their memory is not
/// touched.
MBLAS_INLINE Bytes load_bytes(const std::uint8_t* p, std::int64_t count) {
#if defined(__AVX512BW__)
  return Bytes(_mm512_maskz_loadu_epi8((__mmask64{1} << count) - 1, p));
#else
  Bytes v{};
  __builtin_memcpy(&v, p, std::size_t(count));
  return v;
#endif
}
MBLAS_INLINE void store_bytes(std::uint8_t* p, const Bytes& v, std::int64_t count) {
#if defined(__AVX512BW__)
  _mm512_mask_storeu_epi8(p, (__mmask64{1} << count) - 1, __m512i(v));
#else
  __builtin_memcpy(p, &v, std::size_t(count));
#endif
}

MBLAS_INLINE Bytes sum_of(const Bytes& a, const Bytes& b, const Bytes& c) {
#if defined(__AVX512F__)
  return Bytes(_mm512_ternarylogic_epi64(__m512i(a), __m512i(b), __m512i(c), 0x96));
#else
  return a ^ b ^ c;
#endif
}

/// Into the first or second level of the caches; perhaps from beyond the end of the row.
template <int Level>
MBLAS_INLINE void prefetch(const std::uint8_t* p, std::int64_t offset) {
  __builtin_prefetch(
      reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p) + std::uintptr_t(offset)),
      0, Level == 1 ? 3 : 2);
}

/// Some rows of C, and the block of B that they are computed from or, if C is not complete yet,
/// increased by.
struct Pass {
  std::uint8_t* C[8];
  std::int64_t columns;
  std::int64_t depth;
  const std::uint8_t* const* B;  ///< its rows
  const std::uint8_t* panel;     ///< or a copy of them, rows of `width` bytes
  std::int64_t width;
  std::int64_t ahead;  ///< of rows B what is prefetched, from where they are in use; for
                       ///< a panel, from their begin `width` bytes of each, by and by
  std::int64_t turn;   ///< how much of that is done: `depth` lines in a turn
  bool add;            ///< to what C holds
  bool stream;         ///< C is written past the caches; its lines are whole
  bool paired;         ///< the coefficients are, see expand()
};

enum class To { Caches, Memory, Part };  // Part: fewer columns than a vector

/// The lines of the next panel, row by row: as many of a page as there are, for its address to be
/// looked up but once.
struct Next {
  const std::uint8_t* const* row;
  std::int64_t ahead, line, width;  ///< width 0: no more lines

  explicit MBLAS_INLINE Next(const Pass& pass)
      : row(pass.B), ahead(pass.ahead), line(0), width(pass.width) {
    const std::int64_t lines = width / kLine;
    if (pass.turn >= lines) {  // always, without a panel
      width = 0;
      return;
    }
    const std::int64_t first = pass.turn * pass.depth;
    row += first / lines;
    line = first % lines * kLine;
  }
  MBLAS_INLINE void prefetch_line() {
    if (width == 0) return;
    prefetch<2>(*row, ahead + line);
    line += kLine;
    if (line == width) {
      line = 0;
      ++row;
    }
  }
};

/// How rows of C come about: each from its own coefficients, or two by two where the coefficients
/// are paired.
template <int Rows, bool kPaired>
struct Scheme {
  static constexpr int kColumns = kPaired ? 2 : 1;  ///< of A that are taken together
  static constexpr int kFactors = kPaired ? 3 : 1;  ///< that they are multiplied by
  static constexpr int kSums = Rows / kColumns * kFactors;
  /// Sums and factors of two steps of two vectors would not fit in the registers.
  static constexpr int kAtOnce = kPaired && Rows > 4 ? 1 : kVectors;
};

/// Step times kColumns rows of the block of B, from p on, into the sums.
template <class Field, class S, int Step, int V, bool kPanel, bool kPart>
MBLAS_INLINE void multiply(const Pass& pass, std::int64_t p, std::int64_t j,
                           const typename Field::Coefficient* a, Next& next,
                           Bytes (&sum)[S::kSums][V]) {
  typename Field::Factor x[Step][S::kFactors][V];
#pragma GCC unroll 2
  for (int s = 0; s < Step; ++s) {
#pragma GCC unroll 2
    for (int c = 0; c < S::kColumns; ++c) {
      const std::int64_t i = p + s * S::kColumns + c;
      const std::uint8_t* b = (kPanel ? pass.panel + i * pass.width : pass.B[i]) + j;
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v)
        x[s][c][v] = Field::factor(kPart && !kPanel ? load_bytes(b, pass.columns - j)
                                                    : load<Bytes>(b + v * kVectorBytes));
      if (!kPanel) {
#pragma GCC unroll 2
        for (int line = 0; line < V * kVectorBytes; line += int(kLine))
          prefetch<1>(b, pass.ahead + line);
      } else {
        next.prefetch_line();
      }
    }
    if constexpr (S::kFactors == 3) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) x[s][2][v] = x[s][0][v] ^ x[s][1][v];
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < S::kSums; ++r) {
    typename Field::Operator m[Step];
#pragma GCC unroll 2
    for (int s = 0; s < Step; ++s) m[s] = Field::expand(a[s * S::kSums + r]);
    const int f = r % S::kFactors;
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      if constexpr (Step == 2)
        sum[r][v] =
            sum_of(sum[r][v], Field::product(m[0], x[0][f][v]), Field::product(m[1], x[1][f][v]));
      else
        sum[r][v] = Field::add(sum[r][v], m[0], x[0][f][v]);
    }
  }
}

/// V vectors of columns from j on.
template <class Field, int Count, class S, int V, bool kPanel, To kTo>
MBLAS_INLINE void compute(Pass& pass, std::uint8_t* const (&C)[Count], std::int64_t j,
                          const typename Field::Coefficient* a) {
  constexpr bool part = kTo == To::Part;
  Bytes sum[S::kSums][V];
#pragma GCC unroll 12
  for (int r = 0; r < S::kSums; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[r][v] = Bytes{};
  Next next(pass);
  constexpr int step = Field::kStep * S::kColumns;
  std::int64_t p = 0;
  for (; p + step <= pass.depth; p += step, a += Field::kStep * S::kSums)
    multiply<Field, S, Field::kStep, V, kPanel, part>(pass, p, j, a, next, sum);
  if (Field::kStep > 1 && p < pass.depth)
    multiply<Field, S, 1, V, kPanel, part>(pass, p, j, a, next, sum);
  ++pass.turn;

  if constexpr (S::kFactors == 3) {
#pragma GCC unroll 4
    for (int r = 0; r < Count; r += 2)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        const Bytes both = sum[r / 2 * 3 + 2][v], first = sum[r / 2 * 3 + 1][v] ^ both,
                    second = sum[r / 2 * 3][v] ^ both;
        sum[r][v] = first;
        sum[r + 1][v] = second;
      }
  }
  const std::int64_t rest = pass.columns - j;
  if (pass.add) {
#pragma GCC unroll 8
    for (int r = 0; r < Count; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v)
        sum[r][v] ^= part ? load_bytes(C[r] + j, rest) : load<Bytes>(C[r] + j + v * kVectorBytes);
  }
#pragma GCC unroll 8
  for (int r = 0; r < Count; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      std::uint8_t* c = C[r] + j + v * kVectorBytes;
      if constexpr (kTo == To::Memory)
        stream_vector(c, sum[r][v]);
      else if constexpr (part)
        store_bytes(c, sum[r][v], rest);
      else
        store(c, sum[r][v]);
    }
  }
}

template <class Field, int Count, bool kPanel, bool kPaired>
void run(Pass& shared, const typename Field::Coefficient* a) {
  using S = Scheme<Count, kPaired>;
  constexpr int V = S::kAtOnce;
  // Copies: what is written through pointers to bytes could otherwise be these.
  Pass pass = shared;
  std::uint8_t* C[Count];
  for (int r = 0; r < Count; ++r) C[r] = shared.C[r];
  constexpr std::int64_t chunk = V * kVectorBytes;
  std::int64_t j = 0;
  if (pass.stream)
    for (; j + chunk <= pass.columns; j += chunk)
      compute<Field, Count, S, V, kPanel, To::Memory>(pass, C, j, a);
  for (; j + chunk <= pass.columns; j += chunk)
    compute<Field, Count, S, V, kPanel, To::Caches>(pass, C, j, a);
  if constexpr (V > 1)
    for (; j + kVectorBytes <= pass.columns; j += kVectorBytes)
      compute<Field, Count, S, 1, kPanel, To::Caches>(pass, C, j, a);
  if (j < pass.columns) compute<Field, Count, S, 1, kPanel, To::Part>(pass, C, j, a);
  shared.turn = pass.turn;
}

template <class Field, bool kPanel, int Count = Field::kRows>
MBLAS_INLINE void run_rows(int count, Pass& pass, const typename Field::Coefficient* a) {
  if constexpr (Count > 1)
    if (count < Count) return run_rows<Field, kPanel, Count - 1>(count, pass, a);
  if constexpr (Field::kPairs && Count % 2 == 0)
    if (pass.paired) return run<Field, Count, kPanel, true>(pass, a);
  run<Field, Count, kPanel, false>(pass, a);
}

/// Is block [i0, i1)×[p0, p0 + depth) of A made of squares of two rows and columns whose diagonals
/// are the same element twice? That of a Cauchy matrix is, where the numbers of data and of parity
/// shards are even: 1 / ((k + r) xor i) does not change with both r and i by one.
template <class Field>
bool is_paired(const Gf256Columns& g, std::int64_t i0, std::int64_t i1, std::int64_t p0,
               std::int64_t depth) {
  if (!Field::kPairs || (i1 - i0) % 2 != 0 || depth % 2 != 0) return false;
  for (std::int64_t i = i0; i < i1; i += 2) {
    const std::uint8_t* above = row(g.A, g.first_row + i) + p0;
    const std::uint8_t* below = row(g.A, g.first_row + i + 1) + p0;
    for (std::int64_t p = 0; p < depth; p += 2)
      if (above[p] != below[p + 1] || above[p + 1] != below[p]) return false;
  }
  return true;
}

/// Block [i0, i1)×[p0, p0 + depth) of A: of groups of kRows rows a column after the other; paired,
/// for two columns and two rows what x, y and x + y are multiplied by.
template <class Field>
void expand(const Gf256Columns& g, std::int64_t i0, std::int64_t i1, std::int64_t p0,
            std::int64_t depth, bool paired, typename Field::Coefficient* to) {
  const auto* table = static_cast<const typename Field::Coefficient*>(g.coefficients);
  for (std::int64_t i = i0; i < i1; i += Field::kRows) {
    const std::int64_t count = smaller(Field::kRows, i1 - i);
    std::int64_t first = 0;  // column that is not in `to` yet
    if constexpr (requires { typename Field::Expander; }) {
      constexpr int side = Field::kRows;
      if (!paired && count == side && depth >= 2 * side) {
        const typename Field::Expander expander(table);
        for (; first + side <= depth; first += side) {
          const std::uint8_t* from[side];
          for (int r = 0; r < side; ++r) from[r] = row(g.A, g.first_row + i + r) + p0 + first;
          expander(from, to + first * side);
        }
      }
    }
    for (std::int64_t r = 0; r < count; r += paired ? 2 : 1) {
      const std::uint8_t* from = row(g.A, g.first_row + i + r) + p0;
      if (paired) {
        for (std::int64_t p = 0; p < depth; p += 2) {
          auto* const three = to + p / 2 * (count / 2 * 3) + r / 2 * 3;
          three[0] = three[1] = table[from[p] ^ from[p + 1]];
          three[2] = table[from[p]];
        }
      } else {
        for (std::int64_t p = first; p < depth; ++p) to[p * count + r] = table[from[p]];
      }
    }
    to += depth * count;
  }
}

/// Columns [begin, end) of rows [i0, i1) of C, panel by panel of B.
template <class Field>
void run_panels(const Gf256Columns& g, std::int64_t i0, std::int64_t i1, std::int64_t begin,
                std::int64_t end, Pass& pass, const typename Field::Coefficient* a) {
  pass.panel = g.panel;
  pass.width = smaller(kGf256Panel / larger(pass.depth, 1) / kLeastWidth * kLeastWidth, kMostWidth);
  for (std::int64_t j = begin; j < end; j += pass.width) {
    pass.columns = smaller(pass.width, end - j);
    for (std::int64_t p = 0; p < pass.depth; ++p)
      __builtin_memcpy(g.panel + p * pass.width, pass.B[p] + (j - begin),
                       std::size_t(pass.columns));
    pass.ahead = j - begin + pass.width;
    pass.turn = 0;
    const typename Field::Coefficient* mine = a;
    for (std::int64_t i = i0; i < i1; i += Field::kRows) {
      const int count = int(smaller(Field::kRows, i1 - i));
      for (int r = 0; r < count; ++r) pass.C[r] = row(g.C, g.first_row + i + r) + j;
      run_rows<Field, true>(count, pass, mine);
      mine += pass.depth * count;
    }
  }
}

template <class Field>
void run_columns(const Gf256Columns& g, std::int64_t begin, std::int64_t end, bool stream) {
  using Coefficient = typename Field::Coefficient;
  constexpr std::int64_t block =
      kGf256Block / (kGf256Depth * std::int64_t(sizeof(Coefficient))) / Field::kRows * Field::kRows;
  static_assert(block > 0 && Field::kRows <= 8);
  auto* const a = static_cast<Coefficient*>(g.block);
  const std::uint8_t* b[kGf256Depth];
  for (std::int64_t i0 = 0; i0 < g.m; i0 += block) {
    const std::int64_t i1 = smaller(i0 + block, g.m);
    for (std::int64_t p0 = 0; p0 == 0 || p0 < g.k; p0 += kGf256Depth) {
      Pass pass{};
      pass.depth = smaller(kGf256Depth, g.k - p0);
      pass.columns = end - begin;
      pass.B = b;
      pass.add = g.accumulate || p0 > 0;
      pass.stream = stream;
      pass.paired = is_paired<Field>(g, i0, i1, p0, pass.depth);
      for (std::int64_t p = 0; p < pass.depth; ++p) b[p] = row(g.B, p0 + p) + begin;
      expand<Field>(g, i0, i1, p0, pass.depth, pass.paired, a);
      if (g.m > Field::kRows) {
        run_panels<Field>(g, i0, i1, begin, end, pass, a);
        continue;
      }
      for (std::int64_t r = 0; r < g.m; ++r) pass.C[r] = row(g.C, g.first_row + r) + begin;
      pass.ahead = larger(kAhead / larger(pass.depth, 1) / kLine * kLine, kLeastAhead);
      run_rows<Field, false>(int(g.m), pass, a);
    }
  }
}

template <class Field>
void columns(const Gf256Columns& g) {
  // Whole lines of C go past the caches, what is before them does not.
  std::int64_t begin = g.begin;
  const bool stream = g.stream && !g.accumulate && g.k <= kGf256Depth;
  if (const std::int64_t offset = line_offset(row(g.C, g.first_row) + begin);
      stream && offset != 0) {
    begin = smaller(begin + kLine - offset, g.end);
    run_columns<Field>(g, g.begin, begin, false);
  }
  if (begin < g.end) run_columns<Field>(g, begin, g.end, stream);
  if (stream) stream_fence();
}

}  // namespace
}  // namespace mblas::cpu::MBLAS_ISA
