// gemm of floats on the ordinary cores of Hopper, fed by the copy engine: the kernel.
//
// Limit: 128 multiply-adds a clock and multiprocessor, each of which has to be issued, and so does
// all else. So one warp asks for boxes of the operands, and the eight that multiply have 16x8
// elements of C a thread: of 2,180 instructions of a step 2,048 are multiply-adds and 96 loads of
// 16 bytes from shared memory. Each multiply-add shares an operand with the one before, so that it
// reads two registers, for which there are ports; and sums are stored two and two in exchanged
// order, which puts them into the registers of the other ports than the operand's that is not
// shared. This file is compiled at the assembler's first level, which keeps that order.
//
// S lies along its side of the tile and is read by its 16 elements of one k. H may be along its
// side too: 8 elements of one k; or along k: then a load has four k of one element, and elements
// are read in the order in which products are done with the last four.
#include "cuda/early.cuh"
#include "cuda/gemm/add_parts.cuh"
#include "cuda/gemm/hopper/copy.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/products.cuh"
#include "cuda/gemm/simt_tma.cuh"
#include "cuda/gemm/simt_tma_plan.hpp"

namespace mblas::cuda::gemm::tma32 {
namespace {

using hopper::Barrier;

constexpr int kWarps = 8, kThreads = 32 * (kWarps + 4);  // registers move by groups of four warps
constexpr int kWarpsH = 4, kWarpSide = 64;               // of either side
constexpr int kEachS = 16, kEachH = 8;                   // elements of a thread
constexpr int kLanesH = 8;
constexpr int kStages = 7;
constexpr unsigned kBytesS = kSideS * kDepth * 4, kBytesH = kSideH * kDepth * 4;
constexpr unsigned kStageBytes = kBytesS + kBytesH;
constexpr int kFewRegisters = 24, kRegisters = 240;
static_assert(kSideS == 2 * kWarpSide && kSideH == kWarpsH * kWarpSide);

/// A warp's sums on their way to C, 16 elements of S's side at a time: rows of those or, where H is
/// along k, of one element of H's side each, padded such that few lanes share a bank.
constexpr int kPieceS = 16;
template <bool kAlongK, bool kSwapped>
inline constexpr int kPitch = !kAlongK   ? kWarpSide + 4
                              : kSwapped ? kPieceS + 4
                                         : kPieceS + 2;
template <bool kAlongK, bool kSwapped>
constexpr unsigned out_bytes() {
  return unsigned((kAlongK ? kWarpSide : kPieceS) * kPitch<kAlongK, kSwapped> * 4);
}

/// What the producer tells of a piece; `steps` 0: there are no more.
struct alignas(16) Note {
  int row, col, batch;  ///< of its tile in C
  int part, steps;
};
/// Of as many as there can be from the one whose results are written to the one asked for.
constexpr int kNotes = kStages + 2;

template <bool kAlongK, bool kSwapped>
constexpr unsigned shared_bytes() {
  return 1024 + kStages * (kStageBytes + 16) + kNotes * unsigned(sizeof(Note)) +
         kWarps * out_bytes<kAlongK, kSwapped>();
}

/// Where a tile is: those of a group of eight along S are walked along H.
struct Place {
  int s, h, batch;  // of the first element

  __device__ Place(const Problem& p, int tile) {
    constexpr int kGroup = 8;
    const int matrix = p.tiles_s * p.tiles_h;
    batch = tile / matrix;
    tile -= batch * matrix;
    const int first = tile / (kGroup * p.tiles_h) * kGroup, count = min(kGroup, p.tiles_s - first);
    tile -= first * p.tiles_h;
    s = (first + tile % count) * kSideS;
    h = tile / count * kSideH;
  }
};

template <bool kSwapped>
struct TileInC {
  static constexpr int kRows = kSwapped ? kSideH : kSideS, kCols = kSwapped ? kSideS : kSideH;

  __device__ static Tiles::Place place(const Problem& p, int tile) {
    const Place at(p, tile);
    return {kSwapped ? at.h : at.s, kSwapped ? at.s : at.h, at.batch};
  }
};

/// Of neighbours, each two exchanged.
__device__ inline void store_exchanged(unsigned to, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(y), "f"(x) : "memory");
}
__device__ inline void store_exchanged(unsigned to, float x, float y, float z, float w) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(y), "f"(x), "f"(w), "f"(z)
               : "memory");
}
/// `x` + `by`, in another register, here.
__device__ inline unsigned advanced(unsigned x, unsigned by) {
  unsigned sum;
  asm volatile("add.u32 %0, %1, %2;" : "=r"(sum) : "r"(x), "r"(by));
  return sum;
}

/// What a thread multiplies: of S the elements of two k, of which one is in use; of H the same or,
/// along k, of four.
template <bool kAlongK>
struct Products {
  static constexpr int kAhead = 2;  // k
  static constexpr int kVectorsS = kEachS / 4, kVectorsH = kAlongK ? kEachH : kEachH / 4;

  float sum[kEachS][kEachH];
  Vector<float> s[kAhead][kVectorsS], h[kAlongK ? 1 : kAhead][kVectorsH];

  /// The bytes of a stage at which this thread's elements of S and H begin. Chunks of 16 bytes
  /// along k are swizzled over rows of 64 bytes: chunk c of row r lies at c ^ r / 2 % 4.
  __device__ static unsigned first_s(int thread) {
    const int warp = thread / 32, lane = thread % 32;
    return unsigned(warp / kWarpsH * kWarpSide + lane / kLanesH * 4) * 4;
  }
  __device__ static unsigned first_h(int thread) {
    const int side = thread / 32 % kWarpsH * kWarpSide, l = thread % kLanesH;
    return kBytesS +
           unsigned(kAlongK ? (side + l) * kDepth * 4 + l / 2 % 4 * 16 : (side + 4 * l) * 4);
  }

  __device__ void fetch_s(unsigned from, int k, int i) {
    s[k % kAhead][i] = hopper::load_shared<Vector<float>>(from + unsigned(k * kSideS * 4 + i * 64));
  }
  /// Along k: those of k / 4 * 4 to the next three.
  __device__ void fetch_h(unsigned from, int k, int i) {
    if constexpr (kAlongK)
      h[0][i] = hopper::load_shared<Vector<float>>((from ^ unsigned(k / 4 * 16)) +
                                                   unsigned(i * kLanesH * kDepth * 4));
    else
      h[k % kAhead][i] =
          hopper::load_shared<Vector<float>>(from + unsigned(k * kSideH * 4 + i * 128));
  }
  __device__ void fetch_first(unsigned from_s, unsigned from_h) {
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
#pragma unroll
      for (int i = 0; i < kVectorsS; ++i) fetch_s(from_s, k, i);
      if (kAlongK && k > 0) continue;
#pragma unroll
      for (int i = 0; i < kVectorsH; ++i) fetch_h(from_h, k, i);
    }
  }

  /// Products of depth `k`, there and back; then(o) after those of element o of H or, where that is
  /// not along k, of S.
  template <class Then>
  __device__ void multiply(int k, Then&& then) {
    constexpr int kOuter = kAlongK ? kEachH : kEachS, kInner = kAlongK ? kEachS : kEachH;
#pragma unroll
    for (int o = 0; o < kOuter; ++o) {
#pragma unroll
      for (int e = 0; e < kInner; ++e) {
        const int inner = o % 2 == 0 ? e : kInner - 1 - e;
        const int i = kAlongK ? inner : o, j = kAlongK ? o : inner;
        const float y = kAlongK ? h[0][j].e[k % 4] : h[k % kAhead][j / 4].e[j % 4];
        add_in_place(sum[i][j], s[k % kAhead][i / 4].e[i % 4], y);
      }
      then(o);
    }
  }
};

/// Where a piece's sums go: its tile's place in C, or that of a part.
struct Target {
  float* data;
  std::int64_t ld;
  int rows, cols;  // that exist
  float alpha, beta;
  bool read, vectors;
};
template <bool kSwapped>
__device__ Target target_of(const Problem& p, const Note& at) {
  using Tile = TileInC<kSwapped>;
  if (at.part >= 0)
    return {p.parts + std::int64_t(at.part) * Tile::kRows * Tile::kCols,
            Tile::kCols,
            Tile::kRows,
            Tile::kCols,
            1,
            0,
            false,
            true};
  return {static_cast<float*>(p.C.at(at.batch)) + at.row * p.ldc + at.col,
          p.ldc,
          int(min(p.m - at.row, std::int64_t(Tile::kRows))),
          int(min(p.n - at.col, std::int64_t(Tile::kCols))),
          p.alpha,
          p.beta,
          p.read_c,
          p.vectors_c};
}

/// A warp's sums by way of its part of `outs` in shared memory, so that lanes next to each other
/// store neighbours, wherever rows of C begin.
template <bool kAlongK, bool kSwapped>
__device__ void store_sums(const Target& to, unsigned outs, int thread,
                           const float (&sum)[kEachS][kEachH]) {
  constexpr int kPitchBytes = kPitch<kAlongK, kSwapped> * 4;
  constexpr bool kTurned = kAlongK != kSwapped;  // rows of `outs` are columns of C
  // Neighbours that a lane takes at a time; rows and columns of C in `outs`; lanes of a row.
  constexpr int kEach = kTurned ? 1 : 4, kRows = kSwapped ? kWarpSide : kPieceS;
  constexpr int kCols = kSwapped ? kPieceS : kWarpSide;
  constexpr int kAcross = kCols / kEach < 32 ? kCols / kEach : 32;
  constexpr int kDown = 32 / kAcross, kTimes = kRows / kDown, kAtOnce = 4;
  const int warp = thread / 32, lane = thread % 32, l = lane % kLanesH;
  const int side_s = warp / kWarpsH * kWarpSide, side_h = warp % kWarpsH * kWarpSide;
  const unsigned out = outs + unsigned(warp) * out_bytes<kAlongK, kSwapped>();
  const unsigned put = out + (kAlongK ? unsigned(l * kPitchBytes + lane / kLanesH * 16)
                                      : unsigned(lane / kLanesH * 4 * kPitchBytes + l * 16));
  const int row_in = lane / kAcross, col_in = lane % kAcross * kEach;
#pragma unroll
  for (int q = 0; q < kEachS / 4; ++q) {
    __syncwarp();
    const float(&x)[kEachH] = sum[4 * q], (&y)[kEachH] = sum[4 * q + 1];
    const float(&z)[kEachH] = sum[4 * q + 2], (&w)[kEachH] = sum[4 * q + 3];
    if constexpr (kTurned) {
#pragma unroll
      for (int j = 0; j < kEachH; ++j) {
        store_exchanged(put + unsigned(j * kLanesH * kPitchBytes), x[j], y[j]);
        store_exchanged(put + unsigned(j * kLanesH * kPitchBytes + 8), z[j], w[j]);
      }
    } else if constexpr (kAlongK) {
#pragma unroll
      for (int j = 0; j < kEachH; ++j)
        store_exchanged(put + unsigned(j * kLanesH * kPitchBytes), x[j], y[j], z[j], w[j]);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e)
#pragma unroll
        for (int j = 0; j < kEachH; j += 4) {
          const float* const v = &sum[4 * q + e][j];
          store_exchanged(put + unsigned(e * kPitchBytes + j / 4 * 128), v[0], v[1], v[2], v[3]);
        }
    }
    __syncwarp();
    const int row = (kSwapped ? side_h : side_s + q * kPieceS) + row_in;
    const int col = (kSwapped ? side_s + q * kPieceS : side_h) + col_in;
#pragma unroll
    for (int part = 0; part < kCols / (kAcross * kEach); ++part) {
      const int here = col + part * kAcross, left = to.cols - here;
      const std::int64_t step = kDown * to.ld;
      float* c = to.data + row * to.ld + here;
      unsigned from = out + (kTurned ? unsigned((col_in + part * kAcross) * kPitchBytes)
                                     : unsigned(row_in * kPitchBytes + col_in * 4));
#pragma unroll 1
      for (int i = 0; i < kTimes; i += kAtOnce) {
        Vector<float, kEach> v[kAtOnce], old[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j)
          if constexpr (kTurned) {
            v[j].e[0] = hopper::load_shared<float>(from + unsigned(j ^ 1) * 4);
          } else {
            const Vector<float> exchanged =
                hopper::load_shared<Vector<float>>(from + unsigned(j * kDown * kPitchBytes));
#pragma unroll
            for (int e = 0; e < kEach; ++e) v[j].e[e] = exchanged.e[e ^ 1];
          }
        if (to.read)
#pragma unroll
          for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
            for (int e = 0; e < kEach; ++e)
              old[j].e[e] = e < left && row + (i + j) * kDown < to.rows ? c[j * step + e] : 0;
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
          for (int e = 0; e < kEach; ++e) {
            v[j].e[e] = to.alpha * v[j].e[e];
            if (to.read) v[j].e[e] = multiply_add(to.beta, old[j].e[e], v[j].e[e]);
          }
          if (row + (i + j) * kDown >= to.rows) continue;
          if (to.vectors && left >= kEach) {
            *reinterpret_cast<Vector<float, kEach>*>(c + j * step) = v[j];
          } else {
#pragma unroll
            for (int e = 0; e < kEach; ++e)
              if (e < left) c[j * step + e] = v[j].e[e];
          }
        }
        c += kAtOnce * step;
        from += kTurned ? kAtOnce * 4u : unsigned(kAtOnce * kDown * kPitchBytes);
      }
    }
  }
}

template <bool kAlongK, bool kSwapped>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Problem p) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  using X = Products<kAlongK>;
  extern __shared__ unsigned char shared[];
  const unsigned panels = (shared_address(shared) + 1023) / 1024 * 1024;
  const unsigned barriers = panels + kStages * kStageBytes, outs = barriers + kStages * 16;
  const auto full = [&](int stage) { return Barrier{barriers + unsigned(stage) * 8}; };
  const auto empty = [&](int stage) { return Barrier{barriers + unsigned(kStages + stage) * 8}; };
  Note* const notes = reinterpret_cast<Note*>(
      shared + (outs + kWarps * out_bytes<kAlongK, kSwapped>() - shared_address(shared)));
  if (threadIdx.x == 0) {
    hopper::prefetch_map(p.map_s);
    hopper::prefetch_map(p.map_h);
    for (int s = 0; s < kStages; ++s) {
      full(s).init(1);
      empty(s).init(kWarps);
    }
    hopper::fence_barriers();
  }
  __syncthreads();

  int stage = 0, number = 0;  // of the present step; of the piece's note
  unsigned parity = 0;
  const auto next_stage = [&] {
    if (++stage == kStages) stage = 0, parity ^= 1;
  };
  const auto next_note = [&] { number = number + 1 == kNotes ? 0 : number + 1; };
  if (threadIdx.x >= 32 * kWarps) {
    hopper::leave_registers<kFewRegisters>();
    if (threadIdx.x != 32 * kWarps) return;
    Piece piece;
    int at = 0;  // steps of this block so far
    begin_early();
    while (p.schedule.find_piece(int(blockIdx.x), int(gridDim.x), at, piece)) {
      const Place place(p, piece.tile);
      notes[number] = {kSwapped ? place.h : place.s, kSwapped ? place.s : place.h, place.batch,
                       piece.part, piece.steps};
      next_note();
      const int batch_s = p.batch_s ? place.batch : 0, batch_h = p.batch_h ? place.batch : 0;
      at += piece.steps;
#pragma unroll 1
      for (int step = piece.first; step < piece.first + piece.steps; ++step) {
        empty(stage).wait(parity ^ 1);
        full(stage).arrive_expecting(kStageBytes);
        const unsigned to = panels + unsigned(stage) * kStageBytes;
        const int k = step * kDepth;
        hopper::load_box(to, p.map_s, place.s, k, batch_s, full(stage));
        hopper::load_box(to + kBytesS, p.map_h, kAlongK ? k : place.h, kAlongK ? place.h : k,
                         batch_h, full(stage));
        next_stage();
      }
    }
    notes[number] = {};
    empty(stage).wait(parity ^ 1);
    full(stage).arrive_expecting(0);
    return;
  }

  hopper::take_registers<kRegisters>();
  const int thread = int(threadIdx.x);
  unsigned used = 0;  // by a warp's first thread: the barrier of a stage that it has yet to release
  begin_early();
  X x;
  // With the next piece's first boxes comes its note.
  const auto steps_ahead = [&] {
    full(stage).wait(parity);
    return notes[number].steps;
  };
  while (const int steps = steps_ahead()) {
#pragma unroll
    for (int e = 0; e < kEachS * kEachH; ++e) x.sum[e / kEachH][e % kEachH] = 0;
    const unsigned begin = panels + unsigned(stage) * kStageBytes;
    unsigned from_s = begin + X::first_s(thread), from_h = begin + X::first_h(thread);
    x.fetch_first(from_s, from_h);
#pragma unroll 1
    for (int left = steps; left > 0; --left) {
      // The stage before: behind the loop's branch all that was read of it has been used. The
      // compiler moves an arrival up to where the last loads have only begun, which a box that the
      // engine brings may overtake (tests/hopper_code_test.cpp).
      __syncwarp();
      if (used != 0) Barrier{used}.arrive();
      if (thread % 32 == 0) used = empty(stage).address;
      next_stage();
      bool ready = false;
      unsigned next_s = 0, next_h = 0;
#pragma unroll
      for (int k = 0; k < kDepth; ++k) {
        // In registers that loads no longer have as their address: else writing them would wait.
        // (By where this is done the assembler gives sums other registers: of its places the one
        // with the fewest cycles by scripts/register-ports.)
        if (k == (kAlongK ? 2 : 3)) {
          const unsigned by = stage == 0 ? 0u - (kStages - 1) * kStageBytes : kStageBytes;
          next_s = advanced(from_s, by);
          next_h = advanced(from_h, by);
        }
        // Early: the answer takes its time.
        if (k == kDepth - X::kAhead - 1) ready = full(stage).has_ended(parity);
        if (k == kDepth - X::kAhead && !ready && left > 1) full(stage).wait(parity);
        x.multiply(k, [&](int o) {
          if (kAlongK && k % 4 == 3)
            x.fetch_h(k + 1 < kDepth ? from_h : next_h, (k + 1) % kDepth, o);
        });
        const bool here = k + X::kAhead < kDepth;
        const int ahead = (k + X::kAhead) % kDepth;
        if constexpr (!kAlongK)
#pragma unroll
          for (int i = 0; i < X::kVectorsH; ++i) x.fetch_h(here ? from_h : next_h, ahead, i);
#pragma unroll
        for (int i = 0; i < X::kVectorsS; ++i) x.fetch_s(here ? from_s : next_s, ahead, i);
      }
      from_s = next_s, from_h = next_h;
    }
    store_sums<kAlongK, kSwapped>(target_of<kSwapped>(p, notes[number]), outs, late(thread), x.sum);
    next_note();
  }
#endif
}

template <bool kAlongK, bool kSwapped>
void launch_tiles(const Problem& p, const CudaQueue& queue) {
  const int units = std::max(queue.device().compute_units, 1);
  const int blocks = std::min(std::max(p.schedule.whole, p.schedule.ranges), units);
  launch_with(LaunchAttributes(starts_early(queue)), queue, kernel<kAlongK, kSwapped>,
              unsigned(blocks), kThreads, shared_bytes<kAlongK, kSwapped>(), p);
  add_parts<TileInC<kSwapped>>(p, queue);
}

}  // namespace

void run_tiles(const Problem& p, bool along_k, bool swapped, const CudaQueue& queue) {
  if (swapped)
    launch_tiles<true, true>(p, queue);
  else if (along_k)
    launch_tiles<true, false>(p, queue);
  else
    launch_tiles<false, false>(p, queue);
}

}  // namespace mblas::cuda::gemm::tma32
