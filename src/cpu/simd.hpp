// What the files that are compiled once per instruction set share: the vector width, conversions
// between stored and computed types, and the transpose of a block in registers. Everything is local
// to the including object (isa.hpp says why), which is why a header has an unnamed namespace here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "mblas/types.hpp"

#define MBLAS_INLINE inline __attribute__((always_inline))

/// Before a loop whose rounds do not depend on each other.
#ifdef __clang__
#define MBLAS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MBLAS_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace mblas::cpu::MBLAS_ISA {
namespace {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
#if defined(__AVX512F__)
inline constexpr int kVectorRegisters = 32;
#else
inline constexpr int kVectorRegisters = 16;
#endif

template <class T, int Bytes = kVectorBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(Bytes)));
};
template <class T, int Bytes = kVectorBytes>
using Vector = typename VectorOf<T, Bytes>::type;
template <class T>
inline constexpr int kLanes = kVectorBytes / int(sizeof(T));

template <class V>
MBLAS_INLINE V load(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
MBLAS_INLINE void store(void* p, const V& v) {
  __builtin_memcpy(p, &v, sizeof v);
}

/// Keeps v in a register here, and whatever computed it apart from what uses it. Of a vector in
/// memory that few instructions use the compiler makes an operand of each, which loads it as often
/// (2 and 3 rows of `packed` on a Zen 4 took 1.2 to 1.4 times as long).
template <class V>
MBLAS_INLINE void pin([[maybe_unused]] V& v) {
#if defined(__AVX512F__)
  asm volatile("" : "+v"(v));
#elif defined(__x86_64__)
  asm volatile("" : "+x"(v));
#elif defined(__aarch64__)
  asm volatile("" : "+w"(v));
#endif
}

/// The sum of v's lanes, by halves.
template <class V>
MBLAS_INLINE auto add_lanes(const V& v) {
  if constexpr (sizeof(V) > 16) {
    using Half = Vector<std::remove_cvref_t<decltype(V{}[0])>, sizeof(V) / 2>;
    struct Halves {
      Half low, high;
    };
    const auto halves = __builtin_bit_cast(Halves, v);
    return add_lanes(halves.low + halves.high);
  } else if constexpr (sizeof(V) / sizeof(v[0]) == 4) {
    return (v[0] + v[2]) + (v[1] + v[3]);
  } else {
    return v[0] + v[1];
  }
}

/// Element e of the sums of which add_halves() has the lower (Half 0) or the upper halves: of more
/// than 16 bytes those of a before those of b, else likewise in every 16 bytes.
template <int Width, int Lane, int Half>
constexpr int half_of_group(int e, int n) {
  const int half = Width / 2, all = Width > Lane ? n : Lane, within = e % all;
  const int b = within >= all / 2, group = within % (all / 2) / half;
  return b * n + e - within + group * Width + Half * half + e % half;
}
/// The lower and the upper half of each group of Width lanes of a and b, added up.
template <int Width, class V, int... E>
MBLAS_INLINE V add_halves(const V& a, const V& b, std::integer_sequence<int, E...>) {
  constexpr int n = sizeof...(E), lane = int(16 * n / sizeof(V));
  return __builtin_shufflevector(a, b, half_of_group<Width, lane, 0>(E, n)...) +
         __builtin_shufflevector(a, b, half_of_group<Width, lane, 1>(E, n)...);
}
template <int Width, int N, class V>
MBLAS_INLINE V add_lanes_together(const V (&v)[N]) {
  constexpr int n = int(sizeof(V) / sizeof(v[0][0]));
  if constexpr (Width == 1) {
    return v[0];
  } else {
    V halves[(N + 1) / 2];
#pragma GCC unroll 8
    for (int i = 0; i < (N + 1) / 2; ++i)
      halves[i] = add_halves<Width>(v[2 * i], v[N == 1 ? 0 : 2 * i + 1],
                                    std::make_integer_sequence<int, n>());
    return add_lanes_together<Width / 2>(halves);
  }
}

/// Where add_lanes_together() leaves the sum of vector i.
template <class V, int... I>
MBLAS_INLINE V in_order(const V& sums, std::integer_sequence<int, I...>) {
  constexpr int groups = int(sizeof(V) / 16), each = int(sizeof...(I)) / groups;
  return __builtin_shufflevector(sums, sums, (I % groups * each + I / groups)...);
}

/// The sums of the lanes of Count vectors, to the bit those of add_lanes(), one after the other at
/// `to`, where there is room for whole vectors.
template <int Count, class V, class Lane>
MBLAS_INLINE void add_lanes_of(const V* v, Lane* to) {
  constexpr int n = int(sizeof(V) / sizeof(Lane));
  constexpr int now = Count < n ? Count : n, padded = int(std::bit_ceil(unsigned(now)));
  V some[padded];
#pragma GCC unroll 16
  for (int i = 0; i < padded; ++i) some[i] = v[i < now ? i : 0];
  store(to, in_order(add_lanes_together<n>(some), std::make_integer_sequence<int, n>()));
  if constexpr (Count > n) add_lanes_of<Count - n>(v + n, to + n);
}

#if defined(__AVX512F__)
MBLAS_INLINE __mmask16 first_lanes(int count) { return __mmask16((1u << count) - 1u); }
#elif defined(__AVX2__)
/// All bits of the first `count` lanes of `Size` bytes.
template <int Size>
MBLAS_INLINE __m256i first_lanes(int count) {
  if constexpr (Size == 4)
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  else
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
#endif

/// The first `count` lanes of a vector of 4- or 8-byte lanes, which may be shorter than the
/// instruction set's; the others are zero, and their memory is not touched.
template <class V>
MBLAS_INLINE V load_first(const void* p, int count) {
  using Lane = std::remove_cvref_t<decltype(V{}[0])>;
#if defined(__AVX512F__)
  const __mmask16 mask = first_lanes(count);
  if constexpr (sizeof(Lane) == 4) {
    if constexpr (sizeof(V) == 64)
      return __builtin_bit_cast(V, _mm512_maskz_loadu_epi32(mask, p));
    else if constexpr (sizeof(V) == 32)
      return __builtin_bit_cast(V, _mm256_maskz_loadu_epi32(__mmask8(mask), p));
    else
      return __builtin_bit_cast(V, _mm_maskz_loadu_epi32(__mmask8(mask), p));
  } else {
    if constexpr (sizeof(V) == 64)
      return __builtin_bit_cast(V, _mm512_maskz_loadu_epi64(__mmask8(mask), p));
    else if constexpr (sizeof(V) == 32)
      return __builtin_bit_cast(V, _mm256_maskz_loadu_epi64(__mmask8(mask), p));
    else
      return __builtin_bit_cast(V, _mm_maskz_loadu_epi64(__mmask8(mask), p));
  }
#elif defined(__AVX2__)
  const __m256i lanes = first_lanes<sizeof(Lane)>(count);
  if constexpr (sizeof(Lane) == 4) {
    if constexpr (sizeof(V) == 32)
      return __builtin_bit_cast(V, _mm256_maskload_epi32(static_cast<const int*>(p), lanes));
    else
      return __builtin_bit_cast(
          V, _mm_maskload_epi32(static_cast<const int*>(p), _mm256_castsi256_si128(lanes)));
  } else {
    if constexpr (sizeof(V) == 32)
      return __builtin_bit_cast(V, _mm256_maskload_epi64(static_cast<const long long*>(p), lanes));
    else
      return __builtin_bit_cast(
          V, _mm_maskload_epi64(static_cast<const long long*>(p), _mm256_castsi256_si128(lanes)));
  }
#else
  V v{};
  for (int i = 0; i < int(sizeof(V) / sizeof(Lane)); ++i)
    if (i < count) v[i] = static_cast<const Lane*>(p)[i];
  return v;
#endif
}
template <class V>
MBLAS_INLINE void store_first(void* p, const V& v, int count) {
  using Lane = std::remove_cvref_t<decltype(V{}[0])>;
#if defined(__AVX512F__)
  const __mmask16 mask = first_lanes(count);
  if constexpr (sizeof(V) == 64) {
    const __m512i bits = __builtin_bit_cast(__m512i, v);
    if constexpr (sizeof(Lane) == 4)
      _mm512_mask_storeu_epi32(p, mask, bits);
    else
      _mm512_mask_storeu_epi64(p, __mmask8(mask), bits);
  } else if constexpr (sizeof(V) == 32) {
    const __m256i bits = __builtin_bit_cast(__m256i, v);
    if constexpr (sizeof(Lane) == 4)
      _mm256_mask_storeu_epi32(p, __mmask8(mask), bits);
    else
      _mm256_mask_storeu_epi64(p, __mmask8(mask), bits);
  } else {
    const __m128i bits = __builtin_bit_cast(__m128i, v);
    if constexpr (sizeof(Lane) == 4)
      _mm_mask_storeu_epi32(p, __mmask8(mask), bits);
    else
      _mm_mask_storeu_epi64(p, __mmask8(mask), bits);
  }
#elif defined(__AVX2__)
  // Masked stores take some CPUs tens of cycles.
  const int bytes = count * int(sizeof(Lane));
  auto* to = static_cast<char*>(p);
  if (bytes >= int(sizeof(V))) {
    __builtin_memcpy(to, &v, sizeof v);
    return;
  }
  __m128i rest;
  if constexpr (sizeof(V) == 32) {
    const __m256i bits = __builtin_bit_cast(__m256i, v);
    rest = _mm256_castsi256_si128(bits);
    if (bytes & 16) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), rest);
      rest = _mm256_extracti128_si256(bits, 1);
      to += 16;
    }
  } else {
    rest = __builtin_bit_cast(__m128i, v);
  }
  if (bytes & 8) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), rest);
    rest = _mm_unpackhi_epi64(rest, rest);
    to += 8;
  }
  if (bytes & 4) _mm_storeu_si32(to, rest);
#else
  for (int i = 0; i < int(sizeof(V) / sizeof(Lane)); ++i)
    if (i < count) static_cast<Lane*>(p)[i] = v[i];
#endif
}

MBLAS_INLINE constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
MBLAS_INLINE constexpr std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
MBLAS_INLINE std::int64_t round_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b * b; }

// Stored elements as they are computed with. int8 and int32 become uint32, whose arithmetic wraps.
// The 16-bit conversions give the bits that types.hpp gives, without its branches.

MBLAS_INLINE float widen(float x) { return x; }
MBLAS_INLINE double widen(double x) { return x; }
MBLAS_INLINE std::uint32_t widen(std::int8_t x) { return std::uint32_t(std::int32_t(x)); }
MBLAS_INLINE std::uint32_t widen(std::int32_t x) { return std::uint32_t(x); }
MBLAS_INLINE float widen(const bfloat16& x) {
  return __builtin_bit_cast(float, std::uint32_t(x.bits) << 16);
}
MBLAS_INLINE float widen(const half& x) {
  const std::uint32_t sign = std::uint32_t(x.bits & 0x8000) << 16;
  const std::int32_t magnitude = x.bits & 0x7fff;
  const std::uint32_t shifted = std::uint32_t(magnitude) << 13;
  const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, float(magnitude) * 0x1p-24f);
  std::uint32_t bits = shifted + (112u << 23);
  bits = magnitude < 0x0400 ? subnormal : bits;
  bits = magnitude >= 0x7c00 ? shifted | 0x7f800000u : bits;
  return __builtin_bit_cast(float, bits | sign);
}

MBLAS_INLINE void narrow(float* p, float x) { *p = x; }
MBLAS_INLINE void narrow(double* p, double x) { *p = x; }
MBLAS_INLINE void narrow(std::int32_t* p, std::uint32_t x) { *p = std::int32_t(x); }
MBLAS_INLINE void narrow(bfloat16* p, float f) {
  const std::uint32_t x = __builtin_bit_cast(std::uint32_t, f);
  const std::uint32_t nan = (x >> 16) | 0x40u;
  const std::uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
  p->bits = std::uint16_t(std::int32_t(x & 0x7fffffffu) > 0x7f800000 ? nan : rounded);
}
MBLAS_INLINE void narrow(half* p, float f) {
  const std::uint32_t x = __builtin_bit_cast(std::uint32_t, f);
  const std::int32_t a = std::int32_t(x & 0x7fffffffu);
  const std::uint32_t u = std::uint32_t(a);
  const float shifted = __builtin_bit_cast(float, u) + 0.5f;
  const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, shifted) - 0x3f000000u;
  std::uint32_t bits = (u - (112u << 23) + 0xfffu + ((u >> 13) & 1u)) >> 13;
  bits = a < 0x38800000 ? subnormal : bits;
  bits = a >= 0x477ff000 ? 0x7c00u : bits;
  bits = a > 0x7f800000 ? 0x7e00u | ((u >> 13) & 0x3ffu) : bits;
  p->bits = std::uint16_t(bits | ((x >> 16) & 0x8000u));
}

/// A vector of the elements from p on, as they are computed with. (Masks in the intrinsics: GCC 12
/// finds its own headers' undefined vectors used uninitialized; and it takes generic vectors
/// apart.)
MBLAS_INLINE Vector<float> widened(const half* p) {
#if defined(__AVX512F__)
  return __builtin_bit_cast(
      Vector<float>,
      _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__AVX2__)
  return __builtin_bit_cast(Vector<float>,
                            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  Vector<float> v;
  for (int i = 0; i < kLanes<float>; ++i) v[i] = widen(p[i]);
  return v;
#endif
}
MBLAS_INLINE Vector<float> widened(const bfloat16* p) {
  using Bits = Vector<std::uint32_t>;
#if defined(__AVX512F__)
  const auto bits = __builtin_bit_cast(
      Bits,
      _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__AVX2__)
  const auto bits = __builtin_bit_cast(
      Bits, _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  Bits bits;
  for (int i = 0; i < kLanes<float>; ++i) bits[i] = p[i].bits;
#endif
  return __builtin_bit_cast(Vector<float>, bits << 16);
}
MBLAS_INLINE Vector<std::uint32_t> widened(const std::int8_t* p) {
  using V = Vector<std::uint32_t>;
#if defined(__AVX512F__)
  return __builtin_bit_cast(
      V, _mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif defined(__AVX2__)
  return __builtin_bit_cast(
      V, _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  V v;
  for (int i = 0; i < kLanes<std::uint32_t>; ++i) v[i] = widen(p[i]);
  return v;
#endif
}

#if defined(__AVX2__)
// Pairs of int16 numbers in lanes of 32 bits, which one instruction multiplies and adds up.

/// Of neighbours, twice as many as lanes.
MBLAS_INLINE Vector<std::uint32_t> pairs_along(const std::int8_t* p) {
#if defined(__AVX512F__)
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return __builtin_bit_cast(Vector<std::uint32_t>, _mm512_cvtepi8_epi16(bytes));
#else
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return __builtin_bit_cast(Vector<std::uint32_t>, _mm256_cvtepi8_epi16(bytes));
#endif
}
/// Of an element from p and one from `next` on.
MBLAS_INLINE Vector<std::uint32_t> pairs_across(const std::int8_t* p, const std::int8_t* next) {
  return (widened(p) & 0xffff) | widened(next) << 16;
}
/// In each lane the sum of the two products.
MBLAS_INLINE Vector<std::uint32_t> multiply_pairs(const Vector<std::uint32_t>& a,
                                                  const Vector<std::uint32_t>& b) {
#if defined(__AVX512F__)
  return __builtin_bit_cast(
      Vector<std::uint32_t>,
      _mm512_madd_epi16(__builtin_bit_cast(__m512i, a), __builtin_bit_cast(__m512i, b)));
#else
  return __builtin_bit_cast(
      Vector<std::uint32_t>,
      _mm256_madd_epi16(__builtin_bit_cast(__m256i, a), __builtin_bit_cast(__m256i, b)));
#endif
}
#endif

// Transposes of blocks in registers. Within 16 bytes: interleaving row i with row i + N/2 is one
// step of the perfect shuffle of N×N elements; log2 N steps transpose them. Wider vectors do so to
// all their 16-byte lanes at once; which rows and columns the lanes stand for is up to the loads
// and stores around it.

template <int Size>
struct Bits;
template <>
struct Bits<1> {
  using type = std::uint8_t;
};
template <>
struct Bits<2> {
  using type = std::uint16_t;
};
template <>
struct Bits<4> {
  using type = std::uint32_t;
};
template <>
struct Bits<8> {
  using type = std::uint64_t;
};
template <>
struct Bits<16> {
  using type = std::uint64_t;
};

/// Elements in a lane: rows and columns of the blocks that lanes transpose.
template <int Size>
inline constexpr int kBlock = 16 / Size;

/// Element e of the lanes of a and b interleaved, the lower (Half 0) or upper half of each.
template <int Lane, int Half>
constexpr int interleaved(int e, int n) {
  const int in_lane = e % Lane;
  return e - in_lane + Half * (Lane / 2) + in_lane / 2 + in_lane % 2 * n;
}
template <int Lane, class V, int... E>
MBLAS_INLINE void interleave(const V& a, const V& b, V& low, V& high,
                             std::integer_sequence<int, E...>) {
  constexpr int n = sizeof...(E);
  low = __builtin_shufflevector(a, b, interleaved<Lane, 0>(E, n)...);
  high = __builtin_shufflevector(a, b, interleaved<Lane, 1>(E, n)...);
}

/// Lane l of v[i] becomes column i of what the lanes l of v[0 … n) were the rows of.
template <int Size, class V>
MBLAS_INLINE void transpose_lanes(V* v) {
  constexpr int n = kBlock<Size>;
  if constexpr (n > 1) {
    V w[n];
#pragma GCC unroll 4
    for (int step = 1; step < n; step *= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < n / 2; ++i)
        interleave<n>(v[i], v[i + n / 2], w[2 * i], w[2 * i + 1],
                      std::make_integer_sequence<int, int(sizeof(V)) / Size>());
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) v[i] = w[i];
    }
  }
}

/// Lane l of a, b, c and d, of four lanes each, one after the other to put(l, …).
template <class Q, class Put>
MBLAS_INLINE void regroup_lanes(const Q& a, const Q& b, const Q& c, const Q& d, const Put& put) {
  const Q ab01 = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
  const Q ab23 = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  const Q cd01 = __builtin_shufflevector(c, d, 0, 1, 2, 3, 8, 9, 10, 11);
  const Q cd23 = __builtin_shufflevector(c, d, 4, 5, 6, 7, 12, 13, 14, 15);
  put(0, __builtin_shufflevector(ab01, cd01, 0, 1, 4, 5, 8, 9, 12, 13));
  put(1, __builtin_shufflevector(ab01, cd01, 2, 3, 6, 7, 10, 11, 14, 15));
  put(2, __builtin_shufflevector(ab23, cd23, 0, 1, 4, 5, 8, 9, 12, 13));
  put(3, __builtin_shufflevector(ab23, cd23, 2, 3, 6, 7, 10, 11, 14, 15));
}

/// Rows and columns of the largest block: vectors of a row each where all of them fit the
/// registers.
template <int Size, int Bytes = kVectorBytes>
inline constexpr int kSquare = Bytes / Size;

/// dst (Bytes / Size squared) = transpose of src, through vectors of Bytes.
template <int Size, int Bytes = kVectorBytes>
MBLAS_INLINE void transpose_square(const std::byte* src, std::int64_t src_pitch, std::byte* dst,
                                   std::int64_t dst_pitch) {
  constexpr int n = kBlock<Size>, lanes = Bytes / 16, side = n * lanes;
  using V = Vector<typename Bits<Size>::type, Bytes>;
  V v[side];
#pragma GCC unroll 64
  for (int i = 0; i < side; ++i) v[i] = load<V>(src + i * src_pitch);
#pragma GCC unroll 4
  for (int g = 0; g < lanes; ++g) transpose_lanes<Size>(v + g * n);
  // Now lane l of v[g n + i] is group g of the rows of column l n + i.
  using Q = Vector<std::uint64_t, Bytes>;
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    const auto column = [&](int l, const Q& x) __attribute__((always_inline)) {
      store(dst + (l * n + i) * dst_pitch, x);
    };
    if constexpr (lanes == 1) {
      column(0, __builtin_bit_cast(Q, v[i]));
    } else if constexpr (lanes == 2) {
      const Q a = __builtin_bit_cast(Q, v[i]), b = __builtin_bit_cast(Q, v[n + i]);
      column(0, __builtin_shufflevector(a, b, 0, 1, 4, 5));
      column(1, __builtin_shufflevector(a, b, 2, 3, 6, 7));
    } else {
      const Q a = __builtin_bit_cast(Q, v[i]), b = __builtin_bit_cast(Q, v[n + i]);
      const Q c = __builtin_bit_cast(Q, v[2 * n + i]), d = __builtin_bit_cast(Q, v[3 * n + i]);
      regroup_lanes(a, b, c, d, column);
    }
  }
}

/// Four, two or one 16-byte pieces, number l being piece(l), in the lanes of a vector.
template <class V, class Piece>
MBLAS_INLINE V join_lanes(const Piece& piece) {
#if defined(__AVX512F__)
  const auto at = [&](int l) __attribute__((always_inline)) {
    return __builtin_bit_cast(__m128i, piece(l));
  };
  const __m512i low = _mm512_inserti32x4(_mm512_castsi128_si512(at(0)), at(1), 1);
  return __builtin_bit_cast(V, _mm512_inserti32x4(_mm512_inserti32x4(low, at(2), 2), at(3), 3));
#elif defined(__AVX2__)
  const auto at = [&](int l) __attribute__((always_inline)) {
    return __builtin_bit_cast(__m128i, piece(l));
  };
  return __builtin_bit_cast(V, _mm256_inserti128_si256(_mm256_castsi128_si256(at(0)), at(1), 1));
#else
  return __builtin_bit_cast(V, piece(0));
#endif
}

/// The same, number l from at(l).
template <class V, class At>
MBLAS_INLINE V gather_lanes(const At& at) {
  return join_lanes<V>([&](int l) __attribute__((always_inline)) {
    return load<Vector<std::uint64_t, 16>>(at(l));
  });
}

/// The same of pieces `stride` apart.
template <class V>
MBLAS_INLINE V load_lanes(const std::byte* p, std::int64_t stride) {
  return gather_lanes<V>([ p, stride ](int l)
                             __attribute__((always_inline)) { return p + l * stride; });
}

/// The first Bytes, 4, 8 or 12, of 16, the others being zero; and back.
template <int Bytes>
MBLAS_INLINE Vector<std::uint64_t, 16> load_part(const std::byte* p) {
  std::uint64_t low = 0;
  std::uint32_t high = 0;
  if constexpr (Bytes == 4) {
    __builtin_memcpy(&high, p, 4);
    return Vector<std::uint64_t, 16>{high, 0};
  }
  __builtin_memcpy(&low, p, 8);
  if constexpr (Bytes == 12) __builtin_memcpy(&high, p + 8, 4);
  return Vector<std::uint64_t, 16>{low, high};
}
template <int Bytes>
MBLAS_INLINE void store_part(std::byte* p, const Vector<std::uint64_t, 16>& v) {
  const std::uint64_t low = v[0], high = v[1];
  __builtin_memcpy(p, &low, Bytes < 8 ? Bytes : 8);
  if constexpr (Bytes > 8) __builtin_memcpy(p + 8, &high, Bytes - 8);
}

/// dst (16 / Size rows of a vector) = transpose of src, for elements that are too small for
/// transpose_square: as many groups of rows as a vector has lanes.
template <int Size>
MBLAS_INLINE void transpose_tall(const std::byte* src, std::int64_t src_pitch, std::byte* dst,
                                 std::int64_t dst_pitch) {
  constexpr int n = kBlock<Size>;
  using V = Vector<typename Bits<Size>::type>;
  V v[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) v[i] = load_lanes<V>(src + i * src_pitch, n * src_pitch);
  transpose_lanes<Size>(v);
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) store(dst + i * dst_pitch, v[i]);
}

/// Rows of the tiles that transpose_tile transposes, a vector's worth, and their columns.
template <int Size>
inline constexpr int kTileRows = kSquare<Size>;
template <int Size>
inline constexpr int kTileCols = Size >= 4 ? kSquare<Size> : kBlock<Size>;

template <int Size>
MBLAS_INLINE void transpose_tile(const std::byte* src, std::int64_t src_pitch, std::byte* dst,
                                 std::int64_t dst_pitch) {
  if constexpr (Size >= 4)
    transpose_square<Size>(src, src_pitch, dst, dst_pitch);
  else
    transpose_tall<Size>(src, src_pitch, dst, dst_pitch);
}

/// dst (Cols rows) = transpose of src, Cols columns, fewer than a 16-byte piece has: as many rows
/// as there are whole pieces of, the count of which is returned.
template <int Size, int Cols>
std::int64_t transpose_strip(const std::byte* src, std::int64_t src_pitch, std::byte* dst,
                             std::int64_t dst_pitch, std::int64_t rows) {
  constexpr int n = kBlock<Size>;
  std::int64_t i = 0;
  const auto go = [&]<class V>(V) __attribute__((always_inline)) {
    constexpr int count = int(sizeof(V)) / Size;
    for (; i + count <= rows; i += count) {
      V v[n];
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) {
        const auto part = [&](int l) __attribute__((always_inline)) {
          return load_part<Cols * Size>(src + (i + l * n + r) * src_pitch);
        };
        if constexpr (sizeof(V) == 16)
          v[r] = __builtin_bit_cast(V, part(0));
        else
          v[r] = join_lanes<V>(part);
      }
      transpose_lanes<Size>(v);
#pragma GCC unroll 16
      for (int j = 0; j < Cols; ++j) store(dst + j * dst_pitch + i * Size, v[j]);
    }
  };
  go(Vector<typename Bits<Size>::type>{});
  if constexpr (kVectorBytes > 16) go(Vector<typename Bits<Size>::type, 16>{});
  return i;
}

/// dst (Rows columns) = transpose of src, Rows rows, fewer than a 16-byte piece has elements: as
/// many columns as there are whole pieces of, the count of which is returned.
template <int Size, int Rows>
std::int64_t transpose_rows(const std::byte* src, std::int64_t src_pitch, std::byte* dst,
                            std::int64_t dst_pitch, std::int64_t cols) {
  constexpr int n = kBlock<Size>;
  using V = Vector<typename Bits<Size>::type, 16>;
  std::int64_t j = 0;
  for (; j + n <= cols; j += n) {
    V v[n] = {};
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) v[i] = load<V>(src + i * src_pitch + j * Size);
    if constexpr (Rows == 2 && n == 4) {
      if (dst_pitch == 2 * Size) {  // what follows each other is stored together
        V pairs[2];
        interleave<n>(v[0], v[1], pairs[0], pairs[1], std::make_integer_sequence<int, n>());
        store(dst + j * dst_pitch, pairs[0]);
        store(dst + (j + 2) * dst_pitch, pairs[1]);
        continue;
      }
    }
    transpose_lanes<Size>(v);
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i)
      store_part<Rows * Size>(dst + (j + i) * dst_pitch,
                              __builtin_bit_cast(Vector<std::uint64_t, 16>, v[i]));
  }
  return j;
}

/// dst (cols×rows) = transpose of src (rows×cols), of a size that the first-level cache holds.
template <int Size>
void transpose_block(const std::byte* src, std::int64_t src_pitch, std::byte* dst,
                     std::int64_t dst_pitch, std::int64_t rows, std::int64_t cols) {
  constexpr int n = kBlock<Size>, tile_rows = kTileRows<Size>, tile_cols = kTileCols<Size>;
  const auto from = [&](std::int64_t i, std::int64_t j) { return src + i * src_pitch + j * Size; };
  const auto to = [&](std::int64_t i, std::int64_t j) { return dst + j * dst_pitch + i * Size; };
  const auto one_by_one = [&](std::int64_t i0, std::int64_t i1, std::int64_t j0, std::int64_t j1) {
    for (std::int64_t j = j0; j < j1; ++j)
      for (std::int64_t i = i0; i < i1; ++i) __builtin_memcpy(to(i, j), from(i, j), Size);
  };
  // Elements [i0, rows) of columns [j0, j1), in 16-byte blocks as far as those reach.
  const auto rest = [&](std::int64_t i0, std::int64_t j0, std::int64_t j1) {
    const std::int64_t whole_i = i0 + (rows - i0) / n * n;
    std::int64_t j = j0;
    for (; j + n <= j1; j += n) {
      std::int64_t i = i0;
      if constexpr (Size == 4 || Size == 8)
        for (; i + tile_rows <= rows; i += tile_rows)
          transpose_tall<Size>(from(i, j), src_pitch, to(i, j), dst_pitch);
      for (; i < whole_i; i += n)
        transpose_square<Size, 16>(from(i, j), src_pitch, to(i, j), dst_pitch);
    }
    std::int64_t done_i = i0, done_j = j0;
    if constexpr (Size == 4) {
      const auto strip = [&]<int Cols>(std::integral_constant<int, Cols>) {
        if (j1 - j == Cols)
          done_i +=
              transpose_strip<Size, Cols>(from(i0, j), src_pitch, to(i0, j), dst_pitch, rows - i0);
        if (rows - whole_i == Cols)
          done_j += transpose_rows<Size, Cols>(from(whole_i, j0), src_pitch, to(whole_i, j0),
                                               dst_pitch, j - j0);
      };
      strip(std::integral_constant<int, 1>());
      strip(std::integral_constant<int, 2>());
      strip(std::integral_constant<int, 3>());
    }
    one_by_one(whole_i, rows, done_j, j);
    one_by_one(done_i, rows, j, j1);
  };
  const std::int64_t whole_rows = rows / tile_rows * tile_rows;
  const std::int64_t whole_cols = whole_rows > 0 ? cols / tile_cols * tile_cols : 0;
  for (std::int64_t j = 0; j < whole_cols; j += tile_cols)
    for (std::int64_t i = 0; i < whole_rows; i += tile_rows)
      transpose_tile<Size>(from(i, j), src_pitch, to(i, j), dst_pitch);
  rest(whole_rows, 0, whole_cols);
  rest(0, whole_cols, cols);
}

}  // namespace
}  // namespace mblas::cpu::MBLAS_ISA
