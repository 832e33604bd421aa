// A block of C = alpha op(A) + beta op(B).
//
// Limited by memory. Operands that are not transposed stream by rows. A transposed one is read in
// kSide×kSide squares that pass through a buffer in the first-level cache, transposed in registers,
// so that every cache line is fetched once.
#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

constexpr int kSide = 32;

/// Stored elements; those of complex types as pairs of their real type.
template <class Stored, int Parts>
struct Types {
  using T = Stored;
  using Real = decltype(widen(T()));
  static constexpr int kParts = Parts;
  static constexpr int kSize = Parts * int(sizeof(T));
};

/// A scalar, with conjugation of its operand.
template <class Real>
struct Term {
  Real re, im, conjugate;  // conjugate: -1 or 1
};

/// x times the term, added to (re, im). A real scalar scales the parts: 0 times an infinite part
/// would make the other one NaN.
template <class Real, class T>
MBLAS_INLINE void add_complex(const Term<Real>& s, const T* x, Real& re, Real& im) {
  const Real x_re = x[0], x_im = s.conjugate * x[1];
  re += s.re * x_re;
  im += s.re * x_im;
  if (s.im != 0) {
    re -= s.im * x_im;
    im += s.im * x_re;
  }
}

// c may be a or b: element j is read before it is written, and no other element is.

template <class K>
void row_of_two(const typename K::T* a, const Term<typename K::Real>& alpha, const typename K::T* b,
                const Term<typename K::Real>& beta, typename K::T* c, std::int64_t n) {
  if constexpr (K::kParts == 1) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j)
      narrow(&c[j], alpha.re * widen(a[j]) + beta.re * widen(b[j]));
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) {
      typename K::Real re = 0, im = 0;
      add_complex(alpha, a + 2 * j, re, im);
      add_complex(beta, b + 2 * j, re, im);
      c[2 * j] = re;
      c[2 * j + 1] = im;
    }
  }
}

template <class K>
void row_of_one(const typename K::T* a, const Term<typename K::Real>& alpha, typename K::T* c,
                std::int64_t n) {
  if constexpr (K::kParts == 1) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) narrow(&c[j], alpha.re * widen(a[j]));
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) {
      typename K::Real re = 0, im = 0;
      add_complex(alpha, a + 2 * j, re, im);
      c[2 * j] = re;
      c[2 * j + 1] = im;
    }
  }
}

/// op(X) of a square of C: in place, or transposed into a buffer.
template <class K>
struct Square {
  const typename K::T* data;
  std::int64_t ld;  // elements
};
template <class K>
MBLAS_INLINE Square<K> square_of(const void* X, std::int64_t ld, bool transposed, std::int64_t i,
                                 std::int64_t j, std::int64_t rows, std::int64_t cols,
                                 typename K::T* buffer) {
  using T = typename K::T;
  const auto* x = static_cast<const T*>(X);
  if (!X || !transposed) return {X ? x + (i * ld + j) * K::kParts : x, ld};
  transpose_block<K::kSize>(reinterpret_cast<const std::byte*>(x + (j * ld + i) * K::kParts),
                            ld * K::kSize, reinterpret_cast<std::byte*>(buffer), kSide * K::kSize,
                            cols, rows);
  return {buffer, kSide};
}

template <class K>
void run_block(const GeamBlock& g) {
  using T = typename K::T;
  using Real = typename K::Real;
  alignas(64) T a_buffer[kSide * kSide * K::kParts], b_buffer[kSide * kSide * K::kParts];
  const Term<Real> alpha{Real(g.alpha.re), Real(g.alpha.im), Real(g.conj_a ? -1 : 1)};
  const Term<Real> beta{Real(g.beta.re), Real(g.beta.im), Real(g.conj_b ? -1 : 1)};
  const bool squares = (g.A && g.trans_a) || (g.B && g.trans_b);
  const std::int64_t width = squares ? kSide : g.n;
  for (std::int64_t i0 = 0; i0 < g.m; i0 += kSide) {
    const std::int64_t rows = smaller(kSide, g.m - i0);
    for (std::int64_t j0 = 0; j0 < g.n; j0 += width) {
      const std::int64_t cols = smaller(width, g.n - j0);
      const auto a = square_of<K>(g.A, g.lda, g.trans_a, i0, j0, rows, cols, a_buffer);
      const auto b = square_of<K>(g.B, g.ldb, g.trans_b, i0, j0, rows, cols, b_buffer);
      for (std::int64_t i = 0; i < rows; ++i) {
        T* c = static_cast<T*>(g.C) + ((i0 + i) * g.ldc + j0) * K::kParts;
        if (g.A && g.B)
          row_of_two<K>(a.data + i * a.ld * K::kParts, alpha, b.data + i * b.ld * K::kParts, beta,
                        c, cols);
        else if (g.A)
          row_of_one<K>(a.data + i * a.ld * K::kParts, alpha, c, cols);
        else if (g.B)
          row_of_one<K>(b.data + i * b.ld * K::kParts, beta, c, cols);
        else
          __builtin_memset(static_cast<void*>(c), 0, std::size_t(cols * K::kSize));
      }
    }
  }
}

}  // namespace

constinit const GeamBlockKernel geam_blocks[6] = {
    run_block<Types<float, 1>>,  run_block<Types<double, 1>>, run_block<Types<float, 2>>,
    run_block<Types<double, 2>>, run_block<Types<half, 1>>,   run_block<Types<bfloat16, 1>>,
};

}  // namespace mblas::cpu::MBLAS_ISA
