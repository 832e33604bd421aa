// Launches of the tile kernel, and its tiles by number.
#pragma once

#include "cuda/gemm/tensor_f64_tma.cuh"

namespace mblas::cuda::gemm::tma64 {

/// Computes `p`, whose maps and schedule are those of `tile`, which tma64::kTiles and kComplexTiles
/// number. X is op(B) where `swapped`.
void run_tile(int tile, const Problem<double>& p, bool x_along_k, bool y_along_k, bool swapped,
              const CudaQueue& queue);
void run_tile(int tile, const Problem<Complex<double>>& p, bool x_along_k, bool y_along_k,
              bool swapped, const CudaQueue& queue);

template <class Tile, bool kXAlongK, bool kYAlongK, bool kSwapped, class T>
void launch_tiles(const Problem<T>& p, const CudaQueue& queue) {
  const Schedule& s = p.schedule;
  const int units = std::max(queue.device().compute_units, 1) * Tile::kBlocks;
  const int blocks =
      p.slices > 1 ? s.tiles * p.slices : std::min(std::max(s.whole, s.ranges), units);
  launch_with(LaunchAttributes(starts_early(queue), unsigned(p.slices)), queue,
              kernel<Tile, kXAlongK, kYAlongK, kSwapped>, unsigned(blocks), Tile::kThreads,
              Tile::kShared, p);
  add_parts<TileInC<Tile, kSwapped>>(p, queue);
}

}  // namespace mblas::cuda::gemm::tma64
