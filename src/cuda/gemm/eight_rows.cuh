// Results of a warp on their way from the fragments of its products to rows of C.
#pragma once

#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"

namespace mblas::cuda::gemm {

/// An element in one access, at a multiple of its size.
__device__ inline double load_element(const double* p) { return *p; }
__device__ inline Complex<double> load_element(const Complex<double>* p) {
  const double2 x = *reinterpret_cast<const double2*>(p);
  return {x.x, x.y};
}
__device__ inline void store_element(double* p, double x) { *p = x; }
__device__ inline void store_element(Complex<double>* p, Complex<double> x) {
  *reinterpret_cast<double2*>(p) = {x.re, x.im};
}

/// Eight rows of kCols results, which a warp's lanes leave in shared memory as their fragments have
/// them and store as neighbours. Stored from fragments, they would be twice to five times as many
/// accesses of the sectors of C, and lines of C would be written in parts, of which the cache takes
/// no more a second than of whole ones: a block of 64×64 complex numbers took 15,000 cycles then.
template <class T, int kCols>
struct EightRows {
  static constexpr int kPitch = kCols + 16 / int(sizeof(T));  // 16 bytes more
  static constexpr int kSize = 8 * kPitch;                    // elements
  static constexpr int kEach = 8 * kCols / 32;                // of a lane, as they are stored
  static_assert(32 % kCols == 0 && kCols % 2 == 0);

  T* at;
  int lane;

  /// A lane's two elements of a row, kApart columns from one to the other; of neighbours the first
  /// one's column is even.
  template <int kApart = 1>
  __device__ void put(int row, int col, T v, T w) const {
    T* const to = at + row * kPitch + col;
    if constexpr (sizeof(T) == 8 && kApart == 1)
      *reinterpret_cast<double2*>(to) = {v, w};
    else
      store_element(to, v), store_element(to + kApart, w);
  }

  /// What all lanes have put goes to C, or, `as_it_is`, to where sums are kept: row r to the one at
  /// c + r pitch, of which `rows` and `cols` are inside. `aligned`: elements of c lie at multiples
  /// of their size.
  __device__ void store(const GemmProblem<T>& p, T* c, std::int64_t pitch, int rows, int cols,
                        bool as_it_is, bool aligned = true) const {
    // Each step for all of them, and few steps: of what a small product takes, this is a tenth.
    // With branches around an element's steps, one after another, a block of 32×32 took 1,600
    // cycles here.
    constexpr int kAtOnce = 32 / kCols;  // rows
    const int row = lane / kCols, col = lane % kCols;
    const int there = col < cols ? rows - row : 0;
    __syncwarp();
    T x[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) x[i] = load_element(at + (row + i * kAtOnce) * kPitch + col);
    c += row * pitch + col;
    pitch *= kAtOnce;
    if (!as_it_is) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) x[i] = p.alpha * x[i];
      if (p.read_c) {
        T old[kEach] = {};
#pragma unroll
        for (int i = 0; i < kEach; ++i)
          if (i * kAtOnce < there) old[i] = c[i * pitch];
#pragma unroll
        for (int i = 0; i < kEach; ++i) x[i] = multiply_add(p.beta, old[i], x[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (i * kAtOnce < there) {
        if (sizeof(T) == 8 || aligned)
          store_element(c + i * pitch, x[i]);
        else
          c[i * pitch] = x[i];
      }
    __syncwarp();
  }
};

}  // namespace mblas::cuda::gemm
