// Complex products by the fp64 tensor cores, which have real ones.
#pragma once

#include "cuda/gemm/instructions.cuh"

namespace mblas::cuda {

/// multiply_tile() of complex numbers: of A the upper and the lower eight rows.
__device__ inline void multiply_tile(Complex<double> (&sum)[4], Complex<double> upper,
                                     Complex<double> lower, Complex<double> b) {
  double re[4], im[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) re[e] = sum[e].re, im[e] = sum[e].im;
  multiply_tile(re, {upper.re, lower.re}, b.re);
  multiply_tile(im, {upper.re, lower.re}, b.im);
  multiply_tile(re, {-upper.im, -lower.im}, b.im);
  multiply_tile(im, {upper.im, lower.im}, b.re);
#pragma unroll
  for (int e = 0; e < 4; ++e) sum[e] = {re[e], im[e]};
}

}  // namespace mblas::cuda
