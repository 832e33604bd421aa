// The error bounds that the library promises and its tests, bench and MBLAS_VERIFY check.
// N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, chapter 3.
#pragma once

#include <cstdint>
#include <limits>

#include "mblas/epilogue.hpp"
#include "mblas/types.hpp"

namespace mblas {

/// Half the distance from 1 to the next number of the type (of a complex type: of its parts).
constexpr double unit_roundoff(DType t) {
  switch (t) {
    case DType::f32:
    case DType::cf32:
      return 0x1p-24;
    case DType::f64:
    case DType::cf64:
      return 0x1p-53;
    case DType::f16:
      return 0x1p-11;
    case DType::bf16:
      return 0x1p-8;
    default:
      return 0;  // integers and untyped elements are exact
  }
}

/// Smallest positive number of the type: what rounding near zero may add, whatever the operands.
constexpr double smallest_positive(DType t) {
  switch (t) {
    case DType::f32:
    case DType::cf32:
    case DType::bf16:
      return t == DType::bf16 ? 0x1p-133 : 0x1p-149;
    case DType::f64:
    case DType::cf64:
      return 0x0.0000000000001p-1022;
    case DType::f16:
      return 0x1p-24;
    default:
      return 0;
  }
}

/// The type whose arithmetic accumulates products of `in`.
constexpr DType accumulator_of(DType in) {
  return in == DType::f16 || in == DType::bf16 ? DType::f32 : in == DType::i8 ? DType::i32 : in;
}

/// γ(n) = n u / (1 − n u); infinite where n u ≥ 1.
constexpr double gamma(double n, double u) {
  return n * u < 1 ? n * u / (1 - n * u) : std::numeric_limits<double>::infinity();
}

/// Whether a mode's bound has a part that the largest elements of whole rows and columns determine.
constexpr bool is_normwise(Compute c) { return c == Compute::FP16x3 || c == Compute::OzakiFP64; }

/// Bound on |C − Ĉ| of one element of gemm in Compute::Default or Pedantic, where
/// `magnitude` = |alpha| (|A||B|) + |beta||C| of that element and `value` = |C|. Complex
/// arithmetic: 2√2 u in place of u (Higham, lemma 3.5). An output narrower than the accumulator
/// adds its rounding; results near zero add the spacing of the subnormals, once an operation.
///
/// TF32: both operands are rounded to 11 significant bits first, and the tensor cores add with
/// truncation. (Subnormal operands have fewer bits: they are rounded to multiples of 2^-136, for
/// which there is no term.) BF16x6: γ(k + 4), as the products of the smallest planes are left out
/// and those of the others are added up.
///
/// FP16x3: operands are kept to 22 bits, or to 2^-38 of the largest of their row of op(A) or column
/// of op(B): `largest` = |alpha| k max|row of op(A)| max|column of op(B)|, of which that is 2^-37.
/// OzakiFP64: of k numbers in a row or column, each is off by up to 2^-58 of their norm, and norms
/// are at most √k times the largest; √k is no more than (k + 1) / 2, nor than that of what is added
/// up at once. A call's `tolerance` is in place of that.
///
/// With an epilogue, `magnitude` has + |bias|, and `sum` = |alpha op(A) op(B) + beta C + bias|. The
/// bias is one more term. GELU's slope is at most 1.13; what is computed for it may be off by 8
/// roundoffs of the sum, or one of a narrower C's. The scale is one more rounding. int8 products
/// with C of float are exact before they are converted, so that k does not count.
constexpr double gemm_bound(DType in, DType out, std::int64_t k, double magnitude, double value,
                            Compute compute = Compute::Default, const Epilogue& epilogue = {},
                            double sum = 0, double largest = 0, double tolerance = 0) {
  const bool scaled_integers = in == DType::i8 && out == DType::f32;
  if (scaled_integers) k = 2;
  const DType acc = scaled_integers ? out : accumulator_of(in);
  double u = unit_roundoff(acc) * (is_complex(acc) ? 2.8284271247461903 : 1.0);
  if (compute == Compute::TF32) u *= 2;
  const std::int64_t terms = k +
                             (compute == Compute::BF16x6   ? 4
                              : compute == Compute::FP16x3 ? 16
                                                           : 2) +
                             (epilogue.bias.per == BiasPer::None ? 0 : 1);
  double bound = gamma(double(terms), u) * magnitude;
  if (compute == Compute::TF32) bound += (0x1p-10 + 0x1p-22) * magnitude;
  if (compute == Compute::FP16x3) bound += 0x1p-37 * largest;
  if (compute == Compute::OzakiFP64)
    bound += (tolerance > 0 ? tolerance : 0x1p-57 * (k < 511 ? double(k + 1) / 2 : 256)) * largest;
  bound += double(2 * k + 4) * smallest_positive(acc);
  if (epilogue.activation == Activation::Gelu) {
    const double narrow = unit_roundoff(out), own = 8 * unit_roundoff(acc);
    bound = 1.13 * bound + (narrow > own ? narrow : own) * (sum + bound) + smallest_positive(acc);
  }
  if (epilogue.scale != 1) {
    bound *= epilogue.scale < 0 ? -epilogue.scale : epilogue.scale;
    bound += u * (value + bound) + smallest_positive(acc);
  }
  if (unit_roundoff(out) > unit_roundoff(acc))
    bound += unit_roundoff(out) * (value + bound) + smallest_positive(out);
  return bound;
}

/// Bound on |C − Ĉ| of one element of geam, `magnitude` = |alpha||op(A)| + |beta||op(B)|.
constexpr double geam_bound(DType type, double magnitude, double value) {
  return gemm_bound(type, type, 1, magnitude, value);
}

}  // namespace mblas
