// Which of the kernels on the binary tensor cores takes a product.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cuda::gf256 {

/// Whether `tensor_b1` would be faster than `tensor_mma`: estimates, in microseconds, from timings
/// on an H200 (docs/BENCHMARKING.md). The first has to pack both operands and passes 24 times over
/// each tile of C, and then multiplies seven times as fast.
inline bool tensor_b1_pays(const Gf256Args& args) {
  const double m = double(args.m), n = double(args.n), k = double(args.k);
  const double b1 = 35 + m * n * k / 240e6 + (m + n) * k / 0.6e6 + m * n / 0.3e6;
  const double mma = 5 + m * n * k / 35e6;
  return b1 < mma;
}

}  // namespace mblas::cuda::gf256
