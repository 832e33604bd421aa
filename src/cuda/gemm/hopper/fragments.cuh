// The rows' operand by way of registers. The tensor cores take elements of 4 bytes from shared
// memory only with k innermost; out of registers they take them as they come.
//
// In a stage, 64 rows are two boxes of 32 rows by 32 of k, 128 bytes of each k, whose chunks of 16
// are swizzled. Which two rows an instruction has as rows l / 4 and l / 4 + 8 of a warp's 16 in
// lane l is free, as long as their sums are put where they belong: here neighbours, which one load
// of 8 bytes brings. Loads of 16 lanes, of four k, are served together, the swizzle changing the
// low two bits of their chunks: lanes of the same k need chunks that differ in the third. They
// differ in the first as well, so that sums of C^T can be written to boxes without conflicts, too:
// there rows two apart are together, and the swizzle changes the second bit and the third.
#pragma once

#include "cuda/gemm/hopper/problem.cuh"

namespace mblas::cuda::gemm::hopper {

/// The first of a thread's two neighbouring rows among 64.
__device__ inline int spread_row(int thread) {
  const int warp = thread / 32, pair = thread % 32 / 4;
  const int chunk = (warp % 2 * 2 + pair / 4) ^ (pair / 2 % 2 * 5);
  return warp / 2 * kSquare + chunk * 4 + pair % 2 * 2;
}

/// A thread's share of the rows' operand in half a stage: for each step of 32 bytes along k, of
/// each 64 rows.
template <class T>
using Fragments = unsigned[kDepthProducts / 2][T::kBlocks][4];

/// Where a thread finds its share in a panel.
struct FragmentPlaces {
  unsigned of[2];  ///< of k, and of k 4 further on

  __device__ explicit FragmentPlaces(int thread) {
    const int row = spread_row(thread), k = thread % 4;
    for (int four = 0; four < 2; ++four)
      of[four] = unsigned(row / kSquare * kSquareBytes) + swizzled(k + four * 4, row % kSquare * 4);
  }

  /// Those of half `half` of a stage, whose panel is at `panel`.
  template <class T>
  __device__ void load(Fragments<T>& f, unsigned panel, int half) const {
    constexpr int kSteps = kDepthProducts / 2, kStepBytes = 8 * 128;
#pragma unroll
    for (int l = 0; l < kSteps; ++l)
#pragma unroll
      for (int i = 0; i < T::kBlocks; ++i)
#pragma unroll
        for (int four = 0; four < 2; ++four) {
          const uint2 x = load_shared<uint2>(
              panel + of[four] + unsigned((half * kSteps + l) * kStepBytes + i * kBoxBytes));
          f[l][i][four * 2] = x.x;
          f[l][i][four * 2 + 1] = x.y;
        }
  }
};

}  // namespace mblas::cuda::gemm::hopper
