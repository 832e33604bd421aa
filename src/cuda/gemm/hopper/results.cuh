// From the sums in a consumer's registers to C, or to where slices are added up.
#pragma once

#include <algorithm>

#include "cuda/gemm/hopper/problem.cuh"
#include "cuda/gemm/ozaki/moduli.hpp"

namespace mblas::cuda::gemm::hopper {

/// Neighbours of a row.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T of[2];
};

/// What a consumer knows of its threads, and its boxes for results.
struct Consumer {
  int number;    ///< of the consumers
  int thread;    ///< of the warpgroup
  unsigned out;  ///< boxes in shared memory

  __device__ int row() const { return thread / 32 * 16 + thread % 32 / 4; }  ///< the first one
  __device__ int col() const { return thread % 4 * 2; }
  __device__ void sync() const { sync_named(1 + number, kWarpgroup); }
};

/// Where the bytes from `at` on of row `row` are in a swizzled box, up to the next multiple of 16.
__device__ inline unsigned swizzled(int row, int at) {
  return unsigned(row * 128 + ((at / 16 ^ row % 8) * 16) + at % 16);
}

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
    of_rows[i / 2][i % 2] = scaling_of_row(p, batch, row0 + self.row() + i / 2 * 64 + i % 2 * 8);
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

/// The number of the bias that element (row, col) of C is given; 0 outside of C.
template <class Out, class Acc>
__device__ float bias_of(const Problem<Acc>& p, std::int64_t row, std::int64_t col) {
  const bool by_row = p.finish.per == BiasPer::Row;
  const std::int64_t i = by_row ? row : col;
  return i < (by_row ? p.m : p.n) ? bias_at<Out>(p.finish, i) : 0;
}

/// The epilogue of the sums that a thread has of a box whose first element is (row, col): pairs of
/// neighbours, by turns of one row and of that 8 below it.
template <class Out, int kSums, class Acc>
__device__ void finish_box(const Problem<Acc>& p, const Acc* sums, float (&x)[kSums],
                           std::int64_t row, std::int64_t col) {
  const Finish<float>& f = p.finish;
#pragma unroll
  for (int e = 0; e < kSums; ++e) x[e] = p.real_alpha * real(sums[e]);
  if (f.per == BiasPer::Row) {
    const float upper = bias_of<Out>(p, row, col), lower = bias_of<Out>(p, row + 8, col);
#pragma unroll
    for (int e = 0; e < kSums; ++e) x[e] += e / 2 % 2 ? lower : upper;
  } else if (f.per == BiasPer::Column) {
#pragma unroll
    for (int e = 0; e < kSums; e += 4) {
      const float first = bias_of<Out>(p, row, col + e * 2);
      const float second = bias_of<Out>(p, row, col + e * 2 + 1);
      x[e] += first;
      x[e + 1] += second;
      x[e + 2] += first;
      x[e + 3] += second;
    }
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

/// The sums, from (row0, col0) of matrix `batch` of C on, go to C as boxes. beta is 0.
template <class T, class Out, bool kFinish, class Acc>
__device__ void write_boxes(const Problem<Acc>& p, const Consumer& self, const Sums<T, Acc>& d,
                            std::int64_t row0, std::int64_t col0, int batch) {
  constexpr int kBoxCols = 128 / int(sizeof(Out)), kSums = kBoxCols / 2;
  constexpr int kAcross = T::kCols / kBoxCols;
  constexpr int kBoxes = std::min(T::kBoxes, T::kBlocks * kAcross);  // a tile begins with the first
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
      finish_box<Out>(p, &d[i][j * kSums], x, row0 + i * 64 + self.row(),
                      col0 + j * kBoxCols + self.col());
#pragma unroll
      for (int e = 0; e < kSums; ++e) out[e] = narrow<Out>(x[e]);
    } else {
#pragma unroll
      for (int e = 0; e < kSums; ++e) out[e] = narrow<Out>(p.alpha * d[i][j * kSums + e]);
    }
    if (self.thread == 0) wait_stores_read<kBoxes - 1>();  // the one from this box among them
    self.sync();
    if constexpr (sizeof(Out) <= 2) {
      // A lane's share of four 8x8 matrices of 16 bits: 16 rows, 32 bytes of each.
      const int lane = self.thread % 32, row = self.thread / 32 * 16 + lane % 16;
#pragma unroll
      for (int g = 0; g < kWords / 4; ++g)
        store_matrices(to + swizzled(row, g * 32 + lane / 16 * 16), words[g * 4], words[g * 4 + 1],
                       words[g * 4 + 2], words[g * 4 + 3]);
    } else {
#pragma unroll
      for (int e = 0; e < kSums; e += 2)
        store_shared(to + swizzled(self.row() + e / 2 % 2 * 8, (e / 4 * 8 + self.col()) * 4),
                     reinterpret_cast<const uint2&>(out[e]));
    }
    fence_shared_for_copies();
    self.sync();
    if (self.thread == 0)
      store_box(to, p.map_c, int(col0) + j * kBoxCols, int(row0) + i * 64, batch);
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
  static_assert(!kPairs || sizeof(Out) == 2);
  constexpr int kRows = 16, kAtOnce = kPairs ? 16 : 8;  // of a warp
  using Half = std::conditional_t<sizeof(Out) == 2, std::uint16_t, std::uint32_t>;
  using Word = std::uint32_t;
  const int lane = self.thread % 32, warp_row = self.thread / 32 * kRows;
  const int lane_col = kPairs ? lane * 2 : lane, apart = kPairs ? 1 : 32;
  auto& flat = reinterpret_cast<Acc(&)[T::kBlocks * T::kCols / 2]>(d);
#pragma unroll 1
  for (int pass = 0; pass < T::kBlocks * kAcross; ++pass) {
#pragma unroll
    for (int e = 0; e < kSums; e += 2)
      store_shared(self.out + unsigned(e / 16 * kBoxBytes) +
                       swizzled(self.row() + e / 2 % 2 * 8, (e % 16 / 4 * 8 + self.col()) * 4),
                   reinterpret_cast<const uint2&>(flat[e]));
    __syncwarp();
    const std::int64_t row = row0 + pass / kAcross * 64 + warp_row;
    const std::int64_t col = col0 + pass % kAcross * kPassCols + lane_col;
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
        // The columns are in one box after another, 32 in each.
        const int box_row = warp_row + r0 + r;
        Pair<Acc> sums;
        if constexpr (kPairs) {
          sums = load_shared<Pair<Acc>>(self.out + unsigned(lane / 16 * kBoxBytes) +
                                        swizzled(box_row, lane % 16 * 8));
        } else {
          sums.of[0] = load_shared<Acc>(self.out + swizzled(box_row, lane * 4));
          sums.of[1] = load_shared<Acc>(self.out + kBoxBytes + swizzled(box_row, lane * 4));
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
    __syncwarp();
#pragma unroll
    for (int e = 0; e + kSums < T::kBlocks * T::kCols / 2; ++e) flat[e] = flat[e + kSums];
  }
}

template <class T, class Out, bool kFinish, class Acc>
__device__ void write(const Problem<Acc>& p, const Consumer& self, Sums<T, Acc>& d,
                      std::int64_t row0, std::int64_t col0, int batch) {
  const std::int64_t left = p.n - col0;
  if (p.way == Way::Boxes && !p.read_c && (left >= T::kCols || left * sizeof(Out) % 16 == 0))
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
  if (row0 >= p.m) return;
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
  const std::int64_t row0 = (std::int64_t(item.row) * s.cluster + rank) * T::kRows + block * 64 +
                            thread / 32 * 16 + thread % 32 / 4;
  const std::int64_t col = std::int64_t(item.col) * T::kCols + j * 8 + thread % 4 * 2;
  const int inside = int(min(p.n - col, std::int64_t(2)));
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = row0 + 8 * half;
    if (row >= p.m || inside <= 0) continue;
    if constexpr (kScaled<In>)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        sum.of[half * 2 + e] =
            times_power_of_2(sum.of[half * 2 + e], -scaling_of_row(p, item.batch, row) -
                                                       scaling_of_col(p, item.batch, col + e));
    Out* const c = static_cast<Out*>(p.C.at(item.batch)) + row * p.ldc + col;
    put<kFinish>(p, sum.of[half * 2], c, row, col);
    if (inside > 1) put<kFinish>(p, sum.of[half * 2 + 1], c + 1, row, col + 1);
  }
}

}  // namespace mblas::cuda::gemm::hopper
