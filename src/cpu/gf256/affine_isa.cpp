// Products over GF(2^8) by GFNI's affine transformation.
//
// A product with a fixed coefficient is linear over GF(2): an 8×8 matrix of bits times the bits of
// a byte, which VGF2P8AFFINEQB does for a whole vector, whatever the field's polynomial. (Its
// sibling GF2P8MULB knows x^8 + x^4 + x^3 + x + 1 alone.) The CPUs that have it do 64 bytes of it
// in a cycle, on one port, so that a coefficient costs a cycle for each line of B: the loads are
// shared among rows and columns, and one three-way sum takes two products. Only fewer products are
// faster, as the parity of most codes allows (columns.hpp).
// Measured with 10 + 4 shards on a core of an Emerald Rapids Xeon, bytes of all of them, against
// ISA-L 2.32.1: with any coefficients 60 GB/s for shards of 16 KB, 1.16 to 1.36 times as fast, and
// 61 GB/s for 64 KB, 1.28 to 1.43 times; with those of a code 67 GB/s for 16 KB, 1.4 to 1.5 times;
// 15 GB/s for 16 MB, 1.5 times.
#include "cpu/gf256/columns.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

struct Affine {
  using Coefficient = std::uint64_t;
  using Factor = Bytes;
  using Operator = Bytes;
#if defined(__AVX512F__)
  static constexpr int kRows = 8, kStep = 2;
  static constexpr bool kPairs = true;
#else
  static constexpr int kRows = 4, kStep = 1;
  static constexpr bool kPairs = false;  // the sums of three would not fit in 16 registers
#endif

#if defined(__AVX512BW__)
  /// A matrix of bits is linear in its coefficient c too: byte i of it is a matrix M_i times c, so
  /// that one transformation finds those of eight coefficients.
  class Expander {
   public:
    explicit MBLAS_INLINE Expander(const Coefficient* table) {
      // Column b of M_i is byte i of the matrix of 2^b. With the bytes of eight of those for each i
      // together, last b first, as an operand of eight rows, a transformation of the unit vectors
      // reads off its columns, which are M_i's rows.
      const __m512i powers =
          _mm512_set_epi64(word(table[1]), word(table[2]), word(table[4]), word(table[8]),
                           word(table[16]), word(table[32]), word(table[64]), word(table[128]));
      const __m512i units = _mm512_set1_epi64(0x0102040810204080);
      matrices_ = _mm512_gf2p8affine_epi64_epi8(units, turned(powers), 0);
    }
    /// The coefficients of the square of eight columns at from[0] … from[7], column by column.
    MBLAS_INLINE void operator()(const std::uint8_t* const (&from)[8], Coefficient* to) const {
      const __m512i rows =
          _mm512_set_epi64(word(from[7]), word(from[6]), word(from[5]), word(from[4]),
                           word(from[3]), word(from[2]), word(from[1]), word(from[0]));
      Coefficient columns[8];
      _mm512_storeu_si512(columns, turned(rows));
#pragma GCC unroll 8
      for (int p = 0; p < 8; ++p) {
        const __m512i column = _mm512_set1_epi64(word(columns[p]));
        const __m512i bytes = _mm512_gf2p8affine_epi64_epi8(column, matrices_, 0);
        _mm512_storeu_si512(to + 8 * p, turned(bytes));
      }
    }

   private:
    static MBLAS_INLINE long long word(Coefficient c) { return static_cast<long long>(c); }
    static MBLAS_INLINE long long word(const std::uint8_t* p) {
      long long v;
      __builtin_memcpy(&v, p, 8);
      return v;
    }
    /// The transpose of 8×8 bytes.
    static MBLAS_INLINE __m512i turned(__m512i x) {
      using Words = Vector<std::uint16_t>;
      // Of each two rows, in one lane, the bytes of a column side by side; then those pairs.
      const __m512i pairs = _mm512_set4_epi32(0x0f070e06, 0x0d050c04, 0x0b030a02, 0x09010800);
      const Words columns = {0, 8,  16, 24, 1, 9,  17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
                             4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31};
      return _mm512_permutexvar_epi16(__m512i(columns), _mm512_shuffle_epi8(x, pairs));
    }

    __m512i matrices_;
  };
#endif

  static MBLAS_INLINE Factor factor(const Bytes& x) { return x; }
  static MBLAS_INLINE Operator expand(const Coefficient& c) {
#if defined(__AVX512F__)
    __m512i m = _mm512_set1_epi64(static_cast<long long>(c));
#ifdef __clang__
    // Clang 14 encodes a wrong address where the transformation itself reads c and repeats it.
    asm("" : "+v"(m));
#endif
    return Bytes(m);
#else
    return Bytes(_mm256_set1_epi64x(static_cast<long long>(c)));
#endif
  }
  static MBLAS_INLINE Bytes product(const Operator& m, const Factor& x) {
#if defined(__AVX512F__)
    return Bytes(_mm512_gf2p8affine_epi64_epi8(__m512i(x), __m512i(m), 0));
#else
    return Bytes(_mm256_gf2p8affine_epi64_epi8(__m256i(x), __m256i(m), 0));
#endif
  }
  static MBLAS_INLINE Bytes add(const Bytes& sum, const Operator& m, const Factor& x) {
    return sum ^ product(m, x);
  }
};

}  // namespace

void gf256_affine_columns(const Gf256Columns& g) { columns<Affine>(g); }

}  // namespace mblas::cpu::MBLAS_ISA
