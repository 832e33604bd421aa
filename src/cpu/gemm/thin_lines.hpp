// Lines of a matrix of bytes or bfloat16 for the instructions that multiply the elements of four
// bytes and add the products up: how rows are interleaved, and a Watch, which sees all elements and
// tells whether one is beyond the limits.
#pragma once

#include "cpu/gemm/thin_parts.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

struct ByteLines {
  using Element = std::int8_t;
  static constexpr bool kLimited = false;

  struct Watch {
    static MBLAS_INLINE void note(__m512i) {}
    static MBLAS_INLINE bool beyond(const DotLimits&) { return false; }
  };
  static MBLAS_INLINE void note(DotRange&, Element) {}

  /// Four rows of 64 columns become the four bytes of each column, quarter i those of fours i,
  /// i + 4, i + 8 and i + 12 of the columns.
  static MBLAS_INLINE void interleave(__m512i (&m)[4]) {
    const __m512i low01 = _mm512_unpacklo_epi8(m[0], m[1]);
    const __m512i low23 = _mm512_unpacklo_epi8(m[2], m[3]);
    const __m512i high01 = _mm512_unpackhi_epi8(m[0], m[1]);
    const __m512i high23 = _mm512_unpackhi_epi8(m[2], m[3]);
    m[0] = _mm512_unpacklo_epi16(low01, low23);
    m[1] = _mm512_unpackhi_epi16(low01, low23);
    m[2] = _mm512_unpacklo_epi16(high01, high23);
    m[3] = _mm512_unpackhi_epi16(high01, high23);
  }
  /// Four bytes of each column, as interleave() leaves them, in the order of the columns.
  static MBLAS_INLINE void order(__m512i (&m)[4]) {
    const __m512i low01 = _mm512_shuffle_i32x4(m[0], m[1], 0x44);
    const __m512i low23 = _mm512_shuffle_i32x4(m[2], m[3], 0x44);
    const __m512i high01 = _mm512_shuffle_i32x4(m[0], m[1], 0xee);
    const __m512i high23 = _mm512_shuffle_i32x4(m[2], m[3], 0xee);
    m[0] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    m[1] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
    m[2] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    m[3] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
  }
};

struct Bf16Lines {
  using Element = std::uint16_t;
  static constexpr bool kLimited = true;

  /// Twice the bits, which leaves out the sign; the least one less 1, so that 0 is the largest.
  struct Watch {
    __m512i most = {}, least = _mm512_set1_epi16(-1);

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

  /// Two rows of 32 columns become the pair of each column, first those of fours 0, 2, 4 and 6 of
  /// the columns.
  static MBLAS_INLINE void interleave(__m512i (&m)[2]) {
    const __m512i low = _mm512_unpacklo_epi16(m[0], m[1]);
    m[1] = _mm512_unpackhi_epi16(m[0], m[1]);
    m[0] = low;
  }
  /// Four bytes of each column, as interleave() leaves them, in the order of the columns.
  static MBLAS_INLINE void order(__m512i (&m)[2]) {
    const __m512i low = _mm512_shuffle_i32x4(m[0], m[1], 0x44);
    const __m512i high = _mm512_shuffle_i32x4(m[0], m[1], 0xee);
    m[0] = _mm512_shuffle_i32x4(low, low, 0xd8);
    m[1] = _mm512_shuffle_i32x4(high, high, 0xd8);
  }
};

/// Elements that are added up at once; rows that are interleaved, and registers of sums then.
template <class T>
constexpr int kDepth = int(4 / sizeof(typename T::Element));
/// Elements of a line.
template <class T>
constexpr int kWidth = kDepth<T> * 16;

}  // namespace
}  // namespace mblas::cpu::MBLAS_ISA
