// Floats and doubles, n and k of at most 64, many rows: A is read and C written once, which takes
// longer than the products of doubles, and no less than half as long as those of floats. So op(B)
// stays in a block's shared memory, and every warp brings pieces of A through a ring of its own, a
// slot of k at a time: no barrier stops the block, and while some warps wait for A or write C
// others multiply.
//
// A slot lies in shared memory as A does, along k or along the rows, on rows whose starts differ in
// their banks. Doubles are multiplied by the fp64 tensor cores, 16 rows a warp. Floats are
// multiplied eight columns and up to eight rows a lane, for which shared memory has to give lanes a
// float for every four products: 16 rows leave registers for eight warps only, which was no
// faster. Unless `Pedantic` is asked for, Hopper's
// tensor cores take their place, with floats as three planes of bfloat16 (hopper/planes.cuh): op(B)
// is split by each block, A by each warp on its way to the registers. Where the magnitudes of a
// piece of A and of op(B) do not suit that, its warp multiplies as before, from memory.
//
// On an H200 65536x64x64 takes 18.8 us of floats and 20.9 of doubles, without the products about
// 12.5 and 20, of which 4 are the kernel's beginning and end. Rings of more slots were slower:
// op(B) and the first slots wait behind what is asked for early.
#include <string_view>

#include "cuda/early.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/pairs.cuh"
#include "cuda/gemm/planes.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace tall_file {

constexpr int kMostColumns = 64, kMostDepth = 64;  // of n and of k
// Of C; with a larger op(B) a warp has so much to do for a piece that tiles of fewer rows, which
// several warps share, are done sooner.
constexpr std::int64_t kLeastRows = 256, kLeastRowsLarge = 8192, kLarge = 64 * 32;
constexpr int kSlotDepth = 32;  // of k

template <class T>
struct Problem : GemmProblem<T> {
  std::int64_t pieces = 0;
  int depth = 0, size_b = 0;                  ///< k, as a multiple of the share's kStep
  bool vectors_b = false, vectors_c = false;  ///< rows are accessed 16 bytes at a time
  bool run_c = false;                         ///< rows of C follow one on another
};

/// The lane's number, read anew: what follows from it takes no registers before.
__device__ inline int lane_now() {
  int x;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(x));
  return x;
}

/// How products are computed.
enum class By { MultiplyAdds, Planes };
/// How A is copied. Run: its rows follow one on another, and a piece of them begins at a multiple
/// of 16 bytes whatever their length is: all of it comes by vectors and lies as it did.
enum class Copies { Elements, Vectors, Run };

/// How a warp's lanes share a piece of kRows rows of C: each has kLines×kAcross vectors. kStep of k
/// are multiplied at a time, of op(B) kStepB elements as it lies for that.
template <class T, By kBy, int kColumns, bool kAlongK>
struct Share;

template <int kColumns, bool kAlongK>
struct Share<float, By::MultiplyAdds, kColumns, kAlongK> {
  static constexpr int kSlots = 3, kMostWarps = 12, kStep = 4;
  static constexpr int kRows = 32, kLanesN = kColumns / 8, kLanesM = 32 / kLanesN;
  static constexpr int kLines = kRows / kLanesM, kLineStep = kAlongK ? kLanesM : 1;
  static constexpr int kAcross = 2, kColumnStep = kColumns / 2;
  static constexpr int kPitchA = kAlongK ? kSlotDepth + 4 : kRows, kPitchB = kColumns + 4;
  static constexpr int kStepB = kStep * kPitchB;

  int lane;
  float sum[kLines][8] = {};

  __device__ static int row_of(int lane) {
    return pairs::row(lane, kLanesN) * (kAlongK ? 1 : kLines);
  }
  __device__ static int column_of(int lane) { return pairs::col(lane, kLanesN) * 4; }

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
struct Share<double, By::MultiplyAdds, kColumns, kAlongK> {
  static constexpr int kSlots = 2, kMostWarps = 12, kStep = 4;
  static constexpr int kRows = 16, kTiles = kColumns / 8;
  static constexpr int kLines = 2, kLineStep = 8, kAcross = kTiles, kColumnStep = 8;
  static constexpr int kPitchA = (kAlongK ? kSlotDepth : kRows) + 4, kPitchB = kColumns + 4;
  static constexpr int kStepB = kStep * kPitchB;

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

/// Tile j of 8 columns has columns 4 t + 2 (j % 2) and the next one of its 16, so that a lane has
/// vectors of neighbours of two tiles.
template <int kColumns, bool kAlongK>
struct Share<float, By::Planes, kColumns, kAlongK> {
  static constexpr int kSlots = 4, kMostWarps = kColumns > 32 ? 12 : 16, kStep = 16;
  static constexpr int kRows = 16, kTiles = kColumns / 8;
  static constexpr int kLines = 2, kLineStep = 8, kAcross = kColumns / 16, kColumnStep = 16;
  static constexpr int kPitchA = kAlongK ? kSlotDepth + 8 : kRows + 4, kPitchB = kColumns + 4;
  static constexpr int kStepB = kTiles * 3 * 64;

  float sum[kTiles][4] = {}, small[kTiles][4] = {};  // of leading planes, and of the others
  Range range;                                       // of the lane's elements of A

  __device__ static int row_of(int lane) { return lane / 4; }
  __device__ static int column_of(int lane) { return lane % 4 * 4; }

  __device__ Share(const float* /*b*/, int /*lane*/) {}

  /// Splits op(B), in `floats`, into fragments by all threads of the block. Returns the range of
  /// what this one has split.
  __device__ static Range split(const float* floats, float* fragments, int depth) {
    Range range;
    for (int i = int(threadIdx.x); i < depth / kStep * kTiles * 32; i += int(blockDim.x)) {
      const int lane = i % 32, j = i / 32 % kTiles, step = i / 32 / kTiles;
      const int g = lane / 4, t = lane % 4;
      const int column = j / 2 * 16 + g / 2 * 4 + j % 2 * 2 + g % 2;
      const float* const from = floats + (step * kStep + 2 * t) * kPitchB + column;
      const float2 low = {from[0], from[kPitchB]};
      const float2 high = {from[8 * kPitchB], from[9 * kPitchB]};
      for (const float x : {low.x, low.y, high.x, high.y}) range.add(magnitude_bits(x));
      const SplitPair split_low(low), split_high(high);
#pragma unroll
      for (int plane = 0; plane < 3; ++plane)
        reinterpret_cast<uint2*>(
            fragments)[(((step * 3 + plane) * kTiles / 2 + j / 2) * 32 + lane) * 2 + j % 2] = {
            split_low.plane[plane], split_high.plane[plane]};
    }
    return range;
  }

  /// `rows`: of the piece that there are. kRun: `a` has rows of `pitch`, of which `inside` are
  /// left.
  template <bool kRun>
  __device__ void multiply(const float* a, const float* b, int rows, int pitch, int inside) {
    const int lane = lane_now(), g = lane / 4, t = lane % 4;
    unsigned left[3][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = g + i % 2 * 8, l = 2 * t + i / 2 * 8;
      float2 x;
      if constexpr (kRun)
        x = {l < inside ? a[row * pitch + l] : 0, l + 1 < inside ? a[row * pitch + l + 1] : 0};
      else if constexpr (kAlongK)
        x = *reinterpret_cast<const float2*>(a + row * kPitchA + l);
      else
        x = {a[l * kPitchA + row], a[(l + 1) * kPitchA + row]};
      // Rows beyond the last one are what was there before.
      if (row < rows) {
        range.add(magnitude_bits(x.x));
        range.add(magnitude_bits(x.y));
      }
      const SplitPair split(x);
#pragma unroll
      for (int plane = 0; plane < 3; ++plane) left[plane][i] = split.plane[plane];
    }
    // One plane of op(B) after another, and with each all tiles one after another: a product waits
    // for the one before it on the same sums.
    const auto* const right = reinterpret_cast<const uint4*>(b) + lane;
#pragma unroll
    for (int plane = 0; plane < 3; ++plane) {
      uint4 pair[kTiles / 2];  // of tiles
#pragma unroll
      for (int j = 0; j < kTiles / 2; ++j) pair[j] = right[(plane * kTiles / 2 + j) * 32];
      const auto add = [&](float(&to)[kTiles][4], const unsigned(&with)[4]) {
#pragma unroll
        for (int j = 0; j < kTiles / 2; ++j) {
          multiply_tile<__nv_bfloat16>(to[2 * j], with, pair[j].x, pair[j].y);
          multiply_tile<__nv_bfloat16>(to[2 * j + 1], with, pair[j].z, pair[j].w);
        }
      };
      if (plane == 0) {
        add(small, left[2]);
        add(sum, left[0]);
        add(small, left[1]);
      } else if (plane == 1) {
        add(small, left[1]);
        add(small, left[0]);
      } else {
        add(small, left[0]);
      }
    }
  }

  /// What the sums are, after the last step; by ordinary multiply-adds where `right` is the range
  /// of op(B), in `floats`, and planes do not suit it or A.
  __device__ void complete(const Problem<float>& p, std::int64_t row0, const float* floats,
                           const Range& right) {
    const int lane = lane_now(), g = lane / 4, t = lane % 4;
    if (suits_bf16_planes({range.of_warp(), right}, p.k)) {
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[j][e] += small[j][e];
      return;
    }
    const auto* const A = static_cast<const float*>(p.A.at(0));
    const float* const first = A + min(row0 + g, p.m - 1) * p.a.row;
    const float* const second = A + min(row0 + g + 8, p.m - 1) * p.a.row;
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[j][e] = 0;
#pragma unroll 1
    for (int l = 0; l < int(p.k); ++l) {
      const float x = first[l * p.a.col], y = second[l * p.a.col];
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float b = floats[l * kPitchB + j / 2 * 16 + t * 4 + j % 2 * 2 + e];
          sum[j][e] += x * b;
          sum[j][2 + e] += y * b;
        }
    }
  }

  /// Stores C where its rows begin anywhere, by way of `stage`.
  __device__ void store_staged(const Problem<float>& p, std::int64_t row0, float* stage) const {
    const int lane = lane_now(), n = int(p.n);
    const int size = int(min(p.m - row0, std::int64_t(kRows))) * n;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kLines; ++i)
#pragma unroll
      for (int j = 0; j < kAcross; ++j) {
        const int column = column_of(lane) + j * kColumnStep;
        const Vector<float> v = at(i, j);
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (column + e < n) stage[(row_of(lane) + i * kLineStep) * n + column + e] = v.e[e];
      }
    __syncwarp();
    const auto result = [&](float sum, float old) {
      return p.read_c ? multiply_add(p.beta, old, p.alpha * sum) : p.alpha * sum;
    };
    float* const c = static_cast<float*>(p.C.at(0)) + row0 * p.ldc;
    if (!p.run_c) {
#pragma unroll 4
      for (int row = 0; row < size / n; ++row)
        for (int column = lane; column < n; column += 32) {
          float* const to = c + row * p.ldc + column;
          *to = result(stage[row * n + column], p.read_c ? *to : 0);
        }
      __syncwarp();
      return;
    }
#pragma unroll 2
    for (int i = lane * 4; i < size; i += 128) {
      if (i + 4 <= size) {
        Vector<float> v = *reinterpret_cast<const Vector<float>*>(stage + i), old = {};
        if (p.read_c) old = *reinterpret_cast<const Vector<float>*>(c + i);
#pragma unroll
        for (int e = 0; e < 4; ++e) v.e[e] = result(v.e[e], old.e[e]);
        *reinterpret_cast<Vector<float>*>(c + i) = v;
      } else {
        for (int e = i; e < size; ++e) c[e] = result(stage[e], p.read_c ? c[e] : 0);
      }
    }
  }

  __device__ Vector<float> at(int i, int j) const {
    const float* const low = sum[2 * j] + 2 * i;
    const float* const high = sum[2 * j + 1] + 2 * i;
    return {low[0], low[1], high[0], high[1]};
  }
};

/// Elements of a slot of the ring, and slots.
template <class S, bool kAlongK, Copies kCopies>
inline constexpr int kSlotSize = kCopies == Copies::Run
                                     ? S::kRows* kMostDepth
                                     : S::kPitchA*(kAlongK ? S::kRows : kSlotDepth);
template <class S, Copies kCopies>
inline constexpr int kSlotsOf = kCopies == Copies::Run ? 3 : S::kSlots;

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
template <class T, class S, bool kAlongK, Copies kCopies>
__device__ void fetch(const Problem<T>& p, std::int64_t row0, int k0, T* slot, int lane) {
  constexpr int kEach = kCopies == Copies::Elements ? 1 : kVector<T>;
  constexpr int kBytes = kEach * int(sizeof(T));
  if constexpr (kCopies == Copies::Run) {
    const int size = int(min(p.m - row0, std::int64_t(S::kRows)) * p.k);
    const T* const from = static_cast<const T*>(p.A.at(0)) + row0 * p.k;
#pragma unroll 4
    for (int i = lane * kEach; i < size; i += 32 * kEach)
      copy_async<kBytes>(shared_address(slot + i), from + i, min(size - i, kEach) * int(sizeof(T)));
    return;
  }
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

  if (rows == S::kRows && (left >= kSlotDepth || p.k % S::kStep == 0)) {
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

template <class S>
inline constexpr bool kSplits = requires {
  &S::split;
};

/// Elements of a warp's results on their way to rows of C that begin anywhere.
template <class S>
inline constexpr int kStaged = S::kRows* kMostColumns;

/// Elements of op(B) in shared memory: as it is, and where it is split the fragments of its planes.
template <class S>
int size_of_b(int depth) {
  return depth * S::kPitchB + (kSplits<S> ? depth / S::kStep * S::kStepB : 0);
}

template <class T, By kBy, int kColumns, bool kAlongK, Copies kCopies>
__global__ void __launch_bounds__(32 * Share<T, kBy, kColumns, kAlongK>::kMostWarps, 1)
    tall_kernel(const __grid_constant__ Problem<T> p) {
  using S = Share<T, kBy, kColumns, kAlongK>;
  constexpr int kSlots = kSlotsOf<S, kCopies>, kSize = kSlotSize<S, kAlongK, kCopies>;
  constexpr int kStep = S::kStep, kDepth = kCopies == Copies::Run ? kMostDepth : kSlotDepth;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const floats = reinterpret_cast<T*>(memory);
  T* const right = floats + (kSplits<S> ? p.depth * S::kPitchB : 0);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  T* const ring = floats + p.size_b + warp * kSlots * kSize;
  [[maybe_unused]] T* const stage =
      floats + p.size_b + int(blockDim.x) / 32 * kSlots * kSize + warp * kStaged<S>;
  const std::int64_t hop = std::int64_t(gridDim.x) * (blockDim.x / 32);
  std::int64_t piece = std::int64_t(gridDim.x) * warp + blockIdx.x;
  begin_early();

  std::int64_t next_piece = piece;
  int next_k = 0, next_slot = 0;
  const auto ask = [&] {
    if (next_piece < p.pieces)
      fetch<T, S, kAlongK, kCopies>(p, next_piece * S::kRows, next_k, ring + next_slot * kSize,
                                    lane);
    commit_copies();
    next_slot = next_slot + 1 == kSlots ? 0 : next_slot + 1;
    next_k += kDepth;
    if (next_k >= p.depth) next_k = 0, next_piece += hop;
  };
  if (p.vectors_b)
    fetch_b<T, S, kColumns, kVector<T>>(p, floats);
  else
    fetch_b<T, S, kColumns, 1>(p, floats);
  commit_copies();
  ask();
  wait_copies<1>();
  __syncthreads();
  __shared__ Range range_b;
  if constexpr (kSplits<S>) {
    if (threadIdx.x == 0) range_b = {};
    __syncthreads();
    const Range own = S::split(floats, right, p.depth).of_warp();
    if (lane == 0) {
      atomicMax(&range_b.most, own.most);
      atomicMin(&range_b.least, own.least);
    }
    __syncthreads();
  }
#pragma unroll 1
  for (int i = 1; i < kSlots; ++i) ask();

  int slot = 0;
  const auto advance = [&] {
    __syncwarp();
    ask();
    slot = slot + 1 == kSlots ? 0 : slot + 1;
  };
#pragma unroll 1
  for (; piece < p.pieces; piece += hop) {
    const std::int64_t row0 = piece * S::kRows;
    if (p.read_c) prefetch<S>(p, target_of<S>(p, row0));
    S share(right, lane);
#pragma unroll 1
    for (int k0 = 0; k0 < p.depth; k0 += kDepth) {
      wait_copies<kSlots - 1>();
      __syncwarp();
      const T* left = ring + slot * kSize;
#pragma unroll 1
      for (int k = k0, end = min(k0 + kDepth, p.depth); k < end; k += kStep) {
        const T* const b = right + k / kStep * S::kStepB;
        if constexpr (kSplits<S>)
          share.template multiply<kCopies == Copies::Run>(
              left, b, int(min(p.m - row0, std::int64_t(S::kRows))), int(p.k), int(p.k) - k);
        else
          share.multiply(left, b, k + kStep < p.depth ? b + S::kStepB : right);
        left += kStep * (kAlongK ? 1 : S::kPitchA);
      }
      if constexpr (kCopies != Copies::Run) advance();
    }

    if constexpr (kSplits<S>) share.complete(p, row0, floats, range_b);
    if constexpr (kSplits<S>)
      if (!p.vectors_c) {
        // The slot is free for C before it is asked for again.
        share.store_staged(p, row0, kCopies == Copies::Run ? ring + slot * kSize : stage);
        if constexpr (kCopies == Copies::Run) advance();
        continue;
      }
    if constexpr (kCopies == Copies::Run) advance();
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

/// The configurations, by their numbers.
constexpr std::string_view kConfigs[] = {"multiply_adds", "planes"};

const char* cannot_split(const GemmArgs& args, const DeviceInfo& device) {
  constexpr std::int64_t kShortest = 16;  // docs/ACCURACY.md: for shorter sums the bound is too low
  if (args.in != DType::f32 || args.compute != Compute::Default)
    return "planes are for f32 where they may be used";
  if (!runs_clusters(device)) return "planes need compute capability 9.0";
  if (args.k < kShortest) return "planes are for longer sums";
  return nullptr;
}

/// Short rows take no longer to multiply than to read and write, and splitting op(B) has to pay.
By way_of(const GemmArgs& args, const DeviceInfo& device) {
  constexpr std::int64_t kManyRows = 32768;
  if (args.config >= 0) return By(args.config);
  const std::int64_t products = args.n * args.k;
  const bool pays = products > kLarge || (products >= kLarge / 2 && args.m >= kManyRows);
  return pays && !cannot_split(args, device) ? By::Planes : By::MultiplyAdds;
}

/// Whether rows come, or go, by vectors of 16 bytes.
bool has_vectors_a(const GemmArgs& args) {
  return access_bits(args.A, 1, size_of(args.in)) % 16 == 0;
}
bool has_vectors_c(const GemmArgs& args) {
  const int size = size_of(args.in);
  return args.n * size % 16 == 0 && access_bits(args.C, 1, size) % 16 == 0;
}

/// Why it leaves a call to others, as measured with 500 products within graphs on an H200: of fewer
/// rows each warp has a piece or two, before which op(B) is copied, and rows that are not whole
/// vectors come and go an element at a time.
const char* is_slower(const GemmArgs& args, const DeviceInfo& device) {
  constexpr std::int64_t kPlanes = 12000, kDoubles = 8192, kFewFloats = 8192, kFloats = 24000,
                         kFloatsOfElements = 40000, kFewColumns = 16;
  const bool floats = args.in == DType::f32;
  std::int64_t least = kPlanes;
  if (!floats || way_of(args, device) == By::MultiplyAdds) {
    const bool whole_a = has_vectors_a(args);
    if (!has_vectors_c(args) || (!floats && !whole_a))
      return "slower by elements than short_k, simt or tensor_f64";
    least = !floats                 ? kDoubles
            : !whole_a              ? kFloatsOfElements
            : args.n <= kFewColumns ? kFewFloats
                                    : kFloats;
  }
  return args.m < least ? "slower than short_k, simt or tensor_f64" : nullptr;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::f64) return "for f32 and f64";
  if (args.n > kMostColumns || args.k > kMostDepth || args.k == 0 || args.m < kLeastRows ||
      args.batch > 1)
    return "for one product of at least 256 rows, n and k of at most 64";
  if (args.n * args.k > kLarge && args.m < kLeastRowsLarge)
    return "for at least 8192 rows where op(B) has more than 2048 elements";
  if (args.config == kOwnChoice)
    if (const char* reason = is_slower(args, device)) return reason;
  if (args.in == DType::f64 && device.capability < 80) return "fp64 tensor cores came with 8.0";
  if (way_of(args, device) == By::Planes)
    if (const char* reason = cannot_split(args, device)) return reason;
  return declines_emulation(args, device);
}

template <class T, By kBy, int kColumns, bool kAlongK, Copies kCopies>
void launch_tall(Problem<T> p, const CudaQueue& queue) {
  using S = Share<T, kBy, kColumns, kAlongK>;
  constexpr auto kKernel = tall_kernel<T, kBy, kColumns, kAlongK, kCopies>;
  p.depth = int(ceil_div(p.k, S::kStep)) * S::kStep;
  p.size_b = size_of_b<S>(p.depth);
  p.pieces = ceil_div(p.m, S::kRows);
  const std::int64_t units = std::max(queue.device().compute_units, 1);
  const bool staged = kSplits<S> && kCopies != Copies::Run && !p.vectors_c;
  const int of_warp =
      kSlotsOf<S, kCopies> * kSlotSize<S, kAlongK, kCopies> + (staged ? kStaged<S> : 0);
  const auto bytes = [&](int warps) { return (p.size_b + warps * of_warp) * int(sizeof(T)); };
  // As many warps as there is room for, the same number for each scheduler; or eight, where fewer
  // of those have nothing to do in the last turn.
  int warps = S::kMostWarps;
  while (warps > 4 && std::size_t(bytes(warps)) > queue.device().shared_memory) warps -= 4;
  const auto in_turns = [&](int w) { return ceil_div(p.pieces, units * w) * w; };
  if (warps > 8 && in_turns(8) < in_turns(warps)) warps = 8;

  launch_early(queue, kKernel, unsigned(std::min(p.pieces, units)), 32 * warps,
               std::size_t(bytes(warps)), p);
}

/// Whether floats in rows of `length` follow one on another from a multiple of 16 bytes on.
template <class Void>
bool is_run(const Operand<Void>& x, std::int64_t length) {
  return x.ld == length && address_bits(x, 1) % 16 == 0;
}

template <class T, By kBy>
void run_as(const GemmArgs& args, const CudaQueue& queue) {
  Problem<T> p{gemm_problem<T, T>(args, queue, 1, 1)};
  const int size = size_of(args.in);
  p.vectors_b = p.b.col == 1 && access_bits(args.B, 1, size) % 16 == 0;
  p.vectors_c = has_vectors_c(args);
  p.run_c = !p.vectors_c && is_run(args.C, args.n);
  const bool along_k = p.a.col == 1, vectors = has_vectors_a(args);
  const auto with_columns = [&]<int kColumns>() {
    if (along_k && vectors) return launch_tall<T, kBy, kColumns, true, Copies::Vectors>(p, queue);
    if constexpr (kBy == By::Planes)
      if (along_k && is_run(args.A, args.k))
        return launch_tall<T, kBy, kColumns, true, Copies::Run>(p, queue);
    if (along_k) return launch_tall<T, kBy, kColumns, true, Copies::Elements>(p, queue);
    if (vectors) return launch_tall<T, kBy, kColumns, false, Copies::Vectors>(p, queue);
    launch_tall<T, kBy, kColumns, false, Copies::Elements>(p, queue);
  };
  if (args.n <= 16) return with_columns.template operator()<16>();
  if (args.n <= 32) return with_columns.template operator()<32>();
  with_columns.template operator()<kMostColumns>();
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (args.in == DType::f64)
    run_as<double, By::MultiplyAdds>(args, queue);
  else if (way_of(args, queue.device()) == By::Planes)
    run_as<float, By::Planes>(args, queue);
  else
    run_as<float, By::MultiplyAdds>(args, queue);
}

}  // namespace tall_file

Kernel<GemmArgs> tall() {
  using namespace tall_file;
  return {"tall",   "many rows, n and k up to 64: op(B) stays, A streams by",
          declines, gemm_pointer_bytes,
          run,      nullptr,
          kConfigs};
}

}  // namespace mblas::cuda::gemm
