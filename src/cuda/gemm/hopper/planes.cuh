// float as a sum of two or three matrices of 16 bits, planes: the tensor cores multiply those, and
// what the smallest ones add to each other is left out.
//
// bfloat16: x = x1 + x2 + x3 exactly, each the rest of those before rounded to nearest. The
// magnitudes of both operands are found on the way, and products that they are not for
// (planes.cuh) the engine leaves to other kernels. D. Mukunoki, K. Ozaki,
// T. Ogita, T. Imamura, "DGEMM using tensor cores, and its accurate and reproducible versions", ISC
// 2020, has the idea; G. Henry, P. T. P. Tang, A. Heinecke, "Leveraging the bfloat16 artificial
// intelligence datatype for higher-precision computations", ARITH 2019, this choice of products.
//
// Complex products are real ones of twice the n and k, of which C as it is stored is the result: of
// op(A), a column of real and one of imaginary parts for each column; of op(B), for each number
// (x, y) the rows (x, y) and (-y, x).
//
// half: rows of op(A) and columns of op(B) are multiplied by the powers of two that bring their
// largest magnitude to [2^13, 2^14), and results by what undoes it. x1 + x2 is then x to 22 bits or
// to 2^-38 of the largest, as S. Markidis et al. "NVIDIA tensor core programmability, performance &
// precision", IPDPSW 2018, and H. Ootomo, R. Yokota, "Recovering single precision accuracy from
// tensor cores while surpassing the FP32 theoretical peak performance", IJHPCA 2022, have it.
#pragma once

#include <cstdint>

#include "cuda/gemm/hopper/barrier.cuh"
#include "cuda/gemm/hopper/product.cuh"
#include "cuda/gemm/planes.cuh"
#include "cuda/launch.cuh"

namespace mblas::cuda::gemm::hopper {

using Bf16x3 = Planes<__nv_bfloat16, 3>;
using F16x2 = Planes<__half, 2>;
/// Whether operands are scaled on their way into planes.
template <class In>
inline constexpr bool kScaled = false;
template <>
inline constexpr bool kScaled<F16x2> = true;

/// Whether products of planes of such operands, k of them in a sum, are all but exact; scaled,
/// those of all finite numbers are as exact as they can be.
template <class In>
__device__ bool suits_planes(const Ranges& x, [[maybe_unused]] std::int64_t k) {
  if constexpr (kScaled<In>)
    return max(exponent(x.a.most), exponent(x.b.most)) <= 127;
  else
    return suits_bf16_planes(x, k);
}

/// 2^n, n from -126 to 127.
__device__ inline float power_of_2(int n) { return __int_as_float((n + 127) << 23); }
/// x 2^n, of which n may be too large for one factor.
__device__ inline float times_power_of_2(float x, int n) {
  const int half = max(n, -250) >> 1;
  return x * power_of_2(half) * power_of_2(max(n, -250) - half);
}
/// By which power of two numbers are multiplied of which `most` is the largest magnitude's bits.
__device__ inline int scaling_of(unsigned most) {
  constexpr int kTo = 13;
  const int of_most = most >> 23 ? exponent(most) : -118 - __clz(int(most));
  return most == 0 ? 0 : kTo - of_most;
}

/// What planes have of complex numbers, see above.
enum class Parts : std::uint8_t {
  Along,   ///< op(A) along k: (x, y), in a row
  Across,  ///< not along k: x in one row and y in the next
  Twice,   ///< op(B): in a row and, turned, in the next; along k these are (x, -y) and (y, x)
};

/// An operand on its way into planes, which lie matrix by matrix.
template <class T>
struct SplitOperand {
  DeviceInput from;
  std::int64_t rows, cols, count;  ///< as stored
  std::int64_t ld;                 ///< in floats
  bool along_k;                    ///< rows run along k
  bool pairs;  ///< neighbours from an even column on lie at multiples of the bytes of two
  T* to;
  std::int64_t ld_to;  ///< a multiple of 8
  unsigned* most;      ///< bits of the largest magnitude along k, matrix by matrix; where scaled
  Parts parts;         ///< of complex numbers
  bool conjugated;

  __device__ const float* row(std::int64_t matrix, std::int64_t i) const {
    return static_cast<const float*>(from.at(matrix)) + i * ld;
  }
  /// Neighbours of a row from an even column on; 0 beyond the last.
  __device__ float2 pair(const float* row, std::int64_t col) const {
    if (pairs && col + 1 < cols) return __ldg(reinterpret_cast<const float2*>(row + col));
    return {col < cols ? __ldg(row + col) : 0, col + 1 < cols ? __ldg(row + col + 1) : 0};
  }
  /// The same of complex numbers.
  __device__ float4 complex_pair(const float* row, std::int64_t col) const {
    if (pairs && col + 1 < cols) return __ldg(reinterpret_cast<const float4*>(row) + col / 2);
    const auto* const numbers = reinterpret_cast<const float2*>(row);
    const float2 first = col < cols ? __ldg(numbers + col) : float2{};
    const float2 second = col + 1 < cols ? __ldg(numbers + col + 1) : float2{};
    return {first.x, first.y, second.x, second.y};
  }
};
template <class T>
struct SplitProblem {
  SplitOperand<T> a, b;
  Ranges* ranges;  ///< of each block
};

constexpr int kSplitThreads = 256, kSplitWarps = kSplitThreads / 32;

__device__ inline __nv_bfloat162 round_pair(float2 x, __nv_bfloat16 /*to*/) {
  return __float22bfloat162_rn(x);
}
__device__ inline float2 widen_pair(__nv_bfloat162 x) { return __bfloat1622float2(x); }
__device__ inline __half2 round_pair(float2 x, __half /*to*/) { return __float22half2_rn(x); }
__device__ inline float2 widen_pair(__half2 x) { return __half22float2(x); }

__device__ inline unsigned largest(float2 x) {
  return max(magnitude_bits(x.x), magnitude_bits(x.y));
}

/// What `most` of one operand is to be, where there are zeros, by warp `warp` of `warps`.
template <class T>
__device__ void find_most(const SplitOperand<T>& x, std::int64_t warp, std::int64_t warps) {
  // Of a piece, either the columns or the rows are reduced.
  constexpr int kPairs = 16, kRows = 32, kAtOnce = 16;
  const std::int64_t width = x.along_k ? kPairs * 64 : 64, height = x.along_k ? 1 : kRows;
  const std::int64_t across = (x.cols + width - 1) / width, down = (x.rows + height - 1) / height;
  const int lane = int(threadIdx.x % 32);
  for (std::int64_t piece = warp; piece < across * down * x.count; piece += warps) {
    const std::int64_t line = piece / across, matrix = line / down;
    const std::int64_t row0 = (line - matrix * down) * height;
    const std::int64_t col0 = (piece - line * across) * width + lane * 2;
    if (x.along_k) {
      const float* const row = x.row(matrix, row0);
      unsigned most = 0;
#pragma unroll
      for (int i = 0; i < kPairs; ++i) most = max(most, largest(x.pair(row, col0 + i * 64)));
      most = __reduce_max_sync(~0u, most);
      if (lane == 0) atomicMax(x.most + matrix * x.rows + row0, most);
    } else {
      unsigned first = 0, second = 0;
      const std::int64_t end = min(row0 + kRows, x.rows);
      for (std::int64_t row = row0; row < end; row += kAtOnce) {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const float2 is = x.pair(x.row(matrix, min(row + i, end - 1)), col0);
          first = max(first, magnitude_bits(is.x));
          second = max(second, magnitude_bits(is.y));
        }
      }
      unsigned* const to = x.most + matrix * x.cols + col0;
      if (col0 < x.cols) atomicMax(to, first);
      if (col0 + 1 < x.cols) atomicMax(to + 1, second);
    }
  }
}

/// Both operands. Memory-bound: 4 bytes read of every number.
template <class T>
__global__ void __launch_bounds__(kSplitThreads)
    find_most_kernel(const __grid_constant__ SplitProblem<T> p) {
  const std::int64_t warps = std::int64_t(gridDim.x) * kSplitWarps;
  const std::int64_t warp = blockIdx.x * std::int64_t(kSplitWarps) + threadIdx.x / 32;
  find_most(p.a, warp, warps);
  find_most(p.b, warps - 1 - warp, warps);
}

/// f(matrix, row, part) for each row of each matrix and each part of it of kCols columns, by warp
/// `warp` of `warps`.
template <int kCols, class T, class F>
__device__ void for_each_piece(const SplitOperand<T>& x, std::int64_t warp, std::int64_t warps,
                               F&& f) {
  const std::int64_t across = (x.cols + kCols - 1) / kCols, rows = x.rows * x.count;
  if (across == 0) return;
  std::int64_t row = warp / across, part = warp % across;
  const std::int64_t next_row = warps / across, next_part = warps % across;
  for (; row < rows; row += next_row, part += next_part) {
    if (part >= across) {
      part -= across;
      if (++row >= rows) break;
    }
    const std::int64_t matrix = x.count == 1 ? 0 : row / x.rows;
    f(matrix, row - matrix * x.rows, part);
  }
}

/// The planes of one operand: a warp takes 256 columns of a row at a time, `warp` of `warps`.
template <int kCount, bool kScale, class T>
__device__ void split(const SplitOperand<T>& x, std::int64_t warp, std::int64_t warps,
                      Range& range) {
  constexpr int kAtOnce = 4, kCols = kAtOnce * 64;
  using PairOfT = decltype(round_pair({}, T{}));
  const std::int64_t lane_col = threadIdx.x % 32 * 2;
  for_each_piece<kCols>(
      x, warp, warps, [&](std::int64_t matrix, std::int64_t r, std::int64_t part) {
        const float* const from = x.row(matrix, r);
        T* const to = x.to + (matrix * kCount * x.rows + r) * x.ld_to;
        float2 rest[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) rest[i] = x.pair(from, part * kCols + i * 64 + lane_col);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const std::int64_t col = part * kCols + i * 64 + lane_col;
          range.add(magnitude_bits(rest[i].x));
          range.add(magnitude_bits(rest[i].y));
          if constexpr (kScale) {
            const auto scaling = [&](std::int64_t along, std::int64_t across) {
              return scaling_of(x.along_k ? x.most[matrix * x.rows + along]
                                          : x.most[matrix * x.cols + min(across, x.cols - 1)]);
            };
            rest[i] = {times_power_of_2(rest[i].x, scaling(r, col)),
                       times_power_of_2(rest[i].y, scaling(r, col + 1))};
          }
#pragma unroll
          for (int plane = 0; plane < kCount; ++plane) {
            const PairOfT rounded = round_pair(rest[i], T{});
            const float2 is = widen_pair(rounded);
            rest[i] = {rest[i].x - is.x, rest[i].y - is.y};
            if (col < x.cols)
              *reinterpret_cast<PairOfT*>(to + plane * x.rows * x.ld_to + col) = rounded;
          }
        }
      });
}

/// Of complex numbers; both words of a pair are (x, y).
template <int kCount, class T>
__device__ void split_complex(const SplitOperand<T>& x, std::int64_t warp, std::int64_t warps,
                              Range& range) {
  constexpr int kAtOnce = 4, kCols = kAtOnce * 64;
  constexpr unsigned kMinusY = 0x80000000;
  using PairOfT = decltype(round_pair({}, T{}));
  const std::int64_t lane_col = threadIdx.x % 32 * 2;
  const int rows_each = x.parts == Parts::Along ? 1 : 2;
  const std::int64_t plane_size = x.rows * rows_each * x.ld_to;
  for_each_piece<kCols>(
      x, warp, warps, [&](std::int64_t matrix, std::int64_t r, std::int64_t part) {
        const float* const from = x.row(matrix, r);
        T* const to = x.to + matrix * kCount * plane_size + r * rows_each * x.ld_to;
        float4 rest[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          rest[i] = x.complex_pair(from, part * kCols + i * 64 + lane_col);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const std::int64_t col = part * kCols + i * 64 + lane_col;
          range.add(magnitude_bits(rest[i].x));
          range.add(magnitude_bits(rest[i].y));
          range.add(magnitude_bits(rest[i].z));
          range.add(magnitude_bits(rest[i].w));
          if (x.conjugated) rest[i].y = -rest[i].y, rest[i].w = -rest[i].w;
#pragma unroll
          for (int plane = 0; plane < kCount; ++plane) {
            const PairOfT first = round_pair({rest[i].x, rest[i].y}, T{});
            const PairOfT second = round_pair({rest[i].z, rest[i].w}, T{});
            const float2 a = widen_pair(first), b = widen_pair(second);
            rest[i] = {rest[i].x - a.x, rest[i].y - a.y, rest[i].z - b.x, rest[i].w - b.y};
            if (col >= x.cols) continue;
            const unsigned w0 = reinterpret_cast<const unsigned&>(first);
            const unsigned w1 = reinterpret_cast<const unsigned&>(second);
            T* const here = to + plane * plane_size;
            const auto put = [&](T* at, unsigned a, unsigned b) {
              *reinterpret_cast<uint2*>(at) = {a, b};
            };
            const auto turned = [](unsigned w) { return __byte_perm(w, 0, 0x1032); };
            if (x.parts == Parts::Across) {
              *reinterpret_cast<unsigned*>(here + col) = __byte_perm(w0, w1, 0x5410);
              *reinterpret_cast<unsigned*>(here + x.ld_to + col) = __byte_perm(w0, w1, 0x7632);
            } else if (x.parts == Parts::Along) {
              put(here + col * 2, w0, w1);
            } else if (x.along_k) {
              put(here + col * 2, w0 ^ kMinusY, w1 ^ kMinusY);
              put(here + x.ld_to + col * 2, turned(w0), turned(w1));
            } else {
              put(here + col * 2, w0, w1);
              put(here + x.ld_to + col * 2, turned(w0 ^ kMinusY), turned(w1 ^ kMinusY));
            }
          }
        }
      });
}

/// The ranges of all threads of the block, on each of them. `shared`: one of each warp.
template <int kThreads>
__device__ Ranges reduce(Ranges x, Ranges* shared) {
  x = {x.a.of_warp(), x.b.of_warp()};
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
#pragma unroll
  for (int warp = 0; warp < kThreads / 32; ++warp) {
    x.a.add(shared[warp].a);
    x.b.add(shared[warp].b);
  }
  return x;
}

/// Both operands. Memory-bound: 4 bytes read and two for each plane written of every number, of
/// complex ones in op(B) twice as many written.
template <class In, bool kComplex>
__global__ void __launch_bounds__(kSplitThreads)
    split_kernel(const __grid_constant__ SplitProblem<Element<In>> p) {
  __shared__ Ranges shared[kSplitWarps];
  const std::int64_t warps = std::int64_t(gridDim.x) * kSplitWarps;
  const std::int64_t warp = blockIdx.x * std::int64_t(kSplitWarps) + threadIdx.x / 32;
#if __CUDA_ARCH__ >= 900
  let_next_kernel_begin();
  wait_for_earlier_kernels();
#endif
  Ranges ranges;
  if constexpr (kComplex) {
    split_complex<kPlanesOf<In>>(p.a, warp, warps, ranges.a);
    split_complex<kPlanesOf<In>>(p.b, warps - 1 - warp, warps, ranges.b);
  } else {
    split<kPlanesOf<In>, kScaled<In>>(p.a, warp, warps, ranges.a);
    split<kPlanesOf<In>, kScaled<In>>(p.b, warps - 1 - warp, warps, ranges.b);
  }
  ranges = reduce<kSplitThreads>(ranges, shared);
  if (threadIdx.x == 0) p.ranges[blockIdx.x] = ranges;
}

}  // namespace mblas::cuda::gemm::hopper
