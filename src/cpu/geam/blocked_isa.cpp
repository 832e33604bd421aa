// A block of C = alpha op(A) + beta op(B).
//
// Limited by memory. Operands that are not transposed stream by rows. A transposed one passes,
// transposed in registers, through a buffer: where the caller gives one in the second-level cache,
// in strips of rows of the block's width, which hardware prefetches; else in kSide×kSide squares
// that the first level holds. C goes past the caches by way of a row in the first level.
#include "cpu/isa.hpp"
#include "cpu/simd.hpp"
#include "cpu/transpose/stream.hpp"

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
    MBLAS_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j)
      narrow(&c[j], alpha.re * widen(a[j]) + beta.re * widen(b[j]));
  } else {
    MBLAS_INDEPENDENT
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
    MBLAS_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) narrow(&c[j], alpha.re * widen(a[j]));
  } else {
    MBLAS_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) {
      typename K::Real re = 0, im = 0;
      add_complex(alpha, a + 2 * j, re, im);
      c[2 * j] = re;
      c[2 * j + 1] = im;
    }
  }
}

/// op(X) of a part of C: in place, or transposed into a buffer.
template <class K>
struct Part {
  const typename K::T* data;
  std::int64_t ld;  // elements
};
/// `fetches`: what is transposed next is asked for.
template <class K>
MBLAS_INLINE Part<K> part_of(const void* X, std::int64_t ld, bool transposed, std::int64_t i,
                             std::int64_t j, std::int64_t rows, std::int64_t cols,
                             typename K::T* buffer, std::int64_t buffer_ld, bool fetches) {
  using T = typename K::T;
  const auto* x = static_cast<const T*>(X);
  if (!X || !transposed) return {X ? x + (i * ld + j) * K::kParts : x, ld};
  // Strips of rows of X, which are columns of C.
  constexpr std::int64_t strip = K::kSize == 2 ? 32 : 16;
  for (std::int64_t c = 0; c < cols; c += strip) {
    const T* const from = x + ((j + c) * ld + i) * K::kParts;
    if (fetches)
      for (std::int64_t r = strip; r < smaller(2 * strip, cols - c); ++r)
        fetch_lines(from + r * ld * K::kParts, rows * K::kSize);
    transpose_block<K::kSize>(reinterpret_cast<const std::byte*>(from), ld * K::kSize,
                              reinterpret_cast<std::byte*>(buffer + c * K::kParts),
                              buffer_ld * K::kSize, smaller(strip, cols - c), rows);
  }
  return {buffer, buffer_ld};
}

/// A term of a row, and where it is from.
template <class K>
struct RowTerm {
  const typename K::T* x;
  Term<typename K::Real> scalar;
};

/// `n` elements of C from those of A and B, which may be absent.
template <class K>
void row_of(const RowTerm<K>& a, const RowTerm<K>& b, typename K::T* c, std::int64_t n) {
  if (a.x && b.x)
    row_of_two<K>(a.x, a.scalar, b.x, b.scalar, c, n);
  else if (a.x)
    row_of_one<K>(a.x, a.scalar, c, n);
  else if (b.x)
    row_of_one<K>(b.x, b.scalar, c, n);
  else
    __builtin_memset(static_cast<void*>(c), 0, std::size_t(n * K::kSize));
}

template <class K>
void run_block(const GeamBlock& g) {
  using T = typename K::T;
  using Real = typename K::Real;
  alignas(64) T squares[2][kSide * kSide * K::kParts];
  constexpr std::int64_t line = 2048 / K::kSize;  // elements of C that are streamed at a time
  const bool transposed = (g.A && g.trans_a) || (g.B && g.trans_b);
  const std::int64_t side = g.buffer ? kGeamSide / K::kSize : kSide;
  // With a line between the rows, so that they do not share sets of the caches.
  const std::int64_t buffer_ld = g.buffer ? side + 64 / K::kSize : side;
  T* const a_buffer = g.buffer ? reinterpret_cast<T*>(g.buffer) : squares[0];
  T* const b_buffer = g.buffer ? reinterpret_cast<T*>(g.buffer + kGeamBuffer) : squares[1];
  const Term<Real> alpha{Real(g.alpha.re), Real(g.alpha.im), Real(g.conj_a ? -1 : 1)};
  const Term<Real> beta{Real(g.beta.re), Real(g.beta.im), Real(g.conj_b ? -1 : 1)};
  const std::int64_t width = transposed ? side : g.n;
  const bool fetches = transposed && g.stream && follows_few_rows();
  for (std::int64_t i0 = 0; i0 < g.m; i0 += side) {
    const std::int64_t rows = smaller(side, g.m - i0);
    for (std::int64_t j0 = 0; j0 < g.n; j0 += width) {
      const std::int64_t cols = smaller(width, g.n - j0);
      const auto a =
          part_of<K>(g.A, g.lda, g.trans_a, i0, j0, rows, cols, a_buffer, buffer_ld, fetches);
      const auto b =
          part_of<K>(g.B, g.ldb, g.trans_b, i0, j0, rows, cols, b_buffer, buffer_ld, fetches);
      for (std::int64_t i = 0; i < rows; ++i) {
        constexpr std::int64_t kAhead = 2;
        if (fetches && i + kAhead < rows) {
          if (g.A && !g.trans_a)
            fetch_lines(a.data + (i + kAhead) * a.ld * K::kParts, cols * K::kSize);
          if (g.B && !g.trans_b)
            fetch_lines(b.data + (i + kAhead) * b.ld * K::kParts, cols * K::kSize);
        }
        T* c = static_cast<T*>(g.C) + ((i0 + i) * g.ldc + j0) * K::kParts;
        RowTerm<K> x{g.A ? a.data + i * a.ld * K::kParts : nullptr, alpha};
        RowTerm<K> y{g.B ? b.data + i * b.ld * K::kParts : nullptr, beta};
        if (!g.stream) {
          row_of<K>(x, y, c, cols);
          continue;
        }
        alignas(64) T row[line * K::kParts];
        for (std::int64_t j = 0; j < cols; j += line) {
          const std::int64_t n = smaller(line, cols - j);
          row_of<K>(x, y, row, n);
          stream_copy(reinterpret_cast<std::byte*>(c + j * K::kParts),
                      reinterpret_cast<const std::byte*>(row), n * K::kSize);
          if (x.x) x.x += n * K::kParts;
          if (y.x) y.x += n * K::kParts;
        }
      }
    }
  }
  if (g.stream) stream_fence();
}

}  // namespace

constinit const GeamBlockKernel geam_blocks[6] = {
    run_block<Types<float, 1>>,  run_block<Types<double, 1>>, run_block<Types<float, 2>>,
    run_block<Types<double, 2>>, run_block<Types<half, 1>>,   run_block<Types<bfloat16, 1>>,
};

}  // namespace mblas::cpu::MBLAS_ISA
