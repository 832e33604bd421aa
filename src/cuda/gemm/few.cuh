// What the kernels of few_vectors.cu share.
#pragma once

#include "cuda/gemm/parts.cuh"

namespace mblas::cuda::gemm::few {

constexpr int kWarps = 8, kThreads = kWarps * 32;
constexpr int kBlocks = 2;  // that share a multiprocessor
constexpr int kLoads = 8;   // of 16 bytes of the matrix that a thread has under way

/// Rows of a warp, where memory runs along k: as many as registers allow.
constexpr int rows_of(int element_bytes, int count) { return element_bytes * count < 64 ? 4 : 2; }

template <class Acc>
struct Problem : parts::Problem<Acc> {
  DeviceInput Matrix{}, Few{};
  std::int64_t line = 0;  ///< elements between the lines of the matrix in memory
  Strides few{};          ///< of the vectors: from one to the next, along k
  bool conjugate_few = false;
};

/// Adds up kSums numbers over the lanes; sum number lane / (32 / kSums) is left in x[0].
template <int kSums, class T>
__device__ void add_lanes(T (&x)[kSums], int lane) {
  static_assert(kSums <= 32 && 32 % kSums == 0);
#pragma unroll
  for (int level = 0; (kSums >> level) > 1; ++level) {
    const int mask = 16 >> level, half = kSums >> (level + 1);
    const bool upper = (lane & mask) != 0;
#pragma unroll
    for (int i = 0; i < kSums / 2; ++i)
      if (i < half) {
        const T kept = upper ? x[i + half] : x[i], sent = upper ? x[i] : x[i + half];
        x[i] = kept + parts::from_lane(sent, mask);
      }
  }
#pragma unroll
  for (int mask = 32 / kSums / 2; mask > 0; mask /= 2) x[0] = x[0] + parts::from_lane(x[0], mask);
}

}  // namespace mblas::cuda::gemm::few
