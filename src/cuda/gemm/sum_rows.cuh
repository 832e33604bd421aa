// A tile's sums on their way from shared memory to rows of C.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/gemm/gemm.cuh"

namespace mblas::cuda::gemm {

/// kRows×kCols sums, rows kPitch apart, of each of kTurns, kTurn apart, which are added up. Lanes
/// have two neighbours at a time, a thread every kStep-th row.
template <class Acc, int kRows, int kCols, int kPitch, int kStep, int kTurns = 1, int kTurn = 0>
class SumRows {
  static constexpr int kEach = kRows / kStep, kGroup = std::min(kEach, 4);

 public:
  static constexpr int kLanes = kCols / 2;
  static_assert(kStep % 2 == 0 && kEach % kGroup == 0 && 32 % kLanes == 0 && kPitch % 2 == 0 &&
                kTurn % 2 == 0);

  /// The rows from `first` on of a thread, to C or to a part of it, `ld` apart: alpha times the
  /// sums, and, if it `reads`, beta times what is there.
  template <class Out>
  __device__ static void write(const Acc* sums, Out* c, std::int64_t ld, int first, int rows,
                               int cols, Acc alpha, Acc beta, bool reads) {
    const int lane = int(threadIdx.x) % kLanes;
    sums += first * kPitch;
    // The compiler sees no more that C is in global memory, where it may be one of two.
    c = static_cast<Out*>(__cvta_global_to_generic(__cvta_generic_to_global(c + first * ld)));
    // If rows begin in the middle of a pair, all of a thread's alike, its pairs are of two lanes.
    const bool odd = reinterpret_cast<std::uintptr_t>(c) / sizeof(Out) % 2 != 0;
    const int col = lane * 2 - odd;
    const bool paired = col >= 0 && col + 1 < cols;
    const Rest rest = {ld * kStep, first, rows, alpha, beta, reads};
    write_some<2>(sums + lane * 2, c + col, paired, odd, rest);
    // Then the first element is no half of a pair, nor may the last one be.
    const bool besides = odd && lane == kLanes - 1 && cols == kCols;
    const int at = besides ? kCols - 1 : max(col, 0);
    const bool single = besides || (!paired && at < cols);
    if (__any_sync(~0u, single)) write_some<1>(sums + at, c + at, single, false, rest);
  }

 private:
  struct Rest {
    std::int64_t step;  // elements of C from a row of a thread to its next
    int first, rows;    // its first one, and how many there are of all
    Acc alpha, beta;
    bool reads;
  };

  /// kCount neighbours of each row, if there `are` any, of which the lane before has the first one
  /// if they are `odd`. Several rows at once, of which none waits for another.
  template <int kCount, class Out>
  __device__ static void write_some(const Acc* sums, Out* c, bool are, bool odd, const Rest& rest) {
    using Place = Vector<Out, kCount>;
    const bool shifted = __any_sync(~0u, odd);
#pragma unroll 1
    for (int row = 0; row < rest.rows; row += kGroup * kStep) {
      Vector<Acc, kCount> x[kGroup];
      Place* place[kGroup];
      bool has[kGroup];
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const auto* const from =
            reinterpret_cast<const Vector<Acc, kCount>*>(sums + (row + i * kStep) * kPitch);
        x[i] = *from;
#pragma unroll
        for (int t = 1; t < kTurns; ++t) {
          const Vector<Acc, kCount> next = from[t * kTurn / kCount];
#pragma unroll
          for (int e = 0; e < kCount; ++e) x[i].e[e] += next.e[e];
        }
        place[i] = reinterpret_cast<Place*>(c);
        has[i] = are && rest.first + row + i * kStep < rest.rows;
        c += rest.step;
      }
      if constexpr (kCount == 2) {
        if (shifted) {
#pragma unroll
          for (int i = 0; i < kGroup; ++i) {
            const Acc before = __shfl_up_sync(~0u, x[i].e[1], 1);
            if (odd) x[i] = {before, x[i].e[0]};
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kGroup; ++i)
#pragma unroll
        for (int e = 0; e < kCount; ++e) x[i].e[e] *= rest.alpha;
      if (rest.reads) {
        Place there[kGroup] = {};
#pragma unroll
        for (int i = 0; i < kGroup; ++i)
          if (has[i]) there[i] = *place[i];
#pragma unroll
        for (int i = 0; i < kGroup; ++i)
#pragma unroll
          for (int e = 0; e < kCount; ++e)
            x[i].e[e] = multiply_add(rest.beta, widen(there[i].e[e]), x[i].e[e]);
      }
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        if (!has[i]) continue;
        if constexpr (kCount == 2)
          *place[i] = narrow_pair<Out>(x[i].e[0], x[i].e[1]);
        else
          *place[i] = {narrow<Out>(x[i].e[0])};
      }
    }
  }
};

}  // namespace mblas::cuda::gemm
