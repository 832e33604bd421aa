// The machinery behind `tiny`: a block takes several products of a batch, brings their operands to
// shared memory by asynchronous copies, multiplies there, and writes the results back from there.
//
// An operand keeps its own major. A row in shared memory is an odd number of 16-byte vectors, and
// so is a matrix, so that threads that are served together find most of their vectors in different
// banks. Rows whose length, distance and address allow it are moved 16 bytes at a time, others in
// units of 8 or 4 bytes or single elements: alignment changes the copies and nothing else.
#pragma once

#include <cuda_pipeline_primitives.h>

#include <bit>

#include "cuda/early.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/transpose/run.cuh"

namespace mblas::cuda::tiny {

using turn::Divisor;

inline constexpr int kThreads = 128;

/// How the matrices of an operand, as stored, lie in shared memory.
struct Image {
  int rows = 0, units = 0;    // of a matrix; units of copies in a row
  int unit = 0;               // bytes in memory
  int unit_shared = 0;        // and in shared memory
  int pitch = 0, matrix = 0;  // bytes from row to row, from matrix to matrix
  int begin = 0;              // of the first matrix
  bool run = false;           // the batch is one contiguous run of units
  std::int64_t distance = 0;  // of rows in memory, in bytes
  Divisor by_units{1}, by_rows{1};
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

/// f(shared, memory) with the places of every unit of `count` matrices from `first` on: kAtOnce of
/// them before any is waited for, or kOfRun where the batch is a run.
template <int kAtOnce, int kOfRun, class Operand, class F>
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
    for (int u = int(threadIdx.x); u < units; u += kThreads)
      at(u, [&](int, int, int) { return run + u * x.unit; });
  } else {
#pragma unroll kAtOnce
    for (int u = int(threadIdx.x); u < units; u += kThreads)
      at(u, [&](int g, int row, int along) {
        return static_cast<char*>(const_cast<void*>(operand.at(first + g))) + row * x.distance +
               along * x.unit;
      });
  }
}

/// Starts to bring `count` matrices from `first` on to shared memory. Where Shared is wider than T,
/// bytes become bfloat16, which holds them exactly.
template <class T, class Shared>
__device__ void load(char* shared, const Image& x, const DeviceInput& operand, std::int64_t first,
                     int count) {
  constexpr bool kWiden = sizeof(Shared) != sizeof(T);
  with_unit<sizeof(T)>(x.unit, [&]<int kUnit>() {
    constexpr bool kAsync = !kWiden && kUnit >= 4;
    constexpr int kAtOnce = kAsync ? 1 : kUnit < 8 ? 4 : 2;
    constexpr int kOfRun = kUnit == 16 ? 2 : kAtOnce;
    for_units<kAtOnce, kOfRun>(x, operand, first, count, [&](int to, const char* from) {
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

template <class T>
__device__ void store(const char* shared, const Image& x, const DeviceOutput& operand,
                      std::int64_t first, int count) {
  with_unit<sizeof(T)>(x.unit, [&]<int kUnit>() {
    using Unit = turn::Raw<kUnit>;
    constexpr int kOfRun = kUnit < 16 ? 2 : 4;
    for_units<2, kOfRun>(x, operand, first, count, [&](int from, char* to) {
      *reinterpret_cast<Unit*>(to) = *reinterpret_cast<const Unit*>(shared + from);
    });
  });
}

/// Zeros between k and the depth, in an operand of `outer` rows or columns.
template <class In>
__device__ void clear(char* shared, const Image& x, bool along_k, int outer, int k, int depth,
                      int count) {
  const int more = depth - k;
  for (int e = int(threadIdx.x); e < count * outer * more; e += kThreads) {
    const int line = e / more, l = k + e % more, g = line / outer, o = line % outer;
    const int row = along_k ? o : l, col = along_k ? l : o;
    *reinterpret_cast<In*>(shared + x.begin + g * x.matrix + row * x.pitch +
                           col * int(sizeof(In))) = In{};
  }
}

/// `Multiply` has the type of elements in shared memory, Shared, and computes `count` products
/// there.
template <class In, class Out, class Multiply>
__global__ void __launch_bounds__(kThreads, Multiply::kBlocks)
    tiny_kernel(const __grid_constant__ Problem<Accumulator<In>> p) {
  extern __shared__ __align__(128) char shared[];
  using Shared = typename Multiply::Shared;
  begin_early();
  const std::int64_t step = std::int64_t(gridDim.x) * p.group;
  for (std::int64_t first = std::int64_t(blockIdx.x) * p.group; first < p.tiles.batch;
       first += step) {
    const int count = int(min(std::int64_t(p.group), p.tiles.batch - first));
    if (p.k > 0) {
      load<In, Shared>(shared, p.a, p.A, first, count);
      load<In, Shared>(shared, p.b, p.B, first, count);
    }
    // What a thread brings of C it has itself written out in the round before.
    if (p.read_c) load<Out, Out>(shared, p.c, {p.C.data, p.C.stride, p.C.pointers}, first, count);
    __pipeline_commit();
    if (p.depth > p.k) {
      clear<Shared>(shared, p.a, p.a_along_k, int(p.m), int(p.k), p.depth, count);
      clear<Shared>(shared, p.b, p.b_along_k, int(p.n), int(p.k), p.depth, count);
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    Multiply::run(p, shared, count);
    __syncthreads();
    store<Out>(shared, p.c, p.C, first, count);
  }
}

/// What a product of the call takes in shared memory. `begin` is left to the group.
struct Plan {
  int depth;
  Image a, b, c;
  int bytes;
};

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
  image.run = !x.pointers && x.ld == length && (batch == 1 || x.stride == rows * length);
  image.distance = x.ld * size;
  image.by_units = Divisor(std::max(image.units, 1));
  image.by_rows = Divisor(std::max(image.rows, 1));
  return image;
}

/// `vector` elements of k at a time; elements in shared memory have `spread` times the size.
inline Plan plan_of(const GemmArgs& args, int vector, int spread) {
  const int size = size_of(args.in);
  const std::int64_t k = args.alpha == Scalar{} ? 0 : args.k;
  const bool a = !is_transposed(args.transA), b = is_transposed(args.transB);
  Plan plan;
  plan.depth = int(ceil_div(k, vector)) * vector;
  plan.a = image_of(args.A, args.batch, a ? args.m : k, a ? k : args.m, size,
                    a ? args.m : plan.depth, a ? plan.depth : args.m, spread);
  plan.b = image_of(args.B, args.batch, b ? args.n : k, b ? k : args.n, size,
                    b ? args.n : plan.depth, b ? plan.depth : args.n, spread);
  plan.c = image_of(args.C, args.batch, args.m, args.n, size_of(args.out), args.m, args.n, 1);
  plan.bytes = plan.a.matrix + plan.b.matrix + plan.c.matrix;
  return plan;
}

/// Bytes that no block needs more of for one product of the call.
inline std::size_t most_shared(const GemmArgs& args) {
  return std::size_t(plan_of(args, 8, size_of(args.in) == 1 ? 2 : 1).bytes);
}

/// A block computes `at_once` tiles of C of rows×cols at a time.
template <class In, class Out, class Multiply>
void launch_tiny(const GemmArgs& call, const CudaQueue& queue, int rows, int cols, int at_once) {
  GemmArgs args = call;
  if (args.alpha == Scalar{}) args.k = 0;
  const Plan plan =
      plan_of(args, Multiply::kVec, int(sizeof(typename Multiply::Shared) / sizeof(In)));
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
  const std::int64_t fit = std::max(Multiply::kGroupBytes / plan.bytes, 1);
  const std::int64_t even = std::max(at_once / p.per_matrix, 1);  // all threads have a tile
  const std::int64_t group = fit > even ? fit / even * even : fit;
  p.group = int(std::clamp<std::int64_t>(args.batch / (2 * units), 1, group));
  p.b.begin = p.group * p.a.matrix;
  p.c.begin = p.b.begin + p.group * p.b.matrix;
  const auto blocks = std::min<std::int64_t>(ceil_div(args.batch, p.group), 1 << 30);
  launch_early(After::Anything, queue, tiny_kernel<In, Out, Multiply>, unsigned(blocks), kThreads,
               std::size_t(p.group) * std::size_t(plan.bytes), p);
}

void run_real(const GemmArgs& args, const CudaQueue& queue);
void run_complex(const GemmArgs& args, const CudaQueue& queue);
void run_narrow(const GemmArgs& args, const CudaQueue& queue);
void run_mma(const GemmArgs& args, const CudaQueue& queue);

}  // namespace mblas::cuda::tiny
