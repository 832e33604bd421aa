// Products over GF(2^8) by looking up nibbles.
//
// A product with a fixed coefficient is linear over GF(2): the sum of what the coefficient makes of
// the low and of the high nibble, two lookups in tables of 16 bytes, which a byte shuffle does for
// a whole vector. Those two shuffles are the limit. After J. S. Plank, K. M. Greenan, E. L. Miller,
// "Screaming fast Galois field arithmetic using Intel SIMD instructions", FAST 2013.
#include "cpu/gf256/columns.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

/// 16 table bytes in every 16-byte lane: a load, where the shuffles are busy.
MBLAS_INLINE Bytes repeat(const std::uint8_t* table) {
#if defined(__AVX512F__)
  // Masked: GCC 12 finds its header's undefined vectors used uninitialized.
  return Bytes(_mm512_maskz_broadcast_i32x4(0xffff, load<__m128i>(table)));
#elif defined(__AVX2__)
  return Bytes(_mm256_broadcastsi128_si256(load<__m128i>(table)));
#else
  return load<Bytes>(table);
#endif
}

/// table[index], index < 16, for every byte.
MBLAS_INLINE Bytes look_up(const Bytes& table, const Bytes& index) {
#if defined(__AVX512F__)
  return Bytes(_mm512_shuffle_epi8(__m512i(table), __m512i(index)));
#elif defined(__AVX2__)
  return Bytes(_mm256_shuffle_epi8(__m256i(table), __m256i(index)));
#elif defined(__clang__)
  Bytes found;
  for (int i = 0; i < int(sizeof(Bytes)); ++i) found[i] = table[index[i]];
  return found;
#else
  return __builtin_shuffle(table, index);
#endif
}

struct Table {
  using Coefficient = Gf256Table;
  struct Factor {
    Bytes low, high;
  };
  using Operator = Factor;
  static constexpr int kRows = kVectorBytes > 16 ? 4 : 2;
  static constexpr int kStep = 1;
  static constexpr bool kPairs = false;

  static MBLAS_INLINE Factor factor(const Bytes& x) { return {x & 15, x >> 4}; }
  static MBLAS_INLINE Operator expand(const Coefficient& c) {
    return {repeat(c.low), repeat(c.high)};
  }
  static MBLAS_INLINE Bytes add(const Bytes& sum, const Operator& m, const Factor& x) {
    return sum_of(sum, look_up(m.low, x.low), look_up(m.high, x.high));
  }
};

}  // namespace

void gf256_table_columns(const Gf256Columns& g) { columns<Table>(g); }

}  // namespace mblas::cpu::MBLAS_ISA
