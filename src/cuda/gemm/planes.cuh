// float as planes of bfloat16, and whether products can be computed from these: of numbers so large
// or small that a plane, a product or a sum might leave the range of normal numbers they can not,
// nor of NaN and infinities.
#pragma once

#include <cstdint>

#include "cuda/launch.cuh"

namespace mblas::cuda::gemm {

/// Of the numbers of an operand: the bits of the largest magnitude, and those of the smallest that
/// is not 0, less 1.
struct Range {
  unsigned most = 0, least = ~0u;

  __device__ void add(unsigned magnitude) {
    most = max(most, magnitude);
    least = min(least, magnitude - 1);
  }
  __device__ void add(const Range& x) {
    most = max(most, x.most);
    least = min(least, x.least);
  }
  /// That of all lanes, on each of them.
  __device__ Range of_warp() const {
    return {__reduce_max_sync(~0u, most), __reduce_min_sync(~0u, least)};
  }
};
struct alignas(16) Ranges {
  Range a, b;
};

__device__ inline unsigned magnitude_bits(float x) { return __float_as_uint(x) & 0x7fffffff; }
__device__ inline int exponent(unsigned magnitude) { return int(magnitude >> 23) - 127; }

/// Whether products of planes of bfloat16 of such operands, k of them in a sum, are all but exact.
__device__ inline bool suits_bf16_planes(const Ranges& x, std::int64_t k) {
  constexpr int kLargest = 126, kSmallest = -100;
  const int log_k = 64 - __clzll(k);
  const int most_a = exponent(x.a.most), most_b = exponent(x.b.most);
  const int least_a = exponent(x.a.least), least_b = exponent(x.b.least);
  return max(most_a, most_b) <= kLargest && most_a + most_b + 2 + log_k <= kLargest &&
         min(least_a, least_b) >= kSmallest && least_a + least_b >= kSmallest;
}

/// Planes of two neighbours along k, as fragments have them.
struct SplitPair {
  unsigned plane[3];

  __device__ explicit SplitPair(float2 x) {
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(plane[i]) : "f"(x.y), "f"(x.x));
      // (As a pair's parts, they would be taken apart and put together again.)
      x.x -= __uint_as_float(plane[i] << 16);
      x.y -= __uint_as_float(plane[i] & 0xffff0000);
    }
  }
};

}  // namespace mblas::cuda::gemm
