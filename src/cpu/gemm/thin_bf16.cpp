// A few vectors of bfloat16 times a matrix, by AVX-512's products of pairs (VDPBF16PS). They take
// subnormal numbers for zero and flush subnormal results: parts of the result for which the
// magnitudes do not rule that out are left to others, as dot.cpp has it.
#include "cpu/gemm/thin_dot.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

struct Bf16 : Bf16Lines {
  using Sum = float;
  using Sums = __m512;
  struct Start {};

  static MBLAS_INLINE __m512i all(const Element* p) { return _mm512_loadu_si512(p); }
  static MBLAS_INLINE __m512i first(const Element* p, int count) {
    return _mm512_maskz_loadu_epi16(~__mmask32(0) >> (32 - count), p);
  }
  static MBLAS_INLINE Sums add(Sums sums, __m512i m, __m512i x) {
    return _mm512_dpbf16_ps(sums, __builtin_bit_cast(__m512bh, m), __builtin_bit_cast(__m512bh, x));
  }

  static MBLAS_INLINE Start start(const Element*, std::int64_t, std::int64_t) { return {}; }
  static MBLAS_INLINE Sums begin(Start) { return _mm512_setzero_ps(); }
  static MBLAS_INLINE Sum total(Sum sum, Start) { return sum; }

  static MBLAS_INLINE void order(Sums (&sums)[2]) {
    __m512i bits[] = {_mm512_castps_si512(sums[0]), _mm512_castps_si512(sums[1])};
    Bf16Lines::order(bits);
    for (int i = 0; i < 2; ++i) sums[i] = _mm512_castsi512_ps(bits[i]);
  }

  static MBLAS_INLINE Sums load(const Sum* y) { return _mm512_loadu_ps(y); }
  static MBLAS_INLINE void store(Sum* y, Sums sums) { _mm512_storeu_ps(y, sums); }
  static MBLAS_INLINE void store(Sum* y, Sums sums, __mmask16 some) {
    _mm512_mask_storeu_ps(y, some, sums);
  }
};

}  // namespace

constinit const ThinKernels thin_kernels[1] = {row<Bf16>(DType::bf16)};

}  // namespace mblas::cpu::MBLAS_ISA
