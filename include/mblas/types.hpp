// Scalar types, enumerations and the mapping between C++ types and the tags that cross the erased
// part of the library.
#pragma once

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mblas {

/// Storage order of every matrix of a call. Values as in BLAS++.
enum class Layout : char { ColMajor = 'C', RowMajor = 'R' };

/// What is done to an operand before it is used. ConjNoTrans conjugates without transposing; for
/// real types the two conjugating values equal their plain counterparts.
enum class Op : char { NoTrans = 'N', Trans = 'T', ConjTrans = 'C', ConjNoTrans = 'J' };

/// Arithmetic a call may use. Default never computes less accurately than the input type
/// (docs/ACCURACY.md states the bound); the modes after Pedantic are opt-in and each has its own.
enum class Compute : std::uint8_t {
  Default,    ///< whatever is fastest and keeps the componentwise bound of the input type
  Pedantic,   ///< only the native arithmetic of the type
  TF32,       ///< fp32 operands rounded to 10 explicit mantissa bits or, as cheaply, whole
  BF16x6,     ///< fp32 through three bfloat16 planes, six products
  FP16x3,     ///< fp32 through two scaled fp16 planes, three products
  OzakiFP64,  ///< fp64 through exact int8 products
};

/// Whether the mode's arithmetic may be that of the type itself.
constexpr bool is_native(Compute c) { return c == Compute::Default || c == Compute::Pedantic; }

/// Element types of the erased interface. b1 … b16 are untyped elements of that many bytes, which
/// transposes move without interpreting.
enum class DType : std::uint8_t { f32, f64, cf32, cf64, f16, bf16, i8, i32, b1, b2, b4, b8, b16 };

/// Bytes in an element of type `t`.
constexpr int size_of(DType t) {
  switch (t) {
    case DType::i8:
    case DType::b1:
      return 1;
    case DType::f16:
    case DType::bf16:
    case DType::b2:
      return 2;
    case DType::f32:
    case DType::i32:
    case DType::b4:
      return 4;
    case DType::f64:
    case DType::cf32:
    case DType::b8:
      return 8;
    case DType::cf64:
    case DType::b16:
      return 16;
  }
  return 0;
}

/// The name that the command line, the results files and the receipts use.
constexpr std::string_view name_of(DType t) {
  constexpr std::string_view names[] = {"f32", "f64", "cf32", "cf64", "f16", "bf16", "i8",
                                        "i32", "b1",  "b2",   "b4",   "b8",  "b16"};
  return t <= DType::b16 ? names[static_cast<int>(t)] : "?";
}

constexpr std::string_view name_of(Compute c) {
  constexpr std::string_view names[] = {"default", "pedantic", "tf32", "bf16x6", "fp16x3", "ozaki"};
  return c <= Compute::OzakiFP64 ? names[static_cast<int>(c)] : "?";
}

constexpr bool is_complex(DType t) { return t == DType::cf32 || t == DType::cf64; }
constexpr bool is_transposed(Op op) { return op == Op::Trans || op == Op::ConjTrans; }
constexpr bool is_conjugated(Op op) { return op == Op::ConjTrans || op == Op::ConjNoTrans; }

/// The untyped element of `bytes` bytes (1, 2, 4, 8 or 16).
constexpr DType untyped(int bytes) {
  return bytes == 1   ? DType::b1
         : bytes == 2 ? DType::b2
         : bytes == 4 ? DType::b4
         : bytes == 8 ? DType::b8
                      : DType::b16;
}

/// IEEE 754 binary16, a storage type: arithmetic is done in float. Conversion from float rounds to
/// nearest even, overflows to infinity and keeps NaN.
struct half {
  std::uint16_t bits = 0;

  half() = default;
  explicit constexpr half(float f) : bits(round(f)) {}
  explicit constexpr operator float() const {
    const std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16;
    const std::uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u)  // infinity, NaN
      return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    if (magnitude >= 0x0400u)
      return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
    const float subnormal = float(magnitude) * 0x1p-24f;
    return sign ? -subnormal : subnormal;
  }

 private:
  static constexpr std::uint16_t round(float f) {
    const std::uint32_t x = std::bit_cast<std::uint32_t>(f);
    const std::uint32_t sign = (x >> 16) & 0x8000u;
    const std::uint32_t a = x & 0x7fffffffu;
    if (a > 0x7f800000u) return std::uint16_t(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
    if (a >= 0x477ff000u) return std::uint16_t(sign | 0x7c00u);  // rounds to 2^16 or beyond
    if (a < 0x38800000u) {  // subnormal result: adding 0.5 leaves round(a * 2^24) in the low bits
      const float shifted = std::bit_cast<float>(a) + 0.5f;
      return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    }
    return std::uint16_t(sign | ((a - (112u << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13));
  }
};

/// bfloat16, a storage type like half: the upper 16 bits of a float, rounded to nearest even.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  explicit constexpr bfloat16(float f) : bits(round(f)) {}
  explicit constexpr operator float() const {
    return std::bit_cast<float>(std::uint32_t(bits) << 16);
  }

 private:
  static constexpr std::uint16_t round(float f) {
    const std::uint32_t x = std::bit_cast<std::uint32_t>(f);
    if ((x & 0x7fffffffu) > 0x7f800000u) return std::uint16_t((x >> 16) | 0x40u);
    return std::uint16_t((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
};

/// The tag of a C++ element type. Specialise it to pass a program's own 16-byte-or-smaller type
/// that has the representation of one of these (a toolkit's half type, say).
template <class T>
struct dtype_of;
template <>
struct dtype_of<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct dtype_of<double> : std::integral_constant<DType, DType::f64> {};
template <>
struct dtype_of<std::complex<float>> : std::integral_constant<DType, DType::cf32> {};
template <>
struct dtype_of<std::complex<double>> : std::integral_constant<DType, DType::cf64> {};
template <>
struct dtype_of<half> : std::integral_constant<DType, DType::f16> {};
template <>
struct dtype_of<bfloat16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct dtype_of<std::int8_t> : std::integral_constant<DType, DType::i8> {};
template <>
struct dtype_of<std::int32_t> : std::integral_constant<DType, DType::i32> {};

template <class T>
inline constexpr DType dtype_v = dtype_of<std::remove_cv_t<T>>::value;

/// Input and output types that gemm multiplies: equal real or complex types, 16-bit floats with
/// themselves or float out, int8 with int32 or float out.
constexpr bool is_gemm_pair(DType in, DType out) {
  switch (in) {
    case DType::f32:
    case DType::f64:
    case DType::cf32:
    case DType::cf64:
      return out == in;
    case DType::f16:
    case DType::bf16:
      return out == in || out == DType::f32;
    case DType::i8:
      return out == DType::i32 || out == DType::f32;
    default:
      return false;
  }
}

/// The type in which alpha and beta are given: the one that accumulates, or float where int8
/// products, which are exact, become a C of float.
constexpr DType scalar_type(DType in, DType out) {
  switch (in) {
    case DType::f16:
    case DType::bf16:
      return DType::f32;
    case DType::i8:
      return out == DType::f32 ? out : DType::i32;
    default:
      return in;
  }
}

/// Types that geam adds: the floating-point ones.
constexpr bool is_geam_type(DType t) { return t <= DType::bf16; }

namespace detail {
template <DType D>
struct scalar_of {
  using type = float;
};
template <>
struct scalar_of<DType::f64> {
  using type = double;
};
template <>
struct scalar_of<DType::cf32> {
  using type = std::complex<float>;
};
template <>
struct scalar_of<DType::cf64> {
  using type = std::complex<double>;
};
template <>
struct scalar_of<DType::i32> {
  using type = std::int32_t;
};
}  // namespace detail

/// scalar_type() of operands of type T and a result of type TC.
template <class T, class TC = T>
using scalar_t = typename detail::scalar_of<scalar_type(dtype_v<T>, dtype_v<TC>)>::type;

}  // namespace mblas
