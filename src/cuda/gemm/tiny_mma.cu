// Tiny products of half and bfloat16 by mma.sync, and of bytes as bfloat16: products of bytes and
// their sums up to k = 1024 are exact in float. A warp computes 16×16 or 16×32 of C.
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/tiny.cuh"

namespace mblas::cuda::tiny {
namespace {

constexpr int kRows = 16;

/// kThreads: 128, or more for matrices of which a block has one.
template <class T, class Out, class Acc, int kCols, int kThreads_>
struct MultiplyMma {
  using Shared = T;
  static constexpr bool kLaysOut = true;
  static constexpr int kThreads = kThreads_;
  static constexpr int kBlocks = kThreads > 256               ? 2
                                 : kThreads > 128             ? 4
                                 : std::is_same_v<Acc, float> ? 6
                                                              : 5;
  static constexpr int kVec = 8, kGroupBytes = 32 << 10;

  __device__ static Acc sum_of(float x) {
    if constexpr (std::is_same_v<Acc, float>)
      return x;
    else
      return Acc(int(x));
  }

  /// Four 8×8 matrices of an operand: elements o and o + 8 of the outer dimension, l and l + 8 of
  /// k. kOuterFirst: the second one is o + 8, not l + 8. Lanes beyond the operand read inside it.
  template <bool kOuterFirst, bool kAlongK>
  struct Side {
    unsigned at, step;  // where the lane reads; bytes to the next 16 of k
    unsigned second;    // bytes from l to the lane's row: there may be no l + 8

    __device__ Side(const char* matrix, const Image& x, int o, int size) {
      const int lane = int(threadIdx.x) % 32, middle = lane & 8, high = (lane & 16) / 2;
      const int outer = o + (kOuterFirst ? middle : high), l = kOuterFirst ? high : middle;
      const int inside = outer < size ? outer : 0;
      step = kAlongK ? 32 : unsigned(16 * x.pitch);
      second = unsigned(l) * step / 16;
      at = shared_address(matrix) + second +
           (kAlongK ? unsigned(min(inside + lane % 8, size - 1) * x.pitch)
                    : unsigned(lane % 8 * x.pitch + inside * 2));
    }
    __device__ void read(unsigned (&to)[4]) {
      load_matrices<!kAlongK>(to, at);
      at += step;
    }
  };

  template <bool kAAlongK, bool kBAlongK>
  __device__ static void add(float (&sum)[kCols / 8][4], const Problem<Acc>& p,
                             const char* a_matrix, const char* b_matrix, int i0, int j0) {
    constexpr int kPairs = kCols / 16;
    const int n = int(p.n);
    Side<true, kAAlongK> left(a_matrix, p.a, i0, int(p.m));
    using Right = Side<false, kBAlongK>;
    Right right[] = {Right(b_matrix, p.b, j0, n), Right(b_matrix, p.b, j0 + kCols - 16, n)};
    const bool all = kPairs == 1 || j0 + 16 < n;
    int l = p.depth;
#pragma unroll 1
    for (; l >= 16; l -= 16) {
      unsigned a[4], b[4];
      left.read(a);
#pragma unroll
      for (int q = 0; q < kPairs; ++q) {
        if (q > 0 && !all) break;
        right[q].read(b);
        multiply_tile<T>(sum[2 * q], a, b[0], b[1]);
        multiply_tile<T>(sum[2 * q + 1], a, b[2], b[3]);
      }
    }
    if (l > 0) {
      unsigned a[4], b[4];
      left.at -= left.second;
      left.read(a);
#pragma unroll
      for (int q = 0; q < kPairs; ++q) {
        if (q > 0 && !all) break;
        right[q].at -= right[q].second;
        right[q].read(b);
        multiply_half_tile<T>(sum[2 * q], a, b[0]);
        multiply_half_tile<T>(sum[2 * q + 1], a, b[2]);
      }
    }
  }

  __device__ static void run(const Problem<Acc>& p, char* shared, char* results, int count) {
    const int m = int(p.m), n = int(p.n), lane = int(threadIdx.x) % 32;
    for (int t = int(threadIdx.x) / 32; t < count * p.per_matrix; t += kThreads / 32) {
      const int g = p.by_per_matrix.quotient(t), tile = t - g * p.per_matrix;
      const int row = p.by_across.quotient(tile);
      const int i0 = row * kRows, j0 = (tile - row * p.across) * kCols;
      const char* const a_matrix = shared + p.a.begin + g * p.a.matrix;
      const char* const b_matrix = shared + p.b.begin + g * p.b.matrix;
      float sum[kCols / 8][4] = {};
      if (p.a_along_k && p.b_along_k)
        add<true, true>(sum, p, a_matrix, b_matrix, i0, j0);
      else if (p.a_along_k)
        add<true, false>(sum, p, a_matrix, b_matrix, i0, j0);
      else if (p.b_along_k)
        add<false, true>(sum, p, a_matrix, b_matrix, i0, j0);
      else
        add<false, false>(sum, p, a_matrix, b_matrix, i0, j0);
      const int i = i0 + lane / 4, j = j0 + lane % 4 * 2, left = n - j;
      char* line = results + g * p.c.matrix + i * p.c.pitch + j * int(sizeof(Out));
#pragma unroll
      for (int half = 0; half < 2; ++half, line += 8 * p.c.pitch) {
        if (i + 8 * half >= m) break;
#pragma unroll
        for (int q = 0; q < kCols / 8; ++q) {
          if (8 * q >= left) break;
          Out* const to = reinterpret_cast<Out*>(line) + 8 * q;
          auto& pair = *reinterpret_cast<Vector<Out, 2>*>(to);
          const bool second = 8 * q + 1 < left;
          Acc x = p.alpha * sum_of(sum[q][2 * half]), y = p.alpha * sum_of(sum[q][2 * half + 1]);
          if (p.read_c) {
            Vector<Out, 2> old = {};
            if (!p.c.packed) {
              old = pair;
            } else {
              old.e[0] = to[0];
              if (second) old.e[1] = to[1];
            }
            x = multiply_add(p.beta, widen(old.e[0]), x);
            y = multiply_add(p.beta, widen(old.e[1]), y);
          }
          const Vector<Out, 2> both = narrow_pair<Out>(x, y);
          if (!p.c.packed) {
            pair = both;
          } else {
            to[0] = both.e[0];
            if (second) to[1] = both.e[1];
          }
        }
      }
    }
  }
};

}  // namespace

void run_mma(const GemmArgs& args, const CudaQueue& queue) {
  const auto with = [&]<class In, class Out, class Shared>() {
    const auto launch = [&]<int kCols, int kThreads>() {
      launch_tiny<In, Out, MultiplyMma<Shared, Out, Accumulator<In>, kCols, kThreads>>(
          args, queue, kRows, kCols, kThreads / 32);
    };
    constexpr std::int64_t kSmall = 64;
    constexpr int kThirdOfShared = 76 << 10;
    if (args.n <= 16)
      launch.template operator()<16, 128>();
    else if (std::max(args.m, args.n) <= kSmall)
      launch.template operator()<32, 128>();
    else if (plan_of_narrow(args).bytes(1, args.beta != Scalar{}) <= kThirdOfShared)
      launch.template operator()<32, 256>();
    else
      launch.template operator()<32, 512>();
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
