// gemm of half, bfloat16 and int8 on the tensor cores of compute capability 8.0 and later: the
// kernel, its tiles, and what it is made of.
//
// A block keeps a tile of C in registers and walks along k, some stages of asynchronous copies of
// 16 bytes ahead. An operand of 16-bit elements keeps its own major in shared memory, from where
// ldmatrix reads it plain or transposed; bytes come with k innermost. Chunks of 16 bytes are
// swizzled within their rows, so that the 8 rows that are read or written together are in
// different banks. The fragments of a step along k are read while those before are multiplied.
//
// Limit: the rate of mma.sync. A warp's 64×64 of C takes 4 KiB from shared memory a step for 65,536
// multiply-adds of 16 bits: at 1,024 of those a clock, half of what that delivers meanwhile.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"

namespace mblas::cuda::gemm {

/// An asynchronous copy of `bytes` of 16 bytes to shared memory, zeros after them; no others are
/// read.
__device__ inline void copy_chunk(unsigned to, const std::byte* from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(bytes)
               : "memory");
}

/// Bytes between two rows of a thread, and between two panels.
struct MmaSteps {
  std::int64_t row, panel;
};

/// A tile of `kOuter` rows of A, or columns of B, by `kDepth` bytes of k, of elements of `kSize`
/// bytes. kAlongK: memory runs along k.
template <int kOuter, int kDepth, int kSize, bool kAlongK, int kThreads>
struct MmaPanel {
  static constexpr int kElements = kDepth / kSize;                  // along k
  static constexpr int kPitch = kAlongK ? kDepth : kOuter * kSize;  // of a row in shared memory
  static constexpr int kBytes = kOuter * kDepth;
  static constexpr int kChunks = kPitch / 16;
  static constexpr int kStep = kThreads / kChunks;  // rows that are loaded at once
  static constexpr int kEach = kBytes / kPitch / kStep;
  static_assert(kAlongK || kSize == 2, "ldmatrix transposes elements of 16 bits");
  static_assert(kPitch == 64 || kPitch % 128 == 0);
  static_assert(kThreads % kChunks == 0 && kStep % 8 == 0 && kStep * kEach * kPitch == kBytes);

  /// What a chunk's number in row `row` is combined with, by exclusive or.
  __device__ static int swizzle(int row) { return kPitch == 64 ? row / 2 % 4 : row % 8; }

  /// Copies of the panels one after another along k. What a launch has in common is in its
  /// parameters and not in registers.
  struct Loader {
    const std::byte* from;
    unsigned to;
    int outer_left;  // kAlongK: rows from this thread's first one on; else bytes of its chunk
    int tail;        // of the last panel: kAlongK: bytes of the chunk; else rows

    /// `x` is where the tile begins; beyond `outer`, and `depth_left` in the last panel, elements
    /// are zero.
    __device__ Loader(const void* x, std::int64_t ld, std::int64_t outer, int depth_left)
        : from(static_cast<const std::byte*>(x) + line() * ld * kSize + chunk() * 16),
          to(unsigned(line() * kPitch + (chunk() ^ swizzle(line())) * 16)) {
      const int rest = int(min(outer, std::int64_t(kOuter)));
      outer_left = kAlongK ? rest - line() : bytes_of(rest);
      tail = kAlongK ? bytes_of(depth_left) : depth_left - line();
    }

    __device__ static int chunk() { return int(threadIdx.x) % kChunks; }
    __device__ static int line() { return int(threadIdx.x) / kChunks; }
    /// Of this thread's chunk, where a row has `elements`.
    __device__ static int bytes_of(int elements) {
      return max(0, min(elements * kSize - chunk() * 16, 16));
    }

    /// Part `part` of `kParts` of a panel; the last one moves on to the next panel. `left`: panels
    /// from this one on.
    template <int kParts>
    __device__ void load(unsigned panel, int part, const MmaSteps& steps, int left) {
      static_assert(kEach % kParts == 0);
      const int along = left > 1 ? 16 : left == 1 ? tail : 0;
      const int rows = left > 1 ? kElements : left == 1 ? tail : 0;
#pragma unroll
      for (int e = 0; e < kEach / kParts; ++e) {
        const int i = part * (kEach / kParts) + e;
        const int bytes =
            kAlongK ? (i * kStep < outer_left ? along : 0) : (i * kStep < rows ? outer_left : 0);
        copy_chunk(panel + to + unsigned(i * kStep * kPitch), from + i * steps.row, bytes);
      }
      if (part == kParts - 1) from += kAlongK ? kDepth : steps.panel;
    }
    static MmaSteps steps(std::int64_t ld) { return {kStep * ld * kSize, kElements * ld * kSize}; }
  };

  /// The fragments of 16 of the outer by 32 bytes of k, from element `outer` on of a panel.
  struct Reader {
    unsigned base;
    int mixed;  // the first chunk's number, swizzled

    /// kMatricesAlong: the second of the four matrices is the next one along k; else along the
    /// outer.
    __device__ Reader(int outer, bool second_along_k) {
      const int lane = int(threadIdx.x) % 32;
      const int near = lane / 8 % 2, far = lane / 16;
      const int along_k = second_along_k ? near : far, along_outer = second_along_k ? far : near;
      const int row = lane % 8 + 8 * (kAlongK ? along_outer : along_k);
      const int start = kAlongK ? 0 : outer / 8;
      base = unsigned((kAlongK ? outer + row : row) * kPitch + start / 8 * 128);
      mixed = (start % 8 + (kAlongK ? along_k : along_outer)) ^ swizzle(row);
    }

    /// Fragment `i` at step `l` along k.
    __device__ void read(unsigned (&x)[4], unsigned panel, int i, int l) const {
      if constexpr (kAlongK)
        load_matrices<false>(x, panel + base + unsigned(i * 16 * kPitch + (mixed ^ (2 * l)) * 16));
      else
        load_matrices<true>(
            x, panel + base + unsigned(l * 16 * kPitch + i / 4 * 128 + (mixed ^ (i % 4 * 2)) * 16));
    }
  };
};

/// kRows×kCols of C a block, kDepth bytes of k a stage; a warp has kWarpRows×kWarpCols.
template <int kRows_, int kCols_, int kDepth_, int kWarpRows_, int kWarpCols_, int kStages_,
          int kBlocks_>
struct MmaTile {
  static constexpr int kRows = kRows_, kCols = kCols_, kDepth = kDepth_;
  static constexpr int kWarpRows = kWarpRows_, kWarpCols = kWarpCols_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kAcross = kCols / kWarpCols, kDown = kRows / kWarpRows;
  static constexpr int kThreads = 32 * kAcross * kDown;
  static constexpr int kM = kWarpRows / 16, kN = kWarpCols / 8;
  static constexpr std::size_t kShared = std::size_t(kStages) * kDepth * (kRows + kCols);
  static_assert(kWarpCols == 64, "a pair of columns for each lane on their way out");
  static_assert(kShared >= kThreads / 32 * 16 * (kWarpCols / 2 + 4) * 8, "16 rows of each warp");
  // Warps of 32 begin at chunk 4 of 8: their fragments stay within the 8 that are swizzled.
  static_assert(kWarpRows % 32 == 0 && kWarpCols % 32 == 0 && kStages >= 3);

  template <int kSize, bool kAlongK>
  using A = MmaPanel<kRows, kDepth, kSize, kAlongK, kThreads>;
  template <int kSize, bool kAlongK>
  using B = MmaPanel<kCols, kDepth, kSize, kAlongK, kThreads>;
};

using LargeMmaTile = MmaTile<128, 256, 64, 64, 64, 4, 1>;
using SmallMmaTile = MmaTile<64, 128, 64, 32, 64, 4, 2>;

/// A product whose k is cut into `splits` parts of `depth`. Where there is more than one, the
/// parts' products go to `parts`, one m×n matrix after another, by split and then by matrix of the
/// batch. The operands' rows start at multiples of 16 bytes.
template <class Acc>
struct MmaProblem : GemmProblem<Acc> {
  std::int64_t lda, ldb;
  MmaSteps step_a, step_b;
  std::int64_t depth;
  int splits;
  bool small;   // which tile
  bool wide;    // C is WideOut
  bool paired;  // neighbours of C may be accessed together
  bool a_along_k, b_along_k;
  Acc* parts;
};

/// Planes of a grid are matrices of the batch times parts of k: so many in each of two dimensions.
constexpr std::int64_t kMmaPlanes = 65535;

/// C has this type, or that of A and B.
template <class In>
using WideOut = std::conditional_t<std::is_same_v<In, std::int8_t>, std::int32_t, float>;

/// The second one is stored only if it is `inside`.
template <class Out, class Acc>
__device__ void store_pair(const MmaProblem<Acc>& p, const Vector<Acc, 2>& sums, Out* c,
                           bool inside) {
  if (p.paired && inside) {
    Vector<Out, 2> pair;
    if (p.read_c) pair = *reinterpret_cast<const Vector<Out, 2>*>(c);
    store(p, sums.e[0], &pair.e[0]);
    store(p, sums.e[1], &pair.e[1]);
    *reinterpret_cast<Vector<Out, 2>*>(c) = pair;
  } else {
    store(p, sums.e[0], c);
    if (inside) store(p, sums.e[1], c + 1);
  }
}

template <class Tile, class In, bool kAAlongK, bool kBAlongK>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    tensor_mma_kernel(const __grid_constant__ MmaProblem<Accumulator<In>> p) {
#if __CUDA_ARCH__ >= 800
  using Acc = Accumulator<In>;
  constexpr int kSize = int(sizeof(In));
  using PanelA = typename Tile::template A<kSize, kAAlongK>;
  using PanelB = typename Tile::template B<kSize, kBAlongK>;
  constexpr int kStages = Tile::kStages, kM = Tile::kM, kN = Tile::kN;
  constexpr int kSteps = Tile::kDepth / 32;
  constexpr unsigned kGroup = 8;
  // Of a warp's rows on their way out: lanes that store together meet different banks.
  constexpr int kPitch = Tile::kWarpCols / 2 + 4;
  extern __shared__ uint4 panels[];
  const unsigned panel_a = shared_address(panels);
  const unsigned panel_b = panel_a + kStages * PanelA::kBytes;

  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int row0 = warp / Tile::kAcross * Tile::kWarpRows;
  const int col0 = warp % Tile::kAcross * Tile::kWarpCols;
  const typename PanelA::Reader read_a(row0, false);
  const typename PanelB::Reader read_b(col0, true);
  // Down the columns of a group of rows of tiles: what is in work shares panels.
  const unsigned tile_rows = unsigned(p.tiles.rows), per_group = kGroup * unsigned(p.tiles.cols);
  const unsigned first = blockIdx.x / per_group * kGroup;
  const unsigned height = min(kGroup, tile_rows - first);
  const unsigned tile_row = first + blockIdx.x % per_group % height;
  const unsigned tile_col = blockIdx.x % per_group / height;

  const unsigned plane = blockIdx.z * gridDim.y + blockIdx.y;
  const std::int64_t batch = plane / unsigned(p.splits);
  const int split = int(plane % unsigned(p.splits));
  if (batch >= p.tiles.batch) return;

  const std::int64_t i0 = std::int64_t(tile_row) * Tile::kRows;
  const std::int64_t j0 = std::int64_t(tile_col) * Tile::kCols;
  const std::int64_t l0 = split * p.depth, depth = min(p.depth, p.k - l0);
  const int steps = int(ceil_div(depth, PanelA::kElements));
  const int tail = int(depth - (steps - 1) * std::int64_t(PanelA::kElements));
  typename PanelA::Loader load_a(
      static_cast<const In*>(p.A.at(batch)) + (kAAlongK ? i0 * p.lda + l0 : l0 * p.lda + i0), p.lda,
      p.m - i0, tail);
  typename PanelB::Loader load_b(
      static_cast<const In*>(p.B.at(batch)) + (kBAlongK ? j0 * p.ldb + l0 : l0 * p.ldb + j0), p.ldb,
      p.n - j0, tail);

  int left = steps;  // panels to be loaded
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s, --left) {
    load_a.template load<1>(panel_a + s * PanelA::kBytes, 0, p.step_a, left);
    load_b.template load<1>(panel_b + s * PanelB::kBytes, 0, p.step_b, left);
    __pipeline_commit();
  }
  // The copies of a stage are spread over the steps of another one, from its last but one on.
  const auto copy = [&](int stage, int part) {
    load_a.template load<kSteps>(panel_a + stage * PanelA::kBytes, part, p.step_a, left);
    load_b.template load<kSteps>(panel_b + stage * PanelB::kBytes, part, p.step_b, left);
    if (part == kSteps - 1) --left;
  };
  copy(kStages - 1, 0);
  __pipeline_wait_prior(kStages - 2);
  __syncthreads();

  Acc sum[kM][kN][4] = {};
  unsigned x[2][kM][4], y[2][kN / 2][4];
  const auto fetch = [&](int stage, int l, int to) {
#pragma unroll
    for (int i = 0; i < kM; ++i) read_a.read(x[to][i], panel_a + stage * PanelA::kBytes, i, l);
#pragma unroll
    for (int j = 0; j < kN / 2; ++j) read_b.read(y[to][j], panel_b + stage * PanelB::kBytes, j, l);
  };
  fetch(0, 0, 0);
#pragma unroll 1
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
        for (int j = 0; j < kN; ++j)
          multiply_tile<In>(sum[i][j], x[l % 2][i], y[l % 2][j / 2][j % 2 * 2],
                            y[l % 2][j / 2][j % 2 * 2 + 1]);
    }
  }
  __pipeline_commit();  // copies of no bytes, which write zeros all the same
  __pipeline_wait_prior(0);
  __syncthreads();

  // By way of shared memory, 16 rows of a warp at a time: rows of C are written whole.
  auto* const rows = reinterpret_cast<Vector<Acc, 2>*>(panels) + warp * 16 * kPitch;
  const std::int64_t col = j0 + col0 + lane * 2;
  const bool second = col + 1 < p.n;
  void* const c0 = p.C.at(batch);
  Acc* const part = p.parts + (split * p.tiles.batch + batch) * p.m * p.n;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r)
        rows[(lane / 4 + r * 8) * kPitch + j * 4 + lane % 4] = {sum[i][j][r * 2],
                                                                sum[i][j][r * 2 + 1]};
    __syncwarp();
    const std::int64_t row = i0 + row0 + i * 16;
    const int height = col < p.n ? int(min(p.m - row, std::int64_t(16))) : 0;
#pragma unroll 1
    for (int r = 0; r < height; ++r) {
      const Vector<Acc, 2> sums = rows[r * kPitch + lane];
      const std::int64_t at = (row + r) * p.ldc + col;
      if (p.splits > 1) {
        Acc* const c = part + (row + r) * p.n + col;
        c[0] = sums.e[0];
        if (second) c[1] = sums.e[1];
      } else if (p.wide) {
        store_pair(p, sums, static_cast<WideOut<In>*>(c0) + at, second);
      } else if constexpr (sizeof(In) == 2) {
        store_pair(p, sums, static_cast<In*>(c0) + at, second);
      }
    }
    __syncwarp();
  }
#endif
}

template <class In, class Tile>
void run_mma_tiles(MmaProblem<Accumulator<In>> p, const CudaQueue& queue) {
  p.tiles.rows = ceil_div(p.m, Tile::kRows);
  p.tiles.cols = ceil_div(p.n, Tile::kCols);
  const std::int64_t planes = p.tiles.batch * p.splits;
  const std::int64_t at_once = std::min(planes, kMmaPlanes);
  const dim3 grid(unsigned(p.tiles.rows * p.tiles.cols), unsigned(at_once),
                  unsigned(ceil_div(planes, at_once)));
  const auto run = [&]<bool kAAlongK, bool kBAlongK>() {
    constexpr int kSize = int(sizeof(In));
    p.step_a = Tile::template A<kSize, kAAlongK>::Loader::steps(p.lda);
    p.step_b = Tile::template B<kSize, kBAlongK>::Loader::steps(p.ldb);
    launch_grid(queue, tensor_mma_kernel<Tile, In, kAAlongK, kBAlongK>, grid, Tile::kThreads,
                Tile::kShared, p);
  };
  if constexpr (sizeof(In) == 1) {
    run.template operator()<true, true>();
  } else {
    if (p.a_along_k && p.b_along_k)
      run.template operator()<true, true>();
    else if (p.a_along_k)
      run.template operator()<true, false>();
    else if (p.b_along_k)
      run.template operator()<false, true>();
    else
      run.template operator()<false, false>();
  }
}

template <class In>
void run_mma(const MmaProblem<Accumulator<In>>& p, const CudaQueue& queue) {
  if (p.small)
    run_mma_tiles<In, SmallMmaTile>(p, queue);
  else
    run_mma_tiles<In, LargeMmaTile>(p, queue);
}

extern template void run_mma<__half>(const MmaProblem<float>&, const CudaQueue&);
extern template void run_mma<__nv_bfloat16>(const MmaProblem<float>&, const CudaQueue&);
extern template void run_mma<std::int8_t>(const MmaProblem<std::uint32_t>&, const CudaQueue&);

}  // namespace mblas::cuda::gemm
