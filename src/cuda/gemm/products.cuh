// The products of some rows and columns, added to sums in registers.
#pragma once

#include "cuda/element.cuh"

namespace mblas::cuda {

/// What neighbours among multiply-adds share: elements of A, row by row, or of B, column by column.
enum class Reuse { A, B };

/// sum += a b in the register that `sum` has: named anew by each multiply-add, sums wander between
/// registers, and the order of products with them.
__device__ inline void add_in_place(float& sum, float a, float b) {
  asm("fma.rn.f32 %0, %1, %2, %0;" : "+f"(sum) : "f"(a), "f"(b));
}
__device__ inline void add_in_place(double& sum, double a, double b) { sum += a * b; }

/// sum += a b, or, kMixed, a conj(b); of complex numbers what the real (0) or the imaginary (1)
/// part of a gives with that of b.
template <bool kMixed, class T>
__device__ void add_part([[maybe_unused]] int part_a, [[maybe_unused]] int part_b, T a, T b,
                         T& sum) {
  if constexpr (is_complex_v<T>) {
    const auto x = part_a == 0 ? a.re : a.im;
    const auto y = part_b == 0 ? b.re : kMixed ? -b.im : b.im;
    if (part_a != part_b)
      add_in_place(sum.im, x, y);
    else
      add_in_place(sum.re, part_a == 0 ? x : -x, y);
  } else {
    sum += a * b;
  }
}

/// sum[r][c] += a(r) b(c), kMixed: a(r) conj(b(c)). There and back: each multiply-add shares an
/// operand with the one before, and so reads two registers and not three, of which a cycle has one
/// of each bank (docs/BENCHMARKING.md, "Complex sums in their registers"). Of complex numbers all
/// sums have their first product before any has its second, so that none waits for itself.
template <Reuse kReuse, bool kMixed = false, class T, int kRows, int kCols, class A, class B>
__device__ void add_products(const A& a, const B& b, T (&sum)[kRows][kCols]) {
  constexpr int kParts = is_complex_v<T> ? 2 : 1;
  constexpr bool kByColumns = kReuse == Reuse::B;
  constexpr int kOuter = kByColumns ? kCols : kRows;
  constexpr int kInner = (kByColumns ? kRows : kCols) * kParts;
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int o = 0; o < kOuter; ++o)
#pragma unroll
      for (int e = 0; e < kInner; ++e) {
        const int i = o % 2 == 0 ? e : kInner - 1 - e, inner = i / kParts, other = i % kParts;
        const int r = kByColumns ? inner : o, c = kByColumns ? o : inner;
        add_part<kMixed>(kByColumns ? other : part, kByColumns ? part : other, a(r), b(c),
                         sum[r][c]);
      }
}

}  // namespace mblas::cuda
