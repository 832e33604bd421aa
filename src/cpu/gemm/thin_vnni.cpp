// A few vectors of bytes times a matrix, by the products of four bytes that AVX-512 VNNI adds up
// (VPDPBUSD). The bytes of one operand have no sign: those of the matrix get 128 added as they are
// loaded, and 128 times the sum of a vector is taken off its sums, all in 32 bits that may wrap.
#include "cpu/gemm/thin_dot.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

struct Bytes : ByteLines {
  using Sum = std::uint32_t;
  using Sums = __m512i;
  using Start = int;

  /// Elements without sign; what is not among the first `count` meets zeros, or is not stored.
  static MBLAS_INLINE __m512i all(const Element* p) {
    return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(char(0x80)));
  }
  static MBLAS_INLINE __m512i first(const Element* p, int count) {
    const __mmask64 some = ~__mmask64(0) >> (64 - count);
    return _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, p), _mm512_set1_epi8(char(0x80)));
  }
  static MBLAS_INLINE Sums add(Sums sums, __m512i m, __m512i x) {
    return _mm512_dpbusd_epi32(sums, m, x);
  }

  /// What 128 more in every element of the matrix adds to a sum, taken from zero; of the `count`
  /// bytes at x, rounded up to groups of four, `stride` apart.
  static MBLAS_INLINE Start start(const Element* x, std::int64_t count, std::int64_t stride) {
    int sum = 0;
    for (std::int64_t p = 0; p < count; p += kDepth<Bytes>, x += stride)
      for (int i = 0; i < kDepth<Bytes>; ++i) sum += x[i];
    return int(-128u * unsigned(sum));
  }
  static MBLAS_INLINE Sums begin(Start start) { return _mm512_set1_epi32(start); }
  static MBLAS_INLINE Sum total(Sum sum, Start start) { return sum + Sum(start); }

  static MBLAS_INLINE Sums load(const Sum* y) { return _mm512_loadu_si512(y); }
  static MBLAS_INLINE void store(Sum* y, Sums sums) { _mm512_storeu_si512(y, sums); }
  static MBLAS_INLINE void store(Sum* y, Sums sums, __mmask16 some) {
    _mm512_mask_storeu_epi32(y, some, sums);
  }
};

}  // namespace

constinit const ThinKernels thin_kernels[1] = {row<Bytes>(DType::i8)};

}  // namespace mblas::cpu::MBLAS_ISA
