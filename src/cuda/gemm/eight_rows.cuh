// Results of a warp on their way from the fragments of its products to rows of C.
#pragma once

#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"

namespace mblas::cuda::gemm {

/// Eight rows of kCols results of doubles, which a warp's lanes leave in shared memory as their
/// fragments have them and store as neighbours: stored from fragments, two at a time, or one where
/// rows of C start anywhere, they would be twice to five times as many accesses of the sectors of
/// C.
template <int kCols>
struct EightRows {
  static constexpr int kPitch = kCols + 2;      // pairs are at multiples of 16 bytes
  static constexpr int kSize = 8 * kPitch;      // doubles
  static constexpr int kEach = 8 * kCols / 32;  // of a lane, as they are stored
  static_assert(32 % kCols == 0 && kCols % 2 == 0);

  double* at;
  int lane;

  /// A lane's neighbours, of which the first one's column is even.
  __device__ void put(int row, int col, double v, double w) const {
    *reinterpret_cast<double2*>(at + row * kPitch + col) = {v, w};
  }

  /// What all lanes have put goes to C, or, `as_it_is`, to where sums are kept: row r to the one at
  /// c + r pitch, of which `rows` and `cols` are inside.
  __device__ void store(const GemmProblem<double>& p, double* c, std::int64_t pitch, int rows,
                        int cols, bool as_it_is) const {
    // Each step for all of them, and few steps: of what a small product takes, this is a tenth. With
    // branches around an element's steps, one after another, a block of 32×32 took 1,600 cycles
    // here.
    constexpr int kAtOnce = 32 / kCols;  // rows
    const int row = lane / kCols, col = lane % kCols;
    const int there = col < cols ? rows - row : 0;
    __syncwarp();
    double x[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) x[i] = at[(row + i * kAtOnce) * kPitch + col];
    c += row * pitch + col;
    pitch *= kAtOnce;
    if (!as_it_is) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) x[i] = p.alpha * x[i];
      if (p.read_c) {
        double old[kEach];
#pragma unroll
        for (int i = 0; i < kEach; ++i) old[i] = i * kAtOnce < there ? c[i * pitch] : 0;
#pragma unroll
        for (int i = 0; i < kEach; ++i) x[i] = multiply_add(p.beta, old[i], x[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (i * kAtOnce < there) c[i * pitch] = x[i];
    __syncwarp();
  }
};

}  // namespace mblas::cuda::gemm
