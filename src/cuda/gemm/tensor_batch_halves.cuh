// The same for half and bfloat16, of which the tensor cores take neighbours along k in one
// register.
//
// Where rows are whole vectors of 16 bytes, ldmatrix reads them. Others stay in shared memory as
// they lie in memory, where most come as one run: their elements are read two at a time if rows
// begin at words, and one by one else. Results go to memory by way of shared memory, as a warp has
// eight rows of them at a time.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>

#include "cuda/gemm/tensor_batch.cuh"
#include "cuda/memo.hpp"

namespace mblas::cuda::tensor_batch {

/// Where a block's shared memory begins, with zeros if operands come in vectors.
__device__ inline const char* zeros_of_block() {
  extern __shared__ __align__(128) char shared[];
  return shared;
}

/// How operands are read from shared memory.
enum class Way { Vectors, Words, Halves };

/// An operand there.
struct Stored {
  whole::Image image;
  bool along_k = false;
  bool even = false;  ///< rows of all matrices are equally far apart
  int spread = 1;     ///< see line_of()
};

struct HalfProblem : GemmProblem<float> {
  Blocks blocks = {};
  Stored a = {}, b = {};
  whole::Image c_image = {};
  Way way = Way::Vectors;
  int neighbours = 8;                      // along k, of a lane
  bool c_floats = false, c_pairs = false;  // C's type; written two at a time
  bool c_even = false;                     // see Stored
};

/// Which line, of a warp's, lane 4 g + t has in group q of eight, without that of g = 0: of each
/// `spread` groups, neighbours, so that lanes read lines that are so far apart.
__device__ inline int line_of(int q, int spread) {
  return (q & (spread - 1)) + 8 * (q & ~(spread - 1));
}

/// f(memory, shared) with the places of each vector of `count` matrices, from matrix_of(0) on;
/// `even`: rows of all of them are equally far apart. Places are found by steps, not by division.
template <class MatrixOf, class F>
__device__ void for_vectors(const whole::Image& image, bool even, int count, MatrixOf&& matrix_of,
                            F&& f) {
  const int units = image.units, threads = int(blockDim.x), thread = int(threadIdx.x);
  const int lines = image.by_units.quotient(threads), vectors = threads - lines * units;
  const int line0 = image.by_units.quotient(thread), vector0 = thread - line0 * units;
  const std::int64_t hop = lines * image.distance + vectors * 16,
                     carry = image.distance - units * 16;
  const int hop_shared = lines * image.pitch + vectors * 16,
            carry_shared = image.pitch - units * 16;
  const int rows = even ? count * image.rows : image.rows;
  for (int g = 0; g < (even ? 1 : count); ++g) {
    auto* memory = matrix_of(g) + line0 * image.distance + vector0 * 16;
    int shared = image.begin + g * image.matrix + line0 * image.pitch + vector0 * 16;
    int vector = vector0;
#pragma unroll 2
    for (int line = line0; line < rows; line += lines) {
      f(memory, shared);
      vector += vectors;
      memory += hop;
      shared += hop_shared;
      if (vector >= units) {
        vector -= units;
        memory += carry;
        shared += carry_shared;
        ++line;
      }
    }
  }
}

/// Starts to bring `count` matrices of whole vectors from `first` on.
__device__ inline void bring_vectors(char* shared, const Stored& x, const DeviceInput& operand,
                                     std::int64_t first, int count) {
  const unsigned base = shared_address(shared);
  for_vectors(
      x.image, x.even, count,
      [&](int g) { return static_cast<const char*>(operand.at(first + g)); },
      [&](const char* from, int to) { copy_async<16>(base + unsigned(to), from); });
}

/// kGroups groups of eight lines from `line` on of an operand of `lines`, by words or halves. Of
/// each 32 of k a lane has `neighbours` at a time, eight in two parts of four, or two in two pairs
/// of each of two parts of 16.
template <Way kWay, bool kAlongK, bool /*kLinesFirst*/, int kGroups>
struct HalfSide {
  static constexpr bool kShifted = kAlongK && kWay == Way::Halves;
  const char* at[kAlongK ? kGroups : 1];
  int pitch;
  int each, pair, part;    // of k: from lane to lane, from pair to pair, from part to part
  unsigned shift[2] = {};  // of groups at even places and of others: lines that begin between words
  unsigned last[kShifted ? kGroups : 1];

  __device__ HalfSide(const HalfProblem& p, const char* matrix, const Stored& x, int line,
                      int lines)
      : pitch(x.image.pitch) {
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const bool two = kWay == Way::Words && p.neighbours == 2;
    each = two ? 2 : 8;
    pair = two ? 8 : 2;
    part = two ? 16 : 4;
    if constexpr (kAlongK) {
#pragma unroll
      for (int q = 0; q < kGroups; ++q) {
        at[q] = matrix + min(line + line_of(q, x.spread) + g * x.spread, lines - 1) * pitch +
                each * t * 2;
        if constexpr (kShifted) {
          const auto between = unsigned(shared_address(at[q]) & 2);
          if (q < 2) shift[q] = between * 8;
          at[q] -= between;
        }
      }
    } else {
      at[0] = matrix + each * t * pitch + (line + (kWay == Way::Words ? 2 : 1) * g) * 2;
    }
  }

  /// The lane's of a part of the next k, of which `left` are there.
  template <bool kAll, int kPart>
  __device__ void read(unsigned (&to)[kGroups][2], int left) {
    const auto is_there = [&](int h, int e) {
      return kAll || int(threadIdx.x) % 4 * each + kPart * part + h * pair + e < left;
    };
    if constexpr (kAlongK) {
#pragma unroll
      for (int q = 0; q < kGroups; ++q) {
        if constexpr (kShifted) {
          const auto* const words = reinterpret_cast<const unsigned*>(at[q]) + 2 * kPart;
          const unsigned x = kPart == 0 ? words[0] : last[q], y = words[1], z = words[2];
          to[q][0] = __funnelshift_r(x, y, shift[q % 2]);
          to[q][1] = __funnelshift_r(y, z, shift[q % 2]);
          last[q] = z;
        } else {
#pragma unroll
          for (int h = 0; h < 2; ++h)
            to[q][h] = *reinterpret_cast<const unsigned*>(at[q] + (kPart * part + h * pair) * 2);
        }
        if constexpr (!kAll)
#pragma unroll
          for (int h = 0; h < 2; ++h)
            to[q][h] = is_there(h, 1) ? to[q][h] : is_there(h, 0) ? to[q][h] & 0xffff : 0;
      }
    } else {
      constexpr int kAtOnce = kWay == Way::Words ? 2 : 1;  // groups
      static_assert(kGroups % kAtOnce == 0);
      using Element = turn::Raw<2 * kAtOnce>;
      const char* rows[2][2];
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int e = 0; e < 2; ++e) rows[h][e] = at[0] + (kPart * part + h * pair + e) * pitch;
#pragma unroll
      for (int q = 0; q < kGroups; q += kAtOnce)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          unsigned x[2];
#pragma unroll
          for (int e = 0; e < 2; ++e)
            x[e] = is_there(h, e) ? *reinterpret_cast<const Element*>(rows[h][e] + 16 * q) : 0;
          to[q][h] = __byte_perm(x[0], x[1], 0x5410);
          if constexpr (kAtOnce == 2) to[q + 1][h] = __byte_perm(x[0], x[1], 0x7632);
        }
    }
  }
  __device__ void advance() {
#pragma unroll
    for (auto& from : at) from += kAlongK ? 64 : 32 * pitch;
  }
  /// There are no more than 16 of k left: for the first part.
  __device__ void halve() {
    if (each == 2) return;
    each = 4;
    const int t = int(threadIdx.x) % 4;
#pragma unroll
    for (auto& from : at) from -= kAlongK ? 8 * t : 4 * t * pitch;
  }
};

/// By ldmatrix, whose second matrix of four is of the next eight lines if kLinesFirst, of the next
/// eight k else.
template <bool kAlongK, bool kLinesFirst, int kGroups>
struct HalfSide<Way::Vectors, kAlongK, kLinesFirst, kGroups> {
  static constexpr int kPairs = (kGroups + 1) / 2;
  unsigned at[kAlongK ? kPairs : 1];
  unsigned hop, zeros;
  int k;  // of the row of eight elements where the lane says that it begins

  __device__ HalfSide(const HalfProblem&, const char* matrix, const Stored& x, int line, int lines)
      : zeros(shared_address(zeros_of_block())) {
    const int lane = int(threadIdx.x) % 32, middle = lane & 8, high = (lane & 16) / 2;
    const int row = lane % 8, pitch = x.image.pitch;
    line += kLinesFirst ? middle : high;
    k = kLinesFirst ? high : middle;
    hop = unsigned(kAlongK ? 32 : 16 * pitch);
    const unsigned first = shared_address(matrix);
    if constexpr (kAlongK) {
#pragma unroll
      for (int p = 0; p < kPairs; ++p)
        at[p] = first + unsigned(min(line + 16 * p + row, lines - 1) * pitch + k * 2);
    } else {
      k += row;
      at[0] = first + unsigned(k * pitch + line * 2);
    }
  }
  /// The lane's of the next 16 of k, of which `left` are there.
  template <bool kAll, int>
  __device__ void read(unsigned (&to)[kGroups][2], int left) {
    const bool there = kAll || k < left;
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      unsigned x[4];
      load_matrices<!kAlongK>(
          x, kAlongK ? (there ? at[p] : zeros) : (there ? at[0] : zeros) + unsigned(32 * p));
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int q = 2 * p + (kLinesFirst ? e % 2 : e / 2);
        if (q < kGroups) to[q][kLinesFirst ? e / 2 : e % 2] = x[e];
      }
    }
#pragma unroll
    for (unsigned& from : at) from += hop;
  }
};

/// Adds a warp's product up.
template <class V, Way kWay, bool kAAlong, bool kBAlong>
__device__ void add_halves(const HalfProblem& p, const char* a, const char* b, int row, int col,
                           float (&sum)[V::kI][V::kQ][4]) {
  HalfSide<kWay, kAAlong, true, 2 * V::kI> left(p, a, p.a, row, int(p.m));
  HalfSide<kWay, kBAlong, false, V::kQ> right(p, b, p.b, col, int(p.n));
  const auto add = [&]<bool kAll, int kPart>(int l) {
    unsigned x[2 * V::kI][2], y[V::kQ][2];
    left.template read<kAll, kPart>(x, l);
    right.template read<kAll, kPart>(y, l);
#pragma unroll
    for (int i = 0; i < V::kI; ++i)
#pragma unroll
      for (int q = 0; q < V::kQ; ++q)
        multiply_tile<typename V::Element>(
            sum[i][q], {x[2 * i][0], x[2 * i + 1][0], x[2 * i][1], x[2 * i + 1][1]}, y[q][0],
            y[q][1]);
  };
  int l = int(p.k);
  if constexpr (kWay == Way::Vectors) {
#pragma unroll 2
    for (; l >= 16; l -= 16) add.template operator()<true, 0>(l);
    if (l > 0) add.template operator()<false, 0>(l);
  } else {
#pragma unroll 1
    for (; l >= 32; l -= 32) {
      add.template operator()<true, 0>(l);
      add.template operator()<true, 1>(l);
      left.advance();
      right.advance();
    }
    if (l > 16) {
      add.template operator()<false, 0>(l);
      add.template operator()<false, 1>(l);
    } else if (l > 0) {
      left.halve();
      right.halve();
      add.template operator()<false, 0>(l);
    }
  }
}

/// Writes a warp's results to C's matrix in shared memory. kSpread: op(B)'s; kPairs: neighbours of
/// a row at a time.
template <class V, class Out, int kSpread, bool kPairs, bool kReads>
__device__ void put_halves(const HalfProblem& p, char* matrix, int row0, int col0,
                           const float (&sum)[V::kI][V::kQ][4]) {
  static_assert(!(kPairs && kReads));
  const int lane = thread_now() % 32, g = lane / 4, t = lane % 4;
  const int row = row0 + g * p.a.spread, col = col0 + 2 * t * kSpread;
  const int below = int(p.m) - row, right = int(p.n) - col, pitch = p.c_image.pitch;
  char* const c = matrix + row * pitch + col * int(sizeof(Out));
#pragma unroll
  for (int half = 0; half < 2 * V::kI; ++half) {
    const int down = line_of(half, p.a.spread);
    if (down >= below) continue;
    Out* const line = reinterpret_cast<Out*>(c + down * pitch);
    const auto value = [&](int q, int v) { return p.alpha * sum[half / 2][q][half % 2 * 2 + v]; };
#pragma unroll
    for (int q = 0; q < V::kQ; ++q) {
      if constexpr (kPairs) {
        // Of a group, or of this one and the next.
        const auto put = [&](int across, float x, float y) {
          if (across < right)
            *reinterpret_cast<Vector<Out, 2>*>(line + across) = narrow_pair<Out>(x, y);
        };
        if constexpr (kSpread == 1) {
          put(8 * q, value(q, 0), value(q, 1));
        } else if (q % 2 == 0) {
          put(8 * q, value(q, 0), value(q + 1, 0));
          put(8 * q + 2, value(q, 1), value(q + 1, 1));
        }
      } else {
        const Vector<Out, 2> both = narrow_pair<Out>(value(q, 0), value(q, 1));
#pragma unroll
        for (int v = 0; v < 2; ++v)
          if (const int across = line_of(q, kSpread) + v * kSpread; across < right) {
            if constexpr (kReads)
              line[across] = narrow<Out>(multiply_add(p.beta, widen(line[across]), value(q, v)));
            else
              line[across] = both.e[v];
          }
      }
    }
  }
}

/// Writes `count` matrices of whole vectors from `first` on.
__device__ inline void send_vectors(const char* shared, const whole::Image& image, bool even,
                                    const DeviceOutput& operand, std::int64_t first, int count) {
  for_vectors(
      image, even, count, [&](int g) { return static_cast<char*>(operand.at(first + g)); },
      [&](char* to, int from) {
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(shared + from);
      });
}

template <class V>
__global__ void __launch_bounds__(V::kShare.threads, V::kShare.blocks)
    tensor_batch_halves_kernel(const __grid_constant__ HalfProblem p) {
  using T = typename V::Element;
  constexpr int kAny = 0;  // threads
  extern __shared__ __align__(128) char shared[];
  const auto begin = [&] { return late(int(blockIdx.x)) * std::int64_t(p.blocks.group); };
  const auto size = [&](std::int64_t first) {
    return int(min(std::int64_t(p.blocks.group), p.tiles.batch - first));
  };
  float sum[V::kI][V::kQ][4] = {};
  begin_early();
  if (p.k > 0) {
    const std::int64_t first = begin();
    const int count = size(first);
    const char *a = shared + p.a.image.begin, *b = shared + p.b.image.begin;
    if (p.way == Way::Vectors) {
      bring_vectors(shared, p.a, p.A, first, count);
      bring_vectors(shared, p.b, p.B, first, count);
      if (threadIdx.x * 16 < kZeros) reinterpret_cast<uint4*>(shared)[threadIdx.x] = {};
    } else {
      a = whole::bring<kAny, T>(shared, p.a.image, p.A, first, count, true);
      b = whole::bring<kAny, T>(shared, p.b.image, p.B, first, count, true);
    }
    commit_copies();
    const Place at(p.blocks);
    const int matrix = at.matrix < count ? at.matrix : 0;
    a += matrix * p.a.image.matrix;
    b += matrix * p.b.image.matrix;
    wait_copies<0>();
    __syncthreads();
    const auto with = [&]<Way kWay>() {
      const auto add = [&]<bool kAAlong, bool kBAlong>() {
        add_halves<V, kWay, kAAlong, kBAlong>(p, a, b, at.row * V::kRows, at.col * V::kCols, sum);
      };
      if (p.a.along_k && p.b.along_k)
        add.template operator()<true, true>();
      else if (p.a.along_k)
        add.template operator()<true, false>();
      else if (p.b.along_k)
        add.template operator()<false, true>();
      else
        add.template operator()<false, false>();
    };
    if (p.way == Way::Vectors)
      with.template operator()<Way::Vectors>();
    else if (p.way == Way::Halves || V::kQ % 2 == 1)
      with.template operator()<Way::Halves>();
    else if constexpr (V::kQ % 2 == 0)
      with.template operator()<Way::Words>();
  }

  const std::int64_t first = begin();
  const int count = size(first);
  const Place at(p.blocks);
  const auto put = [&]<class Out>() {
    put_by_shared<Out>(p, shared, first, count, at.matrix, [&](char* matrix) {
      const int row = at.row * V::kRows, col = at.col * V::kCols;
      const auto spread = [&]<int kSpread>() {
        if (p.read_c)
          put_halves<V, Out, kSpread, false, true>(p, matrix, row, col, sum);
        else if (p.c_pairs)
          put_halves<V, Out, kSpread, true, false>(p, matrix, row, col, sum);
        else
          put_halves<V, Out, kSpread, false, false>(p, matrix, row, col, sum);
      };
      if (V::kQ % 2 == 1 || p.b.spread == 1)
        spread.template operator()<1>();
      else if constexpr (V::kQ % 2 == 0)
        spread.template operator()<2>();
    });
    if (p.c_image.unit == 16 && !p.c_image.packed)
      send_vectors(shared, p.c_image, p.c_even, p.C, first, count);
    else
      whole::send<kAny, Out>(shared, p.c_image, p.C, first, count);
  };
  if (p.c_floats)
    put.template operator()<float>();
  else
    put.template operator()<T>();
}

struct HalfPlan {
  Stored a, b;
  whole::Image c;
  Way way = Way::Vectors;
  bool c_pairs = false, c_even = false;
  Shape shape;

  HalfPlan(const GemmArgs& args, const DeviceInfo& device) {
    const int size_c = size_of(args.out);
    const std::int64_t k = args.alpha == Scalar{} ? 0 : args.k;
    const bool a_along = !is_transposed(args.transA), b_along = is_transposed(args.transB);
    a = stored(args.A, args.batch, a_along ? args.m : k, a_along ? k : args.m, a_along);
    b = stored(args.B, args.batch, b_along ? args.n : k, b_along ? k : args.n, b_along);
    const bool vectors = std::min(a.image.unit, b.image.unit) == 16;
    if (!vectors) {
      pack(a, args.A.ld);
      pack(b, args.B.ld);
    }
    const auto in_words = [&](const Stored& x, const auto& operand) {
      const auto bits =
          std::uintptr_t(x.image.pitch | x.image.matrix) | access_bits(operand, args.batch, 2);
      return !x.image.packed || bits % 4 == 0;
    };
    const bool words = in_words(a, args.A) && in_words(b, args.B);
    way = vectors ? Way::Vectors : words ? Way::Words : Way::Halves;
    c = tiny::image_of(args.C, args.batch, args.m, args.n, size_c, args.m, args.n, 1);
    c.matrix = c.rows * c.pitch;
    c_even = is_even(args.C, args.batch, args.m);
    if (c.run && c.unit < 16) tiny::pack_as_it_lies(c, size_c);
    const auto bits =
        c.packed ? access_bits(args.C, args.batch, size_c) | std::uintptr_t(c.pitch | c.matrix)
                 : std::uintptr_t(args.n * size_c);
    c_pairs = bits % std::uintptr_t(2 * size_c) == 0;
    shape = shape_of(args, device, a.image, b.image, c, false);
  }

  /// How lanes of warps of so many rows and columns share operands out, so that as few as can be
  /// read different words of a bank at a time.
  struct Lanes {
    int neighbours = 8, a_spread = 1, b_spread = 1;
    int a_words = 1, b_words = 1;  ///< of a bank
  };
  Lanes lanes_of(const Config& config, Way by) const {
    Lanes best;
    if (by == Way::Vectors) return best;
    best.a_words = best.b_words = 32;
    for (const int neighbours : {8, 2}) {
      if (by == Way::Halves && neighbours == 2) continue;
      Lanes lanes{neighbours};
      std::tie(lanes.a_spread, lanes.a_words) = spread_of(a, by, neighbours, config.rows / 8, 4);
      std::tie(lanes.b_spread, lanes.b_words) = spread_of(b, by, neighbours, config.cols / 8, 2);
      const auto reads = [&](const Lanes& x) {
        return config.rows * x.a_words + config.cols * x.b_words;
      };
      if (reads(lanes) < reads(best)) best = lanes;
    }
    return best;
  }
  /// How often a warp of the configuration reads shared memory for a step of 16 of k.
  double reads_of(const Config& config) const {
    const Way by = way_of(config);
    const Lanes lanes = lanes_of(config, by);
    const auto each = [&](const Stored& x, int words) {
      return by == Way::Halves ? (x.along_k ? 2.5 : 4) * words : 2.0 * words;
    };
    return config.rows / 8 * each(a, lanes.a_words) + config.cols / 8 * each(b, lanes.b_words);
  }
  /// The way of a configuration: two groups of columns are read at a time by words.
  Way way_of(const Config& config) const {
    return way == Way::Words && config.cols % 16 != 0 ? Way::Halves : way;
  }

 private:
  template <class Void>
  static bool is_even(const Operand<Void>& x, std::int64_t batch, std::int64_t rows) {
    return !x.pointers && (batch == 1 || x.stride == rows * x.ld);
  }
  template <class Void>
  static Stored stored(const Operand<Void>& x, std::int64_t batch, std::int64_t rows,
                       std::int64_t length, bool along_k) {
    Stored s;
    s.along_k = along_k;
    s.even = is_even(x, batch, rows);
    s.image = tiny::image_of(x, batch, rows, length, 2, rows, length, 1);
    s.image.matrix = s.image.rows * s.image.pitch;
    return s;
  }
  /// Has rows `ld` apart come as one run, with what lies between them where that is not much.
  static void pack(Stored& s, std::int64_t ld) {
    whole::Image& image = s.image;
    const std::int64_t length = image.units * image.unit / 2;
    if (!s.even || image.rows == 0 || ld > length + length / 4) return;
    image.packed = true;
    image.units = int(ld);
    image.unit = 2;
    image.pitch = int(ld) * 2;
    image.matrix = image.rows * image.pitch;
    image.beyond = int(ld - length) * 2;
  }

  static std::pair<int, int> spread_of(const Stored& x, Way way, int neighbours, int groups,
                                       int most) {
    if (!x.along_k) {
      const int spread = way == Way::Words ? 2 : 1;
      return {spread, words_of_a_bank(spread * 2, neighbours * x.image.pitch)};
    }
    std::pair<int, int> best = {1, 33};
    for (int spread = 1; spread <= most && groups % spread == 0; spread *= 2)
      if (const int words = words_of_a_bank(spread * x.image.pitch, neighbours * 2);
          words < best.second)
        best = {spread, words};
    return best;
  }
  /// The most different words of a bank that lanes (g, t) read, so many bytes apart.
  static int words_of_a_bank(int by_g, int by_t) {
    int words[32], of_bank[32] = {};
    for (int lane = 0; lane < 32; ++lane) words[lane] = (lane / 4 * by_g + lane % 4 * by_t) / 4;
    for (int lane = 0; lane < 32; ++lane)
      if (std::find(words, words + lane, words[lane]) == words + lane) ++of_bank[words[lane] % 32];
    return *std::max_element(std::begin(of_bank), std::end(of_bank));
  }
};

void run_bf16(const GemmArgs& args, const HalfPlan& plan, const Config& config,
              const CudaQueue& queue);
void run_f16(const GemmArgs& args, const HalfPlan& plan, const Config& config,
             const CudaQueue& queue);

template <class T, const auto& kSizes>
void launch_halves(const GemmArgs& args, const HalfPlan& plan, const Config& config,
                   const CudaQueue& queue) {
  HalfProblem p{args.out == DType::f32 ? gemm_problem<T, float>(args, queue, 1, 1)
                                       : gemm_problem<T, T>(args, queue, 1, 1)};
  p.k = plan.shape.k;
  p.way = plan.way_of(config);
  p.a = plan.a;
  p.b = plan.b;
  const std::tuple key(p.way, p.a.along_k, p.b.along_k, p.a.image.pitch, p.b.image.pitch,
                       config.rows, config.cols);
  thread_local Memo<std::remove_const_t<decltype(key)>, HalfPlan::Lanes> memo;
  const HalfPlan::Lanes lanes = memo(key, [&] { return plan.lanes_of(config, p.way); });
  p.neighbours = lanes.neighbours;
  p.a.spread = lanes.a_spread;
  p.b.spread = lanes.b_spread;
  p.c_image = plan.c;
  p.c_floats = args.out == DType::f32;
  p.c_pairs = plan.c_pairs;
  p.c_even = plan.c_even;
  p.blocks = Blocks(plan.shape, config);
  p.a.image.begin = p.a.image.packed_begin = int(plan.shape.a_begin());
  p.b.image.begin = p.b.image.packed_begin = int(plan.shape.b_begin(config));
  with_size<kSizes>(config, [&]<int kRows, int kCols>() {
    launch_early(queue, tensor_batch_halves_kernel<Variant<T, kRows, kCols>>,
                 unsigned(ceil_div(args.batch, config.group)), unsigned(plan.shape.threads(config)),
                 std::size_t(plan.shape.bytes(config)), p);
  });
}

}  // namespace mblas::cuda::tensor_batch
