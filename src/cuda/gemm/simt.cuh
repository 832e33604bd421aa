// The tile kernel behind `simt`: a block computes a tile of C, each thread a micro-tile of it in
// registers, from panels of op(A) and op(B) that lie in shared memory by depth. Asynchronous copies
// fill panels kStages - 1 steps ahead; the operands of the next depth are read from shared memory
// while the present depth's are multiplied.
//
// An operand that is contiguous along the tile is copied 16 bytes at a time, or, where its rows
// start anywhere, through registers; one that is contiguous along the depth element by element,
// which transposes it on the way: four elements of eight rows of a panel whose rows are 16 bytes
// longer than a multiple of 64 lie in 32 different banks. So all pairs of operations multiply from
// the same panels.
//
// A complex product is four multiply-adds of the same four numbers. Elements of 8 bytes are copied
// one by one in either major.
//
// What it measured on an H200 at 128x256: 78% of the multiply-adds that the clock allows, of which
// the issue of other instructions takes 10% and registers' ports another 10%. Half as long a loop
// (two rounds of eight depths, or panels of eight) was slower, and so were copies in one burst.
#pragma once

#include <algorithm>
#include <type_traits>

#include "cuda/early.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/groups.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/pairs.cuh"
#include "cuda/gemm/products.cuh"
#include "cuda/gemm/schedule.hpp"
#include "cuda/gemm/simt_tiles.hpp"

namespace mblas::cuda::simt {

/// The shape of a block's work. Lanes lie kLanesM x (32 / kLanesM) on a warp's part of the tile.
template <int kTileM_, int kTileN_, int kTileK_, int kWarpM_, int kWarpN_, int kLanesM_,
          int kStages_, int kBlocks_, int kRegisters_ = 0>
struct Tile {
  static constexpr int kTileM = kTileM_, kTileN = kTileN_, kTileK = kTileK_;
  static constexpr int kWarpM = kWarpM_, kWarpN = kWarpN_;
  static constexpr int kLanesM = kLanesM_, kLanesN = 32 / kLanesM_;
  static constexpr int kMicroM = kWarpM / kLanesM, kMicroN = kWarpN / kLanesN;
  static constexpr int kWarpsN = kTileN / kWarpN;
  static constexpr int kThreads = 32 * (kTileM / kWarpM) * kWarpsN;
  static constexpr int kStages = kStages_;
  static constexpr int kBlocks = kBlocks_;                        ///< on a multiprocessor at a time
  static constexpr int kRegisters = kRegisters_;                  ///< at most, or 0: as many as fit
  static constexpr bool kClusters = kTileM * kTileN <= 64 * 128;  ///< may add up slices
  static_assert(kTileM % kWarpM == 0 && kTileN % kWarpN == 0 && 32 % kLanesM == 0);
};

/// Where lanes lie: row by row, or in pairs where more than 5/8 of the time in which they multiply
/// would be shared memory's otherwise.
template <class S, class T>
struct Lanes {
  static constexpr int kVec = kVector<T>, kAcross = S::kLanesN;
  static constexpr int kProducts = S::kMicroM * S::kMicroN * (is_complex_v<T> ? 4 : 1);
  static constexpr int kReads = 2 * S::kMicroM / kVec + 4 * S::kMicroN / kVec;  // cycles of a warp
  static constexpr int kSchedulers = 4;
  static constexpr bool kPaired = 8 * kSchedulers * kReads > 5 * kProducts;

  __device__ static int row(int lane) {
    return kPaired ? pairs::row(lane, kAcross) : lane / kAcross;
  }
  __device__ static int col(int lane) {
    return kPaired ? pairs::col(lane, kAcross) : lane % kAcross;
  }
  /// The lane at `place`, counted row by row.
  __device__ static int at(int place) { return kPaired ? pairs::thread_at(place, kAcross) : place; }
};

/// How an operand is copied to shared memory.
enum class Copy {
  Vectors,   ///< 16 bytes at a time, or a complex element, contiguous along the tile
  Elements,  ///< of float: contiguous along the tile, at any address
  Turned,    ///< element by element, contiguous along the depth
};

/// A panel's rows in elements.
template <class T, int kTile>
inline constexpr int kPitch = kTile + kVector<T>;

/// A thread's share of the copies of one operand. A panel takes kUnits units of copies, each from
/// one place in global memory; units must be asked for in order. Threads whose place is outside the
/// operand copy from inside it, to where no result depends on them.
template <Copy kCopy, class T, int kTile, int kDepth, int kThreads, int kStages>
struct Loader;

/// What asynchronous copies need not do: once they are asked for they arrive by themselves.
struct Asynchronous {
  __device__ void land(unsigned /*panels*/, unsigned /*stage_bytes*/, std::int64_t /*next*/,
                       int /*steps*/) {}
};

template <class T, int kTile, int kDepth, int kThreads, int kStages>
struct Loader<Copy::Vectors, T, kTile, kDepth, kThreads, kStages> : Asynchronous {
  static constexpr int kWidth = is_complex_v<T> ? 1 : kVector<T>;  // elements of a copy
  static constexpr int kBytes = kWidth * int(sizeof(T)), kAcross = kTile / kWidth;
  static constexpr int kStep = kThreads / kAcross;  // along the depth
  static constexpr int kUnits = kStep < kDepth ? kDepth / kStep : 1;
  static_assert(kThreads % kAcross == 0 && (kDepth % kStep == 0 || kStep % kDepth == 0));
  static_assert(kWidth > 1 || kStep <= kDepth);

  const T *base, *at;
  std::int64_t step;
  unsigned offset, to;
  int bytes, depth;

  __device__ Loader(const T* x, std::int64_t /*outer*/, std::int64_t inner, int size, int thread) {
    const int i = thread % kAcross * kWidth;
    depth = thread / kAcross;
    bytes = min(max(size - i, 0) * int(sizeof(T)), kBytes);
    base = x + (bytes > 0 ? i : 0) + depth * inner;
    step = kStep * inner;
    offset = unsigned((depth * kPitch<T, kTile> + i) * sizeof(T));
  }
  __device__ void first(unsigned panel, int left) {
    begin(panel);
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const bool inside = depth + u * kStep < left;
      if (kStep <= kDepth || depth < kDepth)
        copy_async<kBytes>(to, inside ? at : base, inside ? bytes : 0);
      next();
    }
  }
  __device__ void fill(int /*stage*/, unsigned panel) {
    begin(panel);
#pragma unroll
    for (int u = 0; u < kUnits; ++u) unit(true);
  }
  __device__ void begin(unsigned panel) { at = base, to = panel + offset; }
  __device__ void unit(bool /*more*/) {
    if constexpr (kWidth == 1)
      copy_async<kBytes>(to, at);
    else if (kStep <= kDepth || depth < kDepth)
      copy_async<kBytes>(to, at, bytes);
    next();
  }
  __device__ void next() {
    at += step;
    to += unsigned(kStep * kPitch<T, kTile> * sizeof(T));
  }
  __device__ void advance(std::int64_t elements) { base += elements; }
};

/// Through registers: asynchronous copies of neighbours that begin anywhere each take six cycles of
/// shared memory, and stores one. A panel is one unit, as there are few things that a warp can wait
/// for apart from others; what is read lands in shared memory a step later.
template <class T, int kTile, int kDepth, int kThreads, int kStages>
struct Loader<Copy::Elements, T, kTile, kDepth, kThreads, kStages> {
  static constexpr int kStep = kThreads / kTile;  // along the depth
  static constexpr int kUnits = 1, kEach = kDepth / kStep;
  static_assert(kThreads % kTile == 0 && kDepth % kStep == 0);

  const T* base;
  std::int64_t step;
  unsigned offset, to;
  int depth;
  T held[kStages][kEach];  // of the first panels; then, in the last of them, of the one to come

  __device__ Loader(const T* x, std::int64_t /*outer*/, std::int64_t inner, int size, int thread) {
    const int i = thread % kTile;
    depth = thread / kTile;
    base = x + (i < size ? i : 0) + depth * inner;
    step = kStep * inner;
    offset = unsigned((depth * kPitch<T, kTile> + i) * int(sizeof(T)));
  }
  __device__ void first(unsigned /*panel*/, int left) {
#pragma unroll
    for (int e = 0; e < kEach; ++e)
      held[0][e] = depth + e * kStep < left ? __ldg(base + e * step) : T{};
  }
  __device__ void fill(int stage, unsigned /*panel*/) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) held[stage][e] = __ldg(base + e * step);
  }
  /// The panels that have been asked for, and another one of which that is only begun.
  __device__ void land(unsigned panels, unsigned stage_bytes, std::int64_t next, int steps) {
    if (kStages - 1 < steps) fill(kStages - 1, 0);
    advance(next);
#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) {
      begin(panels + s * stage_bytes);
      if (s < steps) put(s);
    }
  }
  __device__ void begin(unsigned panel) { to = panel + offset; }
  __device__ void unit(bool more) {
    put(kStages - 1);
    if (more) fill(kStages - 1, 0);
  }
  __device__ void put(int stage) {
#pragma unroll
    for (int e = 0; e < kEach; ++e)
      asm volatile("st.shared.f32 [%0], %1;" ::"r"(
                       to + unsigned(e * kStep * kPitch<T, kTile> * int(sizeof(T)))),
                   "f"(held[stage][e])
                   : "memory");
  }
  __device__ void advance(std::int64_t elements) { base += elements; }
};

template <class T, int kTile, int kDepth, int kThreads, int kStages>
struct Loader<Copy::Turned, T, kTile, kDepth, kThreads, kStages> : Asynchronous {
  static constexpr int kSize = int(sizeof(T));
  static constexpr int kAlong = 8;                 // lanes along the depth
  static constexpr int kStep = kThreads / kAlong;  // along the tile
  static constexpr int kUnits = kTile / kStep;
  static_assert(kTile % kStep == 0 && kDepth % kAlong == 0);

  const T *base, *at;
  std::int64_t step;
  unsigned offset, to;
  int more, steps, depth;  // more: steps that stay inside the operand; steps: that are left

  __device__ Loader(const T* x, std::int64_t outer, std::int64_t /*inner*/, int size, int thread) {
    const int i = thread / kAlong;
    depth = thread % kAlong;
    more = max(size - 1 - i, 0) / kStep;
    base = x + (i < size ? i : 0) * outer + depth;
    step = kStep * outer;
    offset = unsigned((depth * kPitch<T, kTile> + i) * kSize);
  }
  __device__ void first(unsigned panel, int left) {
    begin(panel);
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
#pragma unroll
      for (int l = 0; l < kDepth; l += kAlong) {
        const bool inside = depth + l < left;
        copy_async<kSize>(to + unsigned(l * kPitch<T, kTile> * kSize), inside ? at + l : base,
                          inside ? kSize : 0);
      }
      next();
    }
  }
  __device__ void fill(int /*stage*/, unsigned panel) {
    begin(panel);
#pragma unroll
    for (int u = 0; u < kUnits; ++u) unit(true);
  }
  __device__ void begin(unsigned panel) { at = base, to = panel + offset, steps = more; }
  __device__ void unit(bool /*more*/) {
#pragma unroll
    for (int l = 0; l < kDepth; l += kAlong)
      copy_async<kSize>(to + unsigned(l * kPitch<T, kTile> * kSize), at + l);
    next();
  }
  __device__ void next() {
    if (steps-- > 0) at += step;
    to += unsigned(kStep * kSize);
  }
  __device__ void advance(std::int64_t elements) { base += elements; }
};

/// The problem, and how it is cut: the first `whole` tiles have a block each; the others one for
/// each slice of k, or for each range of all their steps.
template <class Acc>
struct Problem : GemmProblem<Acc> {
  std::int64_t first_block = 0;  ///< of this launch
  std::int64_t whole = 0;
  std::int64_t slice_depth = 0;  ///< k of a slice, a multiple of the tile's
  gemm::Schedule cut{};          ///< of the others, as its only tiles; no ranges: slices
  int slices = 1;
  bool cluster = false;             ///< the slices of a tile are a cluster, which adds them up
  void* sums = nullptr;             ///< else their sums, tile by tile, or those of ranges' parts
  int group = 8;                    ///< rows of tiles that are walked together, column by column
  bool vectors_c = false;           ///< rows of C may be accessed 16 bytes at a time
  const unsigned* where = nullptr;  ///< on the device: nothing is done where that is 0

  /// Blocks that compute something.
  __host__ __device__ std::int64_t blocks() const {
    return whole + (cut.ranges > 0 ? cut.ranges : (this->tiles.count() - whole) * slices);
  }
};

/// A real number in type T.
template <class T>
__device__ T from_real(float x) {
  if constexpr (is_complex_v<T>)
    return {x, 0};
  else
    return x;
}

template <class T>
__device__ T shuffle(T x, int lane) {
  if constexpr (is_complex_v<T>)
    return {__shfl_sync(~0u, x.re, lane), __shfl_sync(~0u, x.im, lane)};
  else
    return __shfl_sync(~0u, x, lane);
}

/// `x` with element e the one that was at e + by.
template <class T>
__device__ void rotate(Vector<T>& x, int by) {
  constexpr int kVec = kVector<T>;
#pragma unroll
  for (int step = 1; step < kVec; step *= 2) {
    const Vector<T> old = x;
#pragma unroll
    for (int e = 0; e < kVec; ++e) x.e[e] = by & step ? old.e[(e + step) % kVec] : old.e[e];
  }
}

/// Of the warp's vectors, which follow each other row by row, lane l gets elements l, 32 + l, ….
/// In each of kVector rounds a lane gives one of its own away.
template <class S, class T>
__device__ void deal(Vector<T>& x) {
  constexpr int kVec = kVector<T>, kHolders = 32 / kVec;  // that hold elements of one round
  const int lane = int(threadIdx.x) % 32;
  using Order = Lanes<S, T>;
  rotate(x, (Order::row(lane) * S::kLanesN + Order::col(lane)) / kHolders);
#pragma unroll
  for (int t = 0; t < kVec; ++t)
    x.e[t] = shuffle(x.e[t], Order::at((lane + kVec - t) % kVec * kHolders + lane / kVec));
  // Round t has brought element (lane - t) % kVec of this lane's.
  Vector<T> back;
#pragma unroll
  for (int t = 0; t < kVec; ++t) back.e[(kVec - t) % kVec] = x.e[t];
  rotate(back, -lane);
  x = back;
}

/// Where a tile's results go: its place in C, or a slice's sums.
template <class T>
struct Target {
  T* data;
  std::int64_t ld;
  int rows, cols;  // that exist
  T alpha, beta;
  bool read, vectors;

  /// Stores sums for kVector elements of row `i` from column `j` on.
  __device__ void store(int i, int j, const Vector<T>& sum) const {
    if (i >= rows) return;
    T* const c = data + i * ld + j;
    if (vectors && j + kVector<T> <= cols) {
      Vector<T> v;
#pragma unroll
      for (int e = 0; e < kVector<T>; ++e) v.e[e] = alpha * sum.e[e];
      auto* place = reinterpret_cast<Vector<T>*>(c);
      if (read) {
        const Vector<T> old = *place;
#pragma unroll
        for (int e = 0; e < kVector<T>; ++e) v.e[e] = multiply_add(beta, old.e[e], v.e[e]);
      }
      *place = v;
      return;
    }
#pragma unroll
    for (int e = 0; e < kVector<T>; ++e) store(i, j + e, sum.e[e]);
  }
  __device__ void store(int i, int j, T sum) const {
    if (i >= rows || j >= cols) return;
    T* const c = data + i * ld + j;
    const T product = alpha * sum;
    *c = read ? multiply_add(beta, *c, product) : product;
  }
};

/// Which tile: those of a group of rows are walked column by column. There are fewer than 2^31 rows
/// and columns of tiles.
template <class Shape, class T>
struct Place {
  std::int64_t batch;
  int tile_row, tile_col;

  Place() = default;
  __device__ Place(const Problem<T>& p, std::int64_t t) {
    const std::int64_t per_matrix = p.tiles.rows * p.tiles.cols;
    batch = t / per_matrix;
    t %= per_matrix;
    const std::int64_t first = t / (p.group * p.tiles.cols) * p.group;
    const std::int64_t rows = min(std::int64_t(p.group), p.tiles.rows - first);
    t -= first * p.tiles.cols;
    tile_row = late(int(first + t % rows));  // found here, while the kernel before still ends
    tile_col = late(int(t / rows));
  }
  __device__ std::int64_t row() const { return std::int64_t(tile_row) * Shape::kTileM; }
  __device__ std::int64_t col() const { return std::int64_t(tile_col) * Shape::kTileN; }
  __device__ Target<T> in_c(const Problem<T>& p) const {
    return {static_cast<T*>(p.C.at(batch)) + row() * p.ldc + col(),
            p.ldc,
            int(min(p.m - row(), std::int64_t(Shape::kTileM))),
            int(min(p.n - col(), std::int64_t(Shape::kTileN))),
            p.alpha,
            p.beta,
            p.read_c,
            p.vectors_c};
  }
};

/// What a block does at a time: steps along k of one tile. kSeveral: of a range it is done with the
/// next after that.
template <class S, class T, bool kSeveral>
struct Work : Place<S, T> {
  int first, steps, slice;
  int part;  ///< of a range, as Piece has it
  int end;   ///< steps of the block until it is done
  bool done;

  Work() = default;
  __device__ Work(const Problem<T>& p, std::int64_t block) : Work(p, block - p.whole, 0) {}

  /// The place of its sums; less than 0: they are the whole tile's.
  __device__ int place(const Problem<T>& p, std::int64_t block) const {
    const std::int64_t cut = block - p.whole;
    if (kSeveral && cut >= 0 && p.cut.ranges > 0) return part;
    return cut < 0 || p.slices == 1 ? -1 : int(cut);
  }

  __device__ void advance(const Problem<T>& p, std::int64_t block) {
    const std::int64_t cut = block - p.whole;
    gemm::Piece piece;
    if (cut < 0 || !p.cut.find_piece(int(cut), p.cut.ranges, end, piece))
      done = true;
    else
      *this = Work(p, cut, end);
  }

 private:
  struct Part {
    std::int64_t tile;
    int first, steps, slice, part;
  };
  static __device__ Part part_of(const Problem<T>& p, std::int64_t cut, int at) {
    const int all = int((p.k + S::kTileK - 1) / S::kTileK);
    if (cut >= 0 && kSeveral && p.cut.ranges > 0) {
      gemm::Piece piece;
      p.cut.find_piece(int(cut), p.cut.ranges, at, piece);
      return {p.whole + piece.tile, piece.first, piece.steps, 0, piece.part};
    }
    if (cut < 0 || p.slices == 1) return {p.whole + cut, 0, all, 0, -1};
    const std::int64_t tile = cut / p.slices;
    const int slice = int(cut - tile * p.slices), each = int(p.slice_depth / S::kTileK);
    return {p.whole + tile, slice * each, max(min(each, all - slice * each), 0), slice, -1};
  }
  __device__ Work(const Problem<T>& p, std::int64_t cut, int at)
      : Work(p, part_of(p, cut, at), at) {}
  __device__ Work(const Problem<T>& p, const Part& x, int at)
      : Place<S, T>(p, x.tile),
        first(x.first),
        steps(x.steps),
        slice(x.slice),
        part(x.part),
        end(at + x.steps),
        done(false) {}
};

/// Which part of a tile a thread computes: vectors of rows, by number.
template <class S, class T>
struct Share {
  static constexpr int kVec = kVector<T>, kAcross = S::kMicroN / kVec;
  static constexpr int kVectors = S::kMicroM * kAcross;
  static constexpr int kWidth = S::kLanesN * kVec;  // of a row's elements in the warp's vectors

  int row, col;  // of the first

  __device__ explicit Share(int thread) {
    const int lane = thread % 32, warp = thread / 32;
    row = warp / S::kWarpsN * S::kWarpM + Lanes<S, T>::row(lane) * kVec;
    col = warp % S::kWarpsN * S::kWarpN + Lanes<S, T>::col(lane) * kVec;
  }
  __device__ int row_of(int v) const {
    const int r = v / kAcross;
    return row + r / kVec * S::kLanesM * kVec + r % kVec;
  }
  __device__ int col_of(int v) const { return col + v % kAcross * kWidth; }

  /// Stores vector `v`. Where rows of C start anywhere, lanes next to each other store neighbours:
  /// four elements of each lane, one by one, are four times as many accesses of the same sectors.
  __device__ void store(const Target<T>& to, int v, Vector<T> sum) const {
    if (to.vectors) return to.store(row_of(v), col_of(v), sum);
    deal<S>(sum);
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int e = 0; e < kVec; ++e) {
      const int down = (32 * e + lane) / kWidth - Lanes<S, T>::row(lane);
      const int across = (32 * e + lane) % kWidth - Lanes<S, T>::col(lane) * kVec;
      to.store(row_of(v) + down * kVec, col_of(v) + across, sum.e[e]);
    }
  }
};

/// A warp's results on their way through shared memory to rows of C that start anywhere: lanes next
/// to each other store neighbours, as many rows at a time as the lanes' vectors have.
template <class S, class T>
struct Rows {
  static constexpr int kVec = kVector<T>, kAcross = Share<S, T>::kAcross;
  static constexpr int kRows = S::kLanesM * kVec, kCols = S::kWarpN, kPitch = kCols + kVec;
  static constexpr int kSize = kRows * kPitch;  // of a warp
  static constexpr int kEach = kRows * kCols / 32;
  static_assert(kCols % 32 == 0 || 32 % kCols == 0);

  /// `sums_of(v)`: vector v of the thread's share.
  template <class SumsOf>
  static __device__ void store(T* shared, const Target<T>& to, int thread, SumsOf&& sums_of) {
    const int lane = thread % 32, warp = thread / 32;
    T* const own = shared + warp * kSize;
    T* const put = own + (Lanes<S, T>::row(lane) * kPitch + Lanes<S, T>::col(lane)) * kVec;
    const T* const from = own + lane / kCols * kPitch + lane % kCols;
    const int col = warp % S::kWarpsN * S::kWarpN + lane % kCols;
    int row = warp / S::kWarpsN * S::kWarpM + lane / kCols;
    T* c = to.data + row * to.ld + col;
#pragma unroll
    for (int g = 0; g < S::kMicroM / kVec; ++g) {
      if (g > 0) __syncwarp();
#pragma unroll
      for (int v = 0; v < kVec * kAcross; ++v) {
        Vector<T> x = sums_of(g * kVec * kAcross + v);
#pragma unroll
        for (int e = 0; e < kVec; ++e) x.e[e] = to.alpha * x.e[e];
        *reinterpret_cast<Vector<T>*>(put + v / kAcross * kPitch +
                                      v % kAcross * Share<S, T>::kWidth) = x;
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int down = i * 32 / kCols, across = i * 32 % kCols;
        if (row + down < to.rows && col + across < to.cols) {
          T* const place = c + down * to.ld + across;
          const T x = from[down * kPitch + across];
          *place = to.read ? multiply_add(to.beta, *place, x) : x;
        }
      }
      row += kRows;
      c += kRows * to.ld;
    }
  }
};

template <class T>
__device__ void add(Vector<T>& sum, const Vector<T>& more) {
#pragma unroll
  for (int e = 0; e < kVector<T>; ++e) sum.e[e] = sum.e[e] + more.e[e];
}

template <class Shape, class T>
constexpr bool has_ranges(Copy a, Copy b) {
  return has_ranges(Shape::kTileM * Shape::kTileN * int(sizeof(T)),
                    a == Copy::Elements && b == Copy::Elements);
}

/// Blocks on a multiprocessor: at most four where both operands come through registers, eight where
/// one does.
template <class Shape>
constexpr int blocks_of(Copy a, Copy b) {
  const int loose = (a == Copy::Elements) + (b == Copy::Elements);
  return loose > 0 ? std::min(Shape::kBlocks, 8 / loose) : Shape::kBlocks;
}

/// Bytes of shared memory of a block: panels, or sums on their way, and then its work.
template <class Shape, class T>
constexpr int work_at() {
  constexpr int kPanels = Shape::kStages * Shape::kTileK *
                          (kPitch<T, Shape::kTileM> + kPitch<T, Shape::kTileN>)*int(sizeof(T));
  constexpr int kSums = Shape::kClusters ? Shape::kTileM * Shape::kTileN * int(sizeof(T)) : 0;
  return std::max(kPanels, kSums);
}
template <class Shape, class T>
constexpr int shared_bytes() {
  return work_at<Shape, T>() + int(sizeof(Work<Shape, T, true>));
}

/// kMixed: one of op(A) and op(B) is conjugated: the sums are those of A conj(B), conjugated at the
/// end where A is.
template <class Shape, Copy kCopyA, Copy kCopyB, bool kMixed, class T>
__device__ void compute_tiles(const Problem<T>& p) {
  using S = Shape;
  constexpr int kVec = kVector<T>, kDepth = S::kTileK, kStages = S::kStages;
  constexpr int kPitchA = kPitch<T, S::kTileM>, kPitchB = kPitch<T, S::kTileN>;
  constexpr unsigned kBytesA = kDepth * kPitchA * sizeof(T);
  constexpr unsigned kStageBytes = kBytesA + kDepth * kPitchB * sizeof(T);
  // By columns few of many complex sums read three registers, of few more do than by rows.
  constexpr Reuse kReuse = is_complex_v<T> && S::kMicroM * S::kMicroN >= 32 ? Reuse::B : Reuse::A;
  static_assert(kDepth % 2 == 0, "the last depth of a step fetches into the first's registers");
  extern __shared__ __align__(128) unsigned char shared[];

  // Of several works the present one is in shared memory: the loop along k leaves no registers.
  constexpr bool kSeveral = has_ranges<S, T>(kCopyA, kCopyB);
  using Works = Work<S, T, kSeveral>;
  Works only;
  Works& work = kSeveral ? *reinterpret_cast<Works*>(shared + work_at<S, T>()) : only;
  if (!kSeveral || threadIdx.x == 0) work = Works(p, p.first_block + blockIdx.x);
  begin_early();
  if (p.where && *p.where == 0) return;

  for (;;) {
    if constexpr (kSeveral) {
      __syncthreads();
      if (work.done) return;
    }
    // Late, so that nothing is kept from work to work.
    const int thread = kSeveral ? late(int(threadIdx.x)) : int(threadIdx.x);
    const Share<S, T> share(thread);
    const std::int64_t i0 = work.row(), j0 = work.col();
    const std::int64_t l0 = std::int64_t(work.first) * kDepth;
    const int steps = work.steps;

    Loader<kCopyA, T, S::kTileM, kDepth, S::kThreads, kStages> a(
        static_cast<const T*>(p.A.at(work.batch)) + i0 * p.a.row + l0 * p.a.col, p.a.row, p.a.col,
        int(min(p.m - i0, std::int64_t(S::kTileM))), thread);
    Loader<kCopyB, T, S::kTileN, kDepth, S::kThreads, kStages> b(
        static_cast<const T*>(p.B.at(work.batch)) + j0 * p.b.col + l0 * p.b.row, p.b.col, p.b.row,
        int(min(p.n - j0, std::int64_t(S::kTileN))), thread);

    const unsigned panels = shared_address(shared);
    T sum[S::kMicroM][S::kMicroN] = {};

    if (steps > 0) {
      // The first step takes what is more than whole steps, so that no other has to look.
      const int odd = int(min(p.k - l0 - std::int64_t(steps - 1) * kDepth, std::int64_t(kDepth)));
      a.first(panels, odd);
      b.first(panels + kBytesA, odd);
      commit_copies();
      a.advance(odd * p.a.col);
      b.advance(odd * p.b.row);
      const std::int64_t next_a = kDepth * p.a.col, next_b = kDepth * p.b.row;
      constexpr int kUnitsA = decltype(a)::kUnits, kUnitsB = decltype(b)::kUnits;
      const auto begin_loads = [&](unsigned stage) {
        a.begin(stage);
        b.begin(stage + kBytesA);
      };

#pragma unroll
      for (int s = 1; s < kStages - 1; ++s) {
        if (s < steps) {
          a.fill(s, panels + s * kStageBytes);
          b.fill(s, panels + s * kStageBytes + kBytesA);
          a.advance(next_a);
          b.advance(next_b);
        }
        commit_copies();
      }
      a.land(panels, kStageBytes, next_a, steps);
      b.land(panels + kBytesA, kStageBytes, next_b, steps);
      wait_copies<kStages - 2>();
      __syncthreads();

      Vector<T> left[2][S::kMicroM / kVec], right[2][S::kMicroN / kVec];
      const T* from_a = reinterpret_cast<const T*>(shared) + share.row;
      const T* from_b = reinterpret_cast<const T*>(shared + kBytesA) + share.col;
      const auto fetch = [&](int l, int to) {
#pragma unroll
        for (int g = 0; g < S::kMicroM / kVec; ++g) {
          left[to][g] =
              *reinterpret_cast<const Vector<T>*>(from_a + l * kPitchA + g * S::kLanesM * kVec);
        }
#pragma unroll
        for (int g = 0; g < S::kMicroN / kVec; ++g) {
          right[to][g] =
              *reinterpret_cast<const Vector<T>*>(from_b + l * kPitchB + g * S::kLanesN * kVec);
        }
      };
      fetch(0, 0);

      unsigned read = 0;  // where the stage begins
      begin_loads(panels + (kStages - 1) * kStageBytes);
      for (int step = 0; step < steps; ++step) {
        const bool more = step + kStages - 1 < steps, still_more = step + kStages < steps;
#pragma unroll
        for (int l = 0; l < kDepth; ++l) {
          if (l + 1 < kDepth) {
            fetch(l + 1, (l + 1) % 2);
          } else {
            commit_copies();
            wait_copies<kStages - 2>();
            __syncthreads();
            a.advance(next_a);
            b.advance(next_b);
            begin_loads(panels + read);
            read = read == (kStages - 1) * kStageBytes ? 0 : read + kStageBytes;
            from_a = reinterpret_cast<const T*>(shared + read) + share.row;
            from_b = reinterpret_cast<const T*>(shared + read + kBytesA) + share.col;
            fetch(0, (l + 1) % 2);
          }
#pragma unroll
          for (int u = 0; u < kUnitsA + kUnitsB; ++u) {
            if (u * (kDepth - 1) / (kUnitsA + kUnitsB) == l && more) {
              if (u < kUnitsA)
                a.unit(still_more);
              else
                b.unit(still_more);
            }
          }
          add_products<kReuse, kMixed>([&](int r) { return left[l % 2][r / kVec].e[r % kVec]; },
                                       [&](int c) { return right[l % 2][c / kVec].e[c % kVec]; },
                                       sum);
        }
      }
      wait_copies<0>();
    }

    constexpr int kAcross = share.kAcross, kVectors = share.kVectors;
    const auto sums_of = [&](int v) {
      Vector<T> x;
#pragma unroll
      for (int e = 0; e < kVec; ++e) {
        x.e[e] = sum[v / kAcross][v % kAcross * kVec + e];
        if constexpr (is_complex_v<T>)
          if (p.conjugate_a) x.e[e].im = -x.e[e].im;
      }
      return x;
    };

    Target<T> target = work.in_c(p);
#if __CUDA_ARCH__ >= 900
    if constexpr (S::kClusters) {
      if (p.cluster) {
        // Each block of the cluster adds up a share of the tile, slice after slice.
        __syncthreads();
        auto* mine = reinterpret_cast<Vector<T>*>(shared) + thread;
#pragma unroll
        for (int v = 0; v < kVectors; ++v) mine[v * S::kThreads] = sums_of(v);
        sync_cluster();
        for (int v = work.slice; v < kVectors; v += p.slices) {
          const unsigned at = shared_address(mine + v * S::kThreads);
          Vector<T> total = load_shared_of<Vector<T>>(at, 0);
          for (int s = 1; s < p.slices; ++s) {
            add(total, load_shared_of<Vector<T>>(at, unsigned(s)));
          }
          share.store(target, v, total);
        }
        meet_cluster();
        return;
      }
    }
#endif
    // Through the same multiplications as C's: stored as they are, sums would have to be in
    // neighbouring registers, and the loop would read three operands from one bank now and then (7%
    // of its time).
    if (const int at = work.place(p, p.first_block + blockIdx.x); at >= 0)
      target = {static_cast<T*>(p.sums) + std::int64_t(at) * S::kTileM * S::kTileN,
                S::kTileN,
                S::kTileM,
                S::kTileN,
                from_real<T>(1),
                p.beta,
                false,
                true};
    if (!target.vectors) {
      __syncthreads();
      static_assert(Rows<S, T>::kSize * S::kThreads / 32 * int(sizeof(T)) <=
                    S::kStages * int(kStageBytes));
      Rows<S, T>::store(reinterpret_cast<T*>(shared), target, thread, sums_of);
    } else {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) target.store(share.row_of(v), share.col_of(v), sums_of(v));
    }

    if (!kSeveral || p.cut.ranges == 0) return;
    __syncthreads();
    if (threadIdx.x == 0) work.advance(p, p.first_block + blockIdx.x);
  }
}

template <class Shape, Copy kCopyA, Copy kCopyB, bool kMixed, class T>
__global__ void __launch_bounds__(Shape::kThreads, blocks_of<Shape>(kCopyA, kCopyB))
    tile_kernel(const __grid_constant__ Problem<T> p) {
  compute_tiles<Shape, kCopyA, kCopyB, kMixed>(p);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr int kMoreRegisters = 8;  // or some would be spilled
#else
inline constexpr int kMoreRegisters = 0;
#endif
/// With fewer registers than there are: where some are free, the assembler gives sums others than
/// they had.
template <class Shape, Copy kCopyA, Copy kCopyB, bool kMixed, class T>
__global__ void __maxnreg__(Shape::kRegisters + kMoreRegisters)
    tight_tile_kernel(const __grid_constant__ Problem<T> p) {
  compute_tiles<Shape, kCopyA, kCopyB, kMixed>(p);
}

/// C = alpha (the sum of what blocks have computed) + beta C for the tiles that were cut: a thread
/// computes a vector, or, of many slices, a group's share of it.
template <class S, class T>
__global__ void __launch_bounds__(S::kThreads)
    sum_kernel(const __grid_constant__ Problem<T> p, int groups) {
  constexpr int kAcross = S::kTileN / kVector<T>, kVectors = S::kTileM * kAcross;
  static_assert(kVectors % S::kThreads == 0, "a block's vectors are of one tile");
  __shared__ Vector<T> shared[S::kThreads];
  begin_early();
  if (p.where && *p.where == 0) return;
  const gemm::Group group(groups);
  const std::int64_t count = (p.tiles.count() - p.whole) * kVectors;
  for (std::int64_t w = blockIdx.x * std::int64_t(group.width) + group.element; w < count;
       w += gridDim.x * std::int64_t(group.width)) {
    const std::int64_t tile = w / kVectors;
    const int v = int(w % kVectors);
    const auto* from = static_cast<const Vector<T>*>(p.sums) + v;
    std::int64_t first = tile * p.slices, next = 1, odd = 0;
    int parts = p.slices;
    if (p.cut.ranges > 0) {
      const int begin = int(tile) * p.cut.steps, range = p.cut.range_of(begin);
      parts = p.cut.range_of(begin + p.cut.steps - 1) - range + 1;
      if (parts == 1) continue;  // a whole tile
      first = 2 * range;
      next = 2;
      odd = p.cut.begin(range) < begin;
    }
    const int begin = group.begin(parts), end = group.end(parts);
    Vector<T> sum = from[(first + begin * next + (begin == 0 ? odd : 0)) * kVectors];
#pragma unroll 8
    for (int s = begin + 1; s < end; ++s) add(sum, from[(first + s * next) * kVectors]);
    if (!group.join(shared, sum, [](Vector<T>& to, const Vector<T>& x) { add(to, x); })) continue;
    const Place<S, T> place(p, p.whole + tile);
    place.in_c(p).store(v / kAcross, v % kAcross * kVector<T>, sum);
  }
}

}  // namespace mblas::cuda::simt
