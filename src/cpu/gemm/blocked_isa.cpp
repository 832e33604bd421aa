// One tile of a matrix product.
//
// Limited by the multiply-add units, if the operands arrive in time. So: A is packed into panels of
// kMR rows and B into panels of kNR columns, kKC deep, converted to the type that accumulates and
// zero-padded to whole panels; a B panel stays in the first-level cache while all A panels, which
// the second level holds, pass by; the microkernel keeps a kMR×kNR block of sums in registers and
// reads both panels with unit stride. Sums over several kKC live in an accumulation tile, so that C
// is read, scaled and rounded once. An element's sum depends on k alone, not on the tile that it
// falls into. int8 is packed as pairs of int16 along k, whose products one instruction adds up:
// twice as fast as by products of 32 bits.
//
// After K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
// 34(3), 2008.
#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

// Two vectors by kMR rows of sums, leaving registers for a row of B and a broadcast element of A.
#if defined(__AVX512F__)
constexpr int kMR = 14;
#elif defined(__AVX2__)
constexpr int kMR = 6;
#else
constexpr int kMR = 4;
#endif
constexpr int kKC = 256;
constexpr int kPackedA = 256 << 10;  // bytes: a good part of a second-level cache
constexpr int kPackedB = 512 << 10;  // bytes: a share of the third level

/// `In` and `Out` as stored: for complex types their real type, with two values an element. `Real`
/// accumulates.
template <DType InTag, DType OutTag, class InT, class OutT, class RealT>
struct Types {
  static constexpr DType kIn = InTag, kOut = OutTag;
  using In = InT;
  using Out = OutT;
  using Real = RealT;
  static constexpr int kParts = is_complex(InTag) ? 2 : 1;
  static constexpr int kElement = kParts * int(sizeof(Real));
  static constexpr int kNR = 2 * kLanes<Real> / kParts;
  static constexpr int kMC = kPackedA / (kKC * kElement) / kMR * kMR;
  static constexpr int kNC = kPackedB / (kKC * kElement) / kNR * kNR;
  static constexpr int kMicro = kMR * kNR * kParts;  // sums of a microtile
#if defined(__AVX2__)
  static constexpr int kDepth = InTag == DType::i8 ? 2 : 1;  // elements in a packed number
#else
  static constexpr int kDepth = 1;
#endif
};

/// Packs `count` rows (of A) or columns (of B), `depth` deep, into panels of W:
/// [panel][depth][part][W]. `step` lies between members of a panel, `stride` between steps in
/// depth; one of them is 1.
template <class T, int W>
void pack(typename T::Real* dst, const typename T::In* src, std::int64_t step, std::int64_t stride,
          std::int64_t count, std::int64_t depth, bool conjugate) {
  using In = typename T::In;
  using Real = typename T::Real;
  constexpr int parts = T::kParts;
  // Every panel takes this many steps in turn: along their rows the operands are read as a few
  // streams, not as one line from each of many pages.
  constexpr std::int64_t steps = 16;
  const Real imaginary_sign = conjugate ? Real(-1) : Real(1);
  for (std::int64_t p0 = 0; p0 < depth; p0 += steps) {
    const std::int64_t p1 = smaller(p0 + steps, depth);
    for (std::int64_t w0 = 0; w0 < count; w0 += W) {
      const In* from = src + w0 * step * parts;
      Real* to = dst + w0 * depth * parts;
      const auto copy = [&](std::int64_t p, std::int64_t w) __attribute__((always_inline)) {
        const In* x = from + (w * step + p * stride) * parts;
        Real* y = to + p * (W * parts) + w;
        y[0] = widen(x[0]);
        if constexpr (parts == 2) y[W] = imaginary_sign * widen(x[1]);
      };
      const auto copy_panel = [&](std::int64_t width) __attribute__((always_inline)) {
        for (std::int64_t p = p0; p < p1; ++p)
          for (std::int64_t w = 0; w < width; ++w) copy(p, w);
      };
      const std::int64_t width = smaller(W, count - w0);
      if (width < W) {
        for (std::int64_t x = p0 * W * parts; x < p1 * W * parts; ++x) to[x] = 0;
        copy_panel(width);
      } else if constexpr (parts == 1 && sizeof(In) < sizeof(Real)) {
        constexpr int lanes = kLanes<Real>, whole = (W + lanes - 1) / lanes * lanes;
        if (step == 1 && w0 + whole <= count) {
          // What is too much is overwritten by the next step, but for the last one.
          const std::int64_t end = whole == W ? p1 : p1 - 1;
          for (std::int64_t p = p0; p < end; ++p)
            for (int w = 0; w < whole; w += lanes)
              store(to + p * W + w, widened(from + p * stride + w));
          for (std::int64_t p = end; p < p1; ++p)
            for (int w = 0; w < W; ++w) copy(p, w);
        } else if (stride == 1) {
          alignas(64) Real rows[W][steps];
          const std::int64_t some = p1 - p0;
          for (int w = 0; w < W; ++w) {
            const In* x = from + w * step + p0;
            std::int64_t p = 0;
            for (; p + lanes <= some; p += lanes) store(&rows[w][p], widened(x + p));
            for (; p < some; ++p) rows[w][p] = widen(x[p]);
          }
          transpose_block<sizeof(Real)>(reinterpret_cast<const std::byte*>(rows), sizeof rows[0],
                                        reinterpret_cast<std::byte*>(to + p0 * W), W * sizeof(Real),
                                        W, some);
        } else {
          copy_panel(W);
        }
      } else if (step == 1) {  // known to the compiler in this copy of the loop
        copy_panel(W);
      } else if constexpr (parts == 1 && sizeof(In) == sizeof(Real)) {
        transpose_block<sizeof(Real)>(
            reinterpret_cast<const std::byte*>(from + p0), step * sizeof(Real),
            reinterpret_cast<std::byte*>(to + p0 * W), W * sizeof(Real), W, p1 - p0);
      } else {
        copy_panel(W);
      }
    }
  }
}

#if defined(__AVX2__)
/// The same of int8 in pairs: [panel][depth / 2][W], filled up with zeros.
template <class T, int W>
void pack_pairs(std::uint32_t* dst, const std::int8_t* src, std::int64_t step, std::int64_t stride,
                std::int64_t count, std::int64_t depth) {
  constexpr int lanes = kLanes<std::uint32_t>, whole = (W + lanes - 1) / lanes * lanes;
  constexpr int pairs = 16;  // of a panel, in turn
  for (std::int64_t p0 = 0; p0 < depth; p0 += 2 * pairs) {
    const std::int64_t some = smaller(2 * pairs, depth - p0), all = (some + 1) / 2;
    for (std::int64_t w0 = 0; w0 < count; w0 += W) {
      const std::int64_t width = smaller(W, count - w0);
      const std::int8_t* from = src + w0 * step + p0 * stride;
      std::uint32_t* to = dst + w0 * ((depth + 1) / 2) + p0 / 2 * W;
      const auto pair = [&](std::int64_t q, std::int64_t w) __attribute__((always_inline)) {
        const std::int8_t* x = from + w * step + 2 * q * stride;
        return (widen(x[0]) & 0xffff) | (2 * q + 1 < some ? widen(x[stride]) << 16 : 0);
      };
      if (width == W && stride == 1) {
        alignas(64) std::uint32_t rows[W][pairs];
        for (int w = 0; w < W; ++w) {
          std::int64_t q = 0;
          for (; 2 * (q + lanes) <= some; q += lanes)
            store(&rows[w][q], pairs_along(from + w * step + 2 * q));
          for (; q < all; ++q) rows[w][q] = pair(q, w);
        }
        transpose_block<4>(reinterpret_cast<const std::byte*>(rows), sizeof rows[0],
                           reinterpret_cast<std::byte*>(to), W * sizeof(std::uint32_t), W, all);
      } else if (step == 1 && w0 + whole <= count) {
        // What is too much is overwritten by the next step, but for the last one.
        const std::int64_t end = some / 2 - (whole != W && some % 2 == 0);
        for (std::int64_t q = 0; q < end; ++q)
          for (int w = 0; w < whole; w += lanes) {
            const std::int8_t* x = from + 2 * q * stride + w;
            store(to + q * W + w, pairs_across(x, x + stride));
          }
        for (std::int64_t q = end; q < all; ++q)
          for (int w = 0; w < W; ++w) to[q * W + w] = pair(q, w);
      } else {
        for (std::int64_t q = 0; q < all; ++q)
          for (std::int64_t w = 0; w < W; ++w) to[q * W + w] = w < width ? pair(q, w) : 0;
      }
    }
  }
}
#endif

/// sum += a b, in pairs where they are packed so.
template <class T, class V>
MBLAS_INLINE void add_product(V& sum, typename T::Real a, const V& b) {
#if defined(__AVX2__)
  if constexpr (T::kDepth == 2) {
    sum += multiply_pairs(b, V{} + a);
    return;
  }
#endif
  sum += a * b;
}

/// sums (kMR rows of kNR, for complex types of kNR real and kNR imaginary parts) = or += a panel of
/// A times a panel of B.
template <class T>
void multiply(std::int64_t depth, const typename T::Real* a, const typename T::Real* b,
              typename T::Real* sums, bool add) {
  using Real = typename T::Real;
  using V = Vector<Real>;
  V c[kMR][2];
#pragma GCC unroll 16
  for (int i = 0; i < kMR; ++i) c[i][0] = c[i][1] = V{};
  for (std::int64_t p = 0; p < depth; ++p) {
    const V b0 = load<V>(b), b1 = load<V>(b + kLanes<Real>);
#pragma GCC unroll 16
    for (int i = 0; i < kMR; ++i) {
      if constexpr (T::kParts == 1) {
        add_product<T>(c[i][0], a[i], b0);
        add_product<T>(c[i][1], a[i], b1);
      } else {
        const Real re = a[i], im = a[kMR + i];
        c[i][0] += re * b0;
        c[i][1] += re * b1;
        c[i][0] -= im * b1;
        c[i][1] += im * b0;
      }
    }
    a += kMR * T::kParts;
    b += 2 * kLanes<Real>;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kMR; ++i) {
    Real* row = sums + i * 2 * kLanes<Real>;
    if (add) {
      c[i][0] += load<V>(row);
      c[i][1] += load<V>(row + kLanes<Real>);
    }
    store(row, c[i][0]);
    store(row + kLanes<Real>, c[i][1]);
  }
}

/// The scalars of the call in the type that accumulates.
template <class Real>
struct Scale {
  Real re, im;
  bool zero;
};
template <class Real>
MBLAS_INLINE Scale<Real> scale_of(const Scalar& s) {
  if constexpr (sizeof(Real) == 4 && Real(-1) > Real(0)) {
    return {Real(std::int32_t(s.re)), 0, s.re == 0};
  } else {
    return {Real(s.re), Real(s.im), s.re == 0 && s.im == 0};
  }
}

/// C = alpha sums + beta C for rows×cols of a microtile.
template <class T>
void write_back(const typename T::Real* sums, typename T::Out* C, std::int64_t ldc,
                std::int64_t rows, std::int64_t cols, const Scale<typename T::Real>& alpha,
                const Scale<typename T::Real>& beta) {
  using Real = typename T::Real;
  for (std::int64_t i = 0; i < rows; ++i) {
    if constexpr (T::kParts == 1) {
      if (beta.zero) {
        for (std::int64_t j = 0; j < cols; ++j) narrow(&C[j], alpha.re * sums[j]);
      } else {
        for (std::int64_t j = 0; j < cols; ++j)
          narrow(&C[j], alpha.re * sums[j] + beta.re * widen(C[j]));
      }
    } else {
      for (std::int64_t j = 0; j < cols; ++j) {
        const Real re = sums[j], im = sums[T::kNR + j];
        Real sum_re = alpha.re * re, sum_im = alpha.re * im;
        // A real scalar scales the parts: 0 times an infinite part would make the other one NaN.
        if (alpha.im != 0) {
          sum_re -= alpha.im * im;
          sum_im += alpha.im * re;
        }
        if (!beta.zero) {
          const Real c_re = C[2 * j], c_im = C[2 * j + 1];
          sum_re += beta.re * c_re;
          sum_im += beta.re * c_im;
          if (beta.im != 0) {
            sum_re -= beta.im * c_im;
            sum_im += beta.im * c_re;
          }
        }
        C[2 * j] = sum_re;
        C[2 * j + 1] = sum_im;
      }
    }
    sums += T::kNR * T::kParts;
    C += ldc * T::kParts;
  }
}

template <class T>
void run_tile(const GemmTile& t, std::byte* workspace) {
  using Real = typename T::Real;
  using In = typename T::In;
  constexpr int nr = T::kNR, parts = T::kParts;
  const auto alpha = scale_of<Real>(t.alpha), beta = scale_of<Real>(t.beta);
  const auto* A = static_cast<const In*>(t.A);
  const auto* B = static_cast<const In*>(t.B);
  auto* C = static_cast<typename T::Out*>(t.C);
  const std::int64_t m_panels = (t.m + kMR - 1) / kMR, n_panels = (t.n + nr - 1) / nr;
  const std::int64_t kc = smaller(t.k, kKC);
  Real* const packed_b = reinterpret_cast<Real*>(workspace);
  Real* const sums = packed_b + n_panels * kc * nr * parts;
  Real* const packed_a = sums + m_panels * n_panels * T::kMicro;

  std::int64_t p = 0;
  do {  // once for k == 0 too: C = beta C
    const std::int64_t depth = smaller(kKC, t.k - p);
    const bool last = p + depth == t.k;
    if (depth > 0) {
#if defined(__AVX2__)
      if constexpr (T::kDepth == 2) {
        pack_pairs<T, nr>(packed_b, B + p * t.b_row, t.b_col, t.b_row, t.n, depth);
        pack_pairs<T, kMR>(packed_a, A + p * t.a_col, t.a_row, t.a_col, t.m, depth);
      } else
#endif
      {
        pack<T, nr>(packed_b, B + p * t.b_row * parts, t.b_col, t.b_row, t.n, depth, t.conj_b);
        pack<T, kMR>(packed_a, A + p * t.a_col * parts, t.a_row, t.a_col, t.m, depth, t.conj_a);
      }
    }
    const std::int64_t packed = (depth + T::kDepth - 1) / T::kDepth;
    for (std::int64_t j = 0; j < n_panels; ++j) {
      for (std::int64_t i = 0; i < m_panels; ++i) {
        Real* micro = sums + (j * m_panels + i) * T::kMicro;
        multiply<T>(packed, packed_a + i * packed * (kMR * parts),
                    packed_b + j * packed * (nr * parts), micro, p > 0);
        if (last)
          write_back<T>(micro, C + (i * kMR * t.ldc + j * nr) * parts, t.ldc,
                        smaller(kMR, t.m - i * kMR), smaller(nr, t.n - j * nr), alpha, beta);
      }
    }
    p += depth;
  } while (p < t.k);
}

template <class T>
constexpr GemmTileKernel row() {
  return {T::kIn, T::kOut, kMR, T::kNR, T::kMC, T::kNC, kKC, T::kElement, run_tile<T>};
}

using enum DType;

}  // namespace

constinit const GemmTileKernel gemm_kernels[9] = {
    row<Types<f32, f32, float, float, float>>(),
    row<Types<f64, f64, double, double, double>>(),
    row<Types<cf32, cf32, float, float, float>>(),
    row<Types<cf64, cf64, double, double, double>>(),
    row<Types<f16, f16, half, half, float>>(),
    row<Types<f16, f32, half, float, float>>(),
    row<Types<bf16, bf16, bfloat16, bfloat16, float>>(),
    row<Types<bf16, f32, bfloat16, float, float>>(),
    row<Types<i8, i32, std::int8_t, std::int32_t, std::uint32_t>>(),
};

}  // namespace mblas::cpu::MBLAS_ISA
