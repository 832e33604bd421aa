// What becomes of tiles whose steps along k several blocks had (schedule.hpp).
#pragma once

#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/groups.cuh"
#include "cuda/gemm/schedule.hpp"

namespace mblas::cuda::gemm {

constexpr int kAddThreads = 256;

/// C = alpha (the sum of a tile's parts) + beta C, for the tiles that are in parts, of
/// TileInC::kRows×kCols of C from TileInC::place(p, tile) on. A thread has 16 bytes of C, or, of
/// many parts, a group's share of them.
template <class TileInC, class Problem>
__global__ void __launch_bounds__(kAddThreads)
    add_parts_kernel(const __grid_constant__ Problem p, int groups) {
  using T = std::remove_cvref_t<decltype(*p.parts)>;
  constexpr int kVec = kVector<T>, kSize = TileInC::kRows * TileInC::kCols / kVec;
  constexpr int kAtOnce = 8;  // loads under way
  static_assert(kSize % kAddThreads == 0, "a block's elements are of one tile");
  static_assert(TileInC::kCols % kVec == 0);
  __shared__ Vector<T> shared[kAddThreads];
  const auto add = [](Vector<T>& to, const Vector<T>& x) {
#pragma unroll
    for (int v = 0; v < kVec; ++v) to.e[v] = to.e[v] + x.e[v];
  };
  const Group group(groups);
  const Schedule& s = p.schedule;
  const int blocks = kSize / group.width;  // of a tile
  const int cut = int(blockIdx.x) / blocks;
  const int e = int(blockIdx.x) % blocks * group.width + group.element;
  const int begin = cut * s.steps, end = begin + s.steps;
  const int first = s.range_of(begin), count = s.range_of(end - 1) - first + 1;
  if (count == 1) return;
  const auto* const parts = reinterpret_cast<const Vector<T>*>(p.parts) + e;
  Vector<T> sum = {};
  for (int i = group.begin(count); i < group.end(count); i += kAtOnce) {
    Vector<T> x[kAtOnce] = {};
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (i + j < group.end(count)) {
        const bool second = i + j == 0 && s.begin(first) < begin;
        x[j] = parts[std::int64_t(2 * (first + i + j) + second) * kSize];
      }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) add(sum, x[j]);
  }
  if (!group.join(shared, sum, add)) return;
  const Tiles::Place place = TileInC::place(p, s.whole + cut);
  const std::int64_t row = place.row + e * kVec / TileInC::kCols;
  const std::int64_t col = place.col + e * kVec % TileInC::kCols;
  if (row >= p.m) return;
  T* const c = static_cast<T*>(p.C.at(place.batch)) + row * p.ldc + col;
  if (col + kVec <= p.n && reinterpret_cast<std::uintptr_t>(c) % sizeof(sum) == 0) {
    auto* const to = reinterpret_cast<Vector<T>*>(c);
    Vector<T> result = p.read_c ? *to : Vector<T>{};
#pragma unroll
    for (int v = 0; v < kVec; ++v) store(p, sum.e[v], &result.e[v]);
    *to = result;
  } else {
#pragma unroll
    for (int v = 0; v < kVec; ++v)
      if (col + v < p.n) store(p, sum.e[v], c + v);
  }
}

/// Where there are such tiles.
template <class TileInC, class Problem>
void add_parts(const Problem& p, const CudaQueue& queue) {
  using T = std::remove_cvref_t<decltype(*p.parts)>;
  const Schedule& s = p.schedule;
  const int cut = s.tiles - s.whole;
  if (s.ranges <= cut) return;
  // Started early, all takes longer: f64 64x64x262144 88 us, not 80.
  const int groups = groups_for(s.ranges / cut);
  launch(queue, add_parts_kernel<TileInC, Problem>,
         std::int64_t(cut) * (TileInC::kRows * TileInC::kCols / kVector<T> / kAddThreads) * groups,
         dim3(kAddThreads), p, groups);
}

}  // namespace mblas::cuda::gemm
