// The machinery behind `thin_batch`: a block takes as many products of a batch as suit its shared
// memory, brings their operands there as they lie in memory, 16 bytes at a time, multiplies from
// there, and writes the results back by way of it. Nothing is laid out: what multiplies reads
// single elements, wherever they are, of which shared memory has more to give than memory has.
#pragma once

#include "cuda/gemm/tiny.cuh"

namespace mblas::cuda::thin_batch {

using tiny::Image;
using turn::Divisor;

/// C's longer side is the operand X's, the shorter one Y's: X is op(A) or, turned, op(B).
template <class Acc>
struct Problem : GemmProblem<Acc> {
  DeviceInput X = {}, Y = {};
  Image x = {}, y = {}, c = {};
  int length = 0, count = 0;   // of C's sides
  int x_line = 0, x_step = 0;  // bytes in shared memory from one to the next of X's side, of k
  int y_line = 0, y_step = 0;  // and of Y
  int c_x = 0, c_y = 0;        // from one to the next of C's sides
  bool conjugate_x = false, conjugate_y = false;
  bool x_along_k = false, y_along_k = false;
  int group = 0;                 // products that a block takes at a time
  int team = 0;                  // logarithm of the lanes, or warps, that share a tile's k
  int sums = 0;                  // where warps leave theirs in shared memory
  int down = 0, per_matrix = 0;  // tiles of the longer side, and of C
  Divisor by_down{1}, by_per_matrix{1};
};

/// Products in shared memory: the first one's operands and results, and how many there are.
struct Products {
  const char *x, *y;
  char *c, *sums;
  int count;
};

template <bool kReads, class Out, class Acc>
__device__ void put(const Problem<Acc>& p, Acc sum, char* at) {
  store(p, sum, reinterpret_cast<Out*>(at), kReads);
}

/// `Multiply` computes them.
template <class T, class Out, class Multiply>
__global__ void __launch_bounds__(Multiply::kThreads, Multiply::kBlocks)
    thin_batch_kernel(const __grid_constant__ Problem<Accumulator<T>> p) {
  constexpr int kThreads = Multiply::kThreads;
  extern __shared__ __align__(128) char shared[];
  begin_early();
  const std::int64_t step = std::int64_t(gridDim.x) * p.group;
  for (std::int64_t first = std::int64_t(blockIdx.x) * p.group; first < p.tiles.batch;
       first += step) {
    Products some;
    some.count = int(min(std::int64_t(p.group), p.tiles.batch - first));
    const auto bring = [&]<class E>(const Image& x, const DeviceInput& operand, bool is_read) {
      if (!x.packed) {
        if (is_read) tiny::load<kThreads, E, E>(shared, x, operand, first, some.count);
        return shared + x.begin;
      }
      const tiny::Run run(x, operand, first, some.count);
      if (is_read) tiny::load_run<kThreads, E>(shared, x, run);
      return shared + x.packed_begin + run.skew;
    };
    some.x = bring.template operator()<T>(p.x, p.X, p.k > 0);
    some.y = bring.template operator()<T>(p.y, p.Y, p.k > 0);
    some.c = bring.template operator()<Out>(p.c, {p.C.data, p.C.stride, p.C.pointers}, p.read_c);
    some.sums = shared + p.sums;
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (p.read_c)
      Multiply::template run<Out, true>(p, some);
    else
      Multiply::template run<Out, false>(p, some);
    __syncthreads();
    if (p.c.packed)
      tiny::store_run<kThreads, Out>(shared, p.c, tiny::Run(p.c, p.C, first, some.count));
    else
      tiny::store<kThreads, Out>(shared, p.c, p.C, first, some.count);
    __syncthreads();  // before what comes to the same place
  }
}

/// How the matrices of an operand come: as they lie, but where that would have lanes find their
/// elements in the same banks, rows of whole vectors an odd number of them apart.
template <class Void>
Image image_of(const Operand<Void>& x, std::int64_t batch, std::int64_t rows, std::int64_t length,
               int size, bool along_k) {
  constexpr int kLongRow = 128;  // bytes, in which neighbours of a warp fit
  Image image = tiny::image_of(x, batch, rows, length, size, rows, length, 1);
  const bool spread =
      image.unit < 16 || image.units % 2 == 1 || (!along_k && length * size >= kLongRow);
  if (image.run && spread) tiny::pack_as_it_lies(image, size);
  return image;
}

/// What the products of a call take in shared memory. `begin` is left to the group.
struct Plan {
  Image x, y, c;
  bool turned = false;  // X is op(B)
  int length = 0, count = 0;
  static constexpr int kBeyond = 64;  // bytes that lanes beyond an operand's lines read

  explicit Plan(const GemmArgs& args) {
    const int size = size_of(args.in);
    const std::int64_t k = args.alpha == Scalar{} ? 0 : args.k;
    const bool a = !is_transposed(args.transA), b = is_transposed(args.transB);
    turned = args.n > args.m;
    x = image_of(args.A, args.batch, a ? args.m : k, a ? k : args.m, size, a);
    y = image_of(args.B, args.batch, b ? args.n : k, b ? k : args.n, size, b);
    if (turned) std::swap(x, y);
    c = image_of(args.C, args.batch, args.m, args.n, size_of(args.out), false);
    length = int(std::max(args.m, args.n));
    count = int(std::min(args.m, args.n));
  }
  /// Of `group` products.
  int bytes(int group) const {
    return bytes_of(x, group) + bytes_of(y, group) + kBeyond + bytes_of(c, group);
  }
  static int bytes_of(const Image& x, int group) {
    return x.packed ? tiny::Plan::packed_bytes(x, group) : group * x.matrix;
  }
};

/// Launches blocks that take as many products as some `group_bytes` hold. `Multiply` has tiles of
/// kRows of X's lines and kCols of Y's, kAtOnce of them at a time; up to kMostTeam share the k of
/// one that has four times kDepth of it for each.
template <class T, class Out, class Multiply>
void launch(const GemmArgs& args, const Plan& plan, const CudaQueue& queue, int group_bytes) {
  Problem<Accumulator<T>> p{gemm_problem<T, Out>(args, queue, 1, 1)};
  if (args.alpha == Scalar{}) p.k = 0;
  p.x = plan.x;
  p.y = plan.y;
  p.c = plan.c;
  p.length = plan.length;
  p.count = plan.count;
  p.X = p.A;
  p.Y = p.B;
  p.conjugate_x = p.conjugate_a;
  p.conjugate_y = p.conjugate_b;
  p.x_along_k = !is_transposed(args.transA);
  p.y_along_k = is_transposed(args.transB);
  p.c_x = p.c.pitch;
  p.c_y = int(sizeof(Out));
  if (plan.turned) {
    std::swap(p.X, p.Y);
    std::swap(p.conjugate_x, p.conjugate_y);
    std::swap(p.x_along_k, p.y_along_k);
    std::swap(p.c_x, p.c_y);
  }
  constexpr int kSize = int(sizeof(T));
  p.x_line = p.x_along_k ? p.x.pitch : kSize;
  p.x_step = p.x_along_k ? kSize : p.x.pitch;
  p.y_line = p.y_along_k ? p.y.pitch : kSize;
  p.y_step = p.y_along_k ? kSize : p.y.pitch;
  p.down = int(ceil_div(p.length, Multiply::kRows));
  p.per_matrix = p.down * int(ceil_div(p.count, Multiply::kCols));
  p.by_down = Divisor(p.down);
  p.by_per_matrix = Divisor(p.per_matrix);
  const std::int64_t units = std::max(queue.device().compute_units, 1);
  const std::int64_t fit = std::max(group_bytes / plan.bytes(1), 1);
  p.group = int(std::clamp<std::int64_t>(args.batch / (2 * units), 1, fit));
  while (2 << p.team <= Multiply::kMostTeam &&
         p.group * p.per_matrix << (p.team + 1) <= Multiply::kAtOnce &&
         Multiply::kDepth * 4 << p.team <= p.k)
    ++p.team;
  int at = 0;
  const auto place = [&](Image& x) {
    x.begin = x.packed_begin = at;
    at += Plan::bytes_of(x, p.group);
  };
  place(p.x);
  place(p.y);
  at += Plan::kBeyond;
  place(p.c);
  p.sums = at;
  const auto blocks = std::min<std::int64_t>(ceil_div(args.batch, p.group), 1 << 30);
  launch_early(queue, thin_batch_kernel<T, Out, Multiply>, unsigned(blocks), Multiply::kThreads,
               std::size_t(plan.bytes(p.group) + (p.team > 0 ? Multiply::kSumsBytes : 0)), p);
}

void run_simt(const GemmArgs& args, const CudaQueue& queue);
void run_mma(const GemmArgs& args, const CudaQueue& queue);

}  // namespace mblas::cuda::thin_batch
