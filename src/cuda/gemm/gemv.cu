// A matrix times a vector: limited by reading the matrix once, for which some 30 KB must be under
// way on every multiprocessor all the time.
//
// Where memory runs along the vector a warp reads a row, or a share of one, and its lanes add up
// with shuffles; otherwise each thread has some neighbouring results, and warps take rows of the
// matrix in turn. Either way the vector comes through the first-level cache, and k is cut into
// parts where there are few results (parts.cuh). Two blocks a multiprocessor, all there at once:
// more and shorter ones spend their time starting.
//
// On an H200, ratios to cuBLAS's gemmEx with 4096x4096, and GB/s: along the vector f32 1.27 (3650),
// f64 1.02 (4010), cf64 1.01 (4180); along the result f32 0.94 (3330), f64 1.02 (3810), cf64 0.98
// (4060). What did not help: the next step's loads before a step is multiplied, bulk copies to a
// ring of slots for each warp (0.5 to 0.9 of this), clusters for the parts of k.
#include <algorithm>

#include "cuda/gemm/parts.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace gemv_file {

constexpr int kWarps = 8, kThreads = kWarps * 32;
constexpr int kBlocks = 2;  // that share a multiprocessor's registers

template <class T>
struct GemvProblem : parts::Problem<T> {
  DeviceInput Matrix{}, Vector{};
  std::int64_t line = 0;  ///< elements between the lines of the matrix in memory
  std::int64_t vector_step = 0;
  bool wide_vector = false;  ///< read as the matrix is
  bool conjugate_vector = false;
  int share = 0;  ///< along the vector: warps of a row; else lanes side by side
};

/// Loads of the matrix that a thread has under way at a time.
template <class T, int kV>
constexpr int kLoads = kV == 1 && sizeof(T) == 4 ? 16 : 8;

/// Memory runs along the vector.
template <class T, int kV>
__global__ void __launch_bounds__(kThreads, kBlocks)
    rows_kernel(const __grid_constant__ GemvProblem<T> p) {
  using Unit = Vector<T, kV>;
  constexpr int kEach = kLoads<T, kV>, kHop = 32 * kV, kStep = kHop * kEach;
  __shared__ T shares[kWarps];
  begin_early();

  const parts::Work w = parts::work_of(p);
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int rows = kWarps / p.share, row = warp / p.share, share = warp % p.share;
  const std::int64_t first = w.block * rows;
  const auto* const a =
      static_cast<const T*>(p.Matrix.at(w.batch)) + min(first + row, p.length - 1) * p.line;
  const auto* const v = static_cast<const T*>(p.Vector.at(w.batch));
  const std::int64_t end = w.k1 - (w.k1 - w.k0) % kV;  // of whole units

  T sums[kV] = {};
#pragma unroll 1
  for (std::int64_t k = w.k0 + share * kStep; k < end; k += std::int64_t(p.share) * kStep) {
    const int left = int(min(end - k, std::int64_t(kStep))) - lane * kV;
    const T* const from = a + k + lane * kV;
    const T* const v_from = v + (k + lane * kV) * p.vector_step;
    Unit x[kEach], y[kEach];
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      x[u] = {};
      if (u * kHop < left) x[u] = *reinterpret_cast<const Unit*>(from + u * kHop);
    }
    if (p.wide_vector) {
#pragma unroll
      for (int u = 0; u < kEach; ++u) {
        y[u] = {};
        if (u * kHop < left) y[u] = *reinterpret_cast<const Unit*>(v_from + u * kHop);
      }
    } else {
#pragma unroll
      for (int u = 0; u < kEach; ++u) {
        y[u] = {};
        if (u * kHop < left)
#pragma unroll
          for (int e = 0; e < kV; ++e) y[u].e[e] = v_from[(u * kHop + e) * p.vector_step];
      }
    }
#pragma unroll
    for (int u = 0; u < kEach; ++u)
#pragma unroll
      for (int e = 0; e < kV; ++e)
        sums[e] = multiply_add(widen(x[u].e[e]), widen(y[u].e[e], p.conjugate_vector), sums[e]);
  }
  if (kV > 1 && share == 0 && end + lane < w.k1)
    sums[0] = multiply_add(widen(a[end + lane]),
                           widen(v[(end + lane) * p.vector_step], p.conjugate_vector), sums[0]);

  T sum = sums[0];
#pragma unroll
  for (int e = 1; e < kV; ++e) sum = sum + sums[e];
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) sum = sum + parts::from_lane(sum, mask);
  if (lane == 0) shares[warp] = sum;
  __syncthreads();
  if (thread >= rows || first + thread >= p.length) return;
  sum = shares[thread * p.share];
  for (int i = 1; i < p.share; ++i) sum = sum + shares[thread * p.share + i];
  parts::leave<T>(p, w, first + thread, 0, sum);
}

/// Memory runs along the result.
template <class T, int kV>
__global__ void __launch_bounds__(kThreads, kBlocks)
    columns_kernel(const __grid_constant__ GemvProblem<T> p) {
  using Unit = Vector<T, kV>;
  constexpr int kEach = sizeof(T) == 16 ? 6 : kLoads<T, kV>;  // 8 do not fit the registers
  __shared__ T found[kThreads * kV];
  begin_early();

  const parts::Work w = parts::work_of(p);
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int across = lane & (p.share - 1), down = warp * (32 / p.share) + lane / p.share;
  const int lines = kThreads / p.share, width = p.share * kV;
  const std::int64_t first = w.block * width, column = first + across * kV;
  // Columns beyond the matrix are read inside of it; their sums go nowhere.
  const auto* const a =
      static_cast<const T*>(p.Matrix.at(w.batch)) + (column < p.length ? column : 0);
  const auto* const v = static_cast<const T*>(p.Vector.at(w.batch));

  T sums[kV] = {};
#pragma unroll 1
  for (std::int64_t k = w.k0 + down; k < w.k1; k += lines * kEach) {
    const int left = int(min(w.k1 - k, std::int64_t(lines * kEach)));
    const T *from = a + k * p.line, *v_from = v + k * p.vector_step;
    Unit x[kEach];
    T y[kEach];
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      x[u] = {};
      if (u * lines < left) x[u] = *reinterpret_cast<const Unit*>(from);
      from += lines * p.line;
    }
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      y[u] = T{};
      if (u * lines < left) y[u] = *v_from;
      v_from += lines * p.vector_step;
    }
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      const T factor = widen(y[u], p.conjugate_vector);
#pragma unroll
      for (int e = 0; e < kV; ++e) sums[e] = multiply_add(widen(x[u].e[e]), factor, sums[e]);
    }
  }

  // Sums of lanes and warps that have the same columns.
  for (int mask = 16; mask >= p.share; mask /= 2)
#pragma unroll
    for (int e = 0; e < kV; ++e) sums[e] = sums[e] + parts::from_lane(sums[e], mask);
  if (lane < p.share)
#pragma unroll
    for (int e = 0; e < kV; ++e) found[warp * width + across * kV + e] = sums[e];
  __syncthreads();
  for (int i = thread; i < width && first + i < p.length; i += kThreads) {
    T sum = found[i];
#pragma unroll
    for (int other = 1; other < kWarps; ++other) sum = sum + found[other * width + i];
    parts::leave<T>(p, w, first + i, 0, sum);
  }
}

/// How a call is cut.
struct Cut {
  bool matrix_is_b, along_k, vectors;
  std::int64_t length, blocks, depth;
  int share, parts;
};

Cut cut_of(const GemmArgs& args, const DeviceInfo& device) {
  Cut cut;
  cut.matrix_is_b = args.m == 1 && args.n > 1;
  cut.along_k = cut.matrix_is_b ? is_transposed(args.transB) : !is_transposed(args.transA);
  cut.length = cut.matrix_is_b ? args.n : args.m;
  const int size = size_of(args.in), vector = 16 / size;
  cut.vectors = access_bits(cut.matrix_is_b ? args.B : args.A, args.batch, size) % 16 == 0 &&
                (cut.along_k || cut.length % vector == 0);
  const int elements = cut.vectors ? vector : 1;
  const std::int64_t units = std::max(device.compute_units, 1);
  std::int64_t step, most;  // of k that parts should have, blocks that there should be
  if (cut.along_k) {
    step = 128 * elements;
    const auto wanted = [&] { return cut.length * args.batch * cut.share < 16 * units; };
    for (cut.share = 1; cut.share < kWarps && wanted() && args.k > step * cut.share;)
      cut.share *= 2;
    cut.blocks = ceil_div(cut.length, kWarps / cut.share);
    step *= cut.share;
    most = units;
  } else {
    cut.share = elements * size == 16 && size <= 4 ? 16 : 32;
    cut.blocks = ceil_div(cut.length, cut.share * elements);
    step = 32 * kThreads / cut.share;
    most = 2 * units;
  }
  cut.parts = int(std::clamp<std::int64_t>(
      std::min(most / (cut.blocks * args.batch), args.k / step), 1, parts::kMost));
  cut.depth = ceil_div(ceil_div(args.k, cut.parts), 128) * 128;
  return cut;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (size_of(args.in) < 4) return "for types of 4 bytes or more";
  if (std::min(args.m, args.n) > 1) return "for vectors";
  return declines_emulation(args, device);
}

std::size_t workspace(const GemmArgs& args, const DeviceInfo& device) {
  return gemm_pointer_bytes(args, device) + parts::bytes(args, cut_of(args, device).parts);
}

template <class T, int kV>
void run_as(const GemmArgs& args, const Cut& cut, const CudaQueue& queue) {
  GemvProblem<T> p{{gemm_problem<T, T>(args, queue, 1, 1)}};
  const bool b = cut.matrix_is_b;
  p.Matrix = b ? p.B : p.A;
  p.Vector = b ? p.A : p.B;
  p.length = cut.length;
  p.line = b ? args.B.ld : args.A.ld;
  p.vector_step = b ? p.a.col : p.b.row;
  p.c = {b ? 1 : p.ldc, 1};
  const Input& vector = b ? args.A : args.B;
  const std::uintptr_t stride = vector.pointers ? 0 : std::uintptr_t(vector.stride) * sizeof(T);
  p.wide_vector = p.vector_step == 1 && (address_bits(vector, args.batch) | stride) % 16 == 0;
  // A conjugate of the matrix is one of the vector and of the sums.
  p.conjugate_sum = b ? p.conjugate_b : p.conjugate_a;
  p.conjugate_vector = p.conjugate_a != p.conjugate_b;
  p.share = cut.share;
  p.blocks = cut.blocks;
  p.depth = cut.depth;
  p.parts = cut.parts;
  parts::run<T>(queue, args, cut.along_k ? rows_kernel<T, kV> : columns_kernel<T, kV>, kThreads, 0,
                p);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Cut cut = cut_of(args, queue.device());
  const auto run_type = [&]<class T>() {
    if (cut.vectors)
      run_as<T, int(16 / sizeof(T))>(args, cut, queue);
    else
      run_as<T, 1>(args, cut, queue);
  };
  if (args.in == DType::f32)
    run_type.template operator()<float>();
  else if (args.in == DType::f64)
    run_type.template operator()<double>();
  else if (args.in == DType::cf32)
    run_type.template operator()<Complex<float>>();
  else
    run_type.template operator()<Complex<double>>();
}

}  // namespace gemv_file

Kernel<GemmArgs> gemv() {
  using namespace gemv_file;
  return {"gemv", "a matrix times a vector: the matrix once, k cut over warps and blocks", declines,
          workspace, run};
}

}  // namespace mblas::cuda::gemm
