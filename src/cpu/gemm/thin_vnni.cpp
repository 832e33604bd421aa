// A few vectors of bytes times a matrix, as thin_isa.cpp has it, by the products of four bytes that
// AVX-512 VNNI adds up (VPDPBUSD): half the instructions of products of widened pairs, so that
// eight vectors are limited by reading the matrix.
//
// The bytes of one operand have no sign: those of the matrix get 128 added as they are loaded, and
// 128 times the sum of a vector is taken off its sums, all in 32 bits that may wrap. Across rows,
// four of them are interleaved byte by byte in registers.
#include <utility>

#include "cpu/gemm/thin_parts.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

constexpr int kDepth = 4;   // bytes that are added up at once
constexpr int kWidth = 64;  // of a vector, and columns at a time
constexpr int kQuarter = kWidth / kDepth;
constexpr int kMostWhole = 5;  // vectors whose sums of kWidth columns fit the registers
constexpr std::int64_t kMostRows = 64;

/// Rows whose products are added up before the sums are stored: as many streams as the processor's
/// own fetches follow, while reading takes the time.
constexpr std::int64_t rows_at_once(int vectors, bool far) {
  return vectors <= 2 ? 8 : far ? kMostRows : 32;
}

/// Elements without sign, 128 larger; those that are not among the first `count` count as zero.
MBLAS_INLINE __m512i unsigned_first(const std::int8_t* p, int count) {
  const __mmask64 first = ~__mmask64(0) >> (kWidth - count);
  return _mm512_xor_si512(_mm512_maskz_loadu_epi8(first, p), _mm512_set1_epi8(char(0x80)));
}
MBLAS_INLINE __m512i unsigned_all(const std::int8_t* p) {
  return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(char(0x80)));
}

/// What 128 more in every element of the matrix adds to a sum, taken from zero; of the `count`
/// bytes at x, a multiple of kDepth.
MBLAS_INLINE int without_offset(const std::int8_t* x, std::int64_t count, std::int64_t stride) {
  int sum = 0;
  for (std::int64_t p = 0; p < count; p += kDepth, x += stride)
    for (int i = 0; i < kDepth; ++i) sum += x[i];
  return int(-128u * unsigned(sum));
}

/// Adds the products of 64 columns of Q rows with R vectors from x on.
template <int Q, int R>
MBLAS_INLINE void multiply(__m512i (&sums)[Q][R], const __m512i (&m)[Q], const std::int8_t* x,
                           std::int64_t x_ld) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const __m512i xs = _mm512_loadu_si512(x + r * x_ld);
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) sums[q][r] = _mm512_dpbusd_epi32(sums[q][r], m[q], xs);
  }
}

/// Q rows from M on times R vectors from x on: sums at y, to which `start` is added.
template <int R, int Q, bool Far>
MBLAS_INLINE void dot_rows(const ThinPart& g, const std::int8_t* M, const std::int8_t* x,
                           const int* start, std::uint32_t* y) {
  const auto after = ahead<Far>(g.cols, Q * g.ld);
  __m512i sums[Q][R] = {};
  std::int64_t p = 0;
  for (; p + kWidth <= g.cols; p += kWidth) {
    const std::int64_t further = after(p);
    __m512i m[Q];
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      fetch<Far>(M + q * g.ld + p, further);
      m[q] = unsigned_all(M + q * g.ld + p);
    }
    multiply(sums, m, x + p, g.x_ld);
  }
  // Else GCC 12 has the sums in memory too, and writes them there in each round.
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) asm("" : "+v"(sums[q][r]));
  if (p < g.cols) {
    __m512i m[Q];
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) m[q] = unsigned_first(M + q * g.ld + p, int(g.cols - p));
    multiply(sums, m, x + p, g.x_ld);
  }
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      y[r * g.y_ld + q] =
          std::uint32_t(_mm512_reduce_add_epi32(sums[q][r])) + std::uint32_t(start[r]);
}

/// All rows times R vectors.
template <int R, bool Far>
void dot_all(const ThinPart& g, std::int64_t first) {
  constexpr int Q = kWith<R>;
  const auto* M = static_cast<const std::int8_t*>(g.M);
  const auto* const x = static_cast<const std::int8_t*>(g.x) + first * g.x_ld;
  auto* y = static_cast<std::uint32_t*>(g.y) + first * g.y_ld;
  int start[R];
  for (int r = 0; r < R; ++r) start[r] = without_offset(x + r * g.x_ld, g.cols, kDepth);
  std::int64_t i = 0;
  for (; i + Q <= g.rows; i += Q) dot_rows<R, Q, Far>(g, M + i * g.ld, x, start, y + i);
  for (; i < g.rows; ++i) dot_rows<R, 1, Far>(g, M + i * g.ld, x, start, y + i);
}

/// Four rows of 64 columns become quarters of these, with the four bytes of each column.
MBLAS_INLINE void interleave(__m512i (&m)[kDepth]) {
  // Quarter i of what comes out of the unpacking has the columns of fours i, i + 4, i + 8 and
  // i + 12 of those that go in: so they go in transposed.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#pragma GCC unroll 4
  for (int d = 0; d < kDepth; ++d) m[d] = _mm512_permutexvar_epi32(order, m[d]);
  const __m512i low01 = _mm512_unpacklo_epi8(m[0], m[1]), low23 = _mm512_unpacklo_epi8(m[2], m[3]);
  const __m512i high01 = _mm512_unpackhi_epi8(m[0], m[1]);
  const __m512i high23 = _mm512_unpackhi_epi8(m[2], m[3]);
  m[0] = _mm512_unpacklo_epi16(low01, low23);
  m[1] = _mm512_unpackhi_epi16(low01, low23);
  m[2] = _mm512_unpacklo_epi16(high01, high23);
  m[3] = _mm512_unpackhi_epi16(high01, high23);
}

/// Four bytes of each of 64 columns, of the rows that are added up at once.
using Strip = __m512i[kMostRows / kDepth][kDepth];

/// Adds some rows, times elements of R vectors, to the sums of 64 columns; of the first `count`
/// unless kAll. The rows are from M on or, where that is null, in `strip`, where they are left if
/// kLeaves.
template <int R, bool Far, bool kAll, bool kLeaves>
MBLAS_INLINE void add_columns(const ThinPart& g, const std::int8_t* M, Strip& strip,
                              const std::int8_t* x, const int* start, std::uint32_t* y, bool begin,
                              int count, std::int64_t further) {
  const auto mask = [&](int quarter) __attribute__((always_inline)) {
    return first_lanes(int(smaller(larger(count - quarter * kQuarter, 0), kQuarter)));
  };
  __m512i sums[R][kDepth];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < kDepth; ++i) {
      const std::uint32_t* const from = y + r * g.y_ld + i * kQuarter;
      sums[r][i] = begin  ? __m512i{}
                   : kAll ? _mm512_loadu_si512(from)
                          : _mm512_maskz_loadu_epi32(mask(i), from);
      sums[r][i] = _mm512_add_epi32(sums[r][i], _mm512_set1_epi32(start[r]));
    }
  const auto add = [&](std::int64_t p, std::int64_t rows) __attribute__((always_inline)) {
    __m512i m[kDepth];
    if (M != nullptr) {
#pragma GCC unroll 4
      for (int d = 0; d < kDepth; ++d) {
        // Past the last row x has zeros.
        const std::int8_t* const row = M + (p + (d < rows ? d : 0)) * g.ld;
        fetch<Far>(row, further);
        m[d] = kAll ? unsigned_all(row) : unsigned_first(row, count);
      }
      interleave(m);
    }
#pragma GCC unroll 4
    for (int d = 0; d < kDepth; ++d) {
      if (M == nullptr)
        m[d] = strip[p / kDepth][d];
      else if (kLeaves)
        strip[p / kDepth][d] = m[d];
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      int four;
      __builtin_memcpy(&four, x + (p / kDepth * g.vectors + r) * kDepth, sizeof four);
      const __m512i xs = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int i = 0; i < kDepth; ++i) sums[r][i] = _mm512_dpbusd_epi32(sums[r][i], m[i], xs);
    }
  };
  std::int64_t p = 0;
  for (; p + kDepth <= g.rows; p += kDepth) add(p, kDepth);
  if (p < g.rows) add(p, g.rows - p);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < kDepth; ++i) {
      std::uint32_t* const to = y + r * g.y_ld + i * kQuarter;
      if (kAll)
        _mm512_storeu_si512(to, sums[r][i]);
      else
        _mm512_mask_storeu_epi32(to, mask(i), sums[r][i]);
    }
}

/// A block of rows, times R vectors. `begin`: it is the first one.
template <int R, bool Far>
void add_all(const ThinPart& g, std::int64_t first, bool begin) {
  const auto* const M = static_cast<const std::int8_t*>(g.M);
  const auto* const x = static_cast<const std::int8_t*>(g.x) + first * kDepth;
  auto* const y = static_cast<std::uint32_t*>(g.y) + first * g.y_ld;
  const auto after = ahead<Far>(g.cols, rows_at_once(g.vectors, Far) * g.ld);
  int start[R];
  for (int r = 0; r < R; ++r) start[r] = without_offset(x + r * kDepth, g.rows, g.vectors * kDepth);
  Strip strip;
  const auto columns = [&]<bool kAll>(std::int64_t j) __attribute__((always_inline)) {
    const int count = kAll ? kWidth : int(g.cols - j);
    const std::int64_t further = after(j);
    if constexpr (R <= kMostWhole) {
      add_columns<R, Far, kAll, false>(g, M + j, strip, x, start, y + j, begin, count, further);
    } else {  // rows whose distance is a power of two are not in the first-level cache any more
      constexpr int kHalf = R / 2;
      add_columns<kHalf, Far, kAll, true>(g, M + j, strip, x, start, y + j, begin, count, further);
      add_columns<R - kHalf, Far, kAll, false>(g, nullptr, strip, x + kHalf * kDepth, start + kHalf,
                                               y + kHalf * g.y_ld + j, begin, count, further);
    }
  };
  std::int64_t j = 0;
  for (; j + kWidth <= g.cols; j += kWidth) columns.template operator()<true>(j);
  if (j < g.cols) columns.template operator()<false>(j);
}

struct Table {
  void (*dot[2][kMostAtOnce])(const ThinPart&, std::int64_t);  // [far][vectors - 1]
  void (*add[2][kMostAtOnce])(const ThinPart&, std::int64_t, bool);
};
template <int... R>
constexpr Table table(std::integer_sequence<int, R...>) {
  return {{{dot_all<R + 1, false>...}, {dot_all<R + 1, true>...}},
          {{add_all<R + 1, false>...}, {add_all<R + 1, true>...}}};
}
constexpr Table kTable = table(std::make_integer_sequence<int, kMostAtOnce>());

void dot(const ThinPart& whole) {
  for_dot_groups<std::int8_t, std::uint32_t>(whole, [](const ThinPart& g, int first, int count) {
    kTable.dot[g.far][count - 1](g, first);
  });
}

void add(const ThinPart& whole) {
  for_add_groups<std::int8_t, std::int8_t, std::uint32_t>(
      whole, rows_at_once(whole.vectors, whole.far),
      [](const ThinPart& g, int first, int count, bool begin) {
        kTable.add[g.far][count - 1](g, first, begin);
      });
}

void pack(const ThinVectors& v) {
  const auto* const from = static_cast<const std::int8_t*>(v.from);
  auto* const to = static_cast<std::int8_t*>(v.to);
  const std::int64_t k = round_up(v.k, kWidth);
  for (std::int64_t r = 0; r < v.vectors; ++r)
    for (std::int64_t p = 0; p < k; ++p)
      to[v.for_dot ? r * k + p : (p / kDepth * v.vectors + r) * kDepth + p % kDepth] =
          p < v.k ? from[r * v.vector + p * v.depth] : std::int8_t(0);
}

}  // namespace

constinit const ThinKernels thin_kernels[1] = {{DType::i8, kWidth, 1, pack, dot, add}};

}  // namespace mblas::cpu::MBLAS_ISA
