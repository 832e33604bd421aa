// Products of float, real or complex, with one side of some hundred columns at most, or small ones
// in batches, as three planes of bfloat16 (planes.cuh) that are made on the way: the long operand,
// which is read once, is split in the registers of those who multiply it.
//
// The short operand is split before, by a kernel of its own, into images: for each step along k and
// each tile the panels of its planes as they lie in shared memory, which one copy brings. Or each
// block makes its own, where few read them. A block is a producer, a warpgroup that copies the long
// operand as floats whatever its alignment is, or two that make images as well, and two or three
// consumers of 64 rows each. What is added up in 32 of k, the smallest products first, goes to sums
// that are rounded. k may be cut into parts, whose sums a last kernel adds up.
//
// Both operands are multiplied by 2^26 on their way, and sums by 2^-52: then planes have all
// numbers exactly but those beyond 2^101, NaN and infinities. These, and products beyond 2^76, make
// sums that are not finite, by which a tile is known that is multiplied anew as floats.
//
// Complex products are real ones of twice the n and k, see planes.cuh.
//
// Limit: reading the long operand, or six products of tensor cores for each of floats.
#pragma once

#include <iterator>
#include <numeric>
#include <utility>

#include "cuda/early.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/hopper/copy.cuh"
#include "cuda/gemm/hopper/fused_plan.hpp"
#include "cuda/gemm/hopper/product.cuh"
#include "cuda/gemm/hopper/ring.cuh"
#include "cuda/gemm/planes.cuh"

namespace mblas::cuda::gemm::fused {

using namespace hopper;

constexpr int kWarpgroup = 128;
constexpr float kScale = 0x1p26f, kUnscale = 0x1p-52f;

/// Which floats of 16 along k are neighbours of an image: those that a thread of the warpgroup has
/// of the long operand where they are easily loaded.
enum class Order : std::uint8_t {
  Fours,   ///< along k: four of a row at once
  Spread,  ///< across: rows 4 apart
  Parts,   ///< across, complex: both parts, of rows 4 apart
};

/// Of 16, the one that is slot `slot`. Thread t % 4 has slots 2 t, 2 t + 1, 2 t + 8 and 2 t + 9.
__device__ inline int place_of_slot(Order order, int slot) {
  const int thread = slot % 8 / 2, half = slot / 8, odd = slot % 2;
  if (order == Order::Fours) return 4 * thread + 2 * half + odd;
  if (order == Order::Spread) return thread + 8 * half + 4 * odd;
  return slot;
}

/// One side of the product.
struct Side {
  DeviceInput from;
  std::int64_t across, along;  ///< elements to the next row of the result, or column; along k
  bool conjugated;
};

template <class T>
struct Problem : GemmProblem<T> {
  std::int64_t length;  ///< rows of the long operand
  int count;            ///< columns of the short one
  Side rows, cols;      ///< these
  Strides c;            ///< of C along the rows and the columns
  int parts;            ///< of k
  T* sums;              ///< of the parts, where there are several
  unsigned row_tiles, col_tiles, items;
  int steps;              ///< along k
  int each, more;         ///< of a part; so many have one more
  std::byte* images;      ///< of the short operand's matrices
  bool shared_images;     ///< of a batch
  unsigned image_blocks;  ///< that make them
};

/// A tile of kTiles, and how the long operand is taken.
template <class Type, int kNumber, bool kAlong, int kCopyBytes>
struct Tile {
  using T = Type;
  static constexpr TileInfo kInfo = kTiles[kNumber];
  static constexpr int kColumns = kInfo.cols, kRows = kInfo.rows(), kBytes = kCopyBytes;
  static constexpr int kConsumers = kInfo.consumers;
  static constexpr int kProducers = kInfo.both ? 2 : 1, kProducing = kWarpgroup * kProducers;
  static constexpr int kThreads = kWarpgroup * (kProducers + kConsumers);
  static constexpr bool kAlongK = kAlong;
  static constexpr int kParts = int(sizeof(T) / sizeof(float));
  static constexpr Order kOrder = kAlongK       ? Order::Fours
                                  : kParts == 2 ? Order::Parts
                                                : Order::Spread;
  /// What lies in memory in a line of the long operand's panel: floats. Across k, the next line's
  /// banks are 8 further on.
  static constexpr int kLine = kAlongK ? kDepth : kRows * kParts;
  static constexpr int kLines = kAlongK ? kRows : kDepth / kParts;
  static constexpr int kPitch = (kLine + (kAlongK ? 0 : 8)) * int(sizeof(float));
  static constexpr int kAlignment = 1024;
  static constexpr int kBarrierBytes = 16;  // of a stage: two
  static constexpr int kPanelBytes = (kLines * kPitch + kAlignment - 1) / kAlignment * kAlignment;
  static constexpr int kStageBytes = kPanelBytes + image_bytes(kColumns);
  /// Of both operands where they are multiplied as floats, and of results on their way.
  static constexpr int kFloatDepth = 8, kFloats = kFloatDepth * (kRows + kColumns);
  static constexpr bool kByLines = kInfo.both && kParts == 1;
  static constexpr int kWarpBytes = kByLines ? 2048 : 0;
  static constexpr int kFloatBytes = std::max(4 * kFloats, 4 * kConsumers * kWarpBytes);
  static constexpr int kStages =
      std::min((room_of(kInfo.blocks) - kAlignment - kFloatBytes) / kStageBytes, 8);
  static constexpr int kShared = kStages * (kStageBytes + kBarrierBytes) + kFloatBytes + kAlignment;
  /// Of a thread: what the block begins with, shared out anew.
  static constexpr int kRegisters = 65536 / kInfo.blocks / kThreads / 8 * 8;
  /// Whether a stage's floats are loaded together, and split before the products of the stage
  /// before are waited for: where there are registers for it.
  static constexpr bool kAhead = kColumns < 128 && kInfo.blocks == 1;
  static constexpr int kProducerRegisters = kInfo.both          ? (kColumns < 128 ? 72 : 56)
                                            : kInfo.blocks == 2 ? 32
                                                                : 40;
  static constexpr int kConsumerRegisters =
      std::min((kRegisters * (kProducers + kConsumers) - kProducerRegisters * kProducers) /
                   kConsumers / 8 * 8,
               232);
};

/// Real column `col`'s float `l` along k of the short operand; its complex elements are squares.
template <class T>
__device__ float short_at(const Problem<T>& p, const char* from, std::int64_t l, std::int64_t col) {
  if constexpr (is_complex_v<T>) {
    Complex<float> x =
        reinterpret_cast<const T*>(from)[l / 2 * p.cols.along + col / 2 * p.cols.across];
    if (p.cols.conjugated) x.im = -x.im;
    const float value = l % 2 == col % 2 ? x.re : l % 2 == 0 ? x.im : -x.im;
    return l % 2 == 1 && p.rows.conjugated ? -value : value;
  } else {
    return reinterpret_cast<const T*>(from)[l * p.cols.along + col * p.cols.across];
  }
}

/// Planes of eight floats along k, of which pair(i) is the i-th pair.
struct SplitEight {
  unsigned planes[3][4];

  template <class Pair>
  __device__ explicit SplitEight(const Pair& pair) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const SplitPair split(pair(i));
#pragma unroll
      for (int plane = 0; plane < 3; ++plane) planes[plane][i] = split.plane[plane];
    }
  }
  /// As an image has them, word() of each two.
  template <class Word>
  __device__ uint4 chunk(int plane, const Word& word) const {
    const unsigned(&x)[4] = planes[plane];
    return {word(x[0]), word(x[1]), word(x[2]), word(x[3])};
  }
  __device__ uint4 chunk(int plane) const {
    return chunk(plane, [](unsigned x) { return x; });
  }
};
/// Where a plane of an image has these, in bytes.
__device__ inline int place_of(int row, int chunk) { return row * 64 + (chunk ^ row / 2 % 4) * 16; }

constexpr int kImageThreads = 256;

/// The images of the short operand, tile by tile and step by step: of each plane kN rows of 64
/// bytes, swizzled; zeros beyond the operand. Reads it once, writes six bytes for each float.
template <class T, int kN>
__global__ void __launch_bounds__(kImageThreads)
    image_kernel(const __grid_constant__ Problem<T> p, Order order) {
  constexpr int kParts = int(sizeof(T) / sizeof(float)), kChunks = kDepth / 8;
  begin_early();
  const std::int64_t depth = p.k * kParts, width = std::int64_t(p.count) * kParts;
  // Threads have one chunk each of rows, blocks some rows of an image after another.
  constexpr int kAtOnce = kImageThreads / kChunks;  // rows
  const int chunk = int(threadIdx.x) % kChunks;
  const unsigned rows =
      unsigned(p.shared_images ? 1 : p.tiles.batch) * p.col_tiles * unsigned(p.steps) * kN;
  for (unsigned i = blockIdx.x * kAtOnce + threadIdx.x / kChunks; i < rows;
       i += gridDim.x * kAtOnce) {
    const int row = int(i % kN);
    const unsigned image = i / kN, step = image % unsigned(p.steps),
                   tile = image / unsigned(p.steps);
    const std::int64_t col = std::int64_t(tile % p.col_tiles) * kN + row;
    const char* const from = static_cast<const char*>(p.cols.from.at(tile / p.col_tiles));
    float x[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const std::int64_t l =
          std::int64_t(step) * kDepth + chunk / 2 * 16 + place_of_slot(order, chunk % 2 * 8 + e);
      x[e] = l < depth && col < width ? kScale * short_at(p, from, l, col) : 0;
    }
    const SplitEight split([&](int i) { return float2{x[2 * i], x[2 * i + 1]}; });
    std::byte* const to = p.images + std::int64_t(image) * image_bytes(kN) + place_of(row, chunk);
#pragma unroll
    for (int plane = 0; plane < 3; ++plane)
      *reinterpret_cast<uint4*>(to + plane * kN * 64) = split.chunk(plane);
  }
}

/// What a block does at a time: a part of the k of a tile.
struct Item {
  unsigned batch, part, row_tile, col_tile;
  int begin, end;  ///< of its steps
  __device__ int steps() const { return end - begin; }
};
template <class T>
__device__ Item item_of(const Problem<T>& p, unsigned number) {
  // A division takes as long as what it is for: most batches have tiles of one kind.
  const auto take = [&](unsigned count) {
    const unsigned all = number;
    if (count > 1) number /= count;
    return all - number * count;
  };
  Item item;
  item.col_tile = take(p.col_tiles);
  item.row_tile = take(p.row_tiles);
  item.part = take(unsigned(p.parts));
  item.batch = number;
  item.begin = p.each * int(item.part) + min(p.more, int(item.part));
  item.end = item.begin + p.each + (int(item.part) < p.more);
  return item;
}

/// The ring of stages: floats of the long operand and the image of the short one.
template <class Tile>
struct Stages {
  unsigned base;

  __device__ unsigned panel(unsigned stage) const { return base + stage * Tile::kStageBytes; }
  __device__ unsigned image(unsigned stage) const { return panel(stage) + Tile::kPanelBytes; }
  __device__ Barrier full(unsigned stage) const {
    return {base + Tile::kStages * Tile::kStageBytes + stage * Tile::kBarrierBytes};
  }
  __device__ Barrier empty(unsigned stage) const { return {full(stage).address + 8}; }
  /// Floats of both operands, by k and line, or what warps of consumers have of results.
  __device__ unsigned floats() const { return full(Tile::kStages).address; }
};

/// What a producer's thread copies of the long operand for a tile.
template <class Tile>
struct Copies {
  static constexpr int kEach = Tile::kBytes / int(sizeof(float)), kVectors = Tile::kLine / kEach;
  /// After so many turns a thread is so many lines further on.
  static constexpr int kTurns = kVectors / std::gcd(kVectors, Tile::kProducing);
  static constexpr int kHop = kTurns * Tile::kProducing / kVectors, kHops = Tile::kLines / kHop;
  static_assert(Tile::kLines % kHop == 0);
  static constexpr int kAtOnce = 16;

  unsigned line;            ///< bytes to the next
  int rows, depth;          ///< rows that there are of the tile's, and floats along k of all
  const char* from;         ///< where the tile has its first row, and the item its first k
  std::int64_t step_bytes;  ///< to the next step

  template <class T>
  __device__ Copies(const Problem<T>& p, const Item& item)
      : line(unsigned((Tile::kAlongK ? p.rows.across : p.rows.along) * sizeof(T))),
        depth(int(p.k) * Tile::kParts),
        step_bytes(kDepth / Tile::kParts * p.rows.along * std::int64_t(sizeof(T))) {
    const std::int64_t row0 = std::int64_t(item.row_tile) * Tile::kRows;
    rows = int(min(p.length - row0, std::int64_t(Tile::kRows)));
    from = static_cast<const char*>(p.rows.from.at(item.batch)) +
           row0 * p.rows.across * std::int64_t(sizeof(T)) + item.begin * step_bytes;
  }

  /// Those of step `step`, the next one, zeros for what is beyond the operand.
  __device__ void bring(int step, unsigned to) {
    const int left = depth - step * kDepth;
    if (rows >= Tile::kRows && left >= kDepth)
      bring_some<true>(0, 0, to);
    else
      bring_some<false>(Tile::kAlongK ? rows : left / Tile::kParts,
                        Tile::kAlongK ? left : rows * Tile::kParts, to);
    from += step_bytes;
  }

 private:
  /// kAll: all lines and floats of each are there.
  template <bool kAll>
  __device__ void bring_some(int lines, int floats, unsigned to) const {
    // Along k, chunks of 16 bytes of every second pair of rows change halves.
    static_assert(!Tile::kAlongK || kHop % 4 == 0);
    const auto step = unsigned(late(int(line)));  // no multiples of it are kept
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const unsigned number = unsigned(thread_now()) + unsigned(turn * Tile::kProducing);
      const unsigned first = number / kVectors, at = number % kVectors * kEach * sizeof(float);
      const int bytes = min(floats * int(sizeof(float)) - int(at), Tile::kBytes);
      const int left = bytes > 0 ? lines - int(first) : 0;
      const char* const source = from + (first * line + at);
      const unsigned place =
          to + first * Tile::kPitch + (at ^ (Tile::kAlongK ? first / 2 % 2 * 64 : 0));
#pragma unroll(kHops < kAtOnce ? kHops : kAtOnce)
      for (int i = 0; i < kHops; ++i) {
        const char* const x = source + std::uint64_t(step) * unsigned(i * kHop);
        if constexpr (kAll) {
          copy_async<Tile::kBytes>(place + unsigned(i * kHop * Tile::kPitch), x);
        } else {
          const unsigned here = place + unsigned(i * kHop * Tile::kPitch);
          if constexpr (Tile::kBytes == 16)
            copy_async<16>(here, x, i * kHop < left ? bytes : 0);
          else
            copy_async_or_zeros<Tile::kBytes>(here, x, i * kHop < left);
        }
      }
    }
  }
};

template <class Tile, class T>
__device__ void produce(const Problem<T>& p, const Stages<Tile>& stages) {
  constexpr unsigned kImage = image_bytes(Tile::kColumns);
  const auto bring_image = [&](unsigned stage, const std::byte* image) {
    if (threadIdx.x > 0) return;
    stages.full(stage).arrive_expecting(kImage);
    load_run(stages.image(stage), image, kImage, stages.full(stage));
  };
  Ring<Tile::kStages> place;
  for (unsigned number = blockIdx.x; number < p.items; number += gridDim.x) {
    const Item item = item_of(p, number);
    Copies<Tile> copies(p, item);
    const std::byte* image =
        p.images +
        ((std::int64_t(p.shared_images ? 0 : item.batch) * p.col_tiles + item.col_tile) * p.steps +
         item.begin) *
            kImage;
    int step = item.begin;
    if (number == blockIdx.x) {
      // The kernel that makes the images let this one begin when those before it were done: of what
      // they wrote the long operand may be read, while the images are still made.
      for (; step < item.end && step < item.begin + Tile::kStages; ++step) {
        const unsigned stage = unsigned(step - item.begin);
        copies.bring(step, stages.panel(stage));
        stages.full(stage).arrive_after_copies();
      }
      wait_for_earlier_kernels();
      for (int i = item.begin; i < step; ++i, place.advance(), image += kImage)
        bring_image(place.stage, image);
    }
#pragma unroll 1
    for (; step < item.end; ++step, place.advance(), image += kImage) {
      stages.empty(place.stage).wait(place.parity ^ 1);
      bring_image(place.stage, image);
      copies.bring(step, stages.panel(place.stage));
      stages.full(place.stage).arrive_after_copies();
    }
  }
}

/// A thread's share of the images that a block makes: columns' chunks of eight floats along k.
template <class Tile>
struct Chunks {
  using T = typename Tile::T;
  static constexpr int kOfColumn = kDepth / 8, kCols = Tile::kColumns / Tile::kParts;
  static constexpr int kAll = kCols * kOfColumn;
  static constexpr int kCount = (kAll + Tile::kProducing - 1) / Tile::kProducing;
  static constexpr int kElements = 8 / Tile::kParts;              // of a chunk
  static constexpr int kOneCols = (kCols + kCount - 1) / kCount;  // between those of a thread
  /// Of how many steps floats are on their way.
  static constexpr int kAhead = kCount > 1 ? 1 : 2;

  const char* from;  ///< at the first element of the next step that is loaded
  unsigned line;     ///< bytes from there to the next along k
  unsigned to;       ///< in an image
  unsigned next;     ///< bytes to the next chunk of a thread
  int chunk, col;    ///< of a column, of the tile
  int cols;          ///< that there are
  bool conjugated, along_k;
  T x[kAhead][kCount][kElements];

  __device__ explicit Chunks(const Problem<T>& p)
      : line(unsigned(p.cols.along * std::int64_t(sizeof(T)))),
        next(unsigned(kOneCols * p.cols.across * std::int64_t(sizeof(T)))),
        conjugated(p.cols.conjugated),
        along_k(p.cols.along == 1) {
    // Neighbours have chunks of the same column, or columns that are neighbours.
    chunk = int(along_k ? threadIdx.x % kOfColumn : threadIdx.x / kOneCols);
    col = int(along_k ? threadIdx.x / kOfColumn : threadIdx.x % kOneCols);
    to = unsigned(place_of(col * Tile::kParts, chunk));
  }

  /// `at`: where the tile has its first column, of `count`, and the item its first k.
  __device__ void begin(const T* at, std::int64_t across, int count) {
    cols = count;
    from = reinterpret_cast<const char*>(at + col * across) + std::int64_t(first()) * line;
  }
  /// Those of the next step, of which there are `left` elements along k.
  template <int kBuffer>
  __device__ void load(int left) {
    constexpr int kStep = kDepth / Tile::kParts;
    __builtin_assume(__isGlobal(from));
    const auto step = unsigned(late(int(line)));  // no multiples of it are kept
    const auto load = [&](const auto& has, const auto& at) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const bool is_column = col + i * kOneCols < cols && is_mine();
#pragma unroll
        for (int e = 0; e < kElements; ++e)
          x[kBuffer][i][e] = is_column && has(e) ? *reinterpret_cast<const T*>(at(i, e)) : T{};
      }
    };
    const auto all = [](int) { return true; };
    if (left < kStep) {
      const int here = left - first();
      load([&](int e) { return place(e) < here; },
           [&](int i, int e) { return from + std::uint64_t(step) * place(e) + i * next; });
    } else if (along_k) {
      load(all, [&](int i, int e) { return from + i * next + unsigned(sizeof(T)) * place(e); });
    } else {
      load(all, [&](int i, int e) {
        return from + std::uint64_t(step) * place(e) + i * kOneCols * unsigned(sizeof(T));
      });
    }
    from += std::uint64_t(line) * kStep;
  }
  /// Puts their planes where they belong in an image.
  template <int kBuffer>
  __device__ void split(unsigned image, bool conjugate_rows) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (is_mine() && (i == 0 || kCount * kOneCols == kCols || col + i * kOneCols < kCols))
        split(x[kBuffer][i], image + to + i * kOneCols * Tile::kParts * 64, conjugate_rows);
  }

 private:
  __device__ void split(const T (&x)[kElements], unsigned to, bool conjugate_rows) const {
    const SplitEight split([&](int i) -> float2 {
      if constexpr (Tile::kParts == 2)
        return {kScale * x[i].re, (conjugated ? -kScale : kScale) * x[i].im};
      else
        return {kScale * x[2 * i], kScale * x[2 * i + 1]};
    });
    const auto put = [&](unsigned to, const auto& word) {
#pragma unroll
      for (int plane = 0; plane < 3; ++plane)
        store_shared(to + plane * Tile::kColumns * 64, split.chunk(plane, word));
    };
    if constexpr (Tile::kParts == 2) {
      // The squares of short_at(): (re, -im) and (im, re), or (re, im) and (im, -re).
      constexpr unsigned kSign = 0x80000000;
      const unsigned even = conjugate_rows ? 0 : kSign, odd = conjugate_rows ? kSign : 0;
      put(to, [&](unsigned w) { return w ^ even; });
      put(to + 64, [&](unsigned w) { return __byte_perm(w, 0, 0x1032) ^ odd; });
    } else {
      put(to, [](unsigned w) { return w; });
    }
  }

  __device__ static bool is_mine() {
    return kOneCols * kOfColumn == Tile::kProducing ||
           unsigned(thread_now()) < unsigned(kOneCols * kOfColumn);
  }
  /// Of the elements of the chunk, how far the first and the others are along k.
  __device__ int first() const {
    return (chunk / 2 * 16 + place_of_slot(Tile::kOrder, chunk % 2 * 8)) / Tile::kParts;
  }
  __device__ static constexpr int place(int e) {
    return place_of_slot(Tile::kOrder, e * Tile::kParts) / Tile::kParts;
  }
};

/// Copies the long operand and makes the images of the short one.
template <class Tile, class T>
__device__ void produce_both(const Problem<T>& p, const Stages<Tile>& stages) {
  constexpr int kCols = Tile::kColumns / Tile::kParts, kStep = kDepth / Tile::kParts;
  const int lane = int(threadIdx.x) % 32;
  wait_for_earlier_kernels();
  Ring<Tile::kStages> place;
  Chunks<Tile> chunks(p);
  for (unsigned number = blockIdx.x; number < p.items; number += gridDim.x) {
    const Item item = item_of(p, number);
    Copies<Tile> copies(p, item);
    const int col0 = int(item.col_tile) * kCols;
    chunks.begin(static_cast<const T*>(p.cols.from.at(item.batch)) + col0 * p.cols.across +
                     std::int64_t(item.begin) * kStep * p.cols.along,
                 p.cols.across, min(p.count - col0, kCols));
    const auto load = [&]<int kBuffer>(int step) {
      if (step < item.end) chunks.template load<kBuffer>(int(p.k) - step * kStep);
    };
    const auto fill = [&]<int kBuffer>(int step) {
      stages.empty(place.stage).wait(place.parity ^ 1);
      chunks.template split<kBuffer>(stages.image(place.stage), p.rows.conjugated);
      __syncwarp();
      if (lane == 0) stages.full(place.stage).arrive();
      copies.bring(step, stages.panel(place.stage));
      stages.full(place.stage).arrive_after_copies();
      load.template operator()<kBuffer>(step + Chunks<Tile>::kAhead);
      place.advance();
    };
    load.template operator()<0>(item.begin);
    if constexpr (Chunks<Tile>::kAhead == 2) {
      load.template operator()<1>(item.begin + 1);
#pragma unroll 1
      for (int step = item.begin; step < item.end; step += 2) {
        fill.template operator()<0>(step);
        if (step + 1 < item.end) fill.template operator()<1>(step + 1);
      }
    } else {
#pragma unroll 1
      for (int step = item.begin; step < item.end; ++step) fill.template operator()<0>(step);
    }
  }
}

/// Where an item's sums go: C, or the place of a part, in which a tile lies as a whole.
template <class T>
struct Target {
  T* to;           ///< at the tile's first row and column
  Strides step;    ///< elements to the next row and column
  int rows, cols;  ///< of the tile that there are
};
template <class Tile, class T>
__device__ Target<T> target_of(const Problem<T>& p, const Item& item) {
  constexpr int kCols = Tile::kColumns / Tile::kParts;
  if (p.parts > 1) {
    const unsigned tile = (item.batch * p.row_tiles + item.row_tile) * p.col_tiles + item.col_tile;
    return {p.sums + (std::int64_t(tile) * p.parts + item.part) * (Tile::kRows * kCols),
            p.c.row == 1 ? Strides{1, Tile::kRows} : Strides{kCols, 1}, Tile::kRows, kCols};
  }
  const std::int64_t row0 = std::int64_t(item.row_tile) * Tile::kRows;
  const int col0 = int(item.col_tile) * kCols;
  return {static_cast<T*>(p.C.at(item.batch)) + row0 * p.c.row + col0 * p.c.col, p.c,
          int(min(p.length - row0, std::int64_t(Tile::kRows))), min(p.count - col0, kCols)};
}

/// Puts the sums of a warp's 16 rows, from `row` of the tile on, where they belong, kCount at once:
/// neighbours in a row or, kDown, in a column, as C lies.
template <class Tile, bool kDown, int kCount, bool kReadC, class T>
__device__ void leave_by(const Problem<T>& p, const Target<T>& target, int row,
                         const float (&sums)[Tile::kColumns / 2]) {
  constexpr int kEach = 8 / Tile::kParts, kWide = 2 / Tile::kParts;  // elements of 8 floats, of 2
  constexpr int kTimes = 2 * kWide / kCount, kAtOnce = !kReadC                   ? 1
                                                       : Tile::kInfo.blocks == 2 ? 2
                                                                                 : 4;
  using Pack = Vector<T, kCount>;
  const int lane = thread_now() % 32, col = lane % 4 * kWide;
  row += lane / 4 * 2;
  const std::int64_t line = kDown ? target.step.col : target.step.row;
  T* to = target.to + (kDown ? row + col * line : row * line + col);
  const int rows = target.rows - row, cols = target.cols - col;
  const T alpha = p.parts == 1 ? p.alpha : T(1);
  // Of 8 columns the j-th, of the thread's two rows and one or two elements.
  const auto element = [&](int j, int r, int e) -> T {
    if constexpr (Tile::kParts == 2)
      return {sums[4 * j + 2 * r], sums[4 * j + 2 * r + 1]};
    else
      return sums[4 * j + 2 * r + e];
  };
#pragma unroll
  for (int j0 = 0; j0 < Tile::kColumns / 8; j0 += kAtOnce) {
    // f(which of them, j, r, e, where, whether it is there) for all at once, which are read before
    // any is written.
    const auto for_each = [&](const auto& f) {
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
        for (int i = 0; i < kTimes; ++i) {
          const int at = i * kCount, r = kDown ? at % 2 : at / kWide,
                    e = kDown ? at / 2 : at % kWide;
          const int c = (kDown ? j : j0 + j) * kEach + e;
          T* const x = to + (kDown ? r + c * line : r * line + c);
          __builtin_assume(__isGlobal(x));
          f(j * kTimes + i, j0 + j, r, e, reinterpret_cast<Pack*>(x),
            r < rows && (j0 + j) * kEach + e < cols);
        }
    };
    Pack old[kAtOnce * kTimes] = {};
    if constexpr (kReadC)
      for_each([&](int i, int, int, int, Pack* x, bool there) {
        if (there) old[i] = *x;
      });
    for_each([&](int i, int j, int r, int e, Pack* x, bool there) {
      Pack result;
#pragma unroll
      for (int n = 0; n < kCount; ++n) {
        result.e[n] = alpha * element(j, r + (kDown ? n : 0), e + (kDown ? 0 : n));
        if constexpr (kReadC) result.e[n] = multiply_add(p.beta, old[i].e[n], result.e[n]);
      }
      if (there) *x = result;
    });
    if constexpr (kDown) to += kAtOnce * kEach * line;
  }
}

/// The same of floats one by one, of which a warp writes a row's 32 neighbours at once, or 16 of
/// two columns, by way of its part of shared memory: parts of sectors take the second-level cache
/// as long as whole ones.
template <class Tile, bool kDown, bool kReadC>
__device__ void leave_lines(const Problem<float>& p, const Target<float>& target, int row,
                            const float (&sums)[Tile::kColumns / 2], unsigned shared) {
  constexpr int kEach = 16;  // elements of a lane, of 16 rows and 32 columns at once
  const int lane = thread_now() % 32;
  const std::int64_t line = kDown ? target.step.col : target.step.row;
  const int rows = target.rows - row;
  const float alpha = p.parts == 1 ? p.alpha : 1;
  // Eights of a row change places with the row's pair: those of four pairs are in other banks.
  const auto eight = [](int row, int number) { return unsigned(number ^ row / 2 % 4) * 32; };
  const unsigned to = shared + unsigned(lane / 4 * 2 * 128 + lane % 4 * 8);
#pragma unroll
  for (int j0 = 0; j0 < Tile::kColumns / 8; j0 += 4) {
    const int cols = target.cols - j0 * 8;
    if (cols <= 0) return;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float* const pair = sums + 4 * (j0 + i / 2) + i % 2 * 2;
      store_shared(to + i % 2 * 128 + eight(lane / 4 * 2, i / 2),
                   uint2{__float_as_uint(pair[0]), __float_as_uint(pair[1])});
    }
    __syncwarp();
    float* const c = target.to + (kDown ? row + lane % 16 + (j0 * 8 + lane / 16) * line
                                        : row * line + j0 * 8 + lane);
    __builtin_assume(__isGlobal(c));
    // f(i, where, whether it is there) for all that the lane has of them.
    const auto for_each = [&](const auto& f) {
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        f(i, c + (kDown ? 2 * i : i) * line,
          kDown ? lane % 16 < rows && 2 * i + lane / 16 < cols : i < rows && lane < cols);
    };
    float old[kEach] = {};
    if constexpr (kReadC)
      for_each([&](int i, const float* x, bool there) {
        if (there) old[i] = *x;
      });
    for_each([&](int i, float* x, bool there) {
      const int r = kDown ? lane % 16 : i, at = kDown ? 2 * i + lane / 16 : lane;
      const float sum =
          load_shared<float>(shared + unsigned(r * 128 + at % 8 * 4) + eight(r, at / 8));
      if (there) *x = kReadC ? multiply_add(p.beta, old[i], alpha * sum) : alpha * sum;
    });
  }
}

template <class Tile, class T>
__device__ void leave(const Problem<T>& p, const Target<T>& target, int row,
                      const float (&sums)[Tile::kColumns / 2], unsigned shared) {
  constexpr int kWide = 2 / Tile::kParts;
  // Pairs where they all are whole and aligned.
  const bool down = target.step.row == 1;
  const std::int64_t line = down ? target.step.col : target.step.row;
  const bool pairs = line % 2 == 0 && (down ? target.rows : target.cols) % 2 == 0 &&
                     reinterpret_cast<std::uintptr_t>(target.to) % (2 * sizeof(T)) == 0;
  const auto by = [&]<bool kReadC>() {
    if constexpr (Tile::kByLines)
      if (!pairs) {
        if (down)
          leave_lines<Tile, true, kReadC>(p, target, row, sums, shared);
        else
          leave_lines<Tile, false, kReadC>(p, target, row, sums, shared);
        return;
      }
    if (down && pairs)
      leave_by<Tile, true, 2, kReadC>(p, target, row, sums);
    else if (down)
      leave_by<Tile, true, 1, kReadC>(p, target, row, sums);
    else if (pairs)
      leave_by<Tile, false, kWide, kReadC>(p, target, row, sums);
    else
      leave_by<Tile, false, 1, kReadC>(p, target, row, sums);
  };
  if (p.read_c && p.parts == 1)
    by.template operator()<true>();
  else
    by.template operator()<false>();
}

/// Where a thread finds its floats in a panel: rows 2 (t / 4) and the next of its warp's 16.
template <class Tile>
struct Floats {
  unsigned place;

  __device__ explicit Floats(int thread) {
    const int warp = thread / 32, g = thread % 32 / 4, t = thread % 4, row = warp * 16 + 2 * g;
    if constexpr (Tile::kAlongK)
      place = unsigned(row * Tile::kPitch) + (unsigned(t * 16) ^ unsigned(g % 2 * 64));
    else
      place = unsigned(t * Tile::kPitch + row * Tile::kParts * int(sizeof(float)));
  }

  /// Of both rows, the slots of half a stage.
  __device__ void load(unsigned panel, int half, float (&x)[2][4]) const {
    constexpr unsigned kHalf = Tile::kPitch * Tile::kLines / 2, kFour = Tile::kPitch * 4;
    if constexpr (Tile::kAlongK) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float4 v =
            load_shared<float4>(panel + (place ^ unsigned(half * 64)) + r * Tile::kPitch);
        x[r][0] = v.x, x[r][1] = v.y, x[r][2] = v.z, x[r][3] = v.w;
      }
    } else if constexpr (Tile::kParts == 1) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 v = load_shared<float2>(panel + place + half * kHalf + i * kFour);
        x[0][i] = v.x, x[1][i] = v.y;
      }
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float4 v = load_shared<float4>(panel + place + half * kHalf + i * kFour);
        x[0][2 * i] = v.x, x[0][2 * i + 1] = v.y, x[1][2 * i] = v.z, x[1][2 * i + 1] = v.w;
      }
    }
  }
};

/// Splits floats into the fragments of the first plane and of the others.
__device__ inline void split(const float (&x)[2][4], unsigned (&first)[4],
                             unsigned (&others)[2][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const SplitPair split({kScale * x[i % 2][i / 2 * 2], kScale * x[i % 2][i / 2 * 2 + 1]});
    first[i] = split.plane[0];
    others[0][i] = split.plane[1];
    others[1][i] = split.plane[2];
  }
}

/// Adds the products of planes but for those of the first ones, the smallest first, to d, which
/// begins with them unless kAdd. `b`: the half of an image.
template <int kN, bool kAdd>
__device__ void multiply_others(float (&d)[kN / 2], const unsigned (&first)[4],
                                const unsigned (&others)[2][4], const DescriptorOf<64>& b) {
  constexpr unsigned kPlane = kN * 64;
  multiply<__nv_bfloat16, kN, kAdd>(d, others[1], b);
  multiply<__nv_bfloat16, kN>(d, others[0], b + kPlane);
  multiply<__nv_bfloat16, kN>(d, first, b + 2 * kPlane);
  multiply<__nv_bfloat16, kN>(d, others[0], b);
  multiply<__nv_bfloat16, kN>(d, first, b + kPlane);
}

/// The sums of a tile by multiply-adds, of floats that all consumers bring to shared memory: for
/// what planes do not suit. `thread`: of the consumers.
template <class Tile, class T>
__device__ void multiply_floats(const Problem<T>& p, const Item& item, unsigned shared, int thread,
                                float (&sums)[Tile::kColumns / 2]) {
  constexpr int kThreads = kWarpgroup * Tile::kConsumers, kLines = Tile::kRows + Tile::kColumns;
  constexpr int kParts = Tile::kParts;
  // At the tile's first row and column, and the next k.
  const auto* rows = static_cast<const T*>(p.rows.from.at(item.batch)) +
                     std::int64_t(item.row_tile) * Tile::kRows * p.rows.across +
                     std::int64_t(item.begin) * (kDepth / kParts) * p.rows.along;
  const auto* cols = static_cast<const T*>(p.cols.from.at(item.batch)) +
                     std::int64_t(item.col_tile) * (Tile::kColumns / kParts) * p.cols.across +
                     std::int64_t(item.begin) * (kDepth / kParts) * p.cols.along;
  const int length =
      int(min(p.length - std::int64_t(item.row_tile) * Tile::kRows, std::int64_t(Tile::kRows)));
  const int width = p.count * kParts - int(item.col_tile) * Tile::kColumns;
#pragma unroll
  for (float& sum : sums) sum = 0;
  int left = min(item.end * kDepth, int(p.k) * kParts) - item.begin * kDepth;
#pragma unroll 1
  for (; left > 0; left -= Tile::kFloatDepth) {
    sync_named(1, kThreads);
#pragma unroll 1
    for (int i = thread; i < Tile::kFloats; i += kThreads) {
      const int line = i % kLines, l = i / kLines, col = line - Tile::kRows;
      float x = 0;
      if (l < left && col >= 0 && col < width)
        x = short_at(p, reinterpret_cast<const char*>(cols), l, col);
      else if (l < left && line < length)
        x = reinterpret_cast<const float*>(rows + l / kParts * p.rows.along +
                                           line * p.rows.across)[l % kParts];
      store_shared(shared + unsigned(i) * 4, x);
    }
    rows += Tile::kFloatDepth / kParts * p.rows.along;
    cols += Tile::kFloatDepth / kParts * p.cols.along;
    sync_named(1, kThreads);
    const int lane = thread % 32;
    unsigned at_row = shared + unsigned(thread / 32 * 16 + lane / 4 * 2) * 4;
    unsigned at_col = shared + unsigned(Tile::kRows + lane % 4 * 2) * 4;
#pragma unroll 1
    for (int l = 0; l < Tile::kFloatDepth; ++l, at_row += kLines * 4, at_col += kLines * 4) {
      const float2 a = load_shared<float2>(at_row);
#pragma unroll
      for (int j = 0; j < Tile::kColumns / 8; ++j) {
        const float2 b = load_shared<float2>(at_col + j * 32);
        sums[4 * j] = fmaf(a.x, b.x, sums[4 * j]);
        sums[4 * j + 1] = fmaf(a.x, b.y, sums[4 * j + 1]);
        sums[4 * j + 2] = fmaf(a.y, b.x, sums[4 * j + 2]);
        sums[4 * j + 3] = fmaf(a.y, b.y, sums[4 * j + 3]);
      }
    }
  }
  sync_named(1, kThreads);
}

template <class Tile, class T>
__device__ void consume(const Problem<T>& p, const Stages<Tile>& stages) {
  constexpr int kN = Tile::kColumns, kWarps = 4 * Tile::kConsumers;
  const Floats<Tile> floats(int(threadIdx.x) - Tile::kProducing);
  wait_for_earlier_kernels();
  Ring<Tile::kStages> place;
  for (unsigned number = blockIdx.x; number < p.items; number += gridDim.x) {
    float sums[kN / 2] = {}, d[kN / 2] = {};
    unsigned before = 0;
    // What the tensor cores have added up of a stage goes to sums that are rounded.
    const auto flush = [&](bool any) {
      wait_products<0>();
      pin(d);
      if (any && thread_now() % 32 == 0) stages.empty(before).arrive();
#pragma unroll
      for (int e = 0; e < kN / 2; ++e) sums[e] += d[e];
    };
    const auto multiply_stage = [&](bool any) {
      stages.full(place.stage).wait(place.parity);
      // (Those who wrote the image would wait here for all that they have asked for.)
      if constexpr (Tile::kInfo.both) fence_shared_for_copies();
      const unsigned panel = stages.panel(place.stage);
      const DescriptorOf<64> image(stages.image(place.stage), 64);
      unsigned first[2][4], others[2][2][4];  // of the halves
      float x[2][2][4];
      if constexpr (!Tile::kAhead) flush(any);
      floats.load(panel, 0, x[0]);
      if constexpr (Tile::kAhead) floats.load(panel, 1, x[1]);
      split(x[0], first[0], others[0]);
      if constexpr (Tile::kAhead) flush(any);
      begin_products();
      multiply_others<kN, false>(d, first[0], others[0], image);
      commit_products();
      if constexpr (!Tile::kAhead) floats.load(panel, 1, x[1]);
      split(x[1], first[1], others[1]);
      begin_products();
      multiply_others<kN, true>(d, first[1], others[1], image + 32);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        multiply<__nv_bfloat16, kN>(d, first[half], image + unsigned(half * 32));
      commit_products();
      before = place.stage;
      place.advance();
    };
    const int steps = item_of(p, number).steps();
    // Two, as the next one is split while the tensor cores still read the registers of the one
    // before: to the compiler, which does not know, these are others then.
#pragma unroll 1
    for (int step = 0; step < steps; step += 2) {
      multiply_stage(step > 0);
      if (step + 1 < steps) multiply_stage(true);
    }
    flush(steps > 0);
    const Item item = item_of(p, number + unsigned(late(0)));  // which took registers before
    const int own = thread_now() - Tile::kProducing;
    float zero = 0;  // or NaN
#pragma unroll
    for (const float sum : sums) zero = fmaf(sum, 0, zero);
    if (any_named(1, 32 * kWarps, zero != 0)) {
      multiply_floats<Tile>(p, item, stages.floats(), own, sums);
    } else {
#pragma unroll
      for (float& sum : sums) sum *= kUnscale;
    }
    const int warp = own / 32;
    leave<Tile>(p, target_of<Tile>(p, item), warp * 16, sums,
                stages.floats() + unsigned(warp * Tile::kWarpBytes));
  }
}

constexpr int kAddThreads = 128;

/// C from the sums of parts, added up in their order: four floats of a tile a thread.
template <class T, int kNumber>
__global__ void __launch_bounds__(kAddThreads) add_kernel(const __grid_constant__ Problem<T> p) {
  constexpr int kRows = kTiles[kNumber].rows(), kEach = kVector<T>;
  constexpr int kCols = kTiles[kNumber].cols * int(sizeof(float)) / int(sizeof(T));
  constexpr unsigned kOfTile = kRows * kCols / kEach;
  begin_early();
  const unsigned i = blockIdx.x * kAddThreads + threadIdx.x;
  const unsigned tile = i / kOfTile, first = i % kOfTile * kEach;  // of the tile, as it lies
  const bool by_cols = p.c.row == 1;
  unsigned row = by_cols ? first % kRows : first / kCols;
  unsigned col = by_cols ? first / kRows : first % kCols;
  const std::int64_t l = std::int64_t(tile / p.col_tiles % p.row_tiles) * kRows + row;
  const int s = int(tile % p.col_tiles * kCols + col);
  if (tile >= p.row_tiles * p.col_tiles * unsigned(p.tiles.batch) || l >= p.length || s >= p.count)
    return;
  const auto* const from = reinterpret_cast<const Vector<T>*>(
      p.sums + std::int64_t(tile) * p.parts * (kRows * kCols) + first);
  Vector<T> sum = from[0];
#pragma unroll 8
  for (int part = 1; part < p.parts; ++part) {
    const Vector<T> x = from[part * kOfTile];
#pragma unroll
    for (int e = 0; e < kEach; ++e) sum.e[e] = sum.e[e] + x.e[e];
  }
  T* const c =
      static_cast<T*>(p.C.at(tile / p.col_tiles / p.row_tiles)) + l * p.c.row + s * p.c.col;
  const std::int64_t left = by_cols ? p.length - l : p.count - s;
#pragma unroll
  for (int e = 0; e < kEach; ++e)
    if (e < left) store(p, sum.e[e], c + e);
}

template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kInfo.blocks)
    fused_kernel(const __grid_constant__ Problem<typename Tile::T> p) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  const unsigned base =
      (shared_address(shared) + Tile::kAlignment - 1) / Tile::kAlignment * Tile::kAlignment;
  const Stages<Tile> stages = {unsigned(late(int(base)))};  // once, not for each step
  if (threadIdx.x == 0) {
    for (unsigned stage = 0; stage < Tile::kStages; ++stage) {
      stages.full(stage).init(Tile::kProducing + (Tile::kInfo.both ? Tile::kProducing / 32 : 1));
      stages.empty(stage).init(4 * Tile::kConsumers);
    }
    fence_barriers();
  }
  __syncthreads();
  let_next_kernel_begin();
  if (threadIdx.x < Tile::kProducing) {
    leave_registers<Tile::kProducerRegisters>();
    if constexpr (Tile::kInfo.both)
      produce_both<Tile>(p, stages);
    else
      produce<Tile>(p, stages);
  } else {
    take_registers<Tile::kConsumerRegisters>();
    consume<Tile>(p, stages);
  }
#endif
}

/// Runs the kernels of tile `kNumber`.
template <int kNumber, bool kAlongK, int kBytes, class T>
void launch_fused(const Problem<T>& p, const CudaQueue& queue) {
  using Of = Tile<T, kNumber, kAlongK, kBytes>;
  if constexpr (!Of::kInfo.both)
    launch_early(queue, image_kernel<T, Of::kColumns>, p.image_blocks, kImageThreads, 0, p,
                 Of::kOrder);
  const std::int64_t room = std::int64_t(queue.device().compute_units) * Of::kInfo.blocks;
  launch_early(queue, fused_kernel<Of>, unsigned(std::min(std::int64_t(p.items), room)),
               Of::kThreads, Of::kShared, p);
  if (p.parts == 1) return;
  const std::int64_t fours = std::int64_t(p.items) / p.parts * (Of::kRows * Of::kColumns / 4);
  launch_early(queue, add_kernel<T, kNumber>, unsigned(ceil_div(fours, kAddThreads)), kAddThreads,
               0, p);
}

/// The product by tile `tile`. `vectors`: the long operand's lines begin at multiples of 16 bytes.
template <class T>
void run_fused(int tile, bool vectors, const Problem<T>& p, const CudaQueue& queue) {
  const auto with_tile = [&]<int kNumber>() {
    if (tile != kNumber) return;
    const bool along_k = p.rows.along == 1;
    if (along_k && vectors)
      launch_fused<kNumber, true, 16>(p, queue);
    else if (along_k)
      launch_fused<kNumber, true, int(sizeof(T))>(p, queue);
    else if (vectors)
      launch_fused<kNumber, false, 16>(p, queue);
    else
      launch_fused<kNumber, false, int(sizeof(T))>(p, queue);
  };
  [&]<int... kNumbers>(std::integer_sequence<int, kNumbers...>) {
    (with_tile.template operator()<kNumbers>(), ...);
  }
  (std::make_integer_sequence<int, int(std::size(kTiles))>{});
}

extern template void run_fused<float>(int, bool, const Problem<float>&, const CudaQueue&);
extern template void run_fused<Complex<float>>(int, bool, const Problem<Complex<float>>&,
                                               const CudaQueue&);

}  // namespace mblas::cuda::gemm::fused
