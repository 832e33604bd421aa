// Products over GF(2^8) by GFNI's affine transformation.
//
// A product with a fixed coefficient is linear over GF(2): an 8×8 matrix of bits times the bits of
// a byte, which VGF2P8AFFINEQB does for a whole vector, whatever the field's polynomial. (Its
// sibling GF2P8MULB knows x^8 + x^4 + x^3 + x + 1 alone.) One such instruction a cycle is what the
// CPUs that have it do, so a coefficient costs a cycle for each vector of B: the loads are shared
// among rows and columns, and one three-way sum takes two products.
// Measured with 10 + 4 shards on a core of an Emerald Rapids Xeon, bytes of all of them, against
// ISA-L 2.32.1: 55 GB/s for shards of 64 KB, 1.2 times as fast; 15.6 GB/s for 16 MB, 1.5 times.
#include "cpu/gf256/columns.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

struct Affine {
  using Coefficient = std::uint64_t;
  using Factor = Bytes;
  using Operator = Bytes;
#if defined(__AVX512F__)
  static constexpr int kRows = 8, kStep = 2;
#else
  static constexpr int kRows = 4, kStep = 1;
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
