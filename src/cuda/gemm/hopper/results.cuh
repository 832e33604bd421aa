// From the sums in a consumer's registers to C, or to where slices are added up.
#pragma once

#include <algorithm>

#include "cuda/gemm/hopper/fragments.cuh"
#include "cuda/gemm/ozaki/moduli.hpp"

namespace mblas::cuda::gemm::hopper {

/// Neighbours of a row.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T of[2];
};

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

/// The epilogue of the sums that a thread has of a box from (row0, col0) on: pairs of neighbours in
/// a row, by turns of one row and of the other.
template <class T, class Out, int kSums, class Acc>
__device__ void finish_box(const Problem<Acc>& p, const Consumer& self, const Acc* sums,
                           float (&x)[kSums], std::int64_t row0, std::int64_t col0) {
  const Finish<float>& f = p.finish;
  // The bias from `first` of `count` on; 0 outside of C.
  const auto bias_from = [&](std::int64_t first, std::int64_t count) {
    const int left = int(min(count - first, std::int64_t(T::kCols)));
    return [from = static_cast<const Out*>(f.bias) + first, left](int i) {
      return i < left ? float(widen(from[i])) : 0;
    };
  };
  if (f.per == (T::kTurned ? BiasPer::Column : BiasPer::Row)) {
    const int upper = self.row<T>(0), lower = self.row<T>(1);
    const auto bias = bias_from(row0, rows_of<T>(p));
    const float of_rows[] = {bias(upper), bias(lower)};
#pragma unroll
    for (int e = 0; e < kSums; ++e) x[e] = p.real_alpha * real(sums[e]) + of_rows[e / 2 % 2];
  } else if (f.per != BiasPer::None) {
    const auto bias = bias_from(col0 + self.col(), cols_of<T>(p));
#pragma unroll
    for (int e = 0; e < kSums; e += 4)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const float of_col = bias(e * 2 + c);
        x[e + c] = p.real_alpha * real(sums[e + c]) + of_col;
        x[e + c + 2] = p.real_alpha * real(sums[e + c + 2]) + of_col;
      }
  } else {
#pragma unroll
    for (int e = 0; e < kSums; ++e) x[e] = p.real_alpha * real(sums[e]);
  }
  if (f.activation == Activation::Relu) {
#pragma unroll
    for (int e = 0; e < kSums; ++e) x[e] = activated(Activation::Relu, x[e]);
  } else if (f.activation == Activation::Gelu) {
#pragma unroll
    for (int e = 0; e < kSums; ++e) x[e] = activated(Activation::Gelu, x[e]);
  }
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

/// The sums, from (row0, col0) of matrix `batch` of C, or C^T, on, go to C as boxes. beta is 0.
template <class T, class Out, bool kFinish, class Acc>
__device__ void write_boxes(const Problem<Acc>& p, const Consumer& self, const Sums<T, Acc>& d,
                            std::int64_t row0, std::int64_t col0, int batch) {
  constexpr int kBoxCols = 128 / int(sizeof(Out)), kSums = kBoxCols / 2;
  constexpr int kAcross = T::kCols / kBoxCols;
  constexpr int kBoxes = std::min(T::kBoxes, T::kBlocks * kAcross);  // a tile begins with the first
  constexpr int kCopies = T::kTurned ? 2 : 1;                        // of a box
#pragma unroll
  for (int box = 0; box < T::kBlocks * kAcross; ++box) {
    const int i = box / kAcross, j = box % kAcross;
    const unsigned to = self.out + unsigned(box % kBoxes * kBoxBytes);
    constexpr int kWords = kSums * int(sizeof(Out)) / 4;
    alignas(4) Out out[kSums];
    auto& words = reinterpret_cast<unsigned(&)[kWords]>(out);
    if constexpr (sizeof(Out) == 1) {
      residues_of<kSums>(&d[i][j * kSums], words, batch);
    } else if constexpr (kFinish) {
      float x[kSums];
      finish_box<T, Out>(p, self, &d[i][j * kSums], x, row0 + i * 64, col0 + j * kBoxCols);
#pragma unroll
      for (int e = 0; e < kSums; ++e) out[e] = narrow<Out>(x[e]);
    } else {
#pragma unroll
      for (int e = 0; e < kSums; ++e) out[e] = narrow<Out>(p.alpha * d[i][j * kSums + e]);
    }
    if (self.thread == 0) wait_stores_read<(kBoxes - 1) * kCopies>();  // from this box none
    self.sync();
    if constexpr (sizeof(Out) <= 2) {
      // A lane's share of four 8x8 matrices of 16 bits: 16 rows, 32 bytes of each.
      const int lane = self.thread % 32, row = self.thread / 32 * 16 + lane % 16;
#pragma unroll
      for (int g = 0; g < kWords / 4; ++g)
        store_matrices(to + swizzled(row, g * 32 + lane / 16 * 16), words[g * 4], words[g * 4 + 1],
                       words[g * 4 + 2], words[g * 4 + 3]);
    } else {
      store_sums<T, kSums>(to, self, out);
    }
    fence_shared_for_copies();
    self.sync();
    if (self.thread == 0) {
      const int row = int(row0) + i * 64, col = int(col0) + j * kBoxCols;
      if constexpr (T::kTurned)
        for (int half = 0; half < 2; ++half)
          store_box(to + unsigned(half * kSquareBytes), p.map_c, row + half * kSquare, col, batch);
      else
        store_box(to, p.map_c, col, row, batch);
    }
  }
}

/// What lies at `p` in global memory, as a T.
template <class T>
__device__ T& global(const void* p) {
  __builtin_assume(__isGlobal(p));
  return *static_cast<T*>(const_cast<void*>(p));
}

/// The same for every C and beta: by way of shared memory, so that a warp accesses rows of 64
/// columns. A lane has two elements of each: kPairs: neighbours, which it accesses together; else
/// 32 columns apart. Elements of C are kept as they were read until all are asked for: taken apart
/// at once, each would be waited for. A loop, for which the sums move down in their registers:
/// unrolled, it takes longer to fetch than to execute.
template <class T, bool kPairs, class Out, bool kFinish, class Acc>
__device__ void write_elements(const Problem<Acc>& p, const Consumer& self, Sums<T, Acc>& d,
                               std::int64_t row0, std::int64_t col0, int batch) {
  constexpr int kPassCols = 64, kSums = kPassCols / 2, kAcross = T::kCols / kPassCols;
  static_assert(!kPairs || (sizeof(Out) == 2 && !T::kTurned));
  constexpr int kRows = 16, kAtOnce = kPairs ? 16 : 8;  // of a warp
  using Half = std::conditional_t<sizeof(Out) == 2, std::uint16_t, std::uint32_t>;
  using Word = std::uint32_t;
  const int lane = self.thread % 32, warp_row = self.thread / 32 * kRows;
  const int lane_col = kPairs ? lane * 2 : lane, apart = kPairs ? 1 : 32;
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
    const std::int64_t col = (T::kTurned ? from_row : from_col) + lane_col;
    const int rows = int(min(p.m - row, std::int64_t(kRows)));
    const bool first = col < p.n, second = col + apart < p.n;
    Out* c = static_cast<Out*>(p.C.at(batch)) + row * p.ldc + col;
#pragma unroll 1
    for (int r0 = 0; r0 < kRows; r0 += kAtOnce, c += kAtOnce * p.ldc) {
      Word old[kAtOnce] = {};
      Half old_first[kAtOnce] = {}, old_second[kAtOnce] = {};
      if (p.read_c) {
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) {
          const Out* const at = c + r * p.ldc;
          const bool inside = r0 + r < rows;
          if (kPairs && second && inside) old[r] = global<Word>(at);
          if ((kPairs ? first && !second : first) && inside) old_first[r] = global<Half>(at);
          if (!kPairs && second && inside) old_second[r] = global<Half>(at + apart);
        }
      }
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        // The columns are in one box after another, 32 in each, or in squares.
        const int box_row = warp_row + r0 + r;
        const unsigned box =
            self.out + unsigned(T::kTurned ? warp_row / kSquare * kSquareBytes : 0);
        constexpr unsigned kNextBox = T::kTurned ? kSquareBytes : kBoxBytes;
        Pair<Acc> sums;
        if constexpr (kPairs) {
          sums = load_shared<Pair<Acc>>(box + unsigned(lane / 16) * kNextBox +
                                        swizzled(box_row, lane % 16 * 8));
        } else {
          sums.of[0] = load_shared<Acc>(box + swizzled(box_row, lane * 4));
          sums.of[1] = load_shared<Acc>(box + kNextBox + swizzled(box_row, lane * 4));
        }
        Out* const at = c + r * p.ldc;
        const bool inside = r0 + r < rows;
        if (kPairs && second && inside) {
          auto& pair = reinterpret_cast<Pair<Out>&>(old[r]);
          put<kFinish>(p, sums.of[0], &pair.of[0], row + r0 + r, col);
          put<kFinish>(p, sums.of[1], &pair.of[1], row + r0 + r, col + 1);
          global<Word>(at) = old[r];
        }
        if ((kPairs ? first && !second : first) && inside) {
          put<kFinish>(p, sums.of[0], reinterpret_cast<Out*>(&old_first[r]), row + r0 + r, col);
          global<Half>(at) = old_first[r];
        }
        if (!kPairs && second && inside) {
          put<kFinish>(p, sums.of[1], reinterpret_cast<Out*>(&old_second[r]), row + r0 + r,
                       col + apart);
          global<Half>(at + apart) = old_second[r];
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
                      std::int64_t row0, std::int64_t col0, int batch) {
  const std::int64_t left = p.n - (T::kTurned ? row0 : col0);  // of C's columns
  constexpr int kWidth = T::kTurned ? T::kRowsEach : T::kCols;
  if (p.way == Way::Boxes && !p.read_c && (left >= kWidth || left * sizeof(Out) % 16 == 0))
    return write_boxes<T, Out, kFinish>(p, self, d, row0, col0, batch);
  if (p.way == Way::Boxes) {  // in which other tiles may have gone
    if (self.thread == 0) wait_stores_read<0>();
    self.sync();
  }
  if constexpr (sizeof(Out) == 2)
    if (p.way != Way::Elements)
      return write_elements<T, true, Out, kFinish>(p, self, d, row0, col0, batch);
  write_elements<T, false, Out, kFinish>(p, self, d, row0, col0, batch);
}

/// f<Out, kFinish>() for the problem's C.
template <class In, class F>
__host__ __device__ void with_output(const Problem<Sum<In>>& p, F&& f) {
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

/// Four sums that a thread of a consumer keeps of a slice.
template <class Acc>
struct alignas(16) Four {
  Acc of[4];
};

/// Sums of a slice lie by block of the cluster, consumer, block of 64 rows, 8 columns and thread:
/// so many fours.
template <class T>
constexpr int kFours = T::kRows* T::kCols / 4;

template <class In, class T, class Acc>
__device__ void finish(const Problem<Acc>& p, const Consumer& self, const Schedule::Item& item,
                       unsigned rank, Sums<T, Acc>& d) {
  const int share = T::kAlternating ? 0 : self.number;  // of the tile
  if (kCuts<In> && item.cut) {
    auto* const to = reinterpret_cast<Four<Acc>*>(p.sums) +
                     (std::int64_t(item.slice) * p.schedule.cluster + rank) * kFours<T> +
                     share * (kFours<T> / kConsumers) + self.thread;
#pragma unroll
    for (int i = 0; i < T::kBlocks; ++i)
#pragma unroll
      for (int j = 0; j < T::kCols / 8; ++j)
        to[(i * (T::kCols / 8) + j) * kWarpgroup] = {d[i][j * 4], d[i][j * 4 + 1], d[i][j * 4 + 2],
                                                     d[i][j * 4 + 3]};
    return;
  }
  const std::int64_t row0 =
      (std::int64_t(item.row) * p.schedule.cluster + rank) * T::kRows + share * T::kRowsEach;
  const std::int64_t col0 = std::int64_t(item.col) * T::kCols;
  if (row0 >= rows_of<T>(p)) return;
  if constexpr (kScaled<In>) undo_scaling<T>(p, self, d, row0, col0, item.batch);
  with_output<In>(p, [&]<class Out, bool kFinish>() {
    if constexpr (std::is_same_v<In, Residues>)
      write_boxes<T, Out, kFinish>(p, self, d, row0, col0, item.batch);
    else
      write<T, Out, kFinish>(p, self, d, row0, col0, item.batch);
  });
}

/// C of the tiles that are cut along k: the sum of the slices in their order. A thread has four
/// sums.
template <class T, class In, class Out, bool kFinish>
__global__ void __launch_bounds__(256) add_slices(const __grid_constant__ Problem<Sum<In>> p) {
  wait_for_earlier_kernels();
  if constexpr (kPlanesOf < In >> 1)
    if (*p.left) return;
  const Schedule& s = p.schedule;
  const unsigned number = blockIdx.x / (kFours<T> / 256);  // of a block's tile among those cut
  const int four = int(blockIdx.x % (kFours<T> / 256) * 256 + threadIdx.x);
  const unsigned cluster = number / s.cluster, rank = number % s.cluster;
  const std::int64_t first = std::int64_t(cluster) * s.slices;
  const auto* const from = reinterpret_cast<const Four<Sum<In>>*>(p.sums) + four;
  const auto of_slice = [&](unsigned i) {
    return from[((first + i) * s.cluster + rank) * kFours<T>];
  };
  Four<Sum<In>> sum = of_slice(0);
#pragma unroll 4
  for (unsigned i = 1; i < s.slices; ++i) {
    const Four<Sum<In>> more = of_slice(i);
#pragma unroll
    for (int e = 0; e < 4; ++e) sum.of[e] += more.of[e];
  }
  const Schedule::Item item = s[s.whole + cluster * s.slices];
  const int thread = four % kWarpgroup, j = four / kWarpgroup % (T::kCols / 8);
  const int block = four / kWarpgroup / (T::kCols / 8);  // of 64 rows
  const std::int64_t row0 = (std::int64_t(item.row) * s.cluster + rank) * T::kRows + block * 64;
  const std::int64_t col = std::int64_t(item.col) * T::kCols + j * 8 + thread % 4 * 2;
  const int inside = int(min(cols_of<T>(p) - col, std::int64_t(2)));
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = row0 + row_of<T>(thread, half);
    if (row >= rows_of<T>(p) || inside <= 0) continue;
    if constexpr (kScaled<In>)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        sum.of[half * 2 + e] =
            times_power_of_2(sum.of[half * 2 + e], -scaling_of_row(p, item.batch, row) -
                                                       scaling_of_col(p, item.batch, col + e));
    const std::int64_t i = T::kTurned ? col : row, j = T::kTurned ? row : col;
    constexpr int kDown = T::kTurned ? 1 : 0, kOn = 1 - kDown;  // to the other one
    Out* const c = static_cast<Out*>(p.C.at(item.batch)) + i * p.ldc + j;
    put<kFinish>(p, sum.of[half * 2], c, i, j);
    if (inside > 1)
      put<kFinish>(p, sum.of[half * 2 + 1], c + kDown * p.ldc + kOn, i + kDown, j + kOn);
  }
}

}  // namespace mblas::cuda::gemm::hopper
