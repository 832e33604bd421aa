// Products in shared memory on the ordinary cores: a thread computes kRows×kCols of C from vectors
// of up to four elements.
#pragma once

#include "cuda/gemm/products.cuh"
#include "cuda/gemm/tiny.cuh"

namespace mblas::cuda::tiny {

/// What rows of an operand in memory are, where the kernel knows it when it is compiled.
enum class Major { AlongK, Across, Either };

template <class In, class Out, Major kMajorA, Major kMajorB, int kRows, int kCols, int kBlocks_,
          int kGroupBytes_>
struct MultiplySimt {
  using Shared = In;
  using Acc = Accumulator<In>;
  static constexpr bool kLaysOut = false;
  static constexpr int kThreads = 128, kBlocks = kBlocks_;
  static constexpr int kGroupBytes = kGroupBytes_;
  static constexpr int kVec = sizeof(In) <= 4 ? 4 : 16 / int(sizeof(In));
  static constexpr int kSize = int(sizeof(In));
  static_assert(kRows % kVec == 0 && kCols % kVec == 0);

  /// kCount of `size` elements of an operand's outer dimension, those of tile `tile` of `tiles`:
  /// vectors of neighbours. Columns of B that run along k are dealt out one by one instead, which
  /// puts those that threads read together into different banks.
  template <Major kMajor, int kCount, bool kDealt>
  struct Side {
    bool along;
    int at[kCount], tile, tiles;
    __device__ bool along_k() const {
      return kMajor == Major::Either ? along : kMajor == Major::AlongK;
    }
    __device__ int index(int e) const {
      return kDealt && along_k() ? tile + e * tiles : (tile + e / kVec * tiles) * kVec + e % kVec;
    }
    __device__ Side(const Image& x, int g, int its_tile, int of_tiles, int size, bool along_)
        : along(along_), tile(its_tile), tiles(of_tiles) {
      const int from = x.begin + g * x.matrix;
      // Beyond the operand any element will do.
#pragma unroll
      for (int e = 0; e < kCount; ++e)
        at[e] = along_k() ? from + min(index(e), size - 1) * x.pitch
                          : from + (index(e) < size ? index(e) : 0) * kSize;
    }
    __device__ void read(Acc (&to)[kCount][kVec], const char* shared, const Image& x, int l,
                         bool conjugate) const {
      using V = Vector<In, kVec>;
      if (along_k()) {
#pragma unroll
        for (int o = 0; o < kCount; ++o) {
          const V v = *reinterpret_cast<const V*>(shared + at[o] + l * kSize);
#pragma unroll
          for (int e = 0; e < kVec; ++e) to[o][e] = widen(v.e[e], conjugate);
        }
      } else {
#pragma unroll
        for (int e = 0; e < kVec; ++e)
#pragma unroll
          for (int o = 0; o < kCount; o += kVec) {
            const V v = *reinterpret_cast<const V*>(shared + at[o] + (l + e) * x.pitch);
#pragma unroll
            for (int i = 0; i < kVec; ++i) to[o + i][e] = widen(v.e[i], conjugate);
          }
      }
    }
  };

  __device__ static void run(const Problem<Acc>& p, char* shared, char* results, int count) {
    using V = Vector<Out, kVec>;
    const int m = int(p.m), n = int(p.n), down = p.per_matrix / p.across;
    for (int t = int(threadIdx.x); t < count * p.per_matrix; t += kThreads) {
      const int g = p.by_per_matrix.quotient(t), tile = t - g * p.per_matrix;
      const int row = p.by_across.quotient(tile), col = tile - row * p.across;
      const Side<kMajorA, kRows, false> left(p.a, g, row, down, m, p.a_along_k);
      const Side<kMajorB, kCols, true> right(p.b, g, col, p.across, n, p.b_along_k);
      Acc sum[kRows][kCols] = {};
#pragma unroll 1
      for (int l = 0; l < p.depth; l += kVec) {
        Acc a[kRows][kVec], b[kCols][kVec];
        left.read(a, shared, p.a, l, p.conjugate_a);
        right.read(b, shared, p.b, l, p.conjugate_b);
#pragma unroll
        for (int e = 0; e < kVec; ++e)
          add_products<Reuse::A>([&](int i) { return a[i][e]; }, [&](int j) { return b[j][e]; },
                                 sum);
      }
      char* const c = results + g * p.c.matrix;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int r = left.index(i);
        if (r >= m) continue;
        Out* const line = reinterpret_cast<Out*>(c + r * p.c.pitch);
        if (right.along_k()) {
#pragma unroll
          for (int j = 0; j < kCols; ++j)
            if (right.index(j) < n) mblas::cuda::store(p, sum[i][j], line + right.index(j));
        } else {
#pragma unroll
          for (int j = 0; j < kCols; j += kVec) {
            if (right.index(j) >= n) continue;
            auto& place = *reinterpret_cast<V*>(line + right.index(j));
            V v;
            if (p.read_c) v = place;
#pragma unroll
            for (int e = 0; e < kVec; ++e) mblas::cuda::store(p, sum[i][j + e], &v.e[e]);
            place = v;
          }
        }
      }
    }
  }
};

template <class T, int kRows, int kCols, int kBlocks, int kGroupBytes>
void run_simt(const GemmArgs& args, const CudaQueue& queue) {
  const auto with = [&]<Major kA, Major kB>() {
    using Multiply = MultiplySimt<T, T, kA, kB, kRows, kCols, kBlocks, kGroupBytes>;
    launch_tiny<T, T, Multiply>(args, queue, kRows, kCols, Multiply::kThreads);
  };
  const bool a = !is_transposed(args.transA), b = is_transposed(args.transB);
  if (a && b)
    with.template operator()<Major::AlongK, Major::AlongK>();
  else if (a)
    with.template operator()<Major::AlongK, Major::Across>();
  else if (b)
    with.template operator()<Major::Across, Major::AlongK>();
  else
    with.template operator()<Major::Across, Major::Across>();
}

}  // namespace mblas::cuda::tiny
