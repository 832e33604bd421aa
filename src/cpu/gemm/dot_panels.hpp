// Packing of panels, and the way of finished sums to C: what the files of dot-product instructions
// share. For AVX-512 with what the including file is compiled for.
//
// half and float are split into planes: x = x1 + x2 (+ x3), exactly, each a bfloat16.
#pragma once

#include <immintrin.h>

#include "cpu/gemm/dot.hpp"

#define MBLAS_INLINE inline __attribute__((always_inline))

namespace mblas::cpu {
namespace {

constexpr int kTile = 1 << 10;  // bytes
constexpr std::int64_t kRow = 64;
constexpr std::int64_t kRowsAtOnce = 8;  // of C that are written between two steps
constexpr std::int64_t kAhead = 16;      // steps: what is fetched to the second-level cache

MBLAS_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
MBLAS_INLINE std::uint64_t low_bits(std::int64_t n) {
  return n >= 64 ? ~std::uint64_t{0} : n <= 0 ? 0 : (std::uint64_t{1} << n) - 1;
}

/// Least - 1 (so that 0 counts as most) and most of the magnitudes seen, lane by lane.
struct Extremes {
  __m512i least, most;
};

struct Bf16 {
  using Element = std::uint16_t;
  static constexpr int kPlanes = 1, kStep = 32;

  static MBLAS_INLINE void widen_range(Extremes& e, __m512i x) {
    const __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi16(0x7fff));
    e.most = _mm512_max_epu16(e.most, magnitude);
    e.least = _mm512_min_epu16(e.least, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
  }
  static MBLAS_INLINE void merge(DotRange& range, const Extremes& e) {
    const auto low = [](__m512i x) { return _mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)); };
    const auto high = [](__m512i x) {
      return _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x, 1));
    };
    const std::uint32_t most = _mm512_reduce_max_epu32(_mm512_max_epu32(low(e.most), high(e.most)));
    const std::uint32_t least =
        _mm512_reduce_min_epu32(_mm512_min_epu32(low(e.least), high(e.least)));
    if (range.most < most << 16) range.most = most << 16;
    if (least != 0xffff && range.least > (least + 1) << 16) range.least = (least + 1) << 16;
  }
  /// One member's `count` elements of a step.
  static MBLAS_INLINE void row(const Element* x, std::int64_t count, __m512i* planes, Extremes& e) {
    planes[0] = _mm512_maskz_loadu_epi16(__mmask32(low_bits(count)), x);
    widen_range(e, planes[0]);
  }
  /// Four bytes of depth, the first `depth` of them existing, of up to 16 members.
  static MBLAS_INLINE void group(const Element* x, std::int64_t stride, std::int64_t depth,
                                 std::int64_t members, __m512i* planes, Extremes& e) {
    const auto load = [&](std::int64_t p) __attribute__((always_inline)) {
      return p < depth ? _mm512_cvtepu16_epi32(
                             _mm256_maskz_loadu_epi16(__mmask16(low_bits(members)), x + p * stride))
                       : _mm512_setzero_si512();
    };
    planes[0] = _mm512_or_si512(load(0), _mm512_slli_epi32(load(1), 16));
    widen_range(e, planes[0]);
  }
};

struct Int8 {
  using Element = std::int8_t;
  static constexpr int kPlanes = 1, kStep = 64;

  static MBLAS_INLINE void merge(DotRange&, const Extremes&) {}
  static MBLAS_INLINE void row(const Element* x, std::int64_t count, __m512i* planes, Extremes&) {
    planes[0] = _mm512_maskz_loadu_epi8(__mmask64(low_bits(count)), x);
  }
  static MBLAS_INLINE void group(const Element* x, std::int64_t stride, std::int64_t depth,
                                 std::int64_t members, __m512i* planes, Extremes&) {
    const auto load = [&](std::int64_t p) __attribute__((always_inline)) {
      return p < depth ? _mm512_cvtepu8_epi32(
                             _mm_maskz_loadu_epi8(__mmask16(low_bits(members)), x + p * stride))
                       : _mm512_setzero_si512();
    };
    planes[0] = _mm512_or_si512(
        _mm512_or_si512(load(0), _mm512_slli_epi32(load(1), 8)),
        _mm512_or_si512(_mm512_slli_epi32(load(2), 16), _mm512_slli_epi32(load(3), 24)));
  }
};

/// x = planes[0] + … + planes[Planes - 1]: what rounding to bfloat16 leaves goes to the next plane.
/// `rows`: the planes keep the order low, high; else members of low and high lie side by side.
template <int Planes, bool Rows>
MBLAS_INLINE void split(__m512 low, __m512 high, __m512i* planes, Extremes& e) {
  const auto widen_range = [&](__m512 x) __attribute__((always_inline)) {
    const __m512i magnitude =
        _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    e.most = _mm512_max_epu32(e.most, magnitude);
    if constexpr (Planes == 3)
      e.least = _mm512_min_epu32(e.least, _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)));
  };
  widen_range(low);
  widen_range(high);
#pragma GCC unroll 3
  for (int p = 0; p < Planes; ++p) {
    const __m512i both = __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(high, low));
    if (Rows && p == Planes - 1) {
      planes[p] = both;
      break;
    }
    const __m512i a = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(both));
    const __m512i b =
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(both, 1)), 16);
    planes[p] = Rows ? both : _mm512_or_si512(a, b);
    low = _mm512_sub_ps(low, _mm512_castsi512_ps(_mm512_slli_epi32(a, 16)));
    high = _mm512_sub_ps(high, _mm512_castsi512_ps(b));
  }
}

MBLAS_INLINE void merge_floats(DotRange& range, const Extremes& e) {
  const std::uint32_t most = _mm512_reduce_max_epu32(e.most);
  const std::uint32_t least = _mm512_reduce_min_epu32(e.least);
  if (range.most < most) range.most = most;
  if (least != ~std::uint32_t{0} && range.least > least + 1) range.least = least + 1;
}

struct F16 {
  using Element = std::uint16_t;
  static constexpr int kPlanes = 2, kStep = 32;

  static MBLAS_INLINE void merge(DotRange& range, const Extremes& e) { merge_floats(range, e); }
  static MBLAS_INLINE void row(const Element* x, std::int64_t count, __m512i* planes, Extremes& e) {
    const __m512i v = _mm512_maskz_loadu_epi16(__mmask32(low_bits(count)), x);
    split<2, true>(_mm512_cvtph_ps(_mm512_castsi512_si256(v)),
                   _mm512_cvtph_ps(_mm512_extracti64x4_epi64(v, 1)), planes, e);
  }
  static MBLAS_INLINE void group(const Element* x, std::int64_t stride, std::int64_t depth,
                                 std::int64_t members, __m512i* planes, Extremes& e) {
    const auto load = [&](std::int64_t p) __attribute__((always_inline)) {
      return p < depth ? _mm512_cvtph_ps(
                             _mm256_maskz_loadu_epi16(__mmask16(low_bits(members)), x + p * stride))
                       : _mm512_setzero_ps();
    };
    split<2, false>(load(0), load(1), planes, e);
  }
};

struct F32 {
  using Element = float;
  static constexpr int kPlanes = 3, kStep = 32;

  static MBLAS_INLINE void merge(DotRange& range, const Extremes& e) { merge_floats(range, e); }
  static MBLAS_INLINE void row(const Element* x, std::int64_t count, __m512i* planes, Extremes& e) {
    const __m512 high = count > 16 ? _mm512_maskz_loadu_ps(__mmask16(low_bits(count - 16)), x + 16)
                                   : _mm512_setzero_ps();
    split<3, true>(_mm512_maskz_loadu_ps(__mmask16(low_bits(count)), x), high, planes, e);
  }
  static MBLAS_INLINE void group(const Element* x, std::int64_t stride, std::int64_t depth,
                                 std::int64_t members, __m512i* planes, Extremes& e) {
    const auto load = [&](std::int64_t p) __attribute__((always_inline)) {
      return p < depth ? _mm512_maskz_loadu_ps(__mmask16(low_bits(members)), x + p * stride)
                       : _mm512_setzero_ps();
    };
    split<3, false>(load(0), load(1), planes, e);
  }
};

/// Transposes a tile of 16x16 elements of four bytes in place.
MBLAS_INLINE void transpose_tile(std::byte* tile) {
  __m512i v[16], w[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) v[i] = _mm512_load_si512(tile + i * kRow);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {  // v[i + c]: column 4 l + c of rows i … i + 3 in its part l
    v[i] = _mm512_unpacklo_epi64(w[i], w[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(w[i], w[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(w[i + 1], w[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(w[i + 1], w[i + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i a = _mm512_shuffle_i32x4(v[c], v[4 + c], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(v[c], v[4 + c], 0xee);
    const __m512i d = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0x44);
    const __m512i f = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0xee);
    _mm512_store_si512(tile + c * kRow, _mm512_shuffle_i32x4(a, d, 0x88));
    _mm512_store_si512(tile + (4 + c) * kRow, _mm512_shuffle_i32x4(a, d, 0xdd));
    _mm512_store_si512(tile + (8 + c) * kRow, _mm512_shuffle_i32x4(b, f, 0x88));
    _mm512_store_si512(tile + (12 + c) * kRow, _mm512_shuffle_i32x4(b, f, 0xdd));
  }
}

template <class T>
MBLAS_INLINE void put(const __m512i* planes, std::byte* at) {
#pragma GCC unroll 3
  for (int p = 0; p < T::kPlanes; ++p) _mm512_store_si512(at + p * kDotPlaneStep, planes[p]);
}

/// A step of a panel whose members lie one after the other in memory, `members` ≤ 32, `count` ≤
/// T::kStep of depth. B: to be transposed.
template <class T, bool B>
MBLAS_INLINE void pack_rows(const typename T::Element* from, std::int64_t member,
                            std::int64_t members, std::int64_t count, std::byte* to, Extremes& e) {
  const __m512i zeros[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  for (int t = 0; t < 2 && t * 16 < members; ++t) {
    std::byte* const tile = to + t * kTile;
    const auto* x = from + t * 16 * member;
    const std::int64_t rows = smaller(16, members - t * 16);
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < rows; ++i) {
      __m512i planes[T::kPlanes];
      // Not to the first level: rows whose distance is a power of two share a few sets of that.
      _mm_prefetch(x + i * member + kAhead * T::kStep, _MM_HINT_T1);
      T::row(x + i * member, count, planes, e);
      put<T>(planes, tile + i * kRow);
    }
    for (std::int64_t i = rows; i < 16; ++i) put<T>(zeros, tile + i * kRow);
    if constexpr (B) {
#pragma GCC unroll 1
      for (int p = 0; p < T::kPlanes; ++p) transpose_tile(tile + p * kDotPlaneStep);
    }
  }
}

/// Groups [begin, end) of the 16 that are four bytes of depth each of a step of a panel whose
/// members lie side by side.
template <class T>
MBLAS_INLINE void pack_columns(const typename T::Element* from, std::int64_t depth,
                               std::int64_t members, std::int64_t count, int begin, int end,
                               std::byte* to, Extremes& e) {
  constexpr int kGroup = T::kStep / 16;  // elements of depth in a group
#pragma GCC unroll 4
  for (int g = begin; g < end; ++g) {
    const auto* x = from + g * kGroup * depth;
#pragma GCC unroll 4
    for (int p = 0; p < kGroup; ++p)  // of the groups that follow
      _mm_prefetch(x + ((end - begin) * kGroup + p) * depth, _MM_HINT_T1);
#pragma GCC unroll 2
    for (int t = 0; t < 2; ++t) {
      if (t * 16 >= members) break;
      __m512i planes[T::kPlanes];
      T::group(x + t * 16, depth, count - g * kGroup, members - t * 16, planes, e);
      put<T>(planes, to + t * kTile + g * kRow);
    }
  }
}

/// Panels whose members lie one after the other in memory.
template <class T, bool B>
void pack_long(const DotPack& x) {
  const auto* from = static_cast<const typename T::Element*>(x.from);
  std::byte* to = x.to;
  DotRange* range = x.ranges;
  for (std::int64_t i = 0; i < x.members; i += kDotPanel, ++range) {
    const std::int64_t members = smaller(kDotPanel, x.members - i);
    Extremes e{_mm512_set1_epi32(-1), _mm512_setzero_si512()};
    std::byte* step = to;
    for (std::int64_t p = 0; p < x.k; p += T::kStep) {
      const auto* at = from + i * x.member + p;
      if (members == kDotPanel && x.k - p >= T::kStep)  // known to the compiler in this copy
        pack_rows<T, B>(at, x.member, kDotPanel, T::kStep, step, e);
      else
        pack_rows<T, B>(at, x.member, members, smaller(T::kStep, x.k - p), step, e);
      step += T::kPlanes * kDotPlaneStep;
    }
    T::merge(*range, e);
    to += x.panel_bytes;
  }
}

/// Panels whose members lie side by side: many advance together, so that memory is read along its
/// rows.
template <class T, bool B>
void pack_wide(const DotPack& x) {
  constexpr int kTogether = 32;
  constexpr int kGroups = B ? 4 : 16;  // at a time: a whole tile where it is to be transposed
  constexpr int kDepth = T::kStep / 16;
  const auto* from = static_cast<const typename T::Element*>(x.from);
  const std::int64_t panels = (x.members + kDotPanel - 1) / kDotPanel;
  for (std::int64_t j0 = 0; j0 < panels; j0 += kTogether) {
    const std::int64_t together = smaller(kTogether, panels - j0);
    Extremes e[kTogether];
    for (int j = 0; j < together; ++j) e[j] = {_mm512_set1_epi32(-1), _mm512_setzero_si512()};
    std::byte* to = x.to + j0 * x.panel_bytes;
    for (std::int64_t p = 0; p < x.k; p += T::kStep) {
      for (int g = 0; g < 16; g += kGroups) {
        for (std::int64_t j = 0; j < together; ++j) {
          const std::int64_t i = (j0 + j) * kDotPanel;
          const auto* at = from + i + p * x.depth;
          std::byte* const step = to + j * x.panel_bytes;
          const std::int64_t members = smaller(kDotPanel, x.members - i);
          Extremes seen = e[j];
          if (members == kDotPanel && x.k - p >= (g + kGroups) * kDepth)
            pack_columns<T>(at + g * kDepth * x.depth, x.depth, kDotPanel, kGroups * kDepth, 0,
                            kGroups, step + g * kRow, seen);
          else
            pack_columns<T>(at, x.depth, members, x.k - p, g, g + kGroups, step, seen);
          e[j] = seen;
          if constexpr (!B) {
            for (int t = 0; t < 2 && t * 16 < members; ++t)
#pragma GCC unroll 1
              for (int q = 0; q < T::kPlanes; ++q)
                transpose_tile(step + t * kTile + q * kDotPlaneStep);
          }
        }
      }
      to += T::kPlanes * kDotPlaneStep;
    }
    for (std::int64_t j = 0; j < together; ++j) T::merge(x.ranges[j0 + j], e[j]);
  }
}

template <class T, bool B>
void pack(const DotPack& x) {
  if (x.depth == 1)
    pack_long<T, B>(x);
  else
    pack_wide<T, B>(x);
}

// C = alpha sums + beta C: up to 16 rows of up to 32 from two tiles. `plain`: C = sums, of which
// none is subnormal.

struct ToF32 {
  using Element = float;
  static constexpr bool kInteger = false;
  static MBLAS_INLINE __m512 load(const Element* c, __mmask16 mask) {
    return _mm512_maskz_loadu_ps(mask, c);
  }
  static MBLAS_INLINE void store(Element* c, __m512 x, __m512 y, __mmask16 mx, __mmask16 my,
                                 bool /*plain*/) {
    _mm512_mask_storeu_ps(c, mx, x);
    if (my) _mm512_mask_storeu_ps(c + 16, my, y);
  }
};
struct ToBf16 {
  using Element = std::uint16_t;
  static constexpr bool kInteger = false;
  static MBLAS_INLINE __m512 load(const Element* c, __mmask16 mask) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, c)), 16));
  }
  static MBLAS_INLINE void store(Element* c, __m512 x, __m512 y, __mmask16 mx, __mmask16 my,
                                 bool plain) {
    __m512i both = __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(y, x));
    // The instruction takes subnormal numbers for zero.
    constexpr int kSubnormal = 0x20;
    if (!plain && __builtin_expect((_mm512_fpclass_ps_mask(x, kSubnormal) |
                                    _mm512_fpclass_ps_mask(y, kSubnormal)) != 0,
                                   false))
      both = _mm512_inserti64x4(_mm512_castsi256_si512(rounded(x)), rounded(y), 1);
    _mm512_mask_storeu_epi16(c, __mmask32(mx) | __mmask32(my) << 16, both);
  }

 private:
  static MBLAS_INLINE __m256i rounded(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i nearest = _mm512_srli_epi32(
        _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
    const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(nearest, nan, quiet));
  }
};
struct ToF16 {
  using Element = std::uint16_t;
  static constexpr bool kInteger = false;
  static MBLAS_INLINE __m512 load(const Element* c, __mmask16 mask) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, c));
  }
  static MBLAS_INLINE void store(Element* c, __m512 x, __m512 y, __mmask16 mx, __mmask16 my,
                                 bool /*plain*/) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(x, kNearest)),
                                            _mm512_cvtps_ph(y, kNearest), 1);
    _mm512_mask_storeu_epi16(c, __mmask32(mx) | __mmask32(my) << 16, both);
  }
};
struct ToI32 {
  using Element = std::int32_t;
  static constexpr bool kInteger = true;
};

template <class Out>
void write_back(const std::byte* sums, typename Out::Element* C, std::int64_t ldc,
                std::int64_t rows, std::int64_t cols, double alpha, double beta) {
  const auto mx = __mmask16(low_bits(cols)), my = __mmask16(low_bits(cols - 16));
  const bool scaled = alpha != 1, added = beta != 0;
  const auto put_row = [&](const std::byte* row, auto* c, bool plain)
      __attribute__((always_inline)) {
    if constexpr (Out::kInteger) {
      const __m512i a = _mm512_set1_epi32(int(alpha)), b = _mm512_set1_epi32(int(beta));
      const auto put = [&](const std::byte* at, std::int32_t* y, __mmask16 mask)
          __attribute__((always_inline)) {
        __m512i x = _mm512_load_si512(at);
        if (!plain) x = _mm512_mullo_epi32(a, x);
        if (!plain && added)
          x = _mm512_add_epi32(x, _mm512_mullo_epi32(b, _mm512_maskz_loadu_epi32(mask, y)));
        _mm512_mask_storeu_epi32(y, mask, x);
      };
      put(row, c, mx);
      put(row + kTile, c + 16, my);
    } else {
      __m512 x = _mm512_load_ps(row), y = _mm512_load_ps(row + kTile);
      if (!plain && scaled) {
        const __m512 a = _mm512_set1_ps(float(alpha));
        x = _mm512_mul_ps(a, x);
        y = _mm512_mul_ps(a, y);
      }
      if (!plain && added) {
        const __m512 b = _mm512_set1_ps(float(beta));
        x = _mm512_fmadd_ps(b, Out::load(c, mx), x);
        y = _mm512_fmadd_ps(b, Out::load(c + 16, my), y);
      }
      Out::store(c, x, y, mx, my, plain);
    }
  };
  if (rows == kRowsAtOnce && !scaled && !added) {  // known to the compiler in this copy
#pragma GCC unroll 4
    for (int i = 0; i < kRowsAtOnce; ++i, C += ldc) put_row(sums + i * kRow, C, true);
  } else {
    for (std::int64_t i = 0; i < rows; ++i, C += ldc) put_row(sums + i * kRow, C, false);
  }
}

/// A pair of panels of a block, for some steps of the depth.
template <class Element>
struct DotPair {
  const std::byte *a, *b;
  std::int64_t steps;
  const std::byte* from;  // the sums so far; null: they start at 0
  std::byte* to;          // where they go; null: they are complete, and go to C
  Element* C;
  std::int64_t rows, cols;
  const std::byte* tail;  // of the panel of B, where its numbers are to be counted
};

/// Goes through the pairs of panels of a block, `steps_at_once` of the depth at a time:
/// begin() for each panel of B, then multiply(pair) for the panels of A that meet it.
template <class Element, class Begin, class Multiply>
MBLAS_INLINE void for_each_pair(const DotBlock& x, std::int64_t step_bytes, const Begin& begin,
                                const Multiply& multiply) {
  const std::int64_t m_panels = (x.m + kDotPanel - 1) / kDotPanel;
  const std::int64_t n_panels = (x.n + kDotPanel - 1) / kDotPanel;
  std::int64_t s = 0;
  do {  // once for no steps too
    const std::int64_t steps = smaller(x.steps_at_once, x.steps - s);
    const bool start = x.first && s == 0, finish = x.last && s + steps == x.steps;
    for (std::int64_t j = 0; j < n_panels; ++j) {
      const std::byte* const b = x.B + j * x.b_panel_bytes + s * step_bytes;
      begin();
      const std::byte* const tail = x.tail && s == 0 ? x.tail + j * x.b_panel_bytes : nullptr;
      for (std::int64_t i = 0; i < m_panels; ++i) {
        if (x.skip && x.skip[i * n_panels + j]) continue;
        std::byte* const sums = x.sums ? x.sums + (i * x.sums_row + j) * kDotSums : nullptr;
        multiply(DotPair<Element>{x.A + i * x.a_panel_bytes + s * step_bytes, b, steps,
                                  start ? nullptr : sums, finish ? nullptr : sums,
                                  static_cast<Element*>(x.C) + (i * x.ldc + j) * kDotPanel,
                                  smaller(kDotPanel, x.m - i * kDotPanel),
                                  smaller(kDotPanel, x.n - j * kDotPanel), tail});
      }
    }
    s += steps;
  } while (s < x.steps);
}

/// Where row i of a pair's sums is, in bytes: two tiles lie between the two rows of tiles.
MBLAS_INLINE std::int64_t row_of_sums(std::int64_t i) {
  return i / 16 * (2 * kTile) + i % 16 * kRow;
}

}  // namespace
}  // namespace mblas::cpu
