// half and bfloat16, exhaustively, and the functions of types.hpp and accuracy.hpp.
#include "mblas/types.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "mblas/accuracy.hpp"
#include "support.hpp"

namespace mblas::testing {
namespace {

/// The value of a binary floating-point pattern, from its definition.
double value_of(unsigned bits, int exponent_bits, int fraction_bits) {
  const unsigned fraction = bits & ((1u << fraction_bits) - 1);
  const unsigned exponent = (bits >> fraction_bits) & ((1u << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> (exponent_bits + fraction_bits) ? -1 : 1;
  if (exponent == (1u << exponent_bits) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(double(fraction), 1 - bias - fraction_bits);
  return sign *
         std::ldexp(double(fraction + (1u << fraction_bits)), int(exponent) - bias - fraction_bits);
}

template <class T>
struct Format;
template <>
struct Format<half> {
  static constexpr int kExponent = 5, kFraction = 10;
};
template <>
struct Format<bfloat16> {
  static constexpr int kExponent = 8, kFraction = 7;
};

template <class T>
double value_of(unsigned bits) {
  return value_of(bits, Format<T>::kExponent, Format<T>::kFraction);
}

template <class T>
T from_bits(unsigned bits) {
  T x;
  x.bits = std::uint16_t(bits);
  return x;
}

template <class T>
struct SixteenBits : ::testing::Test {};
using SixteenBitTypes = ::testing::Types<half, bfloat16>;
TYPED_TEST_SUITE(SixteenBits, SixteenBitTypes);

TYPED_TEST(SixteenBits, EveryPatternToFloatAndBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto x = from_bits<TypeParam>(bits);
    const double want = value_of<TypeParam>(bits);
    const float got = float(x);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_TRUE(std::isnan(float(TypeParam(got)))) << bits;
      continue;
    }
    ASSERT_EQ(double(got), want) << bits;
    ASSERT_EQ(std::signbit(got), std::signbit(want)) << bits;
    ASSERT_EQ(TypeParam(got).bits, bits);
  }
}

/// Rounding to nearest, ties to even: `low` and low + 1 are neighbours, f lies between.
template <class T>
unsigned rounded(unsigned low, double f) {
  const double below = value_of<T>(low);
  // The neighbour of the largest number is what the next exponent would be.
  const double above =
      std::isinf(value_of<T>(low + 1)) ? 2 * below - value_of<T>(low - 1) : value_of<T>(low + 1);
  if (f - below == above - f) return low % 2 ? low + 1 : low;
  return f - below < above - f ? low : low + 1;
}

TYPED_TEST(SixteenBits, RoundsToNearestEvenBetweenAnyTwoNeighbours) {
  const unsigned infinity = ((1u << Format<TypeParam>::kExponent) - 1)
                            << Format<TypeParam>::kFraction;
  for (unsigned low = 0; low < infinity; ++low) {
    const double below = value_of<TypeParam>(low);
    const double above = low + 1 == infinity ? 2 * below - value_of<TypeParam>(low - 1)
                                             : value_of<TypeParam>(low + 1);
    const float middle = float((below + above) / 2);
    ASSERT_TRUE(std::isinf(middle) || double(middle) == (below + above) / 2) << "exact in float";
    const float inf = std::numeric_limits<float>::infinity();
    for (const float f :
         {float(below), std::nextafter(float(below), inf), std::nextafter(middle, -inf), middle,
          std::nextafter(middle, inf), std::nextafter(float(above), -inf)}) {
      if (std::isinf(f)) continue;
      const unsigned want = rounded<TypeParam>(low, double(f));
      ASSERT_EQ(TypeParam(f).bits, want) << f << " above pattern " << low;
      ASSERT_EQ(TypeParam(-f).bits, want | 0x8000u) << -f;
    }
  }
  const float huge = std::numeric_limits<float>::max();
  EXPECT_EQ(TypeParam(huge).bits, infinity);
  EXPECT_EQ(TypeParam(-std::numeric_limits<float>::infinity()).bits, infinity | 0x8000u);
}

TYPED_TEST(SixteenBits, NaNStaysNaNAndKeepsItsSign) {
  for (const std::uint32_t bits :
       {0x7f800001u, 0x7fbfffffu, 0x7fc00000u, 0x7fffffffu, 0x7f801fffu, 0x7f80ffffu}) {
    EXPECT_TRUE(std::isnan(float(TypeParam(std::bit_cast<float>(bits))))) << std::hex << bits;
    EXPECT_EQ(TypeParam(std::bit_cast<float>(bits | 0x80000000u)).bits >> 15, 1);
  }
}

TEST(Half, ConstantsOfTheFormat) {
  static_assert(half(1.0f).bits == 0x3c00 && half(-2.0f).bits == 0xc000);
  static_assert(bfloat16(1.0f).bits == 0x3f80);
  EXPECT_EQ(half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(half(0x1p-24f).bits, 1);
  EXPECT_EQ(half(0x1p-25f).bits, 0);
  EXPECT_EQ(half(0x1.000002p-25f).bits, 1);
  EXPECT_EQ(half(-0.0f).bits, 0x8000);
}

TEST(TypeNames, AreThoseOfTheTags) {
  EXPECT_EQ(name_of(DType::f32), "f32");
  EXPECT_EQ(name_of(DType::bf16), "bf16");
  EXPECT_EQ(name_of(DType::b16), "b16");
  EXPECT_EQ(name_of(Compute::OzakiFP64), "ozaki");
  EXPECT_EQ(name_of(Status::Internal), "Internal");
  EXPECT_EQ(dtype_v<std::complex<float>>, DType::cf32);
  EXPECT_EQ(dtype_v<const half>, DType::f16);
  static_assert(std::is_same_v<scalar_t<half>, float>);
  static_assert(std::is_same_v<scalar_t<std::int8_t>, std::int32_t>);
  static_assert(std::is_same_v<scalar_t<std::int8_t, std::int32_t>, std::int32_t>);
  static_assert(std::is_same_v<scalar_t<std::int8_t, float>, float>);
  static_assert(std::is_same_v<scalar_t<std::complex<double>>, std::complex<double>>);
  for (const int size : {1, 2, 4, 8, 16}) EXPECT_EQ(size_of(untyped(size)), size);
}

TEST(Accuracy, BoundsGrowWithWhatTheyDependOn) {
  EXPECT_EQ(unit_roundoff(DType::f32), std::numeric_limits<float>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::f64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(smallest_positive(DType::f32), double(std::numeric_limits<float>::denorm_min()));
  EXPECT_EQ(smallest_positive(DType::f64), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(smallest_positive(DType::f16), value_of<half>(1));
  EXPECT_EQ(smallest_positive(DType::bf16), value_of<bfloat16>(1));
  EXPECT_EQ(gemm_bound(DType::i8, DType::i32, 100, 1e6, 1), 0);
  EXPECT_TRUE(std::isinf(gemm_bound(DType::f32, DType::f32, 1 << 24, 1, 1)));
  EXPECT_NEAR(gemm_bound(DType::f64, DType::f64, 998, 1, 1), 1000 * 0x1p-53, 1e-18);
  for (const auto& [in, out] : gemm_pairs()) {
    if (in == DType::i8) continue;
    EXPECT_LT(gemm_bound(in, out, 10, 1, 1), gemm_bound(in, out, 1000, 1, 1));
    EXPECT_LT(gemm_bound(in, out, 10, 1, 1), gemm_bound(in, out, 10, 2, 1));
    EXPECT_LT(geam_bound(in, 1, 1), 4 * unit_roundoff(in) * 2.9);
  }
  // Epilogues: one more term; the activation's slope and its own error; a factor.
  const auto bound = [](const Epilogue& e) {
    return gemm_bound(DType::f32, DType::f32, 10, 1, 0, Compute::Default, e, 0.5);
  };
  const double plain = bound({});
  EXPECT_NEAR(bound({{BiasPer::Row}, Activation::None, 1}) / plain, 13.0 / 12, 1e-5);
  EXPECT_EQ(bound({{}, Activation::Relu, 1}), plain);
  EXPECT_NEAR(bound({{}, Activation::Gelu, 1}), 1.13 * plain + 0.5 * 0x1p-21, 1e-3 * plain);
  EXPECT_NEAR(bound({{}, Activation::None, -8}) / plain, 8, 1e-5);
  EXPECT_EQ(gemm_bound(DType::i8, DType::f32, 1 << 20, 1, 1),
            gemm_bound(DType::f32, DType::f32, 2, 1, 1));
  const auto ozaki = [](double tolerance) {
    return gemm_bound(DType::f64, DType::f64, 10, 1, 1, Compute::OzakiFP64, {}, 0, 2, tolerance);
  };
  EXPECT_LT(ozaki(0), 1e-14);
  EXPECT_NEAR(ozaki(1e-3), 2e-3, 1e-14);
  EXPECT_GT(gemm_bound(DType::f16, DType::f16, 10, 1, 1),
            gemm_bound(DType::f16, DType::f32, 10, 1, 1));
}

}  // namespace
}  // namespace mblas::testing
