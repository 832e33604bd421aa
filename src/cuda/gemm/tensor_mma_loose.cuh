// tensor_mma for operands whose lines start anywhere, without a copy of them: one launch, and no
// element goes through a register on its way to shared memory.
//
// Asynchronous copies of 16 bytes and ldmatrix want multiples of that. So a line of an operand
// comes as the aligned chunks of 16 bytes that it lies in, one more than it is long, and begins as
// far from a multiple of 16 bytes in shared memory as it does in memory. Fragments are read from
// there by words: of a line along k that begins between words, two words and a shift for each; of
// others, elements of neighbouring lines, or words of them, transposed in registers.
//
// Limit: those reads, 32 of a warp for the eight products of 32 bytes of k by its 32×32 of C, 16
// where lines begin at words; a multiprocessor serves one a clock. So a tile gets two fifths of the
// rate of mma.sync. But what this is for takes little longer than latencies do: a block asks for up
// to 512 bytes of k at once, and for nothing that depends on what it has not got yet.
#pragma once

#include "cuda/early.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/sum_rows.cuh"
#include "cuda/gemm/tensor_mma.hpp"
#include "cuda/gemm/tensor_mma_problem.cuh"

namespace mblas::cuda::gemm {

/// kRows×kCols of C a block, of which a warp has 32×32. kTurns: warps that have the same, and take
/// 32 bytes of k in turn.
template <int kRows_, int kCols_, int kTurns_, int kBlocks_>
struct LooseMmaTile {
  static constexpr int kRows = kRows_, kCols = kCols_, kTurns = kTurns_;
  static constexpr int kWarpRows = 32, kWarpCols = 32;
  static constexpr int kDepth = 128;      // bytes of k a stage
  static constexpr int kLeastDepth = 32;  // that are multiplied
  static constexpr int kStages = 4;
  static constexpr int kAcross = kCols / kWarpCols, kDown = kRows / kWarpRows;
  static constexpr int kThreads = 32 * kAcross * kDown;  // of a turn
  static constexpr int kAllThreads = kThreads * kTurns;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  static constexpr int kBlocks = 3;  // for 8.0 four take a few more registers than there are
#else
  static constexpr int kBlocks = kBlocks_;  // on a multiprocessor
#endif
  static_assert(kDepth / 32 % kTurns == 0);
};
using LooseMmaSmall = LooseMmaTile<32, 32, 4, 3>;
using LooseMmaMedium = LooseMmaTile<32, 64, 2, 4>;
using LooseMmaLarge = LooseMmaTile<64, 64, 1, 4>;

/// A tile for a k of one stage, of which more blocks fit a multiprocessor: large products wait for
/// what blocks begin and end with.
template <class Base>
struct OneStage : Base {
  static constexpr int kStages = 1;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  static constexpr int kBlocks = 4;  // for 8.0 five take a few more registers than there are
#else
  static constexpr int kBlocks = 5;
#endif
};
template <class Tile>
bool in_one_stage(std::int64_t k, int size) {
  return k > 0 && k * size <= Tile::kDepth;
}

/// A warp that has a block to itself, for matrices of a batch, of elements of kSize bytes, that are
/// no larger than its part of C and a k of one stage: the device has the blocks of a thousand such
/// at once.
template <int kSize>
struct LooseMmaWarp : LooseMmaTile<32, 32, 1, 20> {
  static constexpr int kDepth = kMmaWarp * kSize;
  static constexpr int kStages = 1;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  static constexpr int kBlocks = 16;
#endif
};
/// Whether LooseMmaWarp takes the place of LooseMmaSmall.
inline bool takes_warp(std::int64_t k, int size) { return size > 1 && k > 0 && k <= kMmaWarp; }

/// kOuter rows of A, or columns of B, by kDepth bytes of k in shared memory, of elements of kSize
/// bytes. kAlongK: lines run along k. kWords: they begin at multiples of 4 bytes.
template <class Tile, int kOuter, int kSize, bool kAlongK, bool kWords>
struct LooseLines {
  static constexpr int kElements = Tile::kDepth / kSize;  // along k
  static constexpr int kLines = kAlongK ? kOuter : kElements;
  static constexpr int kChunks = (kAlongK ? Tile::kDepth : kOuter * kSize) / 16;  // and one more
  // Words of neighbouring lines, read at once, are in different banks.
  static constexpr int kRest = kSize == 4 && !kAlongK ? 2 : 1;
  static constexpr int kPitch = (kChunks + kRest) * 16;
  static constexpr int kBytes = kLines * kPitch;
  static constexpr int kAlike = 16 / kSize;  // lines so far apart begin alike

  /// Copies of the stages one after another.
  struct Loader {
    static constexpr int kThreads = Tile::kAllThreads;
    static constexpr int kStep = kThreads / kChunks;  // lines that are copied at once
    static_assert(kThreads % kChunks == 0 && kLines % kStep == 0 && kStep % kAlike == 0);
    static_assert(kLines <= kThreads, "a last chunk for each thread");

    const std::byte *from, *last;  // the thread's first chunk, and the last one of a line
    std::int64_t step;             // bytes from one of its chunks to the next
    int before, before_last;       // bytes of their lines
    int outer_left;                // elements of the tile that there are

    /// `x` is where the tile begins; beyond `outer` are no elements.
    __device__ Loader(const void* x, std::int64_t ld, std::int64_t outer)
        : step(kStep * ld * kSize), outer_left(int(min(outer, std::int64_t(kOuter)))) {
      const auto place = [&](int line, int chunk, const std::byte*& at, int& bytes) {
        at = static_cast<const std::byte*>(x) + line * ld * kSize;
        bytes = chunk * 16 - int(reinterpret_cast<std::uintptr_t>(at) % 16);
        at += bytes;
      };
      place(line(), chunk(), from, before);
      place(int(threadIdx.x), kChunks, last, before_last);
    }

    __device__ static int line() { return int(threadIdx.x) / kChunks; }
    __device__ static int chunk() { return int(threadIdx.x) % kChunks; }

    /// To `lines`, a stage of `depth` elements of k, and zeros up to a multiple of 32 bytes of
    /// them.
    __device__ void load(unsigned lines, int depth) {
      const int filled = ceil_div(depth * kSize, 32) * 32;
      const int there = kAlongK ? outer_left : depth;            // lines
      const int bytes = (kAlongK ? depth : outer_left) * kSize;  // of a line
      const int end = kAlongK ? filled : bytes;
      const auto of_chunk = [&](int first) { return max(0, min(16, bytes - first)); };
      // A thread's chunks are alike, so that what there is of them is found once.
      const unsigned to = lines + unsigned(line() * kPitch + chunk() * 16);
      const int size = of_chunk(before), count = before < end ? there : 0;
      const std::byte* at = from;
#pragma unroll
      for (int i = 0; i < kLines / kStep; ++i, at += step)
        if (line() + i * kStep < count) copy_async<16>(to + unsigned(i * kStep * kPitch), at, size);
      if (int(threadIdx.x) < min(kLines, there) && before_last < end)
        copy_async<16>(lines + unsigned(int(threadIdx.x) * kPitch + kChunks * 16), last,
                       of_chunk(before_last));
      if constexpr (!kAlongK) zero(lines, depth, filled / kSize);
      const std::int64_t next = kAlongK ? Tile::kDepth : kLines / kStep * step;
      from += next;
      last += next;
    }

    /// Lines from `first` on, before `end`.
    __device__ static void zero(unsigned lines, int first, int end) {
      for (int chunk = int(threadIdx.x) + first * (kPitch / 16); chunk < end * (kPitch / 16);
           chunk += kThreads)
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(lines + unsigned(chunk * 16)),
                     "r"(0)
                     : "memory");
    }
  };

  /// A warp's fragments of 32 of the outer by 32 bytes of k: for each eight of the outer, q, two
  /// words of a lane, h.
  struct Reader {
    static constexpr int kOfWord = 4 / kSize;  // elements
    /// Of the outer, neighbours that a lane has in fragments one after another, as they come in
    /// words.
    static constexpr int kTogether = !kAlongK && kWords ? kOfWord : 1;

    int base[kAlongK ? 2 : kOfWord];  // where a lane's first words begin, in lines that differ

    /// Which of the 32 lane group `g`, of four lanes, has in fragment `q`.
    __device__ static int outer_of(int q, int g) {
      return q / kTogether * 8 * kTogether + g * kTogether + q % kTogether;
    }

    /// Those from `outer0` on of a tile that begins at `x`.
    __device__ Reader(const void* x, std::int64_t ld, int outer0) {
      const int g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
      const auto start_of = [&](int line) {
        const auto at = reinterpret_cast<std::uintptr_t>(x) + std::uintptr_t(line * ld * kSize);
        return line * kPitch + int(at % 16);
      };
#pragma unroll
      for (int i = 0; i < int(std::size(base)); ++i)
        base[i] = kAlongK ? start_of(outer0 + g + 8 * i) + 4 * t
                          : start_of(t * kOfWord + i) + (outer0 + g * kTogether) * kSize;
    }

    /// What is read of shared memory for the fragments of 32 bytes of k: to become them later, when
    /// it is there. (Of bytes one by one that would be too many registers.)
    static constexpr int kPieces = kAlongK ? (kWords ? 1 : 2) : kOfWord / kTogether;  // of a word
    static constexpr bool kAtOnce = kPieces > 2;
    struct Raw {
      unsigned words[4][2][kAtOnce ? 1 : kPieces];
    };

    /// Of the `l`-th 32 bytes of k.
    __device__ void read(Raw& raw, const std::byte* lines, int l) const {
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          if constexpr (kAlongK) {
            const auto* const words = reinterpret_cast<const unsigned*>(
                lines + (base[q % 2] & ~3) + q / 2 * 16 * kPitch + l * 32 + h * 16);
#pragma unroll
            for (int i = 0; i < kPieces; ++i) raw.words[q][h][i] = words[i];
          } else {
            // Of fragments together, each has the words of some of the lines.
            const std::byte* const at =
                lines + (l * 2 + h) * kAlike * kPitch + q / kTogether * kTogether * 8 * kSize;
            unsigned pieces[kPieces];
#pragma unroll
            for (int i = 0; i < kPieces; ++i)
              pieces[i] = word(at + base[q % kTogether * kPieces + i]);
            if constexpr (kAtOnce)
              raw.words[q][h][0] = __byte_perm(__byte_perm(pieces[0], pieces[1], 0x40),
                                               __byte_perm(pieces[2], pieces[3], 0x40), 0x5410);
            else
#pragma unroll
              for (int i = 0; i < kPieces; ++i) raw.words[q][h][i] = pieces[i];
          }
        }
    }

    __device__ void fragments(unsigned (&x)[4][2], const Raw& raw) const {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const auto& w = raw.words;
        if constexpr (kAtOnce || kOfWord == 1 || (kAlongK && kWords)) {
#pragma unroll
          for (int q = 0; q < 4; ++q) x[q][h] = w[q][h][0];
        } else if constexpr (kAlongK) {
#pragma unroll
          for (int q = 0; q < 4; ++q)
            x[q][h] = __funnelshift_r(w[q][h][0], w[q][h][1], unsigned(base[q % 2]) * 8);
        } else if constexpr (kTogether == 1) {
#pragma unroll
          for (int q = 0; q < 4; ++q) x[q][h] = __byte_perm(w[q][h][0], w[q][h][1], 0x5410);
        } else if constexpr (kTogether == 2) {
#pragma unroll
          for (int q = 0; q < 4; q += 2) {
            x[q][h] = __byte_perm(w[q][h][0], w[q + 1][h][0], 0x5410);
            x[q + 1][h] = __byte_perm(w[q][h][0], w[q + 1][h][0], 0x7632);
          }
        } else {
#pragma unroll
          for (int half = 0; half < 2; ++half) {  // of each word's bytes
            const unsigned order = half == 0 ? 0x5140 : 0x7362;
            const unsigned a = __byte_perm(w[0][h][0], w[1][h][0], order);
            const unsigned b = __byte_perm(w[2][h][0], w[3][h][0], order);
            x[2 * half][h] = __byte_perm(a, b, 0x5410);
            x[2 * half + 1][h] = __byte_perm(a, b, 0x7632);
          }
        }
      }
    }

   private:
    /// Neighbours of the outer, kTogether of them.
    __device__ static unsigned word(const std::byte* x) {
      if constexpr (kTogether > 1)
        return *reinterpret_cast<const unsigned*>(x);
      else if constexpr (kSize == 4)
        return *reinterpret_cast<const unsigned*>(x);
      else if constexpr (kSize == 2)
        return *reinterpret_cast<const std::uint16_t*>(x);
      else
        return *reinterpret_cast<const std::uint8_t*>(x);
    }
  };
};

__device__ inline void round_all(unsigned (&x)[4][2]) {
#pragma unroll
  for (int q = 0; q < 4; ++q)
#pragma unroll
    for (int h = 0; h < 2; ++h) x[q][h] = round_to_tf32(x[q][h]);
}

/// The sums of a block in shared memory, those of each turn. Lanes bring 2 kTogether neighbours at
/// a time.
template <class Tile, class Acc, int kTogether>
struct LooseSums {
  static constexpr int kNeighbours = 2 * kTogether;
  // Lanes that write at once meet different banks.
  static constexpr int kPitch = Tile::kCols + (kTogether == 1 ? 8 : 16);
  static constexpr int kTurn = Tile::kRows * kPitch;
  static constexpr int kBytes = Tile::kTurns * kTurn * int(sizeof(Acc));
  using Rows = SumRows<Acc, Tile::kRows, Tile::kCols, kPitch, Tile::kAllThreads / (Tile::kCols / 2),
                       Tile::kTurns, kTurn>;

  __device__ static void put(Acc* sums, int turn, int row, int col, const Acc (&x)[kNeighbours]) {
    using Part = Vector<Acc, std::min(kNeighbours, 4)>;
    auto* const to = reinterpret_cast<Part*>(sums + turn * kTurn + row * kPitch + col);
#pragma unroll
    for (int e = 0; e < kNeighbours; e += int(std::size(to->e))) {
      Part part;
#pragma unroll
      for (int i = 0; i < int(std::size(part.e)); ++i) part.e[i] = x[e + i];
      to[e / int(std::size(part.e))] = part;
    }
  }
};

/// The kernel's shared memory: stages, and then the sums.
template <class Tile, class In, bool kAAlongK, bool kBAlongK, bool kWords>
struct LooseMma {
  static constexpr int kSize = int(sizeof(In));
  using LinesA = LooseLines<Tile, Tile::kRows, kSize, kAAlongK, kWords>;
  using LinesB = LooseLines<Tile, Tile::kCols, kSize, kBAlongK, kWords>;
  using Sums = LooseSums<Tile, Accumulator<In>, LinesB::Reader::kTogether>;
  static constexpr int kElements = LinesA::kElements;
  static constexpr int kStage = LinesA::kBytes + LinesB::kBytes;

  /// Bytes, where a part of k has `depth` elements.
  static std::size_t shared(std::int64_t depth) {
    const std::int64_t steps =
        std::min(ceil_div(depth, std::int64_t(kElements)), std::int64_t(Tile::kStages));
    return std::max(std::size_t(steps) * kStage, std::size_t(Sums::kBytes));
  }
};

template <class Tile, class In, bool kAAlongK, bool kBAlongK, bool kWords>
__global__ void __launch_bounds__(Tile::kAllThreads, Tile::kBlocks)
    tensor_mma_loose_kernel(const __grid_constant__ MmaProblem<Accumulator<In>> p) {
#if __CUDA_ARCH__ >= 800
  using Acc = Accumulator<In>;
  using Mma = LooseMma<Tile, In, kAAlongK, kBAlongK, kWords>;
  using LinesA = typename Mma::LinesA;
  using LinesB = typename Mma::LinesB;
  constexpr int kStages = Tile::kStages, kBlocksOfK = Tile::kDepth / 32;
  extern __shared__ uint4 stages[];
  auto* const shared = reinterpret_cast<std::byte*>(stages);

  const MmaWork<Tile> work(p, Mma::kElements);
  if (work.batch >= p.tiles.batch) return;
  const auto [batch, i0, j0, l0, split, all_steps, tail, row0, col0] = work;
  const int steps = kStages == 1 ? 1 : all_steps;
  // Where things are is found before the kernel before has ended, but for pointers in memory.
  const bool arrays = p.A.pointers || p.B.pointers;
  if (arrays) begin_early();
  const In* const a =
      static_cast<const In*>(p.A.at(batch)) + (kAAlongK ? i0 * p.lda + l0 : l0 * p.lda + i0);
  const In* const b =
      static_cast<const In*>(p.B.at(batch)) + (kBAlongK ? j0 * p.ldb + l0 : l0 * p.ldb + j0);
  typename LinesA::Loader load_a(a, p.lda, p.m - i0);
  typename LinesB::Loader load_b(b, p.ldb, p.n - j0);
  const typename LinesA::Reader read_a(a, p.lda, row0);
  const typename LinesB::Reader read_b(b, p.ldb, col0);
  const auto load = [&](int step) {
    if (step < steps) {
      const unsigned at = shared_address(shared) + unsigned(step % kStages * Mma::kStage);
      const int depth = step + 1 < steps ? Mma::kElements : tail;
      load_a.load(at, depth);
      load_b.load(at + LinesA::kBytes, depth);
    }
    commit_copies();
  };
  if (!arrays) begin_early();
#pragma unroll 1
  for (int step = 0; step < min(steps, kStages); ++step) load(step);

  // A warp's part of a stage, 32 bytes of k after another, each read while those before are
  // multiplied.
  constexpr int kEach = kBlocksOfK / Tile::kTurns;
  const int turn = int(threadIdx.x) / Tile::kThreads;
  typename LinesA::Reader::Raw raw_a;
  typename LinesB::Reader::Raw raw_b;
  const auto fetch = [&](int step, int i) {
    const std::byte* const lines = shared + step % kStages * Mma::kStage;
    read_a.read(raw_a, lines, turn + i * Tile::kTurns);
    read_b.read(raw_b, lines + LinesA::kBytes, turn + i * Tile::kTurns);
  };
  Acc sum[2][4][4] = {};
  if (steps < kStages)
    wait_copies<0>();
  else
    wait_copies<kStages - 1>();
  __syncthreads();
  fetch(0, 0);
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const int blocks = step + 1 < steps ? kBlocksOfK : ceil_div(tail * Mma::kSize, 32);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      unsigned x[4][2], y[4][2];
      read_a.fragments(x, raw_a);
      read_b.fragments(y, raw_b);
      if constexpr (std::is_same_v<In, Tf32>) {
        round_all(x);
        round_all(y);
      }
      if (i + 1 < kEach) {
        if (turn + (i + 1) * Tile::kTurns < blocks) fetch(step, i + 1);
      } else if (step + 1 < steps) {
        wait_copies<kStages - 2>();
        __syncthreads();
        fetch(step + 1, 0);
        load(step + kStages);
      }
      if (turn + i * Tile::kTurns >= blocks) continue;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const unsigned rows[4] = {x[2 * r][0], x[2 * r + 1][0], x[2 * r][1], x[2 * r + 1][1]};
#pragma unroll
        for (int q = 0; q < 4; ++q) multiply_tile<In>(sum[r][q], rows, y[q][0], y[q][1]);
      }
    }
  }

  __syncthreads();
  using Sums = typename Mma::Sums;
  constexpr int kTogether = LinesB::Reader::kTogether;
  Acc* const sums = reinterpret_cast<Acc*>(stages);
  const int g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
#pragma unroll
  for (int r = 0; r < 4; ++r)
#pragma unroll
    for (int q = 0; q < 4; q += kTogether) {
      Acc neighbours[2 * kTogether];
#pragma unroll
      for (int e = 0; e < 2 * kTogether; ++e)
        neighbours[e] = sum[r / 2][q + e % kTogether][r % 2 * 2 + e / kTogether];
      Sums::put(sums, turn, row0 + LinesA::Reader::outer_of(r, g),
                col0 + LinesB::Reader::outer_of(q, 2 * t), neighbours);
    }
  __syncthreads();
  const int rows = int(min(p.m - i0, std::int64_t(Tile::kRows)));
  const int cols = int(min(p.n - j0, std::int64_t(Tile::kCols)));
  to_results<In>(p, work, [&](auto* c, std::int64_t ld, Acc alpha, Acc beta, bool reads) {
    Sums::Rows::write(sums, c, ld, int(threadIdx.x) / Sums::Rows::kLanes, rows, cols, alpha, beta,
                      reads);
  });
#endif
}

template <class In, class Tile>
void run_mma_loose(MmaProblem<Accumulator<In>> p, const CudaQueue& queue) {
  if constexpr (std::is_same_v<Tile, LooseMmaLarge>)
    if (in_one_stage<Tile>(p.k, sizeof(In))) return run_mma_loose<In, OneStage<Tile>>(p, queue);
  if constexpr (std::is_same_v<Tile, LooseMmaSmall> && sizeof(In) > 1)
    if (takes_warp(p.k, sizeof(In)))
      return run_mma_loose<In, LooseMmaWarp<int(sizeof(In))>>(p, queue);
  const dim3 grid = mma_grid<Tile>(p);
  with_majors(p, [&]<bool kAAlongK, bool kBAlongK>() {
    const auto run = [&]<bool kWords>() {
      launch_evenly(queue, tensor_mma_loose_kernel<Tile, In, kAAlongK, kBAlongK, kWords>, grid,
                    Tile::kAllThreads,
                    LooseMma<Tile, In, kAAlongK, kBAlongK, kWords>::shared(p.depth), p);
    };
    if constexpr (sizeof(In) == 4)
      run.template operator()<true>();
    else
      p.words ? run.template operator()<true>() : run.template operator()<false>();
  });
}

}  // namespace mblas::cuda::gemm
