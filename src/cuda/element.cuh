// Element types on the device: how they are read, accumulated and written.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "mblas/backend.hpp"
#include "mblas/types.hpp"

namespace mblas::cuda {

/// Layout and alignment of std::complex.
template <class T>
struct Complex {
  T re, im;
};

template <class T>
__device__ Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T>
__device__ Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}

/// A float of which the tensor cores take 11 significant bits.
struct Tf32 {
  float value;
};

/// The type in which elements are added up. Integers wrap, hence unsigned.
template <class T>
struct AccumulatorOf : std::type_identity<T> {};
template <>
struct AccumulatorOf<__half> : std::type_identity<float> {};
template <>
struct AccumulatorOf<__nv_bfloat16> : std::type_identity<float> {};
template <>
struct AccumulatorOf<Tf32> : std::type_identity<float> {};
template <>
struct AccumulatorOf<std::int8_t> : std::type_identity<std::uint32_t> {};
template <>
struct AccumulatorOf<std::int32_t> : std::type_identity<std::uint32_t> {};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<Complex<T>> = true;

/// An element as the accumulator's type, conjugated where asked.
template <class T>
__device__ Accumulator<T> widen(T x, [[maybe_unused]] bool conjugate = false) {
  if constexpr (is_complex_v<T>) {
    return {x.re, conjugate ? -x.im : x.im};
  } else if constexpr (std::is_integral_v<T>) {
    return std::uint32_t(std::int32_t(x));
  } else {
    return Accumulator<T>(x);
  }
}

/// The accumulator's value as an element: the one rounding of narrow types.
template <class T>
__device__ T narrow(Accumulator<T> x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(x);
  } else {
    return T(x);
  }
}

/// sum + a b.
template <class T>
__device__ T multiply_add(T a, T b, T sum) {
  if constexpr (is_complex_v<T>) {
    sum.re += a.re * b.re;
    sum.re -= a.im * b.im;
    sum.im += a.re * b.im;
    sum.im += a.im * b.re;
    return sum;
  } else {
    return sum + a * b;
  }
}

/// alpha or beta in the accumulator's type.
template <class Acc>
Acc scalar_as(const Scalar& s) {
  if constexpr (is_complex_v<Acc>) {
    using Part = decltype(Acc::re);
    return {Part(s.re), Part(s.im)};
  } else if constexpr (std::is_same_v<Acc, std::uint32_t>) {
    return std::uint32_t(std::int32_t(s.re));
  } else {
    return Acc(s.re);
  }
}

/// f<In, Out>() with the device types of a pair that is_gemm_pair allows.
template <class F>
void with_gemm_types(DType in, DType out, F&& f) {
  switch (in) {
    case DType::f32:
      return f.template operator()<float, float>();
    case DType::f64:
      return f.template operator()<double, double>();
    case DType::cf32:
      return f.template operator()<Complex<float>, Complex<float>>();
    case DType::cf64:
      return f.template operator()<Complex<double>, Complex<double>>();
    case DType::f16:
      return out == DType::f32 ? f.template operator()<__half, float>()
                               : f.template operator()<__half, __half>();
    case DType::bf16:
      return out == DType::f32 ? f.template operator()<__nv_bfloat16, float>()
                               : f.template operator()<__nv_bfloat16, __nv_bfloat16>();
    default:
      return f.template operator()<std::int8_t, std::int32_t>();
  }
}

/// f<T>() with the device type of a type that is_geam_type allows.
template <class F>
void with_geam_type(DType type, F&& f) {
  switch (type) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::cf32:
      return f.template operator()<Complex<float>>();
    case DType::cf64:
      return f.template operator()<Complex<double>>();
    case DType::f16:
      return f.template operator()<__half>();
    default:
      return f.template operator()<__nv_bfloat16>();
  }
}

/// N units of type U that are moved together: elements whose addresses are multiples of U's size
/// only.
template <class U, int N>
struct Units {
  U unit[N];
};

/// f<T>() with a type of `size` bytes (1, 2, 4, 8 or 16) that may lie wherever `alignment` bits are
/// clear.
template <class F>
void with_untyped(int size, std::uintptr_t address_bits, F&& f) {
  const auto aligned = [&](int bytes) { return address_bits % std::uintptr_t(bytes) == 0; };
  switch (size) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return aligned(2) ? f.template operator()<std::uint16_t>()
                        : f.template operator()<Units<std::uint8_t, 2>>();
    case 4:
      return aligned(4) ? f.template operator()<std::uint32_t>()
                        : f.template operator()<Units<std::uint8_t, 4>>();
    case 8:
      return aligned(8)   ? f.template operator()<uint2>()
             : aligned(4) ? f.template operator()<Units<std::uint32_t, 2>>()
                          : f.template operator()<Units<std::uint8_t, 8>>();
    default:
      return aligned(16)  ? f.template operator()<uint4>()
             : aligned(8) ? f.template operator()<Units<std::uint64_t, 2>>()
                          : f.template operator()<Units<std::uint8_t, 16>>();
  }
}

/// The addresses of all entries of `x`, or-ed: their common alignment is that of the result.
template <class Void>
std::uintptr_t address_bits(const Operand<Void>& x, std::int64_t count) {
  if (!x.pointers) return reinterpret_cast<std::uintptr_t>(x.data);
  std::uintptr_t bits = 0;
  for (std::int64_t i = 0; i < count; ++i) bits |= reinterpret_cast<std::uintptr_t>(x.pointers[i]);
  return bits;
}

/// The bits that alignment must find clear: addresses, and distances of rows and matrices in bytes.
template <class Void>
std::uintptr_t access_bits(const Operand<Void>& x, std::int64_t count, int size) {
  std::uintptr_t bits = address_bits(x, count) | std::uintptr_t(x.ld * size);
  if (!x.pointers && count > 1) bits |= std::uintptr_t(x.stride * size);
  return bits;
}

/// f<S>() with the size of an element in bytes.
template <class F>
void with_size(int size, F&& f) {
  switch (size) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 4:
      return f.template operator()<4>();
    case 8:
      return f.template operator()<8>();
    default:
      return f.template operator()<16>();
  }
}

}  // namespace mblas::cuda
