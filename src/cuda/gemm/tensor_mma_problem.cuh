// A product as the kernels of tensor_mma are given it, and a block's part of it.
#pragma once

#include "cuda/gemm/gemm.cuh"

namespace mblas::cuda::gemm {

/// Bytes from a row of a thread to its next, and from behind the last one in a panel to the next
/// panel.
struct MmaSteps {
  std::int64_t row, panel;
};

/// The tile: of tensor_mma.cuh for operands in pieces of 16 bytes and of 4, and of
/// tensor_mma_loose.cuh.
enum class MmaWay { Large, Small, LargeWords, SmallWords, LooseSmall, LooseMedium, LooseLarge };

/// A product whose k is cut into `splits` parts of `depth`. Where there is more than one, the
/// parts' products go to `parts`, one m×n matrix after another, by split and then by matrix of the
/// batch.
template <class Acc>
struct MmaProblem : GemmProblem<Acc> {
  std::int64_t lda, ldb;
  MmaSteps step_a, step_b;
  std::int64_t depth;
  int splits;
  MmaWay way;
  bool wide;   // C is WideOut
  bool words;  // lines of A and B begin at multiples of 4 bytes
  bool a_along_k, b_along_k;
  Acc* parts;
};

/// Planes of a grid are matrices of the batch times parts of k: so many in each of two dimensions.
constexpr std::int64_t kMmaPlanes = 65535;

/// C has this type, or that of A and B.
template <class In>
using WideOut = std::conditional_t<std::is_same_v<In, std::int8_t>, std::int32_t, float>;

/// What a block computes: a tile of a matrix, of a part of k.
template <class Tile>
struct MmaWork {
  std::int64_t batch, i0, j0, l0;
  int split, steps, tail;  // along k, and elements of the last step
  int row0, col0;          // of the warp in the tile

  template <class Acc>
  __device__ MmaWork(const MmaProblem<Acc>& p, int step) {
    constexpr unsigned kGroup = 8;
    const int warp = int(threadIdx.x) % Tile::kThreads / 32;
    row0 = warp / Tile::kAcross * Tile::kWarpRows;
    col0 = warp % Tile::kAcross * Tile::kWarpCols;
    // Down the columns of a group of rows of tiles: what is in work shares panels.
    const unsigned tile_rows = unsigned(p.tiles.rows), per_group = kGroup * unsigned(p.tiles.cols);
    const unsigned first = blockIdx.x / per_group * kGroup;
    const unsigned height = min(kGroup, tile_rows - first);
    const unsigned tile_row = first + blockIdx.x % per_group % height;
    const unsigned tile_col = blockIdx.x % per_group / height;
    i0 = std::int64_t(tile_row) * Tile::kRows;
    j0 = std::int64_t(tile_col) * Tile::kCols;

    const unsigned plane = blockIdx.z * gridDim.y + blockIdx.y;
    batch = plane / unsigned(p.splits);
    split = int(plane % unsigned(p.splits));
    l0 = split * p.depth;
    const std::int64_t depth = min(p.depth, p.k - l0);
    steps = int(ceil_div(depth, step));
    tail = int(depth - (steps - 1) * std::int64_t(step));
  }
};

/// f(c, ld, alpha, beta, reads) with where a block's sums go, C or its part of it, and what becomes
/// of them.
template <class In, class Acc, class Tile, class F>
__device__ void to_results(const MmaProblem<Acc>& p, const MmaWork<Tile>& work, F&& f) {
  using Wide = WideOut<In>;
  void* const c = p.C.at(work.batch);
  const std::int64_t at = work.i0 * p.ldc + work.j0;
  if (p.splits > 1 || p.wide) {
    const bool part = p.splits > 1;
    auto* const parts = reinterpret_cast<Wide*>(p.parts);  // of int32, Acc is the unsigned one
    const std::int64_t before = (work.split * p.tiles.batch + work.batch) * p.m * p.n;
    f(part ? parts + before + work.i0 * p.n + work.j0 : static_cast<Wide*>(c) + at,
      part ? p.n : p.ldc, part ? Acc{1} : p.alpha, part ? Acc{0} : p.beta, !part && p.read_c);
  } else if constexpr (sizeof(In) == 2) {
    f(static_cast<In*>(c) + at, p.ldc, p.alpha, p.beta, p.read_c);
  }
}

/// f<kAAlongK, kBAlongK>() with what `p` says.
template <class Acc, class F>
void with_majors(const MmaProblem<Acc>& p, F&& f) {
  if (p.a_along_k)
    p.b_along_k ? f.template operator()<true, true>() : f.template operator()<true, false>();
  else
    p.b_along_k ? f.template operator()<false, true>() : f.template operator()<false, false>();
}

/// The grid of a product's tiles, which `p` gets to know.
template <class Tile, class Acc>
dim3 mma_grid(MmaProblem<Acc>& p) {
  p.tiles.rows = ceil_div(p.m, Tile::kRows);
  p.tiles.cols = ceil_div(p.n, Tile::kCols);
  const std::int64_t planes = p.tiles.batch * p.splits;
  const std::int64_t at_once = std::min(planes, kMmaPlanes);
  return {unsigned(p.tiles.rows * p.tiles.cols), unsigned(at_once),
          unsigned(ceil_div(planes, at_once))};
}

}  // namespace mblas::cuda::gemm
