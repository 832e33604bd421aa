// gemm of doubles, real or complex, on the fp64 tensor cores, fed by Hopper's copy engine: the
// kernel and its tiles.
//
// Limit: 128 multiply-adds a clock and multiprocessor, and for large matrices power. A few warps
// ask for boxes of the operands of 128 bytes by the tile's side, many steps ahead; eight others
// only read shared memory and multiply, two to a scheduler, and what they read next is on its way
// while they do. Blocks stay for several tiles, so that the next tile's boxes come while C is
// written. Instructions are the deepest, 16 along k, which read and write sums half as often as
// those of 8: on an H200 1 to 2 % of the time of 3072x3072 and more. A complex product is a real
// one of twice the rows and the depth, with the fragments of X doubled in registers: 5 to 6 %
// against four products of 4 along k.
//
// Boxes are swizzled: chunk c of 16 bytes of row r lies at c ^ r % 8. Which elements along k a lane
// takes is free as long as both operands agree; it is chosen such that lanes that are served
// together read different banks, and such that what a load brings are neighbours in an operand of
// the instruction: else each would have to be moved. With X the operand whose side has the
// instruction's 16 rows and Y the other one:
// - X contiguous along its side: lane 4 g + t reads of rows of k 4 t + 2 (t / 2 ^ h) and the next,
//   h = 0 and 1, the doubles 2 g and 2 g + 1, which go to rows g and g + 8 of the instruction; of Y
//   chunks of the same k if that is contiguous along k, else double g.
// - both along k: single doubles, of k = t % 2 + t / 2 * 8 + 2 j.
// So X is B where B's rows are C's, and C is stored by rows either way.
#pragma once

#include "cuda/early.cuh"
#include "cuda/gemm/add_parts.cuh"
#include "cuda/gemm/eight_rows.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/hopper/copy.cuh"
#include "cuda/gemm/hopper/panels.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/tensor_f64_tma_plan.hpp"

namespace mblas::cuda::gemm::tma64 {

using hopper::Barrier;

/// kX×kY of C a block, of which a multiprocessor has kBlocks, eight warps in all. A warp has
/// kWarpX×kWarpY; where those are fewer than a block's warps, so many groups of them take the steps
/// along k in turn.
template <class T, int kX_, int kY_, int kWarpX_, int kWarpY_, int kStages_, int kBlocks_ = 1>
struct Tile {
  using Element = T;
  static constexpr int kX = kX_, kY = kY_, kWarpX = kWarpX_, kWarpY = kWarpY_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kDepth = 128 / int(sizeof(T));  // of a step
  static constexpr int kAcross = kY / kWarpY;
  static constexpr int kPlaces = kX / kWarpX * kAcross;
  static constexpr int kWarps = 8 / kBlocks, kGroups = kWarps / kPlaces;
  // Registers move by groups of four warps: so many there are that may ask for boxes.
  static constexpr int kThreads = 32 * (kWarps + 4);
  static constexpr int kM = kWarpX / (sizeof(T) == 8 ? 16 : 8), kN = kWarpY / 8;
  static constexpr unsigned kBytesX = kX * 128, kStageBytes = (kX + kY) * 128;
  static constexpr int kPairs = (kN + 1) / 2;  // of fragments of Y, the last one perhaps alone
  // A group leaves its sums of the pairs that the others finish.
  static constexpr unsigned kExchange = unsigned((kGroups - 1) * kX * kY * int(sizeof(T)));
  static constexpr bool kJoins = joins(kX, kY, sizeof(T) == 8 ? 1 : 4);
  // Fragments outside of C can be left out.
  static constexpr bool kSkips = kBlocks > 1;
  // What is not stored from fragments. Of the largest tiles it would take more registers than there
  // are.
  static constexpr bool kByRows = kJoins;
  using Rows = EightRows<T, 16>;
  using NarrowRows = EightRows<T, 8>;  // of a fragment of Y that is alone
  static constexpr unsigned kRowsBytes =
      kByRows ? unsigned(kWarps * Rows::kSize * int(sizeof(T))) : 0;
  // Where one group has all steps, it is told by the producer which ones come: of as many pieces as
  // there can be from the one whose results are written to the one that is asked for.
  static constexpr bool kNotes = kGroups == 1;
  static constexpr int kNoteCount = kStages + 2;
  // Of a warp that asks for boxes, and of those that multiply.
  static constexpr int kFewRegisters = kJoins ? 40 : 24;
  static constexpr int kRegisters = !kJoins ? 240 : kBlocks == 1 ? 232 : 208;
  static constexpr unsigned kShared =
      kStages * (kStageBytes + 16) + kExchange + kRowsBytes + (kNotes ? kNoteCount * 32 : 0) + 1024;
  static_assert(kGroups * kPlaces == kWarps && kM * kPairs % kGroups == 0 && kM % 2 == 0);
  static_assert(kJoins || kBlocks == 1);
  static_assert(!kSkips || (kPlaces == 4 && kNotes && kN >= 2));
};

template <class T>
struct Problem : GemmProblem<T> {
  hopper::Panels panels_x, panels_y;
  Schedule schedule;
  int tiles_x, tiles_y;   // of a matrix
  bool batch_x, batch_y;  // or one matrix for all
  bool vectors_c;         // rows of C begin at multiples of 16 bytes
  bool whole_c;           // they begin where fragments write sectors of 32 bytes whole
  bool skips;             // fragments outside of C, by tiles that can
  int slices;             // of k, by as many blocks of a cluster; 1: blocks are alone
  T* parts;
};

/// The piece in which the block's step number `at` is; false: it has no such step.
template <class Tile, class T>
__device__ bool find_piece(const Problem<T>& p, int at, Piece& piece) {
  Schedule now = p.schedule;
  now.steps = late(p.schedule.steps);
  if constexpr (Tile::kJoins)
    if (const int slices = late(p.slices); slices > 1) {
      const int rank = int(blockIdx.x) % slices, first = rank * now.steps / slices;
      const int steps = (rank + 1) * now.steps / slices - first;
      piece = {int(blockIdx.x) / slices, first, steps, -1};
      return at < steps;
    }
  const int blocks = late(int(gridDim.x));
  if (!now.find_piece(int(blockIdx.x), blocks, at, piece)) return false;
  // In the first round each has its own.
  if (Tile::kSkips && p.skips && piece.tile >= blocks && piece.tile < now.whole)
    piece.tile = dealt(piece.tile, now.whole, blocks);
  return true;
}

/// Where a tile is: those of a group of eight along x are walked along y.
template <class Tile>
struct Place {
  int x, y, batch;  // of the first element

  template <class T>
  __device__ Place(const Problem<T>& p, int tile) {
    constexpr int kGroup = 8;
    const int tiles_y = late(p.tiles_y), matrix = p.tiles_x * tiles_y;
    batch = tile / matrix;
    tile -= batch * matrix;
    const int first = tile / (kGroup * tiles_y) * kGroup, height = min(kGroup, p.tiles_x - first);
    tile -= first * tiles_y;
    x = (first + tile % height) * Tile::kX;
    y = tile / height * Tile::kY;
  }
};

/// What is to be known of a piece; `steps` 0: there are no more.
struct alignas(32) Note {
  int x, y, batch, part, steps;
  int turn;  // of places in the tile among warps
};
template <class Tile, class T>
__device__ Note note_of(const Problem<T>& p, const Piece& piece) {
  const Place<Tile> place(p, piece.tile);
  // At random, so that of tiles with few rows each scheduler has some.
  const int turn = Tile::kSkips && p.skips ? int(unsigned(piece.tile) * 0x9e3779b1u >> 30) : 0;
  return {place.x, place.y, place.batch, piece.part, piece.steps, turn};
}

/// How lanes read an operand: chunks; single doubles of the same k; or single doubles of the k that
/// two operands along k take.
enum class Read { Chunks, Singles, SinglesAlongK };

/// An operand's elements as a warp reads them from a stage's boxes. kAlongK: rows of boxes run
/// along k.
template <class T, bool kAlongK, Read kRead>
struct Panel {
  static constexpr int kWide = 128 / int(sizeof(T));                // elements of a box's row
  static constexpr unsigned kBoxBytes = kAlongK ? 0 : kWide * 128;  // along the side: box by box
  static constexpr bool kOneByOne =                                 // elements along k
      kRead == Read::SinglesAlongK || (!kAlongK && sizeof(T) == 8);
  static constexpr int kEach = kOneByOne ? 2 : 1;

  /// Of this lane's accesses to the first fragment: for half `h` of a step at kEach h, for the
  /// second of its elements along k, where those are read one by one, the next. The same to the
  /// second fragment, where that may be in another box's row.
  unsigned from[2 * kEach], from_odd[kRead == Read::Singles ? 2 * kEach : 1];

  /// kKept: the compiler is not to find them out anew at each step.
  template <bool kKept>
  __device__ static Panel of(int outer, int g, int t) {
    const int chunk = 2 * t + t / 2;
    unsigned lane, next = 0;
    if constexpr (kRead == Read::SinglesAlongK) {
      lane = unsigned((outer + g) * 128 + ((t / 2 * 4 ^ g) << 4) + t % 2 * 8);
    } else if constexpr (kAlongK) {
      lane = unsigned((outer + g) * 128 + ((chunk ^ g) << 4));
    } else {
      const int k = chunk * 16 / int(sizeof(T));
      lane = unsigned(outer / kWide) * kBoxBytes + unsigned(k * 128);
      // Odd fragments of 8 are in the next box, where the first begins within one.
      next = kRead == Read::Singles && outer % kWide != 0 ? kBoxBytes : 0;
      lane += kRead == Read::Singles ? unsigned(((g / 2 ^ k % 8) << 4) + g % 2 * 8)
                                     : unsigned((g ^ k % 8) << 4);
      if (next != 0) lane ^= 1 << 6;
    }
    Panel panel;
    const auto kept = [](unsigned x) { return kKept ? unsigned(late(int(x))) : x; };
#pragma unroll
    for (int i = 0; i < 2 * kEach; ++i) {
      const unsigned to = unsigned(i) << 4 | (kAlongK ? 0 : unsigned(i) << 7);
      panel.from[i] = kept(lane ^ to);
      if constexpr (kRead == Read::Singles) panel.from_odd[i] = kept((lane ^ to ^ 1 << 6) + next);
    }
    return panel;
  }
};

__device__ inline double2 load_chunk(unsigned address) {
  double2 x;
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x.x), "=d"(x.y) : "r"(address));
  return x;
}
__device__ inline double load_single(unsigned address) {
  double x;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(address));
  return x;
}

/// A tile's side of kSize elements from `begin` on. Along k those that there are, 128 bytes each,
/// as the copy engine takes longer to fill a row with zeros than to bring one; kWhole: it is known
/// that all are there. Else boxes of kWide elements by the step's depth, all of them: with a loop
/// that ends where the operand does the producer is too slow (512³ 14.2 us for 12.2).
template <class Panel, bool kAlongK, int kSize>
struct Side {
  const hopper::Panels& panels;
  int begin;

  __device__ bool is_whole() const { return !kAlongK || panels.units_at(begin) == kSize; }
  template <bool kWhole>
  __device__ unsigned bytes() const {
    return unsigned(kWhole || !kAlongK ? kSize : panels.units_at(begin)) * 128;
  }
  static constexpr int kBoxes = kAlongK ? 1 : kSize / Panel::kWide;

  /// Of those of step `l` along k, of elements of so many doubles, every kProducers-th from `box`
  /// on.
  template <bool kWhole, int kDoubles, int kProducers>
  __device__ void load(int box, unsigned to, int l, int batch, Barrier full) const {
    if constexpr (kAlongK) {
      if (box > 0) return;
      // Late: the producer has 24 registers.
      const CUtensorMap& map = kWhole ? panels.map : panels.map_at(late(begin));
      hopper::load_box(to, map, l * kDoubles, begin, batch, full);
    } else {
#pragma unroll kProducers == 1 ? 2 : 1
      for (int i = box * Panel::kWide; i < kSize; i += kProducers * Panel::kWide)
        hopper::load_box(to + unsigned(i) * 128, panels.map, (begin + i) * kDoubles, l, batch,
                         full);
    }
  }
};

/// The bit of a double's sign, or none. As one 64-bit number: of a double put together from halves
/// the compiler keeps copies.
__device__ inline long long sign_if(bool flips) { return flips ? 1ll << 63 : 0; }
__device__ inline double flip_sign(double x, long long sign) {
  long long y;
  asm volatile("xor.b64 %0, %1, %2;" : "=l"(y) : "l"(__double_as_longlong(x)), "l"(sign));
  return __longlong_as_double(y);
}

/// d += a b of 16×8 by 16×8. Lane 4 g + t holds of A rows g and g + 8 of column t, then of columns
/// t + 4, t + 8 and t + 12; of B rows t, t + 4, t + 8 and t + 12 of column g.
__device__ inline void multiply_deep_tile(double (&d)[4], const double (&a)[8],
                                          const double (&b)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
        "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

/// What a warp multiplies: a stage's fragments of Y, and two of those of X, of which one is on its
/// way while the other is in use.
template <class T, int kM, int kN, bool kXAlongK, bool kYAlongK>
struct Fragments {
  using PanelX = Panel<T, kXAlongK, kXAlongK ? Read::SinglesAlongK : Read::Chunks>;
  using PanelY = Panel<T, kYAlongK,
                       kXAlongK   ? Read::SinglesAlongK
                       : kYAlongK ? Read::Chunks
                                  : Read::Singles>;
  static_assert(kYAlongK || !kXAlongK);
  static constexpr int kEach = 4;  // sums of a fragment

  double sum[kM][kN][4];
  double x[2][8], y[kN][4];

  __device__ void fetch_x(unsigned stage, PanelX panel, int i) {
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      double* const to = x[i % 2] + 2 * l;
      const unsigned from = stage + panel.from[l];
      if constexpr (kXAlongK) {
        to[0] = load_single(from + 16 * i * 128);
        to[1] = load_single(from + (16 * i + 8) * 128);
      } else {
        const double2 v = load_chunk(from + i * panel.kBoxBytes);
        to[0] = v.x, to[1] = v.y;
      }
    }
  }
  __device__ void fetch_y(unsigned stage, PanelY panel, int j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      double* const to = y[j] + 2 * h;
      if constexpr (kYAlongK && !kXAlongK) {
        const double2 v = load_chunk(stage + panel.from[h] + 8 * j * 128);
        to[0] = v.x, to[1] = v.y;
      } else {
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if constexpr (kXAlongK)
            to[e] = load_single(stage + panel.from[2 * h + e] + 8 * j * 128);
          else
            to[e] = load_single(stage + (j % 2 ? panel.from_odd : panel.from)[2 * h + e] +
                                j / 2 * panel.kBoxBytes);
      }
    }
  }
  __device__ void prepare_x(int, long long) {}
  __device__ void multiply(int i, int j) { multiply_deep_tile(sum[i][j], x[i % 2], y[j]); }
  __device__ void finish(bool) {}

  /// Where sums are in the warp's part of C: a lane's first, and how much farther the others.
  static constexpr int kApartX = kXAlongK ? 1 : 2;  // neighbours g
  __device__ static int first_y(int t) { return 2 * t; }
  static constexpr int farther_x(int i, int r) { return 16 * i + (kXAlongK ? 8 * r : r); }
  __device__ double& at(int i, int j, int e) { return sum[i][j][e]; }
};

/// Complex numbers as the instruction's real ones: an element of X is the rows (re, im) of one
/// column of it and (-im, re) of the next, one of Y the rows re and im of these. So a fragment has
/// eight rows of C, their real parts before their imaginary ones. Conjugating one of them turns the
/// signs of the second column, and X the imaginary sums' too.
template <int kM, int kN, bool kXAlongK, bool kYAlongK>
struct Fragments<Complex<double>, kM, kN, kXAlongK, kYAlongK> {
  using T = Complex<double>;
  using PanelX = Panel<T, kXAlongK, Read::Chunks>;
  using PanelY = Panel<T, kYAlongK, Read::Chunks>;
  static constexpr int kEach = 2;

  double sum[kM][kN][4];
  double x[2][8], y[kN][4];

  __device__ void fetch_x(unsigned stage, PanelX panel, int i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const double2 v =
          load_chunk(stage + panel.from[h] + i * (kXAlongK ? 8 * 128 : panel.kBoxBytes));
      x[i % 2][4 * h] = v.x, x[i % 2][4 * h + 1] = v.y;
    }
  }
  __device__ void prepare_x(int i, long long sign) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      double* const v = x[i % 2] + 4 * h;
      v[2] = flip_sign(v[1], sign ^ sign_if(true)), v[3] = flip_sign(v[0], sign);
    }
  }
  __device__ void fetch_y(unsigned stage, PanelY panel, int j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const double2 v =
          load_chunk(stage + panel.from[h] + j * (kYAlongK ? 8 * 128 : panel.kBoxBytes));
      y[j][2 * h] = v.x, y[j][2 * h + 1] = v.y;
    }
  }
  __device__ void multiply(int i, int j) { multiply_deep_tile(sum[i][j], x[i % 2], y[j]); }
  /// The signs of the imaginary sums. Of four neighbours in C, which two lanes have, the even one
  /// gets the first and the third.
  __device__ void finish(bool conjugate_x) {
    const bool odd = threadIdx.x % 2 != 0;
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; ++j)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
          double &v = sum[i][j][e], &w = sum[i][j][e + 1];
          if (e == 2 && conjugate_x) v = -v, w = -w;
          const double other = __shfl_xor_sync(~0u, odd ? v : w, 1);
          if (odd)
            v = other;
          else
            w = other;
        }
  }

  static constexpr int kApartX = 1;
  __device__ static int first_y(int t) { return 2 * t - t % 2; }
  static constexpr int farther_x(int i, int) { return 8 * i; }
  struct Reference {
    double &re, &im;
    __device__ operator T() const { return {re, im}; }
    __device__ void operator=(T v) { re = v.re, im = v.im; }
  };
  __device__ Reference at(int i, int j, int e) { return {sum[i][j][e], sum[i][j][2 + e]}; }
};

/// Two elements of a row of C as a lane has them: neighbours of doubles, and of complex numbers
/// every other one, so that two lanes share a sector. kAll: both are inside, at a multiple of 16
/// bytes; else `cols` of the row's are inside.
template <class T>
inline constexpr int kApart = int(sizeof(T)) / 8;

template <bool kAll, class T>
__device__ void load_pair(const T* c, int cols, T (&x)[2]) {
  if constexpr (kAll && sizeof(T) == 8) {
    const double2 both = *reinterpret_cast<const double2*>(c);
    x[0] = both.x, x[1] = both.y;
  } else if constexpr (kAll) {
#pragma unroll
    for (int e = 0; e < 2; ++e) x[e] = load_element(c + e * kApart<T>);
  } else {
    if (cols > 0) x[0] = c[0];
    if (cols > kApart<T>) x[1] = c[kApart<T>];
  }
}
template <bool kAll, class T>
__device__ void store_pair(T* c, int cols, T v, T w) {
  if constexpr (kAll && sizeof(T) == 8) {
    *reinterpret_cast<double2*>(c) = {v, w};
  } else if constexpr (kAll) {
    store_element(c, v);
    store_element(c + kApart<T>, w);
  } else {
    if (cols > 0) c[0] = v;
    if (cols > kApart<T>) c[kApart<T>] = w;
  }
}

/// use<n>() for the least n of 2 to kMost that `count` does not exceed, or kMost.
template <int kMost, int kFirst = 2>
__device__ void with_count(int count, auto&& use) {
  if constexpr (kFirst < kMost)
    if (count > kFirst) return with_count<kMost, kFirst + 1>(count, use);
  use.template operator()<kFirst>();
}

/// kSwapped: X is op(B).
template <class Tile, bool kXAlongK, bool kYAlongK, bool kSwapped>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    kernel(const __grid_constant__ Problem<typename Tile::Element> p) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  using T = typename Tile::Element;
  using F = Fragments<T, Tile::kM, Tile::kN, kXAlongK, kYAlongK>;
  using PanelX = typename F::PanelX;
  using PanelY = typename F::PanelY;
  constexpr int kStages = Tile::kStages, kGroups = Tile::kGroups, kM = Tile::kM, kN = Tile::kN;
  constexpr int kPairs = Tile::kPairs, kEach = F::kEach;
  extern __shared__ unsigned char shared[];
  const unsigned panels = (shared_address(shared) + 1023) / 1024 * 1024;
  const unsigned exchange = panels + kStages * Tile::kStageBytes;
  const unsigned rows_out = exchange + Tile::kExchange;
  const unsigned barriers = rows_out + Tile::kRowsBytes;
  [[maybe_unused]] Note* const notes =
      reinterpret_cast<Note*>(shared + (barriers + kStages * 16 - shared_address(shared)));
  const auto full = [&](unsigned stage) { return Barrier{barriers + stage * 8}; };
  const auto empty = [&](unsigned stage) { return Barrier{barriers + (kStages + stage) * 8}; };
  [[maybe_unused]] int number = 0;  // of the piece's note
  const auto next_number = [](int i) { return i + 1 == Tile::kNoteCount ? 0 : i + 1; };

  if (threadIdx.x == 0) {
    hopper::prefetch_map(p.panels_x.map);
    hopper::prefetch_map(p.panels_y.map);
    for (int s = 0; s < kStages; ++s) {
      full(s).init(1);
      empty(s).init(Tile::kPlaces);
    }
    hopper::fence_barriers();
  }
  __syncthreads();

  int at = 0;  // steps of this block so far
  if (threadIdx.x >= 32 * Tile::kWarps) {
    hopper::leave_registers<Tile::kFewRegisters>();
    // Each warp asks for its share of the boxes: from one to the next takes it 86 cycles.
    constexpr int kProducers = kXAlongK || !Tile::kJoins ? 1 : tma64::kProducers;
    const int producer = thread_now() / 32 - Tile::kWarps;
    if (producer >= kProducers || thread_now() % 32 != 0) return;
    constexpr int kDoubles = int(sizeof(T)) / 8;  // elements of the maps
    Piece piece;
    while (find_piece<Tile>(p, at, piece)) {
      const Note place = note_of<Tile>(p, piece);
      if constexpr (Tile::kNotes) {
        if (producer == 0) notes[number] = place;
        number = next_number(number);
      }
      const int batch_x = p.batch_x ? place.batch : 0, batch_y = p.batch_y ? place.batch : 0;
      const Side<PanelX, kXAlongK, Tile::kX> side_x{p.panels_x, place.x};
      const Side<PanelY, kYAlongK, Tile::kY> side_y{p.panels_y, place.y};
      const int first_y =
          (producer + kProducers - decltype(side_x)::kBoxes % kProducers) % kProducers;
      // Apart, as looking up maps and bytes at each step costs whole tiles 1 % of the time.
      const auto bring = [&]<bool kWhole>() {
        const unsigned bytes = side_x.template bytes<kWhole>() + side_y.template bytes<kWhole>();
#pragma unroll 1
        for (int step = piece.first; step < piece.first + piece.steps; ++step, ++at) {
          const unsigned stage = unsigned(at) % kStages;
          empty(stage).wait((unsigned(at) / kStages + 1) % 2);
          if (producer == 0) full(stage).arrive_expecting(bytes);
          const unsigned x = panels + stage * Tile::kStageBytes;
          const int l = step * Tile::kDepth;
          side_x.template load<kWhole, kDoubles, kProducers>(producer, x, l, batch_x, full(stage));
          side_y.template load<kWhole, kDoubles, kProducers>(first_y, x + Tile::kBytesX, l, batch_y,
                                                             full(stage));
        }
      };
      begin_early();  // behind what can be found out before; for later pieces it is over
      if (side_x.is_whole() && side_y.is_whole())
        bring.template operator()<true>();
      else
        bring.template operator()<false>();
    }
    if (Tile::kNotes && producer == 0) {
      notes[number] = {};
      const unsigned stage = unsigned(at) % kStages;
      empty(stage).wait((unsigned(at) / kStages + 1) % 2);
      full(stage).arrive_expecting(0);
    }
    return;
  }

  hopper::take_registers<Tile::kRegisters>();
  const int warp = thread_now() / 32, lane = thread_now() % 32;
  const int group = warp / Tile::kPlaces;
  // By a warp's number and its tile's turn.
  const auto x_of_warp = [](int w) { return w % Tile::kPlaces / Tile::kAcross * Tile::kWarpX; };
  const auto y_of_warp = [](int w) { return w % Tile::kAcross * Tile::kWarpY; };
  PanelX panel_x;
  PanelY panel_y;
  const auto set_panels = [&](int w) {
    panel_x = PanelX::template of<Tile::kSkips>(x_of_warp(w), lane / 4, lane % 4);
    panel_y = PanelY::template of<Tile::kSkips>(y_of_warp(w), lane / 4, lane % 4);
  };
  set_panels(warp);
  const long long sign = sign_if(p.conjugate_a != p.conjugate_b);
  F f;
  // Before there is something to wait for: the divisions take 600 cycles.
  Note place = {};
  [[maybe_unused]] int last = 0;  // steps of this block
  const auto find_place = [&] {
    Piece piece;
    place.steps = 0;
    if (find_piece<Tile>(p, at, piece)) place = note_of<Tile>(p, piece);
  };
  if constexpr (!Tile::kNotes) {
    find_place();
    last = p.slices > 1 ? place.steps : p.schedule.steps_of(int(blockIdx.x), int(gridDim.x));
  }
  begin_early();

  const bool releases = lane == 0;
  const unsigned rank = Tile::kJoins ? hopper::rank_in_cluster() : 0;
  // The steps of the next piece; 0: there is none.
  const auto steps_ahead = [&] {
    if constexpr (Tile::kNotes) {
      full(unsigned(at) % kStages).wait(unsigned(at) / kStages % 2);
      return notes[number].steps;
    } else {
      return place.steps;
    }
  };
  while (const int steps = steps_ahead()) {
    int rows = kM, cols = kN;  // fragments of this warp that are inside of C
    if (Tile::kSkips && p.skips) {
      const Note ahead = notes[number];
      const int w = thread_now() / 32 + ahead.turn;
      set_panels(w);
      constexpr int kFragmentX = Tile::kWarpX / kM;
      rows = (p.panels_x.size - ahead.x - x_of_warp(w) + kFragmentX - 1) / kFragmentX;
      cols = (p.panels_y.size - ahead.y - y_of_warp(w) + 7) / 8;
    }
#pragma unroll
    for (int e = 0; e < kM * kN * 4; ++e) f.sum[e / 4 / kN][e / 4 % kN][e % 4] = 0;
    at += steps;
    int left = steps - group;  // of which every kGroups-th is this warp's
    // Of kRows by kCols fragments; where rows are but one, the next step's comes after its
    // products.
    const auto multiply_steps = [&]<int kRows, int kCols>() {
      static_assert(kRows <= 1 || kRows % 2 == 0);
      const unsigned step = unsigned(at - left);
      unsigned stage = step % kStages, parity = step / kStages % 2;
      full(stage).wait(parity);
      unsigned x = panels + stage * Tile::kStageBytes;
      f.fetch_x(x, panel_x, 0);
#pragma unroll
      for (int j = 0; j < kCols - 1; ++j) f.fetch_y(x + Tile::kBytesX, panel_y, j);
#pragma unroll 1
      do {
        const unsigned now = stage;
        bool ready = true;
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          f.prepare_x(i, sign);
          f.multiply(i, 0);
          // What the product before the last one read is free: it takes what comes next.
          if (i == 0) {
            f.fetch_y(x + Tile::kBytesX, panel_y, kCols - 1);
            // The next stage is looked for early: the answer takes its time.
            left -= kGroups;
            if (left > 0) {  // else the last step reads its own stage again, for nothing
              stage += kGroups;
              if (stage >= kStages) stage -= kStages, parity ^= 1;
              ready = full(stage).has_ended(parity);
            }
          }
          __syncwarp();  // keeps the compiler from fetching earlier, for which registers are few
          if (i == kRows - 1) {
            if (!ready) full(stage).wait(parity);
            x = panels + stage * Tile::kStageBytes;
          }
          if (kRows > 1) f.fetch_x(x, panel_x, (i + 1) % kRows);
#pragma unroll
          for (int j = 1; j < kCols; ++j) {
            f.multiply(i, j);
            if (i == kRows - 1) f.fetch_y(x + Tile::kBytesX, panel_y, j - 1);
          }
          if (kRows == 1) f.fetch_x(x, panel_x, 0);
        }
        // Not before the branch of the wait, which comes after the last product of what was read of
        // the stage (of a single row one is used after it): the compiler moves an arrival up to
        // where the last reads have only begun. Those of warps in the producer's quarter of the
        // multiprocessor queue behind its requests, and the next step's box overtakes them.
        // tests/hopper_code_test.cpp reads the code for it.
        __syncwarp();
        if (releases && left > 0) empty(now).arrive_at(rank);
      } while (left > 0);
      __syncwarp();
      if (releases) empty(stage).arrive_at(rank);
    };
    const auto pass_steps = [&] {  // of a warp that is outside of C
      for (; left > 0; left -= kGroups) {
        const unsigned step = unsigned(at - left), stage = step % kStages;
        full(stage).wait(step / kStages % 2);
        __syncwarp();
        if (releases) empty(stage).arrive_at(rank);
      }
    };
    if (left > 0) {
      if constexpr (Tile::kSkips)
        if (rows <= 0 || cols <= 0)
          pass_steps();
        else
          with_count<kN>(cols, [&]<int kCols>() {
            if (rows > kM / 2)
              multiply_steps.template operator()<kM, kCols>();
            else
              multiply_steps.template operator()<kM / 2, kCols>();
          });
      else
        multiply_steps.template operator()<kM, kN>();
    }
    f.finish(p.conjugate_a);

    const auto mine = [&](int s) { return s % kGroups == group; };
    // use(two sums, their number among the warp's twos) for all of pair `s`.
    [[maybe_unused]] const auto for_each_two = [&](int s, auto&& use) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (const int i = s / kPairs, j = s % kPairs * 2 + e / 2; j < kN)
          use(f.sum[i][j] + e % 2 * 2, (i * kN + j) * 2 + e % 2);
    };
    constexpr int kTwos = kM * kN * 2;  // of a warp
    if constexpr (kGroups > 1) {
      // Groups have sums of a part of k: each finishes a share of the tile and leaves the others.
      constexpr int kLanes = 32 * Tile::kPlaces;
      double2* const left_here =
          reinterpret_cast<double2*>(shared + (exchange - shared_address(shared))) +
          thread_now() % kLanes;
      hopper::sync_named(1, 32 * Tile::kWarps);
#pragma unroll
      for (int s = 0; s < kM * kPairs; ++s)
        if (!mine(s)) {
          const int place = (group - s % kGroups + kGroups) % kGroups - 1;  // among the others
          for_each_two(s, [&](const double* sum, int number) {
            left_here[(place * kTwos + number) * kLanes] = {sum[0], sum[1]};
          });
        }
      hopper::sync_named(1, 32 * Tile::kWarps);
#pragma unroll
      for (int s = 0; s < kM * kPairs; ++s)
        if (mine(s))
          for (int place = 0; place < kGroups - 1; ++place)
            for_each_two(s, [&](double* sum, int number) {
              const double2 x = left_here[(place * kTwos + number) * kLanes];
              sum[0] += x.x, sum[1] += x.y;
            });
    }

    // Of this warp's pairs of fragments, those that it finishes, by bits.
    const bool joined = Tile::kJoins && p.slices > 1;
    unsigned finished = ~0u;
    if constexpr (Tile::kJoins)
      if (joined) {
        // Each block of the cluster adds up a share of the tile, slice after slice.
        const int in_tile = warp % Tile::kPlaces;
        double2* const here =
            reinterpret_cast<double2*>(shared + (panels - shared_address(shared))) +
            in_tile * kTwos * 32 + lane;
        if constexpr (kGroups == 1) hopper::sync_named(1, 32 * Tile::kWarps);
#pragma unroll
        for (int s = 0; s < kM * kPairs; ++s)
          if (mine(s))
            for_each_two(s, [&](const double* sum, int number) {
              here[number * 32] = {sum[0], sum[1]};
            });
        sync_cluster();
        finished = 0;
#pragma unroll
        for (int s = 0; s < kM * kPairs; ++s)
          if (mine(s) && unsigned(in_tile * kM * kPairs + s) % unsigned(p.slices) == rank) {
            finished |= 1u << s;
            for_each_two(s, [&](double* to, int number) {
              const unsigned at = shared_address(here + number * 32);
              double2 sum = load_shared_of<double2>(at, 0);
              for (int slice = 1; slice < p.slices; ++slice) {
                const double2 x = load_shared_of<double2>(at, unsigned(slice));
                sum.x += x.x, sum.y += x.y;
              }
              to[0] = sum.x, to[1] = sum.y;
            });
          }
      }
    const auto finishes = [&](int s) { return mine(s) && (!Tile::kJoins || finished >> s & 1); };

    if constexpr (Tile::kNotes) {  // only now: sums need the registers before
      place = notes[number];
      number = next_number(number);
    }
    const int thread = thread_now(), g = thread % 32 / 4, t = thread % 4;
    const int x0 = x_of_warp(thread / 32 + place.turn), y0 = y_of_warp(thread / 32 + place.turn);
    // use(number, row, column, v, w) for every pair of sums of a fragment of X and two of Y, its
    // place relative to this lane's first one.
    const int x1 = x0 + g * F::kApartX, y1 = y0 + (kSwapped ? 2 * t : F::first_y(t));
    const int row1 = kSwapped ? y1 : x1, col1 = kSwapped ? x1 : y1;
    const auto for_each_pair = [&](int s, auto&& use) {
      const int i = s / kPairs, q = s % kPairs;
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        if (2 * q + (kSwapped ? e / 2 : e % 2) >= kN) continue;
        if constexpr (kSwapped)
          use(e, 16 * q + e / 2 * 8 + e % 2, F::farther_x(i, 0), f.at(i, 2 * q + e / 2, e % 2),
              f.at(i, 2 * q + e / 2, 2 + e % 2));
        else
          use(e, F::farther_x(i, e / 2), 16 * q + e % 2 * 8, f.at(i, 2 * q + e % 2, e / 2 * 2),
              f.at(i, 2 * q + e % 2, e / 2 * 2 + 1));
      }
    };
    const int i0 = kSwapped ? place.y : place.x, j0 = kSwapped ? place.x : place.y;
    constexpr int kCols = kSwapped ? Tile::kX : Tile::kY;
    if (place.part < 0) {
      const int rows = int(min(p.m - i0, std::int64_t(1 << 16)));
      const int cols = int(min(p.n - j0, std::int64_t(kCols)));
      T* const c = static_cast<T*>(p.C.at(place.batch)) + i0 * p.ldc + j0;
      const auto finish = [&]<bool kAll>() {
        T* const c1 = c + row1 * p.ldc + col1;
        const int rows1 = rows - row1, cols1 = cols - col1;
#pragma unroll
        for (int s = 0; s < kM * kPairs; ++s) {
          if (!finishes(s)) continue;
          for_each_pair(s, [&](int, int, int, auto&& v, auto&& w) {
            v = p.alpha * T(v), w = p.alpha * T(w);
          });
          if (p.read_c) {
            T old[kEach][2];  // read together: after a store, the compiler would not begin to
            for_each_pair(s, [&](int e, int row, int col, auto&&, auto&&) {
              if (row < rows1) load_pair<kAll>(c1 + row * p.ldc + col, cols1 - col, old[e]);
            });
            for_each_pair(s, [&](int e, int, int, auto&& v, auto&& w) {
              v = multiply_add(p.beta, old[e][0], T(v)), w = multiply_add(p.beta, old[e][1], T(w));
            });
          }
          for_each_pair(s, [&](int, int row, int col, T v, T w) {
            if (row < rows1) store_pair<kAll>(c1 + row * p.ldc + col, cols1 - col, v, w);
          });
        }
      };
      if (cols == kCols && (Tile::kByRows ? p.whole_c : p.vectors_c)) {
        finish.template operator()<true>();
      } else if constexpr (Tile::kByRows) {
        // Eight rows at a time, those of half of a pair of fragments of doubles.
        constexpr int kHalves = kEach / 2;
        T* const staged_at = reinterpret_cast<T*>(shared + (rows_out - shared_address(shared))) +
                             thread / 32 * Tile::Rows::kSize;
        const auto by_rows = [&]<class Rows>(int s, int h, int row, int col) {
          const Rows staged{staged_at, thread % 32};
          for_each_pair(s, [&](int e, int, int, T v, T w) {
            if (e / 2 != h) return;
            if constexpr (kSwapped)
              staged.put(2 * t + e % 2, 2 * g, v, w);
            else
              staged.template put<kApart<T>>(g, e % 2 * 8 + F::first_y(t), v, w);
          });
          constexpr int kRowsApart = kSwapped ? 1 : F::kApartX;
          staged.store(p, c + row * p.ldc + col, kRowsApart * p.ldc,
                       (rows - row + kRowsApart - 1) / kRowsApart, cols - col, false, p.vectors_c);
        };
#pragma unroll
        for (int s = 0; s < kM * kPairs; ++s) {
          if (!finishes(s)) continue;
#pragma unroll
          for (int h = 0; h < kHalves; ++h) {
            const bool alone = s % kPairs * 2 + 1 == kN;
            if (kSwapped && alone && h == 1) continue;
            const int side = y0 + s % kPairs * 16;
            const int row = kSwapped ? side + 8 * h : x0 + F::farther_x(s / kPairs, h);
            const int col = kSwapped ? x0 + s / kPairs * 16 : side;
            if (row >= rows || col >= cols) continue;
            if (!kSwapped && alone)
              by_rows.template operator()<typename Tile::NarrowRows>(s, h, row, col);
            else
              by_rows.template operator()<typename Tile::Rows>(s, h, row, col);
          }
        }
      } else {
        finish.template operator()<false>();
      }
    } else {
      T* const c = p.parts + std::int64_t(place.part) * Tile::kX * Tile::kY + row1 * kCols + col1;
#pragma unroll
      for (int s = 0; s < kM * kPairs; ++s)
        if (finishes(s))
          for_each_pair(s, [&](int, int row, int col, T v, T w) {
            store_pair<true>(c + row * kCols + col, kCols, v, w);
          });
    }
    if constexpr (!Tile::kNotes) {
      if (at == last)
        place.steps = 0;
      else
        find_place();
    }
    // Nobody leaves whose shared memory another block may still read.
    if (joined) meet_cluster();
  }
#endif
}

/// A tile as C has it.
template <class Tile, bool kSwapped>
struct TileInC {
  static constexpr int kRows = kSwapped ? Tile::kY : Tile::kX;
  static constexpr int kCols = kSwapped ? Tile::kX : Tile::kY;

  template <class T>
  __device__ static Tiles::Place place(const Problem<T>& p, int tile) {
    const Place<Tile> at(p, tile);
    return {kSwapped ? at.y : at.x, kSwapped ? at.x : at.y, at.batch};
  }
};

}  // namespace mblas::cuda::gemm::tma64
