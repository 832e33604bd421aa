// Floats and doubles, n and k of at most 64, many rows: A is read and C written once, which takes
// longer than the products of doubles, and no less than half as long as those of floats. So op(B)
// stays in a block's shared memory, and every warp brings pieces of A through a ring of its own, a
// slot of k at a time: no barrier stops the block, and while some warps wait for A or write C
// others multiply.
//
// A slot lies in shared memory as A does, along k or along the rows, on rows whose starts differ in
// their banks. Doubles are multiplied by the fp64 tensor cores, 16 rows a warp. Floats are
// multiplied eight columns and up to eight rows a lane, for which shared memory has to give lanes a
// float for every four products, as fast as it can: with four rows it was too slow, and 16 leave
// registers for eight warps only, which was no faster.
//
// On an H200 65536x64x64 takes 18.8 us of floats and 20.9 of doubles, without the products about
// 12.5 and 20, of which 4 are the kernel's beginning and end. Rings of more slots were slower:
// op(B) and the first slots wait behind what is asked for early.
#include "cuda/early.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace tall_file {

constexpr int kMostColumns = 64, kMostDepth = 64;  // of n and of k
// Of C; with a larger op(B) a warp has so much to do for a piece that tiles of fewer rows, which
// several warps share, are done sooner.
constexpr std::int64_t kLeastRows = 256, kLeastRowsLarge = 8192, kLarge = 64 * 32;
constexpr int kMostWarps = 12;
constexpr int kSlotDepth = 32, kStep = 4;  // of k

template <class T>
struct Problem : GemmProblem<T> {
  std::int64_t pieces = 0;
  int depth = 0;                              ///< k, as a multiple of kStep
  bool vectors_b = false, vectors_c = false;  ///< rows are accessed 16 bytes at a time
};

/// How a warp's lanes share a piece of kRows rows of C: each has kLines×kAcross vectors.
template <class T, int kColumns, bool kAlongK>
struct Share;

template <int kColumns, bool kAlongK>
struct Share<float, kColumns, kAlongK> {
  static constexpr int kSlots = 3;
  static constexpr int kRows = 32, kLanesN = kColumns / 8, kLanesM = 32 / kLanesN;
  static constexpr int kLines = kRows / kLanesM, kLineStep = kAlongK ? kLanesM : 1;
  static constexpr int kAcross = 2, kColumnStep = kColumns / 2;
  static constexpr int kPitchA = kAlongK ? kSlotDepth + 4 : kRows, kPitchB = kColumns + 4;

  int lane;
  float sum[kLines][8] = {};

  __device__ static int row_of(int lane) { return lane / kLanesN * (kAlongK ? 1 : kLines); }
  __device__ static int column_of(int lane) { return lane % kLanesN * 4; }

  __device__ Share(const float* /*b*/, int lane) : lane(lane) {}

  __device__ void multiply(const float* a, const float* b, const float* /*next_b*/) {
    a += row_of(lane) * (kAlongK ? kPitchA : 1);
    b += column_of(lane);
    Vector<float> right[kStep][2];
    const auto load_right = [&](int l) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        right[l][half] =
            *reinterpret_cast<const Vector<float>*>(b + l * kPitchB + half * kColumnStep);
    };
    const auto add = [&](int i, int l, float left) {
#pragma unroll
      for (int at = 0; at < 8; ++at) {
        // There and back: each product shares an operand with the one before.
        const int j = (i + l) % 2 != 0 ? 7 - at : at;
        sum[i][j] += left * right[l][j / 4].e[j % 4];
      }
    };
    if constexpr (kAlongK) {
#pragma unroll
      for (int l = 0; l < kStep; ++l) load_right(l);
#pragma unroll
      for (int i = 0; i < kLines; ++i) {
        const auto left = *reinterpret_cast<const Vector<float>*>(a + i * kLineStep * kPitchA);
#pragma unroll
        for (int l = 0; l < kStep; ++l) add(i, l, left.e[l]);
      }
    } else {
      constexpr int kEach = kLines < 4 ? kLines : 4;
#pragma unroll
      for (int l = 0; l < kStep; ++l) {
        load_right(l);
#pragma unroll
        for (int first = 0; first < kLines; first += kEach) {
          const auto left = *reinterpret_cast<const Vector<float, kEach>*>(a + l * kPitchA + first);
#pragma unroll
          for (int i = 0; i < kEach; ++i) add(first + i, l, left.e[i]);
        }
      }
    }
  }
  __device__ Vector<float> at(int i, int j) const {
    const float* const x = sum[i] + 4 * j;
    return {x[0], x[1], x[2], x[3]};
  }
};

template <int kColumns, bool kAlongK>
struct Share<double, kColumns, kAlongK> {
  static constexpr int kSlots = 2;
  static constexpr int kRows = 16, kTiles = kColumns / 8;
  static constexpr int kLines = 2, kLineStep = 8, kAcross = kTiles, kColumnStep = 8;
  static constexpr int kPitchA = (kAlongK ? kSlotDepth : kRows) + 4, kPitchB = kColumns + 4;

  int g, t;
  double sum[kTiles][4] = {};
  double right[kTiles];  // of the next step

  __device__ static int row_of(int lane) { return lane / 4; }
  __device__ static int column_of(int lane) { return lane % 4 * 2; }

  __device__ Share(const double* b, int lane) : g(lane / 4), t(lane % 4) {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) right[j] = b[t * kPitchB + 8 * j + g];
  }
  __device__ void multiply(const double* a, const double* /*b*/, const double* next_b) {
    double left[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      left[i] = a[kAlongK ? (8 * i + g) * kPitchA + t : t * kPitchA + 8 * i + g];
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      multiply_tile(sum[j], left, right[j]);
      right[j] = next_b[t * kPitchB + 8 * j + g];
    }
  }
  __device__ Vector<double> at(int i, int j) const { return {sum[j][2 * i], sum[j][2 * i + 1]}; }
};

template <class S, bool kAlongK>
inline constexpr int kSlotSize = S::kPitchA*(kAlongK ? S::kRows : kSlotDepth);

/// Asks for op(B), with zeros around it.
template <class T, class S, int kColumns, int kEach>
__device__ void fetch_b(const Problem<T>& p, T* to) {
  constexpr unsigned kCopies = kColumns / kEach, kNeighbours = 4;
  const auto* const B = static_cast<const T*>(p.B.at(0));
  const bool along_k = kEach == 1 && p.b.row == 1;  // neighbours in memory by neighbouring threads
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < unsigned(p.depth) * kCopies; i += blockDim.x) {
    const int l =
        int(along_k ? i / (kNeighbours * kCopies) * kNeighbours + i % kNeighbours : i / kCopies);
    const int j = int((along_k ? i / kNeighbours : i) % kCopies) * kEach;
    const int inside = l < p.k ? max(min(int(p.n) - j, kEach), 0) : 0;
    copy_async<kEach* int(sizeof(T))>(shared_address(to + l * S::kPitchB + j),
                                      inside > 0 ? B + l * p.b.row + j * p.b.col : B,
                                      inside * int(sizeof(T)));
  }
}

/// Asks for a slot of A, rows from `row0` and k from `k0` on; zeros for what is beyond k.
template <class T, class S, bool kAlongK, bool kVectors>
__device__ void fetch(const Problem<T>& p, std::int64_t row0, int k0, T* slot, int lane) {
  constexpr int kEach = kVectors ? kVector<T> : 1, kBytes = kEach * int(sizeof(T));
  // A line is a row, or all rows of one k; lanes copy kAcross vectors of kHop lines at a time.
  constexpr int kLength = kAlongK ? kSlotDepth : S::kRows;
  constexpr int kLines = kAlongK ? S::kRows : kSlotDepth;
  constexpr int kAcross = kLength / kEach, kHop = 32 / kAcross;
  static_assert(kAcross <= 32);
  const int rows = int(min(p.m - row0, std::int64_t(S::kRows))), left = int(p.k) - k0;
  const int first = lane / kAcross, at = lane % kAcross * kEach;
  const std::int64_t line = kAlongK ? p.a.row : p.a.col;
  const T* const A = static_cast<const T*>(p.A.at(0)) + row0 * p.a.row + k0 * p.a.col;
  unsigned to = shared_address(slot + first * S::kPitchA + at);
  constexpr unsigned kTo = kHop * S::kPitchA * sizeof(T);

  if (rows == S::kRows && (left >= kSlotDepth || p.k % kStep == 0)) {
    if (kAlongK && at >= left) return;
    const T* from = A + first * line + at;
#pragma unroll
    for (int i = 0; i < kLines; i += kHop, to += kTo, from += kHop * line)
      if (kAlongK || i < left) copy_async<kBytes>(to, from);
    return;
  }
  const int inside = max(min((kAlongK ? left : rows) - at, kEach), 0);
  const int lines = kAlongK ? rows : min(p.depth - k0, kSlotDepth);
#pragma unroll 1
  for (int i = first; i < lines; i += kHop, to += kTo) {
    const bool any = inside > 0 && (kAlongK || i < left);
    copy_async<kBytes>(to, any ? A + i * line + at : A, any ? inside * int(sizeof(T)) : 0);
  }
}

/// The lane's number, read anew: what follows from it takes no registers before.
__device__ inline int lane_now() {
  int x;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(x));
  return x;
}

/// A lane's share of C: the first of its vectors, and how much from there on is inside.
template <class T>
struct Target {
  T* c;
  int rows, cols;
};
template <class S, class T>
__device__ Target<T> target_of(const Problem<T>& p, std::int64_t row0) {
  const int lane = lane_now(), i = S::row_of(lane), j = S::column_of(lane);
  return {static_cast<T*>(p.C.at(0)) + (row0 + i) * p.ldc + j,
          int(min(p.m - row0, std::int64_t(S::kRows))) - i, int(p.n) - j};
}

/// Asks for a lane's share of C, which is read when the products are there.
template <class S, class T>
__device__ void prefetch(const Problem<T>& p, const Target<T>& target) {
#pragma unroll
  for (int i = 0; i < S::kLines; ++i)
#pragma unroll
    for (int j = 0; j < S::kAcross; ++j)
      if (i * S::kLineStep < target.rows && j * S::kColumnStep < target.cols)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(target.c + i * S::kLineStep * p.ldc +
                                                      j * S::kColumnStep));
}

/// Writes a lane's share of C. kAll: all rows are inside, and vectors are whole.
template <bool kAll, bool kRead, class T, class S>
__device__ void finish(const Problem<T>& p, const S& share, const Target<T>& target) {
  constexpr int kV = kVector<T>, kVectors = 8;  // of C, read together
  constexpr int kAtOnce = S::kLines * S::kAcross < kVectors ? S::kLines : kVectors / S::kAcross;
  const std::int64_t step = S::kLineStep * p.ldc;
  T* c = target.c;
#pragma unroll
  for (int first = 0; first < S::kLines; first += kAtOnce, c += kAtOnce * step) {
    const auto each = [&](auto&& use) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
        for (int j = 0; j < S::kAcross; ++j)
          if (kAll || (first + i) * S::kLineStep < target.rows)
            if (j * S::kColumnStep < target.cols)
              use(i, j, c + i * step + j * S::kColumnStep, target.cols - j * S::kColumnStep);
    };
    Vector<T> old[kAtOnce][S::kAcross];
    if constexpr (kRead)
      each([&](int i, int j, const T* from, int inside) {
        if constexpr (kAll) {
          old[i][j] = *reinterpret_cast<const Vector<T>*>(from);
        } else {
#pragma unroll
          for (int e = 0; e < kV; ++e)
            if (e < inside) old[i][j].e[e] = from[e];
        }
      });
    each([&](int i, int j, T* to, int inside) {
      Vector<T> v = share.at(first + i, j);
#pragma unroll
      for (int e = 0; e < kV; ++e) {
        v.e[e] = p.alpha * v.e[e];
        if constexpr (kRead) v.e[e] = multiply_add(p.beta, old[i][j].e[e], v.e[e]);
      }
      if constexpr (kAll) {
        *reinterpret_cast<Vector<T>*>(to) = v;
      } else {
#pragma unroll
        for (int e = 0; e < kV; ++e)
          if (e < inside) to[e] = v.e[e];
      }
    });
  }
}

template <class T, int kColumns, bool kAlongK, bool kVectors>
__global__ void __launch_bounds__(32 * kMostWarps, 1)
    tall_kernel(const __grid_constant__ Problem<T> p) {
  using S = Share<T, kColumns, kAlongK>;
  constexpr int kSlots = S::kSlots, kSize = kSlotSize<S, kAlongK>;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const right = reinterpret_cast<T*>(memory);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  T* const ring = right + p.depth * S::kPitchB + warp * kSlots * kSize;
  const std::int64_t hop = std::int64_t(gridDim.x) * (blockDim.x / 32);
  std::int64_t piece = std::int64_t(gridDim.x) * warp + blockIdx.x;
  begin_early();

  std::int64_t next_piece = piece;
  int next_k = 0, next_slot = 0;
  const auto ask = [&] {
    if (next_piece < p.pieces)
      fetch<T, S, kAlongK, kVectors>(p, next_piece * S::kRows, next_k, ring + next_slot * kSize,
                                     lane);
    commit_copies();
    next_slot = next_slot + 1 == kSlots ? 0 : next_slot + 1;
    next_k += kSlotDepth;
    if (next_k >= p.depth) next_k = 0, next_piece += hop;
  };
  if (p.vectors_b)
    fetch_b<T, S, kColumns, kVector<T>>(p, right);
  else
    fetch_b<T, S, kColumns, 1>(p, right);
  commit_copies();
  ask();
  wait_copies<1>();
  __syncthreads();
#pragma unroll 1
  for (int i = 1; i < kSlots; ++i) ask();

  int slot = 0;
#pragma unroll 1
  for (; piece < p.pieces; piece += hop) {
    const std::int64_t row0 = piece * S::kRows;
    if (p.read_c) prefetch<S>(p, target_of<S>(p, row0));
    S share(right, lane);
#pragma unroll 1
    for (int k0 = 0; k0 < p.depth; k0 += kSlotDepth) {
      wait_copies<kSlots - 1>();
      __syncwarp();
      const T* left = ring + slot * kSize;
#pragma unroll 1
      for (int k = k0, end = min(k0 + kSlotDepth, p.depth); k < end; k += kStep) {
        const int next = k + kStep < p.depth ? k + kStep : 0;
        share.multiply(left, right + k * S::kPitchB, right + next * S::kPitchB);
        left += kStep * (kAlongK ? 1 : S::kPitchA);
      }
      __syncwarp();
      ask();
      slot = slot + 1 == kSlots ? 0 : slot + 1;
    }

    const auto target = target_of<S>(p, row0);
    const bool all = row0 + S::kRows <= p.m && p.vectors_c;
    if (all && !p.read_c)
      finish<true, false>(p, share, target);
    else if (all)
      finish<true, true>(p, share, target);
    else if (!p.read_c)
      finish<false, false>(p, share, target);
    else
      finish<false, true>(p, share, target);
  }
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::f64) return "for f32 and f64";
  if (args.n > kMostColumns || args.k > kMostDepth || args.k == 0 || args.m < kLeastRows ||
      args.batch > 1)
    return "for one product of at least 256 rows, n and k of at most 64";
  if (args.n * args.k > kLarge && args.m < kLeastRowsLarge)
    return "for at least 8192 rows where op(B) has more than 2048 elements";
  if (args.in == DType::f64 && device.capability < 80) return "fp64 tensor cores came with 8.0";
  return declines_emulation(args, device);
}

template <class T, int kColumns, bool kAlongK, bool kVectors>
void launch_tall(Problem<T> p, const CudaQueue& queue) {
  using S = Share<T, kColumns, kAlongK>;
  constexpr auto kKernel = tall_kernel<T, kColumns, kAlongK, kVectors>;
  p.pieces = ceil_div(p.m, S::kRows);
  const std::int64_t units = std::max(queue.device().compute_units, 1);
  const auto bytes = [&](int warps) {
    return (p.depth * S::kPitchB + warps * S::kSlots * kSlotSize<S, kAlongK>)*int(sizeof(T));
  };
  // As many warps as there is room for, the same number for each scheduler; or eight, where fewer
  // of those have nothing to do in the last turn.
  int warps = kMostWarps;
  while (warps > 4 && std::size_t(bytes(warps)) > queue.device().shared_memory) warps -= 4;
  const auto in_turns = [&](int w) { return ceil_div(p.pieces, units * w) * w; };
  if (warps > 8 && in_turns(8) < in_turns(warps)) warps = 8;

  launch_early(After::Anything, queue, kKernel, unsigned(std::min(p.pieces, units)), 32 * warps,
               std::size_t(bytes(warps)), p);
}

template <class T>
void run_as(const GemmArgs& args, const CudaQueue& queue) {
  Problem<T> p{gemm_problem<T, T>(args, queue, 1, 1)};
  const int size = size_of(args.in);
  p.depth = int(ceil_div(args.k, kStep)) * kStep;
  p.vectors_b = p.b.col == 1 && access_bits(args.B, 1, size) % 16 == 0;
  p.vectors_c = args.n % kVector<T> == 0 && access_bits(args.C, 1, size) % 16 == 0;
  const bool along_k = p.a.col == 1, vectors = access_bits(args.A, 1, size) % 16 == 0;
  const auto with_columns = [&]<int kColumns>() {
    if (along_k && vectors) return launch_tall<T, kColumns, true, true>(p, queue);
    if (along_k) return launch_tall<T, kColumns, true, false>(p, queue);
    if (vectors) return launch_tall<T, kColumns, false, true>(p, queue);
    launch_tall<T, kColumns, false, false>(p, queue);
  };
  if (args.n <= 16) return with_columns.template operator()<16>();
  if (args.n <= 32) return with_columns.template operator()<32>();
  with_columns.template operator()<kMostColumns>();
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
  return {"tall", "many rows, n and k up to 64: op(B) stays, A streams by", declines,
          gemm_pointer_bytes, run};
}

}  // namespace mblas::cuda::gemm
