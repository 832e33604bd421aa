// gemm of doubles on the fp64 tensor cores: the kernel, its tiles, and what it is made of.
//
// A block keeps a tile of C in registers and walks along k. Tiles of A and B come by asynchronous
// copies of single elements, several stages ahead: 8 bytes each, so that neither an odd leading
// dimension nor an odd size changes anything, and each operand keeps its own major in shared
// memory. A row there is 4 elements longer than a multiple of 16: with that the 16 lanes that are
// served together read different banks in either major, and copies write whole lines.
//
// Limit: 128 multiply-adds a clock and multiprocessor. A warp's 64×32 of C takes 96 elements a step
// of k from shared memory for 2,048 multiply-adds: under half of what that delivers meanwhile.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/gemm/gemm.cuh"

namespace mblas::cuda::gemm {

/// d += a b of 16×4 by 4×8. Lane 4 g + t holds (g, t) and (g + 8, t) of A, (t, g) of B, and of D
/// (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1).
__device__ inline void multiply_tile(double (&d)[4], const double (&a)[2], double b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(b));
#elif __CUDA_ARCH__ >= 800
#pragma unroll
  for (int r = 0; r < 2; ++r)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[2 * r]), "+d"(d[2 * r + 1])
        : "d"(a[r]), "d"(b));
#endif
}

/// An asynchronous copy of an element to shared memory, or of a zero: then nothing is read.
__device__ inline void copy_or_zero(double* to, const double* from, bool inside) {
  asm volatile(
      "cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(unsigned(__cvta_generic_to_shared(to))),
      "l"(from), "r"(inside ? 8 : 0)
      : "memory");
}

/// A tile of `kOuter` rows of A, or columns of B, by `kDepth` of k. kAlongK: memory runs along k.
template <int kOuter, int kDepth, bool kAlongK, int kThreads>
struct Panel {
  static constexpr int kPitch = (kAlongK ? kDepth : kOuter) + 4;
  static constexpr int kSize = kPitch * (kAlongK ? kOuter : kDepth);
  static constexpr int kRun = kAlongK ? kDepth : kOuter;  // contiguous in memory
  static constexpr int kStep = kThreads / kRun;           // runs that are loaded at once
  static constexpr int kEach = (kAlongK ? kOuter : kDepth) / kStep;
  static_assert(kThreads % kRun == 0 && kStep * kEach * kRun == kOuter * kDepth);
  static_assert(kPitch % 16 == 4 || kPitch % 16 == 12);

  __device__ static int at(int outer, int depth) {
    return kAlongK ? outer * kPitch + depth : depth * kPitch + outer;
  }

  /// Copies of the panels one after another along k.
  struct Loader {
    const double* from;
    std::int64_t step;  // between two runs of a thread
    std::int64_t next;  // between two panels
    std::int64_t depth_left;
    int outer_left;

    /// `x` is where the tile begins; beyond `outer_left` and `depth_left` elements are zero.
    __device__ Loader(const double* x, std::int64_t ld, std::int64_t outer, std::int64_t depth)
        : from(x + line() * ld + place()),
          step(kStep * ld),
          next(kAlongK ? kDepth : kDepth * ld),
          depth_left(depth - (kAlongK ? place() : line())),
          outer_left(int(min(outer, std::int64_t(kOuter))) - (kAlongK ? line() : place())) {}

    __device__ static int place() { return int(threadIdx.x) % kRun; }
    __device__ static int line() { return int(threadIdx.x) / kRun; }

    /// Part `part` of `kParts` of a panel; the last one moves on to the next panel.
    template <int kParts>
    __device__ void load(double* panel, int part) {
      static_assert(kEach % kParts == 0);
      double* to = panel + line() * kPitch + place();
      const double* p = from + part * (kEach / kParts) * step;
#pragma unroll
      for (int e = 0; e < kEach / kParts; ++e, p += step) {
        const int i = part * (kEach / kParts) + e;
        const bool inside = kAlongK ? depth_left > 0 && i * kStep < outer_left
                                    : depth_left > i * kStep && outer_left > 0;
        copy_or_zero(to + i * kStep * kPitch, p, inside);
      }
      if (part == kParts - 1) {
        from += next;
        depth_left -= kDepth;
      }
    }
  };
};

/// kRows×kCols of C a block, kDepth of k a stage; a warp has kWarpRows×kWarpCols.
template <int kRows_, int kCols_, int kDepth_, int kWarpRows_, int kWarpCols_, int kStages_,
          int kBlocks_ = 1>
struct TensorTile {
  static constexpr int kRows = kRows_, kCols = kCols_, kDepth = kDepth_;
  static constexpr int kWarpRows = kWarpRows_, kWarpCols = kWarpCols_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kAcross = kCols / kWarpCols, kDown = kRows / kWarpRows;
  static constexpr int kThreads = 32 * kAcross * kDown;
  static constexpr int kM = kWarpRows / 16, kN = kWarpCols / 8;
  static_assert(kWarpRows % 16 == 0 && kWarpCols % 8 == 0 && kDepth % 4 == 0 && kStages >= 2);

  template <bool kAlongK>
  using A = Panel<kRows, kDepth, kAlongK, kThreads>;
  template <bool kAlongK>
  using B = Panel<kCols, kDepth, kAlongK, kThreads>;
  template <bool kAAlongK, bool kBAlongK>
  static constexpr std::size_t kShared = sizeof(double) * kStages*(A<kAAlongK>::kSize +
                                                                   B<kBAlongK>::kSize);
};

/// A product whose k is cut into `splits` parts of `depth`. Where there is more than one, the
/// parts' products go to `parts`, one m×n matrix after another, by split and then by matrix of the
/// batch.
struct TensorProblem : GemmProblem<double> {
  std::int64_t lda, ldb;
  std::int64_t depth;
  int splits;
  double* parts;
};

template <class Tile, bool kAAlongK, bool kBAlongK>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    tensor_f64_kernel(const __grid_constant__ TensorProblem p) {
  using PanelA = typename Tile::template A<kAAlongK>;
  using PanelB = typename Tile::template B<kBAlongK>;
  constexpr int kStages = Tile::kStages, kM = Tile::kM, kN = Tile::kN;
  constexpr int kSteps = Tile::kDepth / 4;
  constexpr std::int64_t kGroup = 8;
  extern __shared__ double panels[];
  double* const panel_a = panels;
  double* const panel_b = panels + kStages * PanelA::kSize;

  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int g = lane / 4, t = lane % 4;
  const int row0 = warp / Tile::kAcross * Tile::kWarpRows;
  const int col0 = warp % Tile::kAcross * Tile::kWarpCols;
  const std::int64_t matrix_tiles = p.tiles.rows * p.tiles.cols;

  for (std::int64_t w = blockIdx.x; w < p.tiles.count() * p.splits; w += gridDim.x) {
    const std::int64_t plane = w / matrix_tiles, batch = plane / p.splits;
    const int split = int(plane % p.splits);
    // Down the columns of a group of rows of tiles: what is in work shares panels.
    const std::int64_t in_matrix = w % matrix_tiles, per_group = kGroup * p.tiles.cols;
    const std::int64_t first = in_matrix / per_group * kGroup;
    const std::int64_t height = min(kGroup, p.tiles.rows - first);
    const std::int64_t i0 = (first + in_matrix % per_group % height) * Tile::kRows;
    const std::int64_t j0 = in_matrix % per_group / height * Tile::kCols;
    const std::int64_t l0 = split * p.depth, depth = min(p.depth, p.k - l0);

    typename PanelA::Loader load_a(
        static_cast<const double*>(p.A.at(batch)) + i0 * p.a.row + l0 * p.a.col, p.lda, p.m - i0,
        depth);
    typename PanelB::Loader load_b(
        static_cast<const double*>(p.B.at(batch)) + j0 * p.b.col + l0 * p.b.row, p.ldb, p.n - j0,
        depth);
    const int steps = int(ceil_div(depth, Tile::kDepth));

#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) {
      load_a.template load<1>(panel_a + s * PanelA::kSize, 0);
      load_b.template load<1>(panel_b + s * PanelB::kSize, 0);
      __pipeline_commit();
    }
    // The copies of a stage are spread over the steps of another one, from its last but one on.
    const auto copy = [&](int stage, int part) {
      load_a.template load<kSteps>(panel_a + stage * PanelA::kSize, part);
      load_b.template load<kSteps>(panel_b + stage * PanelB::kSize, part);
    };
    copy(kStages - 1, 0);
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();

    // While a step of 4 along k is multiplied, the elements of the next one are on their way.
    double sum[kM][kN][4] = {}, x[2][kM][2], y[2][kN];
    const auto fetch = [&](int stage, int l, int to) {
      const double* const a = panel_a + stage * PanelA::kSize + PanelA::at(row0 + g, t);
      const double* const b = panel_b + stage * PanelB::kSize + PanelB::at(col0 + g, t);
#pragma unroll
      for (int i = 0; i < kM; ++i)
#pragma unroll
        for (int r = 0; r < 2; ++r) x[to][i][r] = a[PanelA::at(i * 16 + r * 8, l * 4)];
#pragma unroll
      for (int j = 0; j < kN; ++j) y[to][j] = b[PanelB::at(j * 8, l * 4)];
    };
    fetch(0, 0, 0);
    for (int step = 0, stage = 0; step < steps; ++step) {
#pragma unroll
      for (int l = 0; l < kSteps; ++l) {
        if (l == kSteps - 1) {
          __pipeline_commit();
          __pipeline_wait_prior(kStages - 2);
          __syncthreads();
          stage = stage + 1 == kStages ? 0 : stage + 1;
        }
        fetch(stage, (l + 1) % kSteps, (l + 1) % 2);
        copy(stage == 0 ? kStages - 1 : stage - 1, (l + 1) % kSteps);
#pragma unroll
        for (int i = 0; i < kM; ++i)
#pragma unroll
          for (int j = 0; j < kN; ++j) multiply_tile(sum[i][j], x[l % 2][i], y[l % 2][j]);
      }
    }
    __pipeline_wait_prior(0);
    __syncthreads();  // before the next tile's copies

    const bool whole = p.splits == 1;
    double* const c = whole ? static_cast<double*>(p.C.at(batch))
                            : p.parts + (split * p.tiles.batch + batch) * p.m * p.n;
    const std::int64_t ldc = whole ? p.ldc : p.n;
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const std::int64_t row = i0 + row0 + i * 16 + r * 8 + g;
        if (row >= p.m) continue;
#pragma unroll
        for (int j = 0; j < kN; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const std::int64_t col = j0 + col0 + j * 8 + t * 2 + e;
            if (col >= p.n) continue;
            if (whole)
              store(p, sum[i][j][r * 2 + e], c + row * ldc + col);
            else
              c[row * ldc + col] = sum[i][j][r * 2 + e];
          }
      }
  }
}

}  // namespace mblas::cuda::gemm
