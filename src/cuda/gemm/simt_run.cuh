// Launches of the tile kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "cuda/gemm/clusters.hpp"
#include "cuda/gemm/simt.cuh"

namespace mblas::cuda::simt {

template <auto kKernel, class Shape, class T>
void launch_kernel(Problem<T> p, const CudaQueue& queue) {
  const DeviceInfo& device = queue.device();
  const DeviceGuard guard(device.ordinal);
  allow_shared(reinterpret_cast<const void*>(kKernel), device.shared_memory, device.ordinal);

  const int cluster = p.cluster ? p.slices : 1;
  LaunchAttributes attributes(starts_early(queue), unsigned(cluster));
  const std::span<cudaLaunchAttribute> list = attributes;
  cudaLaunchConfig_t config = {};
  config.blockDim = Shape::kThreads;
  const double each =
      gemm::blocks_each(double(p.blocks()) / cluster, cluster, std::max(device.compute_units, 1));
  config.dynamicSmemBytes = shared_bytes_for(std::int64_t(each), shared_bytes<Shape, T>(), device);
  config.stream = queue.stream();
  config.attrs = list.data();
  config.numAttrs = unsigned(list.size());
  const std::int64_t blocks = p.blocks();
  const std::int64_t most = std::numeric_limits<int>::max() / p.slices * p.slices;
  for (; p.first_block < blocks; p.first_block += most) {
    config.gridDim = unsigned(std::min(blocks - p.first_block, most));
    cuda_check(cudaLaunchKernelEx(&config, kKernel, p), "kernel launch");
  }
}

template <class Shape, Copy kCopyA, Copy kCopyB, class T>
void launch_tiles(const Problem<T>& p, const CudaQueue& queue) {
  const auto launch = [&]<bool kMixed>() {
    if constexpr (Shape::kRegisters > 0)
      launch_kernel<tight_tile_kernel<Shape, kCopyA, kCopyB, kMixed, T>, Shape>(p, queue);
    else
      launch_kernel<tile_kernel<Shape, kCopyA, kCopyB, kMixed, T>, Shape>(p, queue);
  };
  if constexpr (is_complex_v<T>)
    if (p.conjugate_a != p.conjugate_b) return launch.template operator()<true>();
  launch.template operator()<false>();
}

/// Whether the tile's row in simt_tiles.hpp, which cuts k, says of it what its shape does.
template <class Shape, class T>
constexpr bool is_as_listed() {
  const std::span<const TileInfo> tiles =
      is_complex_v<T> ? std::span<const TileInfo>(kComplexTiles) : kTiles;
  return std::ranges::any_of(tiles, [](const TileInfo& t) {
    return t.m == Shape::kTileM && t.n == Shape::kTileN && t.depth == Shape::kTileK &&
           t.clusters == Shape::kClusters;
  });
}

/// Computes the tiles of `p` in the given shape.
template <class Shape, class T>
void run_tiles(Problem<T> p, Copy copy_a, Copy copy_b, const CudaQueue& queue) {
  static_assert(is_as_listed<Shape, T>());
  p.tiles.rows = ceil_div(p.m, Shape::kTileM);
  p.tiles.cols = ceil_div(p.n, Shape::kTileN);
  // Elements are the way for every alignment: one operand's want of it is not worth two more
  // kernels. Complex ones lie at multiples of what is copied at a time.
  const auto with = [&]<Copy kAlong>() {
    if (copy_a != Copy::Turned && copy_b != Copy::Turned)
      launch_tiles<Shape, kAlong, kAlong>(p, queue);
    else if (copy_a != Copy::Turned)
      launch_tiles<Shape, kAlong, Copy::Turned>(p, queue);
    else if (copy_b != Copy::Turned)
      launch_tiles<Shape, Copy::Turned, kAlong>(p, queue);
    else
      launch_tiles<Shape, Copy::Turned, Copy::Turned>(p, queue);
  };
  if (copy_a == Copy::Elements || copy_b == Copy::Elements)
    with.template operator()<is_complex_v<T> ? Copy::Vectors : Copy::Elements>();
  else
    with.template operator()<Copy::Vectors>();
  if (p.cut.ranges > 0 || (p.slices > 1 && !p.cluster)) {
    // A tile has no fewer parts.
    const int groups =
        gemm::groups_for(p.cut.ranges > 0 ? p.cut.steps / (p.cut.length + 1) : p.slices);
    launch_early(queue, sum_kernel<Shape, T>,
                 unsigned(std::min<std::int64_t>((p.tiles.count() - p.whole) * Shape::kMicroM *
                                                     Shape::kMicroN / kVector<T> * groups,
                                                 std::numeric_limits<int>::max())),
                 Shape::kThreads, 0, p, groups);
  }
}

/// The tiles of kTiles and kComplexTiles, by number.
void run_tile_128x256(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_256x128(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_128x128(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_64x128(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_64x64(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_128x16(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_16x128(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_128x32(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_32x128(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_64x32(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_32x64(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_32x32(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_32x16(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_16x32(const Problem<float>&, Copy, Copy, const CudaQueue&);
void run_tile_128x64(const Problem<Complex<float>>&, Copy, Copy, const CudaQueue&);
void run_tile_64x64(const Problem<Complex<float>>&, Copy, Copy, const CudaQueue&);
void run_tile_64x32(const Problem<Complex<float>>&, Copy, Copy, const CudaQueue&);
void run_tile_32x64(const Problem<Complex<float>>&, Copy, Copy, const CudaQueue&);
void run_tile_32x32(const Problem<Complex<float>>&, Copy, Copy, const CudaQueue&);
void run_tile_32x16(const Problem<Complex<float>>&, Copy, Copy, const CudaQueue&);
void run_tile_16x32(const Problem<Complex<float>>&, Copy, Copy, const CudaQueue&);

}  // namespace mblas::cuda::simt
