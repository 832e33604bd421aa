// Columns of a product over GF(2^8).
//
// A product with a fixed coefficient is linear over GF(2): the sum of what the coefficient makes of
// the low and of the high nibble, two lookups in tables of 16 bytes, which a byte shuffle does for
// a whole vector. kRows rows of C share each load of B; a strip of columns of B stays in the
// first-level cache for all rows of C. After J. S. Plank, K. M. Greenan, E. L. Miller, "Screaming
// fast Galois field arithmetic using Intel SIMD instructions", FAST 2013.
#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mblas::cpu::MBLAS_ISA {
namespace {

using Bytes = Vector<std::uint8_t>;
constexpr int kRows = 4, kVectors = 2;
constexpr int kChunk = kVectors * kVectorBytes;
constexpr std::int64_t kStrip = 24 << 10;  // bytes of B

/// 16 table bytes in every 16-byte lane.
template <int... I>
MBLAS_INLINE Bytes repeat(const std::uint8_t* table, std::integer_sequence<int, I...>) {
  const auto lane = load<Vector<std::uint8_t, 16>>(table);
  return __builtin_shufflevector(lane, lane, (I % 16)...);
}
MBLAS_INLINE Bytes repeat(const std::uint8_t* table) {
  return repeat(table, std::make_integer_sequence<int, kVectorBytes>());
}

/// table[index], index < 16, for every byte.
MBLAS_INLINE Bytes look_up(const Bytes& table, const Bytes& index) {
#if defined(__AVX512F__)
  return Bytes(_mm512_shuffle_epi8(__m512i(table), __m512i(index)));
#elif defined(__AVX2__)
  return Bytes(_mm256_shuffle_epi8(__m256i(table), __m256i(index)));
#else
  return __builtin_shuffle(table, index);
#endif
}

MBLAS_INLINE std::uint8_t* row(const Rows& rows, std::int64_t i) {
  return reinterpret_cast<std::uint8_t*>(rows.pointers ? static_cast<std::byte*>(rows.pointers[i])
                                                       : rows.data + i * rows.ld);
}

/// kChunk columns from `j` on of Count rows of C.
template <int Count>
void chunk(const Gf256Columns& g, std::int64_t i, std::int64_t j) {
  Bytes sum[Count][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < Count; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = g.accumulate ? load<Bytes>(row(g.C, i + r) + j + v * kVectorBytes) : Bytes{};
  for (std::int64_t p = 0; p < g.k; ++p) {
    const std::uint8_t* b = row(g.B, p) + j;
    Bytes low[kVectors], high[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Bytes x = load<Bytes>(b + v * kVectorBytes);
      low[v] = x & 15;
      high[v] = x >> 4;
    }
#pragma GCC unroll 4
    for (int r = 0; r < Count; ++r) {
      const std::uint8_t* products = g.products[row(g.A, i + r)[p]];
      const Bytes low_table = repeat(products), high_table = repeat(products + 16);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        sum[r][v] ^= look_up(low_table, low[v]) ^ look_up(high_table, high[v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Count; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(row(g.C, i + r) + j + v * kVectorBytes, sum[r][v]);
}

/// The last columns, fewer than a chunk.
void tail(const Gf256Columns& g, std::int64_t i, std::int64_t begin, std::int64_t end) {
  std::uint8_t* c = row(g.C, i);
  for (std::int64_t j = begin; j < end; ++j) {
    std::uint8_t sum = g.accumulate ? c[j] : 0;
    for (std::int64_t p = 0; p < g.k; ++p) {
      const std::uint8_t* products = g.products[row(g.A, i)[p]];
      const std::uint8_t x = row(g.B, p)[j];
      sum ^= products[x & 15] ^ products[16 + (x >> 4)];
    }
    c[j] = sum;
  }
}

}  // namespace

void gf256_columns(const Gf256Columns& g) {
  const std::int64_t per_row = kStrip / (g.k > 0 ? g.k : 1) / kChunk * kChunk;
  const std::int64_t strip = per_row > kChunk ? per_row : kChunk;
  for (std::int64_t j0 = g.begin; j0 < g.end; j0 += strip) {
    const std::int64_t end = smaller(j0 + strip, g.end);
    const std::int64_t whole_end = j0 + (end - j0) / kChunk * kChunk;
    std::int64_t i = 0;
    for (; i + kRows <= g.m; i += kRows)
      for (std::int64_t j = j0; j < whole_end; j += kChunk) chunk<kRows>(g, i, j);
    for (; i < g.m; ++i)
      for (std::int64_t j = j0; j < whole_end; j += kChunk) chunk<1>(g, i, j);
    if (whole_end < end)
      for (i = 0; i < g.m; ++i) tail(g, i, whole_end, end);
  }
}

}  // namespace mblas::cpu::MBLAS_ISA
