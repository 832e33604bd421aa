// Rows of C = scale activation(alpha S + beta C + bias), by stretches that stay in the first-level
// cache from one step to the next. GELU, at some 20 operations an element, is the one step that
// takes as long as memory does.
#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

constexpr std::int64_t kStretch = 256;

// x / (1 + exp(-2 √(2/π) (x + 0.044715 x³))): GELU's formula without its cancellation. A NaN passes
// the comparisons.
constexpr double kLog2e = 1.4426950408889634;
constexpr double kGelu1 = -1.5957691216057308 * kLog2e, kGelu3 = 0.044715 * kGelu1;

/// 2^f for |f| <= 1/2 by its Taylor series, kTerms of it: ln(2)^n / n!.
constexpr double kSeries[] = {1,
                              6.9314718055994531e-1,
                              2.4022650695910071e-1,
                              5.5504108664821580e-2,
                              9.6181291076284772e-3,
                              1.3333558146428443e-3,
                              1.5403530393381610e-4,
                              1.5252733804059841e-5,
                              1.3215486790144309e-6,
                              1.0178086009239700e-7,
                              7.0549116208011233e-9,
                              4.4455382718708115e-10,
                              2.5678435993488205e-11,
                              1.3691488853904129e-12};
/// Of `count` numbers, in whole vectors: there is room for them.
template <class Real>
void gelu(Real* y, std::int64_t count) {
  constexpr bool kDouble = sizeof(Real) == 8;
  using Bits = std::conditional_t<kDouble, std::uint64_t, std::uint32_t>;
  using V = Vector<Real>;
  using B = Vector<Bits>;
  constexpr int kMantissa = kDouble ? 52 : 23, kTerms = kDouble ? 14 : 8;
  constexpr Bits kBias = kDouble ? 1023 : 127;
  constexpr Real kRound = Real(1.5) * Real(Bits(1) << kMantissa);  // leaves the nearest integer
  constexpr V kNone{};
  constexpr V kLeast = kNone - Real(kBias - 1), kMost = kNone + Real(kBias + 1);
  for (std::int64_t j = 0; j < count; j += kLanes<Real>) {
    const V x = load<V>(y + j);
    V t = x * (Real(kGelu1) + Real(kGelu3) * x * x);
    t = t > kMost ? kMost : t;  // 2^kMost is infinity
    t = t < kLeast ? kLeast : t;
    const V rounded = t + kRound, f = t - (rounded - kRound);
    const B exponent = __builtin_bit_cast(B, rounded) - __builtin_bit_cast(Bits, kRound) + kBias;
    V e = kNone + Real(kSeries[kTerms - 1]);
#pragma GCC unroll 16
    for (int i = kTerms - 2; i >= 0; --i) e = e * f + Real(kSeries[i]);
    store(y + j, x / (1 + __builtin_bit_cast(V, exponent << kMantissa) * e));
  }
}

/// Sums as they are computed with: integers as float.
MBLAS_INLINE float number(std::int32_t x) { return float(x); }
MBLAS_INLINE float number(float x) { return x; }
MBLAS_INLINE double number(double x) { return x; }

template <class S, class Out>
void real_rows(const FinishRows& x) {
  using Real = decltype(number(S()));
  const auto alpha = Real(x.alpha.re), beta = Real(x.beta.re), scale = Real(x.epilogue.scale);
  const Epilogue& e = x.epilogue;
  const auto* bias = static_cast<const Out*>(e.bias.data);
  for (std::int64_t i = 0; i < x.m; ++i) {
    const auto* s = static_cast<const S*>(x.S) + i * x.lds;
    auto* c = static_cast<Out*>(x.C) + i * x.ldc;
    for (std::int64_t j0 = 0; j0 < x.n; j0 += kStretch, s += kStretch, c += kStretch) {
      const std::int64_t count = smaller(kStretch, x.n - j0);
      Real y[kStretch];
      for (std::int64_t j = count & -kLanes<Real>; j < round_up(count, kLanes<Real>); ++j) y[j] = 0;
      for (std::int64_t j = 0; j < count; ++j) y[j] = alpha * number(s[j]);
      if (beta != 0)
        for (std::int64_t j = 0; j < count; ++j) y[j] += beta * widen(c[j]);
      if (e.bias.per == BiasPer::Column)
        for (std::int64_t j = 0; j < count; ++j) y[j] += widen(bias[j0 + j]);
      if (e.bias.per == BiasPer::Row) {
        const Real b = widen(bias[i]);
        for (std::int64_t j = 0; j < count; ++j) y[j] += b;
      }
      if (e.activation == Activation::Relu)
        for (std::int64_t j = 0; j < count; ++j) y[j] = y[j] <= 0 ? 0 : y[j];
      if (e.activation == Activation::Gelu) gelu(y, count);
      for (std::int64_t j = 0; j < count; ++j) narrow(&c[j], scale * y[j]);
    }
  }
}

/// S is C itself, alpha 1 and beta 0.
template <class Real>
void complex_rows(const FinishRows& x) {
  const auto* bias = static_cast<const Real*>(x.epilogue.bias.data);
  const auto scale = Real(x.epilogue.scale);
  for (std::int64_t i = 0; i < x.m; ++i) {
    auto* c = static_cast<Real*>(x.C) + 2 * i * x.ldc;
    if (x.epilogue.bias.per == BiasPer::Column)
      for (std::int64_t j = 0; j < 2 * x.n; ++j) c[j] += bias[j];
    if (x.epilogue.bias.per == BiasPer::Row)
      for (std::int64_t j = 0; j < 2 * x.n; ++j) c[j] += bias[2 * i + j % 2];
    for (std::int64_t j = 0; j < 2 * x.n; ++j) c[j] *= scale;
  }
}

}  // namespace

const FinishKernel gemm_finish[7] = {
    {DType::f32, DType::f32, real_rows<float, float>},
    {DType::f32, DType::f16, real_rows<float, half>},
    {DType::f32, DType::bf16, real_rows<float, bfloat16>},
    {DType::i32, DType::f32, real_rows<std::int32_t, float>},
    {DType::f64, DType::f64, real_rows<double, double>},
    {DType::cf32, DType::cf32, complex_rows<float>},
    {DType::cf64, DType::cf64, complex_rows<double>},
};

}  // namespace mblas::cpu::MBLAS_ISA
