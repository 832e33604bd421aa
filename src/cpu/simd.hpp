// What the files that are compiled once per instruction set share: the vector width, conversions
// between stored and computed types, and the transpose of a block in registers. Everything is local
// to the including object (isa.hpp says why), which is why a header has an unnamed namespace here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "mblas/types.hpp"

#define MBLAS_INLINE inline __attribute__((always_inline))

namespace mblas::cpu::MBLAS_ISA {
namespace {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
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

MBLAS_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
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

// Transposes of square blocks that fill 16-byte registers. Interleaving row i with row i + N/2 is
// one step of the perfect shuffle of the block's elements; log2 N steps transpose it.

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

template <class V, int... I>
MBLAS_INLINE void interleave(const V& a, const V& b, V& low, V& high,
                             std::integer_sequence<int, I...>) {
  constexpr int n = sizeof...(I);
  low = __builtin_shufflevector(a, b, (I / 2 + I % 2 * n)...);
  high = __builtin_shufflevector(a, b, (n / 2 + I / 2 + I % 2 * n)...);
}

/// Rows of the block: elements in 16 bytes.
template <int Size>
inline constexpr int kBlock = 16 / Size;

template <int Size>
MBLAS_INLINE void transpose_registers(const std::byte* src, std::int64_t src_pitch, std::byte* dst,
                                      std::int64_t dst_pitch) {
  if constexpr (Size == 16) {
    __builtin_memcpy(dst, src, 16);
  } else {
    constexpr int n = kBlock<Size>;
    using V = Vector<typename Bits<Size>::type, 16>;
    V v[n], w[n];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) v[i] = load<V>(src + i * src_pitch);
#pragma GCC unroll 4
    for (int step = 1; step < n; step *= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < n / 2; ++i)
        interleave(v[i], v[i + n / 2], w[2 * i], w[2 * i + 1],
                   std::make_integer_sequence<int, n>());
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) v[i] = w[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) store(dst + i * dst_pitch, v[i]);
  }
}

/// dst (cols×rows) = transpose of src (rows×cols), of a size that the first-level cache holds.
template <int Size>
void transpose_block(const std::byte* src, std::int64_t src_pitch, std::byte* dst,
                     std::int64_t dst_pitch, std::int64_t rows, std::int64_t cols) {
  constexpr int n = kBlock<Size>;
  const std::int64_t whole_rows = rows / n * n, whole_cols = cols / n * n;
  const auto move = [&](std::int64_t i, std::int64_t j) {
    __builtin_memcpy(dst + j * dst_pitch + i * Size, src + i * src_pitch + j * Size, Size);
  };
  for (std::int64_t j = 0; j < whole_cols; j += n) {
    for (std::int64_t i = 0; i < whole_rows; i += n)
      transpose_registers<Size>(src + i * src_pitch + j * Size, src_pitch,
                                dst + j * dst_pitch + i * Size, dst_pitch);
    for (std::int64_t jj = j; jj < j + n; ++jj)
      for (std::int64_t i = whole_rows; i < rows; ++i) move(i, jj);
  }
  for (std::int64_t j = whole_cols; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i) move(i, j);
}

}  // namespace
}  // namespace mblas::cpu::MBLAS_ISA
