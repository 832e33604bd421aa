// A few vectors of bfloat16 times a matrix, by AVX-512's products of pairs (VDPBF16PS). They take
// subnormal numbers for zero and flush subnormal results: parts of the result for which the
// magnitudes do not rule that out are left to others, as dot.cpp has it.
#include "cpu/gemm/thin_dot.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

struct Bf16 {
  using Element = std::uint16_t;
  using Sum = float;
  using Sums = __m512;
  struct Start {};
  static constexpr bool kLimited = true;

  /// Twice the bits, which leaves out the sign.
  struct Watch {
    __m512i most = {},
            least = _mm512_set1_epi16(-1);  // the latter less 1, so that 0 is the largest

    MBLAS_INLINE void note(__m512i m) {
      const __m512i twice = _mm512_add_epi16(m, m);
      most = _mm512_max_epu16(most, twice);
      least = _mm512_min_epu16(least, _mm512_sub_epi16(twice, _mm512_set1_epi16(1)));
    }
    MBLAS_INLINE bool beyond(const DotLimits& limits) const {
      const auto bits = [](int exponent) __attribute__((always_inline)) {
        return _mm512_set1_epi16(short(smaller(larger(exponent + 127, 0), 255) << 8));
      };
      const __m512i lower = _mm512_sub_epi16(bits(limits.least), _mm512_set1_epi16(1));
      return (_mm512_cmpge_epu16_mask(most, bits(limits.most + 1)) |
              _mm512_cmplt_epu16_mask(least, lower)) != 0;
    }
  };
  static MBLAS_INLINE void note(DotRange& range, Element x) {
    const std::uint32_t bits = std::uint32_t(x & 0x7fff) << 16;
    range.most = bits > range.most ? bits : range.most;
    range.least = bits - 1 < range.least - 1 ? bits : range.least;
  }

  static MBLAS_INLINE __m512i all(const Element* p) { return _mm512_loadu_si512(p); }
  static MBLAS_INLINE __m512i first(const Element* p, int count) {
    return _mm512_maskz_loadu_epi16(~__mmask32(0) >> (32 - count), p);
  }
  static MBLAS_INLINE Sums add(Sums sums, __m512i m, __m512i x) {
    return _mm512_dpbf16_ps(sums, __builtin_bit_cast(__m512bh, m), __builtin_bit_cast(__m512bh, x));
  }

  static MBLAS_INLINE Start start(const Element*, std::int64_t, std::int64_t) { return {}; }
  static MBLAS_INLINE Sums begin(Sums sums, Start) { return sums; }
  static MBLAS_INLINE Sum total(Sums sums, Start) { return _mm512_reduce_add_ps(sums); }

  static MBLAS_INLINE Sums load(const Sum* y) { return _mm512_loadu_ps(y); }
  static MBLAS_INLINE Sums load(const Sum* y, __mmask16 some) {
    return _mm512_maskz_loadu_ps(some, y);
  }
  static MBLAS_INLINE void store(Sum* y, Sums sums) { _mm512_storeu_ps(y, sums); }
  static MBLAS_INLINE void store(Sum* y, Sums sums, __mmask16 some) {
    _mm512_mask_storeu_ps(y, some, sums);
  }

  /// Two rows of 32 columns become halves of these, with the pair of each column.
  static MBLAS_INLINE void interleave(__m512i (&m)[2]) {
    // The unpacking takes the fours of columns 0, 2, 4, 6, then 1, 3, 5, 7.
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    m[0] = _mm512_permutexvar_epi64(order, m[0]);
    m[1] = _mm512_permutexvar_epi64(order, m[1]);
    const __m512i low = _mm512_unpacklo_epi16(m[0], m[1]);
    m[1] = _mm512_unpackhi_epi16(m[0], m[1]);
    m[0] = low;
  }
};

}  // namespace

constinit const ThinKernels thin_kernels[1] = {row<Bf16>(DType::bf16)};

}  // namespace mblas::cpu::MBLAS_ISA
