// Batches of products of up to 32 rows and columns, a warp for each or for a tile of it, on the
// tensor cores: limited by memory, and few ones by its latency. The operands go from memory
// straight to the registers in which the instructions want them, some steps along k ahead, without
// shared memory and without waiting for other warps: which rows, columns and k an instruction gets
// is free as long as both operands agree, so lanes read vectors of 8 or 16 bytes and write vectors
// of 16, but of doubles whose rows start anywhere single ones. Tiles are as small as the product or
// smaller, so that many warps share a multiprocessor.
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

constexpr int kThreads = 64, kWarps = kThreads / 32;
constexpr int kMost = 32;                                // of m and n
constexpr int kMostDepth = 256;                          // of k, for doubles
constexpr int kLeastNarrow = 17, kMostNarrowDepth = 32;  // of m and n, and of k, for 16-bit types

/// What a warp computes of C, 16 kI rows by 8 kQ columns, and how. kPairs: doubles come and go by
/// two. kAhead: steps along k that are loaded ahead. kFull: 32 rows, columns and k, which saves
/// comparisons.
template <int kI_, int kQ_, bool kPairs_ = true, int kAhead_ = 2, bool kFull_ = false>
struct WarpTile {
  static constexpr int kI = kI_, kQ = kQ_, kRows = 16 * kI, kCols = 8 * kQ, kAhead = kAhead_;
  static constexpr bool kPairs = kPairs_, kFull = kFull_;
};
using NarrowTile = WarpTile<2, 4>;

__device__ inline unsigned warp_of(unsigned thread) { return blockIdx.x * kWarps + thread / 32; }

/// Which product a warp computes, and which tile of it. There are one or two tiles each way.
template <class Tile, class Acc>
struct Place {
  const GemmProblem<Acc>& p;
  unsigned warp;
  __device__ int row_bits() const { return Tile::kRows == kMost ? 0 : int(p.tiles.rows) - 1; }
  __device__ int col_bits() const { return Tile::kCols == kMost ? 0 : int(p.tiles.cols) - 1; }
  __device__ unsigned product() const { return warp >> (row_bits() + col_bits()); }
  __device__ int row() const { return Tile::kRows * int(warp & unsigned(row_bits())); }
  __device__ int col() const {
    return Tile::kCols * int(warp >> row_bits() & unsigned(col_bits()));
  }
};

/// An operand as a warp sees it: `outer` rows of op(A), or columns of op(B), of which its tile
/// begins at `first`, and k.
template <class In, bool kAlongK_, class Tile>
struct Side {
  static constexpr bool kAlongK = kAlongK_, kPairs = Tile::kPairs;
  const In* x;
  int ld, first, outer, k;
  __device__ bool has(int o) const { return Tile::kFull || o < outer; }
  __device__ bool has(int o, int l) const { return Tile::kFull || (o < outer && l < k); }
  __device__ const In* at(int o, int l) const { return x + (kAlongK ? o * ld + l : l * ld + o); }
  /// Steps of `depth` of k.
  __device__ int steps(int depth) const {
    return Tile::kFull ? kMost / depth : int(unsigned(k + depth - 1) / unsigned(depth));
  }
};

/// Which column of memory's is the g-th of 8 of an instruction: with these the two results of a
/// lane are neighbours where columns came by two, and else those of four lanes are.
__device__ inline int spread(int g) { return g % 2 * 4 + g / 2; }

/// A row of c = alpha sums + beta c, of which kAtOnce groups of 8 columns are read at once. Of
/// group q a lane has sum(q, 0) and sum(q, 1): neighbours, which come and go together (kCount 2),
/// or each the neighbour of other lanes'.
template <class Tile, int kAtOnce, int kCount, class T, class B, class Sum>
__device__ void store_row(const GemmProblem<T>& p, const B& b, T* row, int t, const Sum& sum) {
  using Some = Vector<T, kCount>;
  constexpr int kEach = 2 / kCount;
  const auto col = [&](int q, int v) {
    return b.first + 8 * q + (kCount == 2 ? 2 * t : 4 * v + t);
  };
#pragma unroll
  for (int first = 0; first < Tile::kQ; first += kAtOnce) {
    Some some[kAtOnce][kEach];
    if (p.read_c)
#pragma unroll
      for (int q = 0; q < kAtOnce; ++q)
#pragma unroll
        for (int v = 0; v < kEach; ++v)
          if (const int at = col(first + q, v); b.has(at))
            some[q][v] = *reinterpret_cast<const Some*>(row + at);
#pragma unroll
    for (int q = 0; q < kAtOnce; ++q)
#pragma unroll
      for (int v = 0; v < kEach; ++v) {
        const int at = col(first + q, v);
        if (!b.has(at)) continue;
#pragma unroll
        for (int e = 0; e < kCount; ++e) store(p, sum(first + q, v * kCount + e), &some[q][v].e[e]);
        *reinterpret_cast<Some*>(row + at) = some[q][v];
      }
    asm volatile("" ::: "memory");  // more at once would want more registers
  }
}

// ---- doubles: instructions of 16×8 by 4 of k, two of them in a step.

/// Of step s element (outer, k) of each group q of 8, for the r-th instruction. Lane 4 g + t has
/// k = 8 s + 2 t + r, without pairs 8 s + 4 r + t.
template <int kGroups, class X>
__device__ void load_step(double (&to)[2][kGroups], const X& x, int s) {
  using Pair = Vector<double, 2>;
  const int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  if constexpr (X::kPairs && X::kAlongK) {
#pragma unroll
    for (int q = 0; q < kGroups; ++q) {
      const int o = x.first + 8 * q + g, k = 8 * s + 2 * t;
      Pair v = {};
      if (x.has(o, k)) v = *reinterpret_cast<const Pair*>(x.at(o, k));
      to[0][q] = v.e[0];
      to[1][q] = v.e[1];
    }
  } else {
    constexpr int kPaired = X::kPairs ? kGroups / 2 * 2 : 0;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int k = 8 * s + (X::kPairs ? 2 * t + r : 4 * r + t);
#pragma unroll
      for (int q = 0; q < kPaired; q += 2) {
        const int o = x.first + 8 * q + 2 * spread(g);
        Pair v = {};
        if (x.has(o, k)) v = *reinterpret_cast<const Pair*>(x.at(o, k));
        to[r][q] = v.e[0];
        to[r][q + 1] = v.e[1];
      }
#pragma unroll
      for (int q = kPaired; q < kGroups; ++q) {
        const int o = x.first + 8 * q + (X::kPairs ? g : spread(g));
        to[r][q] = x.has(o, k) ? *x.at(o, k) : 0;
      }
    }
  }
}

template <class Tile, class Out, class A, class B>
__device__ void multiply(const GemmProblem<double>& p, const A& a, const B& b) {
  constexpr bool kPairs = Tile::kPairs;
  constexpr int kI = Tile::kI, kQ = Tile::kQ, kAhead = Tile::kAhead;
  double x[kAhead][2][2 * kI], y[kAhead][2][kQ], sums[kI][kQ][4] = {};
#pragma unroll
  for (int u = 0; u < kAhead; ++u) {
    load_step(x[u], a, u);
    load_step(y[u], b, u);
  }
  const int steps = a.steps(8);
#pragma unroll(Tile::kFull ? kMost : 1)
  for (int s = 0; s < steps; s += kAhead)
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (s + u >= steps) break;
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int i = 0; i < kI; ++i)
#pragma unroll
          for (int q = 0; q < kQ; ++q)
            multiply_tile(sums[i][q], {x[u][r][2 * i], x[u][r][2 * i + 1]}, y[u][r][q]);
      asm volatile("" ::: "memory");  // loads earlier would want more registers
      if (s + u + kAhead >= steps) continue;
      load_step(x[u], a, s + u + kAhead);
      load_step(y[u], b, s + u + kAhead);
    }
  const unsigned thread = unsigned(thread_now());
  const int lane = int(thread % 32), g = lane / 4, t = lane % 4;
  auto* const c = static_cast<Out*>(p.C.at(Place<Tile, double>{p, warp_of(thread)}.product()));
#pragma unroll
  for (int i = 0; i < kI; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = a.first + 16 * i +
                      (!kPairs      ? 8 * half + spread(g)
                       : A::kAlongK ? 8 * half + g
                                    : 2 * spread(g) + half);
      if (!a.has(row)) continue;
      store_row<Tile, Tile::kFull ? 2 : kQ, kPairs ? 2 : 1>(
          p, b, c + row * p.ldc, t, [&](int q, int e) {
            // Of columns that came by two, two groups have one each.
            const bool paired = kPairs && !B::kAlongK && q < kQ / 2 * 2;
            return paired ? sums[i][q / 2 * 2 + e][2 * half + q % 2] : sums[i][q][2 * half + e];
          });
    }
}

// ---- complex doubles: a warp has 16 rows, and k in steps of 4.

template <class X>
__device__ Complex<double> load_one(const X& x, int o, int k) {
  using Whole = Vector<Complex<double>, 1>;  // 16 bytes that are read at once
  Whole v = {};
  if (x.has(o, k)) v = *reinterpret_cast<const Whole*>(x.at(o, k));
  return v.e[0];
}

/// `x`, or -x where `sign` is the bit that says so.
__device__ inline double flipped(double x, int sign) {
  return __hiloint2double(__double2hiint(x) ^ sign, __double2loint(x));
}

template <class Tile, class Out, class A, class B>
__device__ void multiply(const GemmProblem<Complex<double>>& p, const A& a, const B& b) {
  constexpr int kQ = Tile::kQ, kAhead = Tile::kAhead;
  static_assert(Tile::kI == 1);
  struct Step {
    Complex<double> a[2], b[kQ];
  };
  const auto load = [&](Step& step, int s) {
    const int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4, k = 4 * s + t;
#pragma unroll
    for (int i = 0; i < 2; ++i) step.a[i] = load_one(a, a.first + 8 * i + g, k);
#pragma unroll
    for (int q = 0; q < kQ; ++q) step.b[q] = load_one(b, b.first + 8 * q + spread(g), k);
  };
  Step ahead[kAhead];
#pragma unroll
  for (int u = 0; u < kAhead; ++u) load(ahead[u], u);
  const int sign_a = int(p.conjugate_a) << 31, sign_b = int(p.conjugate_b) << 31;
  double re[kQ][4] = {}, im[kQ][4] = {};
  const int steps = a.steps(4);
#pragma unroll 1
  for (int s = 0; s < steps; s += kAhead)
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (s + u >= steps) break;
      Step& step = ahead[u];
      double ar[2], ai[2], minus[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        ar[i] = step.a[i].re;
        ai[i] = flipped(step.a[i].im, sign_a);
        minus[i] = -ai[i];
      }
#pragma unroll
      for (int q = 0; q < kQ; ++q) {
        const double br = step.b[q].re, bi = flipped(step.b[q].im, sign_b);
        multiply_tile(re[q], ar, br);
        multiply_tile(im[q], ar, bi);
        multiply_tile(re[q], minus, bi);
        multiply_tile(im[q], ai, br);
      }
      asm volatile("" ::: "memory");  // loads earlier would want more registers
      if (s + u + kAhead < steps) load(step, s + u + kAhead);
    }
  const unsigned thread = unsigned(thread_now());
  const int lane = int(thread % 32), g = lane / 4, t = lane % 4;
  auto* const c = static_cast<Out*>(p.C.at(Place<Tile, Out>{p, warp_of(thread)}.product()));
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = a.first + 8 * half + g;
    if (!a.has(row)) continue;
    store_row<Tile, kQ, 1>(p, b, c + row * p.ldc, t, [&](int q, int e) {
      return Complex<double>{re[q][2 * half + e], im[q][2 * half + e]};
    });
  }
}

// ---- half and bfloat16: instructions of 16×8 by 16 of k. Lane 4 g + t has k = 8 t to 8 t + 7, of
// the outer side 4 g to 4 g + 3.

/// c = alpha sums + beta c for neighbours.
template <class Out, int kCount>
__device__ void store_vector(const GemmProblem<float>& p, const float (&sums)[kCount], Out* c) {
  auto& place = *reinterpret_cast<Vector<Out, kCount>*>(c);
  Vector<Out, kCount> v;
  if (p.read_c) v = place;
#pragma unroll
  for (int e = 0; e < kCount; ++e) store(p, sums[e], &v.e[e]);
  place = v;
  asm volatile("" ::: "memory");  // all at once would want more registers
}

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

template <class Tile, class Out, class In, bool kAlongA, bool kAlongB>
__device__ void multiply(const GemmProblem<float>& p, const Side<In, kAlongA, Tile>& a,
                         const Side<In, kAlongB, Tile>& b) {
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
  auto* const c = static_cast<Out*>(p.C.at(warp_of(threadIdx.x)));
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

/// Blocks that share a multiprocessor's registers, of which each fourth warp has the same quarter.
template <class In, class Tile>
constexpr int blocks_of() {
  if (sizeof(In) == 2) return 8;
  if (Tile::kFull) return 5;
  constexpr int kSums = int(sizeof(In)) * Tile::kI * Tile::kQ;
  constexpr int kLoaded = 4 * Tile::kAhead * (2 * Tile::kI + Tile::kQ);
  constexpr int kOthers = 32, kOfLanes = (1 << 14) / 32;
  return 4 / kWarps * (kOfLanes / (kSums + kLoaded + kOthers));
}

template <class In, class Out, bool kAlongA, bool kAlongB, class Tile>
__global__ void __launch_bounds__(kThreads, (blocks_of<In, Tile>()))
    tiny_warp_kernel(const __grid_constant__ GemmProblem<Accumulator<In>> p) {
  begin_early();
  const Place<Tile, Accumulator<In>> place{p, warp_of(threadIdx.x)};
  const unsigned i = place.product();
  if (i >= p.tiles.batch) return;
  const Side<In, kAlongA, Tile> a{static_cast<const In*>(p.A.at(i)),
                                  int(kAlongA ? p.a.row : p.a.col), place.row(), int(p.m),
                                  int(p.k)};
  const Side<In, kAlongB, Tile> b{static_cast<const In*>(p.B.at(i)),
                                  int(kAlongB ? p.b.col : p.b.row), place.col(), int(p.n),
                                  int(p.k)};
  multiply<Tile, Out>(p, a, b);
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

bool is_narrow(const GemmArgs& args) { return size_of(args.in) == 2; }

/// Whether vectors of 16 bytes are what the lines of operands and of C consist of.
bool is_in_vectors(const GemmArgs& args) {
  const std::int64_t along_a = is_transposed(args.transA) ? args.m : args.k;
  const std::int64_t along_b = is_transposed(args.transB) ? args.k : args.n;
  const auto lines = std::uintptr_t((args.n | along_a | along_b) * size_of(args.in));
  return (operand_bits(args) | lines) % 16 == 0;
}

/// The largest k of doubles, batches of `each` for each multiprocessor: fitted to 830 batches of 20
/// to 8,000 on an H200. With longer sums a warp by itself waits for each step of k.
std::int64_t most_depth(const GemmArgs& args, double each) {
  constexpr std::int64_t kHalf = 16, kMedium = 540, kLarge = kMost * kMost * kMost;
  if (is_complex(args.in))
    return each < 0.35 ? 14
           : each < 1  ? 30
           : each < 2  ? 40
           : each < 5  ? 66
           : each < 20 ? 128
                       : kMostDepth;
  const std::int64_t results = args.m * args.n;
  if (std::max(args.m, args.n) <= kHalf && each >= 7) return kMostDepth;
  if (results <= kMedium) return each < 1 ? 40 : each < 2 ? 88 : 160;
  return results * args.k > kLarge ? kMost : 64;
}

/// Whether other rows are faster for doubles: blocks of `tiny` take many of the smallest products
/// at a time.
const char* declines_slower(const GemmArgs& args, const DeviceInfo& device) {
  constexpr double kFew = 0.15, kMany = 50, kVeryMany = 150;
  constexpr std::int64_t kSmallest = 128, kSmall = 512;
  const double each = double(args.batch) / std::max(device.compute_units, 1);
  if (std::min(args.m, args.n) == 1) return "for matrices, not vectors";
  if (each < kFew) return "for batches";
  const std::int64_t products = args.m * args.n * args.k;
  if (each >= kMany && products <= (each >= kVeryMany ? kSmall : kSmallest))
    return "slower than tiny";
  return args.k > most_depth(args, each) ? "slower than tensor_f64" : nullptr;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (device.capability < 80) return "needs compute capability 8.0";
  if (args.in == DType::f32 || args.in == DType::cf32 || args.in == DType::i8)
    return "for types of the tensor cores";
  const bool narrow = is_narrow(args);
  if (std::max(args.m, args.n) > kMost) return "for up to 32 rows and columns";
  if (narrow && std::min(args.m, args.n) < kLeastNarrow)
    return "of 16-bit types for 17 to 32 rows and columns";
  if (args.k > (narrow ? kMostNarrowDepth : kMostDepth))
    return narrow ? "of 16-bit types for k of at most 32" : "for k of at most 256";
  // Places in a matrix are 32-bit numbers.
  constexpr std::int64_t kMostPlaces = std::int64_t{1} << 29;
  if (std::max(args.A.ld, args.B.ld) > kMostPlaces / std::max<std::int64_t>(args.k, kMost))
    return "for matrices whose rows are not far apart";
  const int size = size_of(args.in), out = size_of(args.out);
  if (narrow) {
    const std::int64_t k = args.alpha == Scalar{} ? 0 : args.k;
    if ((operand_bits(args) | std::uintptr_t((args.m | args.n | k) * size)) % 16 != 0)
      return "of 16-bit types for rows and addresses of whole vectors of 16 bytes";
  } else if (operand_bits(args) % std::uintptr_t(size) != 0) {
    return "for elements at multiples of their size";
  }
  // Few products begin sooner there: bf16 24x24x24, an H100, graphs of 20 calls, 1.9 us, 1.7 there.
  if (narrow && may_leave_few(args, device) && out == 2 && runs_hopper(device) &&
      !args.A.pointers && !args.B.pointers)
    return "slower than tensor_wgmma for few products";
  if (!narrow && args.config != kForced)
    if (const char* reason = declines_slower(args, device)) return reason;
  return declines_emulation(args, device);
}

/// f<n>() of kFirst to kLast.
template <int kFirst, int kLast, class F>
void with_number(int n, F&& f) {
  if constexpr (kFirst < kLast)
    if (n != kFirst) return with_number<kFirst + 1, kLast>(n, f);
  f.template operator()<kFirst>();
}

/// f<Tile>() with what a warp computes.
template <class In, class F>
void with_tile(const GemmArgs& args, const DeviceInfo& device, F&& f) {
  if constexpr (sizeof(In) == 2) {
    f.template operator()<NarrowTile>();
  } else {
    constexpr bool kReal = sizeof(In) == sizeof(double);
    constexpr int kAhead = 2, kFarAhead = kReal ? 4 : 3, kStep = kReal ? 8 : 4;
    const bool pairs = kReal && is_in_vectors(args);
    if constexpr (kReal)  // complex ones gain nothing
      if (pairs && args.m == kMost && args.n == kMost && args.k == kMost)
        return f.template operator()<WarpTile<2, 4, true, kAhead, true>>();
    // Products so few that all are computed at the same time end sooner by several warps each.
    constexpr std::int64_t kFew = 12;  // for each multiprocessor
    const bool few = args.batch < kFew * device.compute_units;
    const int rows = !kReal || few || args.m <= 16 ? 1 : 2;
    const int cols = few && args.n > 16 ? 2 : int(ceil_div(args.n, 8));
    with_number<1, kReal ? 2 : 1>(rows, [&]<int kI>() {
      with_number<1, 4>(cols, [&]<int kQ>() {
        const auto with_steps = [&]<int kSteps>() {
          if constexpr (kReal)
            if (pairs) return f.template operator()<WarpTile<kI, kQ, true, kSteps>>();
          f.template operator()<WarpTile<kI, kQ, false, kSteps>>();
        };
        if constexpr (kI == 1 && kQ <= 2)  // others have no registers for more
          if (args.k > kAhead * kStep) return with_steps.template operator()<kFarAhead>();
        with_steps.template operator()<kAhead>();
      });
    });
  }
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  with_types(args, [&]<class In, class Out>() {
    with_tile<In>(args, queue.device(), [&]<class Tile>() {
      auto p = gemm_problem<In, Out>(args, queue, Tile::kRows, Tile::kCols);
      with_majors(args, [&]<bool kAlongA, bool kAlongB>() {
        constexpr std::int64_t kMostOfLaunch = 1 << 29;  // warps are numbered in 32 bits
        for (std::int64_t left = args.batch; left > 0; left -= kMostOfLaunch) {
          p.tiles.batch = std::min(left, kMostOfLaunch);
          launch_early(queue, tiny_warp_kernel<In, Out, kAlongA, kAlongB, Tile>,
                       unsigned(ceil_div(p.tiles.count(), kWarps)), kThreads, 0, p);
          p.A = p.A.from(kMostOfLaunch);
          p.B = p.B.from(kMostOfLaunch);
          p.C = p.C.from(kMostOfLaunch);
        }
      });
    });
  });
}

}  // namespace tiny_warp_file

Kernel<GemmArgs> tiny_warp() {
  using namespace tiny_warp_file;
  return {"tiny_warp",
          "batches of up to 32 rows and columns: the registers of a warp or some for each",
          declines, gemm_pointer_bytes, run};
}

}  // namespace mblas::cuda::gemm
