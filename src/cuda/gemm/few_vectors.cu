// A matrix times two to eight vectors, of 16 bits also one: limited by reading the matrix once, as
// gemv.cu is, if its elements meet all vectors in registers; with eight vectors of 16 bits nearly
// as much by multiply-adds, which are those of floats. The vectors of a block's part of k are
// copied to shared memory, a chunk ahead of the matrix, or, of 16 bits, which no asynchronous copy
// takes alone, by way of registers.
//
// Where memory runs along k a warp has some rows, so that what it reads of the vectors serves all
// of them, and its lanes add up with shuffles, each level of which halves what a lane has left to
// add up; otherwise each thread has neighbouring results, and warps take rows of the matrix in
// turn. Either way k is cut into parts where there are few results (parts.cuh).
#include <algorithm>

#include "cuda/gemm/few.cuh"
#include "cuda/gemm/few_words.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace few_vectors_file {

using few::kBlocks, few::kLoads, few::kThreads, few::kWarps;

constexpr int kMostVectors = 8;
constexpr int kChunks = 4;              // of a block's part of k
constexpr int kVectorBytes = 64 << 10;  // of the vectors in shared memory
constexpr int kLeast = 128;             // of k, and of the matrix's other side

/// Elements of k that a step of either kernel takes, `vector` of them neighbours.
constexpr int chunk_unit(bool along_k, int vector, int rows) {
  return along_k ? 32 * vector * kLoads / rows : kWarps * kLoads;
}

template <class T>
struct Problem : few::Problem<T> {
  int chunk = 0;  ///< elements of k, a multiple of chunk_unit()
};

/// Starts to copy the vectors' chunks of [k0, k1), zeros where there is nothing: element k of
/// vector s goes to place(s, k).
template <int kCount, class T, class Place>
__device__ void copy_vectors(const Problem<T>& p, const parts::Work& w, const Place& place) {
  const auto* const y = static_cast<const T*>(p.Few.at(w.batch)) + w.k0 * p.few.col;
  const int depth = int(w.k1 - w.k0), lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const auto copy = [&](int s, int k) {
    const int bytes = s < p.count ? min(max(depth - k, 0), 1) * int(sizeof(T)) : 0;
    cuda::copy_async<int(sizeof(T))>(place(s, k), bytes > 0 ? y + s * p.few.row + k * p.few.col : y,
                                     bytes);
  };
  constexpr int kShare = kWarps / kCount;  // warps that have the same vector, along k
  for (int c = 0; c < kChunks; ++c) {
    const int begin = c * p.chunk, end = begin < depth ? begin + p.chunk : begin;
    if (p.few.col != 1)
      for (int i = int(threadIdx.x); i < kCount * (end - begin); i += kThreads)
        copy(i % kCount, begin + i / kCount);
    else
      for (int k = begin + warp / kCount * 32 + lane; k < end; k += kShare * 32)
        copy(warp % kCount, k);
    commit_copies();
  }
}

/// Waits for chunk `c` of the copies, with all threads.
__device__ inline void wait_chunk(int c) {
  static_assert(kChunks == 4);
  if (c == 0)
    wait_copies<3>();
  else if (c == 1)
    wait_copies<2>();
  else if (c == 2)
    wait_copies<1>();
  else
    wait_copies<0>();
  __syncthreads();
}

/// Memory runs along k.
template <class T, int kV, int kCount>
__global__ void __launch_bounds__(kThreads, kBlocks)
    rows_kernel(const __grid_constant__ Problem<T> p) {
  using Unit = Vector<T, kV>;
  constexpr int kRows = few::rows_of(sizeof(T), kCount);
  constexpr int kEach = kLoads / kRows, kHop = 32 * kV, kStep = kHop * kEach;
  static_assert(kStep == chunk_unit(true, kV, kRows));
  extern __shared__ __align__(64) unsigned char memory[];
  auto* const shared = reinterpret_cast<T*>(memory);  // vector by vector
  begin_early();

  const parts::Work w = parts::work_of(p);
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int pitch = kChunks * p.chunk, depth = int(w.k1 - w.k0);
  copy_vectors<kCount>(p, w, [&](int s, int k) { return shared_address(shared + s * pitch + k); });

  // Rows beyond the matrix are read inside of it; their sums go nowhere.
  const std::int64_t first = (w.block * kWarps + warp) * kRows;
  const auto* const a = static_cast<const T*>(p.Matrix.at(w.batch)) + w.k0 + lane * kV;
  const T* from[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) from[r] = a + min(first + r, p.length - 1) * p.line;

  T sums[kRows * kCount] = {};
#pragma unroll 1
  for (int c = 0; c < kChunks; ++c) {
    wait_chunk(c);
    const int end = min((c + 1) * p.chunk, depth);
#pragma unroll 1
    for (int k = c * p.chunk; k < end; k += kStep) {
      Unit x[kEach][kRows];
#pragma unroll
      for (int u = 0; u < kEach; ++u) {
        const int left = depth - (k + u * kHop + lane * kV);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const T* const at = from[r] + k + u * kHop;
          x[u][r] = {};
          if (left >= kV) {
            x[u][r] = *reinterpret_cast<const Unit*>(at);
          } else {
#pragma unroll
            for (int e = 0; e + 1 < kV; ++e)
              if (e < left) x[u][r].e[e] = at[e];
          }
        }
      }
#pragma unroll
      for (int u = 0; u < kEach; ++u)
#pragma unroll
        for (int s = 0; s < kCount; ++s) {
          const Unit y =
              *reinterpret_cast<const Unit*>(shared + s * pitch + k + u * kHop + lane * kV);
#pragma unroll
          for (int e = 0; e < kV; ++e) {
            const T factor = widen(y.e[e], p.conjugate_few);
#pragma unroll
            for (int r = 0; r < kRows; ++r)
              sums[r * kCount + s] = multiply_add(x[u][r].e[e], factor, sums[r * kCount + s]);
          }
        }
    }
  }
  parts::add_team(sums, 32, lane);
  constexpr int kLanes = 32 / (kRows * kCount);  // that have the same sum
  const int r = lane / kLanes / kCount, s = lane / kLanes % kCount;
  if (lane % kLanes == 0 && first + r < p.length && s < p.count)
    parts::leave<T>(p, w, first + r, s, sums[0]);
}

/// Memory runs along the results.
template <class T, int kV, int kCount>
__global__ void __launch_bounds__(kThreads, kBlocks)
    columns_kernel(const __grid_constant__ Problem<T> p) {
  using Unit = Vector<T, kV>;
  using Factors = Vector<T, kCount>;
  constexpr int kWidth = 32 * kV;
  static_assert(kWarps * kLoads == chunk_unit(false, kV, 1));
  extern __shared__ __align__(64) unsigned char memory[];
  auto* const shared = reinterpret_cast<T*>(memory);  // all vectors' elements of one k by one
  begin_early();

  const parts::Work w = parts::work_of(p);
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int depth = int(w.k1 - w.k0);
  copy_vectors<kCount>(p, w, [&](int s, int k) { return shared_address(shared + k * kCount + s); });

  const std::int64_t first = w.block * kWidth, column = first + lane * kV;
  // Columns beyond the matrix are read inside of it; their sums go nowhere.
  const auto* const a = static_cast<const T*>(p.Matrix.at(w.batch)) +
                        (column < p.length ? column : 0) + w.k0 * p.line;

  T sums[kCount][kV] = {};
#pragma unroll 1
  for (int c = 0; c < kChunks; ++c) {
    wait_chunk(c);
    const int end = min((c + 1) * p.chunk, depth);
#pragma unroll 1
    for (int k = c * p.chunk + warp; k < end; k += kWarps * kLoads) {
      const T* from = a + k * p.line;
      Unit x[kLoads];
#pragma unroll
      for (int u = 0; u < kLoads; ++u) {
        x[u] = {};
        if (k + u * kWarps < end) x[u] = *reinterpret_cast<const Unit*>(from);
        from += kWarps * p.line;
      }
#pragma unroll
      for (int u = 0; u < kLoads; ++u) {
        const Factors y = *reinterpret_cast<const Factors*>(shared + (k + u * kWarps) * kCount);
#pragma unroll
        for (int s = 0; s < kCount; ++s) {
          const T factor = widen(y.e[s], p.conjugate_few);
#pragma unroll
          for (int e = 0; e < kV; ++e) sums[s][e] = multiply_add(x[u].e[e], factor, sums[s][e]);
        }
      }
    }
  }

  // The sums of warps, which have the same columns.
  __syncthreads();
#pragma unroll
  for (int s = 0; s < kCount; ++s)
#pragma unroll
    for (int e = 0; e < kV; ++e) shared[(warp * kCount + s) * kWidth + e * 32 + lane] = sums[s][e];
  __syncthreads();
  const int width = int(min(p.length - first, std::int64_t(kWidth)));
  for (int i = thread; i < width * p.count; i += kThreads) {
    const int l = p.c.row == 1 ? i % width : i / p.count;
    const int s = p.c.row == 1 ? i / width : i % p.count;
    const T* const found = shared + s * kWidth + l % kV * 32 + l / kV;
    T sum = *found;
#pragma unroll
    for (int other = 1; other < kWarps; ++other) sum = sum + found[other * kCount * kWidth];
    parts::leave<T>(p, w, first + l, s, sum);
  }
}

/// How a call is cut.
struct Cut {
  bool matrix_is_b, along_k, wide;
  std::int64_t length, blocks, depth;
  int count, vectors, chunk, parts;  // count: vectors of the kernel
  bool fits;
};

bool in_words(const GemmArgs& args) { return size_of(args.in) == 2; }

/// Sets blocks, parts and depth.
void cut_words(Cut& cut, const GemmArgs& args, std::int64_t units) {
  const std::int64_t width = cut.along_k ? kWarps * few::rows_of(size_of(args.in), cut.count)
                                         : few_words::width_of(cut.wide);
  cut.blocks = ceil_div(cut.length, width);
  const std::int64_t most_depth = few_words::most_depth(cut.count);
  const std::int64_t parts = std::max(std::min(kBlocks * units / (cut.blocks * args.batch),
                                               args.k / (2 * few_words::step_of(cut.along_k))),
                                      ceil_div(args.k, most_depth));
  constexpr std::int64_t kUnit = few_words::kWord;
  cut.depth = ceil_div(args.k, std::clamp<std::int64_t>(parts, 1, parts::kMost) * kUnit) * kUnit;
  cut.parts = int(ceil_div(args.k, cut.depth));
  cut.fits = cut.depth <= most_depth;
}

Cut cut_of(const GemmArgs& args, const DeviceInfo& device) {
  Cut cut = {};
  cut.matrix_is_b = args.m < args.n;
  cut.along_k = cut.matrix_is_b ? is_transposed(args.transB) : !is_transposed(args.transA);
  cut.length = std::max(args.m, args.n);
  cut.vectors = int(std::min(args.m, args.n));
  cut.count = cut.vectors <= 2 ? 2 : cut.vectors <= 4 ? 4 : 8;
  const int size = size_of(args.in), unit = 16 / size;
  cut.wide = access_bits(cut.matrix_is_b ? args.B : args.A, args.batch, size) % 16 == 0 &&
             (in_words(args) || cut.along_k || cut.length % unit == 0);
  const std::int64_t units = std::max(device.compute_units, 1);
  if (in_words(args)) {
    cut_words(cut, args, units);
    return cut;
  }
  const int rows = few::rows_of(size, cut.count);
  cut.blocks = ceil_div(cut.length, cut.along_k ? kWarps * rows : 32 * (cut.wide ? unit : 1));
  const std::int64_t most_depth = kVectorBytes / (cut.count * size);
  const int step = chunk_unit(cut.along_k, cut.wide ? unit : 1, rows);
  const std::int64_t parts =
      std::max(std::min(kBlocks * units / (cut.blocks * args.batch), args.k / (2 * step)),
               ceil_div(args.k, most_depth));
  cut.parts = int(std::clamp<std::int64_t>(parts, 1, parts::kMost));
  cut.depth = ceil_div(ceil_div(args.k, cut.parts), step) * step;
  cut.chunk = int(ceil_div(cut.depth, kChunks * step)) * step;
  cut.fits = kChunks * cut.chunk <= most_depth;
  return cut;
}

/// Whether the copy engine brings operands of 16 bits to tensor_wgmma as they lie, and C back.
bool suits_engine(const GemmArgs& args, const DeviceInfo& device) {
  const auto suits = [&](const auto& x, DType type) {
    return !(x.pointers && args.batch > 1) && access_bits(x, args.batch, size_of(type)) % 16 == 0;
  };
  return runs_hopper(device) && suits(args.A, args.in) && suits(args.B, args.in) &&
         suits(args.C, args.out);
}

/// Why other rows are left what they do faster: as measured with 180 products on an H200, single
/// ones and batches.
const char* declines_slower(const GemmArgs& args, const DeviceInfo& device) {
  constexpr std::int64_t kLeastRows = 192, kLeastDepth = 1000, kLeastComplexDepth = 300,
                         kLeastNarrowDepth = 512;
  constexpr double kLeastBytes = 5e6;
  const std::int64_t length = std::max(args.m, args.n);
  if (in_words(args)) {
    if (suits_engine(args, device))
      return "slower than tensor_wgmma where rows are at multiples of 16 bytes";
    return std::min(args.m, args.n) > 1 && args.k < kLeastNarrowDepth
               ? "slower than tensor_mma for so short a k"
               : nullptr;
  }
  const double bytes = double(length * args.k * args.batch) * size_of(args.in);
  // 10470×5×1168 57.6 us, 37.1; 8×2804×6196 67, 51; but 8×796×3092 14.2, 15.5.
  constexpr std::int64_t kLeastVectors = 5, kLeastLength = 2500;
  constexpr double kLeastBytesOfPlanes = 14e6;
  if (args.in == DType::cf32 && args.compute == Compute::Default && runs_hopper(device) &&
      std::min(args.m, args.n) >= kLeastVectors && length >= kLeastLength &&
      bytes >= kLeastBytesOfPlanes)
    return "slower than fused_bf16x6 for so many vectors";
  const bool is_small = args.in == DType::f32 ? length < kLeastRows || args.k < kLeastDepth
                                              : bytes < kLeastBytes || args.k < kLeastComplexDepth;
  return is_small ? "slower than simt for so small a matrix" : nullptr;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::cf32 && args.in != DType::f16 &&
      args.in != DType::bf16)
    return "for f32, cf32, f16 and bf16";
  if (device.capability < 80) return "needs compute capability 8.0";
  const std::int64_t few = std::min(args.m, args.n);
  if (few < (in_words(args) ? 1 : 2) || few > kMostVectors)
    return "for m or n of 2 to 8, or 1 of 16 bits";
  if (std::max(args.m, args.n) < kLeast || args.k < kLeast)
    return "for k and the other one of m and n of at least 128";
  if (const char* reason = declines_halfway(args)) return reason;
  if (!cut_of(args, device).fits) return "for a shorter k";
  if (args.config != kForced)
    if (const char* reason = declines_slower(args, device)) return reason;
  return declines_emulation(args, device);
}

std::size_t workspace(const GemmArgs& args, const DeviceInfo& device) {
  return gemm_pointer_bytes(args, device) + parts::bytes(args, cut_of(args, device).parts);
}

template <class P>
void set(P& p, const GemmArgs& args, const Cut& cut) {
  const bool b = cut.matrix_is_b;
  p.Matrix = b ? p.B : p.A;
  p.Few = b ? p.A : p.B;
  p.length = cut.length;
  p.count = cut.vectors;
  p.line = b ? args.B.ld : args.A.ld;
  p.few = b ? p.a : Strides{p.b.col, p.b.row};
  p.c = b ? Strides{1, p.ldc} : Strides{p.ldc, 1};
  // A conjugate of the matrix is one of the vectors and of the sums.
  p.conjugate_sum = b ? p.conjugate_b : p.conjugate_a;
  p.conjugate_few = p.conjugate_a != p.conjugate_b;
  p.blocks = cut.blocks;
  p.depth = cut.depth;
  p.parts = cut.parts;
}

/// `vectors`, `sums`: bytes of shared memory, which both have in turn.
template <class Out, class P>
void run_kernel(const GemmArgs& args, void (*kernel)(P), std::int64_t vectors, int sums, const P& p,
                const CudaQueue& queue) {
  parts::run<Out>(queue, args, kernel, kThreads, std::size_t(std::max<std::int64_t>(vectors, sums)),
                  p);
}

template <class T, int kV, int kCount>
void run_as(const GemmArgs& args, const Cut& cut, const CudaQueue& queue) {
  Problem<T> p{{gemm_problem<T, T>(args, queue, 1, 1)}};
  set(p, args, cut);
  p.chunk = cut.chunk;
  const int vectors = kCount * kChunks * cut.chunk * int(sizeof(T));
  if (cut.along_k)
    run_kernel<T>(args, rows_kernel<T, kV, kCount>, vectors, 0, p, queue);
  else
    run_kernel<T>(args, columns_kernel<T, kV, kCount>, vectors,
                  kThreads * kCount * kV * int(sizeof(T)), p, queue);
}

template <class T, class Out, int kCount>
void run_words(const GemmArgs& args, const Cut& cut, const CudaQueue& queue) {
  few_words::Problem p{{{gemm_problem<T, Out>(args, queue, 1, 1)}}};
  set(p, args, cut);
  p.width = few_words::width_of(cut.wide);
  p.floats = std::is_same_v<Out, float>;
  const std::int64_t vectors = few_words::vector_bytes(kCount, cut.depth);
  if (cut.along_k)
    run_kernel<Out>(args, few_words::rows_kernel<T, kCount>, vectors, 0, p, queue);
  else
    run_kernel<Out>(args, few_words::columns_kernel<T, kCount>, vectors,
                    few_words::WarpSums<kCount>::kBytes, p, queue);
}

/// f<kCount>().
template <class F>
void with_count(const Cut& cut, F&& f) {
  if (cut.count == 2)
    f.template operator()<2>();
  else if (cut.count == 4)
    f.template operator()<4>();
  else
    f.template operator()<8>();
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Cut cut = cut_of(args, queue.device());
  const auto with_type = [&]<class T>() {
    with_count(cut, [&]<int kCount>() {
      if (cut.wide)
        run_as<T, int(16 / sizeof(T)), kCount>(args, cut, queue);
      else
        run_as<T, 1, kCount>(args, cut, queue);
    });
  };
  const auto with_words = [&]<class T>() {
    with_count(cut, [&]<int kCount>() {
      if (args.out == DType::f32)
        run_words<T, float, kCount>(args, cut, queue);
      else
        run_words<T, T, kCount>(args, cut, queue);
    });
  };
  if (args.in == DType::f32)
    with_type.template operator()<float>();
  else if (args.in == DType::cf32)
    with_type.template operator()<Complex<float>>();
  else if (args.in == DType::f16)
    with_words.template operator()<__half>();
  else
    with_words.template operator()<__nv_bfloat16>();
}

}  // namespace few_vectors_file

Kernel<GemmArgs> few_vectors() {
  using namespace few_vectors_file;
  return {"few_vectors",
          "a matrix times 2 to 8 vectors, of 16 bits 1 to 8, which meet it in registers", declines,
          workspace, run};
}

}  // namespace mblas::cuda::gemm
