// Tiles that are one contiguous run of elements on a side: whole matrices, or whole rows of few
// elements. Rows of such matrices are shorter than a warp's access; as a run they are read or
// written like a copy, and only the way between shared memory and the other side knows the shape.
#pragma once

#include "cuda/transpose/turn.cuh"

namespace mblas::cuda::turn {

/// e / d for 0 <= e, d < 2^16.
struct Divisor {
  unsigned d, factor;
  explicit Divisor(int by = 1)
      : d(unsigned(by)), factor(by == 1 ? 0 : unsigned((std::uint64_t(1) << 32) / d + 1)) {}
  __device__ int quotient(int e) const { return d == 1 ? e : int(__umulhi(unsigned(e), factor)); }
};

/// Where element f of a contiguous run lies in shared memory: one unit of the banks is left out
/// after all of them have had one, so that most strides meet different banks.
template <int S>
__device__ int skewed(int f) {
  return S < 4 ? f + (f / (128 / S)) * (4 / S) : f + f / (128 / S);
}
/// Elements of shared memory for a run of `count`.
template <int S>
constexpr int skewed_size(int count) {
  return S < 4 ? count + (count / (128 / S) + 1) * (4 / S) : count + count / (128 / S) + 1;
}

/// How a tile is accessed: in vectors of 16 bytes, as a contiguous run of elements, or in rows that
/// lie apart.
enum class Run { Vectors, Elements, Strided };

constexpr int log2_of(int x) { return x <= 1 ? 0 : 1 + log2_of(x / 2); }

/// The `count` elements from row `i` of a matrix of `width` columns, to shared memory.
template <int S, Run kRun, int kThreads>
__device__ void load_run(Raw<S>* shared, const Raw<S>* a, std::int64_t ld, int count, int width,
                         const Divisor& by_width, CacheMark mark) {
  if constexpr (kRun == Run::Vectors) {
    constexpr int kElements = 16 / S, kAtOnce = 4;
    for (int f0 = int(threadIdx.x) * kElements; f0 < count; f0 += kThreads * kElements * kAtOnce) {
      uint4 v[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (const int f = f0 + k * kThreads * kElements; f + kElements <= count)
          v[k] = load_marked(reinterpret_cast<const uint4*>(a + f), mark);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int f = f0 + k * kThreads * kElements, to = skewed<S>(f);
        const auto* x = reinterpret_cast<const Raw<S>*>(&v[k]);
        if (f + kElements <= count) {
#pragma unroll
          for (int e = 0; e < kElements; ++e) shared[to + e] = x[e];
        } else {
          for (int e = 0; f + e < count; ++e) shared[to + e] = a[f + e];
        }
      }
    }
  } else {
    constexpr int kAtOnce = std::clamp(64 / S, 4, 16);
    for (int f0 = int(threadIdx.x); f0 < count; f0 += kThreads * kAtOnce) {
      Raw<S> x[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int f = f0 + k * kThreads;
        if (f >= count) continue;
        if constexpr (kRun == Run::Elements) {
          x[k] = load_marked(a + f, mark);
        } else {
          const int row = by_width.quotient(f);
          x[k] = load_marked(a + row * ld + (f - row * width), mark);
        }
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (const int f = f0 + k * kThreads; f < count) shared[skewed<S>(f)] = x[k];
    }
  }
}

/// The way back.
template <int S, Run kRun, int kThreads>
__device__ void store_run(const Raw<S>* shared, Raw<S>* b, std::int64_t ld, int count, int width,
                          const Divisor& by_width) {
  if constexpr (kRun == Run::Vectors) {
    constexpr int kElements = 16 / S;
#pragma unroll 4
    for (int f = int(threadIdx.x) * kElements; f < count; f += kThreads * kElements) {
      const int from = skewed<S>(f);
      uint4 v;
      auto* x = reinterpret_cast<Raw<S>*>(&v);
      if (f + kElements <= count) {
#pragma unroll
        for (int e = 0; e < kElements; ++e) x[e] = shared[from + e];
        store_whole(b + f, v);
      } else {
        for (int e = 0; f + e < count; ++e) b[f + e] = shared[from + e];
      }
    }
  } else {
#pragma unroll 4
    for (int f = int(threadIdx.x); f < count; f += kThreads) {
      if constexpr (kRun == Run::Elements) {
        b[f] = shared[skewed<S>(f)];
      } else {
        const int row = by_width.quotient(f);
        b[row * ld + (f - row * width)] = shared[skewed<S>(f)];
      }
    }
  }
}

/// Matrices of few columns: 2^log_rows of their rows at a time are one run of A.
template <int S, Run kRun, int kThreads, class Problem>
__global__ void __launch_bounds__(kThreads)
    tall_kernel(const __grid_constant__ Problem p, const __grid_constant__ Part part, int log_rows,
                const __grid_constant__ Divisor by_n) {
  begin_early();
  constexpr bool kVectors = kRun == Run::Vectors;
  constexpr int kElements = kVectors ? 16 / S : 1;
  extern __shared__ uint4 memory[];
  auto* shared = reinterpret_cast<Raw<S>*>(memory);
  const int n = int(p.n), rows = 1 << log_rows;
  const std::int64_t b = part.batch + blockIdx.z, i0 = std::int64_t(blockIdx.x) * rows;
  const int height = int(min(std::int64_t(rows), p.m - i0));
  const auto source = p.source(b, part.hold.mark());
  load_run<S, kRun, kThreads>(shared, source.a + i0 * source.ld, source.ld, height * n, n, by_n,
                              source.mark);
  __syncthreads();
  if (part.hold.takes_back(blockIdx)) source.template take_marks_back<kThreads>(i0, 0, height, n);
  const auto sink = p.sink(b);
  Raw<S>* to = sink.b + i0;
  const int log_units = log_rows - (kVectors ? log2_of(16 / S) : 0);
#pragma unroll 4
  for (int u = int(threadIdx.x); u < n << log_units; u += kThreads) {
    const int j = u >> log_units, i = (u - (j << log_units)) * kElements;
    Raw<S>* place = to + j * sink.ld + i;
    if constexpr (kVectors) {
      if (i + kElements <= height) {
        uint4 v;
        auto* x = reinterpret_cast<Raw<S>*>(&v);
#pragma unroll
        for (int e = 0; e < kElements; ++e) x[e] = shared[skewed<S>((i + e) * n + j)];
        store_whole(place, v);
        continue;
      }
    }
    for (int e = 0; e < kElements && i + e < height; ++e)
      place[e] = shared[skewed<S>((i + e) * n + j)];
  }
}

/// Matrices of few rows: 2^log_cols of their columns at a time become one run of B.
template <int S, Run kRun, int kThreads, class Problem>
__global__ void __launch_bounds__(kThreads)
    wide_kernel(const __grid_constant__ Problem p, const __grid_constant__ Part part, int log_cols,
                const __grid_constant__ Divisor by_m) {
  begin_early();
  constexpr bool kVectors = kRun == Run::Vectors;
  constexpr int kElements = kVectors ? 16 / S : 1;
  constexpr int kAtOnce = kVectors ? 4 : std::clamp(64 / S, 4, 16);
  using Unit = std::conditional_t<kVectors, uint4, Raw<S>>;
  extern __shared__ uint4 memory[];
  auto* shared = reinterpret_cast<Raw<S>*>(memory);
  const int m = int(p.m), cols = 1 << log_cols;
  const std::int64_t b = part.batch + blockIdx.z, j0 = std::int64_t(blockIdx.x) * cols;
  const int width = int(min(std::int64_t(cols), p.n - j0));
  const auto source = p.source(b, part.hold.mark());
  const Raw<S>* from = source.a + j0;
  const int log_units = log_cols - (kVectors ? log2_of(16 / S) : 0), units = m << log_units;
  for (int u0 = int(threadIdx.x); u0 < units; u0 += kThreads * kAtOnce) {
    Unit v[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int u = u0 + k * kThreads, i = u >> log_units;
      const int j = (u - (i << log_units)) * kElements;
      if (u < units && j + kElements <= width)
        v[k] = load_marked(reinterpret_cast<const Unit*>(from + i * source.ld + j), source.mark);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int u = u0 + k * kThreads, i = u >> log_units;
      const int j = (u - (i << log_units)) * kElements;
      const auto* x = reinterpret_cast<const Raw<S>*>(&v[k]);
      if (u < units && j + kElements <= width) {
#pragma unroll
        for (int e = 0; e < kElements; ++e) shared[skewed<S>((j + e) * m + i)] = x[e];
      } else if (u < units) {
        for (int e = 0; j + e < width; ++e)
          shared[skewed<S>((j + e) * m + i)] = from[i * source.ld + j + e];
      }
    }
  }
  __syncthreads();
  if (part.hold.takes_back(blockIdx)) source.template take_marks_back<kThreads>(0, j0, m, width);
  const auto sink = p.sink(b);
  store_run<S, kRun, kThreads>(shared, sink.b + j0 * sink.ld, sink.ld, width * m, m, by_m);
}

/// Whole matrices without gaps inside or between: `matrices` of them at a time are one run of A and
/// one of B.
template <int S, Run kRun, int kThreads, class Problem>
__global__ void __launch_bounds__(kThreads)
    tiny_kernel(const __grid_constant__ Problem p, const __grid_constant__ Hold hold, int matrices,
                const __grid_constant__ Divisor by_m, const __grid_constant__ Divisor by_n) {
  begin_early();
  extern __shared__ uint4 memory[];
  auto* shared = reinterpret_cast<Raw<S>*>(memory);
  const int m = int(p.m), n = int(p.n);
  {
    const std::int64_t first = std::int64_t(blockIdx.x) * matrices;
    const int count = int(min(std::int64_t(matrices), p.batch - first)) * m * n;
    const auto source = p.source(first, hold.mark());
    load_run<S, kRun, kThreads>(shared, source.a, 0, count, 0, by_m, source.mark);
    __syncthreads();
    if (hold.takes_back(blockIdx)) cuda::take_marks_back<kThreads>(source.a, 0, 1, count * S);
    Raw<S>* b = p.sink(first).b;
#pragma unroll 4
    for (int f = int(threadIdx.x); f < count; f += kThreads) {
      const int line = by_m.quotient(f), i = f - line * m, g = by_n.quotient(line);
      b[f] = shared[skewed<S>((g * m + i) * n + (line - g * n))];
    }
  }
}

}  // namespace mblas::cuda::turn
