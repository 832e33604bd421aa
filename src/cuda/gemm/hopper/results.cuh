// From the sums in a consumer's registers to C, or to where slices are added up.
#pragma once

#include <algorithm>

#include "cuda/gemm/hopper/fragments.cuh"
#include "cuda/gemm/hopper/ring.cuh"
#include "cuda/gemm/ozaki/moduli.hpp"
#include "cuda/transpose/turn.cuh"

namespace mblas::cuda::gemm::hopper {

/// Of 64 rows, those that a thread has sums of: `half` 0 and 1.
template <class T>
__device__ int row_of(int thread, int half) {
  if constexpr (T::kByRegisters)
    return spread_row(thread) + half;
  else
    return thread / 32 * 16 + thread % 32 / 4 + half * 8;
}

/// What a consumer knows of its threads, and its boxes for results.
struct Consumer {
  int number;    ///< of the consumers
  int thread;    ///< of the warpgroup
  unsigned out;  ///< boxes in shared memory

  template <class T>
  __device__ int row(int half) const {
    return row_of<T>(thread, half);
  }
  __device__ int col() const { return thread % 4 * 2; }
  __device__ void sync() const { sync_named(1 + number, kWarpgroup); }
};

template <int kStages>
struct Barriers {
  unsigned base;

  __device__ Barrier full(unsigned stage) const { return {base + stage * 8}; }
  __device__ Barrier empty(unsigned stage) const { return {base + (kStages + stage) * 8}; }
};

/// C as it was, of 16 bits, where the producer brings it: a stage of the ring for each consumer of
/// the tile, boxes of 64 rows and columns.
template <class T>
struct OldResults {
  static constexpr int kAcross = T::kCols / 64, kBoxes = T::kBlocks * kAcross;
  static constexpr int kStages = T::kAlternating ? 1 : kConsumers;
  static_assert(kBoxes * kBoxBytes <= T::kStageBytes && kStages < T::kStages);

  unsigned stages;
  Barriers<T::kStages> barriers;
  Ring<T::kStages> ring;  ///< at the first of them
  int share;              ///< of the tile, the consumer's

  /// Where the consumer's is, once it is there.
  __device__ unsigned wait() const {
    Ring<T::kStages> place = ring;
    place.advance(unsigned(share));
    barriers.full(place.stage).wait(place.parity);
    return stages + place.stage * T::kStageBytes;
  }
};

/// The sums of a consumer, by blocks of 64 rows.
template <class T, class Acc>
using Sums = Acc[T::kBlocks][T::kCols / 2];

/// How row `row` of op(A) of a product in scaled planes was scaled, and column `col` of op(B).
template <class Acc>
__device__ int scaling_of_row(const Problem<Acc>& p, int batch, std::int64_t row) {
  return row < p.m ? scaling_of(p.most_a[(p.shared_a ? 0 : batch * p.m) + row]) : 0;
}
template <class Acc>
__device__ int scaling_of_col(const Problem<Acc>& p, int batch, std::int64_t col) {
  return col < p.n ? scaling_of(p.most_b[(p.shared_b ? 0 : batch * p.n) + col]) : 0;
}

/// The sums of scaled planes as those of the operands; `row0`, `col0`: of the consumer's rows.
template <class T, class Acc>
__device__ void undo_scaling(const Problem<Acc>& p, const Consumer& self, Sums<T, Acc>& d,
                             std::int64_t row0, std::int64_t col0, int batch) {
  int of_rows[T::kBlocks][2];
#pragma unroll
  for (int i = 0; i < T::kBlocks * 2; ++i)
    of_rows[i / 2][i % 2] = scaling_of_row(p, batch, row0 + self.row<T>(i % 2) + i / 2 * 64);
#pragma unroll
  for (int j = 0; j < T::kCols / 8; ++j)
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int of_col = scaling_of_col(p, batch, col0 + j * 8 + self.col() + c);
#pragma unroll
      for (int i = 0; i < T::kBlocks * 2; ++i) {
        Acc& sum = d[i / 2][j * 4 + i % 2 * 2 + c];
        sum = times_power_of_2(sum, -of_rows[i / 2][i % 2] - of_col);
      }
    }
}

/// A sum as epilogues compute with it.
__device__ inline float real(float sum) { return sum; }
__device__ inline float real(std::uint32_t sum) { return float(std::int32_t(sum)); }

/// Rows and columns of what is computed: C or, turned, C^T.
template <class T, class Acc>
__device__ std::int64_t rows_of(const Problem<Acc>& p) {
  return T::kTurned ? p.n : p.m;
}
template <class T, class Acc>
__device__ std::int64_t cols_of(const Problem<Acc>& p) {
  return T::kTurned ? p.m : p.n;
}

/// The bias of what a thread has of some rows: one for each of them or, where `along_cols`, one for
/// each column of the tile. Those a warp shares, as lane l loads columns 2 l and 2 l + 1 of each
/// 64: with loads of its own for all that it adds a thread took 5 % more time at bf16 4096³.
template <class T, class Out, int kRows>
struct Bias {
  static constexpr int kWords = 2 * int(sizeof(Out)) / 4, kAcross = (T::kCols + 63) / 64;
  float of_rows[kRows] = {};
  bool along_cols;
  unsigned of_cols[kAcross][kWords] = {};

  /// Of the columns from col0 on.
  template <class Acc>
  __device__ Bias(const Problem<Acc>& p, std::int64_t col0)
      : along_cols(p.finish.per == (T::kTurned ? BiasPer::Row : BiasPer::Column)) {
    if (!along_cols) return;
    const std::int64_t first = col0 + threadIdx.x % 32 * 2;
    const Out* const of_c = static_cast<const Out*>(p.finish.bias) + first;
    const int cols = int(min(cols_of<T>(p) - first, std::int64_t(T::kCols)));
#pragma unroll
    for (int i = 0; i < kAcross; ++i) {
      Vector<Out, 2> pair = {};
#pragma unroll
      for (int c = 0; c < 2; ++c)
        if (i * 64 + c < cols) pair.e[c] = of_c[i * 64 + c];
#pragma unroll
      for (int w = 0; w < kWords; ++w)
        of_cols[i][w] = reinterpret_cast<unsigned(&)[kWords]>(pair)[w];
    }
  }

  /// Of the rows from `first` on that the thread has among 64 from row0 on.
  template <class Acc>
  __device__ void take_rows(const Problem<Acc>& p, const Consumer& self, std::int64_t row0,
                            int first) {
    if (along_cols || p.finish.per == BiasPer::None) return;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t row = row0 + self.row<T>(first + r);
      of_rows[r] =
          row < rows_of<T>(p) ? float(widen(static_cast<const Out*>(p.finish.bias)[row])) : 0;
    }
  }

  /// Of the thread's two columns of eight, the tile's from `col` on. For all threads of a warp.
  __device__ Vector<Out, 2> of_pair(int col) const {
    Vector<Out, 2> pair;
#pragma unroll
    for (int w = 0; w < kWords; ++w)
      reinterpret_cast<unsigned(&)[kWords]>(pair)[w] =
          __shfl_sync(~0u, of_cols[col / 64][w], col % 64 / 2 + threadIdx.x % 4);
    return pair;
  }
};

/// Where there is no epilogue.
struct NoBias {
  template <class Acc>
  __device__ NoBias(const Problem<Acc>&, std::int64_t) {}
};

/// The epilogue of scaled(0) ... scaled(kSums - 1): pairs of neighbours in a row, by turns of the
/// rows; `col`: of the tile, without the thread's.
template <class T, class Out, int kRows, int kSums, class Acc, class F>
__device__ void finish_sums(const Problem<Acc>& p, const Bias<T, Out, kRows>& bias, int col,
                            float (&x)[kSums], F&& scaled) {
  if (bias.along_cols) {
#pragma unroll
    for (int e = 0; e < kSums; e += 2 * kRows) {
      const Vector<Out, 2> of_cols = bias.of_pair(col + e / kRows * 4);
#pragma unroll
      for (int k = e; k < e + 2 * kRows; ++k) x[k] = scaled(k) + float(widen(of_cols.e[k % 2]));
    }
  } else {
#pragma unroll
    for (int e = 0; e < kSums; ++e) x[e] = scaled(e) + bias.of_rows[e / 2 % kRows];
  }
  const Finish<float>& f = p.finish;
  if (f.activation == Activation::Relu) {
#pragma unroll
    for (int e = 0; e < kSums; ++e) x[e] = activated(Activation::Relu, x[e]);
  } else if (f.activation == Activation::Gelu) {
#pragma unroll
    for (int e = 0; e < kSums; ++e)
      x[e] = std::is_same_v<Out, __nv_bfloat16> ? gelu_to_bfloat16(x[e])
                                                : activated(Activation::Gelu, x[e]);
  }
  if (f.scale == 1) return;
#pragma unroll
  for (int e = 0; e < kSums; ++e) x[e] *= f.scale;
}

/// Element (row, col) of C, at `c`, from its sum.
template <bool kFinish, class Out, class Acc>
__device__ void put(const Problem<Acc>& p, Acc sum, Out* c, std::int64_t row, std::int64_t col) {
  if constexpr (kFinish) {
    float x = p.real_alpha * real(sum);
    if (p.read_c) x += p.real_beta * widen(*c);
    *c = narrow<Out>(finished<Out>(p.finish, x, row, col));
  } else {
    store(p, sum, c);
  }
}

/// The residues of the sums that a thread has of a box, four a word: those of 16 columns in a row
/// and of the row 8 below it, as store_matrices() takes them. So that they lie next to each other
/// in C, the columns of B are in another order: shuffled() in ozaki/passes.cuh.
template <int kSums, class Acc>
__device__ void residues_of(const Acc* sums, unsigned (&words)[kSums / 4], int batch) {
  static constexpr auto kDivisions = ozaki::divisions();
  const ozaki::Division by = kDivisions.of[batch];
  const auto residue = [&](int e) {
    const int sum = int(sums[e]);
    return unsigned(sum - (__mulhi(sum, by.inverse) >> 6) * by.modulus);
  };
#pragma unroll
  for (int w = 0; w < kSums / 4; ++w) {
    const int e = w / 2 * 8 + w % 2 * 2;
    words[w] = __byte_perm(__byte_perm(residue(e), residue(e + 1), 0x0040),
                           __byte_perm(residue(e + 4), residue(e + 5), 0x0040), 0x5410);
  }
}

/// A thread's sums of 64 rows and a box's columns of 4 bytes go to shared memory: as a box of those
/// rows or, turned, of those columns as the rows of two squares.
template <class T, int kSums, class Out>
__device__ void store_sums(unsigned to, const Consumer& self, const Out* sums) {
  const auto pair = [&](int first, int second) {
    return uint2{reinterpret_cast<const unsigned&>(sums[first]),
                 reinterpret_cast<const unsigned&>(sums[second])};
  };
  const int row = self.row<T>(0);
#pragma unroll
  for (int e = 0; e < kSums; e += 4) {
    const int col = e * 2 + self.col();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (T::kTurned)
        store_shared(
            to + unsigned(row / kSquare * kSquareBytes) + swizzled(col + i, row % kSquare * 4),
            pair(e + i, e + 2 + i));
      else
        store_shared(to + swizzled(self.row<T>(i), col * 4), pair(e + i * 2, e + i * 2 + 1));
    }
  }
}

/// Which parts of a tile a block writes, 64 rows by 64 columns or what is left of them: all or,
/// where its blocks are slices that are joined, each some.
struct Share {
  unsigned blocks, rank;  ///< of a tile that joins

  template <class T>
  __device__ bool has(int block, int col) const {
    constexpr int kAcross = (T::kCols + 63) / 64;
    return !T::kJoins || unsigned(block * kAcross + col / 64) % blocks == rank;
  }
};

/// The sums, from (row0, col0) of matrix `batch` of C, or C^T, on, go to C as boxes. beta is 0.
template <class T, class Out, bool kFinish, class Acc>
__device__ void write_boxes(const Problem<Acc>& p, const Consumer& self, const Sums<T, Acc>& d,
                            std::int64_t row0, std::int64_t col0, int batch,
                            const Share& share = {}) {
  constexpr int kBoxCols = 128 / int(sizeof(Out)), kSums = kBoxCols / 2;
  constexpr int kWhole = T::kCols / kBoxCols;                      // boxes across
  constexpr int kNarrowBoxes = T::kCols % kBoxCols / kNarrowCols;  // and what they leave
  constexpr int kAcross = kWhole + (kNarrowBoxes > 0 ? 1 : 0);
  constexpr int kBoxes = std::min(T::kBoxes, T::kBlocks * kAcross);  // a tile begins with the first
  std::conditional_t<kFinish, Bias<T, Out, 2>, NoBias> bias(p, col0);
#pragma unroll
  for (int box = 0; box < T::kBlocks * kAcross; ++box) {
    const int i = box / kAcross, j = box % kAcross;
    if constexpr (kFinish)
      if (j == 0) bias.take_rows(p, self, row0 + i * 64, 0);
    if (!share.has<T>(i, j * kBoxCols)) continue;
    // Sums of whole boxes; of the last one, what the tile leaves of it.
    const auto is_sum = [&](int e) { return j < kWhole || e < kNarrowBoxes * kNarrowCols / 2; };
    const unsigned to = self.out + unsigned(box % kBoxes * kBoxBytes);
    constexpr int kWords = kSums * int(sizeof(Out)) / 4;
    alignas(4) Out out[kSums];
    auto& words = reinterpret_cast<unsigned(&)[kWords]>(out);
    if constexpr (sizeof(Out) == 1) {
      residues_of<kSums>(&d[i][j * kSums], words, batch);
    } else if constexpr (kFinish) {
      float x[kSums];
      finish_sums(p, bias, j * kBoxCols, x,
                  [&](int e) { return is_sum(e) ? p.real_alpha * real(d[i][j * kSums + e]) : 0; });
#pragma unroll
      for (int e = 0; e < kSums; ++e) out[e] = narrow<Out>(x[e]);
    } else {
#pragma unroll
      for (int e = 0; e < kSums; ++e)
        if (is_sum(e)) out[e] = narrow<Out>(p.alpha * d[i][j * kSums + e]);
    }
    if (self.thread == 0) wait_stores_read<T::kJoins ? 0 : kBoxes - 1>();  // from this box none
    self.sync();
    if constexpr (sizeof(Out) <= 2) {
      // A lane's share of four 8x8 matrices of 16 bits: 16 rows, 32 bytes of each; turned, 16 rows
      // of the box, which are columns of the tile, and 32 bytes of each, a warp's rows of the tile.
      const int lane = self.thread % 32, warp = self.thread / 32;
#pragma unroll
      for (int g = 0; g < (j < kWhole ? kWords / 4 : kNarrowBoxes); ++g) {
        unsigned place;
        if constexpr (T::kTurned)
          place = swizzled(g * 16 + lane / 16 * 8 + lane % 8, warp * 32 + lane / 8 % 2 * 16);
        else if (const int row = warp * 16 + lane % 16; j < kWhole)
          place = swizzled(row, g * 32 + lane / 16 * 16);
        else
          place = unsigned(g * kNarrowBytes) + swizzled_narrow(row, lane / 16);
        store_matrices<T::kTurned>(to + place, words[g * 4], words[g * 4 + 1], words[g * 4 + 2],
                                   words[g * 4 + 3]);
      }
    } else {
      store_sums<T, kSums>(to, self, out);
    }
    fence_shared_for_copies();
    self.sync();
    if (self.thread == 0) {
      const int row = int(row0) + i * 64, col = int(col0) + j * kBoxCols;
      const auto store = [&](unsigned from, const CUtensorMap& map, int tile_row, int tile_col) {
        store_box(from, map, T::kTurned ? tile_row : tile_col, T::kTurned ? tile_col : tile_row,
                  batch);
      };
      if (j == kWhole)
        for (int g = 0; g < kNarrowBoxes; ++g)
          store(to + unsigned(g * kNarrowBytes), p.map_narrow, row, col + g * kNarrowCols);
      else if (T::kTurned && sizeof(Out) == 4)
        for (int half = 0; half < 2; ++half)
          store(to + unsigned(half * kSquareBytes), p.map_c, row + half * kSquare, col);
      else
        store(to, p.map_c, row, col);
      commit_stores();
    }
  }
}

/// What lies at `p` in global memory, as a T.
template <class T>
__device__ T& global(const void* p) {
  __builtin_assume(__isGlobal(p));
  return *static_cast<T*>(const_cast<void*>(p));
}

/// A warp's part of C, 8 rows of up to kCols elements of 16 bits. In shared memory rows begin at
/// multiples of 16 bytes, in C anywhere: there a row is a head of single elements up to such a
/// multiple, vectors, and a tail of elements.
template <int kCols>
struct Rows {
  static constexpr int kRows = 8, kChunks = kCols / 8;  // of 16 bytes
  static constexpr int kBytes = kRows * kCols * 2;
  static constexpr int kLanes = kChunks > 16 ? 32 : 16, kAtOnce = 32 / kLanes;
  using Element = std::uint16_t;

  unsigned shared;
  Element* c;
  std::int64_t ldc;
  int rows, cols;  ///< inside of C

  __device__ static int lane() { return threadIdx.x % kLanes; }
  __device__ static int first_row() { return threadIdx.x % 32 / kLanes; }
  /// Banks differ along a row and from row to row.
  __device__ unsigned chunk(int row, int number) const {
    return shared + unsigned(row * kCols * 2 + (number ^ row) * 16);
  }
  __device__ int head(int row) const {
    const unsigned address = unsigned(reinterpret_cast<std::uintptr_t>(c + row * ldc));
    return min(int(-address / 2 % 8), cols);
  }
  /// Whether the lane has a vector of that row.
  __device__ bool has(int row, int head) const {
    return row < rows && head + lane() * 8 + 8 <= cols;
  }
  /// f(place in shared memory, place in C) for this lane's single elements.
  template <class F>
  __device__ void for_each_single(F&& f) const {
    const int row = threadIdx.x % 32 / 4, head = this->head(row),
              tail = head + (cols - head) / 8 * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int number = i % 2 * 4 + threadIdx.x % 4, at = i < 2 ? number : tail + number;
      if (row < rows && at < (i < 2 ? head : cols))
        f(chunk(row, at / 8) + at % 8 * 2, c + row * ldc + at);
    }
  }

  /// C's rows come to shared memory, where they are shifted: the vectors without a way through
  /// registers, so that all are under way at once.
  __device__ void load() const {
#pragma unroll 1
    for (int row = first_row(); row < kRows; row += kAtOnce)
      if (const int before = head(row); has(row, before))
        copy_async<16>(chunk(row, lane()), c + row * ldc + before + lane() * 8);
    commit_copies();
    wait_copies<0>();
    __syncwarp();
#pragma unroll 1
    for (int row = first_row(); row < kRows; row += kAtOnce) {
      const int before = head(row);
      const uint4 low = load_shared<uint4>(chunk(row, (lane() + kChunks - 1) % kChunks));
      const uint4 high = load_shared<uint4>(chunk(row, lane() % kChunks));
      __syncwarp();
      if (before > 0 && lane() < kChunks)
        store_shared(chunk(row, lane()), turn::shifted(low, high, unsigned(16 - before * 2)));
    }
    __syncwarp();
    for_each_single(
        [&](unsigned to, const Element* from) { store_shared(to, global<Element>(from)); });
    __syncwarp();
  }

  /// They go from there to C.
  __device__ void store() const {
#pragma unroll 2
    for (int row = first_row(); row < kRows; row += kAtOnce) {
      const int before = head(row);
      if (!has(row, before)) continue;
      const uint4 low = load_shared<uint4>(chunk(row, lane()));
      const uint4 high = before == 0 ? low : load_shared<uint4>(chunk(row, lane() + 1));
      turn::store_whole(c + row * ldc + before + lane() * 8,
                        turn::shifted(low, high, unsigned(before * 2)));
    }
    for_each_single(
        [&](unsigned from, Element* to) { global<Element>(to) = load_shared<Element>(from); });
  }
};

/// The same for every C of 16 bits and every beta, by whole vectors of its rows. A warp has 8 rows
/// at a time, in a loop that selects their sums: unrolled, it takes longer to fetch than to
/// execute, and sums that move down in their registers spill.
template <class T, class Out, bool kFinish, class Acc>
__device__ void write_rows(const Problem<Acc>& p, const Consumer& self, Sums<T, Acc>& d,
                           std::int64_t row0, std::int64_t col0, int batch,
                           const OldResults<T>& before) {
  using Part = Rows<T::kCols>;
  static_assert(!T::kByRegisters && sizeof(Out) == 2);
  static_assert(4 * Part::kBytes <= T::kBoxes * kBoxBytes);
  const int warp = self.thread / 32, lane = self.thread % 32;
  const unsigned shared = self.out + unsigned(warp * Part::kBytes);
  const unsigned old_boxes = p.brings_c ? before.wait() : 0;
  std::conditional_t<kFinish, Bias<T, Out, 1>, NoBias> bias(p, col0);
#pragma unroll 1
  for (int pass = 0; pass < T::kBlocks * 2; ++pass) {
    const std::int64_t row = row0 + pass / 2 * 64 + warp * 16 + pass % 2 * 8;
    const Part part = {shared, static_cast<std::uint16_t*>(p.C.at(batch)) + row * p.ldc + col0,
                       p.ldc, int(min(p.m - row, std::int64_t(Part::kRows))),
                       int(min(p.n - col0, std::int64_t(T::kCols)))};
    const auto sum_of = [&](int e) {
      Acc sum = pass % 2 ? d[0][e + 2] : d[0][e];
      if constexpr (T::kBlocks > 1)
        if (pass >= 2) sum = pass % 2 ? d[1][e + 2] : d[1][e];
      return sum;
    };
    if (p.read_c && !p.brings_c) part.load();
    // C as it was: of each 64 columns, this lane's row.
    const unsigned old_row =
        p.brings_c ? old_boxes + unsigned(pass / 2 * OldResults<T>::kAcross * kBoxBytes +
                                          (warp * 16 + pass % 2 * 8 + lane % 8) * 128)
                   : part.chunk(lane % 8, lane % 8);
    const unsigned apart = p.brings_c ? kBoxBytes : 128;
    if constexpr (kFinish) bias.take_rows(p, self, row0 + pass / 2 * 64, pass % 2);
#pragma unroll
    for (int g = 0; g < T::kCols / 32; ++g) {
      const unsigned place = part.chunk(lane % 8, g * 4 + lane / 8);
      alignas(4) Out x[8], old[8];
      auto& words = reinterpret_cast<unsigned(&)[4]>(x);
      if (p.read_c)
        load_matrices<false>(reinterpret_cast<unsigned(&)[4]>(old),
                             old_row + unsigned(g / 2) * apart +
                                 unsigned(((g % 2 * 4 + lane / 8) ^ (lane % 8)) * 16));
      const auto scaled = [&](int e) {
        const Acc product =
            (kFinish ? p.real_alpha : p.alpha) * sum_of((g * 4 + e / 2) * 4 + e % 2);
        const Acc beta = kFinish ? p.real_beta : p.beta;
        return p.read_c ? multiply_add(beta, widen(old[e]), product) : product;
      };
      if constexpr (kFinish) {
        float y[8];
        finish_sums(p, bias, g * 32, y, scaled);
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = narrow<Out>(y[e]);
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = narrow<Out>(scaled(e));
      }
      store_matrices(place, words[0], words[1], words[2], words[3]);
    }
    __syncwarp();
    part.store();
    __syncwarp();
  }
}

/// The same for a C of 32 bits: by way of shared memory, so that a warp accesses rows of 64
/// columns, of which a lane has two, 32 apart. Elements of C are kept as they were read until all
/// are asked for: taken apart at once, each would be waited for. A loop, in which sums move down.
template <class T, class Out, bool kFinish, class Acc>
__device__ void write_elements(const Problem<Acc>& p, const Consumer& self, Sums<T, Acc>& d,
                               std::int64_t row0, std::int64_t col0, int batch) {
  constexpr int kPassCols = 64, kSums = kPassCols / 2, kAcross = T::kCols / kPassCols;
  constexpr int kRows = 16, kAtOnce = 8, kApart = 32;  // rows of a warp
  using Word = std::uint32_t;
  static_assert(sizeof(Out) == sizeof(Word));
  const int lane = self.thread % 32, warp_row = self.thread / 32 * kRows;
  auto& flat = reinterpret_cast<Acc(&)[T::kBlocks * T::kCols / 2]>(d);
  // A warp reads what it has written or, where rows are spread, what all have.
  const auto sync = [&] {
    if constexpr (T::kByRegisters)
      self.sync();
    else
      __syncwarp();
  };
#pragma unroll 1
  for (int pass = 0; pass < T::kBlocks * kAcross; ++pass) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      store_sums<T, kSums / 2>(self.out + unsigned(half * kBoxBytes), self,
                               &flat[half * (kSums / 2)]);
    sync();
    const std::int64_t from_row = row0 + pass / kAcross * 64;
    const std::int64_t from_col = col0 + pass % kAcross * kPassCols;
    const std::int64_t row = (T::kTurned ? from_col : from_row) + warp_row;
    const std::int64_t col = (T::kTurned ? from_row : from_col) + lane;
    const int rows = int(min(p.m - row, std::int64_t(kRows)));
    const bool of_lane[] = {col < p.n, col + kApart < p.n};
    Out* c = static_cast<Out*>(p.C.at(batch)) + row * p.ldc + col;
#pragma unroll 1
    for (int r0 = 0; r0 < kRows; r0 += kAtOnce, c += kAtOnce * p.ldc) {
      Word old[kAtOnce][2] = {};
      if (p.read_c) {
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r)
#pragma unroll
          for (int i = 0; i < 2; ++i)
            if (of_lane[i] && r0 + r < rows) old[r][i] = global<Word>(c + r * p.ldc + i * kApart);
      }
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        // The columns are in one box after another, 32 in each, or in squares.
        const int box_row = warp_row + r0 + r;
        const unsigned box =
            self.out + unsigned(T::kTurned ? warp_row / kSquare * kSquareBytes : 0);
        constexpr unsigned kNextBox = T::kTurned ? kSquareBytes : kBoxBytes;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const Acc sum = load_shared<Acc>(box + i * kNextBox + swizzled(box_row, lane * 4));
          if (!of_lane[i] || r0 + r >= rows) continue;
          put<kFinish>(p, sum, reinterpret_cast<Out*>(&old[r][i]), row + r0 + r, col + i * kApart);
          global<Word>(c + r * p.ldc + i * kApart) = old[r][i];
        }
      }
    }
    sync();
#pragma unroll
    for (int e = 0; e + kSums < T::kBlocks * T::kCols / 2; ++e) flat[e] = flat[e + kSums];
  }
}

template <class T, class Out, bool kFinish, class Acc>
__device__ void write(const Problem<Acc>& p, const Consumer& self, Sums<T, Acc>& d,
                      std::int64_t row0, std::int64_t col0, int batch,
                      const OldResults<T>& before) {
  const std::int64_t left = p.n - (T::kTurned ? row0 : col0);  // of C's columns
  constexpr int kWidth = T::kTurned ? T::kRowsEach : T::kCols;
  if (p.boxes && !p.read_c && (left >= kWidth || left * sizeof(Out) % 16 == 0))
    return write_boxes<T, Out, kFinish>(p, self, d, row0, col0, batch);
  if (p.boxes) {  // in which other tiles may have gone
    if (self.thread == 0) wait_stores_read<0>();
    self.sync();
  }
  if constexpr (sizeof(Out) == 2)
    write_rows<T, Out, kFinish>(p, self, d, row0, col0, batch, before);
  else
    write_elements<T, Out, kFinish>(p, self, d, row0, col0, batch);
}

/// f<Out, kFinish>() for the problem's C.
template <class T, class In, class F>
__host__ __device__ void with_output(const Problem<Sum<In>>& p, F&& f) {
  if constexpr (T::kPlain) {
    p.finishes ? f.template operator()<In, true>() : f.template operator()<In, false>();
  } else {
    if constexpr (kFinishes<In>) {
      if (p.finishes) {
        if (p.wide)
          f.template operator()<float, true>();
        else if constexpr (kNarrow<In>)
          f.template operator()<In, true>();
        return;
      }
    }
    if constexpr (std::is_same_v<In, Residues>)
      f.template operator()<std::uint8_t, false>();
    else if (p.wide)
      f.template operator()<WideOut<In>, false>();
    else if constexpr (kNarrow<In>)
      f.template operator()<In, false>();
  }
}

/// Sums of a slice lie by block of the cluster, consumer, block of 64 rows, 8 columns and thread,
/// who has four of these: so many fours.
template <class T>
constexpr int kFours = T::kRows* T::kCols / 4;

/// The consumer's sums of its block's share of a tile become those of all slices, added up in their
/// order, as the blocks of the cluster have left them for this thread from `place` on. Many reads
/// of others' shared memory are under way at once.
template <class T, class Acc>
__device__ void gather_slices(Sums<T, Acc>& d, unsigned place, const Share& share) {
  constexpr int kFoursAcross = T::kCols / 8, kAtOnce = 8;
#pragma unroll
  for (int i = 0; i < T::kBlocks; ++i)
#pragma unroll
    for (int j = 0; j < kFoursAcross; j += kAtOnce) {
      if (!share.has<T>(i, j * 8)) continue;
#pragma unroll 1
      for (unsigned s = 0; s < share.blocks; ++s) {
        Vector<Acc> fours[kAtOnce];
#pragma unroll
        for (int u = 0; u < kAtOnce && j + u < kFoursAcross; ++u)
          fours[u] = load_shared_of<Vector<Acc>>(
              place + unsigned((i * kFoursAcross + j + u) * kWarpgroup) * unsigned(sizeof(uint4)),
              s);
#pragma unroll
        for (int u = 0; u < kAtOnce && j + u < kFoursAcross; ++u)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            Acc& sum = d[i][(j + u) * 4 + e];
            sum = s == 0 ? fours[u].e[e] : sum + fours[u].e[e];
          }
      }
    }
}

template <class In, class T, class Acc>
__device__ void finish(const Problem<Acc>& p, const Consumer& self, const Schedule::Item& item,
                       const InCluster& in, Sums<T, Acc>& d, const OldResults<T>& before) {
  const int share = T::kAlternating ? 0 : self.number;  // of the tile
  const std::int64_t row0 =
      (std::int64_t(item.row) * in.rows + in.row) * T::kRows + share * T::kRowsEach;
  const std::int64_t col0 = (std::int64_t(item.col) * in.cols + in.col) * T::kCols;
  const bool inside = row0 < rows_of<T>(p) && col0 < cols_of<T>(p);
  Share of_tile = {};
  if (kCuts<In> && !T::kAcross && item.cut) {
    auto* to = reinterpret_cast<Vector<Acc>*>(p.sums) +
               (std::int64_t(item.slice) * p.schedule.cluster + in.row) * kFours<T>;
    if constexpr (T::kJoins)
      to = static_cast<Vector<Acc>*>(__cvta_shared_to_generic(before.stages));
    const int first = share * (kFours<T> / kConsumers) + self.thread;
    const int cols = int(min(cols_of<T>(p) - col0, std::int64_t(T::kCols)));
#pragma unroll
    for (int i = 0; i < T::kBlocks; ++i) {
      if (row0 + i * 64 + self.row<T>(0) >= rows_of<T>(p)) continue;
#pragma unroll
      for (int j = 0; j < T::kCols / 8; ++j)
        if (j * 8 < cols)
          to[first + (i * (T::kCols / 8) + j) * kWarpgroup] = {
              {d[i][j * 4], d[i][j * 4 + 1], d[i][j * 4 + 2], d[i][j * 4 + 3]}};
    }
    if constexpr (!T::kJoins) {
      return;
    } else {
      sync_cluster();
      of_tile = {p.schedule.slices, item.slice % p.schedule.slices};
      if (inside)
        gather_slices<T>(d, before.stages + unsigned(first) * unsigned(sizeof(uint4)), of_tile);
    }
  }
  if (!inside) return;
  if constexpr (kScaled<In>) undo_scaling<T>(p, self, d, row0, col0, item.batch);
  with_output<T, In>(p, [&]<class Out, bool kFinish>() {
    if constexpr (kOnlyBoxes<T, In>)
      write_boxes<T, Out, kFinish>(p, self, d, row0, col0, item.batch, of_tile);
    else
      write<T, Out, kFinish>(p, self, d, row0, col0, item.batch, before);
  });
}

/// C of the tiles that are cut along k: the sum of the slices in their order. A thread has four
/// sums.
template <class T, class In, class Out, bool kFinish>
__global__ void __launch_bounds__(256) add_slices(const __grid_constant__ Problem<Sum<In>> p) {
  const Schedule& s = p.schedule;
  const unsigned number = blockIdx.x / (kFours<T> / 256);  // of a block's tile among those cut
  const int four = int(blockIdx.x % (kFours<T> / 256) * 256 + threadIdx.x);
  const unsigned cluster = number / s.cluster, rank = number % s.cluster;
  const Schedule::Item item = s[s.whole + cluster * s.slices];
  const int thread = four % kWarpgroup, j = four / kWarpgroup % (T::kCols / 8);
  const int block = four / kWarpgroup / (T::kCols / 8);  // of 64 rows
  const std::int64_t row0 = (std::int64_t(item.row) * s.cluster + rank) * T::kRows + block * 64;
  const std::int64_t col = std::int64_t(item.col) * T::kCols + j * 8 + thread % 4 * 2;
  const int inside = int(min(cols_of<T>(p) - col, std::int64_t(2)));
  if (row0 + row_of<T>(thread, 0) >= rows_of<T>(p) || inside <= 0) return;
  const std::int64_t first = std::int64_t(cluster) * s.slices;
  const auto* const from = reinterpret_cast<const Vector<Sum<In>>*>(p.sums) + four;
  const auto of_slice = [&](unsigned i) {
    return from[((first + i) * s.cluster + rank) * kFours<T>];
  };
  wait_for_earlier_kernels();
  if constexpr (kPlanesOf < In >> 1)
    if (*p.left) return;
  Vector<Sum<In>> sum = of_slice(0);
  constexpr unsigned kAtOnce = 8;  // under way
#pragma unroll 1
  for (unsigned i = 1; i < s.slices; i += kAtOnce) {
    Vector<Sum<In>> more[kAtOnce];
#pragma unroll
    for (unsigned u = 0; u < kAtOnce; ++u)
      if (i + u < s.slices) more[u] = of_slice(i + u);
#pragma unroll
    for (unsigned u = 0; u < kAtOnce; ++u)
      if (i + u < s.slices)
#pragma unroll
        for (int e = 0; e < 4; ++e) sum.e[e] += more[u].e[e];
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = row0 + row_of<T>(thread, half);
    if (row >= rows_of<T>(p)) continue;
    if constexpr (kScaled<In>)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        sum.e[half * 2 + e] =
            times_power_of_2(sum.e[half * 2 + e], -scaling_of_row(p, item.batch, row) -
                                                      scaling_of_col(p, item.batch, col + e));
    const std::int64_t i = T::kTurned ? col : row, j = T::kTurned ? row : col;
    constexpr int kDown = T::kTurned ? 1 : 0, kOn = 1 - kDown;  // to the other one
    Out* const c = static_cast<Out*>(p.C.at(item.batch)) + i * p.ldc + j;
    if (!T::kTurned && p.boxes && inside > 1) {  // pairs are aligned
      Vector<Out, 2> pair = {};
      if (p.read_c) pair = *reinterpret_cast<const Vector<Out, 2>*>(c);
#pragma unroll
      for (int e = 0; e < 2; ++e) put<kFinish>(p, sum.e[half * 2 + e], &pair.e[e], i, j + e);
      *reinterpret_cast<Vector<Out, 2>*>(c) = pair;
      continue;
    }
    put<kFinish>(p, sum.e[half * 2], c, i, j);
    if (inside > 1)
      put<kFinish>(p, sum.e[half * 2 + 1], c + kDown * p.ldc + kOn, i + kDown, j + kOn);
  }
}

}  // namespace mblas::cuda::gemm::hopper
