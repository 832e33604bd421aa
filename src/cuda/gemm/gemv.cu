// A matrix times a vector, one pair or a batch: limited by reading the matrices once, for which
// some 30 KB must be under way on every multiprocessor all the time.
//
// Where memory runs along the vector a team of lanes reads some rows at a time, so that what is
// there of the vector serves all of them, and adds up with shuffles, each level of which halves
// what a lane has left to add up. A long row has a warp to itself, or several. Otherwise each
// thread has some neighbouring results, whichever matrices of the batch they belong to, and all of
// k or every so many lines of it. The vector comes through the first-level cache. Where there are
// few results k is cut into parts besides, which a cluster joins or a second kernel (parts.cuh).
//
// Blocks are no more than the device holds at once and take what there is in turn: more and shorter
// ones spend their time starting. How a call is cut is what a model of its time finds best.
#include <cooperative_groups.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "cuda/gemm/clusters.hpp"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/parts.cuh"
#include "cuda/gemm/tensor_mma.hpp"
#include "cuda/gemm/words.cuh"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace gemv_file {

constexpr int kWarps = 8, kThreads = kWarps * 32;
constexpr int kSomeRows = 4;  // of a team, where it has not only one

/// What a thread reads of the matrix at a time: an element; 16 bytes at multiples of that, or from
/// anywhere on, by way of the words that they lie in.
enum class Reads { Elements, Vectors, Anywhere };

constexpr int width_of(int size, Reads reads) { return reads == Reads::Elements ? 1 : 16 / size; }

/// Blocks that share a multiprocessor, and reads of the matrix that a thread has under way: the
/// less is read at once, the more of both, as registers allow.
constexpr int blocks_of(int size, Reads reads, int rows) {
  return reads == Reads::Elements && size == 4 && rows > 1 ? 3 : 2;
}
constexpr int reads_of(int size, Reads reads, int rows) {
  if (reads == Reads::Anywhere || (size == 2 && rows == 1)) return 4;
  if (reads == Reads::Elements && size == 4) return rows == 1 ? 16 : 12;
  return 8;
}

constexpr int column_reads_of(int size, Reads reads) {
  if (reads == Reads::Anywhere) return size == 2 ? 8 : 6;
  return size == 16 ? 6 : reads_of(size, reads, kSomeRows);
}

template <class Acc>
struct Problem : parts::Problem<Acc> {
  DeviceInput Matrix{}, Vector{};
  std::int64_t line = 0;        ///< elements between the lines of the matrix in memory
  std::int64_t matrix_end = 0;  ///< elements, from its first to its last one
  std::int64_t vector_step = 0;
  bool wide_vector = false;  ///< may be read as aligned vectors
  bool conjugate_vector = false;
  bool floats = false;  ///< C is of float, where the matrix is of 16 bits
  // Numbers that are powers of two are given by their logarithms.
  int lanes = 0;                ///< that have a row, or threads with neighbouring results
  int side_by_side = 0;         ///< teams of a warp with rows of one matrix
  int share = 0;                ///< warps of a row
  std::int64_t per_matrix = 0;  ///< turns of warps, or threads, that a matrix takes
  std::int64_t turns = 0;       ///< of all matrices
};

/// A block's part of k.
template <class Acc>
__device__ parts::Work work_of(const Problem<Acc>& p) {
  parts::Work w;
  w.part = int(blockIdx.x);
  w.k0 = min(w.part * p.depth, p.k);
  w.k1 = min(w.k0 + p.depth, p.k);
  return w;
}

/// parts::leave() for all types that C may have.
template <class T, class Acc>
__device__ void leave(const Problem<Acc>& p, const parts::Work& w, std::int64_t l, Acc sum) {
  if constexpr (sizeof(T) == 1)
    parts::leave<std::int32_t>(p, w, l, 0, sum);
  else if (sizeof(T) == 2 && !p.floats && p.parts == 1)
    parts::put<T>(p, w.batch, l, 0, sum);
  else
    parts::leave<Acc>(p, w, l, 0, sum);
}

struct Turn {
  std::int64_t matrix, place;
};
/// Which matrix turn `t` is of, where each takes `each`, and where in it.
__device__ inline Turn turn_of(std::int64_t t, std::int64_t each) {
  if (t < each) return {0, t};
  if (t >> 32 == 0) {  // short arithmetic
    const unsigned q = unsigned(t) / unsigned(each);
    return {q, unsigned(t) - q * unsigned(each)};
  }
  return {t / each, t % each};
}

/// What a read brings, and the elements that it is.
template <class T, Reads kReads>
struct Read {
  static constexpr int kWidth = width_of(sizeof(T), kReads);
  using Unit = Vector<T, kWidth>;
  static constexpr bool kAnywhere = kReads == Reads::Anywhere;
  std::conditional_t<kAnywhere, Words, Unit> raw;

  /// Of a row from `x` on, of which `left` elements are there, of an operand that is whole between
  /// `begin` and `end`.
  __device__ void from(const T* x, const T* begin, const T* end, int left) {
    if constexpr (kAnywhere)
      raw = Words::at<T>(bytes_of(x), bytes_of(begin), bytes_of(end), left * int(sizeof(T)));
    else
      raw = *reinterpret_cast<const Unit*>(x);
  }
  __device__ Unit unit(int left) const {
    if constexpr (kAnywhere) {
      const uint4 bytes = raw.bytes(max(left, 0) * int(sizeof(T)));
      return reinterpret_cast<const Unit&>(bytes);
    } else {
      return raw;
    }
  }

 private:
  __device__ static const std::byte* bytes_of(const T* x) {
    return reinterpret_cast<const std::byte*>(x);
  }
};

/// Adds to a row's sums what its unit and the vector's make.
template <class T, int kWidth, class Acc, int kChains>
__device__ void multiply_unit(const Vector<T, kWidth>& x, const Vector<T, kWidth>& y,
                              bool conjugate, Acc (&sums)[kChains]) {
  if constexpr (sizeof(T) == 1) {
#pragma unroll
    for (int e = 0; e < kWidth / 4; ++e)
      sums[e % kChains] = __dp4a(reinterpret_cast<const int*>(&x)[e],
                                 reinterpret_cast<const int*>(&y)[e], int(sums[e % kChains]));
  } else {
#pragma unroll
    for (int e = 0; e < kWidth; ++e)
      sums[e % kChains] = multiply_add(widen(x.e[e]), widen(y.e[e], conjugate), sums[e % kChains]);
  }
}

/// Memory runs along the vector. A team has kRows rows at a time.
template <class T, Reads kReads, int kRows>
__global__ void __launch_bounds__(kThreads, blocks_of(sizeof(T), kReads, kRows))
    rows_kernel(const __grid_constant__ Problem<Accumulator<T>> p) {
  using Acc = Accumulator<T>;
  using Unit = typename Read<T, kReads>::Unit;
  constexpr bool kAnywhere = kReads == Reads::Anywhere, kNarrow = sizeof(T) <= 2;
  constexpr int kWidth = width_of(sizeof(T), kReads);
  constexpr int kEach = reads_of(sizeof(T), kReads, kRows) / kRows;
  // Elements of one row are added up apart, lest each waits for the one before.
  constexpr int kChains = kRows > 1 ? 1 : kNarrow ? 2 : std::min(kWidth, 4);
  __shared__ Acc shares[kWarps];

  parts::Work w = work_of(p);
  const int thread = int(threadIdx.x), warp = thread / 32, lanes = 1 << p.lanes;
  const int lane = thread & (lanes - 1), team = thread % 32 >> p.lanes;
  const int side = 1 << p.side_by_side, matrices = 32 >> p.lanes >> p.side_by_side;  // of a warp
  const int share = warp & ((1 << p.share) - 1), hop = lanes * kWidth;
  const std::int64_t step = std::int64_t(hop) * kEach << p.share;
  const std::int64_t end = kAnywhere ? w.k1 : w.k1 - (w.k1 - w.k0) % kWidth;  // of whole units
  const std::int64_t apart = std::int64_t(gridDim.y) * kWarps >> p.share;
  begin_early();

#pragma unroll 1
  for (std::int64_t first = std::int64_t(blockIdx.y) * kWarps >> p.share; first < p.turns;
       first += apart) {
    const Turn turn = turn_of(first + (warp >> p.share), p.per_matrix);
    w.batch = turn.matrix * matrices + (team >> p.side_by_side);
    const std::int64_t row = (turn.place * kRows << p.side_by_side) + (team & (side - 1));
    // Rows that there are not are not read.
    const bool any = w.batch < p.tiles.batch && row < p.length;
    const int rows =
        any ? int(min((p.length - row + side - 1) >> p.side_by_side, std::int64_t(kRows))) : 0;
    const std::int64_t matrix = any ? w.batch : 0, next = p.line << p.side_by_side;
    const auto* const begin = static_cast<const T*>(p.Matrix.at(matrix));
    const auto* const a = begin + row * p.line;
    const auto* const v = static_cast<const T*>(p.Vector.at(matrix));

    Acc sums[kRows][kChains] = {};
#pragma unroll 1
    for (std::int64_t k = w.k0 + share * (hop * kEach); k < end; k += step) {
      const int left = int(min(end - k, step)) - lane * kWidth;
      Read<T, kReads> x[kRows][kEach] = {};
      Read<T, kNarrow ? Reads::Anywhere : kReads> y[kEach] = {};
      const T* from = a + k + lane * kWidth;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int u = 0; u < kEach; ++u)
          if (r < rows && u * hop < left)
            x[r][u].from(from + u * hop, begin, begin + p.matrix_end, left - u * hop);
        from += next;
      }
      from = v + (k + lane * kWidth) * p.vector_step;
      if (kNarrow || p.wide_vector) {
#pragma unroll
        for (int u = 0; u < kEach; ++u)
          if (u * hop < left) y[u].from(from + u * hop, v, v + p.k, left - u * hop);
      } else if constexpr (!kNarrow) {
#pragma unroll
        for (int u = 0; u < kEach; ++u) {
          if (u * hop < left)
#pragma unroll
            for (int e = 0; e < kWidth; ++e) y[u].raw.e[e] = from[e * p.vector_step];
          from += hop * p.vector_step;
        }
      }
#pragma unroll
      for (int u = 0; u < kEach; ++u) {
        const Unit factors = y[u].unit(left - u * hop);
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          multiply_unit(x[r][u].unit(left - u * hop), factors, p.conjugate_vector, sums[r]);
      }
    }
    if (!kAnywhere && kWidth > 1 && share == 0)
      for (std::int64_t k = end + lane; k < w.k1; k += lanes) {
        const Acc factor = widen(v[k * p.vector_step], p.conjugate_vector);
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          if (r < rows) sums[r][0] = multiply_add(widen(a[r * next + k]), factor, sums[r][0]);
      }

    Acc found[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      found[r] = sums[r][0];
#pragma unroll
      for (int c = 1; c < kChains; ++c) found[r] = found[r] + sums[r][c];
    }
    parts::add_team(found, lanes, lane);
    if (p.share > 0) {
      if (lane == 0) shares[warp] = found[0];
      __syncthreads();
      if (share == 0 && lane == 0 && rows > 0) {
        for (int i = 1; i < 1 << p.share; ++i) found[0] = found[0] + shares[warp + i];
        leave<T>(p, w, row, found[0]);
      }
      __syncthreads();
    } else {
      // A lane has several sums, or several lanes have the same one.
      const int same = lanes > kRows ? lanes / kRows : 1, each = lanes > kRows ? 1 : kRows / lanes;
      const int r = lane / same * each;
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        if (i < each && r + i < rows && lane % same == 0)
          leave<T>(p, w, row + (std::int64_t(r + i) << p.side_by_side), found[i]);
    }
  }
}

/// Memory runs along the result. Joined: the blocks of the parts of k are a cluster.
template <class T, Reads kReads, bool kJoined>
__global__ void __launch_bounds__(kThreads, blocks_of(sizeof(T), kReads, kSomeRows))
    columns_kernel(const __grid_constant__ Problem<Accumulator<T>> p) {
  using Acc = Accumulator<T>;
  constexpr int kWidth = width_of(sizeof(T), kReads);
  constexpr int kEach = column_reads_of(sizeof(T), kReads);
  __shared__ Acc found[kThreads * kWidth];

  parts::Work w = work_of(p);
  const int across = 1 << p.lanes, lines = kThreads >> p.lanes;
  const int thread = int(threadIdx.x), place = thread & (across - 1), down = thread >> p.lanes;
  begin_early();

#pragma unroll 1
  for (std::int64_t first = std::int64_t(blockIdx.y) << p.lanes; first < p.turns;
       first += std::int64_t(gridDim.y) << p.lanes) {
    // Results that there are not are the last ones; their sums go nowhere.
    const Turn turn = turn_of(min(first + place, p.turns - 1), p.per_matrix);
    w.batch = turn.matrix;
    const auto* const begin = static_cast<const T*>(p.Matrix.at(w.batch));
    const auto* const v = static_cast<const T*>(p.Vector.at(w.batch));
    const int columns = int(min(p.length - turn.place * kWidth, std::int64_t(kWidth)));

    Acc sums[kWidth] = {};
#pragma unroll 1
    for (std::int64_t k = w.k0 + down; k < w.k1; k += lines * kEach) {
      const int left = int(min(w.k1 - k, std::int64_t(lines * kEach)));
      const T *from = begin + k * p.line + turn.place * kWidth, *v_from = v + k * p.vector_step;
      Read<T, kReads> x[kEach] = {};
      T y[kEach];
#pragma unroll
      for (int u = 0; u < kEach; ++u) {
        if (u * lines < left) x[u].from(from, begin, begin + p.matrix_end, columns);
        from += lines * p.line;
      }
#pragma unroll
      for (int u = 0; u < kEach; ++u) {
        y[u] = T{};
        if (u * lines < left) y[u] = *v_from;
        v_from += lines * p.vector_step;
      }
#pragma unroll
      for (int u = 0; u < kEach; ++u) {
        const Acc factor = widen(y[u], p.conjugate_vector);
        const auto unit = x[u].unit(kWidth);
#pragma unroll
        for (int e = 0; e < kWidth; ++e) sums[e] = multiply_add(widen(unit.e[e]), factor, sums[e]);
      }
    }

    if (lines == 1) {
      if (first + place < p.turns)
#pragma unroll
        for (int e = 0; e < kWidth; ++e)
          if (e < columns) leave<T>(p, w, turn.place * kWidth + e, sums[e]);
      continue;
    }
    // Sums of lanes and warps that have the same columns.
    for (int mask = 16; mask >= across; mask /= 2)
#pragma unroll
      for (int e = 0; e < kWidth; ++e) sums[e] = sums[e] + parts::from_lane(sums[e], mask);
#pragma unroll
    for (int e = 0; e < kWidth; ++e) found[e * kThreads + thread] = sums[e];
    __syncthreads();
    const auto leave_result = [&](int i, Acc sum) {
      const Turn to = turn_of(first + i / kWidth, p.per_matrix);
      const std::int64_t column = to.place * kWidth + i % kWidth;
      w.batch = to.matrix;
      if (column < p.length) leave<T>(p, w, column, sum);
    };
    const auto place_of = [](int i) { return i % kWidth * kThreads + i / kWidth; };
    const int results = int(min(p.turns - first, std::int64_t(across))) * kWidth;
    const int apart = max(across, 32);
    for (int i = thread; i < results; i += kThreads) {
      Acc& sum = found[place_of(i)];
      Acc all = sum;
#pragma unroll
      for (int other = 1; other < kWarps; ++other)
        if (other * apart < kThreads) all = all + (&sum)[other * apart];
      if constexpr (kJoined)
        sum = all;
      else
        leave_result(i, all);
    }
#if __CUDA_ARCH__ >= 900
    if constexpr (kJoined) {
      // The blocks share the results.
      const auto cluster = cooperative_groups::this_cluster();
      const int blocks = int(gridDim.x);
      cluster.sync();
      for (int i = w.part * kThreads + thread; i < results; i += blocks * kThreads) {
        Acc* const sum = found + place_of(i);
        Acc all = *cluster.map_shared_rank(sum, 0);
        for (int block = 1; block < blocks; ++block)
          all = all + *cluster.map_shared_rank(sum, block);
        leave_result(i, all);
      }
      meet_cluster();
    }
#endif
    __syncthreads();
  }
}

/// How a call is cut. Numbers of lanes, teams and warps are powers of two.
struct Cut {
  int rows = 0;  ///< of a team, none where memory runs along the result
  int lanes = 1, side_by_side = 1, share = 1, parts = 1;
  bool joined = false;  ///< parts by clusters
  std::int64_t per_matrix = 0, turns = 0, blocks = 0, depth = 0;
  double microseconds = 0;
};

/// What there is to be cut.
struct Call {
  bool matrix_is_b, along_k;
  Reads reads;
  int size, width;
  std::int64_t length, k, batch;
  int units;
  double memory_rate;
  bool clusters;

  Call(const GemmArgs& args, const DeviceInfo& device)
      : matrix_is_b(args.m == 1 && args.n > 1),
        along_k(matrix_is_b ? is_transposed(args.transB) : !is_transposed(args.transA)),
        size(size_of(args.in)),
        length(matrix_is_b ? args.n : args.m),
        k(std::max<std::int64_t>(args.k, 1)),
        batch(args.batch),
        units(std::max(device.compute_units, 1)),
        memory_rate(memory_rate_of(device)),
        clusters(runs_clusters(device)) {
    const auto bits = access_bits(matrix_is_b ? args.B : args.A, args.batch, size);
    const bool vectors = bits % 16 == 0 && (along_k || length % (16 / size) == 0);
    // Bytes from anywhere in any case: a kernel more would gain little.
    reads = vectors && size > 1 ? Reads::Vectors : size <= 2 ? Reads::Anywhere : Reads::Elements;
    width = width_of(size, reads);
  }

  auto key() const {
    return std::tuple(along_k, reads, size, length, k, batch, units, memory_rate, clusters);
  }

  double bytes() const { return double(length) * double(k) * double(batch) * size; }

  /// The cut that takes the least time.
  Cut cut() const {
    Cut best;
    const auto consider = [&](Cut cut) {
      if (best.blocks == 0 || cut.microseconds < best.microseconds) best = cut;
    };
    // Parts as many as the device holds at once, and fewer.
    const auto consider_parts = [&](const auto& cut_into) {
      const Cut whole = cut_into(1);
      consider(whole);
      const std::int64_t most =
          std::min({resident(whole) / whole.blocks, k / kLeastDepth, std::int64_t(parts::kMost)});
      for (std::int64_t parts = most; parts > 1; parts /= 2) consider(cut_into(int(parts)));
    };
    if (!along_k) {
      // Neighbours that are read together are 128 bytes or more.
      const int least = std::max(16, 128 / (width * size));
      for (int lanes = least; lanes <= kThreads; lanes *= 2)
        consider_parts([&](int parts) { return of_columns(lanes, parts); });
      const bool joins = clusters && bytes() < kMostJoinedBytes;
      for (int parts = 2; joins && parts <= kMostJoined; parts *= 2)
        for (int lanes = least; lanes <= 64; lanes *= 2) {
          const Cut cut = of_columns(lanes, parts, true);
          if (cut.blocks <= whole_clusters_at_once(parts, units) * (resident(cut) / units))
            consider(cut);
        }
      return best;
    }
    const int lanes =
        int(std::bit_ceil(std::uint64_t(std::min<std::int64_t>(ceil_div(k, width), 32))));
    if (length > 1)
      for (int some = lanes; some >= 1 && some * 16 >= lanes; some /= 2)
        consider(of_rows(kSomeRows, some, 1, 1));
    for (int share = 1; share <= (lanes < 32 ? 1 : kWarps); share *= 2)
      consider_parts([&](int parts) { return of_rows(1, lanes, share, parts); });
    return best;
  }

 private:
  /// Microseconds: of the start, of each round of blocks, of a thread that waits for what it reads
  /// at a time, of a multiprocessor for a read of a warp and for each line of 128 bytes that it
  /// meets, of a cluster that joins parts, and of a kernel that adds them up, for each and for each
  /// byte; and the memory's rate, as a share of the device's. Fitted to 900 products in 9 to 27
  /// cuts each, on an H200.
  struct Cost {
    double start, round, wait, cached_wait, read, read_line, join, add, add_part, add_byte;
    double memory_share;
  };
  static constexpr Cost kWide = {.start = 1.26,
                                 .round = 0.84,
                                 .wait = 0.78,
                                 .cached_wait = 0.33,
                                 .read = 1.45e-3,
                                 .read_line = 0.55e-3,
                                 .join = 0.64,
                                 .add = 1.3,
                                 .add_part = 0.09,
                                 .add_byte = 0.25e-6,
                                 .memory_share = 1.27};
  static constexpr Cost kNarrow = {.start = 1.43,
                                   .round = 1.6,
                                   .wait = 1.09,
                                   .cached_wait = 0.58,
                                   .read = 3.8e-3,
                                   .read_line = 0.69e-3,
                                   .join = 0.92,
                                   .add = 1.03,
                                   .add_part = 0.06,
                                   .add_byte = 2.8e-6,
                                   .memory_share = 0.88};
  static constexpr double kJoinPart = 0.03;
  static constexpr double kCached = 5e6;  // bytes that the cache may have: cached_wait
  static constexpr double kOver = 5.1;    // bytes read besides, of lines that start anywhere
  static constexpr std::int64_t kLeastDepth = 64;  // of k of a part
  // Parts of a cluster, and bytes: clusters are packed onto few multiprocessors.
  static constexpr int kMostJoined = 8;
  static constexpr double kMostJoinedBytes = 16e6;

  std::int64_t resident(const Cut& cut) const {
    return std::int64_t(units) * blocks_of(size, reads, cut.rows == 1 ? 1 : kSomeRows);
  }

  Cut of_rows(int rows, int lanes, int share, int parts) const {
    Cut cut{rows, lanes, 1, share, parts};
    // The most rows side by side of which few are beyond the matrix.
    const auto turns = [&](int side) { return ceil_div(length, std::int64_t(side) * rows); };
    for (int side = 1; side <= 32 / lanes; side *= 2)
      if (turns(side) * side * 8 <= turns(1) * 9) cut.side_by_side = side;
    cut.per_matrix = turns(cut.side_by_side);
    cut.turns = cut.per_matrix * ceil_div(batch, 32 / lanes / cut.side_by_side);
    const int each = reads_of(size, reads, rows);
    const double teams = 32.0 / lanes, row = double(k) * size;
    const double lines = std::min(teams * std::max(1.0, lanes * width * size / 128.0),
                                  teams > 1 ? teams * row / 128 + 1 : 1e9);
    finish(cut, ceil_div(cut.turns * share, kWarps),
           std::int64_t(lanes) * width * (each / rows) * share, lines, each, 1);
    return cut;
  }

  Cut of_columns(int lanes, int parts, bool joined = false) const {
    Cut cut{0, lanes, 1, 1, parts, joined};
    cut.per_matrix = ceil_div(length, width);
    cut.turns = cut.per_matrix * batch;
    const int lines = kThreads / lanes, each = column_reads_of(size, reads);
    const double over = reads == Reads::Elements ? 1 + kOver / (lanes * size) : 1;
    finish(cut, ceil_div(cut.turns, lanes), std::int64_t(lines) * each, 0, each, over);
    return cut;
  }

  /// A block takes `step` elements of k with `each` reads of a thread; those of a warp meet `lines`
  /// lines of 128 bytes where they may be many, and bring `over` times what is asked for.
  void finish(Cut& cut, std::int64_t blocks, std::int64_t step, double lines, int each,
              double over) const {
    cut.blocks = std::clamp<std::int64_t>(blocks, 1, resident(cut));
    const std::int64_t unit = along_k ? 16 : 1;  // parts of rows begin at multiples of 16 bytes
    cut.depth = ceil_div(k, cut.parts * unit) * unit;
    const Cost& cost = size <= 2 ? kNarrow : kWide;
    const double all = double(blocks) * cut.parts, steps = double(ceil_div(k, step * cut.parts));
    const double most = std::ceil(all / units);  // blocks that a multiprocessor has
    const double rounds = std::ceil(all / double(resident(cut)));
    const double memory = most * std::min<double>(units, all) / all * bytes() * over * 1e6 /
                          (cost.memory_share * memory_rate);
    const double waits = rounds * steps * (bytes() < kCached ? cost.cached_wait : cost.wait);
    const double work = most * kWarps * steps * each * (cost.read + cost.read_line * lines);
    cut.microseconds =
        cost.start + cost.round * rounds + std::sqrt(memory * memory + waits * waits + work * work);
    if (cut.joined)
      cut.microseconds += cost.join + kJoinPart * cut.parts;
    else if (cut.parts > 1)
      cut.microseconds +=
          cost.add + cut.parts * (cost.add_part + cost.add_byte * double(length) * double(batch) *
                                                      std::max(size, 4));
  }
};

Cut cut_of(const Call& call) {
  thread_local Memo<decltype(call.key()), Cut> memo;
  return memo(call.key(), [&] { return call.cut(); });
}

/// Whether the vector's elements are neighbours in memory.
bool vector_is_whole(const GemmArgs& args, const Call& call) {
  const Strides a = strides_of(args.transA, args.A.ld), b = strides_of(args.transB, args.B.ld);
  return args.k <= 1 || (call.matrix_is_b ? a.col : b.row) == 1;
}

/// Why narrow types are left to rows that take more than a vector.
const char* declines_narrow(const GemmArgs& args, const DeviceInfo& device) {
  const Call call(args, device);
  if (!vector_is_whole(args, call)) return "for vectors of narrow types that lie in one piece";
  if (args.config == kForced) return nullptr;
  // few_vectors reads each word of a matrix once, wherever its rows start.
  constexpr std::int64_t kLeast = 128;
  constexpr double kMostBytes = 4e6, kShare = 1.05;
  if (call.size == 2 && call.reads == Reads::Anywhere && std::min(call.length, call.k) >= kLeast &&
      call.bytes() > kMostBytes)
    return "slower than few_vectors";
  return cut_of(call).microseconds > kShare * tensor_mma_microseconds(args, device)
             ? "estimated to be slower than tensor_mma"
             : nullptr;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (std::min(args.m, args.n) > 1) return "for vectors";
  if (const char* reason = declines_halfway(args)) return reason;
  if (size_of(args.in) <= 2)
    if (const char* reason = declines_narrow(args, device)) return reason;
  return declines_emulation_but_tf32(args, device);
}

/// Parts whose sums are added up by a kernel more.
int parts_of(const Cut& cut) { return cut.joined ? 1 : cut.parts; }

std::size_t workspace(const GemmArgs& args, const DeviceInfo& device) {
  return gemm_pointer_bytes(args, device) + parts::bytes(args, parts_of(cut_of({args, device})));
}

template <class T, class Out, Reads kReads>
void run_as(const GemmArgs& args, const Call& call, const Cut& cut, const CudaQueue& queue) {
  using Acc = Accumulator<T>;
  Problem<Acc> p{{gemm_problem<T, Out>(args, queue, 1, 1)}};
  const bool b = call.matrix_is_b;
  p.Matrix = b ? p.B : p.A;
  p.Vector = b ? p.A : p.B;
  p.length = call.length;
  p.line = b ? args.B.ld : args.A.ld;
  p.vector_step = b ? p.a.col : p.b.row;
  p.matrix_end = call.along_k ? (p.length - 1) * p.line + p.k : (p.k - 1) * p.line + p.length;
  p.c = {b ? 1 : p.ldc, 1};
  const Input& vector = b ? args.A : args.B;
  const std::uintptr_t stride = vector.pointers ? 0 : std::uintptr_t(vector.stride) * sizeof(T);
  p.wide_vector =
      p.vector_step == 1 &&
      (address_bits(vector, args.batch) | stride) % (sizeof(T) * width_of(sizeof(T), kReads)) == 0;
  // A conjugate of the matrix is one of the vector and of the sums.
  p.conjugate_sum = b ? p.conjugate_b : p.conjugate_a;
  p.conjugate_vector = p.conjugate_a != p.conjugate_b;
  p.floats = args.out == DType::f32;
  const auto logarithm = [](int x) { return std::countr_zero(unsigned(x)); };
  p.lanes = logarithm(cut.lanes);
  p.side_by_side = logarithm(cut.side_by_side);
  p.share = logarithm(cut.share);
  p.per_matrix = cut.per_matrix;
  p.turns = cut.turns;
  p.depth = cut.depth;
  p.parts = parts_of(cut);
  p.sums = parts::sums_of<Acc>(queue, args);
  const auto kernel = cut.joined      ? columns_kernel<T, kReads, true>
                      : cut.rows == 0 ? columns_kernel<T, kReads, false>
                      : cut.rows == 1 ? rows_kernel<T, kReads, 1>
                                      : rows_kernel<T, kReads, kSomeRows>;
  const dim3 grid(unsigned(cut.parts), unsigned(cut.blocks));
  if (cut.joined)
    launch_with(LaunchAttributes(starts_early(queue), grid.x), queue, kernel, grid, kThreads, 0, p);
  else
    launch_evenly(queue, kernel, grid, kThreads, 0, p);
  parts::add<Out, Acc>(queue, args, p);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Call call(args, queue.device());
  const Cut cut = cut_of(call);
  with_gemm_types(args.in, args.out, [&]<class T, class Out>() {
    constexpr Reads kOther = sizeof(T) <= 2 ? Reads::Anywhere : Reads::Elements;
    if constexpr (sizeof(T) != 1)
      if (call.reads == Reads::Vectors)
        return run_as<T, Out, Reads::Vectors>(args, call, cut, queue);
    if constexpr (sizeof(T) != 16) run_as<T, Out, kOther>(args, call, cut, queue);
  });
}

}  // namespace gemv_file

Kernel<GemmArgs> gemv() {
  using namespace gemv_file;
  return {"gemv", "a matrix times a vector, alone or in batches: the matrix once", declines,
          workspace, run};
}

}  // namespace mblas::cuda::gemm
