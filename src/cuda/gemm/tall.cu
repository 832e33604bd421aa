// Floats and doubles, n of at most 16, k of at most 64, many rows: A is read and C written once,
// which takes longer than the products do. So op(B) stays in a block's shared memory, and panels of
// A go through it, each asked for while the one before is multiplied: tiles that come and go, as
// other kernels have them, wait for both operands each time.
//
// A panel lies in shared memory as A does, along k or along the rows, on rows whose starts differ
// in their banks. Floats are multiplied eight columns and two rows a thread, doubles by the fp64
// tensor cores, 16 rows a warp. With 64 columns, where the products take as long as the copies,
// this was slower than tiles: a block's few warps do not hide both.
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace tall_file {

constexpr int kColumns = 16, kMostDepth = 64;  // at most, of n and of k
constexpr std::int64_t kLeastRows = 256;
constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kBlocks = 4;  // that registers allow on a multiprocessor
constexpr int kStages = 2;
constexpr int kStep = 4;  // of k

template <class T>
struct Problem : GemmProblem<T> {
  std::int64_t panels = 0;
  int depth = 0;  ///< k, as a multiple of kStep
  int pitch = 0;  ///< elements between rows of a panel
  bool vectors_c = false;
};

template <class T>
inline constexpr int kVector = 16 / int(sizeof(T));

template <class T, int kCount = kVector<T>>
struct alignas(kCount * sizeof(T)) Vector {
  T e[kCount];
};

/// How a block's threads share a panel of kRows rows of C.
template <class T, bool kAlongK>
struct Shape;

template <bool kAlongK>
struct Shape<float, kAlongK> {
  static constexpr int kRows = 32 * kWarps, kPitchB = kColumns;
  static constexpr int kLanesN = kColumns / 8, kLanesM = 32 / kLanesN;
  static constexpr int kMicro = 32 / kLanesM;  // rows of a thread

  /// Of a panel: 16-byte reads of rows that are neighbours must not meet in a bank.
  static int pitch(int depth) { return kAlongK ? (depth / 4 | 1) * 4 : kRows + 4; }

  int lane_m, lane_n, first;
  float sum[kMicro][8] = {};

  __device__ Shape() {
    const int lane = int(threadIdx.x) % 32;
    lane_m = lane / kLanesN;
    lane_n = lane % kLanesN;
    first = int(threadIdx.x) / 32 * 32;
  }
  __device__ int row(int i) const {
    return first + (kAlongK ? i * kLanesM + lane_m : lane_m * kMicro + i);
  }
  __device__ int column(int half) const { return half * (kColumns / 2) + lane_n * 4; }

  __device__ void multiply(const float* a, int pitch, const float* b) {
    float left[kStep][kMicro];
    if constexpr (kAlongK) {
#pragma unroll
      for (int i = 0; i < kMicro; ++i) {
        const auto v = *reinterpret_cast<const Vector<float>*>(a + row(i) * pitch);
#pragma unroll
        for (int l = 0; l < kStep; ++l) left[l][i] = v.e[l];
      }
    } else {
#pragma unroll
      for (int l = 0; l < kStep; ++l) {
        const auto v = *reinterpret_cast<const Vector<float, kMicro>*>(a + l * pitch + row(0));
#pragma unroll
        for (int i = 0; i < kMicro; ++i) left[l][i] = v.e[i];
      }
    }
#pragma unroll
    for (int l = 0; l < kStep; ++l) {
      Vector<float> right[2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        right[half] = *reinterpret_cast<const Vector<float>*>(b + l * kPitchB + column(half));
#pragma unroll
      for (int i = 0; i < kMicro; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += left[l][i] * right[j / 4].e[j % 4];
    }
  }
  /// f(row, column, vector) for all that the thread has of the panel's C.
  template <class F>
  __device__ void for_each(F&& f) const {
#pragma unroll
    for (int i = 0; i < kMicro; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        f(row(i), column(half),
          Vector<float>{{sum[i][4 * half], sum[i][4 * half + 1], sum[i][4 * half + 2],
                         sum[i][4 * half + 3]}});
  }
};

template <bool kAlongK>
struct Shape<double, kAlongK> {
  static constexpr int kRows = 16 * kWarps, kPitchB = kColumns + 4;

  static int pitch(int depth) { return (kAlongK ? (depth + 15) / 16 * 16 : kRows) + 4; }

  int g, t, first;
  double sum[kColumns / 8][4] = {};

  __device__ Shape() {
    g = int(threadIdx.x) % 32 / 4;
    t = int(threadIdx.x) % 4;
    first = int(threadIdx.x) / 32 * 16;
  }
  __device__ void multiply(const double* a, int pitch, const double* b) {
    double left[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = first + 8 * i + g;
      left[i] = a[kAlongK ? row * pitch + t : t * pitch + row];
    }
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) multiply_tile(sum[j], left, b[t * kPitchB + 8 * j + g]);
  }
  template <class F>
  __device__ void for_each(F&& f) const {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < kColumns / 8; ++j)
        f(first + 8 * i + g, 8 * j + 2 * t, Vector<double>{{sum[j][2 * i], sum[j][2 * i + 1]}});
  }
};

/// Asks for panel `rows` of A, from its first row on; zeros for what is beyond m and k.
template <class T, int kRows, bool kAlongK, bool kVectors>
__device__ void fetch(const Problem<T>& p, std::int64_t first_row, unsigned to) {
  constexpr int kEach = kVectors ? kVector<T> : 1;  // elements of a copy
  const auto* const A = static_cast<const T*>(p.A.at(0));
  const int rows = int(min(p.m - first_row, std::int64_t(kRows))), k = int(p.k);
  // Copies of a line of the panel: a row, or kRows of one k.
  const int across = (kAlongK ? p.depth : kRows) / kEach, lines = kAlongK ? kRows : p.depth;
  const int step_line = kThreads / across, step_at = kThreads % across;
  int line = int(threadIdx.x) / across, at = int(threadIdx.x) % across;
  while (line < lines) {
    const int row = kAlongK ? line : at * kEach, l = kAlongK ? at * kEach : line;
    const int inside = row < rows && l < k ? min(kEach, kAlongK ? k - l : rows - row) : 0;
    const T* const from = inside > 0 ? A + (first_row + row) * p.a.row + l * p.a.col : A;
    copy_async<kEach* int(sizeof(T))>(to + unsigned(line * p.pitch + at * kEach) * sizeof(T), from,
                                      inside * int(sizeof(T)));
    line += step_line;
    at += step_at;
    if (at >= across) at -= across, ++line;
  }
}

template <class T, bool kAlongK, bool kVectors>
__global__ void __launch_bounds__(kThreads, kBlocks)
    tall_kernel(const __grid_constant__ Problem<T> p) {
  using S = Shape<T, kAlongK>;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const right = reinterpret_cast<T*>(memory);
  T* const panels = right + p.depth * S::kPitchB;
  const int panel_size = (kAlongK ? S::kRows : p.depth) * p.pitch;
  const auto ask = [&](std::int64_t panel, int stage) {
    if (panel < p.panels)
      fetch<T, S::kRows, kAlongK, kVectors>(p, panel * S::kRows,
                                            shared_address(panels + stage * panel_size));
    commit_copies();
  };

  // Complete with the first panel: one group of copies has both.
  const auto* const B = static_cast<const T*>(p.B.at(0));
  for (int i = int(threadIdx.x); i < p.depth * kColumns; i += kThreads) {
    const int l = i / kColumns, j = i % kColumns;
    const bool inside = l < p.k && j < p.n;
    copy_async<sizeof(T)>(shared_address(right + l * S::kPitchB + j),
                          inside ? B + l * p.b.row + j * p.b.col : B, inside ? sizeof(T) : 0);
  }
  std::int64_t panel = blockIdx.x;
#pragma unroll
  for (int s = 0; s < kStages; ++s) ask(panel + s * std::int64_t(gridDim.x), s);

  for (int stage = 0; panel < p.panels; panel += gridDim.x, stage = (stage + 1) % kStages) {
    wait_copies<kStages - 1>();
    __syncthreads();
    S share;
    const T* const left = panels + stage * panel_size;
#pragma unroll 2
    for (int l = 0; l < p.depth; l += kStep)
      share.multiply(left + l * (kAlongK ? 1 : p.pitch), p.pitch, right + l * S::kPitchB);
    __syncthreads();
    ask(panel + kStages * std::int64_t(gridDim.x), stage);

    const std::int64_t first_row = panel * S::kRows;
    const int rows = int(min(p.m - first_row, std::int64_t(S::kRows))), n = int(p.n);
    T* const C = static_cast<T*>(p.C.at(0)) + first_row * p.ldc;
    share.for_each([&](int row, int column, Vector<T> v) {
      if (row >= rows) return;
      T* const c = C + row * p.ldc + column;
      if (p.vectors_c && column + kVector<T> <= n) {
        auto* const place = reinterpret_cast<Vector<T>*>(c);
        const Vector<T> old = p.read_c ? *place : Vector<T>{};
#pragma unroll
        for (int e = 0; e < kVector<T>; ++e) {
          v.e[e] = p.alpha * v.e[e];
          if (p.read_c) v.e[e] = multiply_add(p.beta, old.e[e], v.e[e]);
        }
        *place = v;
        return;
      }
#pragma unroll
      for (int e = 0; e < kVector<T>; ++e)
        if (column + e < n) store(p, v.e[e], c + e);
    });
  }
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::f64) return "for f32 and f64";
  if (args.n > kColumns || args.k > kMostDepth || args.k == 0 || args.m < kLeastRows ||
      args.batch > 1)
    return "for one product of at least 256 rows, n of at most 16, k of at most 64";
  if (args.in == DType::f64 && device.capability < 80) return "fp64 tensor cores came with 8.0";
  return declines_emulation(args, device);
}

template <class T, bool kAlongK, bool kVectors>
void launch_tall(Problem<T> p, const CudaQueue& queue) {
  using S = Shape<T, kAlongK>;
  constexpr auto kKernel = tall_kernel<T, kAlongK, kVectors>;
  p.pitch = S::pitch(p.depth);
  p.panels = ceil_div(p.m, S::kRows);
  const int panel = (kAlongK ? S::kRows : p.depth) * p.pitch;
  const int bytes = (p.depth * S::kPitchB + kStages * panel) * int(sizeof(T));
  constexpr int kReserved = 1 << 10;  // of each block
  const std::int64_t fit =
      std::clamp(int(queue.device().shared_memory) / (bytes + kReserved), 1, kBlocks);
  launch_grid(queue, kKernel,
              unsigned(std::min(p.panels, fit * std::max(queue.device().compute_units, 1))),
              kThreads, std::size_t(bytes), p);
}

template <class T>
void run_as(const GemmArgs& args, const CudaQueue& queue) {
  Problem<T> p{gemm_problem<T, T>(args, queue, 1, 1)};
  const int size = size_of(args.in);
  p.depth = int(ceil_div(args.k, kStep)) * kStep;
  p.vectors_c = access_bits(args.C, 1, size) % 16 == 0;
  const bool along_k = p.a.col == 1, vectors = access_bits(args.A, 1, size) % 16 == 0;
  if (along_k && vectors) return launch_tall<T, true, true>(p, queue);
  if (along_k) return launch_tall<T, true, false>(p, queue);
  if (vectors) return launch_tall<T, false, true>(p, queue);
  launch_tall<T, false, false>(p, queue);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (args.in == DType::f32)
    run_as<float>(args, queue);
  else
    run_as<double>(args, queue);
}

}  // namespace tall_file

Kernel<GemmArgs> tall() {
  using namespace tall_file;
  return {"tall", "many rows, n up to 16, k up to 64: op(B) stays, A streams by", declines,
          gemm_pointer_bytes, run};
}

}  // namespace mblas::cuda::gemm
