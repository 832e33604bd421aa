// Products of `thin_batch` on the tensor cores: a warp computes 16 or 32 of C's longer side by 8 or
// 16 of the shorter one.
#include "cuda/gemm/complex_tile.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/thin_batch.cuh"

namespace mblas::cuda::thin_batch {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;

/// What a warp computes: of a product a tile of X's lines from `row` on, of k from k0 to k1.
struct Share {
  int product, row, k0, k1;
};

/// The lines of an operand that a share is of: where the first one's k0 is, how many there are, and
/// bytes from one to the next and from step to step of k.
struct Lines {
  const char* first;
  int count, line, step;
};
template <class Acc>
__device__ Lines x_lines(const Problem<Acc>& p, const Products& some, const Share& share) {
  return {some.x + share.product * p.x.matrix + share.k0 * p.x_step, p.length, p.x_line, p.x_step};
}
template <class Acc>
__device__ Lines y_lines(const Problem<Acc>& p, const Products& some, const Share& share) {
  return {some.y + share.product * p.y.matrix + share.k0 * p.y_step, p.count, p.y_line, p.y_step};
}

/// add(sum, share) and then put(sum, share) with each tile of a warp. Of a tile that several warps
/// share each adds its part of k; the first one puts their sums, added up in their order.
template <int kRows, int kDepth, class Sum, class Acc, class Add, class Put>
__device__ void for_tiles(const Problem<Acc>& p, const Products& some, Add&& add, Put&& put) {
  const int warp = int(threadIdx.x) / 32, all = some.count * p.down, k = int(p.k);
  const auto share_of = [&](int tile) {
    const int g = p.by_down.quotient(tile);
    return Share{g, (tile - g * p.down) * kRows, 0, k};
  };
  if (p.team == 0) {
    for (int t = warp; t < all; t += kWarps) {
      const Share share = share_of(t);
      Sum sum = {};
      add(sum, share);
      put(sum, share);
    }
    return;
  }
  // There is one for each warp at most.
  const int tile = warp >> p.team, team = 1 << p.team, part = warp & (team - 1);
  Share share = share_of(min(tile, all - 1));
  const int steps = (k + kDepth - 1) / kDepth;
  share.k0 = (steps * part >> p.team) * kDepth;
  share.k1 = min(k, (steps * (part + 1) >> p.team) * kDepth);
  Sum sum = {};
  if (tile < all) add(sum, share);
  constexpr int kCount = int(sizeof(Sum) / sizeof(Acc));
  Acc* const left = reinterpret_cast<Acc*>(some.sums) + warp * kCount * 32 + int(threadIdx.x) % 32;
  if (part > 0)
#pragma unroll
    for (int e = 0; e < kCount; ++e) left[e * 32] = sum.e[e];
  __syncthreads();
  if (part > 0 || tile >= all) return;
  for (int other = 1; other < team; ++other)
#pragma unroll
    for (int e = 0; e < kCount; ++e) sum.e[e] = sum.e[e] + left[(other * kCount + e) * 32];
  put(sum, share);
}

/// A warp's sums: of instruction (i, q) four a lane.
template <class Acc, int kI, int kQ>
struct Sums {
  Acc e[4 * kI * kQ];
  __device__ Acc (&of(int i, int q))[4] { return reinterpret_cast<Acc(&)[4]>(e[4 * (i * kQ + q)]); }
};

/// Writes them.
template <class Out, bool kReads, class Acc, int kI, int kQ>
__device__ void put_all(const Problem<Acc>& p, const Products& some, const Share& share,
                        const Sums<Acc, kI, kQ>& sum) {
  const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int below = p.length - share.row - g, right = p.count - 2 * t;
  char* line = some.c + share.product * p.c.matrix + (share.row + g) * p.c_x + 2 * t * p.c_y;
#pragma unroll
  for (int half = 0; half < 2 * kI; ++half, line += 8 * p.c_x) {
    if (8 * half >= below) break;
#pragma unroll
    for (int q = 0; q < kQ; ++q)
#pragma unroll
      for (int v = 0; v < 2; ++v)
        if (8 * q + v < right)
          put<kReads, Out>(p, sum.e[4 * (half / 2 * kQ + q) + half % 2 * 2 + v],
                           line + (8 * q + v) * p.c_y);
  }
}

// ---- half and bfloat16: 16 of k at a time, of which lane 4 g + t has 4 t to 4 t + 3.

/// kGroups groups of eight lines from line `row` on, of which a lane has the g-th.
template <bool kAlongK, int kGroups>
struct Side {
  static constexpr int kEach = 4;  // of k
  const char* at[kAlongK ? kGroups : kEach];
  int hop;

  __device__ Side(const Lines& x, int row) : hop(16 * x.step) {
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    if constexpr (kAlongK) {
#pragma unroll
      for (int q = 0; q < kGroups; ++q)
        at[q] = x.first + min(row + 8 * q + g, x.count - 1) * x.line + kEach * t * 2;
    } else {
#pragma unroll
      for (int e = 0; e < kEach; ++e) at[e] = x.first + (kEach * t + e) * x.step + (row + g) * 2;
    }
  }
  /// The lane's k of each group, those below `left` of the step.
  template <bool kAll>
  __device__ void read(unsigned (&to)[kGroups][2], int left) {
    const int t = int(threadIdx.x) % 4;
#pragma unroll
    for (int q = 0; q < kGroups; ++q)
#pragma unroll
      for (int e = 0; e < kEach; e += 2) {
        unsigned short pair[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const char* const from = kAlongK ? at[q] + (e + i) * 2 : at[e + i] + 8 * q * 2;
          pair[i] = kAll || kEach * t + e + i < left
                        ? *reinterpret_cast<const unsigned short*>(from)
                        : static_cast<unsigned short>(0);
        }
        to[q][e / 2] = __byte_perm(pair[0], pair[1], 0x5410);
      }
#pragma unroll
    for (auto& from : at) from += hop;
  }
};

template <class T, int kI, int kQ>
struct MultiplyHalves {
  static constexpr int kRows = 16 * kI, kCols = 8 * kQ;
  static constexpr int kThreads = thin_batch::kThreads, kBlocks = 6;
  static constexpr int kMostTeam = kWarps, kAtOnce = kWarps, kDepth = 16;
  using Sum = Sums<float, kI, kQ>;
  static constexpr int kSumsBytes = kThreads * int(sizeof(Sum));

  template <bool kXAlong, bool kYAlong>
  __device__ static void add(Sum& sum, const Problem<float>& p, const Products& some,
                             const Share& share) {
    Side<kXAlong, 2 * kI> x(x_lines(p, some, share), share.row);
    Side<kYAlong, kQ> y(y_lines(p, some, share), 0);
    const auto step = [&]<bool kAll>(int left) {
      unsigned a[2 * kI][2], b[kQ][2];
      x.template read<kAll>(a, left);
      y.template read<kAll>(b, left);
#pragma unroll
      for (int i = 0; i < kI; ++i)
#pragma unroll
        for (int q = 0; q < kQ; ++q)
          multiply_tile<T>(sum.of(i, q),
                           {a[2 * i][0], a[2 * i + 1][0], a[2 * i][1], a[2 * i + 1][1]}, b[q][0],
                           b[q][1]);
    };
    int left = share.k1 - share.k0;
#pragma unroll 2
    for (; left >= 16; left -= 16) step.template operator()<true>(left);
    if (left > 0) step.template operator()<false>(left);
  }

  template <class Out, bool kReads>
  __device__ static void run(const Problem<float>& p, const Products& some) {
    for_tiles<kRows, kDepth, Sum>(
        p, some,
        [&](Sum& sum, const Share& share) {
          if (p.x_along_k && p.y_along_k)
            add<true, true>(sum, p, some, share);
          else if (p.x_along_k)
            add<true, false>(sum, p, some, share);
          else if (p.y_along_k)
            add<false, true>(sum, p, some, share);
          else
            add<false, false>(sum, p, some, share);
        },
        [&](const Sum& sum, const Share& share) { put_all<Out, kReads>(p, some, share, sum); });
  }
};

// ---- doubles: 4 of k at a time, of which lane 4 g + t has the t-th.

/// Elements of kGroups groups of eight lines from line `row` on.
template <class T, int kGroups>
struct DoubleSide {
  const char* at[kGroups];
  int hop;

  __device__ DoubleSide(const Lines& x, int row) : hop(4 * x.step) {
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int q = 0; q < kGroups; ++q)
      at[q] = x.first + min(row + 8 * q + lane / 4, x.count - 1) * x.line + lane % 4 * x.step;
  }
  __device__ void read(T (&to)[kGroups], bool there) {
#pragma unroll
    for (int q = 0; q < kGroups; ++q) {
      to[q] = there ? *reinterpret_cast<const T*>(at[q]) : T{};
      at[q] += hop;
    }
  }
};

template <class T, int kI, int kQ>
struct MultiplyDoubles {
  static constexpr int kRows = 16 * kI, kCols = 8 * kQ;
  static constexpr int kThreads = thin_batch::kThreads, kBlocks = 5;
  static constexpr int kMostTeam = kWarps, kAtOnce = kWarps, kDepth = 4;
  using Sum = Sums<T, kI, kQ>;
  static constexpr int kSumsBytes = kThreads * int(sizeof(Sum));

  __device__ static void add(double (&sum)[4], double a, double below, double b,
                             const Problem<double>&) {
    multiply_tile(sum, {a, below}, b);
  }
  __device__ static void add(Complex<double> (&sum)[4], Complex<double> a, Complex<double> below,
                             Complex<double> b, const Problem<Complex<double>>& p) {
    multiply_tile(sum, widen(a, p.conjugate_x), widen(below, p.conjugate_x),
                  widen(b, p.conjugate_y));
  }

  template <class Out, bool kReads>
  __device__ static void run(const Problem<T>& p, const Products& some) {
    const auto multiply = [&](Sum& sum, const Share& share) {
      DoubleSide<T, 2 * kI> x(x_lines(p, some, share), share.row);
      DoubleSide<T, kQ> y(y_lines(p, some, share), 0);
      const auto step = [&](bool there) {
        T a[2 * kI], b[kQ];
        x.read(a, there);
        y.read(b, there);
#pragma unroll
        for (int i = 0; i < kI; ++i)
#pragma unroll
          for (int q = 0; q < kQ; ++q) add(sum.of(i, q), a[2 * i], a[2 * i + 1], b[q], p);
      };
      int left = share.k1 - share.k0;
#pragma unroll(sizeof(T) == 16 ? 2 : 4)
      for (; left >= 4; left -= 4) step(true);
      if (left > 0) step(int(threadIdx.x) % 4 < left);
    };
    for_tiles<kRows, kDepth, Sum>(p, some, multiply, [&](const Sum& sum, const Share& share) {
      put_all<Out, kReads>(p, some, share, sum);
    });
  }
};

/// f<kI, kQ>() with the instructions of a tile.
template <int kMostI, class F>
void with_tile(const GemmArgs& args, F&& f) {
  const bool two = std::min(args.m, args.n) > 8;
  if (kMostI > 1 && std::max(args.m, args.n) > 16) {
    if (two)
      f.template operator()<kMostI, 2>();
    else
      f.template operator()<kMostI, 1>();
  } else if (two) {
    f.template operator()<1, 2>();
  } else {
    f.template operator()<1, 1>();
  }
}

}  // namespace

void run_mma(const GemmArgs& args, const CudaQueue& queue) {
  constexpr int kGroupBytes = 32 << 10;
  const Plan plan(args);
  if (args.in == DType::f64)
    return with_tile<2>(args, [&]<int kI, int kQ>() {
      launch<double, double, MultiplyDoubles<double, kI, kQ>>(args, plan, queue, kGroupBytes);
    });
  if (args.in == DType::cf64)
    return with_tile<1>(args, [&]<int kI, int kQ>() {
      using T = Complex<double>;
      launch<T, T, MultiplyDoubles<T, kI, kQ>>(args, plan, queue, kGroupBytes);
    });
  with_tile<2>(args, [&]<int kI, int kQ>() {
    with_gemm_types(args.in, args.out, [&]<class In, class Out>() {
      if constexpr (sizeof(In) == 2)
        launch<In, Out, MultiplyHalves<In, kI, kQ>>(args, plan, queue, kGroupBytes);
    });
  });
}

}  // namespace mblas::cuda::thin_batch
