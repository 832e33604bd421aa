// Memory-bound: every access should be coalesced. A transposed operand comes through a tile of
// shared memory, which is filled along the operand's rows and read down its columns, padded so that
// both directions use all banks; a plain operand goes straight to the thread that owns the element
// of C. In place that thread has read the element before it writes it.
#include "cuda/geam/geam.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::geam {
namespace shared_file {

constexpr int kTile = 32;
constexpr int kRows = 8;  // of threads; each has kTile / kRows elements
constexpr int kThreads = kTile * kRows;

template <class T>
using Square = T[kTile][kTile + 1];

/// Copies the part of a transposed operand that tile (i0, j0) of C needs, as it is stored.
template <class T, class Acc>
__device__ void stage(Square<T>& square, const GeamProblem<Acc>& p, const GeamTerm<Acc>& x,
                      const Tiles::Place& tile) {
  const T* source = static_cast<const T*>(x.X.at(tile.batch));
  const std::int64_t i = tile.row * kTile + threadIdx.x;
  for (int r = int(threadIdx.y); r < kTile; r += kRows) {
    const std::int64_t j = tile.col * kTile + r;
    if (i < p.m && j < p.n) square[r][threadIdx.x] = source[j * x.ld + i];
  }
}

template <class T, class Acc>
__device__ T read(const Square<T>& square, const GeamTerm<Acc>& x, const Tiles::Place& tile,
                  int r) {
  if (!x.present) return T{};
  if (x.transposed) return square[threadIdx.x][r];
  return static_cast<const T*>(
      x.X.at(tile.batch))[(tile.row * kTile + r) * x.ld + tile.col * kTile + threadIdx.x];
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    shared_kernel(const __grid_constant__ GeamProblem<Accumulator<T>> p) {
  __shared__ Square<T> square_a, square_b;
  const bool stage_a = p.a.present && p.a.transposed, stage_b = p.b.present && p.b.transposed;

  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto tile = p.tiles[t];
    if (stage_a) stage(square_a, p, p.a, tile);
    if (stage_b) stage(square_b, p, p.b, tile);
    if (stage_a || stage_b) __syncthreads();

    T* c = static_cast<T*>(p.C.at(tile.batch));
    const std::int64_t j = tile.col * kTile + threadIdx.x;
    for (int r = int(threadIdx.y); r < kTile; r += kRows) {
      const std::int64_t i = tile.row * kTile + r;
      if (i >= p.m || j >= p.n) continue;
      const T a = read(square_a, p.a, tile, r);
      const T b = read(square_b, p.b, tile, r);
      c[i * p.ldc + j] = sum(p, a, b);
    }
    if (stage_a || stage_b) __syncthreads();
  }
}

void run(const GeamArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  with_geam_type(args.type, [&]<class T>() {
    const auto problem = geam_problem<T>(args, queue, kTile, kTile);
    launch(queue, shared_kernel<T>, problem.tiles.count(), dim3(kTile, kRows), problem);
  });
}

}  // namespace shared_file

Kernel<GeamArgs> shared() {
  using namespace shared_file;
  return {"shared", "transposed operands turned in 32x32 tiles of shared memory", declines_nothing,
          geam_pointer_bytes, run};
}

}  // namespace mblas::cuda::geam
