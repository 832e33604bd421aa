// From type tags back to C++ types, for the kernels that are compiled once.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "mblas/backend.hpp"
#include "mblas/types.hpp"

namespace mblas::cpu {

template <class T>
struct Type {
  using type = T;
};

/// Calls f(Type<T>) for the floating-point type tagged `t`.
template <class F>
void visit_geam_type(DType t, F&& f) {
  switch (t) {
    case DType::f32:
      return f(Type<float>());
    case DType::f64:
      return f(Type<double>());
    case DType::cf32:
      return f(Type<std::complex<float>>());
    case DType::cf64:
      return f(Type<std::complex<double>>());
    case DType::f16:
      return f(Type<half>());
    default:
      return f(Type<bfloat16>());
  }
}

/// Calls f(Type<In>, Type<Out>) for a pair that is_gemm_pair allows.
template <class F>
void visit_gemm_types(DType in, DType out, F&& f) {
  if (in == DType::i8) return f(Type<std::int8_t>(), Type<std::int32_t>());
  visit_geam_type(in, [&]<class In>(Type<In> type) {
    if constexpr (sizeof(In) == 2) {
      if (out == DType::f32) return f(type, Type<float>());
    }
    f(type, type);
  });
}

/// Calls f(Type<T>) with a T of the size of the untyped element `t`. It may lie at any address and
/// alias any type.
template <class F>
void visit_untyped(DType t, F&& f) {
  switch (size_of(t)) {
    case 1:
      return f(Type<std::array<std::byte, 1>>());
    case 2:
      return f(Type<std::array<std::byte, 2>>());
    case 4:
      return f(Type<std::array<std::byte, 4>>());
    case 8:
      return f(Type<std::array<std::byte, 8>>());
    default:
      return f(Type<std::array<std::byte, 16>>());
  }
}

/// x as the type in which a kernel computes on T: of float for 16-bit floats, wrapping for
/// integers.
template <class T>
auto widen(const T& x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(x));
  else if constexpr (sizeof(T) == 2)
    return static_cast<float>(x);
  else
    return x;
}
template <class T>
using wide_t = decltype(widen(std::declval<T>()));

/// x, or its conjugate.
template <class T>
T conjugate_if(bool conjugate, const T& x) {
  if constexpr (requires { x.imag(); })
    return conjugate ? std::conj(x) : x;
  else
    return x;
}

/// alpha or beta in the type S that a kernel computes in.
template <class S>
S scalar(const Scalar& s) {
  if constexpr (std::is_integral_v<S>)
    return static_cast<S>(static_cast<std::int32_t>(s.re));
  else if constexpr (std::is_floating_point_v<S>)
    return static_cast<S>(s.re);
  else
    return {static_cast<typename S::value_type>(s.re), static_cast<typename S::value_type>(s.im)};
}

/// s x; a real s scales the parts, as 0 times an infinite part would make the other one NaN.
template <class S>
S scaled(const S& s, const S& x) {
  if constexpr (requires { s.imag(); })
    return s.imag() == 0 ? s.real() * x : s * x;
  else
    return s * x;
}

}  // namespace mblas::cpu
