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

  static MBLAS_INLINE Factor factor(const Bytes& x) { return x; }
  static MBLAS_INLINE Operator expand(const Coefficient& c) {
#if defined(__AVX512F__)
    return Bytes(_mm512_set1_epi64(static_cast<long long>(c)));
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
