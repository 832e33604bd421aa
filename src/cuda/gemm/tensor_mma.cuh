// gemm of half, bfloat16, int8 and, as TF32, of float on the tensor cores of compute capability 8.0
// and later: the kernels, their tiles, and what they are made of.
//
// A block keeps a tile of C in registers and walks along k, some stages of asynchronous copies of
// 16 bytes, or of 4, ahead. An operand of 16-bit elements keeps its own major in shared memory,
// from where ldmatrix reads it plain or transposed; bytes come with k innermost. Chunks of 16 bytes
// are swizzled within their rows, so that the 8 rows that are read or written together are in
// different banks. The fragments of a step along k are read while those before are multiplied.
//
// Operands whose rows start or end between words, bytes with k outermost, and floats, as TF32, have
// tensor_mma_loose.cuh.
//
// Limit: the rate of mma.sync. A warp's 64×64 of C takes 4 KiB from shared memory a step for 65,536
// multiply-adds of 16 bits: at 1,024 of those a clock, half of what that delivers meanwhile.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/early.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/sum_rows.cuh"
#include "cuda/gemm/tensor_mma_loose.cuh"
#include "cuda/gemm/tensor_mma_problem.cuh"

namespace mblas::cuda::gemm {

/// copy_async() of 16 bytes, of whose line of the cache the rest is asked for as well.
__device__ inline void copy_lines(unsigned to, const std::byte* from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(bytes)
               : "memory");
}

/// A tile of `kOuter` rows of A, or columns of B, by `kDepth` bytes of k, of elements of `kSize`
/// bytes, copied kPiece bytes at a time. kAlongK: memory runs along k.
template <int kOuter, int kDepth, int kSize, bool kAlongK, int kThreads, int kPiece>
struct MmaPanel {
  static constexpr int kElements = kDepth / kSize;                  // along k
  static constexpr int kPitch = kAlongK ? kDepth : kOuter * kSize;  // of a row in shared memory
  static constexpr int kBytes = kOuter * kDepth;
  static_assert(kAlongK || kSize == 2, "ldmatrix transposes elements of 16 bits");
  static_assert(kPitch == 64 || kPitch % 128 == 0);

  /// What a chunk's number in row `row` is combined with, by exclusive or.
  __device__ static int swizzle(int row) { return kPitch == 64 ? row / 2 % 4 : row % 8; }

  /// Copies of the panels one after another along k. What a launch has in common is in its
  /// parameters and not in registers.
  struct Loader {
    static constexpr int kPieces = kPitch / kPiece;   // of a row
    static constexpr int kStep = kThreads / kPieces;  // rows that are loaded at once
    static constexpr int kEach = kBytes / kPitch / kStep;
    static_assert(kThreads % kPieces == 0 && kStep * kEach * kPitch == kBytes);
    // A thread's rows are swizzled alike, or by what is known of each: see load().
    static_assert(kStep % 8 == 0 || (8 % kStep == 0 && kPitch % 128 == 0));

    const std::byte* from;
    unsigned to;
    int outer_left;  // kAlongK: rows from this thread's first one on; else bytes of its piece
    int tail;        // of the last panel: kAlongK: bytes of the piece; else rows

    /// `x` is where the tile begins; beyond `outer`, and `depth_left` in the last panel, elements
    /// are zero.
    __device__ Loader(const void* x, std::int64_t ld, std::int64_t outer, int depth_left)
        : from(static_cast<const std::byte*>(x) + line() * ld * kSize + piece() * kPiece),
          to(unsigned(line() * kPitch + (piece() * kPiece ^ swizzle(line()) * 16))) {
      const int rest = int(min(outer, std::int64_t(kOuter)));
      outer_left = kAlongK ? rest - line() : bytes_of(rest);
      tail = kAlongK ? bytes_of(depth_left) : depth_left - line();
    }

    __device__ static int piece() { return int(threadIdx.x) % kPieces; }
    __device__ static int line() { return int(threadIdx.x) / kPieces; }
    /// Of this thread's piece, where a row has `elements`.
    __device__ static int bytes_of(int elements) {
      return max(0, min(elements * kSize - piece() * kPiece, kPiece));
    }

    /// Part `part` of `kParts` of a panel; the last one moves on to the next panel. `left`: panels
    /// from this one on.
    template <int kParts>
    __device__ void load(unsigned panel, int part, const MmaSteps& steps, int left) {
      static_assert(kEach % kParts == 0);
      const int along = left > 1 ? kPiece : left == 1 ? tail : 0;
      const int rows = left > 1 ? kElements : left == 1 ? tail : 0;
      const int lines = kAlongK ? (along > 0 ? outer_left : 0) : (outer_left > 0 ? rows : 0);
      // Of many pieces, what is different for each would take the registers of sums.
      const int outer = kPiece == 16 ? outer_left : late(outer_left);
      const unsigned first = kPiece == 16 ? to : unsigned(late(int(to)));
#pragma unroll
      for (int e = 0; e < kEach / kParts; ++e) {
        const int i = part * (kEach / kParts) + e;
        const int bytes =
            kAlongK ? (i * kStep < outer ? along : 0) : (i * kStep < rows ? outer : 0);
        const unsigned mixed = first ^ unsigned(i * kStep % 8 * 16);
        const unsigned at = panel + mixed + unsigned(i * kStep * kPitch);
        if constexpr (kPiece == 16)
          copy_lines(at, from, bytes);
        else
          copy_async<kPiece>(at, from, i * kStep < lines ? kPiece : 0);
        from += steps.row;
      }
      if (part == kParts - 1) from += steps.panel;
    }
    static MmaSteps steps(std::int64_t ld) {
      const std::int64_t row = kStep * ld * kSize;
      return {row, (kAlongK ? kDepth : kElements * ld * kSize) - kEach * row};
    }
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

/// kRows×kCols of C a block, kDepth bytes of k a stage; a warp has kWarpRows×kWarpCols. Operands
/// come kPiece bytes at a time, of which their rows start at multiples.
template <int kRows_, int kCols_, int kDepth_, int kWarpRows_, int kWarpCols_, int kStages_,
          int kBlocks_, int kPiece_ = 16>
struct MmaTile {
  static constexpr int kRows = kRows_, kCols = kCols_, kDepth = kDepth_, kLeastDepth = kDepth;
  static constexpr int kWarpRows = kWarpRows_, kWarpCols = kWarpCols_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_, kPiece = kPiece_;
  static constexpr int kAcross = kCols / kWarpCols, kDown = kRows / kWarpRows;
  static constexpr int kThreads = 32 * kAcross * kDown;
  static constexpr int kM = kWarpRows / 16, kN = kWarpCols / 8;
  static constexpr std::size_t kShared = std::size_t(kStages) * kDepth * (kRows + kCols);
  // Of a warp, rows that go to C together. Lanes that store them meet different banks.
  static constexpr int kSlab = 32, kSumPitch = kWarpCols + 8;
  static_assert(kShared >= kThreads / 32 * kSlab * kSumPitch * 4);

  template <int kSize, bool kAlongK>
  using A = MmaPanel<kRows, kDepth, kSize, kAlongK, kThreads, kPiece>;
  template <int kSize, bool kAlongK>
  using B = MmaPanel<kCols, kDepth, kSize, kAlongK, kThreads, kPiece>;
};

using LargeMmaTile = MmaTile<128, 256, 64, 64, 64, 4, 1>;
using SmallMmaTile = MmaTile<64, 128, 64, 32, 64, 4, 2>;
using LargeWordsTile = MmaTile<128, 128, 64, 64, 64, 4, 2, 4>;
using SmallWordsTile = MmaTile<64, 64, 64, 32, 32, 4, 4, 4>;

/// The warp's sums, to C or its part, by way of shared memory, kSlab rows at a time: rows of C are
/// written whole.
template <class In, class Tile, class Acc>
__device__ void write_sums(const MmaProblem<Acc>& p, const MmaWork<Tile>& work,
                           const Acc (&sum)[Tile::kM][Tile::kN][4], void* shared) {
  using Rows = SumRows<Acc, Tile::kSlab, Tile::kWarpCols, Tile::kSumPitch, 2>;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  Acc* const sums = static_cast<Acc*>(shared) + warp * Tile::kSlab * Tile::kSumPitch;
  const int cols = int(min(p.n - work.j0 - work.col0, std::int64_t(Tile::kWarpCols)));
#pragma unroll
  for (int slab = 0; slab < Tile::kWarpRows; slab += Tile::kSlab) {
#pragma unroll
    for (int i = 0; i < Tile::kSlab / 16; ++i)
#pragma unroll
      for (int j = 0; j < Tile::kN; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const Acc* const x = &sum[slab / 16 + i][j][r * 2];
          *reinterpret_cast<Vector<Acc, 2>*>(sums + (i * 16 + r * 8 + lane / 4) * Tile::kSumPitch +
                                             j * 8 + lane % 4 * 2) = {x[0], x[1]};
        }
    __syncwarp();
    const int row0 = work.row0 + slab;
    const int rows = int(min(p.m - work.i0 - row0, std::int64_t(Tile::kSlab)));
    to_results<In>(p, work, [&](auto* c, std::int64_t ld, Acc alpha, Acc beta, bool reads) {
#pragma unroll 1
      for (int first = lane / Rows::kLanes; first < 2; first += 32 / Rows::kLanes)
        Rows::write(sums, c + row0 * ld + work.col0, ld, first, rows, cols, alpha, beta, reads);
    });
    __syncwarp();
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
  // Warps of 32 begin at chunk 4 of 8: their fragments stay within the 8 that are swizzled.
  static_assert(Tile::kWarpRows % 32 == 0 && Tile::kWarpCols % 32 == 0 && kStages >= 3);
  extern __shared__ uint4 panels[];
  const unsigned panel_a = shared_address(panels);
  const unsigned panel_b = panel_a + kStages * PanelA::kBytes;

  const MmaWork<Tile> work(p, PanelA::kElements);
  begin_early();
  if (work.batch >= p.tiles.batch) return;
  const auto [batch, i0, j0, l0, split, steps, tail, row0, col0] = work;
  const typename PanelA::Reader read_a(row0, false);
  const typename PanelB::Reader read_b(col0, true);
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
  write_sums<In>(p, work, sum, panels);
#endif
}

template <class In, class Tile>
void run_mma_tiles(MmaProblem<Accumulator<In>> p, const CudaQueue& queue) {
  const dim3 grid = mma_grid<Tile>(p);
  const auto run = [&]<bool kAAlongK, bool kBAlongK>() {
    constexpr int kSize = int(sizeof(In));
    p.step_a = Tile::template A<kSize, kAAlongK>::Loader::steps(p.lda);
    p.step_b = Tile::template B<kSize, kBAlongK>::Loader::steps(p.ldb);
    launch_evenly(queue, tensor_mma_kernel<Tile, In, kAAlongK, kBAlongK>, grid, Tile::kThreads,
                  Tile::kShared, p);
  };
  if constexpr (sizeof(In) == 1)
    run.template operator()<true, true>();
  else if constexpr (sizeof(In) == 2)  // floats are not given to these
    with_majors(p, run);
}

template <class In>
void run_mma(const MmaProblem<Accumulator<In>>& p, const CudaQueue& queue) {
  switch (p.way) {
    case MmaWay::Large:
      return run_mma_tiles<In, LargeMmaTile>(p, queue);
    case MmaWay::Small:
      return run_mma_tiles<In, SmallMmaTile>(p, queue);
    case MmaWay::LargeWords:
      return run_mma_tiles<In, LargeWordsTile>(p, queue);
    case MmaWay::SmallWords:
      return run_mma_tiles<In, SmallWordsTile>(p, queue);
    case MmaWay::LooseSmall:
      return run_mma_loose<In, LooseMmaSmall>(p, queue);
    case MmaWay::LooseMedium:
      return run_mma_loose<In, LooseMmaMedium>(p, queue);
    case MmaWay::LooseLarge:
      return run_mma_loose<In, LooseMmaLarge>(p, queue);
  }
}

extern template void run_mma<__half>(const MmaProblem<float>&, const CudaQueue&);
extern template void run_mma<__nv_bfloat16>(const MmaProblem<float>&, const CudaQueue&);
extern template void run_mma<Tf32>(const MmaProblem<float>&, const CudaQueue&);
extern template void run_mma<std::int8_t>(const MmaProblem<std::uint32_t>&, const CudaQueue&);

}  // namespace mblas::cuda::gemm
