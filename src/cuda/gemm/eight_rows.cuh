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
  static_assert(kEach * 32 == 8 * kCols && kCols % 2 == 0);

  double* at;

  /// A lane's neighbours, of which the first one's column is even.
  __device__ void put(int row, int col, double v, double w) const {
    *reinterpret_cast<double2*>(at + row * kPitch + col) = {v, w};
  }

  /// What all lanes have put goes to C, or, kSums, as it is to where sums are kept: row r to row
  /// row_of(r) of `c`, if that is not negative, the first `cols` of it.
  template <bool kSums, class RowOf>
  __device__ void store(const GemmProblem<double>& p, double* c, std::int64_t ldc, int cols,
                        RowOf&& row_of) const {
    const int lane = thread_now() % 32;
    __syncwarp();
    double old[kEach];  // read together: after a store, the compiler would not begin to
    const auto for_each = [&](auto&& use) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int row = (i * 32 + lane) / kCols, col = (i * 32 + lane) % kCols, to = row_of(row);
        if (to >= 0 && col < cols) use(i, at[row * kPitch + col], c[to * ldc + col]);
      }
    };
    if (!kSums && p.read_c) for_each([&](int i, double, double c) { old[i] = c; });
    for_each([&](int i, double sum, double& c) {
      if constexpr (kSums) {
        c = sum;
      } else {
        const double x = p.alpha * sum;
        c = p.read_c ? multiply_add(p.beta, old[i], x) : x;
      }
    });
    __syncwarp();
  }
};

}  // namespace mblas::cuda::gemm
