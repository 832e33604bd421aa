// A product as the engine is given it.
#pragma once

#include "cuda/gemm/clusters.hpp"
#include "cuda/gemm/finish.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/hopper/boxes.hpp"
#include "cuda/gemm/hopper/copy.cuh"
#include "cuda/gemm/hopper/panels.cuh"
#include "cuda/gemm/hopper/planes.cuh"
#include "cuda/gemm/hopper/product.cuh"
#include "cuda/gemm/hopper/schedule.cuh"

namespace mblas::cuda::gemm::hopper {

constexpr int kDepthBytes = 128;     // of k a stage
constexpr int kDepthProducts = 4;    // of 32 bytes of k
constexpr int kBoxBytes = 64 * 128;  // of 64 rows
constexpr int kNarrowCols = 16;      // of a tile, 16 bits each: boxes for what fills no whole one
constexpr int kNarrowBytes = 64 * kNarrowCols * 2;
constexpr int kSquare = 32;  // rows and columns of boxes that are turned, of 4-byte elements
constexpr int kSquareBytes = kSquare * 128;
constexpr int kWarpgroup = 128;        // threads
constexpr int kConsumers = 2;          // warpgroups
constexpr int kTurn = 1 + kConsumers;  // barriers by number, of consumers that take turns
constexpr int kThreads = kWarpgroup * (1 + kConsumers);

constexpr int kAlignment = 1024;        // of what is swizzled
constexpr int kMostShared = 227 << 10;  // bytes that a block may have
constexpr int kBarrierBytes = 16;       // of a stage: it is full, it is empty
/// Bytes of shared memory that stages and boxes of results take.
constexpr int shared_bytes(int stages, int stage_bytes, int out_bytes) {
  return stages * (stage_bytes + kBarrierBytes) + out_bytes + kAlignment;
}

/// Tiles of kRows×kCols. kAlternating: a consumer has whole tiles; else they share each one.
template <int kRows_, int kCols_, int kStages_, int kBoxes_, bool kAlternating_>
struct Tile {
  static constexpr int kRows = kRows_, kCols = kCols_, kStages = kStages_;
  /// Only for products of 16 bits that go out as boxes, with a beta of 0.
  static constexpr bool kPlain = kCols % 64 != 0;
  static constexpr int kBoxes = kBoxes_;  // for the results of a consumer on their way out
  static constexpr bool kAlternating = kAlternating_;
  static constexpr bool kByRegisters = false, kTurned = false;  // see ByRegisters, Turned
  static constexpr bool kJoins = false, kAcross = false;        // see Joins, Across
  static constexpr int kRowsEach = kAlternating ? kRows : kRows / kConsumers;  // of a consumer
  static constexpr int kBlocks = kRowsEach / 64;                               // of 64 rows
  /// Threads that ask for boxes: for small tiles one does not ask fast enough, for others more only
  /// get into each other's way.
  static constexpr int kProducers = kRows * kCols <= 64 * 64 ? 2 : 1;
  static_assert(kStages % kProducers == 0);
  static constexpr int kBytesA = kRows * kDepthBytes, kBytesB = kCols * kDepthBytes;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kOutBytes = kBoxes * kConsumers * kBoxBytes;
  static constexpr std::size_t kShared = shared_bytes(kStages, kStageBytes, kOutBytes);
  static_assert(kBoxes >= 2 && kRowsEach % 64 == 0 && kCols % kNarrowCols == 0 && kCols <= 256);
  static_assert(kBlocks * kCols / 2 <= (kPlain ? 176 : 128), "sums in registers");
  static_assert(kShared <= kMostShared);
};

/// A tile whose rows' operand is op(B)^T; the sums are those of C^T.
template <class Base>
struct Turned : Base {
  static constexpr bool kTurned = true;
};

/// A tile whose slices may be joined: Schedule::joined. Kernels of their own: what that takes makes
/// those that do not join 0.3 us slower.
template <class Base>
struct Joins : Base {
  static constexpr bool kJoins = true;
  static_assert(Base::kAlternating, "the other consumer would multiply out of where sums are left");
  static_assert(Base::kRows * Base::kCols * 4 <= Base::kStages * Base::kStageBytes);
};

/// A tile of clusters across: Schedule::across. Kernels of their own likewise, for 2 to 4 %.
template <class Base>
struct Across : Base {
  static constexpr bool kAcross = true;
};

/// A tile whose columns are no whole boxes, of an operand that does not run along k: the last box
/// brings columns of the next tile too, for which there are fewer stages.
template <class Base>
struct WholeBoxes : Base {
  static constexpr int kBytesB = (Base::kCols + 63) / 64 * kBoxBytes;
  static constexpr int kStageBytes = Base::kBytesA + kBytesB;
  static constexpr int kBoxes = 2;
  static constexpr int kOutBytes = kBoxes * kConsumers * kBoxBytes;
  static constexpr int kStages = std::min(
      Base::kStages, (kMostShared - shared_bytes(0, 0, kOutBytes)) / (kStageBytes + kBarrierBytes));
  static constexpr std::size_t kShared = shared_bytes(kStages, kStageBytes, kOutBytes);
  static_assert(kStages % Base::kProducers == 0);
};

/// A tile for products that kPlain says, whatever its columns.
template <class Base>
struct Plain : Base {
  static constexpr bool kPlain = true;
};

/// A tile for few rows of C, which are the columns of C^T: what is read of op(B) is in one tile
/// only. Where it is in two, blocks that share it and are not neighbours read it more slowly.
template <class Base>
struct FewRows : Plain<Turned<Base>> {};

/// A tile whose rows' operand, of 4-byte elements that are not stored along k, goes through
/// registers: fragments.cuh. kTurned: as Turned.
template <class Base, bool kTurned_>
struct ByRegisters : Base {
  static constexpr bool kByRegisters = true, kTurned = kTurned_;
};

/// Where the bytes from `at` on of row `row` are in a swizzled box, up to the next multiple of 16.
__device__ inline unsigned swizzled(int row, int at) {
  return unsigned(row * 128 + ((at / 16 ^ row % 8) * 16) + at % 16);
}

/// The same of the chunk of 16 bytes, 0 or 1, of a row of a narrow box.
__device__ inline unsigned swizzled_narrow(int row, int chunk) {
  return unsigned(row * 32 + (chunk ^ row / 4 % 2) * 16);
}

template <class Acc>
struct Problem : GemmProblem<Acc> {
  Panels panels_a, panels_b;
  CUtensorMap map_c;
  CUtensorMap map_narrow;  ///< C by boxes of kNarrowCols of the tile's columns, if it is kPlain
  Schedule schedule;
  bool shared_a, shared_b;  ///< one matrix for the whole batch
  bool turned = false;      ///< the operands are op(B)^T and op(A)^T: see Turned
  bool wide;                ///< C is of 32 bits
  bool boxes;               ///< the copy engine, which writes 16 bytes or nothing, can write C
  bool brings_c = false;    ///< and brings C, of 16 bits, to be read, through the ring of stages
  Acc* sums;                ///< of slices
  /// Of planes only: the magnitudes of the operands, and where to say whether the product is left
  /// to another kernel.
  const Ranges *ranges, *kept_ranges;  ///< those of an operand that is kept, or null
  int range_count;
  unsigned* left;
  /// Of scaled planes: see SplitOperand.
  const unsigned *most_a, *most_b;
  /// There is an epilogue, or a C of float from int8: then alpha and beta are these.
  bool finishes = false;
  float real_alpha, real_beta;
  Finish<float> finish;
};

/// Whether C may be of the operands' 16 bits.
template <class In>
inline constexpr bool kNarrow = kBytesOf<In> == 2 && kPlanesOf<In> == 1;
/// Whether C is never read and always goes out as boxes.
template <class T, class In>
inline constexpr bool kOnlyBoxes = T::kPlain || T::kJoins || std::is_same_v<In, Residues>;
/// Whether C, of 16 bits, may be read.
template <class T, class In>
inline constexpr bool kReads = kNarrow<In> && !kOnlyBoxes<T, In>;
/// Whether boxes of the rows' operand may be narrow.
template <class T, class In, bool kAAlongK>
inline constexpr bool kNarrowBoxes = kNarrow<In> && !kAAlongK && has_narrow_boxes(T::kRows);
/// Whether there are kernels for clusters across.
template <class T, class In>
inline constexpr bool kHasAcross = has_across(T::kRows, T::kCols) && kPlanesOf<In> == 1 &&
                                   !std::is_same_v<In, Residues>;
/// Whether the engine computes epilogues. Of planes it does not: the kernel that what does not suit
/// them is left to does not either.
template <class In>
inline constexpr bool kFinishes = kPlanesOf<In> == 1 && !std::is_same_v<In, Residues>;
/// Whether products may be cut along k.
template <class In>
inline constexpr bool kCuts = !std::is_same_v<In, Residues>;
/// C's type where it is of 32 bits: what products are added up in, or the integers.
template <class In>
using WideOut = std::conditional_t<std::is_same_v<In, std::int8_t>, std::int32_t, float>;

/// How many tiles of a cluster are one below the other and side by side, and which is the block's.
struct InCluster {
  unsigned rows, cols, row, col;

  /// Of the block's tile in C, or beyond it.
  template <class T>
  __device__ int first_row(const Schedule::Item& item) const {
    return (item.row * int(rows) + int(row)) * T::kRows;
  }
  template <class T>
  __device__ int first_col(const Schedule::Item& item) const {
    return (item.col * int(cols) + int(col)) * T::kCols;
  }
};
template <class T>
__device__ InCluster place_in_cluster(const Schedule& s) {
  const unsigned rank = s.cluster > 1 ? rank_in_cluster() : 0;
  if constexpr (T::kAcross)
    return {1, s.cluster, 0, rank};
  else
    return {s.cluster, 1, rank, 0};
}

}  // namespace mblas::cuda::gemm::hopper
