// What a product does to its result on the way out: a bias, an activation, a scale.
//
// C = scale · activation(alpha op(A) op(B) + beta C + bias), everything in the type that
// accumulates (float for half and bfloat16 operands, and for int8 ones with C of float), C rounded
// once. NaN propagate, also through Relu. docs/ACCURACY.md has the bound. Real C of floating-point
// types; a complex C takes a bias and a scale, but no activation.
#pragma once

#include <cstdint>
#include <type_traits>

#include "mblas/types.hpp"

namespace mblas {

enum class Activation : std::uint8_t {
  None,
  Relu,  ///< x where x > 0 or x is NaN, else 0
  Gelu,  ///< x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))); of -∞ it is NaN
};

constexpr std::string_view name_of(Activation a) {
  constexpr std::string_view names[] = {"none", "relu", "gelu"};
  return a <= Activation::Gelu ? names[static_cast<int>(a)] : "?";
}

/// What of C, in whatever layout, has a number of its own in a bias.
enum class BiasPer : std::uint8_t { None, Row, Column };

constexpr std::string_view name_of(BiasPer b) {
  constexpr std::string_view names[] = {"none", "rows", "columns"};
  return b <= BiasPer::Column ? names[static_cast<int>(b)] : "?";
}

/// Consecutive numbers of C's type, in its memory and apart from it: m, one for each row of C, or
/// n, one for each column. All matrices of a batch share them.
struct Bias {
  BiasPer per = BiasPer::None;
  DType type = DType::f32;
  const void* data = nullptr;
};
template <class T>
Bias bias_per_row(const T* numbers) {
  return {BiasPer::Row, dtype_v<T>, numbers};
}
template <class T>
Bias bias_per_column(const T* numbers) {
  return {BiasPer::Column, dtype_v<T>, numbers};
}

struct Epilogue {
  Bias bias;
  Activation activation = Activation::None;
  double scale = 1;  ///< rounded to the type that accumulates

  constexpr bool is_none() const {
    return bias.per == BiasPer::None && activation == Activation::None && scale == 1;
  }
};

}  // namespace mblas
