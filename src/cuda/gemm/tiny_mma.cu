// Tiny products of half and bfloat16 by mma.sync, and of bytes as bfloat16: products of bytes and
// their sums up to k = 1024 are exact in float. A warp computes 16×16 or 16×32 of C.
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/tiny.cuh"

namespace mblas::cuda::tiny {
namespace {

constexpr int kRows = 16;

template <class Out, class Acc>
__device__ Vector<Out, 2> narrow_pair(Acc x, Acc y) {
  if constexpr (std::is_same_v<Out, __half>) {
    const __half2 v = __floats2half2_rn(x, y);
    return {v.x, v.y};
  } else if constexpr (std::is_same_v<Out, __nv_bfloat16>) {
    const __nv_bfloat162 v = __floats2bfloat162_rn(x, y);
    return {v.x, v.y};
  } else {
    return {Out(x), Out(y)};
  }
}

template <class T, class Out, class Acc, int kCols>
struct MultiplyMma {
  using Shared = T;
  static constexpr int kBlocks = std::is_same_v<Acc, float> ? 6 : 5;
  static constexpr int kVec = 8, kGroupBytes = 32 << 10;

  __device__ static Acc sum_of(float x) {
    if constexpr (std::is_same_v<Acc, float>)
      return x;
    else
      return Acc(int(x));
  }

  /// Four 8×8 matrices of an operand: elements o and o + 8 of the outer dimension, l and l + 8 of
  /// k. kOuterFirst: the second one is o + 8, not l + 8.
  template <bool kOuterFirst>
  struct Side {
    bool along_k;
    int step, last;  // bytes from l to l + 1; where there is no l + 8, these lanes use l
    const char* at;
    __device__ Side(const char* matrix, const Image& x, bool along, int o, int size)
        : along_k(along), step(along ? 2 : x.pitch) {
      const int lane = int(threadIdx.x) % 32, second = lane & 8, third = (lane & 16) / 2;
      const int outer = o + (kOuterFirst ? second : third), l = kOuterFirst ? third : second;
      last = l;
      const int inside = outer < size ? outer : 0;
      at = along ? matrix + min(inside + lane % 8, size - 1) * x.pitch + l * 2
                 : matrix + (l + lane % 8) * x.pitch + inside * 2;
    }
    __device__ void read(unsigned (&to)[4], int l, int depth) const {
      const char* const row = at + (l + 8 < depth ? l : l - last) * step;
      if (along_k)
        load_matrices<false>(to, shared_address(row));
      else
        load_matrices<true>(to, shared_address(row));
    }
  };

  __device__ static void run(const Problem<Acc>& p, char* shared, int count) {
    const int m = int(p.m), n = int(p.n), lane = int(threadIdx.x) % 32;
    for (int t = int(threadIdx.x) / 32; t < count * p.per_matrix; t += kThreads / 32) {
      const int g = p.by_per_matrix.quotient(t), tile = t - g * p.per_matrix;
      const int row = p.by_across.quotient(tile);
      const int i0 = row * kRows, j0 = (tile - row * p.across) * kCols;
      const char* const b_matrix = shared + p.b.begin + g * p.b.matrix;
      const Side<true> left(shared + p.a.begin + g * p.a.matrix, p.a, p.a_along_k, i0, m);
      const Side<false> right[] = {{b_matrix, p.b, p.b_along_k, j0, n},
                                   {b_matrix, p.b, p.b_along_k, j0 + kCols - 16, n}};
      float sum[kCols / 8][4] = {};
#pragma unroll 1
      for (int l = 0; l < p.depth; l += 16) {
        unsigned a[4];
        left.read(a, l, p.depth);
#pragma unroll
        for (int q = 0; q < kCols / 16; ++q) {
          if (q > 0 && j0 + 16 * q >= n) break;
          unsigned b[4];
          right[q].read(b, l, p.depth);
          if (l + 8 < p.depth) {
            multiply_tile<T>(sum[2 * q], a, b[0], b[1]);
            multiply_tile<T>(sum[2 * q + 1], a, b[2], b[3]);
          } else {
            multiply_half_tile<T>(sum[2 * q], a, b[0]);
            multiply_half_tile<T>(sum[2 * q + 1], a, b[2]);
          }
        }
      }
      const int i = i0 + lane / 4, j = j0 + lane % 4 * 2;
      char* const c = shared + p.c.begin + g * p.c.matrix + i * p.c.pitch + j * int(sizeof(Out));
#pragma unroll
      for (int q = 0; q < kCols / 8; ++q) {
        if (kCols > 16 && q == 2 && j0 + 16 >= n) break;
        if (j + 8 * q >= n) continue;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (i + 8 * half >= m) continue;
          auto& place = *reinterpret_cast<Vector<Out, 2>*>(c + 8 * half * p.c.pitch +
                                                           8 * q * int(sizeof(Out)));
          Acc x = p.alpha * sum_of(sum[q][2 * half]), y = p.alpha * sum_of(sum[q][2 * half + 1]);
          if (p.read_c) {
            const Vector<Out, 2> old = place;
            x = multiply_add(p.beta, widen(old.e[0]), x);
            y = multiply_add(p.beta, widen(old.e[1]), y);
          }
          place = narrow_pair<Out>(x, y);
        }
      }
    }
  }
};

}  // namespace

void run_mma(const GemmArgs& args, const CudaQueue& queue) {
  const auto with = [&]<class In, class Out, class Shared>() {
    using Acc = Accumulator<In>;
    if (args.n <= 16)
      launch_tiny<In, Out, MultiplyMma<Shared, Out, Acc, 16>>(args, queue, kRows, 16,
                                                              kThreads / 32);
    else
      launch_tiny<In, Out, MultiplyMma<Shared, Out, Acc, 32>>(args, queue, kRows, 32,
                                                              kThreads / 32);
  };
  if (args.in == DType::i8)
    with.template operator()<std::int8_t, std::int32_t, __nv_bfloat16>();
  else if (args.in == DType::f16 && args.out == DType::f16)
    with.template operator()<__half, __half, __half>();
  else if (args.in == DType::f16)
    with.template operator()<__half, float, __half>();
  else if (args.out == DType::bf16)
    with.template operator()<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16>();
  else
    with.template operator()<__nv_bfloat16, float, __nv_bfloat16>();
}

}  // namespace mblas::cuda::tiny
