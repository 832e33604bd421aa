// A square matrix is its own room: tile (r, c) and tile (c, r) are read into shared memory and
// written back crosswise. Memory-bound, one read and one write of each element, no workspace. Where
// rows are aligned the tiles are those of the transpose out of place, in vectors of 16 bytes; else
// elements are moved, which are whole sectors but for the ends of a tile's rows.
#include "cuda/kernels.hpp"
#include "cuda/transpose/turn.cuh"

namespace mblas::cuda::transpose_inplace {
namespace square_file {

/// The pairs (row, col), row <= col, of `tiles` rows and columns: the triangle folded to a
/// rectangle, each of whose lines holds a long row of the triangle behind a short one.
struct Pairs {
  std::int64_t tiles;

  __host__ __device__ std::int64_t width() const { return tiles + 1 - tiles % 2; }
  __host__ __device__ std::int64_t height() const { return (tiles + 1) / 2; }
  __device__ void locate(std::int64_t line, std::int64_t place, std::int64_t& row,
                         std::int64_t& col) const {
    const std::int64_t odd = tiles % 2;
    row = line;
    col = place - (1 - odd);
    if (col >= row) return;
    const std::int64_t short_row = tiles - row - (1 - odd);
    col = short_row + place;
    row = short_row;
  }
};

template <int S>
struct SquareTile;
template <>
struct SquareTile<1> : std::type_identity<turn::VectorTile<1, 128, 128, 64>> {};
template <>
struct SquareTile<2> : std::type_identity<turn::VectorTile<2, 64, 64, 64>> {};
template <>
struct SquareTile<4> : std::type_identity<turn::VectorTile<4, 64, 64, 256>> {};
template <>
struct SquareTile<8> : std::type_identity<turn::VectorTile<8, 32, 32, 64>> {};
template <>
struct SquareTile<16> : std::type_identity<turn::VectorTile<16, 16, 16, 64>> {};

template <int S, class Tile>
__global__ void __launch_bounds__(Tile::kThreads)
    vector_kernel(const __grid_constant__ DeviceOutput A, std::int64_t n, std::int64_t ld,
                  const __grid_constant__ Pairs pairs, const __grid_constant__ turn::Part part) {
  begin_early();
  extern __shared__ uint4 shared[];
  uint4 *upper = shared, *lower = shared + Tile::kVectors;
  auto* a = static_cast<turn::Raw<S>*>(A.at(part.batch + blockIdx.z));
  const turn::Source<S, CacheMark> source = {a, ld, part.hold.mark()};
  const turn::Sink<S> sink = {a, ld};
  const typename Tile::template Ahead<turn::Sink<S>> none = {};
  std::int64_t row, col;
  const auto locate = [&](const uint3& block) {
    pairs.locate(part.col + block.y, block.x, row, col);
    row *= Tile::kRows;
    col *= Tile::kRows;
  };
  locate(blockIdx);
  if (col + Tile::kRows <= n) {
    Tile::template load<true>(upper, source, n, n, row, col);
    if (row != col) Tile::template load<true>(lower, source, n, n, col, row);
    __syncthreads();
    Tile::template store<true>(upper, sink, n, n, row, col, none);
    if (row != col) Tile::template store<true>(lower, sink, n, n, col, row, none);
  } else {
    Tile::template load<false>(upper, source, n, n, row, col);
    if (row != col) Tile::template load<false>(lower, source, n, n, col, row);
    __syncthreads();
    Tile::template store<false>(upper, sink, n, n, row, col, none);
    if (row != col) Tile::template store<false>(lower, sink, n, n, col, row, none);
  }
  if (const uint3 block = block_anew(); part.hold.takes_back(block)) {
    locate(block);
    turn::take_marks_back<Tile>(source, n, n, row, col);
    if (row != col) turn::take_marks_back<Tile>(source, n, n, col, row);
  }
}

// Any alignment.

constexpr int kTile = 32;
constexpr int kRows = 8;  // of threads; each moves kTile / kRows elements of both tiles
constexpr int kThreads = kTile * kRows;

template <class T>
using Square = T[kTile][kTile + 1];

template <class T>
__device__ void load(Square<T>& square, const T* a, std::int64_t n, std::int64_t ld,
                     std::int64_t i0, std::int64_t j0) {
  const std::int64_t j = j0 + threadIdx.x;
#pragma unroll
  for (int r = 0; r < kTile; r += kRows)
    if (i0 + r + threadIdx.y < n && j < n)
      square[r + threadIdx.y][threadIdx.x] = a[(i0 + r + threadIdx.y) * ld + j];
}

template <class T>
__device__ void store_transposed(const Square<T>& square, T* a, std::int64_t n, std::int64_t ld,
                                 std::int64_t i0, std::int64_t j0) {
  const std::int64_t j = j0 + threadIdx.x;
#pragma unroll
  for (int r = 0; r < kTile; r += kRows)
    if (i0 + r + threadIdx.y < n && j < n)
      a[(i0 + r + threadIdx.y) * ld + j] = square[threadIdx.x][r + threadIdx.y];
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    element_kernel(const __grid_constant__ DeviceOutput A, std::int64_t n, std::int64_t ld,
                   const __grid_constant__ Pairs pairs, const __grid_constant__ turn::Part part) {
  begin_early();
  __shared__ Square<T> upper, lower;
  T* a = static_cast<T*>(A.at(part.batch + blockIdx.z));
  std::int64_t row, col;
  pairs.locate(part.col + blockIdx.y, blockIdx.x, row, col);
  row *= kTile;
  col *= kTile;
  load(upper, a, n, ld, row, col);
  if (row != col) load(lower, a, n, ld, col, row);
  __syncthreads();
  store_transposed(upper, a, n, ld, col, row);
  if (row != col) store_transposed(lower, a, n, ld, row, col);
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
  const auto launch_pairs = [&](auto kernel, int tile, int threads_x, int threads_y,
                                std::size_t shared) {
    const Pairs pairs = {ceil_div(args.n, tile)};
    turn::for_each_part(pairs.height(), args.batch, [&](turn::Part part, unsigned y, unsigned z) {
      part.hold = hold_of(args.n * args.n * size * z, pairs.width() * y * z, queue.device());
      launch_early(queue, kernel, dim3(unsigned(pairs.width()), y, z),
                   dim3(unsigned(threads_x), unsigned(threads_y)), shared, A, args.n, args.A.ld,
                   pairs, part);
    });
  };
  if (access_bits(args.A, args.batch, size) % 16 == 0) {
    with_size(size, [&]<int S>() {
      using Tile = typename SquareTile<S>::type;
      launch_pairs(vector_kernel<S, Tile>, Tile::kRows, Tile::kThreads, 1,
                   std::size_t(2 * Tile::kShared));
    });
  } else {
    with_untyped(size, address_bits(args.A, args.batch),
                 [&]<class T>() { launch_pairs(element_kernel<T>, kTile, kTile, kRows, 0); });
  }
}

}  // namespace square_file

Kernel<TransposeInplaceArgs> square() {
  using namespace square_file;
  return {"square", "swaps pairs of tiles, no workspace", declines, workspace_bytes, run};
}

}  // namespace mblas::cuda::transpose_inplace
