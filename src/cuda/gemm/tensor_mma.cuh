// gemm of half, bfloat16 and int8 on the tensor cores of compute capability 8.0 and later: the
// kernels, their tiles, and what they are made of.
//
// A block keeps a tile of C in registers and walks along k, some stages of asynchronous copies of
// 16 bytes ahead; for rows that start at multiples of 8 or 4 only, copies of so many. An operand of
// 16-bit elements keeps its own major in shared memory, from where ldmatrix reads it plain or
// transposed; bytes come with k innermost. Chunks of 16 bytes are swizzled within their rows, so
// that the 8 rows that are read or written together are in different banks. The fragments of a step
// along k are read while those before are multiplied.
//
// Operands whose rows start anywhere, and bytes with k outermost, are gathered: threads put chunks
// of 16 bytes together in registers, those of the next panel while the present one is multiplied.
//
// Limit: the rate of mma.sync. A warp's 64×64 of C takes 4 KiB from shared memory a step for 65,536
// multiply-adds of 16 bits: at 1,024 of those a clock, half of what that delivers meanwhile.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/early.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/words.cuh"

namespace mblas::cuda::gemm {

/// An asynchronous copy of `bytes` of kAccess bytes to shared memory, zeros after them; no others
/// are read.
template <int kAccess>
__device__ void copy_chunk(unsigned to, const std::byte* from, int bytes) {
  if constexpr (kAccess == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(bytes)
                 : "memory");
  else
    copy_async<kAccess>(to, from, bytes);
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
  static_assert(kAlongK || kSize == 2, "ldmatrix transposes elements of 16 bits");
  static_assert(kPitch == 64 || kPitch % 128 == 0);

  /// What a chunk's number in row `row` is combined with, by exclusive or.
  __device__ static int swizzle(int row) { return kPitch == 64 ? row / 2 % 4 : row % 8; }

  /// Copies, of kAccess bytes each, of the panels one after another along k. What a launch has in
  /// common is in its parameters and not in registers.
  template <int kAccess>
  struct Loader {
    static constexpr int kPieces = kPitch / kAccess;  // of a row
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
        : from(static_cast<const std::byte*>(x) + line() * ld * kSize + piece() * kAccess),
          to(unsigned(line() * kPitch + (piece() * kAccess / 16 ^ swizzle(line())) * 16 +
                      piece() * kAccess % 16)) {
      const int rest = int(min(outer, std::int64_t(kOuter)));
      outer_left = kAlongK ? rest - line() : bytes_of(rest);
      tail = kAlongK ? bytes_of(depth_left) : depth_left - line();
    }

    __device__ static int piece() { return int(threadIdx.x) % kPieces; }
    __device__ static int line() { return int(threadIdx.x) / kPieces; }
    /// Of this thread's piece, where a row has `elements`.
    __device__ static int bytes_of(int elements) {
      return max(0, min(elements * kSize - piece() * kAccess, kAccess));
    }

    /// Part `part` of `kParts` of a panel; the last one moves on to the next panel. `left`: panels
    /// from this one on.
    template <int kParts>
    __device__ void load(unsigned panel, int part, const MmaSteps& steps, int left) {
      static_assert(kEach % kParts == 0);
      // Small copies of nothing would take as long as others; what they would write is not used.
      if (kAccess < 16 && left <= 0) return;
      const int along = left > 1 ? kAccess : left == 1 ? tail : 0;
      const int rows = left > 1 ? kElements : left == 1 ? tail : 0;
#pragma unroll
      for (int e = 0; e < kEach / kParts; ++e) {
        const int i = part * (kEach / kParts) + e;
        const int bytes =
            kAlongK ? (i * kStep < outer_left ? along : 0) : (i * kStep < rows ? outer_left : 0);
        const unsigned mixed = to ^ unsigned(i * kStep % 8 * 16);
        copy_chunk<kAccess>(panel + mixed + unsigned(i * kStep * kPitch), from + i * steps.row,
                            bytes);
      }
      if (part == kParts - 1) from += kAlongK ? kDepth : steps.panel;
    }
    static MmaSteps steps(std::int64_t ld) { return {kStep * ld * kSize, kElements * ld * kSize}; }
  };

  /// The panels one after another along k, through registers, of an operand whose rows start
  /// anywhere. kTurned: memory does not run along k, as it does in the panel. A thread has some
  /// chunks of 16 bytes; its neighbours' are next to them in memory.
  template <bool kTurned>
  struct Gatherer {
    using Element = std::conditional_t<kSize == 2, std::uint16_t, std::uint8_t>;
    static constexpr int kCount = 16 / kSize;  // elements of a chunk
    static constexpr int kChunks = kPitch / 16, kEach = kBytes / 16 / kThreads;
    // From a chunk of a thread to its next one.
    static constexpr int kRowsApart = kTurned ? 0 : kThreads / kChunks;
    static constexpr int kChunksApart = kTurned ? kThreads / kOuter : 0;
    static constexpr unsigned kElementwise = 16;
    static_assert(kAlongK || !kTurned);
    static_assert(kThreads % kChunks == 0 && kThreads % kOuter == 0 && kRowsApart % 8 == 0);

    const std::byte *from, *begin, *end;  // the first chunk; the matrix
    int outer_left;                       // of the tile
    unsigned raw[kEach][kCount];          // of a chunk two words that it lies in, or its elements
    unsigned shift[kEach];                // Words::shift, or kElementwise

    /// Of `x`, which has `outer` by `depth` elements, those from (outer0, l0) on.
    __device__ Gatherer(const void* x, std::int64_t ld, std::int64_t outer0, std::int64_t outer,
                        std::int64_t l0, std::int64_t depth)
        : begin(static_cast<const std::byte*>(x)),
          outer_left(int(min(outer - outer0, std::int64_t(kOuter)))) {
      constexpr bool kMemoryAlongK = kAlongK && !kTurned;
      const std::int64_t i = outer0 + (kAlongK ? row() : chunk() * kCount);
      const std::int64_t l = l0 + (kAlongK ? chunk() * kCount : row());
      from = begin + (kMemoryAlongK ? i * ld + l : l * ld + i) * kSize;
      end = begin + (kMemoryAlongK ? (outer - 1) * ld + depth : (depth - 1) * ld + outer) * kSize;
    }

    /// Of the first chunk, in the panel.
    __device__ static int thread() { return int(threadIdx.x) % kThreads; }
    __device__ static int row() { return thread() / (kTurned ? 1 : kChunks) % kOuter; }
    __device__ static int chunk() { return kTurned ? thread() / kOuter : thread() % kChunks; }
    /// Elements of chunk `i`, of a panel that has `depth` of k.
    __device__ int left(int i, int depth) const {
      const int along = kAlongK ? depth : outer_left, rows = kAlongK ? outer_left : depth;
      return row() + i * kRowsApart < rows ? along - (chunk() + i * kChunksApart) * kCount : 0;
    }

    /// The next of every `turns` panels.
    __device__ void load(std::int64_t ld, int depth, int turns) {
      const std::byte* x = from;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int count = left(i, depth);
        if (!kTurned && (count <= 0 || Words::are_inside(x, begin, end))) {
          const auto [low, high, bytes] = count > 0 ? Words::read(x) : Words{};
          const unsigned both[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
          for (int w = 0; w < 8; ++w) raw[i][w] = both[w];
          shift[i] = bytes;
        } else {
          const auto* const elements = reinterpret_cast<const Element*>(x);
#pragma unroll
          for (int e = 0; e < kCount; ++e)
            raw[i][e] = e < count ? __ldg(elements + e * (kTurned ? ld : 1)) : 0u;
          shift[i] = kElementwise;
        }
        x += (kTurned ? kChunksApart * kCount : kRowsApart) * ld * kSize;
      }
      from += turns * (kAlongK && !kTurned ? kDepth : kElements * ld * kSize);
    }

    /// What was loaded, to a panel.
    __device__ void store(std::byte* panel, int depth) const {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const unsigned(&x)[kCount] = raw[i];
        uint4 v;
        if (!kTurned && shift[i] != kElementwise) {
          const Words words = {{x[0], x[1], x[2], x[3]}, {x[4], x[5], x[6], x[7]}, shift[i]};
          v = words.bytes(left(i, depth) * kSize);
        } else {
          const auto word = [&](int at) {
            unsigned sum = 0;
#pragma unroll
            for (int e = 0; e < 4 / kSize; ++e) sum |= x[at * (4 / kSize) + e] << (e * kSize * 8);
            return sum;
          };
          v = {word(0), word(1), word(2), word(3)};
        }
        const int number = (chunk() + i * kChunksApart) ^ swizzle(row());
        *reinterpret_cast<uint4*>(panel + (row() + i * kRowsApart) * kPitch + number * 16) = v;
      }
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

/// kRows×kCols of C a block, kDepth bytes of k a stage; a warp has kWarpRows×kWarpCols. kTurns:
/// groups of kThreads, each with stages of its own, that take the panels along k in turn.
template <int kRows_, int kCols_, int kDepth_, int kWarpRows_, int kWarpCols_, int kStages_,
          int kBlocks_, int kTurns_ = 1>
struct MmaTile {
  static constexpr int kRows = kRows_, kCols = kCols_, kDepth = kDepth_;
  static constexpr int kWarpRows = kWarpRows_, kWarpCols = kWarpCols_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_, kTurns = kTurns_;
  static constexpr int kAcross = kCols / kWarpCols, kDown = kRows / kWarpRows;
  static constexpr int kThreads = 32 * kAcross * kDown;
  static constexpr int kM = kWarpRows / 16, kN = kWarpCols / 8;
  static constexpr std::size_t kShared = std::size_t(kTurns) * kStages * kDepth * (kRows + kCols);
  static_assert(kWarpCols == 64, "a pair of columns for each lane on their way out");
  static_assert(kShared >= kThreads / 32 * 16 * (kWarpCols / 2 + 4) * 8, "16 rows of each warp");

  template <int kSize, bool kAlongK>
  using A = MmaPanel<kRows, kDepth, kSize, kAlongK, kThreads>;
  template <int kSize, bool kAlongK>
  using B = MmaPanel<kCols, kDepth, kSize, kAlongK, kThreads>;
};

using LargeMmaTile = MmaTile<128, 256, 64, 64, 64, 4, 1>;
using SmallMmaTile = MmaTile<64, 128, 64, 32, 64, 4, 2>;
using GatheredMmaTile = MmaTile<64, 64, 64, 16, 64, 2, 2, 2>;

/// The tile, and how operands come: the first two by copies of 16 bytes.
enum class MmaWay { Large, Small, Narrow, Gathered };

/// A product whose k is cut into `splits` parts of `depth`. Where there is more than one, the
/// parts' products go to `parts`, one m×n matrix after another, by split and then by matrix of the
/// batch.
template <class Acc>
struct MmaProblem : GemmProblem<Acc> {
  std::int64_t lda, ldb;
  MmaSteps step_a, step_b;
  std::int64_t depth;
  int splits;
  MmaWay way;
  int access;   // of narrow copies: bytes
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

/// What a block computes: a tile of a matrix, of a part of k.
template <class Tile>
struct MmaWork {
  std::int64_t batch, i0, j0, l0;
  int split, steps, tail;  // along k, and elements of the last step
  int row0, col0;          // of the warp in the tile

  template <class Acc>
  __device__ MmaWork(const MmaProblem<Acc>& p, int step) {
    constexpr unsigned kGroup = 8;
    const int warp = int(threadIdx.x) % Tile::kThreads / 32;
    row0 = warp / Tile::kAcross * Tile::kWarpRows;
    col0 = warp % Tile::kAcross * Tile::kWarpCols;
    // Down the columns of a group of rows of tiles: what is in work shares panels.
    const unsigned tile_rows = unsigned(p.tiles.rows), per_group = kGroup * unsigned(p.tiles.cols);
    const unsigned first = blockIdx.x / per_group * kGroup;
    const unsigned height = min(kGroup, tile_rows - first);
    const unsigned tile_row = first + blockIdx.x % per_group % height;
    const unsigned tile_col = blockIdx.x % per_group / height;
    i0 = std::int64_t(tile_row) * Tile::kRows;
    j0 = std::int64_t(tile_col) * Tile::kCols;

    const unsigned plane = blockIdx.z * gridDim.y + blockIdx.y;
    batch = plane / unsigned(p.splits);
    split = int(plane % unsigned(p.splits));
    l0 = split * p.depth;
    const std::int64_t depth = min(p.depth, p.k - l0);
    steps = int(ceil_div(depth, step));
    tail = int(depth - (steps - 1) * std::int64_t(step));
  }
};

/// The warp's sums, to C or its part, by way of shared memory, 16 rows of a warp at a time: rows of
/// C are written whole.
template <class In, class Tile, class Acc>
__device__ void write_sums(const MmaProblem<Acc>& p, const MmaWork<Tile>& work,
                           const Acc (&sum)[Tile::kM][Tile::kN][4], void* shared) {
  // Lanes that store together meet different banks.
  constexpr int kPitch = Tile::kWarpCols / 2 + 4;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  auto* const rows = static_cast<Vector<Acc, 2>*>(shared) + warp * 16 * kPitch;
  const std::int64_t col = work.j0 + work.col0 + lane * 2;
  const bool second = col + 1 < p.n;
  void* const c0 = p.C.at(work.batch);
  Acc* const part = p.parts + (work.split * p.tiles.batch + work.batch) * p.m * p.n;
#pragma unroll
  for (int i = 0; i < Tile::kM; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::kN; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r)
        rows[(lane / 4 + r * 8) * kPitch + j * 4 + lane % 4] = {sum[i][j][r * 2],
                                                                sum[i][j][r * 2 + 1]};
    __syncwarp();
    const std::int64_t row = work.i0 + work.row0 + i * 16;
    const int rows_left = int(min(p.m - row, std::int64_t(16)));
    if (!p.paired && p.splits == 1) {
      // Neighbours by neighbouring lanes: elements of pairs one by one are twice as many accesses.
      const auto* const from = reinterpret_cast<const Acc*>(rows) + lane;
      const std::int64_t near = work.j0 + work.col0 + lane;
#pragma unroll 1
      for (int r = 0; r < rows_left; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const std::int64_t j = near + half * 32, at = (row + r) * p.ldc + j;
          const Acc x = from[r * kPitch * 2 + half * 32];
          if (j >= p.n) continue;
          if (p.wide)
            store(p, x, static_cast<WideOut<In>*>(c0) + at);
          else if constexpr (sizeof(In) == 2)
            store(p, x, static_cast<In*>(c0) + at);
        }
      }
      __syncwarp();
      continue;
    }
    const int height = col < p.n ? rows_left : 0;
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
}

template <class Tile, class In, int kAccess, bool kAAlongK, bool kBAlongK>
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
  typename PanelA::template Loader<kAccess> load_a(
      static_cast<const In*>(p.A.at(batch)) + (kAAlongK ? i0 * p.lda + l0 : l0 * p.lda + i0), p.lda,
      p.m - i0, tail);
  typename PanelB::template Loader<kAccess> load_b(
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

/// For operands whose rows start anywhere. kAAlongK, kBAlongK: in memory; in panels bytes always
/// run along k. What limits it is how long a warp takes for the instructions that put a chunk
/// together, each of which waits for the one before: hence groups that take turns, whose sums are
/// added up at the end.
template <class In, bool kAAlongK, bool kBAlongK>
__global__ void __launch_bounds__(GatheredMmaTile::kTurns* GatheredMmaTile::kThreads,
                                  sizeof(In) == 1 ? 1 : GatheredMmaTile::kBlocks)
    tensor_mma_gather_kernel(const __grid_constant__ MmaProblem<Accumulator<In>> p) {
#if __CUDA_ARCH__ >= 800
  using Acc = Accumulator<In>;
  using Tile = GatheredMmaTile;
  constexpr int kSize = int(sizeof(In));
  using PanelA = typename Tile::template A<kSize, kAAlongK || kSize == 1>;
  using PanelB = typename Tile::template B<kSize, kBAlongK || kSize == 1>;
  constexpr int kM = Tile::kM, kN = Tile::kN, kStage = PanelA::kBytes + PanelB::kBytes;
  static_assert(Tile::kStages == 2 && kM == 1 && Tile::kAcross == 1 && Tile::kTurns == 2);
  extern __shared__ uint4 panels[];
  const MmaWork<Tile> work(p, PanelA::kElements);
  begin_early();
  if (work.batch >= p.tiles.batch) return;
  const int group = int(threadIdx.x) / Tile::kThreads;
  std::byte* const own = reinterpret_cast<std::byte*>(panels) + group * 2 * kStage;
  const typename PanelA::Reader read_a(work.row0, false);
  const typename PanelB::Reader read_b(work.col0, true);
  const std::int64_t l0 = work.l0 + group * PanelA::kElements;
  typename PanelA::template Gatherer<!kAAlongK && kSize == 1> a(p.A.at(work.batch), p.lda, work.i0,
                                                                p.m, l0, p.k);
  typename PanelB::template Gatherer<!kBAlongK && kSize == 1> b(p.B.at(work.batch), p.ldb, work.j0,
                                                                p.n, l0, p.k);

  const auto sync = [&] {  // of the group
    asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(Tile::kThreads) : "memory");
  };
  Acc sum[kM][kN][4] = {};
  int stage = 0;
#pragma unroll 1
  for (int step = group; step < work.steps + Tile::kTurns; step += Tile::kTurns, stage ^= kStage) {
    const bool loads = step < work.steps;
    const int depth = step + 1 < work.steps ? PanelA::kElements : work.tail;
    if (loads) {
      a.load(p.lda, depth, Tile::kTurns);
      b.load(p.ldb, depth, Tile::kTurns);
    }
    if (step >= Tile::kTurns) {
      const unsigned ready = shared_address(own) + unsigned(stage ^ kStage);
#pragma unroll 1  // registers
      for (int l = 0; l < Tile::kDepth / 32; ++l) {
        unsigned x[kM][4], y[kN / 2][4];
#pragma unroll
        for (int i = 0; i < kM; ++i) read_a.read(x[i], ready, i, l);
#pragma unroll
        for (int j = 0; j < kN / 2; ++j) read_b.read(y[j], ready + PanelA::kBytes, j, l);
#pragma unroll
        for (int i = 0; i < kM; ++i)
#pragma unroll
          for (int j = 0; j < kN; ++j)
            multiply_tile<In>(sum[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
      }
    }
    if (loads) {
      a.store(own + stage, depth);
      b.store(own + stage + PanelA::kBytes, depth);
      sync();
    }
  }

  // The second group's sums lie where its panels were, those of a thread kThreads apart.
  static_assert(kN * 4 * sizeof(Acc) * Tile::kThreads <= 2 * kStage);
  Acc* const others = reinterpret_cast<Acc*>(reinterpret_cast<std::byte*>(panels) + 2 * kStage) +
                      int(threadIdx.x) % Tile::kThreads;
  __syncthreads();
  if (group > 0)
#pragma unroll
    for (int e = 0; e < kN * 4; ++e) others[e * Tile::kThreads] = sum[0][e / 4][e % 4];
  __syncthreads();
  if (group > 0) return;
#pragma unroll
  for (int e = 0; e < kN * 4; ++e) sum[0][e / 4][e % 4] += others[e * Tile::kThreads];
  sync();  // rows on their way out reach into the others' place
  write_sums<In>(p, work, sum, panels);
#endif
}

/// f<kAAlongK, kBAlongK>() with what `p` says.
template <class Acc, class F>
void with_majors(const MmaProblem<Acc>& p, F&& f) {
  if (p.a_along_k)
    p.b_along_k ? f.template operator()<true, true>() : f.template operator()<true, false>();
  else
    p.b_along_k ? f.template operator()<false, true>() : f.template operator()<false, false>();
}

/// The grid of a product's tiles, which `p` gets to know.
template <class Tile, class Acc>
dim3 mma_grid(MmaProblem<Acc>& p) {
  p.tiles.rows = ceil_div(p.m, Tile::kRows);
  p.tiles.cols = ceil_div(p.n, Tile::kCols);
  const std::int64_t planes = p.tiles.batch * p.splits;
  const std::int64_t at_once = std::min(planes, kMmaPlanes);
  return {unsigned(p.tiles.rows * p.tiles.cols), unsigned(at_once),
          unsigned(ceil_div(planes, at_once))};
}

template <class In, class Tile, int kAccess>
void run_mma_tiles(MmaProblem<Accumulator<In>> p, const CudaQueue& queue) {
  const dim3 grid = mma_grid<Tile>(p);
  const auto run = [&]<bool kAAlongK, bool kBAlongK>() {
    constexpr int kSize = int(sizeof(In));
    p.step_a = Tile::template A<kSize, kAAlongK>::template Loader<kAccess>::steps(p.lda);
    p.step_b = Tile::template B<kSize, kBAlongK>::template Loader<kAccess>::steps(p.ldb);
    launch_evenly(queue, tensor_mma_kernel<Tile, In, kAccess, kAAlongK, kBAlongK>, grid,
                  Tile::kThreads, Tile::kShared, p);
  };
  if constexpr (sizeof(In) == 1)
    run.template operator()<true, true>();
  else
    with_majors(p, run);
}

template <class In>
void run_mma_gathered(MmaProblem<Accumulator<In>> p, const CudaQueue& queue) {
  using Tile = GatheredMmaTile;
  const dim3 grid = mma_grid<Tile>(p);
  with_majors(p, [&]<bool kAAlongK, bool kBAlongK>() {
    launch_evenly(queue, tensor_mma_gather_kernel<In, kAAlongK, kBAlongK>, grid,
                  Tile::kTurns * Tile::kThreads, Tile::kShared, p);
  });
}

template <class In>
void run_mma(const MmaProblem<Accumulator<In>>& p, const CudaQueue& queue) {
  switch (p.way) {
    case MmaWay::Large:
      return run_mma_tiles<In, LargeMmaTile, 16>(p, queue);
    case MmaWay::Small:
      return run_mma_tiles<In, SmallMmaTile, 16>(p, queue);
    case MmaWay::Narrow:
      return p.access == 8 ? run_mma_tiles<In, SmallMmaTile, 8>(p, queue)
                           : run_mma_tiles<In, SmallMmaTile, 4>(p, queue);
    case MmaWay::Gathered:
      return run_mma_gathered<In>(p, queue);
  }
}

extern template void run_mma<__half>(const MmaProblem<float>&, const CudaQueue&);
extern template void run_mma<__nv_bfloat16>(const MmaProblem<float>&, const CudaQueue&);
extern template void run_mma<std::int8_t>(const MmaProblem<std::uint32_t>&, const CudaQueue&);

}  // namespace mblas::cuda::gemm
