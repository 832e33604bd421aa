// How tiles are turned: the machinery of the transpose and geam kernels that run at copy speed.
//
// All of it moves a matrix of m rows and n columns, elements (i, j), to its transpose, and is
// limited by device memory: what counts is that both sides are accessed in whole sectors of 32
// bytes and long runs, and that each thread has 64 bytes or more on their way. A kernel gets a
// problem with `m`, `n`, `batch`, a source for each matrix of the batch that reads elements (i, j),
// marked as it is told, and a sink that writes elements (j, i); transpose moves them, geam computes
// on both ways.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuda/early.cuh"
#include "cuda/element.cuh"
#include "cuda/hold.cuh"

namespace mblas::cuda::turn {

template <int S>
struct RawOf;
template <>
struct RawOf<1> : std::type_identity<std::uint8_t> {};
template <>
struct RawOf<2> : std::type_identity<std::uint16_t> {};
template <>
struct RawOf<4> : std::type_identity<std::uint32_t> {};
template <>
struct RawOf<8> : std::type_identity<uint2> {};
template <>
struct RawOf<16> : std::type_identity<uint4> {};
/// An element of S bytes that is only moved.
template <int S>
using Raw = typename RawOf<S>::type;

/// Elements that travel as one 32-bit word where they are smaller than one.
template <int S>
inline constexpr int kPacked = S < 4 ? 4 / S : 1;
/// A word, or one element that is larger.
template <int S>
using Word = Raw<(S < 4 ? 4 : S)>;

template <int S>
__device__ Raw<S> unpack(Word<S> w, int k) {
  if constexpr (S < 4)
    return Raw<S>(w >> (8 * S * k));
  else
    return w;
}
template <int S>
__device__ void pack(Word<S>& w, int k, Raw<S> x) {
  if constexpr (S < 4)
    w = (w & ~(((1u << (8 * S)) - 1) << (8 * S * k))) | std::uint32_t(x) << (8 * S * k);
  else
    w = x;
}

/// Turns the square of kPacked<S> words, one for each row.
template <int S>
__device__ void turn_words(Word<S> (&w)[kPacked<S>]) {
  if constexpr (S == 2) {
    const std::uint32_t a = w[0], b = w[1];
    w[0] = __byte_perm(a, b, 0x5410);
    w[1] = __byte_perm(a, b, 0x7632);
  } else if constexpr (S == 1) {
    const std::uint32_t low01 = __byte_perm(w[0], w[1], 0x5140);
    const std::uint32_t low23 = __byte_perm(w[2], w[3], 0x5140);
    const std::uint32_t high01 = __byte_perm(w[0], w[1], 0x7362);
    const std::uint32_t high23 = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(low01, low23, 0x5410);
    w[1] = __byte_perm(low01, low23, 0x7632);
    w[2] = __byte_perm(high01, high23, 0x5410);
    w[3] = __byte_perm(high01, high23, 0x7632);
  }
}

/// Turns a square of 16 / S vectors of 16 bytes.
template <int S>
__device__ void turn_vectors(uint4 (&v)[16 / S]) {
  constexpr int kRows = 16 / S, kInWord = kPacked<S>;
  if constexpr (S == 16) {
    return;
  } else {
    std::uint32_t in[kRows][4], out[kRows][4];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      in[r][0] = v[r].x, in[r][1] = v[r].y, in[r][2] = v[r].z, in[r][3] = v[r].w;
    }
    if constexpr (S == 8) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int c = 0; c < 4; ++c) out[r][c] = in[c / 2][2 * r + c % 2];
    } else {
#pragma unroll
      for (int r = 0; r < kRows; r += kInWord) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          Word<(S < 4 ? S : 4)> square[kInWord];
#pragma unroll
          for (int k = 0; k < kInWord; ++k) square[k] = in[r + k][c];
          turn_words<(S < 4 ? S : 4)>(square);
#pragma unroll
          for (int k = 0; k < kInWord; ++k) out[c * kInWord + k][r / kInWord] = square[k];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) v[r] = make_uint4(out[r][0], out[r][1], out[r][2], out[r][3]);
  }
}

inline constexpr int kSector = 32;  ///< bytes that the memory reads or writes at least

/// Which tiles a launch works on: the grid's x is rows of tiles, so that blocks in work at a time
/// write neighbouring pieces of the same rows; y is columns and z matrices, from these on.
struct Part {
  std::int64_t col, batch;
  int apart = 0;  ///< two columns of tiles so far apart are taken in turn, where not 0
  Hold hold = {};
  /// Columns of tiles before the narrow ones, where the kind of tile has such: these come last, so
  /// that all multiprocessors end at much the same time.
  std::int64_t wide = std::numeric_limits<std::int64_t>::max();
};

/// Rows that lie multiples of so many bytes apart meet in few banks of the memory, where tiles of
/// one column are read at a time. Those of another column so many bytes away are in other banks.
inline constexpr std::int64_t kCollision = 128 << 10, kApart = 8 << 10;

/// Calls f<Tile>(i0, j0) with the place of a block's tile, or f<Tile::Narrow>(i0, j0).
template <class Tile, class F>
__device__ void with_tile(const Part& part, const uint3& block, F&& f) {
  unsigned across = block.y;
  if (part.apart != 0) {
    const unsigned pairs = 2 * part.apart, first = across / pairs * pairs, place = across - first;
    if (first + pairs <= gridDim.y) across = first + place % 2 * part.apart + place / 2;
  }
  const std::int64_t i0 = std::int64_t(block.x) * Tile::kRows, col = part.col + across;
  if constexpr (requires { typename Tile::Narrow; }) {
    using Narrow = typename Tile::Narrow;
    if (col >= part.wide)
      return f.template operator()<Narrow>(
          i0, part.wide * Tile::kCols + (col - part.wide) * Narrow::kCols);
  }
  f.template operator()<Tile>(i0, col * Tile::kCols);
}

/// What a sink that computes nothing has to read before it writes.
struct Nothing {};

/// How the loads of a tile are marked.
template <class Tile>
__device__ auto mark_of(const Hold& hold) {
  if constexpr (!Tile::kMarks)
    return NoMark{};
  else if constexpr (Tile::kWholeLines)
    return LineMark{hold.mark()};
  else
    return hold.mark();
}

/// Takes the marks of the tile at (i0, j0) back: once all threads have read it.
template <class Tile, class Source>
__device__ void take_marks_back(const Source& source, std::int64_t m, std::int64_t n,
                                std::int64_t i0, std::int64_t j0) {
  const auto rows = min(m - i0, std::int64_t(Tile::kRows));
  const auto cols = min(n - j0, std::int64_t(Tile::kCols));
  source.template take_marks_back<Tile::kThreads>(i0, j0, int(rows), int(cols));
}

/// One tile for each block. What the sink reads on its own account is on its way while the tile is
/// loaded.
template <class Tile, class Problem>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    tile_kernel(const __grid_constant__ Problem p, const __grid_constant__ Part part) {
  begin_early();
  extern __shared__ uint4 memory[];
  auto* shared = reinterpret_cast<typename Tile::Unit*>(memory);
  const std::int64_t b = part.batch + blockIdx.z;
  const auto source = p.source(b, mark_of<Tile>(part.hold));
  const auto sink = p.sink(b);
  with_tile<Tile>(part, blockIdx, [&]<class T>(std::int64_t i0, std::int64_t j0) {
    typename T::template Ahead<std::remove_const_t<decltype(sink)>> ahead;
    if (T::is_whole(p.m, p.n, i0, j0)) {
      T::look_ahead(ahead, sink, p.n, i0, j0);
      T::template load<true>(shared, source, p.m, p.n, i0, j0);
      __syncthreads();
      T::template store<true>(shared, sink, p.m, p.n, i0, j0, ahead);
    } else {
      T::template load<false>(shared, source, p.m, p.n, i0, j0);
      __syncthreads();
      T::template store<false>(shared, sink, p.m, p.n, i0, j0, ahead);
    }
  });
  if constexpr (Tile::kMarks) {
    const uint3 block = block_anew();
    if (!part.hold.takes_back(block)) return;
    with_tile<Tile>(part, block, [&]<class T>(std::int64_t i0, std::int64_t j0) {
      take_marks_back<T>(p.source(part.batch + block.z, NoMark{}), p.m, p.n, i0, j0);
    });
  }
}

/// Blocks that a grid may have along y and z.
inline constexpr std::int64_t kMostAcross = 65535;

/// Calls f(part, grid's y, grid's z) until all columns of tiles of all matrices have been launched.
template <class F>
void for_each_part(std::int64_t cols, std::int64_t batch, F&& f) {
  for (Part part = {0, 0}; part.batch < batch; part.batch += kMostAcross)
    for (part.col = 0; part.col < cols; part.col += kMostAcross)
      f(part, unsigned(std::min(kMostAcross, cols - part.col)),
        unsigned(std::min(kMostAcross, batch - part.batch)));
}

/// Whether tiles of the first kind would cover so much more than the matrix, and those of the
/// second kind less, that they are worth their smaller accesses.
template <class First, class Second>
bool prefers_second(std::int64_t m, std::int64_t n) {
  const auto covered = [&]<class Tile>(Tile*) {
    return double(ceil_div(m, Tile::kRows) * Tile::kRows) *
           double(ceil_div(n, Tile::kCols) * Tile::kCols);
  };
  return covered(static_cast<First*>(nullptr)) > 1.3 * covered(static_cast<Second*>(nullptr));
}

/// Turns all of a problem, whose `pitch()` is the bytes between two rows of what is turned,
/// `bytes()` those of one matrix that are read.
template <class Tile, class Problem>
void run_tiles(const Problem& p, const CudaQueue& queue) {
  const auto rows = unsigned(ceil_div(p.m + Tile::kOverlap, Tile::kRows));
  const int apart = p.pitch() % kCollision == 0 ? int(kApart / (Tile::kCols * Tile::kSize)) : 0;
  std::int64_t cols = ceil_div(p.n, Tile::kCols), wide = cols;
  if constexpr (requires { typename Tile::Narrow; }) {
    wide = p.n / Tile::kCols;
    cols = wide + ceil_div(p.n - wide * Tile::kCols, Tile::Narrow::kCols);
  }
  for_each_part(cols, p.batch, [&](Part part, unsigned y, unsigned z) {
    part.apart = apart;
    part.wide = wide;
    part.hold = hold_of(p.bytes() * z, std::int64_t(rows) * y * z, queue.device());
    launch_early(queue, tile_kernel<Tile, Problem>, dim3(rows, y, z), Tile::kThreads,
                 std::size_t(Tile::kShared), p, part);
  });
}

// ---------------------------------------------------------------------------------------------------
// Aligned: vectors of 16 bytes on both sides.

/// Tiles of kRows×kCols elements of S bytes. A thread loads kRepeat squares of 16 / S vectors,
/// turns them in registers and leaves the vectors of the transpose in shared memory, where vector v
/// of row j lies at v ^ (the column of squares): all 32 banks serve both the threads of a row of
/// squares, which write, and those of a row of the transpose, which read.
template <int S, int kRows_, int kCols_, int kThreads_, int kSpare = 0>
struct VectorTile {
  using Unit = uint4;
  static constexpr int kSize = S, kRows = kRows_, kCols = kCols_, kThreads = kThreads_, kBlocks = 0;
  static constexpr int kElements = 16 / S;
  static constexpr int kAcross = kCols / kElements, kDown = kRows / kElements;
  static constexpr int kStep = kThreads / kAcross;
  static constexpr int kRepeat = kDown / kStep;
  static constexpr int kVectors = kCols * kDown;
  static constexpr int kOverlap = 0;
  static constexpr bool kMarks = true, kWholeLines = false;
  static constexpr int kShared =
      kVectors * 16 + kSpare;  // more than it needs: fewer blocks at once
  static_assert(kAcross >= 8 && kDown >= 8 && kDown % kStep == 0 && kThreads % kAcross == 0);

  __device__ static unsigned at(unsigned j, unsigned v) {
    return j * kDown + (v ^ (j / kElements & 7));
  }
  __device__ static bool is_whole(std::int64_t m, std::int64_t n, std::int64_t i0,
                                  std::int64_t j0) {
    return i0 + kRows <= m && j0 + kCols <= n;
  }

  /// Reads the tile at (i0, j0) and leaves it in shared memory.
  template <bool kWhole, class Source>
  __device__ static void load(uint4* shared, const Source& source, std::int64_t m, std::int64_t n,
                              std::int64_t i0, std::int64_t j0) {
    const unsigned c = threadIdx.x % kAcross, r = threadIdx.x / kAcross;
    uint4 v[kRepeat][kElements];
#pragma unroll
    for (int k = 0; k < kRepeat; ++k) {
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        const std::int64_t i = i0 + (r + k * kStep) * kElements + e, j = j0 + c * kElements;
        if constexpr (kWhole) {
          v[k][e] = source.vector(i, j);
        } else {
          v[k][e] = uint4{};
          if (i < m && j + kElements <= n)
            v[k][e] = source.vector(i, j);
          else if (i < m && j < n)
            v[k][e] = source.part(i, j, int(n - j));
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kRepeat; ++k) {
      turn_vectors<S>(v[k]);
#pragma unroll
      for (int e = 0; e < kElements; ++e) shared[at(c * kElements + e, r + k * kStep)] = v[k][e];
    }
  }

  /// What the sink reads for the vectors that a thread stores.
  template <class Sink>
  using Ahead = typename Sink::template Ahead<uint4>[kVectors / kThreads];

  template <class Sink>
  __device__ static void look_ahead(Ahead<Sink>& ahead, const Sink& sink, std::int64_t,
                                    std::int64_t i0, std::int64_t j0) {
#pragma unroll
    for (int k = 0; k < kVectors / kThreads; ++k) {
      const unsigned s = k * kThreads + threadIdx.x;
      ahead[k] = sink.look_ahead(j0 + s / kDown, i0 + s % kDown * kElements);
    }
  }

  /// Writes the tile. `ahead` is that of a whole one.
  template <bool kWhole, class Sink>
  __device__ static void store(const uint4* shared, const Sink& sink, std::int64_t m,
                               std::int64_t n, std::int64_t i0, std::int64_t j0,
                               const Ahead<Sink>& ahead) {
#pragma unroll
    for (int k = 0; k < kVectors / kThreads; ++k) {
      const unsigned s = k * kThreads + threadIdx.x;
      const std::int64_t j = j0 + s / kDown, i = i0 + s % kDown * kElements;
      const uint4 v = shared[at(s / kDown, s % kDown)];
      if constexpr (kWhole) {
        sink.vector(j, i, v, ahead[k]);
      } else {
        if (j < n && i + kElements <= m)
          sink.vector(j, i, v, sink.look_ahead(j, i));
        else if (j < n && i < m)
          sink.part(j, i, int(m - i), v);
      }
    }
  }
};

// ---------------------------------------------------------------------------------------------------
// Any alignment: whole sectors are written although every row of the transpose starts somewhere
// else in one.

/// A word or vector that begins `offset` bytes into the first of two.
__device__ inline std::uint32_t shifted(std::uint32_t a, std::uint32_t b, unsigned offset) {
  return __funnelshift_r(a, b, offset * 8);
}
__device__ inline uint2 shifted(uint2 a, uint2 b, unsigned offset) {
  const bool one = offset & 4;
  const std::uint32_t x0 = one ? a.y : a.x, x1 = one ? b.x : a.y, x2 = one ? b.y : b.x;
  return make_uint2(shifted(x0, x1, offset % 4), shifted(x1, x2, offset % 4));
}
__device__ inline uint4 shifted(uint4 a, uint4 b, unsigned offset) {
  const bool two = offset & 8;
  const uint2 x = two ? make_uint2(a.z, a.w) : make_uint2(a.x, a.y);
  const uint2 y = two ? make_uint2(b.x, b.y) : make_uint2(a.z, a.w);
  const uint2 z = two ? make_uint2(b.z, b.w) : make_uint2(b.x, b.y);
  const uint2 low = shifted(x, y, offset % 8), high = shifted(y, z, offset % 8);
  return make_uint4(low.x, low.y, high.x, high.y);
}
/// A word or vector from any address, by way of the aligned ones that it lies in.
template <class V>
__device__ V load_unaligned(const void* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const unsigned offset = unsigned(address) % sizeof(V);
  const auto* aligned = reinterpret_cast<const V*>(address - offset);
  const V a = aligned[0];
  V b = {};
  if (offset) b = aligned[1];
  return shifted(a, b, offset);
}

/// Writes a vector by one access: the compiler cuts an assignment into those of words where these
/// were computed one by one. Nothing may read it again in the same kernel.
__device__ inline void store_whole(void* p, uint4 v) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)),
               "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
}
__device__ inline void store_whole(void* p, uint2 v) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "r"(v.x),
               "r"(v.y));
}
template <class Element>
__device__ void store_whole(void* p, Element x) {
  *static_cast<Element*>(p) = x;
}

template <int kBytes>
struct VectorOf;
template <>
struct VectorOf<4> : std::type_identity<std::uint32_t> {};
template <>
struct VectorOf<8> : std::type_identity<uint2> {};
template <>
struct VectorOf<16> : std::type_identity<uint4> {};

/// Tiles of kWindow / S rows and kCols columns of elements of S bytes. Row j of the transpose gets
/// the window of them that starts at a sector of its own: the tile's first sector's worth of rows
/// belongs to the tile before as far as the row is not shifted. Small elements are put
/// together to vectors of the two aligned ones that hold them on both ways, and turned in squares
/// of words; shared memory holds word q of row j at q ^ (j's group), so that all banks serve both
/// directions. Threads write kPiece bytes at once. kBlocks tiles at least are to fit a
/// multiprocessor: 0 leaves the number of registers to the compiler. Loads are marked as the
/// launch's Hold says, and then ask for whole lines; that takes registers, which tiles for matrices
/// that fit the cache are spared.
template <int S, int kWindow, int kCols_, int kThreads_, int kPiece, int kBlocks_ = 0,
          bool kMarks_ = true>
struct ShearedTile {
  using Unit = Word<S>;
  /// What a thread writes at once: several small elements, or one.
  using Piece = typename VectorOf<kPiece>::type;
  static constexpr int kSize = S, kCols = kCols_, kThreads = kThreads_, kBlocks = kBlocks_;
  static constexpr int kPack = kPacked<S>, kUnit = int(sizeof(Unit));
  static constexpr int kExtra = kSector / S;
  static constexpr int kLoadedRows = kWindow / S;
  static constexpr int kRows = kLoadedRows - kExtra;  // that are the tile's own
  static constexpr int kUnits = kLoadedRows / kPack;  // in a row of the transpose
  static constexpr int kBanks = 128 / kUnit;
  static constexpr int kWide = S < 4 ? 16 / S : 1;  // columns that a thread loads
  static constexpr int kAcross = kCols / kWide;
  static constexpr int kStep = kThreads / kAcross;  // units between two of a thread
  static constexpr int kEach = kUnits / kStep;
  static constexpr int kOverlap = kExtra - 1, kShared = kUnits * kCols * kUnit;
  static constexpr bool kMarks = kMarks_, kWholeLines = true;
  // Writing: rows by groups of lanes, pieces of a row one after another.
  static constexpr int kInPiece = kPiece / S, kPieces = kRows / kInPiece;
  static constexpr int kLanes = kPieces <= 16 ? 16 : 32;
  static constexpr int kLines = kThreads / kLanes;
  static constexpr int kTurns = (kCols + kLines - 1) / kLines;
  static constexpr int kInTurn = (kPieces + kLanes - 1) / kLanes;
  static constexpr bool kJoins = kPiece > S;  // a piece is put together of several elements
  static_assert(kUnits % kBanks == 0 && kRows % kInPiece == 0);

  __device__ static unsigned at(unsigned j, unsigned q) {
    return j * kUnits + (q ^ ((kJoins ? j / (16 / S) * 4 : j) & (kBanks - 1)));
  }
  __device__ static bool is_whole(std::int64_t m, std::int64_t n, std::int64_t i0,
                                  std::int64_t j0) {
    return i0 > kExtra && i0 + kRows + kWide <= m && j0 + kCols <= n;
  }

  /// Turns the vectors at column c (counted in them) of the rows of kTogether units from q on.
  template <int kTogether>
  __device__ static void put(Unit* shared, const uint4 (*v)[kPack], unsigned c, unsigned q) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      union {
        Unit x[kTogether];
        typename VectorOf<kTogether * kUnit>::type whole;
      } run[kPack];
#pragma unroll
      for (int u = 0; u < kTogether; ++u) {
        Unit square[kPack];
#pragma unroll
        for (int e = 0; e < kPack; ++e)
          square[e] = w == 0 ? v[u][e].x : w == 1 ? v[u][e].y : w == 2 ? v[u][e].z : v[u][e].w;
        turn_words<S>(square);
#pragma unroll
        for (int e = 0; e < kPack; ++e) run[e].x[u] = square[e];
      }
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        Unit* const to = shared + at(c * (16 / S) + w * kPack + e, q);
        *reinterpret_cast<decltype(run->whole)*>(to) = run[e].whole;
      }
    }
  }

  template <bool kWhole, class Source>
  __device__ static void load(Unit* shared, const Source& source, std::int64_t m, std::int64_t n,
                              std::int64_t i0, std::int64_t j0) {
    static_assert(kThreads % kAcross == 0 && kUnits % kStep == 0);
    static_assert(S < 4 ? kAcross >= 8 && kStep % 4 == 0 : kAcross >= kBanks);
    const unsigned c = threadIdx.x % kAcross, q0 = threadIdx.x / kAcross;
    const std::int64_t j = j0 + c * kWide;
    std::int64_t i = i0 - kExtra + q0 * kPack;
    auto from = source.at(i, j);
    if constexpr (S < 4) {
      uint4 v[kEach][kPack];
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        auto row = from;
#pragma unroll
        for (int e = 0; e < kPack; ++e, row.skip(1)) {
          // The aligned vectors around it must be in the matrix.
          if (kWhole || (i + e > 0 && i + e < m - 1 && j + kWide <= n)) {
            v[k][e] = row.vector();
          } else {
            v[k][e] = uint4{};
            if (i + e >= 0 && i + e < m && j < n)
              v[k][e] = row.part(int(min(n - j, std::int64_t(kWide))));
          }
        }
        from.skip(kStep * kPack);
        i += kStep * kPack;
      }
#pragma unroll
      for (int k = 0; k < kEach; ++k) put<1>(shared, v + k, c, q0 + k * kStep);
    } else {
      Unit x[kEach];
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        x[k] = Unit{};
        if (kWhole || (i >= 0 && i < m && j < n)) x[k] = from.element();
        from.skip(kStep);
        i += kStep;
      }
#pragma unroll
      for (int k = 0; k < kEach; ++k) shared[at(c, q0 + k * kStep)] = x[k];
    }
  }

  /// Calls f(number, row, shift, piece, place) for the pieces of the tile that a thread writes:
  /// `shift` bytes lie between the start of the window and where the row would be without it.
  template <bool kWhole, class Sink, class F>
  __device__ static void for_each_piece(const Sink& sink, std::int64_t n, std::int64_t i0,
                                        std::int64_t j0, F&& f) {
    const unsigned lane = threadIdx.x % kLanes, line = threadIdx.x / kLanes;
    auto to = sink.at(j0 + line, i0);
#pragma unroll
    for (int t = 0; t < kTurns; ++t, to.skip(kLines)) {
      const unsigned row = t * kLines + line;
      if (kCols % kLines != 0 && row >= kCols) continue;
      if (!kWhole && j0 + row >= n) continue;
      const unsigned shift = to.address() % kSector;
#pragma unroll
      for (int u = 0; u < kInTurn; ++u) {
        const unsigned piece = u * kLanes + lane;
        if ((u + 1) * kLanes > kPieces && piece >= kPieces) continue;
        f(t * kInTurn + u, row, shift, piece, to.back(int(shift / S) - int(piece * kInPiece)));
      }
    }
  }

  template <class Sink>
  using Ahead = typename Sink::template Ahead<Piece>[kTurns * kInTurn];

  template <class Sink>
  __device__ static void look_ahead(Ahead<Sink>& ahead, const Sink& sink, std::int64_t n,
                                    std::int64_t i0, std::int64_t j0) {
    if constexpr (!std::is_empty_v<typename Sink::template Ahead<Piece>>)
      for_each_piece<true>(sink, n, i0, j0,
                           [&](int number, unsigned, unsigned, unsigned, const auto& place) {
                             ahead[number] = place.template look_ahead<Piece>();
                           });
  }

  /// The piece whose place in the row begins `shift` bytes before its own.
  __device__ static Piece piece_at(const Unit* shared, unsigned row, unsigned shift,
                                   unsigned piece) {
    const unsigned start = kExtra * S - shift;
    if constexpr (kJoins) {
      const auto aligned = [&](unsigned v) {
        return *reinterpret_cast<const Piece*>(shared + at(row, v * (kPiece / kUnit)));
      };
      const unsigned first = start / kPiece + piece, offset = start % kPiece;
      const Piece a = aligned(first);
      Piece b = {};
      if (offset) b = aligned(first + 1);  // the last piece has no next one otherwise
      return shifted(a, b, offset);
    } else {
      return shared[at(row, start / kUnit + piece)];
    }
  }

  template <bool kWhole, class Sink>
  __device__ static void store(const Unit* shared, const Sink& sink, std::int64_t m, std::int64_t n,
                               std::int64_t i0, std::int64_t j0, const Ahead<Sink>& ahead) {
    for_each_piece<kWhole>(
        sink, n, i0, j0,
        [&](int number, unsigned row, unsigned shift, unsigned piece, const auto& place) {
          const Piece v = piece_at(shared, row, shift, piece);
          if constexpr (kWhole) {
            place.piece(v, ahead[number]);
          } else {
            const std::int64_t i = i0 + int(piece * kInPiece) - int(shift / S);
            if constexpr (std::is_empty_v<typename Sink::template Ahead<Piece>>) {
              if (i >= 0 && i + kInPiece <= m) return place.piece(v, {});
            }
            union {
              Piece whole;
              Raw<S> x[kInPiece];
            } from = {v};
#pragma unroll
            for (int e = 0; e < kInPiece; ++e)
              if (i + e >= 0 && i + e < m) place.element(e, from.x[e]);
          }
        });
  }
};

/// A sheared tile that fetches each row of A as the kVectors aligned vectors in which its part of
/// the tile lies, every one by one thread: fewer and fuller accesses than those of elements from
/// any address. The tile is one vector narrower than what is fetched. Threads have kAhead squares
/// of vectors on their way, which lie in the first-level cache until they are taken: the tiles of a
/// multiprocessor must leave it room, as both are parts of one memory.
template <int S, int kWindow, int kVectors, int kThreads, int kBlocks, int kAhead,
          bool kMarks = true>
struct FetchedTile
    : ShearedTile<S, kWindow, (kVectors - 1) * 16 / S, kThreads, 16, kBlocks, kMarks> {
  using Base = ShearedTile<S, kWindow, (kVectors - 1) * 16 / S, kThreads, 16, kBlocks, kMarks>;
  using typename Base::Unit;
  static constexpr int kElements = 16 / S, kPack = Base::kPack;
  static constexpr int kStep = kThreads / kVectors;  // units between two of a thread
  static constexpr int kEach = Base::kUnits / kStep;
  /// Units of a thread that follow each other and are written at once: with one of two bytes'
  /// elements, lanes would meet in the banks of shared memory four at a time.
  static constexpr int kTogether = kAhead < kPack ? kAhead : kPack;
  static_assert(S <= 4 && 32 % kVectors == 0 && Base::kUnits % (kStep * kTogether) == 0 &&
                kAhead % kTogether == 0 && kEach % kAhead == 0);

  /// Inside of the matrix by so much that all vectors are, and those that a sink looks ahead for.
  __device__ static bool is_whole(std::int64_t m, std::int64_t n, std::int64_t i0,
                                  std::int64_t j0) {
    return i0 > Base::kExtra && i0 + Base::kRows + kElements <= m && j0 + Base::kCols <= n;
  }

  template <bool kWhole, class Source>
  __device__ static void load(Unit* shared, const Source& source, std::int64_t m, std::int64_t n,
                              std::int64_t i0, std::int64_t j0) {
    const unsigned c = threadIdx.x % kVectors, q0 = threadIdx.x / kVectors;
    const std::int64_t i = i0 - Base::kExtra + q0 * (kTogether * kPack);
    const int width = kWhole ? Base::kCols : int(min(n - j0, std::int64_t(Base::kCols)));
    const Raw<S>* const from = source.a + i * source.ld + j0;
    const Raw<S>* const end = source.a + (m - 1) * source.ld + n;
    // Elements of a row's first vector that lie before the tile.
    const auto before = [](const Raw<S>* row) {
      return int(reinterpret_cast<std::uintptr_t>(row) % 16) / S;
    };
    // Rows from a thread's first one to those of its unit k.
    const auto down = [](int k) {
      return (k / kTogether * (kStep * kTogether) + k % kTogether) * kPack;
    };
    uint4 v[kAhead][kPack];
    const auto fetch = [&](int k) {
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        const Raw<S>* const row = from + (down(k) + e) * source.ld;
        const Raw<S>* const place = row - before(row) + c * kElements;
        uint4& x = v[k % kAhead][e];
        x = uint4{};
        if (int(c) * kElements >= before(row) + width) continue;
        if constexpr (kWhole)
          x = load_marked(reinterpret_cast<const uint4*>(place), source.mark);
        else if (i + down(k) + e >= 0 && i + down(k) + e < m)
          x = vector_between(place, source.a, end);
      }
    };
    const auto shift = [&](int k) {
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        uint4& x = v[k % kAhead][e];
        const uint4 next = {
            __shfl_down_sync(~0u, x.x, 1, kVectors), __shfl_down_sync(~0u, x.y, 1, kVectors),
            __shfl_down_sync(~0u, x.z, 1, kVectors), __shfl_down_sync(~0u, x.w, 1, kVectors)};
        x = shifted(x, next, before(from + (down(k) + e) * source.ld) * S);
      }
    };
#pragma unroll
    for (int k = 0; k < kAhead; ++k) fetch(k);
#pragma unroll
    for (int k = 0; k < kEach; k += kTogether) {
#pragma unroll
      for (int u = k; u < k + kTogether; ++u) shift(u);
      if (c < kVectors - 1)
        Base::template put<kTogether>(shared, v + k % kAhead, c, q0 * kTogether + down(k) / kPack);
#pragma unroll
      for (int u = k; u < k + kTogether; ++u)
        if (u + kAhead < kEach) fetch(u + kAhead);
    }
  }

  /// An aligned vector, of which only the elements from `begin` to `end` are read.
  __device__ static uint4 vector_between(const Raw<S>* place, const Raw<S>* begin,
                                         const Raw<S>* end) {
    if (place >= begin && place + kElements <= end) return *reinterpret_cast<const uint4*>(place);
    uint4 v = {};
#pragma unroll 1
    for (int e = 0; e < kElements; ++e, ++place) {  // moved in from the end: no index at run time
      const std::uint32_t x = place >= begin && place < end ? *place : 0;
      v = S == 4 ? make_uint4(v.y, v.z, v.w, x)
                 : make_uint4(shifted(v.x, v.y, S), shifted(v.y, v.z, S), shifted(v.z, v.w, S),
                              shifted(v.w, x, S));
    }
    return v;
  }
};

/// The same with tiles half as wide at the end.
template <int S, int kWindow, int kVectors, int kThreads, int kBlocks, int kAhead>
struct TaperedTile : FetchedTile<S, kWindow, kVectors, kThreads, kBlocks, kAhead> {
  using Narrow = FetchedTile<S, kWindow, kVectors / 2, kThreads, kBlocks, kAhead / 2>;
};

// ---------------------------------------------------------------------------------------------------
// The matrices of a plain transpose.

template <int S, class Mark>
struct Source {
  const Raw<S>* a;
  std::int64_t ld;
  Mark mark;  ///< of reads within the matrix

  __device__ uint4 vector(std::int64_t i, std::int64_t j) const {
    return load_marked(reinterpret_cast<const uint4*>(a + i * ld + j), mark);
  }
  /// The first `count` elements of a vector.
  __device__ uint4 part(std::int64_t i, std::int64_t j, int count) const {
    union {
      uint4 v;
      Raw<S> x[16 / S];
    } result = {};
#pragma unroll
    for (int k = 0; k < 16 / S; ++k)
      if (k < count) result.x[k] = a[i * ld + j + k];
    return result.v;
  }
  /// A place that moves down its column.
  struct Cursor {
    const Raw<S>* p;
    std::int64_t ld;
    Mark mark;

    __device__ void skip(int rows) { p += rows * ld; }
    __device__ uint4 vector() const { return load_unaligned<uint4>(p); }
    __device__ uint4 part(int count) const { return Source{p, ld, mark}.part(0, 0, count); }
    __device__ Raw<S> element() const { return load_marked(p, mark); }
  };
  __device__ Cursor at(std::int64_t i, std::int64_t j) const { return {a + i * ld + j, ld, mark}; }
  /// Of a tile's elements, once all threads have read theirs.
  template <int kThreads>
  __device__ void take_marks_back(std::int64_t i0, std::int64_t j0, int rows, int cols) const {
    cuda::take_marks_back<kThreads>(a + i0 * ld + j0, ld * S, rows, cols * S);
  }
};

template <int S>
struct Sink {
  Raw<S>* b;
  std::int64_t ld;

  template <class V>
  using Ahead = Nothing;

  __device__ Nothing look_ahead(std::int64_t, std::int64_t) const { return {}; }
  __device__ void vector(std::int64_t j, std::int64_t i, uint4 v, Nothing) const {
    store_whole(b + j * ld + i, v);
  }
  __device__ void part(std::int64_t j, std::int64_t i, int count, uint4 v) const {
    union {
      uint4 v;
      Raw<S> x[16 / S];
    } from = {v};
#pragma unroll
    for (int k = 0; k < 16 / S; ++k)
      if (k < count) b[j * ld + i + k] = from.x[k];
  }
  struct Cursor {
    Raw<S>* p;
    std::int64_t ld;

    __device__ void skip(int rows) { p += rows * ld; }
    __device__ Cursor back(int x) const { return {p - x, ld}; }
    __device__ std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(p); }
    template <class V>
    __device__ Nothing look_ahead() const {
      return {};
    }
    template <class V>
    __device__ void piece(V v, Nothing) const {
      store_whole(p, v);
    }
    __device__ void element(int x, Raw<S> value) const { p[x] = value; }
  };
  __device__ Cursor at(std::int64_t j, std::int64_t i) const { return {b + j * ld + i, ld}; }
};

}  // namespace mblas::cuda::turn
