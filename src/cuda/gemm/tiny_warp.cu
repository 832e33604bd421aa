// Batches of products of 17 to 32 rows and columns, a warp for each, or for half of it, on the
// tensor cores: limited by memory. The operands go from memory straight to the registers in which
// the instructions want them, without shared memory and without waiting for other warps: which
// rows, columns and k an instruction gets is free as long as both operands agree, so lanes read
// vectors of 8 or 16 bytes and write vectors of 16.
//
// On an H200, batches of 32x32x32, ratios to cuBLAS (NN, NT, TN, TT): 100,000 of bf16 2.2 to 2.3,
// as fast as a copy; 30,000 of f64 0.94, 0.87, 1.01, 1.00; 10,000 of cf64 0.86, 0.86, 0.91, 0.86.
#include <algorithm>

#include "cuda/early.cuh"
#include "cuda/gemm/fills.hpp"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/majors.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace tiny_warp_file {

constexpr int kThreads = 64;
constexpr int kLeast = 17, kMost = 32;  // of m and n; k is at most kMost

/// c = alpha sums + beta c for neighbours.
template <class Out, int kCount, class Acc>
__device__ void store_vector(const GemmProblem<Acc>& p, const Acc (&sums)[kCount], Out* c) {
  auto& place = *reinterpret_cast<Vector<Out, kCount>*>(c);
  Vector<Out, kCount> v;
  if (p.read_c) v = place;
#pragma unroll
  for (int e = 0; e < kCount; ++e) store(p, sums[e], &v.e[e]);
  place = v;
  asm volatile("" ::: "memory");  // all at once would want more registers
}

/// An operand as a warp sees it: `outer` rows of op(A), or columns of op(B), and k. kFull: kMost
/// of both, which saves the registers of comparisons.
template <class In, bool kAlongK_, bool kFull>
struct Side {
  static constexpr bool kAlongK = kAlongK_;
  const In* x;
  int ld, outer, k;
  __device__ bool has(int o) const { return kFull || o < outer; }
  __device__ bool has(int o, int l) const { return kFull || (o < outer && l < k); }
};

// ---- doubles: instructions of 16×8 by 4 of k. Lane 4 g + t has k = 8 s + 2 t + r in step s, r.

/// Which of 8 columns of an instruction is the g-th of a group of memory's: with these a lane's
/// results are neighbours.
__device__ inline int spread(int g) { return g % 2 * 4 + g / 2; }

/// Of step s element (outer, k) of each of four groups q of 8.
template <class X>
__device__ void load_step(double (&to)[2][4], const X& x, int s) {
  using Pair = Vector<double, 2>;
  const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  if constexpr (X::kAlongK) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int o = 8 * q + g, k = 8 * s + 2 * t;
      Pair v = {};
      if (x.has(o, k)) v = *reinterpret_cast<const Pair*>(x.x + o * x.ld + k);
      to[0][q] = v.e[0];
      to[1][q] = v.e[1];
    }
  } else {
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int o = 16 * half + 2 * spread(g), k = 8 * s + 2 * t + r;
        Pair v = {};
        if (x.has(o, k)) v = *reinterpret_cast<const Pair*>(x.x + k * x.ld + o);
        to[r][2 * half] = v.e[0];
        to[r][2 * half + 1] = v.e[1];
      }
  }
}

template <class A, class B>
__device__ void multiply(const GemmProblem<double>& p, const A& a, const B& b, double* c, int) {
  constexpr int kAhead = 2, kSteps = kMost / 8;
  double x[kAhead][2][4], y[kAhead][2][4], sums[2][4][4] = {};
#pragma unroll
  for (int u = 0; u < kAhead; ++u) {
    load_step(x[u], a, u);
    load_step(y[u], b, u);
  }
#pragma unroll
  for (int s = 0; s < kSteps; s += kAhead)
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int q = 0; q < 4; ++q)
            multiply_tile(sums[i][q], {x[u][r][2 * i], x[u][r][2 * i + 1]}, y[u][r][q]);
      asm volatile("" ::: "memory");  // loads earlier would want more registers
      if (s + u + kAhead >= kSteps) continue;
      load_step(x[u], a, s + u + kAhead);
      load_step(y[u], b, s + u + kAhead);
    }
  const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = A::kAlongK ? 16 * i + 8 * half + g : 16 * i + 2 * spread(g) + half;
      if (!a.has(row)) continue;
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const int col = 8 * q + 2 * t;
        if (!b.has(col)) continue;
        const double two[] = {
            B::kAlongK ? sums[i][q][2 * half] : sums[i][q / 2 * 2][2 * half + q % 2],
            B::kAlongK ? sums[i][q][2 * half + 1] : sums[i][q / 2 * 2 + 1][2 * half + q % 2]};
        store_vector(p, two, c + row * p.ldc + col);
      }
    }
}

// ---- complex doubles: a warp has 16 rows, and k in steps of 4.

template <class X>
__device__ Complex<double> load_one(const X& x, int o, int k) {
  Complex<double> v = {};
  if (x.has(o, k)) v = x.x[X::kAlongK ? o * x.ld + k : k * x.ld + o];
  return v;
}

template <class A, class B>
__device__ void multiply(const GemmProblem<Complex<double>>& p, const A& a, const B& b,
                         Complex<double>* c, int part) {
  constexpr int kAhead = 2, kSteps = kMost / 4;
  const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  struct Step {
    Complex<double> a[2], b[4];
  };
  const auto load = [&](Step& step, int s) {
    const int k = 4 * s + t;
#pragma unroll
    for (int i = 0; i < 2; ++i) step.a[i] = load_one(a, 16 * part + 8 * i + g, k);
#pragma unroll
    for (int q = 0; q < 4; ++q) step.b[q] = load_one(b, 8 * q + spread(g), k);
  };
  Step steps[kAhead];
#pragma unroll
  for (int u = 0; u < kAhead; ++u) load(steps[u], u);
  double re[4][4] = {}, im[4][4] = {};
#pragma unroll
  for (int s = 0; s < kSteps; s += kAhead)
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      Step& step = steps[u];
      double ar[2], ai[2], minus[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        ar[i] = step.a[i].re;
        ai[i] = p.conjugate_a ? -step.a[i].im : step.a[i].im;
        minus[i] = -ai[i];
      }
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const double br = step.b[q].re, bi = p.conjugate_b ? -step.b[q].im : step.b[q].im;
        multiply_tile(re[q], ar, br);
        multiply_tile(im[q], ar, bi);
        multiply_tile(re[q], minus, bi);
        multiply_tile(im[q], ai, br);
      }
      asm volatile("" ::: "memory");  // loads earlier would want more registers
      if (s + u + kAhead < kSteps) load(step, s + u + kAhead);
    }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = 16 * part + 8 * half + g;
    if (!a.has(row)) continue;
#pragma unroll
    for (int q = 0; q < 4; ++q)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (const int col = 8 * q + 4 * e + t; b.has(col)) {
          const Complex<double> one[] = {{re[q][2 * half + e], im[q][2 * half + e]}};
          store_vector(p, one, c + row * p.ldc + col);
        }
  }
}

// ---- half and bfloat16: instructions of 16×8 by 16 of k. Lane 4 g + t has k = 8 t to 8 t + 7, of
// the outer side 4 g to 4 g + 3.

template <class X>
__device__ void load_side(unsigned (&to)[4][4], const X& x) {
  const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  if constexpr (X::kAlongK) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      uint4 v = {};
      if (x.has(4 * g + q, 8 * t))
        v = *reinterpret_cast<const uint4*>(x.x + (4 * g + q) * x.ld + 8 * t);
      to[q][0] = v.x;
      to[q][1] = v.y;
      to[q][2] = v.z;
      to[q][3] = v.w;
    }
  } else {
    uint2 rows[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      rows[i] = {};
      if (x.has(4 * g, 8 * t))
        rows[i] = *reinterpret_cast<const uint2*>(x.x + (8 * t + i) * x.ld + 4 * g);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint2 u = rows[2 * i], v = rows[2 * i + 1];
      to[0][i] = __byte_perm(u.x, v.x, 0x5410);
      to[1][i] = __byte_perm(u.x, v.x, 0x7632);
      to[2][i] = __byte_perm(u.y, v.y, 0x5410);
      to[3][i] = __byte_perm(u.y, v.y, 0x7632);
    }
  }
}

template <class In, bool kAlongA, bool kAlongB, bool kFull, class Out>
__device__ void multiply(const GemmProblem<float>& p, const Side<In, kAlongA, kFull>& a,
                         const Side<In, kAlongB, kFull>& b, Out* c, int) {
  unsigned x[4][4], y[4][4];
  load_side(x, a);
  load_side(y, b);
  float sums[2][4][4] = {};
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        multiply_tile<In>(
            sums[i][q],
            {x[2 * i][2 * s], x[2 * i + 1][2 * s], x[2 * i][2 * s + 1], x[2 * i + 1][2 * s + 1]},
            y[q][2 * s], y[q][2 * s + 1]);
  const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  constexpr int kCount = int(16 / sizeof(Out));
  if (!b.has(8 * t)) return;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 4 * g + 2 * i + half;
      if (!a.has(row)) continue;
#pragma unroll
      for (int first = 0; first < 8; first += kCount) {
        float some[kCount];
#pragma unroll
        for (int e = 0; e < kCount; ++e)
          some[e] = sums[i][(first + e) % 4][2 * half + (first + e) / 4];
        store_vector(p, some, c + row * p.ldc + 8 * t + first);
      }
    }
}

/// Warps that a product takes.
template <class In>
constexpr int kParts = is_complex_v<In> ? 2 : 1;
/// Blocks that share a multiprocessor's registers.
template <class In, bool kFull>
constexpr int kBlocks = sizeof(In) == 2 ? 8
                        : kFull         ? 5
                                        : 4;

template <class In, class Out, bool kAlongA, bool kAlongB, bool kFull>
__global__ void __launch_bounds__(kThreads, (kBlocks<In, kFull>))
    tiny_warp_kernel(const __grid_constant__ GemmProblem<Accumulator<In>> p) {
  constexpr int kProducts = kThreads / 32 / kParts<In>;
  begin_early();
  const int warp = int(threadIdx.x) / 32, part = warp % kParts<In>;
  const std::int64_t i = blockIdx.x * std::int64_t(kProducts) + warp / kParts<In>;
  if (i >= p.tiles.batch) return;
  const int lda = int(kAlongA ? p.a.row : p.a.col), ldb = int(kAlongB ? p.b.col : p.b.row);
  const auto* const a = static_cast<const In*>(p.A.at(i));
  const auto* const b = static_cast<const In*>(p.B.at(i));
  multiply(p, Side<In, kAlongA, kFull>{a, lda, int(p.m), int(p.k)},
           Side<In, kAlongB, kFull>{b, ldb, int(p.n), int(p.k)}, static_cast<Out*>(p.C.at(i)),
           part);
}

/// f<In, Out>() with the types that the instructions multiply.
template <class F>
void with_types(const GemmArgs& args, F&& f) {
  if (args.in == DType::f64)
    f.template operator()<double, double>();
  else if (args.in == DType::cf64)
    f.template operator()<Complex<double>, Complex<double>>();
  else if (args.in == DType::f16 && args.out == DType::f16)
    f.template operator()<__half, __half>();
  else if (args.in == DType::f16)
    f.template operator()<__half, float>();
  else if (args.out == DType::bf16)
    f.template operator()<__nv_bfloat16, __nv_bfloat16>();
  else
    f.template operator()<__nv_bfloat16, float>();
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (device.capability < 80) return "needs compute capability 8.0";
  if (args.in == DType::f32 || args.in == DType::cf32 || args.in == DType::i8)
    return "for types of the tensor cores";
  if (std::min(args.m, args.n) < kLeast || std::max({args.m, args.n, args.k}) > kMost)
    return "for 17 to 32 rows and columns, and k of at most 32";
  const int size = size_of(args.in), out = size_of(args.out);
  constexpr std::int64_t kMostLd = std::int64_t{1} << 24;  // places in a matrix are 32-bit numbers
  if (std::max(args.A.ld, args.B.ld) > kMostLd) return "for matrices whose rows are not far apart";
  const std::uintptr_t bits =
      access_bits(args.A, args.batch, size) | access_bits(args.B, args.batch, size) |
      access_bits(args.C, args.batch, out) |
      std::uintptr_t((args.m | args.n | (args.alpha == Scalar{} ? 0 : args.k)) * size);
  if (bits % 16 != 0) return "for rows and addresses of whole vectors of 16 bytes";
  // Few products begin sooner there: 24x24x24, an H100, graphs of 20 calls, f64 2.7 us, 2.3 there;
  // bf16 1.9 and 1.7.
  if (may_leave_few(args, device)) {
    if (size > 2) return "slower than tensor_f64 for few products";
    if (out == 2 && runs_hopper(device) && !args.A.pointers && !args.B.pointers)
      return "slower than tensor_wgmma for few products";
  }
  return declines_emulation(args, device);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  with_types(args, [&]<class In, class Out>() {
    auto p = gemm_problem<In, Out>(args, queue, kMost, kMost);
    const auto launch_all = [&](auto kernel) {
      constexpr std::int64_t kProducts = kThreads / 32 / kParts<In>, kMostOfLaunch = 1 << 30;
      for (std::int64_t left = args.batch; left > 0; left -= kMostOfLaunch) {
        p.tiles.batch = std::min(left, kMostOfLaunch);
        launch_early(queue, kernel, unsigned(ceil_div(p.tiles.batch, kProducts)), kThreads, 0, p);
        p.A = p.A.from(kMostOfLaunch);
        p.B = p.B.from(kMostOfLaunch);
        p.C = p.C.from(kMostOfLaunch);
      }
    };
    const bool full = args.m == kMost && args.n == kMost && args.k == kMost;
    with_majors(args, [&]<bool kAlongA, bool kAlongB>() {
      constexpr bool kFull = sizeof(In) == 8;  // others have registers enough or gain none
      launch_all(full ? tiny_warp_kernel<In, Out, kAlongA, kAlongB, kFull>
                      : tiny_warp_kernel<In, Out, kAlongA, kAlongB, false>);
    });
  });
}

}  // namespace tiny_warp_file

Kernel<GemmArgs> tiny_warp() {
  using namespace tiny_warp_file;
  return {"tiny_warp", "batches of 17 to 32 rows and columns: a warp's registers for each",
          declines, gemm_pointer_bytes, run};
}

}  // namespace mblas::cuda::gemm
