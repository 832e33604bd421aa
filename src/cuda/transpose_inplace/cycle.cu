// Any shape without workspace, by following where each element has to go. The element at position
// s = i lda + j moves to d = j ldb + i, so positions form cycles, and chains where padding makes
// them leave the matrix. A chain is moved by the thread of its first position, which no element
// moves to; a cycle by the thread of its smallest position, found by walking it without touching
// the data. Limited by latency: one thread walks a whole cycle, and accesses are scattered. The
// last resort. E. G. Cate, D. W. Twigg, Algorithm 513: Analysis of In-Situ Transposition, ACM TOMS
// 3 (1977).
#include "cuda/kernels.hpp"
#include "cuda/transpose/transpose.cuh"

namespace mblas::cuda::transpose_inplace {
namespace cycle_file {

constexpr int kThreads = 256;

struct Map {
  std::int64_t m, n, lda, ldb;

  __device__ bool is_source(std::int64_t p) const { return p / lda < m && p % lda < n; }
  __device__ bool is_destination(std::int64_t p) const { return p / ldb < n && p % ldb < m; }
  __device__ std::int64_t next(std::int64_t p) const { return p % lda * ldb + p / lda; }
};

template <class T>
__device__ void exchange(T& x, T& y) {
  const T kept = x;
  x = y;
  y = kept;
}

template <class T>
__device__ void move_from(T* a, const Map& map, std::int64_t start) {
  if (!map.is_destination(start)) {
    T carried = a[start];
    std::int64_t p = map.next(start);
    for (; map.is_source(p); p = map.next(p)) exchange(carried, a[p]);
    a[p] = carried;
    return;
  }
  std::int64_t p = map.next(start);
  while (p > start && map.is_source(p)) p = map.next(p);
  if (p != start) return;  // in a chain, or not the smallest of its cycle
  T carried = a[start];
  for (p = map.next(start); p != start; p = map.next(p)) exchange(carried, a[p]);
  a[start] = carried;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    cycle_kernel(DeviceOutput A, const __grid_constant__ Map map, std::int64_t count) {
  const std::int64_t step = std::int64_t(gridDim.x) * kThreads;
  for (std::int64_t e = std::int64_t(blockIdx.x) * kThreads + threadIdx.x; e < count; e += step) {
    const std::int64_t row = e / map.n;
    move_from(static_cast<T*>(A.at(row / map.m)), map, row % map.m * map.lda + e % map.n);
  }
}

std::size_t workspace_bytes(const TransposeInplaceArgs& args, const DeviceInfo&) {
  return placed_bytes(args.A, args.batch);
}

void run(const TransposeInplaceArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  std::span<std::byte> workspace = queue.workspace;
  const int size = size_of(args.type);
  const DeviceOutput A = place(args.A, args.batch, args.A.stride * size, queue, workspace);
  const Map map = {args.m, args.n, args.A.ld, args.ldb};
  const std::int64_t count = args.m * args.n * args.batch;
  with_untyped(size, address_bits(args.A, args.batch), [&]<class T>() {
    launch(queue, cycle_kernel<T>, ceil_div(count, kThreads), dim3(kThreads), A, map, count);
  });
}

}  // namespace cycle_file

Kernel<TransposeInplaceArgs> cycle() {
  using namespace cycle_file;
  return {"cycle", "follows the cycles of the permutation, any shape without workspace",
          declines_nothing, workspace_bytes, run};
}

}  // namespace mblas::cuda::transpose_inplace
