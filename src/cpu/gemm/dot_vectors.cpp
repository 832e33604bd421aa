// The product of packed panels by the dot-product instructions of AVX-512: of pairs of bfloat16
// numbers (VDPBF16PS) and of fours of bytes (VPDPBUSD).
//
// Limited by those instructions, one a cycle of 16 sums. Up to 11 rows by two vectors of sums,
// which do not wait for each other, take two loads of B and 11 broadcasts of A a step; panels of 32
// rows are slices of 11, 11 and 10 (of 8: 1024³ of bfloat16 0.87 as fast). On a Zen 4 EPYC it
// reaches 0.90 of the instructions' peak, packing included, of bfloat16 and 0.87 of bytes.
//
// What is ahead of B is fetched to the second-level cache: of one that memory holds, 8 rows of
// 4096×4096 take 1.5 ms instead of 3.7 in bfloat16 and 0.9 instead of 2.2 in bytes on that EPYC.
//
// The bytes of one operand have no sign: those of A are packed with 128 added, and 128 times the
// sum of a column of B, which its panel's tail has, is taken off again, all in 32 bits that may
// wrap. (Computed anew for each strip of A, these sums took 9 to 13 percent of 1024³.) Pairs of
// bfloat16 are added one by one, each product and sum rounded once. Subnormal numbers count as zero
// and become zero: dot.cpp keeps operands away that would make some.
#include <utility>

#include "cpu/gemm/dot_panels.hpp"

namespace mblas::cpu::dot {
namespace {

constexpr int kMostRows = 11;  // of a panel, with sums in registers at a time
constexpr int kGroups = 16;    // of four bytes of depth in a step
// Panels of both operands come from the second-level cache in time, so that sums may stay for long
// (over blocks of 16 steps and strips of 8, bfloat16 1024³ to 3000×700×3000 on a Zen 5 are 1.06 to
// 1.1 times as fast, bytes 3000³ 1.06).
constexpr int kStrip = 4, kMostSteps = 64;

struct FloatDot {
  using A = Bf16;
  using B = Bf16;
  using Sums = __m512;
  static constexpr bool kOffset = false;
  static MBLAS_INLINE Sums add(Sums sums, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sums, __builtin_bit_cast(__m512bh, a), __builtin_bit_cast(__m512bh, b));
  }
};

struct OffsetInt8 : Int8 {
  static MBLAS_INLINE __m512i offset(__m512i x) {
    return _mm512_xor_si512(x, _mm512_set1_epi8(char(0x80)));
  }
  static MBLAS_INLINE void row(const Element* x, std::int64_t count, __m512i* planes, Extremes& e) {
    Int8::row(x, count, planes, e);
    planes[0] = offset(planes[0]);
  }
  static MBLAS_INLINE void group(const Element* x, std::int64_t stride, std::int64_t depth,
                                 std::int64_t members, __m512i* planes, Extremes& e) {
    Int8::group(x, stride, depth, members, planes, e);
    planes[0] = offset(planes[0]);
  }
};

/// Panels of B, and in their tails what the offset of A adds to the sums of their columns.
void pack_b_of_offset(const DotPack& x) {
  pack<Int8, true>(x);
  const __m512i offset = OffsetInt8::offset(_mm512_setzero_si512());
  const std::int64_t steps = (x.k + Int8::kStep - 1) / Int8::kStep;
  std::byte* panel = x.to;
  for (std::int64_t j = 0; j < x.members; j += kDotPanel, panel += x.panel_bytes) {
    constexpr int kChains = 4;  // of each tile: one alone waits for the instruction's result
    __m512i sums[2][kChains] = {};
    const std::byte* b = panel;
    for (std::int64_t s = 0; s < steps; ++s, b += kDotPlaneStep)
#pragma GCC unroll 1
      for (int g = 0; g < kGroups; g += kChains)
#pragma GCC unroll 4
        for (int c = 0; c < kChains; ++c)
#pragma GCC unroll 2
          for (int t = 0; t < 2; ++t)
            sums[t][c] = _mm512_dpbusd_epi32(sums[t][c], offset,
                                             _mm512_load_si512(b + t * kTile + (g + c) * kRow));
    std::byte* const tail = panel + x.panel_bytes - kDotTail;
    for (int t = 0; t < 2; ++t)
      _mm512_store_si512(tail + t * kRow,
                         _mm512_add_epi32(_mm512_add_epi32(sums[t][0], sums[t][1]),
                                          _mm512_add_epi32(sums[t][2], sums[t][3])));
  }
}

struct IntegerDot {
  using A = OffsetInt8;
  using B = Int8;
  using Sums = __m512i;
  static constexpr bool kOffset = true;
  static MBLAS_INLINE Sums add(Sums sums, __m512i a, __m512i b) {
    return _mm512_dpbusd_epi32(sums, a, b);
  }
};

template <class Dot, class Out>
class Multiplier {
 public:
  using Element = typename Out::Element;
  using Sums = typename Dot::Sums;

  explicit Multiplier(const DotBlock& block) : x_(block) {}

  void run() {
    for_each_pair<Element>(
        x_, kDotPlaneStep, [] {}, [&](const Pair& pair) { multiply(pair); });
  }

 private:
  using Pair = DotPair<Element>;

  /// Rows of a pair in slices of nearly equal height.
  void multiply(const Pair& pair) {
    const std::int64_t slices = (pair.rows + kMostRows - 1) / kMostRows;
    const std::int64_t height = pair.rows / slices, taller = pair.rows % slices;
    for (std::int64_t s = 0, i = 0; s < slices; ++s) {
      const std::int64_t rows = height + (s < taller);
      (this->*kMultiplyRows.of[pair.cols > 16][rows - 1])(pair, i);
      i += rows;
    }
  }

  /// Rows of the pair's, from row i0 on.
  template <int Rows, int Cols>
  void multiply_rows(const Pair& pair, std::int64_t i0) {
    Sums sums[Rows][Cols];
#pragma GCC unroll 11
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int t = 0; t < Cols; ++t) {
        sums[i][t] = Sums{};
        if (pair.from)
          sums[i][t] = *reinterpret_cast<const Sums*>(pair.from + row_of_sums(i0 + i) + t * kTile);
        if constexpr (Dot::kOffset)
          if (pair.tail)
            sums[i][t] = _mm512_sub_epi32(sums[i][t], _mm512_load_si512(pair.tail + t * kRow));
      }
    const std::byte* a = pair.a + i0 * kRow;
    const std::byte* b = pair.b;
    for (std::int64_t s = 0; s < pair.steps; ++s) {
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        __m512i x[Cols];
#pragma GCC unroll 2
        for (int t = 0; t < Cols; ++t) {
          x[t] = _mm512_load_si512(b + t * kTile + g * kRow);
          _mm_prefetch(b + kAhead * kDotPlaneStep + t * kTile + g * kRow, _MM_HINT_T1);
        }
#pragma GCC unroll 11
        for (int i = 0; i < Rows; ++i) {
          int four;
          __builtin_memcpy(&four, a + i * kRow + g * 4, sizeof four);
#pragma GCC unroll 2
          for (int t = 0; t < Cols; ++t)
            sums[i][t] = Dot::add(sums[i][t], _mm512_set1_epi32(four), x[t]);
        }
      }
      a += kDotPlaneStep;
      b += kDotPlaneStep;
    }
#pragma GCC unroll 11
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int t = 0; t < Cols; ++t)
        *reinterpret_cast<Sums*>((pair.to ? pair.to + row_of_sums(i0 + i) : x_.buffer + i * kRow) +
                                 t * kTile) = sums[i][t];
    if (!pair.to)
      write_back<Out>(x_.buffer, pair.C + i0 * x_.ldc, x_.ldc, Rows, pair.cols, x_.alpha, x_.beta);
  }

  using MultiplyRows = void (Multiplier::*)(const Pair&, std::int64_t);
  struct Table {
    MultiplyRows of[2][kMostRows];  // [both tiles of columns][rows - 1]
  };
  template <int... I>
  static constexpr Table table(std::integer_sequence<int, I...>) {
    return {{{&Multiplier::multiply_rows<I + 1, 1>...}, {&Multiplier::multiply_rows<I + 1, 2>...}}};
  }
  static constexpr Table kMultiplyRows = table(std::make_integer_sequence<int, kMostRows>());

  const DotBlock& x_;
};

template <class Dot, class Out>
void multiply(const DotBlock& x) {
  Multiplier<Dot, Out>(x).run();
}

void nothing() {}

template <class Dot, class Out>
constexpr DotKernel row(DType in, DType out) {
  return {in,
          out,
          1,
          Dot::B::kStep,
          kStrip,
          kMostSteps,
          pack<typename Dot::A, false>,
          Dot::kOffset ? pack_b_of_offset : pack<typename Dot::B, true>,
          multiply<Dot, Out>,
          nothing,
          nothing};
}

}  // namespace

constinit const DotKernel gemm_kernels[3] = {
    row<IntegerDot, ToI32>(DType::i8, DType::i32),
    row<FloatDot, ToBf16>(DType::bf16, DType::bf16),
    row<FloatDot, ToF32>(DType::bf16, DType::f32),
};

}  // namespace mblas::cpu::dot
