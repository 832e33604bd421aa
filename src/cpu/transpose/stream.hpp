// Stores past the caches, for files that are compiled once per instruction set; elsewhere than on
// x86 they are ordinary stores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/simd.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace mblas::cpu::MBLAS_ISA {
namespace {

inline constexpr std::int64_t kLine = 64;

/// Asks for the lines of `bytes` from `from` on, for the second-level cache.
MBLAS_INLINE void fetch_lines(const void* from, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += kLine)
    __builtin_prefetch(static_cast<const std::byte*>(from) + at, 0, 2);
}

/// A vector to `dst`, which is aligned to its size.
MBLAS_INLINE void stream_vector(void* dst, const Vector<std::uint8_t>& v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(dst), __m512i(v));
#elif defined(__AVX2__)
  _mm256_stream_si256(static_cast<__m256i*>(dst), __m256i(v));
#elif defined(__SSE2__)
  _mm_stream_si128(static_cast<__m128i*>(dst), __m128i(v));
#else
  store(dst, v);
#endif
}

/// A cache line from `src` to `dst`, which is aligned to it.
MBLAS_INLINE void stream_line(std::byte* dst, const std::byte* src) {
  constexpr int n = int(kLine) / kVectorBytes;
  Vector<std::uint8_t> v[n];
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) v[i] = load<Vector<std::uint8_t>>(src + i * kVectorBytes);
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) stream_vector(dst + i * kVectorBytes, v[i]);
}

/// Orders streamed lines before what follows.
MBLAS_INLINE void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// Bytes from the last line boundary to `p`.
MBLAS_INLINE std::int64_t line_offset(const void* p) {
  return std::int64_t(reinterpret_cast<std::uintptr_t>(p) % kLine);
}

/// Fewer than a line.
MBLAS_INLINE void copy_part(std::byte* dst, const std::byte* src, std::int64_t bytes) {
  if (bytes & 32) __builtin_memcpy(dst, src, 32), dst += 32, src += 32;
  if (bytes & 16) __builtin_memcpy(dst, src, 16), dst += 16, src += 16;
  if (bytes & 8) __builtin_memcpy(dst, src, 8), dst += 8, src += 8;
  if (bytes & 4) __builtin_memcpy(dst, src, 4), dst += 4, src += 4;
  if (bytes & 2) __builtin_memcpy(dst, src, 2), dst += 2, src += 2;
  if (bytes & 1) *dst = *src;
}

/// `bytes` from `src`: whole lines past the caches, what is before and after them through.
MBLAS_INLINE void stream_copy(std::byte* dst, const std::byte* src, std::int64_t bytes) {
  if (const std::int64_t before = (kLine - line_offset(dst)) % kLine; before > 0) {
    const std::int64_t head = smaller(before, bytes);
    copy_part(dst, src, head);
    dst += head, src += head, bytes -= head;
  }
  for (; bytes >= kLine; dst += kLine, src += kLine, bytes -= kLine) stream_line(dst, src);
  copy_part(dst, src, bytes);
}

}  // namespace
}  // namespace mblas::cpu::MBLAS_ISA
