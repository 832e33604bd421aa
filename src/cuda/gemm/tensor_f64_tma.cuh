// gemm of doubles, real or complex, on the fp64 tensor cores, fed by Hopper's copy engine: the
// kernel and its tiles.
//
// Limit: 128 multiply-adds a clock and multiprocessor, and for large matrices power. One warp asks
// for boxes of the operands of 128 bytes by the tile's side, many steps ahead; eight others only
// read shared memory and multiply, two to a scheduler, and what they read next is on its way while
// they do. Blocks stay for several tiles, so that the next tile's boxes come while C is written.
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

#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/hopper/copy.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/tensor_f64_tma_plan.hpp"

namespace mblas::cuda::gemm::tma64 {

using hopper::Barrier;

/// kX×kY of C a block. A warp has kWarpX×kWarpY; where those are fewer than eight, so many groups
/// of them take the steps along k in turn.
template <class T, int kX_, int kY_, int kWarpX_, int kWarpY_, int kStages_>
struct Tile {
  using Element = T;
  static constexpr int kX = kX_, kY = kY_, kWarpX = kWarpX_, kWarpY = kWarpY_;
  static constexpr int kStages = kStages_;
  static constexpr int kDepth = 128 / int(sizeof(T));  // of a step
  static constexpr int kAcross = kY / kWarpY;
  static constexpr int kPlaces = kX / kWarpX * kAcross;
  static constexpr int kWarps = 8, kGroups = kWarps / kPlaces;
  // The warp that copies has three idle ones beside it: registers move by groups of four warps.
  static constexpr int kThreads = 32 * (kWarps + 4);
  static constexpr int kM = kWarpX / 16, kN = kWarpY / 8;
  static constexpr unsigned kBytesX = kX * 128, kStageBytes = (kX + kY) * 128;
  static constexpr unsigned kExchange =
      kGroups == 1 ? 0 : unsigned(kGroups * kX * kY * int(sizeof(T)));
  static constexpr unsigned kShared = kStages * (kStageBytes + 16) + kExchange + 1024;
  static_assert(kGroups * kPlaces == kWarps && kM * kN / 2 % kGroups == 0);
};

template <class T>
struct Problem : GemmProblem<T> {
  CUtensorMap map_x, map_y;
  Schedule schedule;
  int tiles_x, tiles_y;   // of a matrix
  bool batch_x, batch_y;  // or one matrix for all
  bool vectors_c;         // rows of C begin at multiples of 16 bytes
  T* parts;
};

/// `x`, of which the compiler knows nothing: what follows from it is computed where it is needed
/// and takes no registers before, while the sums need them all.
__device__ inline int late(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

/// threadIdx.x, read anew for the same reason.
__device__ inline int thread_now() {
  int x;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
  return x;
}

/// The piece in which the block's step number `at` is; false: it has no such step.
__device__ inline bool find_piece(const Schedule& s, int at, Piece& piece) {
  Schedule now = s;
  now.steps = late(s.steps);
  return now.find_piece(int(blockIdx.x), late(int(gridDim.x)), at, piece);
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

/// How lanes read an operand: chunks; single doubles of the same k; or single doubles of the k that
/// two operands along k take.
enum class Read { Chunks, Singles, SinglesAlongK };

/// An operand's elements as a warp reads them from a stage's boxes. kAlongK: rows of boxes run
/// along k.
template <class T, bool kAlongK, Read kRead>
struct Panel {
  static constexpr int kWide = 128 / int(sizeof(T));                // elements of a box's row
  static constexpr unsigned kBoxBytes = kAlongK ? 0 : kWide * 128;  // along the side: box by box

  unsigned lane;  // offset of this lane's first access

  __device__ Panel(int outer, int g, int t) {
    const int chunk = 2 * t + t / 2;
    if constexpr (kRead == Read::SinglesAlongK) {
      lane = unsigned((outer + g) * 128 + ((t / 2 * 4 ^ g) << 4) + t % 2 * 8);
    } else if constexpr (kAlongK) {
      lane = unsigned((outer + g) * 128 + ((chunk ^ g) << 4));
    } else {
      const int k = chunk * 16 / int(sizeof(T));
      lane = unsigned(outer / kWide) * kBoxBytes + unsigned(k * 128);
      lane += kRead == Read::Singles ? unsigned(((g / 2 ^ k % 8) << 4) + g % 2 * 8)
                                     : unsigned((g ^ k % 8) << 4);
    }
  }
  /// The offset for half `h` of a step, and for the first or the second of its two elements along
  /// k where those are read one by one.
  __device__ unsigned at(int h, int e) const {
    const unsigned second = kRead == Read::SinglesAlongK || (!kAlongK && sizeof(T) == 8)
                                ? unsigned(2 * h + e)
                                : unsigned(h);
    return lane ^ second << 4 ^ (kAlongK ? 0 : second << 7);
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

__device__ inline double flip_sign(double x, unsigned sign) {
  return __hiloint2double(int(unsigned(__double2hiint(x)) ^ sign), __double2loint(x));
}

/// d += a b of 16×8 by 8×8. Lane 4 g + t holds (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4) of A
/// and (t, g), (t + 4, g) of B.
__device__ inline void multiply_deep_tile(double (&d)[4], const double (&a)[4],
                                          const double (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

/// The bits that conjugate X and Y.
struct Signs {
  unsigned x, y;
};

/// What a warp multiplies, half a stage at a time: 8 steps along k of doubles, 4 of complex ones.
template <class T, int kM, int kN, bool kXAlongK, bool kYAlongK>
struct Fragments {
  using PanelX = Panel<T, kXAlongK, kXAlongK ? Read::SinglesAlongK : Read::Chunks>;
  using PanelY = Panel<T, kYAlongK,
                       kXAlongK   ? Read::SinglesAlongK
                       : kYAlongK ? Read::Chunks
                                  : Read::Singles>;
  static_assert(kYAlongK || !kXAlongK);

  double sum[kM][kN][4];
  double x[kM][4], y[2][kN][2];

  __device__ void clear() {
#pragma unroll
    for (int e = 0; e < kM * kN * 4; ++e) sum[e / 4 / kN][e / 4 % kN][e % 4] = 0;
  }
  __device__ void fetch_x(unsigned stage, PanelX panel, int h, int i, Signs) {
    if constexpr (kXAlongK) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[i][e] = load_single(stage + panel.at(h, e / 2) + (16 * i + e % 2 * 8) * 128);
    } else {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const double2 v = load_chunk(stage + panel.at(h, e) + i * panel.kBoxBytes);
        x[i][2 * e] = v.x, x[i][2 * e + 1] = v.y;
      }
    }
  }
  __device__ void fetch_y(unsigned stage, PanelY panel, int h, Signs) {
#pragma unroll
    for (int j = 0; j < kN; ++j) {
      if constexpr (kXAlongK) {
#pragma unroll
        for (int e = 0; e < 2; ++e) y[h][j][e] = load_single(stage + panel.at(h, e) + 8 * j * 128);
      } else if constexpr (kYAlongK) {
        const double2 v = load_chunk(stage + panel.at(h, 0) + 8 * j * 128);
        y[h][j][0] = v.x, y[h][j][1] = v.y;
      } else {
#pragma unroll
        for (int e = 0; e < 2; ++e)
          y[h][j][e] = load_single(stage + (panel.at(h, e) ^ j % 2 << 6) + j / 2 * panel.kBoxBytes);
      }
    }
  }
  __device__ void multiply(int i, int h) {
#pragma unroll
    for (int j = 0; j < kN; ++j) multiply_deep_tile(sum[i][j], x[i], y[h][j]);
  }

  /// Where sums are in the warp's part of C.
  __device__ static int place_x(int i, int r, int g) {
    return 16 * i + (kXAlongK ? 8 * r + g : 2 * g + r);
  }
  __device__ double& at(int i, int j, int e) { return sum[i][j][e]; }
};

template <int kM, int kN, bool kXAlongK, bool kYAlongK>
struct Fragments<Complex<double>, kM, kN, kXAlongK, kYAlongK> {
  using T = Complex<double>;
  using PanelX = Panel<T, kXAlongK, Read::Chunks>;
  using PanelY = Panel<T, kYAlongK, Read::Chunks>;

  double re[kM][kN][4], im[kM][kN][4];
  double x_re[kM][2], x_im[kM][2], y_re[2][kN], y_im[2][kN];

  __device__ void clear() {
#pragma unroll
    for (int e = 0; e < kM * kN * 4; ++e)
      re[e / 4 / kN][e / 4 % kN][e % 4] = im[e / 4 / kN][e / 4 % kN][e % 4] = 0;
  }
  __device__ void fetch_x(unsigned stage, PanelX panel, int h, int i, Signs signs) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const unsigned box = kXAlongK ? (16 * i + 8 * r) * 128 : (2 * i + r) * panel.kBoxBytes;
      const double2 v = load_chunk(stage + panel.at(h, 0) + box);
      x_re[i][r] = v.x, x_im[i][r] = flip_sign(v.y, signs.x);
    }
  }
  __device__ void fetch_y(unsigned stage, PanelY panel, int h, Signs signs) {
#pragma unroll
    for (int j = 0; j < kN; ++j) {
      const unsigned box = kYAlongK ? 8 * j * 128 : j * panel.kBoxBytes;
      const double2 v = load_chunk(stage + panel.at(h, 0) + box);
      y_re[h][j] = v.x, y_im[h][j] = flip_sign(v.y, signs.y);
    }
  }
  __device__ void multiply(int i, int h) {
#pragma unroll
    for (int j = 0; j < kN; ++j) {
      multiply_tile(re[i][j], x_re[i], y_re[h][j]);
      multiply_tile(im[i][j], x_re[i], y_im[h][j]);
    }
#pragma unroll
    for (int j = 0; j < kN; ++j) multiply_tile(im[i][j], x_im[i], y_re[h][j]);
    const double minus[2] = {-x_im[i][0], -x_im[i][1]};
#pragma unroll
    for (int j = 0; j < kN; ++j) multiply_tile(re[i][j], minus, y_im[h][j]);
  }

  __device__ static int place_x(int i, int r, int g) { return 16 * i + 8 * r + g; }
  struct Reference {
    double &re, &im;
    __device__ operator T() const { return {re, im}; }
    __device__ void operator=(T v) { re = v.re, im = v.im; }
  };
  __device__ Reference at(int i, int j, int e) { return {re[i][j][e], im[i][j][e]}; }
};

/// Stores neighbours v and w to `c`; kAll: in one access of 16 bytes, or two.
template <bool kAll, class T>
__device__ void store_pair(const Problem<T>& p, T* c, int cols, T v, T w) {
  if constexpr (kAll && sizeof(T) == 8) {
    auto* const place = reinterpret_cast<double2*>(c);
    double2 both = {p.alpha * v, p.alpha * w};
    if (p.read_c) {
      const double2 old = *place;
      both = {multiply_add(p.beta, old.x, both.x), multiply_add(p.beta, old.y, both.y)};
    }
    *place = both;
  } else {
    if (kAll || cols > 0) store(p, v, c);
    if (kAll || cols > 1) store(p, w, c + 1);
  }
}

/// kSwapped: X is op(B).
template <class Tile, bool kXAlongK, bool kYAlongK, bool kSwapped>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    kernel(const __grid_constant__ Problem<typename Tile::Element> p) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  using T = typename Tile::Element;
  using F = Fragments<T, Tile::kM, Tile::kN, kXAlongK, kYAlongK>;
  using PanelX = typename F::PanelX;
  using PanelY = typename F::PanelY;
  constexpr int kStages = Tile::kStages, kGroups = Tile::kGroups, kM = Tile::kM, kN = Tile::kN;
  constexpr int kPairs = kN / 2;
  extern __shared__ unsigned char shared[];
  const unsigned panels = (shared_address(shared) + 1023) / 1024 * 1024;
  const unsigned exchange = panels + kStages * Tile::kStageBytes;
  const unsigned barriers = exchange + Tile::kExchange;
  const auto full = [&](unsigned stage) { return Barrier{barriers + stage * 8}; };
  const auto empty = [&](unsigned stage) { return Barrier{barriers + (kStages + stage) * 8}; };

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      full(s).init(1);
      empty(s).init(Tile::kPlaces);
    }
    hopper::fence_barriers();
  }
  __syncthreads();

  int at = 0;  // steps of this block so far
  if (threadIdx.x >= 32 * Tile::kWarps) {
    hopper::leave_registers<40>();
    if (thread_now() != 32 * Tile::kWarps) return;
    constexpr int kDoubles = int(sizeof(T)) / 8;  // elements of the maps
    Piece piece;
    while (find_piece(p.schedule, at, piece)) {
      const Place<Tile> place(p, piece.tile);
      const int batch_x = p.batch_x ? place.batch : 0, batch_y = p.batch_y ? place.batch : 0;
#pragma unroll 1
      for (int step = piece.first; step < piece.first + piece.steps; ++step, ++at) {
        const unsigned stage = unsigned(at) % kStages;
        empty(stage).wait((unsigned(at) / kStages + 1) % 2);
        full(stage).arrive_expecting(Tile::kStageBytes);
        const unsigned x = panels + stage * Tile::kStageBytes, y = x + Tile::kBytesX;
        const int l = step * Tile::kDepth;
        if constexpr (kXAlongK) {
          hopper::load_box(x, p.map_x, l * kDoubles, place.x, batch_x, full(stage));
        } else {
#pragma unroll 2
          for (int i = 0; i < Tile::kX; i += PanelX::kWide)
            hopper::load_box(x + unsigned(i) * 128, p.map_x, (place.x + i) * kDoubles, l, batch_x,
                             full(stage));
        }
        if constexpr (kYAlongK) {
          hopper::load_box(y, p.map_y, l * kDoubles, place.y, batch_y, full(stage));
        } else {
#pragma unroll 2
          for (int j = 0; j < Tile::kY; j += PanelY::kWide)
            hopper::load_box(y + unsigned(j) * 128, p.map_y, (place.y + j) * kDoubles, l, batch_y,
                             full(stage));
        }
      }
    }
    return;
  }

  hopper::take_registers<232>();
  const int warp = thread_now() / 32, lane = thread_now() % 32;
  const int group = warp / Tile::kPlaces;
  const auto x_of_warp = [](int w) { return w % Tile::kPlaces / Tile::kAcross * Tile::kWarpX; };
  const auto y_of_warp = [](int w) { return w % Tile::kAcross * Tile::kWarpY; };
  const PanelX panel_x(x_of_warp(warp), lane / 4, lane % 4);
  const PanelY panel_y(y_of_warp(warp), lane / 4, lane % 4);
  const Signs signs = {p.conjugate_a ? 0x80000000u : 0, p.conjugate_b ? 0x80000000u : 0};
  F f;

  const auto release = [&](unsigned step) {
    __syncwarp();
    if (thread_now() % 32 == 0) empty(step % kStages).arrive_at(0);
  };
  while (true) {
    Piece piece;
    if (!find_piece(p.schedule, at, piece)) break;
    f.clear();
    at += piece.steps;
    unsigned step = unsigned(at - piece.steps + group);
    const unsigned end = unsigned(at);
    if (step < end) {
      full(step % kStages).wait(step / kStages % 2);
      unsigned x = panels + step % kStages * Tile::kStageBytes;
#pragma unroll
      for (int i = 0; i < kM; ++i) f.fetch_x(x, panel_x, 0, i, signs);
      f.fetch_y(x + Tile::kBytesX, panel_y, 0, signs);
      do {
        f.fetch_y(x + Tile::kBytesX, panel_y, 1, signs);
#pragma unroll
        for (int i = 0; i < kM; ++i) {
          f.multiply(i, 0);
          f.fetch_x(x, panel_x, 1, i, signs);
        }
        step += kGroups;
        if (step < end) {  // else the last step reads its own stage again, for nothing
          release(step - kGroups);
          x = panels + step % kStages * Tile::kStageBytes;
          full(step % kStages).wait(step / kStages % 2);
        }
        f.fetch_y(x + Tile::kBytesX, panel_y, 0, signs);
#pragma unroll
        for (int i = 0; i < kM; ++i) {
          f.multiply(i, 1);
          f.fetch_x(x, panel_x, 0, i, signs);
        }
      } while (step < end);
      release(step - kGroups);
    }

    const auto mine = [&](int i, int q) { return (i * kPairs + q) % kGroups == group; };
    if constexpr (kGroups > 1) {
      // Groups have sums of a part of k: each finishes a share of the tile and leaves the others.
      constexpr int kLanes = 32 * Tile::kPlaces, kSums = kM * kN * 4;
      T* const left_here = reinterpret_cast<T*>(shared + (exchange - shared_address(shared))) +
                           thread_now() % kLanes;
      hopper::sync_named(1, 32 * Tile::kWarps);
#pragma unroll
      for (int s = 0; s < kM * kPairs; ++s)
        if (!mine(s / kPairs, s % kPairs))
#pragma unroll
          for (int e = 0; e < 8; ++e)
            left_here[(group * kSums + s * 8 + e) * kLanes] =
                f.at(s / kPairs, s % kPairs * 2 + e / 4, e % 4);
      hopper::sync_named(1, 32 * Tile::kWarps);
#pragma unroll
      for (int s = 0; s < kM * kPairs; ++s)
        if (mine(s / kPairs, s % kPairs))
          for (int other = 0; other < kGroups; ++other)
            if (other != group)
#pragma unroll
              for (int e = 0; e < 8; ++e) {
                auto&& sum = f.at(s / kPairs, s % kPairs * 2 + e / 4, e % 4);
                sum = T(sum) + left_here[(other * kSums + s * 8 + e) * kLanes];
              }
    }

    Piece done;
    find_piece(p.schedule, at - 1, done);
    const Place<Tile> place(p, done.tile);
    const int thread = thread_now(), g = thread % 32 / 4, t = thread % 4;
    const int x0 = x_of_warp(thread / 32), y0 = y_of_warp(thread / 32);
    // use(row, column, x, y) for every two neighbours in a row of C.
    const auto for_each_pair = [&](auto&& use) {
#pragma unroll
      for (int s = 0; s < kM * kPairs; ++s) {
        const int i = s / kPairs, q = s % kPairs;
        if (!mine(i, q)) continue;
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if constexpr (kSwapped)
            use(y0 + 16 * q + e / 2 * 8 + 2 * t + e % 2, x0 + f.place_x(i, 0, g),
                f.at(i, 2 * q + e / 2, e % 2), f.at(i, 2 * q + e / 2, 2 + e % 2));
          else
            use(x0 + f.place_x(i, e / 2, g), y0 + 16 * q + e % 2 * 8 + 2 * t,
                f.at(i, 2 * q + e % 2, e / 2 * 2), f.at(i, 2 * q + e % 2, e / 2 * 2 + 1));
      }
    };
    const int i0 = kSwapped ? place.y : place.x, j0 = kSwapped ? place.x : place.y;
    constexpr int kCols = kSwapped ? Tile::kX : Tile::kY;
    if (done.part < 0) {
      const int rows = int(min(p.m - i0, std::int64_t(1 << 16)));
      const int cols = int(min(p.n - j0, std::int64_t(kCols)));
      T* const c = static_cast<T*>(p.C.at(place.batch)) + i0 * p.ldc + j0;
      if (cols == kCols && (sizeof(T) == 16 || p.vectors_c))
        for_each_pair([&](int row, int col, T v, T w) {
          if (row < rows) store_pair<true>(p, c + row * p.ldc + col, 2, v, w);
        });
      else
        for_each_pair([&](int row, int col, T v, T w) {
          if (row < rows) store_pair<false>(p, c + row * p.ldc + col, cols - col, v, w);
        });
    } else {
      T* const c = p.parts + std::int64_t(done.part) * Tile::kX * Tile::kY;
      for_each_pair([&](int row, int col, T v, T w) {
        c[row * kCols + col] = v;
        c[row * kCols + col + 1] = w;
      });
    }
  }
#endif
}

/// C = alpha (the sum of a tile's parts) + beta C, for the tiles that are in parts. A thread has an
/// element of C.
template <class Tile, bool kSwapped, class T>
__global__ void __launch_bounds__(256) add_parts_kernel(const __grid_constant__ Problem<T> p) {
  constexpr int kSize = Tile::kX * Tile::kY, kBlocks = kSize / 256;
  constexpr int kCols = kSwapped ? Tile::kX : Tile::kY;
  const Schedule& s = p.schedule;
  const int cut = int(blockIdx.x) / kBlocks, e = int(blockIdx.x) % kBlocks * 256 + int(threadIdx.x);
  const int first = cut * s.steps, end = first + s.steps;
  int range = first / (s.length + 1);  // the first that touches the tile, or one before it
  while (s.begin(range + 1) <= first) ++range;
  if (s.begin(range) <= first && s.begin(range + 1) >= end) return;
  T sum = p.parts[std::int64_t(2 * range + (s.begin(range) < first)) * kSize + e];
  while (s.begin(++range) < end) sum = sum + p.parts[std::int64_t(2 * range) * kSize + e];
  const Place<Tile> place(p, s.whole + cut);
  const int row = (kSwapped ? place.y : place.x) + e / kCols;
  const int col = (kSwapped ? place.x : place.y) + e % kCols;
  if (row < p.m && col < p.n)
    store(p, sum, static_cast<T*>(p.C.at(place.batch)) + row * p.ldc + col);
}

}  // namespace mblas::cuda::gemm::tma64
