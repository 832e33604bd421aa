// Epilogues on the device: what becomes of alpha op(A) op(B) + beta C before it is rounded to C's
// type. For kernels that fuse them, and for the pass over C after those that do not.
#pragma once

#include "cuda/element.cuh"

namespace mblas::cuda {

/// An Epilogue as kernels are given it. N is the type in which it is computed.
template <class N>
struct Finish {
  template <class T>
  struct PartOf : std::type_identity<T> {};
  template <class T>
  struct PartOf<Complex<T>> : std::type_identity<T> {};

  const void* bias;
  typename PartOf<N>::type scale;
  BiasPer per;
  Activation activation;

  explicit Finish(const Epilogue& e)
      : bias(e.bias.data),
        scale(typename PartOf<N>::type(e.scale)),
        per(e.bias.per),
        activation(e.activation) {}
  Finish() = default;
};

/// GELU as x / (1 + exp(-2 √(2/π) (x + 0.044715 x³))): the same, without the cancellation of
/// 1 + tanh.
inline constexpr double kGelu1 = 1.5957691216057308, kGelu3 = 0.044715 * kGelu1;

__device__ inline double gelu(double x) { return x / (1 + exp(-x * (kGelu1 + kGelu3 * x * x))); }
__device__ inline float gelu(float x) {
  constexpr double log2e = 1.4426950408889634;
  constexpr float c1 = float(-kGelu1 * log2e), c3 = float(-kGelu3 * log2e);
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * (c1 + c3 * x * x)));
  return __fdividef(x, 1 + power);
}

/// The same for a C of bfloat16: tanh as the special function units compute it, to 2^-11 of itself
/// (PTX ISA), in place of their exponential and reciprocal. 2^-12 |x| is a sixteenth of such a C's
/// roundoff; towards -∞ it was measured to be far less.
__device__ inline float gelu_to_bfloat16(float x) {
  constexpr float c1 = float(kGelu1 / 2), c3 = float(kGelu3 / 2);
  const float half = 0.5f * x;
  float tanh;
  asm("tanh.approx.f32 %0, %1;" : "=f"(tanh) : "f"(x * (c1 + c3 * x * x)));
  return half + half * tanh;
}

template <class N>
__device__ N activated(Activation activation, N x) {
  if constexpr (!is_complex_v<N>) {
    if (activation == Activation::Relu) return x <= 0 ? N(0) : x;  // a NaN is left
    if (activation == Activation::Gelu) return gelu(x);
  }
  return x;
}

template <class N, class T>
__device__ N times(N x, T scale) {
  if constexpr (is_complex_v<N>)
    return {x.re * scale, x.im * scale};
  else
    return x * scale;
}

/// Number `i` of a bias of C's type.
template <class Out, class N>
__device__ N bias_at(const Finish<N>& f, std::int64_t i) {
  return widen(static_cast<const Out*>(f.bias)[i]);
}

/// Element (i, j) of C, but for its rounding, from what the epilogue is for.
template <class Out, class N>
__device__ N finished(const Finish<N>& f, N x, std::int64_t i, std::int64_t j) {
  if (f.per != BiasPer::None) x = x + bias_at<Out>(f, f.per == BiasPer::Row ? i : j);
  return times(activated(f.activation, x), f.scale);
}

}  // namespace mblas::cuda
