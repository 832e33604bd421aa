// From the tags of the erased interface back to C++ types: the one place where they are listed.
#pragma once

#include <complex>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "mblas/types.hpp"

namespace mblas::cases {

/// An element of 16 bytes that nobody can take for a number.
struct Bytes16 {
  std::uint64_t words[2];
  bool operator==(const Bytes16&) const = default;
};

/// f(type_identity<T>) for the floating-point type `t`.
template <class F>
auto visit_float(DType t, F&& f) {
  switch (t) {
    case DType::f32:
      return f(std::type_identity<float>{});
    case DType::f64:
      return f(std::type_identity<double>{});
    case DType::cf32:
      return f(std::type_identity<std::complex<float>>{});
    case DType::cf64:
      return f(std::type_identity<std::complex<double>>{});
    case DType::f16:
      return f(std::type_identity<half>{});
    case DType::bf16:
      return f(std::type_identity<bfloat16>{});
    default:
      throw std::invalid_argument("operands of a type that is not a floating-point one");
  }
}

/// f(type_identity<TA>, type_identity<TC>) for the types of a product.
template <class F>
auto visit_gemm_types(DType in, DType out, F&& f) {
  if (!is_gemm_pair(in, out))
    throw std::invalid_argument("gemm does not multiply " + std::string(name_of(in)) + " into " +
                                std::string(name_of(out)));
  if (in == DType::i8 && out == DType::f32)
    return f(std::type_identity<std::int8_t>{}, std::type_identity<float>{});
  if (in == DType::i8)
    return f(std::type_identity<std::int8_t>{}, std::type_identity<std::int32_t>{});
  return visit_float(in, [&]<class TA>(std::type_identity<TA> a) {
    if constexpr (std::is_same_v<TA, half> || std::is_same_v<TA, bfloat16>)
      if (out == DType::f32) return f(a, std::type_identity<float>{});
    return f(a, a);
  });
}

/// f(type_identity<T>) for the untyped element `t`.
template <class F>
auto visit_untyped(DType t, F&& f) {
  switch (size_of(t)) {
    case 1:
      return f(std::type_identity<std::uint8_t>{});
    case 2:
      return f(std::type_identity<std::uint16_t>{});
    case 4:
      return f(std::type_identity<std::uint32_t>{});
    case 8:
      return f(std::type_identity<std::uint64_t>{});
    default:
      return f(std::type_identity<Bytes16>{});
  }
}

}  // namespace mblas::cases
