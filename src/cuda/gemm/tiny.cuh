// The machinery behind `tiny`: a block takes several products of a batch, brings their operands to
// shared memory by asynchronous copies, multiplies there, and writes the results back from there.
//
// An operand keeps its own major. A row in shared memory is an odd number of 16-byte vectors, and
// so is a matrix, so that threads that are served together find most of their vectors in different
// banks. Rows whose length, distance and address allow it are moved 16 bytes at a time, others in
// units of 8 or 4 bytes or single elements: alignment changes the copies and nothing else. Where
// units are narrower than an asynchronous copy and the matrices of a block are one run of memory,
// that comes as it is, 16 bytes at a time, and is laid out in shared memory.
#pragma once

#include <cuda_pipeline_primitives.h>

#include <bit>

#include "cuda/early.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/transpose/run.cuh"

namespace mblas::cuda::tiny {

using turn::Divisor;

/// How the matrices of an operand, as stored, lie in shared memory.
struct Image {
  int rows = 0, units = 0;    // of a matrix; units of copies in a row
  int unit = 0;               // bytes in memory
  int unit_shared = 0;        // and in shared memory
  int pitch = 0, matrix = 0;  // bytes from row to row, from matrix to matrix
  int begin = 0;              // of the first matrix
  bool run = false;           // the batch is one contiguous run of units
  bool packed = false;        // and comes, or C goes, as it lies there
  int packed_begin = 0;       // where to
  int beyond = 0;             // bytes that the run's last row is shorter than the others
  std::int64_t distance = 0;  // of rows in memory, in bytes
  Divisor by_units{1}, by_rows{1};
  Divisor by_vectors{1};  // of a row that comes packed
};

template <class Acc>
struct Problem : GemmProblem<Acc> {
  Image a = {}, b = {}, c = {};
  bool a_along_k = false, b_along_k = false;  // what rows in memory are
  int group = 0;                              // products that a block takes at a time
  int depth = 0;       // k in whole vectors; what is beyond k is zero in shared memory
  int across = 0;      // tiles of a row of C
  int per_matrix = 0;  // tiles of C
  Divisor by_across{1}, by_per_matrix{1};
};

/// f<kUnit>() of the units that elements of kSize bytes or their parts may have.
template <std::size_t kSize, class F>
__device__ void with_unit(int unit, F&& f) {
  if (unit == 16)
    f.template operator()<16>();
  else if (unit == 8)
    f.template operator()<8>();
  else if (unit == 4)
    f.template operator()<4>();
  else if constexpr (kSize <= 2) {
    if (kSize == 2 || unit == 2)
      f.template operator()<2>();
    else
      f.template operator()<1>();
  }
}

/// Threads of a block; 0: as many as it was launched with.
template <int kThreads>
__device__ int threads_of() {
  return kThreads > 0 ? kThreads : int(blockDim.x);
}

/// f(shared, memory) with the places of every unit of `count` matrices from `first` on: kAtOnce of
/// them before any is waited for, or kOfRun where the batch is a run.
template <int kThreads, int kAtOnce, int kOfRun, class Operand, class F>
__device__ void for_units(const Image& x, const Operand& operand, std::int64_t first, int count,
                          F&& f) {
  const int units = count * x.rows * x.units;
  const auto at = [&](int u, auto&& memory) {
    const int line = x.by_units.quotient(u), along = u - line * x.units;
    const int g = x.by_rows.quotient(line), row = line - g * x.rows;
    f(x.begin + g * x.matrix + row * x.pitch + along * x.unit_shared, memory(g, row, along));
  };
  if (x.run) {
    auto* const run = static_cast<char*>(const_cast<void*>(operand.at(first)));
#pragma unroll kOfRun
    for (int u = int(threadIdx.x); u < units; u += threads_of<kThreads>())
      at(u, [&](int, int, int) { return run + u * x.unit; });
  } else {
#pragma unroll kAtOnce
    for (int u = int(threadIdx.x); u < units; u += threads_of<kThreads>())
      at(u, [&](int g, int row, int along) {
        return static_cast<char*>(const_cast<void*>(operand.at(first + g))) + row * x.distance +
               along * x.unit;
      });
  }
}

/// Starts to bring `count` matrices from `first` on to shared memory. Where Shared is wider than T,
/// bytes become bfloat16, which holds them exactly.
template <int kThreads, class T, class Shared>
__device__ void load(char* shared, const Image& x, const DeviceInput& operand, std::int64_t first,
                     int count) {
  constexpr bool kWiden = sizeof(Shared) != sizeof(T);
  with_unit<sizeof(T)>(x.unit, [&]<int kUnit>() {
    constexpr bool kAsync = !kWiden && kUnit >= 4;
    constexpr int kAtOnce = kAsync ? 1 : kUnit < 8 ? 4 : 2;
    constexpr int kOfRun = kUnit == 16 ? 2 : kAtOnce;
    for_units<kThreads, kAtOnce, kOfRun>(x, operand, first, count, [&](int to, const char* from) {
      if constexpr (kWiden) {
        using Unit = turn::Raw<kUnit>;
        const Unit v = *reinterpret_cast<const Unit*>(from);
        const auto* bytes = reinterpret_cast<const std::int8_t*>(&v);
        struct alignas(kUnit < 8 ? 2 * kUnit : 16) Wide {
          __nv_bfloat16 e[kUnit];
        } wide;
#pragma unroll
        for (int e = 0; e < kUnit; ++e) wide.e[e] = __float2bfloat16_rn(float(bytes[e]));
        *reinterpret_cast<Wide*>(shared + to) = wide;
      } else if constexpr (kAsync) {
        __pipeline_memcpy_async(shared + to, from, kUnit);
      } else {
        using Unit = turn::Raw<kUnit>;
        *reinterpret_cast<Unit*>(shared + to) = *reinterpret_cast<const Unit*>(from);
      }
    });
  });
}

template <int kThreads, class T>
__device__ void store(const char* shared, const Image& x, const DeviceOutput& operand,
                      std::int64_t first, int count) {
  with_unit<sizeof(T)>(x.unit, [&]<int kUnit>() {
    using Unit = turn::Raw<kUnit>;
    constexpr int kOfRun = kUnit < 16 ? 2 : 4;
    for_units<kThreads, 2, kOfRun>(x, operand, first, count, [&](int from, char* to) {
      *reinterpret_cast<Unit*>(to) = *reinterpret_cast<const Unit*>(shared + from);
    });
  });
}

/// A run of memory as it comes to shared memory: from as far beyond a multiple of 16 bytes on.
struct Run {
  char* memory;
  int bytes, skew;
  int head;  // bytes up to a multiple of 16

  template <class Operand>
  __device__ Run(const Image& x, const Operand& operand, std::int64_t first, int count)
      : memory(static_cast<char*>(const_cast<void*>(operand.at(first)))),
        bytes(count * x.rows * x.units * x.unit - x.beyond),
        skew(int(reinterpret_cast<std::uintptr_t>(memory) % 16)),
        head(min((16 - skew) % 16, bytes)) {}
};

/// Starts to bring it.
template <int kThreads, class T>
__device__ void load_run(char* shared, const Image& x, const Run& run) {
  char* const to = shared + x.packed_begin + run.skew;
  if (const int e = int(threadIdx.x) * int(sizeof(T)); e < run.head)
    *reinterpret_cast<T*>(to + e) = *reinterpret_cast<const T*>(run.memory + e);
#pragma unroll 4
  for (int b = run.head + int(threadIdx.x) * 16; b < run.bytes; b += threads_of<kThreads>() * 16)
    copy_async<16>(shared_address(to + b), run.memory + b, min(run.bytes - b, 16));
}

template <int kThreads, class T>
__device__ void store_run(const char* shared, const Image& x, const Run& run) {
  const char* const from = shared + x.packed_begin + run.skew;
  const int end = run.head + (run.bytes - run.head) / 16 * 16;
#pragma unroll 4
  for (int b = run.head + int(threadIdx.x) * 16; b < end; b += threads_of<kThreads>() * 16)
    *reinterpret_cast<turn::Raw<16>*>(run.memory + b) =
        *reinterpret_cast<const turn::Raw<16>*>(from + b);
  const auto single = [&](int b) {
    *reinterpret_cast<T*>(run.memory + b) = *reinterpret_cast<const T*>(from + b);
  };
  const int e = int(threadIdx.x) * int(sizeof(T));
  if (e < run.head) single(e);
  if (end + e < run.bytes) single(end + e);
}

/// Lays `count` matrices out that have come as a run of `skew`, eight elements at a time; zeros
/// follow on a row's last one up to a multiple of eight.
template <int kThreads, class T, class Shared>
__device__ void lay_out(char* shared, const Image& x, int skew, int count) {
  constexpr int kSize = int(sizeof(T)), kAtOnce = 8, kWords = kAtOnce * kSize / 4;
  static_assert(sizeof(Shared) == 2 && kSize <= 2);
  const int length = x.units, vectors = int(x.by_vectors.d), all = count * x.rows * vectors;
  const char* const from = shared + x.packed_begin;
#pragma unroll 2
  for (int v = int(threadIdx.x); v < all; v += kThreads) {
    const int line = x.by_vectors.quotient(v), first = (v - line * vectors) * kAtOnce;
    const int g = x.by_rows.quotient(line), row = line - g * x.rows;
    const int at = skew + (line * length + first) * kSize;
    // Whole vectors are read, as single words would all be in one bank of four.
    constexpr int kRead = kSize == 2 ? 16 : 8;
    struct alignas(kRead) {
      unsigned w[kRead / 2];
    } all;
    using Half = turn::Raw<kRead>;
    const auto* const halves = reinterpret_cast<const Half*>(from + at / kRead * kRead);
    reinterpret_cast<Half*>(&all)[0] = halves[0];
    reinterpret_cast<Half*>(&all)[1] = halves[1];
    unsigned(&words)[kRead / 2] = all.w;
#pragma unroll
    for (int hop = kRead / 8; hop > 0; hop /= 2)
      if (at & 4 * hop)
#pragma unroll
        for (int w = 0; w + hop < kRead / 2; ++w) words[w] = words[w + hop];
    unsigned raw[kWords];
#pragma unroll
    for (int w = 0; w < kWords; ++w)
      raw[w] = __funnelshift_r(words[w], words[w + 1], unsigned(at % 4) * 8);
    if (const int left = length - first; left < kAtOnce)
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        const int bits = left * kSize * 8 - w * 32;
        raw[w] = bits >= 32 ? raw[w] : bits <= 0 ? 0 : raw[w] & ((1u << bits) - 1);
      }
    struct alignas(16) {
      unsigned w[4];
    } to;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      if constexpr (kSize == 1) {
        const auto element = [&](int e) {
          return float(static_cast<signed char>(raw[e / 4] >> e % 4 * 8));
        };
        const __nv_bfloat162 pair = __floats2bfloat162_rn(element(2 * w), element(2 * w + 1));
        to.w[w] = reinterpret_cast<const unsigned&>(pair);
      } else {
        to.w[w] = raw[w];
      }
    }
    *reinterpret_cast<decltype(to)*>(shared + x.begin + g * x.matrix + row * x.pitch + first * 2) =
        to;
  }
}

/// Zeros between k and the depth, in an operand of `outer` rows or columns.
template <int kThreads, class In>
__device__ void clear(char* shared, const Image& x, bool along_k, int outer, int k, int depth,
                      int count) {
  if (along_k) {
    for (int line = int(threadIdx.x); line < count * outer; line += kThreads) {
      const int g = x.by_rows.quotient(line), row = line - g * outer;
      auto* const to = reinterpret_cast<In*>(shared + x.begin + g * x.matrix + row * x.pitch);
      for (int l = k; l < depth; ++l) to[l] = In{};
    }
  } else {
    for (int g = 0; g < count; ++g) {
      char* const to = shared + x.begin + g * x.matrix + k * x.pitch;
      for (int b = int(threadIdx.x) * 16; b < (depth - k) * x.pitch; b += kThreads * 16)
        *reinterpret_cast<uint4*>(to + b) = {};
    }
  }
}

/// `Multiply` has the type of elements in shared memory, Shared, and computes `count` products
/// there; kLaysOut: runs may come packed.
template <class In, class Out, class Multiply>
__global__ void __launch_bounds__(Multiply::kThreads, Multiply::kBlocks)
    tiny_kernel(const __grid_constant__ Problem<Accumulator<In>> p) {
  extern __shared__ __align__(128) char shared[];
  using Shared = typename Multiply::Shared;
  constexpr int kThreads = Multiply::kThreads;
  begin_early();
  const std::int64_t step = std::int64_t(gridDim.x) * p.group;
  for (std::int64_t first = std::int64_t(blockIdx.x) * p.group; first < p.tiles.batch;
       first += step) {
    const int count = int(min(std::int64_t(p.group), p.tiles.batch - first));
    const auto bring = [&]<class T, class To>(const Image& x, const DeviceInput& operand) {
      if constexpr (Multiply::kLaysOut)
        if (x.packed) return load_run<kThreads, T>(shared, x, Run(x, operand, first, count));
      load<kThreads, T, To>(shared, x, operand, first, count);
    };
    if (p.k > 0) {
      bring.template operator()<In, Shared>(p.a, p.A);
      bring.template operator()<In, Shared>(p.b, p.B);
    }
    // What a thread brings of C it has itself written out in the round before.
    if (p.read_c) bring.template operator()<Out, Out>(p.c, {p.C.data, p.C.stride, p.C.pointers});
    __pipeline_commit();
    if (p.depth > p.k) {
      if (!(p.a.packed && p.a_along_k))
        clear<kThreads, Shared>(shared, p.a, p.a_along_k, int(p.m), int(p.k), p.depth, count);
      if (!(p.b.packed && p.b_along_k))
        clear<kThreads, Shared>(shared, p.b, p.b_along_k, int(p.n), int(p.k), p.depth, count);
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    char* c = shared + p.c.begin;
    if constexpr (Multiply::kLaysOut) {
      if (p.k > 0 && (p.a.packed || p.b.packed)) {
        const auto lay_out_run = [&](const Image& x, const DeviceInput& operand) {
          if (x.packed)
            lay_out<kThreads, In, Shared>(shared, x, Run(x, operand, first, count).skew, count);
        };
        lay_out_run(p.a, p.A);
        lay_out_run(p.b, p.B);
        __syncthreads();
      }
      if (p.c.packed) c += Run(p.c, p.C, first, count).skew;
    }
    Multiply::run(p, shared, c, count);
    __syncthreads();
    if constexpr (Multiply::kLaysOut)
      if (p.c.packed) {
        store_run<kThreads, Out>(shared, p.c, Run(p.c, p.C, first, count));
        __syncthreads();  // before what comes to the same place
        continue;
      }
    store<kThreads, Out>(shared, p.c, p.C, first, count);
  }
}

/// What a product of the call takes in shared memory. `begin` is left to the group.
struct Plan {
  int depth;
  Image a, b, c;

  /// Of `group` products.
  int bytes(int group, bool reads_c) const {
    const int packed = packed_bytes(a, group) + packed_bytes(b, group);
    const int of_c = c.packed ? packed_bytes(c, group) : group * c.matrix;
    // A C that is not read takes the place of operands that have been laid out.
    return group * (a.matrix + b.matrix) + (reads_c ? packed + of_c : std::max(packed, of_c));
  }
  static int packed_bytes(const Image& x, int group) {
    constexpr int kEnds = 64;  // the way to 16 bytes and what is copied and read beyond the end
    return x.packed ? group * x.rows * x.units * x.unit / 16 * 16 + kEnds : 0;
  }
};

/// Whether a batch of matrices of `rows` rows of `length` elements, as stored, has no gaps.
template <class Void>
bool is_run(const Operand<Void>& x, std::int64_t batch, std::int64_t rows, std::int64_t length) {
  return !x.pointers && x.ld == length && (batch == 1 || x.stride == rows * length);
}

/// An operand of `rows` rows of `length` elements of `size` bytes; in shared memory room for
/// `all_rows` of `all` elements of `spread` times the size.
template <class Void>
Image image_of(const Operand<Void>& x, std::int64_t batch, std::int64_t rows, std::int64_t length,
               int size, std::int64_t all_rows, std::int64_t all, int spread) {
  Image image;
  const std::uintptr_t bits = access_bits(x, batch, size) | std::uintptr_t(length * size) | 16;
  image.unit = 1 << std::countr_zero(bits);
  image.rows = int(rows);
  image.units = int(length * size / image.unit);
  image.unit_shared = image.unit * spread;
  image.pitch = 16 * (int(ceil_div(all * size * spread, 16)) | 1);
  image.matrix = 16 * (int(all_rows) * image.pitch / 16 | 1);
  image.run = is_run(x, batch, rows, length);
  image.distance = x.ld * size;
  image.by_units = Divisor(std::max(image.units, 1));
  image.by_rows = Divisor(std::max(image.rows, 1));
  return image;
}

/// Of elements of `size` bytes.
inline void pack(Image& x, int size) {
  x.packed = true;
  x.units = x.units * x.unit / size;
  x.unit = size;
  x.by_vectors = Divisor(int(ceil_div(x.units, 8)));
}

/// The same of what stays in shared memory as it came.
inline void pack_as_it_lies(Image& x, int size) {
  pack(x, size);
  x.pitch = x.units * size;
  x.matrix = x.rows * x.pitch;
}

/// `vector` elements of k at a time; elements in shared memory have `spread` times the size.
/// `lays_out`: runs of units that are no asynchronous copies come packed.
inline Plan plan_of(const GemmArgs& args, int vector, int spread, bool lays_out) {
  const int size = size_of(args.in), size_c = size_of(args.out);
  const std::int64_t k = args.alpha == Scalar{} ? 0 : args.k;
  const bool a = !is_transposed(args.transA), b = is_transposed(args.transB);
  Plan plan;
  plan.depth = int(ceil_div(k, vector)) * vector;
  plan.a = image_of(args.A, args.batch, a ? args.m : k, a ? k : args.m, size,
                    a ? args.m : plan.depth, a ? plan.depth : args.m, spread);
  plan.b = image_of(args.B, args.batch, b ? args.n : k, b ? k : args.n, size,
                    b ? args.n : plan.depth, b ? plan.depth : args.n, spread);
  plan.c = image_of(args.C, args.batch, args.m, args.n, size_c, args.m, args.n, 1);
  if (lays_out) {
    for (Image* x : {&plan.a, &plan.b})
      if (k > 0 && x->run && x->unit < (spread > 1 ? 16 : 4)) pack(*x, size);
    if (plan.c.run && plan.c.unit < 4) pack_as_it_lies(plan.c, size_c);
  }
  return plan;
}

/// Of narrow types by mma.sync, bytes as bfloat16.
inline Plan plan_of_narrow(const GemmArgs& args) {
  return plan_of(args, 8, size_of(args.in) == 1 ? 2 : 1, true);
}

/// Bytes that no block needs more of for one product of the call.
inline std::size_t most_shared(const GemmArgs& args) {
  const Plan plan = size_of(args.in) <= 2 ? plan_of_narrow(args) : plan_of(args, 8, 1, false);
  return std::size_t(plan.bytes(1, true));
}

/// A block computes `at_once` tiles of C of rows×cols at a time.
template <class In, class Out, class Multiply>
void launch_tiny(const GemmArgs& call, const CudaQueue& queue, int rows, int cols, int at_once) {
  GemmArgs args = call;
  if (args.alpha == Scalar{}) args.k = 0;
  const Plan plan =
      plan_of(args, Multiply::kVec, int(sizeof(typename Multiply::Shared) / sizeof(In)),
              Multiply::kLaysOut);
  Problem<Accumulator<In>> p{gemm_problem<In, Out>(args, queue, rows, cols)};
  p.a = plan.a;
  p.b = plan.b;
  p.c = plan.c;
  p.a_along_k = !is_transposed(args.transA);
  p.b_along_k = is_transposed(args.transB);
  p.depth = plan.depth;
  p.across = int(p.tiles.cols);
  p.per_matrix = int(p.tiles.rows * p.tiles.cols);
  p.by_across = Divisor(p.across);
  p.by_per_matrix = Divisor(p.per_matrix);
  const std::int64_t units = std::max(queue.device().compute_units, 1);
  const std::int64_t fit = std::max(Multiply::kGroupBytes / plan.bytes(1, p.read_c), 1);
  const std::int64_t even = std::max(at_once / p.per_matrix, 1);  // all threads have a tile
  const std::int64_t group = fit > even ? fit / even * even : fit;
  p.group = int(std::clamp<std::int64_t>(args.batch / (2 * units), 1, group));
  p.b.begin = p.group * p.a.matrix;
  const int end = p.b.begin + p.group * p.b.matrix;
  p.a.packed_begin = end;
  p.b.packed_begin = end + Plan::packed_bytes(p.a, p.group);
  p.c.begin = p.read_c ? p.b.packed_begin + Plan::packed_bytes(p.b, p.group) : end;
  p.c.packed_begin = p.c.begin;
  const auto blocks = std::min<std::int64_t>(ceil_div(args.batch, p.group), 1 << 30);
  launch_early(queue, tiny_kernel<In, Out, Multiply>, unsigned(blocks), Multiply::kThreads,
               std::size_t(plan.bytes(p.group, p.read_c)), p);
}

void run_real(const GemmArgs& args, const CudaQueue& queue);
void run_complex(const GemmArgs& args, const CudaQueue& queue);
void run_narrow(const GemmArgs& args, const CudaQueue& queue);
void run_mma(const GemmArgs& args, const CudaQueue& queue);

}  // namespace mblas::cuda::tiny
