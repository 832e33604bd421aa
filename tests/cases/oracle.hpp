// Sums of products in higher precision: what the results are compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "mblas/types.hpp"

namespace mblas::cases {

/// The type in which the oracle computes with elements of type T: at least 11 bits more than those
/// of the type that the kernels accumulate in. Products of int8 are exact in int64.
template <class T>
struct wide_of {
  using type = double;
};
template <>
struct wide_of<double> {
  using type = long double;
};
template <>
struct wide_of<std::complex<float>> {
  using type = std::complex<double>;
};
template <>
struct wide_of<std::complex<double>> {
  using type = std::complex<long double>;
};
template <>
struct wide_of<std::int8_t> {
  using type = std::int64_t;
};
template <>
struct wide_of<std::int32_t> {
  using type = std::int64_t;
};
template <class T>
using wide_t = typename wide_of<T>::type;

template <class T>
inline constexpr bool is_complex_v = is_complex(dtype_v<T>);

template <class T>
wide_t<T> widen(T x) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return double(float(x));
  else
    return wide_t<T>(x);
}

/// An exact value and the sum of the magnitudes of its terms, which bounds what rounding may do.
template <class W>
struct Expected {
  W value{};
  double magnitude = 0;
  double largest = 0;  ///< see gemm_bound()
};

/// op(X) for X in memory: element (i, j) is at data[i * row + j * col], conjugated if so asked.
template <class T>
struct View {
  const T* data;
  std::int64_t row, col;
  bool conjugate;

  wide_t<T> at(std::int64_t i, std::int64_t j) const {
    const wide_t<T> x = widen(data[i * row + j * col]);
    if constexpr (is_complex_v<T>)
      if (conjugate) return std::conj(x);
    return x;
  }
  View transposed() const { return {data, col, row, conjugate}; }
  View from(std::int64_t i, std::int64_t j) const {
    return {data + i * row + j * col, row, col, conjugate};
  }
};

/// op(X) of a matrix stored in `layout`.
template <class T>
View<T> view_of(const void* data, Layout layout, Op op, std::int64_t ld) {
  const bool by_rows = (layout == Layout::RowMajor) != is_transposed(op);
  return {static_cast<const T*>(data), by_rows ? ld : 1, by_rows ? 1 : ld, is_conjugated(op)};
}

namespace detail {

/// Up to kWidth columns of kDepth rows of an operand, real and imaginary parts and magnitudes
/// apart.
template <class Real>
struct Panel {
  std::vector<Real> re, im;
  std::vector<double> magnitude;
  void resize(std::size_t size, bool complex) {
    re.assign(size, Real{});
    im.assign(complex ? size : 0, Real{});
    magnitude.assign(size, 0.0);
  }
  template <class W>
  void set(std::size_t i, W x) {
    if constexpr (requires { x.imag(); }) {
      re[i] = x.real();
      im[i] = x.imag();
      magnitude[i] = std::hypot(double(x.real()), double(x.imag()));
    } else {
      re[i] = x;
      magnitude[i] = std::fabs(double(x));
    }
  }
};

/// sum[j] += Σ_u a[u] b[u * width + j], u in [0, depth).
template <class Real>
void add_products(std::int64_t depth, std::int64_t width, const Real* a, const Real* b,
                  std::int64_t b_stride, Real* __restrict sum) {
  std::int64_t u = 0;
  for (; u + 4 <= depth; u += 4) {
    const Real a0 = a[u], a1 = a[u + 1], a2 = a[u + 2], a3 = a[u + 3];
    const Real *b0 = b + u * b_stride, *b1 = b0 + b_stride, *b2 = b1 + b_stride,
               *b3 = b2 + b_stride;
    for (std::int64_t j = 0; j < width; ++j)
      sum[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
  }
  for (; u < depth; ++u)
    for (std::int64_t j = 0; j < width; ++j) sum[j] += a[u] * b[u * b_stride + j];
}

}  // namespace detail

/// out[i * out_row + j * out_col] = Σ_p A(i, p) B(p, j) for i < rows, j < cols, p < k, with the sum
/// of the products' magnitudes.
template <class T>
void multiply(const View<T>& A, const View<T>& B, std::int64_t rows, std::int64_t cols,
              std::int64_t k, Expected<wide_t<T>>* out, std::int64_t out_row,
              std::int64_t out_col) {
  using W = wide_t<T>;
  using Real = decltype([] {
    if constexpr (is_complex_v<T>)
      return typename W::value_type{};
    else
      return W{};
  }());
  constexpr std::int64_t kDepth = 128, kWidth = 256;
  if (cols < rows && cols < 16)  // the inner loop runs along the longer side
    return multiply(B.transposed(), A.transposed(), cols, rows, k, out, out_col, out_row);

  constexpr bool kComplex = is_complex_v<T>;
  detail::Panel<Real> a, b, sum;
  std::vector<Real> minus_im(kComplex ? kDepth : 0);
  for (std::int64_t j0 = 0; j0 < cols; j0 += kWidth) {
    const std::int64_t width = std::min(kWidth, cols - j0);
    sum.resize(std::size_t(rows * width), kComplex);
    for (std::int64_t p0 = 0; p0 < k; p0 += kDepth) {
      const std::int64_t depth = std::min(kDepth, k - p0);
      b.resize(std::size_t(depth * width), kComplex);
      if (B.col <= B.row) {
        for (std::int64_t p = 0; p < depth; ++p)
          for (std::int64_t j = 0; j < width; ++j)
            b.set(std::size_t(p * width + j), B.at(p0 + p, j0 + j));
      } else {
        for (std::int64_t j = 0; j < width; ++j)
          for (std::int64_t p = 0; p < depth; ++p)
            b.set(std::size_t(p * width + j), B.at(p0 + p, j0 + j));
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        a.resize(std::size_t(depth), kComplex);
        for (std::int64_t p = 0; p < depth; ++p) a.set(std::size_t(p), A.at(i, p0 + p));
        const auto add = [&](const auto& x, const auto& y, auto& total) {
          detail::add_products(depth, width, x.data(), y.data(), width, total.data() + i * width);
        };
        add(a.re, b.re, sum.re);
        if constexpr (kComplex) {
          for (std::int64_t p = 0; p < depth; ++p) minus_im[std::size_t(p)] = -a.im[std::size_t(p)];
          add(minus_im, b.im, sum.re);
          add(a.re, b.im, sum.im);
          add(a.im, b.re, sum.im);
        }
        if constexpr (!std::is_integral_v<Real>) add(a.magnitude, b.magnitude, sum.magnitude);
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        const auto from = std::size_t(i * width + j);
        Expected<W>& to = out[i * out_row + (j0 + j) * out_col];
        if constexpr (kComplex)
          to.value = {sum.re[from], sum.im[from]};
        else
          to.value = sum.re[from];
        to.magnitude = sum.magnitude[from];
      }
    }
  }
}

}  // namespace mblas::cases
