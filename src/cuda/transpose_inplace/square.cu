// A square matrix is its own room: tile (r, c) and tile (c, r) are read into shared memory and
// written back crosswise. Memory-bound, one read and one write of each element, no workspace.
#include "cuda/kernels.hpp"
#include "cuda/transpose/transpose.cuh"

namespace mblas::cuda::transpose_inplace {
namespace {

constexpr int kTile = 32;
constexpr int kRows = 8;  // of threads; each moves kTile / kRows elements of both tiles
constexpr int kThreads = kTile * kRows;

template <class T>
using Square = T[kTile][kTile + 1];

/// The pairs (row, col), row <= col, of `tiles` rows and columns: the triangle folded to a
/// rectangle, each of whose lines holds a long row of the triangle behind a short one.
struct Pairs {
  std::int64_t tiles;

  __host__ __device__ std::int64_t count() const { return tiles * (tiles + 1) / 2; }
  __device__ void locate(std::int64_t t, std::int64_t& row, std::int64_t& col) const {
    const std::int64_t odd = tiles % 2, width = tiles + 1 - odd;
    row = t / width;
    col = t % width - (1 - odd);
    if (col >= row) return;
    const std::int64_t short_row = tiles - row - (1 - odd);
    col = short_row + t % width;
    row = short_row;
  }
};

template <class T>
__device__ void load(Square<T>& square, const T* a, std::int64_t n, std::int64_t ld,
                     std::int64_t i0, std::int64_t j0) {
  const std::int64_t j = j0 + threadIdx.x;
  for (int r = int(threadIdx.y); r < kTile; r += kRows)
    if (i0 + r < n && j < n) square[r][threadIdx.x] = a[(i0 + r) * ld + j];
}

template <class T>
__device__ void store_transposed(const Square<T>& square, T* a, std::int64_t n, std::int64_t ld,
                                 std::int64_t i0, std::int64_t j0) {
  const std::int64_t j = j0 + threadIdx.x;
  for (int r = int(threadIdx.y); r < kTile; r += kRows)
    if (i0 + r < n && j < n) a[(i0 + r) * ld + j] = square[threadIdx.x][r];
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    square_kernel(DeviceOutput A, std::int64_t n, std::int64_t ld, Pairs pairs,
                  std::int64_t batch) {
  __shared__ Square<T> upper, lower;

  for (std::int64_t t = blockIdx.x; t < pairs.count() * batch; t += gridDim.x) {
    T* a = static_cast<T*>(A.at(t / pairs.count()));
    std::int64_t row, col;
    pairs.locate(t % pairs.count(), row, col);
    row *= kTile;
    col *= kTile;
    load(upper, a, n, ld, row, col);
    if (row != col) load(lower, a, n, ld, col, row);
    __syncthreads();
    store_transposed(upper, a, n, ld, col, row);
    if (row != col) store_transposed(lower, a, n, ld, row, col);
    __syncthreads();
  }
}

const char* declines(const TransposeInplaceArgs& args, const DeviceInfo&) {
  if (args.m != args.n) return "square matrices only";
  if (args.A.ld != args.ldb) return "needs the same leading dimension before and after";
  return nullptr;
}

std::size_t workspace_bytes(const TransposeInplaceArgs& args, const DeviceInfo&) {
  return placed_bytes(args.A, args.batch);
}

void run(const TransposeInplaceArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  std::span<std::byte> workspace = queue.workspace;
  const int size = size_of(args.type);
  const DeviceOutput A = place(args.A, args.batch, args.A.stride * size, queue, workspace);
  const Pairs pairs = {ceil_div(args.n, kTile)};
  with_untyped(size, address_bits(args.A, args.batch), [&]<class T>() {
    launch(queue, square_kernel<T>, pairs.count() * args.batch, dim3(kTile, kRows), A, args.n,
           args.A.ld, pairs, args.batch);
  });
}

}  // namespace

Kernel<TransposeInplaceArgs> square() {
  return {"square", "swaps pairs of 32x32 tiles, no workspace", declines, workspace_bytes, run};
}

}  // namespace mblas::cuda::transpose_inplace
