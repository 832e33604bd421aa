// Products with one long side, cut along k into parts that fill the device: every part leaves its
// sums in the workspace, and a second kernel adds them up in their order. Clusters, which could add
// up by themselves, are packed onto few multiprocessors and leave others idle.
//
// Kernels here start while the one before them in the stream still ends, and wait for it before
// they read: of calls of 20 µs that saves two.
#pragma once

#include <limits>

#include "cuda/early.cuh"
#include "cuda/gemm/gemm.cuh"

namespace mblas::cuda::parts {

inline constexpr int kMost = 64;

template <class Acc>
struct Problem : GemmProblem<Acc> {
  std::int64_t length = 0;  ///< the long one of m and n
  int count = 1;            ///< the short one
  Strides c{};              ///< of C along the long and along the short side
  bool conjugate_sum = false;
  std::int64_t blocks = 0, first_block = 0;  ///< of a part of a matrix
  std::int64_t depth = 0;                    ///< of k of a part
  int parts = 1;
  Acc* sums = nullptr;  ///< of the parts, where there are several
};

/// What a block does.
struct Work {
  std::int64_t batch, block, k0, k1;
  int part;
};
template <class Acc>
__device__ Work work_of(const Problem<Acc>& p) {
  std::int64_t t = p.first_block + blockIdx.x;
  Work w;
  w.block = t % p.blocks;
  t /= p.blocks;
  w.part = int(t % p.parts);
  w.batch = t / p.parts;
  w.k0 = min(w.part * p.depth, p.k);
  w.k1 = min(w.k0 + p.depth, p.k);
  return w;
}

/// What lane `lane ^ mask` has.
template <class T>
__device__ T from_lane(T x, int mask) {
  if constexpr (is_complex_v<T>)
    return {__shfl_xor_sync(~0u, x.re, mask), __shfl_xor_sync(~0u, x.im, mask)};
  else
    return __shfl_xor_sync(~0u, x, mask);
}

/// Adds up kSums numbers over teams of `lanes` lanes. Lane i of a team is left with max(kSums /
/// lanes, 1) of them, from number i * kSums / lanes on.
template <int kSums, class Acc>
__device__ void add_team(Acc (&x)[kSums], int lanes, int lane) {
#pragma unroll
  for (int level = 0; level < 5; ++level) {
    const int mask = lanes >> (level + 1), half = kSums >> (level + 1);
    if (mask == 0) break;
    if (half == 0) {
      x[0] = x[0] + from_lane(x[0], mask);
      continue;
    }
    const bool upper = (lane & mask) != 0;
#pragma unroll
    for (int i = 0; i < kSums / 2; ++i)
      if (i < half) {
        const Acc kept = upper ? x[i + half] : x[i], sent = upper ? x[i] : x[i + half];
        x[i] = kept + from_lane(sent, mask);
      }
  }
}

/// Stores element (l, s) of C.
template <class Out, class Acc>
__device__ void put(const Problem<Acc>& p, std::int64_t batch, std::int64_t l, int s, Acc sum) {
  if constexpr (is_complex_v<Acc>)
    if (p.conjugate_sum) sum.im = -sum.im;
  store(p, sum, static_cast<Out*>(p.C.at(batch)) + l * p.c.row + s * p.c.col);
}

/// Elements of C are numbered as they lie there.
template <class Acc>
__device__ std::int64_t number_of(const Problem<Acc>& p, std::int64_t l, int s) {
  return p.c.row == 1 ? s * p.length + l : l * p.count + s;
}

/// The sum of a part for element (l, s): the element itself where there are no others.
template <class Out, class Acc>
__device__ void leave(const Problem<Acc>& p, const Work& w, std::int64_t l, int s, Acc sum) {
  if (p.parts == 1)
    put<Out>(p, w.batch, l, s, sum);
  else
    p.sums[(w.part * p.tiles.batch + w.batch) * p.length * p.count + number_of(p, l, s)] = sum;
}

inline constexpr int kAddThreads = 128;

template <class Out, class Acc>
__global__ void __launch_bounds__(kAddThreads) add_kernel(const __grid_constant__ Problem<Acc> p) {
  begin_early();
  const std::int64_t matrix = p.length * p.count, all = matrix * p.tiles.batch;
  for (std::int64_t i = blockIdx.x * std::int64_t(kAddThreads) + threadIdx.x; i < all;
       i += gridDim.x * std::int64_t(kAddThreads)) {
    Acc sum = p.sums[i];
#pragma unroll 8
    for (int part = 1; part < p.parts; ++part) sum = sum + p.sums[part * all + i];
    const std::int64_t batch = i / matrix, e = i % matrix;
    if (p.c.row == 1)
      put<Out>(p, batch, e % p.length, int(e / p.length), sum);
    else
      put<Out>(p, batch, e / p.count, int(e % p.count), sum);
  }
}

/// Bytes of workspace of the sums.
inline std::size_t bytes(const GemmArgs& args, int parts) {
  if (parts == 1) return 0;
  const int size = is_complex(args.in) ? size_of(args.in) : std::max(size_of(args.in), 4);
  return std::size_t(size) * std::size_t(args.m * args.n * args.batch * parts);
}

/// Where the sums of parts are.
template <class Acc>
Acc* sums_of(const CudaQueue& queue, const GemmArgs& args) {
  return reinterpret_cast<Acc*>(queue.workspace.data() + gemm_pointer_bytes(args, queue.device()));
}

/// Adds up the sums that there are of parts.
template <class Out, class Acc>
void add(const CudaQueue& queue, const GemmArgs& args, const Problem<Acc>& p) {
  if (p.parts == 1) return;
  const std::int64_t adders = ceil_div(p.length * p.count * args.batch, kAddThreads);
  launch_early(queue, add_kernel<Out, Acc>, unsigned(std::min<std::int64_t>(adders, 1 << 16)),
               kAddThreads, 0, p);
}

/// All blocks of `kernel`, and what adds up their sums. `p` is complete but for the sums.
template <class Out, class P>
void run(const CudaQueue& queue, const GemmArgs& args, void (*kernel)(P), int threads,
         std::size_t shared, P p) {
  using Acc = decltype(p.alpha);
  p.sums = sums_of<Acc>(queue, args);
  const std::int64_t blocks = p.blocks * args.batch * p.parts;
  constexpr std::int64_t kMostBlocks = std::numeric_limits<int>::max();
  for (p.first_block = 0; p.first_block < blocks; p.first_block += kMostBlocks)
    launch_evenly(queue, kernel, unsigned(std::min(blocks - p.first_block, kMostBlocks)), threads,
                  shared, p);
  add<Out, Acc>(queue, args, p);
}

}  // namespace mblas::cuda::parts
