// gemm of doubles, real or complex, on the fp64 tensor cores: the kernel, its tiles, and what it is
// made of.
//
// A block keeps a tile of C in registers and walks along k. Tiles of A and B come by asynchronous
// copies of single elements, several stages ahead: 8 or 16 bytes each, so that neither an odd
// leading dimension nor an odd size changes anything, and each operand keeps its own major in
// shared memory. For small tiles pairs of doubles are copied where all lie at multiples of 16
// bytes. Rows there are lines of 128 bytes whose parts are exchanged, so that the lanes that are
// served together read different banks in either major: padded rows would do as well for reading,
// but what goes to two lines is asked for twice (complex 704×704×24: 62,000 requests to the L2
// cache, and 26,000).
//
// Limit: 128 multiply-adds a clock and multiprocessor. A warp's 64×32 of C takes 96 elements a step
// of k from shared memory for 2,048 multiply-adds: under half of what that delivers meanwhile. A
// complex product is four real ones of the same fragments.
#pragma once

#include <cuda_pipeline_primitives.h>

#include <bit>

#include "cuda/early.cuh"
#include "cuda/gemm/eight_rows.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"

namespace mblas::cuda::gemm {

/// Sums of a 16×8 tile: as multiply_tile has them.
template <class T>
struct TileSum {
  T part[4] = {};

  __device__ void add(const T (&a)[2], T b) { multiply_tile(part, a, b); }
  __device__ void add(int e, T x) { part[e] += x; }
  __device__ T at(int e) const { return part[e]; }
};
template <class T>
struct TileSum<Complex<T>> {
  T re[4] = {}, im[4] = {};

  __device__ void add(const Complex<T> (&a)[2], Complex<T> b) {
    multiply_tile(re, {a[0].re, a[1].re}, b.re);
    multiply_tile(im, {a[0].re, a[1].re}, b.im);
    multiply_tile(re, {-a[0].im, -a[1].im}, b.im);
    multiply_tile(im, {a[0].im, a[1].im}, b.re);
  }
  __device__ void add(int e, Complex<T> x) { re[e] += x.re, im[e] += x.im; }
  __device__ Complex<T> at(int e) const { return {re[e], im[e]}; }
};

/// `x`, the imaginary part's sign changed by `sign`: 0 or the bit of the sign in a high word.
__device__ inline double conjugate_by(double x, unsigned) { return x; }
__device__ inline Complex<double> conjugate_by(Complex<double> x, unsigned sign) {
  return {x.re, __hiloint2double(int(unsigned(__double2hiint(x.im)) ^ sign), __double2loint(x.im))};
}

/// A tile of `kOuter` rows of A, or columns of B, by `kDepth` of k. kAlongK: memory runs along k.
/// Copies are of kWide neighbours.
template <class T, int kOuter, int kDepth, bool kAlongK, int kThreads, int kWide>
struct Panel {
  static constexpr int kRun = kAlongK ? kDepth : kOuter;  // contiguous in memory
  static constexpr int kSize = kOuter * kDepth;
  // Lanes that are served together are four steps of k by four of the others, or, of complex
  // elements, two: so many of so many runs. In run r, element x lies at x ^ r % kRuns * kTogether.
  static constexpr int kServed = 128 / int(sizeof(T));
  static constexpr int kTogether = kAlongK || sizeof(T) == 8 ? 4 : 2, kRuns = kServed / kTogether;
  static constexpr int kCopies = kRun / kWide;      // of a run
  static constexpr int kStep = kThreads / kCopies;  // runs that are loaded at once
  static constexpr int kEach = (kAlongK ? kOuter : kDepth) / kStep;
  static_assert(kThreads % kCopies == 0 && kStep * kEach * kRun == kOuter * kDepth);
  static_assert(kWide * sizeof(T) <= 16 && kTogether % kWide == 0);
  static_assert(std::has_single_bit(unsigned(kRun)) && kRun % kServed == 0);
  static_assert(std::has_single_bit(unsigned(kStep)));

  /// A lane's elements in a panel: at `outer` + g and 4 turn + t, and others relative to that.
  struct Reader {
    int first;

    /// `outer` is a multiple of 16.
    __device__ Reader(int outer, int turn, int g, int t)
        : first(kAlongK ? (outer + g) * kRun + ((4 * turn + t) ^ g % kRuns * kTogether)
                        : (4 * turn + t) * kRun + ((outer + g) ^ t * kTogether)) {}
    /// `outer` a multiple of 8, `depth` one of 4 such that no bit of it is one of 4 turn's.
    __device__ int at(int outer, int depth) const {
      return kAlongK ? (first ^ depth) + outer * kRun
                     : (first ^ (outer & 8)) + (outer & ~8) + depth * kRun;
    }
  };

  /// Copies of the panels one after another along k. Without branches, which would keep the
  /// compiler from moving them between the products: what is not there is a copy of no bytes.
  struct Loader {
    static constexpr int kBytes = kWide * int(sizeof(T));

    const T* from;
    std::int64_t step;    // between two runs of a thread
    std::int64_t next;    // between two steps along k
    int runs;             // of this thread that are inside
    int panels;           // that are left
    int inside = kBytes;  // bytes of its place in a run, where those end with the operand

    /// `x` is where the tile begins, `outer` > 0 what there is of it, `count` panels.
    __device__ Loader(const T* x, std::int64_t ld, std::int64_t outer, int count)
        : from(x + line() * ld + place()), step(kStep * ld), next(kAlongK ? 1 : ld), panels(count) {
      const int size = int(min(outer, std::int64_t(kOuter)));
      runs = kAlongK ? max(size - line() + kStep - 1, 0) / kStep : place() < size ? kEach : 0;
      if constexpr (kWide > 1 && !kAlongK) inside = bytes_of(size);
    }

    __device__ static int place() { return int(threadIdx.x) % kCopies * kWide; }
    __device__ static int line() { return int(threadIdx.x) / kCopies; }
    /// Where the thread's element of its e-th run goes.
    __device__ static int to(int e) {
      const int first = line() * kRun + (place() ^ line() % kRuns * kTogether);
      return (first ^ e * kStep % kRuns * kTogether) + e * kStep * kRun;
    }
    /// Of the thread's place in a run of so many elements.
    __device__ static int bytes_of(int run) {
      return min(max(run - place(), 0), kWide) * int(sizeof(T));
    }

    /// The first panel, of which `depth` steps of k exist; the others are zero.
    __device__ void first(T* panel, int depth) {
      const T* p = from;
      const int along = kAlongK ? bytes_of(depth) : inside;
#pragma unroll
      for (int e = 0; e < kEach; ++e, p += step)
        copy_async<kBytes>(shared_address(panel + to(e)), p,
                           e < runs && (kAlongK || line() + e * kStep < depth) ? along : 0);
      from += depth * next;
      --panels;
    }

    /// Part `part` of `kParts` of a panel; the last one moves on to the next panel.
    template <int kParts>
    __device__ void load(T* panel, int part) {
      constexpr int kCount = (kEach + kParts - 1) / kParts;
      const T* p = from + part * kCount * step;
      const int there = panels > 0 ? runs : 0;
#pragma unroll
      for (int i = 0; i < kCount; ++i, p += step) {
        const int e = part * kCount + i;
        if (e < kEach)
          copy_async<kBytes>(shared_address(panel + to(e)), p,
                             (kAlongK ? e : 0) < there ? inside : 0);
      }
      if (part == kParts - 1) {
        from += kDepth * next;
        --panels;
      }
    }
  };
};

/// kRows×kCols of C a block, kDepth of k a stage; a warp has kWarpRows×kWarpCols, and of every
/// kTurns steps of 4 along k one: with several there are as many warps more to hide each other's
/// waiting. Each turn has sums of a part of k: it finishes a share of their 8×8 parts and leaves
/// the others'.
template <class T, int kRows_, int kCols_, int kDepth_, int kWarpRows_, int kWarpCols_,
          int kStages_, int kBlocks_, int kTurns_ = 1>
struct TensorTile {
  using Element = T;
  static constexpr int kRows = kRows_, kCols = kCols_, kDepth = kDepth_;
  static constexpr int kWarpRows = kWarpRows_, kWarpCols = kWarpCols_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_, kTurns = kTurns_;
  static constexpr int kAcross = kCols / kWarpCols, kDown = kRows / kWarpRows;
  static constexpr int kWarps = kAcross * kDown;  // of a turn
  static constexpr int kThreads = 32 * kWarps * kTurns;
  static constexpr int kM = kWarpRows / 16, kN = kWarpCols / 8;
  static constexpr int kParts = 2 * kM * kN;      // of a warp, numbered row by row
  static constexpr int kShare = kParts / kTurns;  // of them, which a turn finishes
  // Of them side by side on their way to C: as many as there are registers for.
  static constexpr int kMostRun = sizeof(T) == 8 ? 4 : kM * kN > 4 ? 1 : 2;
  static constexpr int kRun = std::min({kN, kShare, kMostRun});
  using Rows = EightRows<T, 8 * kRun>;
  static_assert(kShare * kTurns == kParts && kN % kRun == 0 && kShare % kRun == 0);
  static_assert(kWarpRows % 16 == 0 && kWarpCols % 16 == 0 && kStages >= 2);
  static_assert(kDepth % (8 * kTurns) == 0);  // what is multiplied and what comes take turns

  static constexpr int kExchanged = (kTurns - 1) * kRows * kCols;  // sums, by the turns

  /// Where few blocks have a multiprocessor each, copies of 8 bytes take longer than the products.
  static constexpr bool kWidens = sizeof(T) == 8 && kRows * kCols <= 64 * 32;

  template <bool kAlongK, int kWide = 1>
  using A = Panel<T, kRows, kDepth, kAlongK, kThreads, kWide>;
  template <bool kAlongK, int kWide = 1>
  using B = Panel<T, kCols, kDepth, kAlongK, kThreads, kWide>;
  template <bool kAAlongK, bool kBAlongK>
  static constexpr std::size_t kShared =
      sizeof(T) * std::max({kStages * (A<kAAlongK>::kSize + B<kBAlongK>::kSize), kExchanged,
                            kThreads / 32 * Rows::kSize});
};

/// A product whose k is cut into `splits` parts of `depth`. Where there is more than one, the
/// parts' products go to `parts`, one m×n matrix after another, by split and then by matrix of the
/// batch.
template <class T>
struct TensorProblem : GemmProblem<T> {
  std::int64_t lda, ldb;
  std::int64_t depth;
  int splits;
  bool vectors_c;  ///< elements of C lie at multiples of their size
  T* parts;
  const unsigned* where = nullptr;  ///< on the device: nothing is done where that is 0
};

/// What of a tile is a thread's.
template <class Tile>
struct TileShare {
  int thread;

  __device__ int g() const { return thread % 32 / 4; }
  __device__ int t() const { return thread % 4; }
  __device__ int warp() const { return thread / 32 % Tile::kWarps; }  // of its turn
  __device__ int turn() const { return Tile::kTurns == 1 ? 0 : thread / 32 / Tile::kWarps; }
  __device__ int row() const { return warp() / Tile::kAcross * Tile::kWarpRows; }
  __device__ int col() const { return warp() % Tile::kAcross * Tile::kWarpCols; }
};

/// kWide: elements of a copy.
template <class Tile, bool kAAlongK, bool kBAlongK, int kWide>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    tensor_f64_kernel(const __grid_constant__ TensorProblem<typename Tile::Element> p) {
  using T = typename Tile::Element;
  using PanelA = typename Tile::template A<kAAlongK, kWide>;
  using PanelB = typename Tile::template B<kBAlongK, kWide>;
  constexpr int kStages = Tile::kStages, kM = Tile::kM, kN = Tile::kN;
  constexpr int kTurns = Tile::kTurns, kSteps = Tile::kDepth / 4 / kTurns;
  constexpr std::int64_t kGroup = 8;
  extern __shared__ __align__(16) unsigned char panels[];
  T* const panel_a = reinterpret_cast<T*>(panels);
  T* const panel_b = panel_a + kStages * PanelA::kSize;
  const unsigned sign_a = p.conjugate_a ? 0x80000000u : 0, sign_b = p.conjugate_b ? 0x80000000u : 0;

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

    const int steps = int(ceil_div(depth, Tile::kDepth));
    begin_early();  // behind what can be found out before; for later tiles it is over
    if (p.where && *p.where == 0) return;
    typename PanelA::Loader load_a(
        static_cast<const T*>(p.A.at(batch)) + i0 * p.a.row + l0 * p.a.col, p.lda, p.m - i0, steps);
    typename PanelB::Loader load_b(
        static_cast<const T*>(p.B.at(batch)) + j0 * p.b.col + l0 * p.b.row, p.ldb, p.n - j0, steps);

    // The first step takes what is more than whole steps, so that no other has to look.
    const int odd = int(depth - std::int64_t(max(steps - 1, 0)) * Tile::kDepth);
    load_a.first(panel_a, odd);
    load_b.first(panel_b, odd);
    __pipeline_commit();
#pragma unroll
    for (int s = 1; s < kStages - 1; ++s) {
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
    TileSum<T> sum[kM][kN];
    T x[2][kM][2], y[2][kN];
    const TileShare<Tile> reader{int(threadIdx.x)};
    const typename PanelA::Reader read_a(reader.row(), reader.turn(), reader.g(), reader.t());
    const typename PanelB::Reader read_b(reader.col(), reader.turn(), reader.g(), reader.t());
    const auto fetch = [&](int stage, int l, int to) {
      const T* const a = panel_a + stage * PanelA::kSize;
      const T* const b = panel_b + stage * PanelB::kSize;
#pragma unroll
      for (int i = 0; i < kM; ++i)
#pragma unroll
        for (int r = 0; r < 2; ++r)
          x[to][i][r] =
              conjugate_by(load_element(a + read_a.at(i * 16 + r * 8, l * kTurns * 4)), sign_a);
#pragma unroll
      for (int j = 0; j < kN; ++j)
        y[to][j] = conjugate_by(load_element(b + read_b.at(j * 8, l * kTurns * 4)), sign_b);
    };
    // Warps outside of C only copy; with turns the branch takes what it saves.
    const auto take_steps = [&]<bool kMultiplies>() {
      if constexpr (kMultiplies) fetch(0, 0, 0);
      for (int step = 0, stage = 0; step < steps; ++step) {
#pragma unroll
        for (int l = 0; l < kSteps; ++l) {
          if (l == kSteps - 1) {
            __pipeline_commit();
            __pipeline_wait_prior(kStages - 2);
            __syncthreads();
            stage = stage + 1 == kStages ? 0 : stage + 1;
          }
          if constexpr (kMultiplies) fetch(stage, (l + 1) % kSteps, (l + 1) % 2);
          copy(stage == 0 ? kStages - 1 : stage - 1, (l + 1) % kSteps);
          if constexpr (kMultiplies)
#pragma unroll
            for (int i = 0; i < kM; ++i)
#pragma unroll
              for (int j = 0; j < kN; ++j) sum[i][j].add(x[l % 2][i], y[l % 2][j]);
        }
      }
    };
    if (kTurns > 1 || (p.m - i0 > reader.row() && p.n - j0 > reader.col()))
      take_steps.template operator()<true>();
    else
      take_steps.template operator()<false>();
    __pipeline_commit();  // copies of no bytes, which write zeros all the same
    __pipeline_wait_prior(0);
    __syncthreads();  // before what writes to the panels next

    // Asked for anew: the loop along k leaves no registers.
    const TileShare<Tile> share{thread_now()};
    const int lane = share.thread % 32, warp = share.warp(), turn = share.turn();
    const int g = share.g(), t = share.t(), row0 = share.row(), col0 = share.col();
    constexpr int kShare = Tile::kShare;
    const auto is_mine = [&](int part) { return kTurns == 1 || part / kShare == turn; };
    const auto sum_of = [&](int part) -> auto& { return sum[part / (2 * kN)][part % kN]; };
    const auto row_of_part = [](int part) { return part / kN * 8; };
    const auto col_of_part = [](int part) { return part % kN * 8; };
    if constexpr (kTurns > 1) {
      constexpr int kLanes = 32 * Tile::kWarps;
      // Of part `part` by turn `from`, which does not finish it.
      const auto left_at = [&](int part, int from, int e) {
        const int to = part / kShare, place = to * (kTurns - 1) + from - (from > to);
        return panel_a + ((place * kShare + part % kShare) * 2 + e) * kLanes + warp * 32 + lane;
      };
#pragma unroll
      for (int part = 0; part < Tile::kParts; ++part)
        if (!is_mine(part))
#pragma unroll
          for (int e = 0; e < 2; ++e)
            *left_at(part, turn, e) = sum_of(part).at(part / kN % 2 * 2 + e);
      __syncthreads();
#pragma unroll
      for (int part = 0; part < Tile::kParts; ++part)
        if (is_mine(part))
#pragma unroll
          for (int other = 1; other < kTurns; ++other)
#pragma unroll
            for (int e = 0; e < 2; ++e)
              sum_of(part).add(part / kN % 2 * 2 + e, *left_at(part, (turn + other) % kTurns, e));
      __syncthreads();
    }

    const bool whole = p.splits == 1;
    T* const c = whole ? static_cast<T*>(p.C.at(batch))
                       : p.parts + (split * p.tiles.batch + batch) * p.m * p.n;
    const std::int64_t ldc = whole ? p.ldc : p.n;
    const int rows = int(min(p.m - i0, std::int64_t(Tile::kRows))) - row0;
    const int cols = int(min(p.n - j0, std::int64_t(Tile::kCols))) - col0;
    T* const mine = c + (i0 + row0) * ldc + j0 + col0;
    const typename Tile::Rows staged{panel_a + share.thread / 32 * Tile::Rows::kSize, lane};
#pragma unroll
    for (int part = 0; part < Tile::kParts; part += Tile::kRun)
      if (is_mine(part)) {
        const int row = row_of_part(part), col = col_of_part(part);
#pragma unroll
        for (int j = 0; j < Tile::kRun; ++j) {
          const auto& x = sum_of(part + j);
          const int r = part / kN % 2;
          staged.put(g, j * 8 + t * 2, x.at(r * 2), x.at(r * 2 + 1));
        }
        staged.store(p, mine + row * ldc + col, ldc, rows - row, cols - col, !whole,
                     p.vectors_c || !whole);
      }
    __syncthreads();  // before the next tile's copies
  }
}

}  // namespace mblas::cuda::gemm
