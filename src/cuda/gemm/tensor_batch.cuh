// The machinery behind `tensor_batch`: a block has one product or a few, whose operands come whole
// to shared memory, and a warp a tile of one of them. Results go to memory straight from registers
// in pairs, or by way of the same shared memory.
//
// Rows in shared memory lie so far apart that the elements that lanes read at a time are in
// different banks: of k neighbours t of four and of lines g of eight, lane 4 g + t one or several.
#pragma once

#include "cuda/gemm/complex_tile.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/tensor_batch_plan.hpp"
#include "cuda/gemm/whole.cuh"

namespace mblas::cuda::tensor_batch {

/// How the products of a batch are shared out.
struct Blocks {
  int group = 0;   // products of a block
  int across = 0;  // warps along C's rows
  turn::Divisor by_matrix{1}, by_across{1};

  Blocks() = default;
  Blocks(const Shape& shape, const Config& config)
      : group(config.group),
        across(shape.across(config)),
        by_matrix(shape.down(config) * across),
        by_across(across) {}
};

template <class Acc>
struct Problem : GemmProblem<Acc> {
  Blocks blocks = {};
  whole::Image a_image = {}, b_image = {}, c_image = {};
  // Bytes in shared memory from row to row of op(A), from column to column of op(B), and from step
  // to step of k.
  int a_line = 0, a_step = 0, b_line = 0, b_step = 0;
  bool direct = false;  // C is written from registers
};

/// Of k at a time, and how many of these a lane has.
template <class T>
inline constexpr int kDepth = sizeof(T) == 4 ? 8 : 4;
template <class T>
inline constexpr int kEach = kDepth<T> / 4;

/// kGroups groups of eight lines from `line` on; for those beyond the last one a lane has that.
template <class T, int kGroups>
struct Side {
  const char* at[kGroups];
  int step;

  __device__ Side(const char* matrix, int line, int lines, int line_bytes, int step_bytes)
      : step(step_bytes) {
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int q = 0; q < kGroups; ++q)
      at[q] = matrix + min(line + 8 * q + lane / 4, lines - 1) * line_bytes + lane % 4 * step_bytes;
  }
  /// The lane's of the next step, of which there are `left`.
  template <bool kAll>
  __device__ void read(T (&to)[kGroups][kEach<T>], int left) {
    const int t = int(threadIdx.x) % 4;
#pragma unroll
    for (int q = 0; q < kGroups; ++q) {
#pragma unroll
      for (int e = 0; e < kEach<T>; ++e)
        to[q][e] = kAll || t + 4 * e < left
                       ? reinterpret_cast<const Vector<T, 1>*>(at[q] + 4 * e * step)->e[0]
                       : T{};
      at[q] += kDepth<T> * step;
    }
  }
};

template <class T, int kRows_, int kCols_>
struct Variant {
  using Element = T;
  static constexpr int kRows = kRows_, kCols = kCols_;
  static constexpr int kI = kRows / 16, kQ = kCols / 8;
  static constexpr Share kShare = share_of(kRows, kCols, int(sizeof(T)));
};

__device__ inline void multiply(const Problem<double>&, double (&sum)[4], const double (&upper)[1],
                                const double (&lower)[1], const double (&b)[1]) {
  multiply_tile(sum, {upper[0], lower[0]}, b[0]);
}
__device__ inline void multiply(const Problem<float>&, float (&sum)[4], const Tf32 (&upper)[2],
                                const Tf32 (&lower)[2], const Tf32 (&b)[2]) {
  const auto bits = [](Tf32 x) { return round_to_tf32(__float_as_uint(x.value)); };
  multiply_tile<Tf32>(sum, {bits(upper[0]), bits(lower[0]), bits(upper[1]), bits(lower[1])},
                      bits(b[0]), bits(b[1]));
}
__device__ inline void multiply(const Problem<Complex<double>>& p, Complex<double> (&sum)[4],
                                const Complex<double> (&upper)[1],
                                const Complex<double> (&lower)[1], const Complex<double> (&b)[1]) {
  multiply_tile(sum, widen(upper[0], p.conjugate_a), widen(lower[0], p.conjugate_a),
                widen(b[0], p.conjugate_b));
}

struct Place {
  int matrix, row, col;  // of warps

  __device__ explicit Place(const Blocks& blocks) {
    const int warp = thread_now() / 32;
    matrix = blocks.by_matrix.quotient(warp);
    const int tile = warp - matrix * int(blocks.by_matrix.d);
    row = blocks.by_across.quotient(tile);
    col = tile - row * blocks.across;
  }
};

/// put(matrix) writes a warp's results to C's matrix in shared memory, which lies where operands
/// did and has C's values if they are read.
template <class Out, class Problem, class Put>
__device__ void put_by_shared(const Problem& p, char* shared, std::int64_t first, int count,
                              int matrix, Put&& put) {
  constexpr int kAny = 0;  // threads
  __syncthreads();
  char* const results = whole::bring<kAny, Out>(
      shared, p.c_image, {p.C.data, p.C.stride, p.C.pointers}, first, count, p.read_c);
  if (p.read_c) {
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
  }
  if (matrix < count) put(results + matrix * p.c_image.matrix);
  __syncthreads();
}

template <class V>
__global__ void __launch_bounds__(V::kShare.threads, V::kShare.blocks)
    tensor_batch_kernel(const __grid_constant__ Problem<Accumulator<typename V::Element>> p) {
  using T = typename V::Element;
  using Acc = Accumulator<T>;  // and C's type
  constexpr int kAny = 0;      // threads
  constexpr int kI = V::kI, kQ = V::kQ;
  extern __shared__ __align__(128) char shared[];
  const auto begin = [&] { return late(int(blockIdx.x)) * std::int64_t(p.blocks.group); };
  const auto size = [&](std::int64_t first) {
    return int(min(std::int64_t(p.blocks.group), p.tiles.batch - first));
  };
  Acc sum[kI][kQ][4] = {};
  begin_early();
  {
    const std::int64_t first = begin();
    const int count = size(first);
    const char* a = whole::bring<kAny, T>(shared, p.a_image, p.A, first, count, p.k > 0);
    const char* b = whole::bring<kAny, T>(shared, p.b_image, p.B, first, count, p.k > 0);
    __pipeline_commit();
    const Place at(p.blocks);
    const int matrix = at.matrix < count ? at.matrix : 0;
    Side<T, 2 * kI> left(a + matrix * p.a_image.matrix, at.row * V::kRows, int(p.m), p.a_line,
                         p.a_step);
    Side<T, kQ> right(b + matrix * p.b_image.matrix, at.col * V::kCols, int(p.n), p.b_line,
                      p.b_step);
    const auto step = [&]<bool kAll>(int l) {
      T x[2 * kI][kEach<T>], y[kQ][kEach<T>];
      left.template read<kAll>(x, l);
      right.template read<kAll>(y, l);
#pragma unroll
      for (int i = 0; i < kI; ++i)
#pragma unroll
        for (int q = 0; q < kQ; ++q) multiply(p, sum[i][q], x[2 * i], x[2 * i + 1], y[q]);
    };
    __pipeline_wait_prior(0);
    __syncthreads();
    int l = int(p.k);
#pragma unroll 2
    for (; l >= kDepth<T>; l -= kDepth<T>) step.template operator()<true>(l);
    if (l > 0) step.template operator()<false>(l);
  }

  const std::int64_t first = begin();
  const int count = size(first);
  const Place at(p.blocks);
  const int lane = thread_now() % 32;
  const int row = at.row * V::kRows + lane / 4, col = at.col * V::kCols + lane % 4 * 2;
  const int below = int(p.m) - row, right = int(p.n) - col;
  /// f(half, q, pair, whether its second one is there too) with what is inside of C.
  const auto for_pairs = [&](auto&& f) {
#pragma unroll
    for (int half = 0; half < 2 * kI; ++half) {
      if (8 * half >= below) break;
#pragma unroll
      for (int q = 0; q < kQ; ++q) {
        if (8 * q >= right) break;
        f(half, q, &sum[half / 2][q][half % 2 * 2], 8 * q + 1 < right);
      }
    }
  };
  if constexpr (!is_complex_v<Acc>) {
    if (p.direct) {
      if (at.matrix >= count) return;
      Acc* const c = static_cast<Acc*>(p.C.at(first + at.matrix)) + row * p.ldc + col;
      for_pairs([&](int half, int q, const Acc* pair, bool) {
        using Pair = Vector<Acc, 2>;
        Pair& place = *reinterpret_cast<Pair*>(c + 8 * half * p.ldc + 8 * q);
        Pair v = {};
        if (p.read_c) v = place;
        store(p, pair[0], &v.e[0]);
        store(p, pair[1], &v.e[1]);
        place = v;
      });
      return;
    }
  }
  put_by_shared<Acc>(p, shared, first, count, at.matrix, [&](char* matrix) {
    char* const c = matrix + row * p.c_image.pitch + col * int(sizeof(Acc));
    for_pairs([&](int half, int q, const Acc* pair, bool second) {
      Acc* const to = reinterpret_cast<Acc*>(c + 8 * half * p.c_image.pitch) + 8 * q;
      store(p, pair[0], to);
      if (second) store(p, pair[1], to + 1);
    });
  });
  whole::send<kAny, Acc>(shared, p.c_image, p.C, first, count);
}

/// What estimates of a call need to know of it, whose matrices come as `a` and `b` and go as `c`,
/// or straight from registers.
inline Shape shape_of(const GemmArgs& args, const DeviceInfo& device, const whole::Image& a,
                      const whole::Image& b, const whole::Image& c, bool direct) {
  const auto copies_of = [](const whole::Image& image) {
    return image.packed ? divide_up(std::int64_t(image.rows) * image.pitch, 16)
                        : std::int64_t(image.rows) * image.units;
  };
  Shape shape;
  shape.m = args.m;
  shape.n = args.n;
  shape.k = args.alpha == Scalar{} ? 0 : args.k;
  shape.batch = args.batch;
  shape.element_bytes = size_of(args.in);
  shape.c_element_bytes = size_of(args.out);
  shape.products = is_complex(args.in) ? 4 : 1;
  shape.a_bytes = whole::bytes_of(a);
  shape.b_bytes = whole::bytes_of(b);
  shape.c_bytes = direct ? 0 : whole::bytes_of(c);
  shape.copies_in = copies_of(a) + copies_of(b);
  shape.copies_out = direct ? 0 : copies_of(c);
  shape.shared_bytes = std::int64_t(device.shared_memory);
  shape.processors = std::max(device.compute_units, 1);
  return shape;
}

/// How a call's operands lie in shared memory, and what its estimate needs.
struct Plan {
  whole::Image a, b, c;
  bool direct = false;
  Shape shape;

  Plan(const GemmArgs& args, const DeviceInfo& device) {
    const int size = size_of(args.in);
    const std::int64_t k = args.alpha == Scalar{} ? 0 : args.k;
    const bool a_along = !is_transposed(args.transA), b_along = is_transposed(args.transB);
    a = image_of(args.A, args.batch, a_along ? args.m : k, a_along ? k : args.m, size, a_along);
    b = image_of(args.B, args.batch, b_along ? args.n : k, b_along ? k : args.n, size, b_along);
    c = whole::image_of(args.C, args.batch, args.m, args.n, size, false);
    const auto c_bits = access_bits(args.C, args.batch, size) | std::uintptr_t(args.n * size);
    direct = !is_complex(args.in) && c_bits % std::uintptr_t(2 * size) == 0;
    shape = shape_of(args, device, a, b, c, direct);
  }

  /// See choose(): the rates have no part of it.
  double reads_of(const Config&) const { return 0; }

 private:
  /// Rows are copied one by one, to where lanes find all they read at a time in different banks:
  /// but single words come in runs where few lanes would meet, or hardly have to read.
  template <class Void>
  static whole::Image image_of(const Operand<Void>& x, std::int64_t batch, std::int64_t rows,
                               std::int64_t length, int size, bool along_k) {
    whole::Image image = tiny::image_of(x, batch, rows, length, size, rows, length, 1);
    if (size == 4 && image.run && image.unit < 16) {
      constexpr std::int64_t kShort = 40;
      // Eight lines, four steps of k of each.
      if (std::max(rows, length) <= kShort ||
          whole::lanes_of_a_bank(size, int(length) * size, along_k ? 4 : 8, along_k ? 8 : 4) <= 2) {
        tiny::pack_as_it_lies(image, size);
        return image;
      }
    }
    const int unit = along_k ? 4 * size : 32;
    image.pitch = unit * int(ceil_div(length * size, unit) | 1);
    image.matrix = image.rows * image.pitch;
    return image;
  }
};

void run_f64(const GemmArgs& args, const Plan& plan, const Config& config, const CudaQueue& queue);
void run_cf64(const GemmArgs& args, const Plan& plan, const Config& config, const CudaQueue& queue);
void run_tf32(const GemmArgs& args, const Plan& plan, const Config& config, const CudaQueue& queue);

template <class V>
void launch(const GemmArgs& args, const Plan& plan, const Config& config, const CudaQueue& queue) {
  using T = typename V::Element;
  Problem<Accumulator<T>> p{gemm_problem<T, Accumulator<T>>(args, queue, 1, 1)};
  if (args.alpha == Scalar{}) p.k = 0;
  p.a_image = plan.a;
  p.b_image = plan.b;
  p.c_image = plan.c;
  constexpr int kSize = int(sizeof(T));
  p.a_line = is_transposed(args.transA) ? kSize : plan.a.pitch;
  p.a_step = is_transposed(args.transA) ? plan.a.pitch : kSize;
  p.b_line = is_transposed(args.transB) ? plan.b.pitch : kSize;
  p.b_step = is_transposed(args.transB) ? kSize : plan.b.pitch;
  p.direct = plan.direct;
  p.blocks = Blocks(plan.shape, config);
  p.a_image.begin = p.a_image.packed_begin = 0;
  p.b_image.begin = p.b_image.packed_begin = int(plan.shape.b_begin(config));
  p.c_image.begin = p.c_image.packed_begin = 0;
  const std::int64_t blocks = ceil_div(args.batch, config.group);
  launch_early(queue, tensor_batch_kernel<V>, unsigned(blocks),
               unsigned(plan.shape.threads(config)), std::size_t(plan.shape.bytes(config)), p);
}

/// f<rows, columns>() of the configuration's size, one of `kSizes`.
template <const auto& kSizes, class F>
void with_size(const Config& config, F&& f) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((kSizes[i].rows == config.rows && kSizes[i].cols == config.cols
          ? f.template operator()<kSizes[i].rows, kSizes[i].cols>()
          : void()),
     ...);
  }
  (std::make_index_sequence<std::size(kSizes)>());
}

/// launch() of that size.
template <class T, const auto& kSizes>
void launch_size(const GemmArgs& args, const Plan& plan, const Config& config,
                 const CudaQueue& queue) {
  with_size<kSizes>(config, [&]<int kRows, int kCols>() {
    launch<Variant<T, kRows, kCols>>(args, plan, config, queue);
  });
}

}  // namespace mblas::cuda::tensor_batch
