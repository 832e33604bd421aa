// The machinery behind `thin_batch`: a block takes as many products of a batch as suit its shared
// memory, brings their operands there as they lie in memory, 16 bytes at a time, multiplies from
// there, and writes the results back by way of it. Nothing is laid out: what multiplies reads
// single elements, wherever they are, of which shared memory has more to give than memory has.
#pragma once

#include "cuda/gemm/whole.cuh"

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
    some.x = whole::bring<kThreads, T>(shared, p.x, p.X, first, some.count, p.k > 0);
    some.y = whole::bring<kThreads, T>(shared, p.y, p.Y, first, some.count, p.k > 0);
    some.c = whole::bring<kThreads, Out>(shared, p.c, {p.C.data, p.C.stride, p.C.pointers}, first,
                                         some.count, p.read_c);
    some.sums = shared + p.sums;
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (p.read_c)
      Multiply::template run<Out, true>(p, some);
    else
      Multiply::template run<Out, false>(p, some);
    __syncthreads();
    whole::send<kThreads, Out>(shared, p.c, p.C, first, some.count);
    __syncthreads();  // before what comes to the same place
  }
}

/// What the products of a call take in shared memory. `begin` is left to the group.
struct Plan {
  Image x, y, c;
  bool turned = false;  // X is op(B)
  bool x_along_k = false, y_along_k = false;
  int length = 0, count = 0;
  static constexpr int kBeyond = 64;  // bytes that lanes beyond an operand's lines read

  explicit Plan(const GemmArgs& args) {
    const int size = size_of(args.in);
    const std::int64_t k = args.alpha == Scalar{} ? 0 : args.k;
    const bool a = !is_transposed(args.transA), b = is_transposed(args.transB);
    turned = args.n > args.m;
    x = whole::image_of(args.A, args.batch, a ? args.m : k, a ? k : args.m, size, a);
    y = whole::image_of(args.B, args.batch, b ? args.n : k, b ? k : args.n, size, b);
    x_along_k = a;
    y_along_k = b;
    if (turned) {
      std::swap(x, y);
      std::swap(x_along_k, y_along_k);
    }
    c = whole::image_of(args.C, args.batch, args.m, args.n, size_of(args.out), false);
    length = int(std::max(args.m, args.n));
    count = int(std::min(args.m, args.n));
  }
  /// Of `group` products.
  int bytes(int group) const {
    return whole::bytes_of(x, group) + whole::bytes_of(y, group) + kBeyond +
           whole::bytes_of(c, group);
  }
};

/// How a block's products are shared out: tiles of a column of C and of all of it, products of the
/// block, and the logarithm of the lanes, or warps, that share a tile's k.
struct Shares {
  int down, per_matrix, group, team;
};
template <class Multiply>
Shares shares_of(const GemmArgs& args, const Plan& plan, const DeviceInfo& device,
                 int group_bytes) {
  Shares s = {};
  s.down = int(ceil_div(plan.length, Multiply::kRows));
  s.per_matrix = s.down * int(ceil_div(plan.count, Multiply::kCols));
  const std::int64_t units = std::max(device.compute_units, 1);
  const std::int64_t fit = std::max(group_bytes / plan.bytes(1), 1);
  s.group = int(std::clamp<std::int64_t>(args.batch / (2 * units), 1, fit));
  const std::int64_t k = args.alpha == Scalar{} ? 0 : args.k;
  while (2 << s.team <= Multiply::kMostTeam &&
         s.group * s.per_matrix << (s.team + 1) <= Multiply::kAtOnce &&
         Multiply::kDepth * 4 << s.team <= k)
    ++s.team;
  return s;
}

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
  p.x_along_k = plan.x_along_k;
  p.y_along_k = plan.y_along_k;
  p.c_x = p.c.pitch;
  p.c_y = int(sizeof(Out));
  if (plan.turned) {
    std::swap(p.X, p.Y);
    std::swap(p.conjugate_x, p.conjugate_y);
    std::swap(p.c_x, p.c_y);
  }
  constexpr int kSize = int(sizeof(T));
  p.x_line = p.x_along_k ? p.x.pitch : kSize;
  p.x_step = p.x_along_k ? kSize : p.x.pitch;
  p.y_line = p.y_along_k ? p.y.pitch : kSize;
  p.y_step = p.y_along_k ? kSize : p.y.pitch;
  const Shares shares = shares_of<Multiply>(args, plan, queue.device(), group_bytes);
  p.down = shares.down;
  p.per_matrix = shares.per_matrix;
  p.group = shares.group;
  p.team = shares.team;
  p.by_down = Divisor(p.down);
  p.by_per_matrix = Divisor(p.per_matrix);
  int at = 0;
  const auto place = [&](Image& x) {
    x.begin = x.packed_begin = at;
    at += whole::bytes_of(x, p.group);
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
double simt_microseconds(const GemmArgs& args, const DeviceInfo& device);
void run_mma(const GemmArgs& args, const CudaQueue& queue);

}  // namespace mblas::cuda::thin_batch
