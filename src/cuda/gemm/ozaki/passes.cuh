// The passes of Ozaki scheme II around its products of int8: rows and columns of doubles become
// integers and those residues, residues of products become doubles. All are memory-bound: an
// element of an operand is read twice and its residues are written, of C the residues are read and
// 8 bytes written.
#pragma once

#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/ozaki/moduli.hpp"

namespace mblas::cuda::gemm::ozaki {

/// The sum of squares of numbers of any magnitude: of them as they are, of very large ones and of
/// very small ones. J. L. Blue, "A portable Fortran program to find the Euclidean norm of a
/// vector", TOMS 1978, has the idea.
struct Squares {
  static constexpr int kDown = 600, kUp = 750;
  double mid = 0, large = 0, small = 0;

  __device__ void add(double x) {
    mid = fma(x, x, mid);
    const double down = x * 0x1p-600, up = x * 0x1p750;
    large = fma(down, down, large);
    small = fma(up, up, small);
  }
  __device__ void add(const Squares& x) {
    mid += x.mid;
    large += x.large;
    small += x.small;
  }
  __device__ bool is_finite() const { return large < 0x1p1000; }
  /// The largest power of two, by its exponent, that scales the norm to the root of `most` or less.
  __device__ int scale(double most) const {
    const auto power = [&](double squares) {
      return (int(unsigned(__double2hiint(most / squares)) >> 20) - 1023) >> 1;
    };
    if (mid > 0x1p900) return power(large) - kDown;
    if (mid >= 0x1p-800) return power(mid);
    return small > 0 ? power(small) + kUp : 0;
  }
};

/// An operand, `rows` of `k` elements in op(A) or in the transpose of op(B), and what is made of
/// it.
struct Operand {
  const double* data = nullptr;
  std::int64_t rows = 0, k = 0, ld = 0;
  bool along_k = false;        ///< k is the contiguous one
  bool pairs = false;          ///< neighbours from an even one on lie at multiples of 16 bytes
  int parts = 1;               ///< of k, whose squares are added up by themselves
  Squares* squares = nullptr;  ///< of each part and row
  int* scales = nullptr;       ///< of each row, as exponents of two
  unsigned* flag = nullptr;    ///< set where an element is not finite
  std::int8_t* planes = nullptr;
  std::int64_t plane_rows = 0;  ///< of which the last ones may be more than there are: zeros
  std::int64_t plane_ld = 0;    ///< a multiple of 16
  bool is_b = false;            ///< groups of 16 rows are in the engine's order of columns; of A,
                                ///< residues are multiplied by inverses

  __host__ __device__ std::int64_t plane_size() const { return plane_rows * plane_ld; }
};

/// Where row `row` of a plane of B is: hopper/results.cuh, write_boxes(), says why.
__device__ inline std::int64_t shuffled(std::int64_t row) {
  return (row & ~std::int64_t{15}) + (row & 2) * 4 + (row & 12) / 2 + (row & 1);
}

struct Passes {
  Operand a, b;
  unsigned* left;  ///< set where either's flag is
  Tables tables;
};

constexpr int kThreads = 256, kWarps = kThreads / 32;

// Blocks of threads, and warps, have numbers of 32 bits: planes are no larger than the workspace.

// ---------------------------------------------------------------------------------------------
// The norms of rows.

constexpr int kNormRows = 64;  // a block's, of an operand whose rows are contiguous

__host__ __device__ inline std::int64_t norm_blocks(const Operand& x) {
  return x.along_k ? x.rows : (x.rows + kNormRows - 1) / kNormRows * x.parts;
}

__device__ inline Squares sum_of_warp(Squares x) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2)
    x.add({__shfl_xor_sync(~0u, x.mid, lanes), __shfl_xor_sync(~0u, x.large, lanes),
           __shfl_xor_sync(~0u, x.small, lanes)});
  return x;
}

/// Of one row, which is contiguous.
__device__ inline void norm_along(const Operand& x, std::int64_t row, Squares* shared) {
  const double* const from = x.data + row * x.ld;
  Squares sum;
  if (x.pairs) {
    const auto* const pairs = reinterpret_cast<const double2*>(from);
#pragma unroll 8
    for (std::int64_t i = threadIdx.x; i < x.k / 2; i += kThreads) {
      const double2 pair = __ldg(pairs + i);
      sum.add(pair.x);
      sum.add(pair.y);
    }
    if (x.k % 2 == 1 && threadIdx.x == 0) sum.add(from[x.k - 1]);
  } else {
#pragma unroll 8
    for (std::int64_t i = threadIdx.x; i < x.k; i += kThreads) sum.add(__ldg(from + i));
  }
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kWarps; ++warp) sum.add(shared[warp]);
    x.squares[row] = sum;
  }
  __syncthreads();
}

/// Of kNormRows rows, which lie next to each other, and a part of k.
__device__ inline void norms_across(const Operand& x, std::int64_t block, Squares* shared) {
  const std::int64_t blocks = (x.rows + kNormRows - 1) / kNormRows, part = block / blocks;
  const std::int64_t row0 = (block - part * blocks) * kNormRows;
  const std::int64_t depth = (x.k + x.parts - 1) / x.parts;
  const std::int64_t begin = part * depth, end = min(x.k, begin + depth);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int apart = x.pairs ? 1 : 32, place = x.pairs ? lane * 2 : lane;
  const bool first = row0 + place < x.rows, second = row0 + place + apart < x.rows;
  const double* const from = x.data + row0 + place;
  Squares sum[2];
  if (x.pairs && second) {
#pragma unroll 8
    for (std::int64_t l = begin + warp; l < end; l += kWarps) {
      const double2 pair = __ldg(reinterpret_cast<const double2*>(from + l * x.ld));
      sum[0].add(pair.x);
      sum[1].add(pair.y);
    }
  } else {
#pragma unroll 8
    for (std::int64_t l = begin + warp; l < end; l += kWarps) {
      sum[0].add(first ? __ldg(from + l * x.ld) : 0);
      sum[1].add(second ? __ldg(from + l * x.ld + apart) : 0);
    }
  }
  shared[warp * kNormRows + place] = sum[0];
  shared[warp * kNormRows + place + apart] = sum[1];
  __syncthreads();
  if (threadIdx.x < kNormRows && row0 + threadIdx.x < x.rows) {
    Squares all = shared[threadIdx.x];
    for (int w = 1; w < kWarps; ++w) all.add(shared[w * kNormRows + int(threadIdx.x)]);
    x.squares[part * x.rows + row0 + threadIdx.x] = all;
  }
  __syncthreads();
}

static __global__ void __launch_bounds__(kThreads) norms_kernel(const __grid_constant__ Passes p) {
  __shared__ Squares shared[kWarps * kNormRows];
  const std::int64_t of_a = norm_blocks(p.a), all = of_a + norm_blocks(p.b);
  for (std::int64_t i = blockIdx.x; i < all; i += gridDim.x) {
    const Operand& x = i < of_a ? p.a : p.b;
    const std::int64_t block = i < of_a ? i : i - of_a;
    if (block == 0 && threadIdx.x == 0) *x.flag = 0;
    if (x.along_k)
      norm_along(x, block, shared);
    else
      norms_across(x, block, shared);
  }
}

/// The scales of rows, a thread each.
static __global__ void __launch_bounds__(kThreads) scales_kernel(const __grid_constant__ Passes p) {
  const std::int64_t all = p.a.rows + p.b.rows;
  for (std::int64_t i = blockIdx.x * std::int64_t(kThreads) + threadIdx.x; i < all;
       i += gridDim.x * std::int64_t(kThreads)) {
    const Operand& x = i < p.a.rows ? p.a : p.b;
    const std::int64_t row = i < p.a.rows ? i : i - p.a.rows;
    Squares sum = x.squares[row];
    for (int part = 1; part < x.parts; ++part) sum.add(x.squares[part * x.rows + row]);
    if (!sum.is_finite()) *x.flag = 1;
    x.scales[row] = sum.is_finite() ? sum.scale(p.tables.most_norms) : 0;
  }
}

// ---------------------------------------------------------------------------------------------
// Residues of operands.

/// 2^e, for the exponents of normal numbers.
__device__ inline double power_of_two(int e) { return __hiloint2double((1023 + e) << 20, 0); }

/// Doubles as integers: two factors, of which one alone might not be a double.
struct Scale {
  double first, second;

  __device__ explicit Scale(int exponent)
      : first(power_of_two(exponent / 2)), second(power_of_two(exponent - exponent / 2)) {}
  /// The nearest integer, with 2^kBits added to it.
  __device__ std::uint64_t operator()(double x) const {
    return std::uint64_t(__double2ll_rn(x * first * second)) + (std::uint64_t{1} << kBits);
  }
};

/// sum + the products of four bytes, those of `b` with signs.
__device__ inline unsigned add_bytes(unsigned a, unsigned b, unsigned sum) {
  asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}

/// The residue of an integer, or of it times the inverse, as `digits` has it: the low byte. A sum
/// of what the integer's bytes are worth is less than 2^20: taken for the bits of a float it is
/// itself times 2^-149, and next to kRounder the quotient is in the low bits.
__device__ inline unsigned residue(std::uint64_t x, const Modulus& of, const Digits& digits) {
  constexpr float kRounder = 192;
  const unsigned sum =
      add_bytes(unsigned(x >> 32), digits.high, add_bytes(unsigned(x), digits.low, digits.offset));
  const float quotient = fmaf(__uint_as_float(sum), of.inverse, kRounder);
  return sum - __float_as_uint(quotient) * unsigned(of.modulus);
}

constexpr int kEach = 8;  // neighbours along k of a thread

/// All residues of rows that lie `plane` bytes apart.
template <bool kOfA>
__device__ void put_residues(std::int8_t* to, std::int64_t plane, const Tables& tables,
                             const std::uint64_t (&x)[kEach]) {
#pragma unroll
  for (int m = 0; m < kCount; ++m, to += plane) {
    if (m >= kFewest && m >= tables.count) break;
    const Modulus& of = tables.moduli[m];
    unsigned word[kEach / 4];
#pragma unroll
    for (int w = 0; w < kEach / 4; ++w) {
      unsigned r[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) r[i] = residue(x[w * 4 + i], of, kOfA ? of.a : of.b);
      word[w] =
          __byte_perm(__byte_perm(r[0], r[1], 0x0040), __byte_perm(r[2], r[3], 0x0040), 0x5410);
    }
    *reinterpret_cast<uint2*>(to) = {word[0], word[1]};
  }
}
__device__ inline void split(const Operand& x, const Tables& tables, std::int64_t row,
                             std::int64_t l, const double (&from)[kEach]) {
  const Scale scale(row < x.rows ? x.scales[row] : 0);
  std::uint64_t integers[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) integers[i] = scale(from[i]);
  if (x.is_b)
    put_residues<false>(x.planes + shuffled(row) * x.plane_ld + l, x.plane_size(), tables,
                        integers);
  else
    put_residues<true>(x.planes + row * x.plane_ld + l, x.plane_size(), tables, integers);
}

constexpr int kAlong = 32 * kEach;               // elements of a row that a warp takes
constexpr int kTileDepth = 128, kTileRows = 32;  // what a block takes where rows are contiguous

__host__ __device__ inline std::int64_t split_blocks(const Operand& x) {
  return x.along_k ? (x.plane_rows * ((x.plane_ld + kAlong - 1) / kAlong) + kWarps - 1) / kWarps
                   : (x.plane_rows + kTileRows - 1) / kTileRows *
                         ((x.plane_ld + kTileDepth - 1) / kTileDepth);
}

__device__ inline void split_along(const Operand& x, const Tables& tables, unsigned block) {
  const unsigned warp = block * kWarps + threadIdx.x / 32;
  const unsigned across = unsigned((x.plane_ld + kAlong - 1) / kAlong), line = warp / across;
  const std::int64_t row = line;
  const std::int64_t l = std::int64_t(warp - line * across) * kAlong + threadIdx.x % 32 * kEach;
  if (row >= x.plane_rows || l >= x.plane_ld) return;
  const double* const from = x.data + row * x.ld + l;
  const std::int64_t count = row < x.rows ? x.k - l : 0;
  double element[kEach];
  if (x.pairs && count >= kEach) {
#pragma unroll
    for (int i = 0; i < kEach; i += 2) {
      const double2 pair = __ldg(reinterpret_cast<const double2*>(from + i));
      element[i] = pair.x;
      element[i + 1] = pair.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kEach; ++i) element[i] = i < count ? __ldg(from + i) : 0;
  }
  split(x, tables, row, l, element);
}

/// Through shared memory, where places are exchanged so that neither side meets in a bank.
__device__ inline void split_across(const Operand& x, const Tables& tables, unsigned block,
                                    double* shared) {
  const unsigned across = unsigned((x.plane_rows + kTileRows - 1) / kTileRows);
  const std::int64_t l0 = std::int64_t(block / across) * kTileDepth;
  const std::int64_t row0 = std::int64_t(block % across) * kTileRows;
  const auto at = [&](int l, int row) { return shared + l * kTileRows + (row ^ l / kEach); };
  static_assert(kTileDepth / kEach == 16 && kTileRows % 16 == 0);
  {
    const int row = int(threadIdx.x) % kTileRows, l = int(threadIdx.x) / kTileRows;
    constexpr int kStep = kThreads / kTileRows, kLoads = kTileDepth / kStep;
    const double* const from = x.data + (l0 + l) * x.ld + row0 + row;
    double element[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      element[i] =
          row0 + row < x.rows && l0 + l + i * kStep < x.k ? __ldg(from + i * kStep * x.ld) : 0;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) *at(l + i * kStep, row) = element[i];
  }
  __syncthreads();
  const int l = int(threadIdx.x) % 16 * kEach;
#pragma unroll 1
  for (int row = int(threadIdx.x) / 16; row < kTileRows; row += kThreads / 16) {
    if (row0 + row >= x.plane_rows || l0 + l >= x.plane_ld) continue;
    double element[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) element[i] = *at(l + i, row);
    split(x, tables, row0 + row, l0 + l, element);
  }
  __syncthreads();
}

static __global__ void __launch_bounds__(kThreads, 3)
    split_kernel(const __grid_constant__ Passes p) {
  __shared__ double shared[kTileDepth * kTileRows];
  if (blockIdx.x == 0 && threadIdx.x == 0) *p.left = *p.a.flag | *p.b.flag;
  const unsigned of_a = unsigned(split_blocks(p.a)), all = of_a + unsigned(split_blocks(p.b));
  for (unsigned i = blockIdx.x; i < all; i += gridDim.x) {
    const Operand& x = i < of_a ? p.a : p.b;
    const unsigned block = i < of_a ? i : i - of_a;
    if (x.along_k)
      split_along(x, p.tables, block);
    else
      split_across(x, p.tables, block, shared);
  }
}

// ---------------------------------------------------------------------------------------------
// Doubles of residues.

/// The integers nearest to 0 from their residues times inverses, four in the bytes of each word:
/// rounded to nearest, or nearly so, and times 2^shift.
__device__ inline void join(const unsigned (&words)[kCount], const Tables& tables,
                            double (&result)[4]) {
  double high[4] = {}, mid[4] = {};
  unsigned top[4] = {}, low[4] = {};
#pragma unroll
  for (int m = 0; m < kCount; ++m) {
    const Limbs& weight = tables.weights[m];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      // A byte in the low bits of a double is itself times 2^-1074.
      const unsigned byte = __byte_perm(words[m], 0, 0x4440 + unsigned(e));
      const double x = __hiloint2double(0, int(byte));
      top[e] += byte * weight.top;
      high[e] = fma(x, weight.high, high[e]);
      mid[e] = fma(x, weight.mid, mid[e]);
      low[e] += byte * weight.low;
    }
  }
  constexpr double kRounder = 0x1.8p52, kUnscale = 0x1p94;
  static_assert(Tables::kOfBytes * 0x1p-1074 * kUnscale == 1);
  constexpr double kMid = 0x1p41, kOfMid = 0x1p-41, kLow = 0x1p20;
  const Limbs& product = tables.product;
  const auto nearest = [](double x, double factor) { return fma(x, factor, kRounder) - kRounder; };
  const auto widen = [](unsigned x) { return __hiloint2double(0x43300000, int(x)) - 0x1p52; };
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    // x = ((t 2^41 + h) 2^41 + m) 2^20 + l: first less multiples of P, then with small limbs.
    double t = widen(top[e]), h = high[e] * kUnscale, m = mid[e] * kUnscale, l = widen(low[e]);
    const double quotient = nearest(fma(t, kMid, h), tables.inverse);
    t = fma(-quotient, double(product.top), t);
    h = fma(-quotient, product.high, h);
    m = fma(-quotient, product.mid, m);
    l = fma(-quotient, double(product.low), l);
    const double of_m = nearest(m, kOfMid);
    h += of_m;
    m = fma(-of_m, kMid, m);
    const double of_h = nearest(h, kOfMid);
    t += of_h;
    h = fma(-of_h, kMid, h);
    const double both = fma(t, kMid, h), rest = h - fma(-t, kMid, both);
    result[e] = fma(both, kMid * kLow, fma(rest, kMid * kLow, fma(m, kLow, l)));
  }
}

/// x 2^e for an integer of less than 2^118.
__device__ inline double scaled(double x, int e) {
  const int within = max(min(e, 1100), -1300);  // beyond, it overflows and underflows all the same
  return x * power_of_two(within / 2) * power_of_two(within - within / 2);
}

struct JoinProblem : GemmProblem<double> {
  const std::uint8_t* planes;
  std::int64_t plane_ld, plane_size;
  const int *scales_a, *scales_b;
  const unsigned* left;  ///< nothing is written where that is set
  bool pairs;            ///< of C: neighbours from an even one on lie at multiples of 16 bytes
  Tables tables;
};

constexpr int kJoinCols = 128;  // of kWarps rows, for a block

/// A thread has four neighbours of a row.
static __global__ void __launch_bounds__(kThreads)
    join_kernel(const __grid_constant__ JoinProblem p) {
  if (*p.left) return;
  const unsigned across = unsigned((p.plane_ld + kJoinCols - 1) / kJoinCols);
  const unsigned blocks = unsigned((p.m + kWarps - 1) / kWarps) * across;
  for (unsigned block = blockIdx.x; block < blocks; block += gridDim.x) {
    const unsigned band = block / across;
    const std::int64_t row = std::int64_t(band) * kWarps + threadIdx.x / 32;
    const std::int64_t col = std::int64_t(block - band * across) * kJoinCols + threadIdx.x % 32 * 4;
    if (row >= p.m || col >= p.n) continue;
    unsigned words[kCount];
    const auto* from = p.planes + row * p.plane_ld + col;
#pragma unroll
    for (int m = 0; m < kCount; ++m, from += p.plane_size)
      words[m] = m < p.tables.count ? __ldg(reinterpret_cast<const unsigned*>(from)) : 0;
    const int scale = p.scales_a[row] + p.tables.shift,
              count = int(min(p.n - col, std::int64_t(4)));
    double* const c = static_cast<double*>(p.C.at(0)) + row * p.ldc + col;
    double result[4], sums[4];
    const bool vectors = p.pairs && count == 4;
    if (p.read_c) {
      if (vectors) {
        *reinterpret_cast<double2*>(result) = *reinterpret_cast<const double2*>(c);
        *reinterpret_cast<double2*>(result + 2) = *reinterpret_cast<const double2*>(c + 2);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) result[e] = e < count ? c[e] : 0;
      }
    }
    join(words, p.tables, sums);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int of_col = e < count ? p.scales_b[col + e] : 0;
      store(p, scaled(sums[e], -scale - of_col), &result[e]);
    }
    if (vectors) {
      *reinterpret_cast<double2*>(c) = *reinterpret_cast<const double2*>(result);
      *reinterpret_cast<double2*>(c + 2) = *reinterpret_cast<const double2*>(result + 2);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (e < count) c[e] = result[e];
    }
  }
}

}  // namespace mblas::cuda::gemm::ozaki
