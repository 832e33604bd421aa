// Launches of the engine, and its tiles by number.
#pragma once

#include <algorithm>

#include "cuda/early.cuh"
#include "cuda/gemm/clusters.hpp"
#include "cuda/gemm/hopper/engine.cuh"
#include "cuda/gemm/hopper/tensor_map.hpp"

namespace mblas::cuda::gemm::hopper {

/// An operand as the copy engine takes it: see BoxedMatrices. `along_k`: its rows run along k.
struct Source {
  const void* data;
  std::int64_t rows, cols, ld, stride, count;
  bool along_k;

  CUtensorMap map(CUtensorMapDataType type, int size, int box_rows,
                  int box_bytes = kDepthBytes) const {
    return tensor_map({type, size, data, rows, cols, ld, stride, count, box_rows, box_bytes});
  }
};

/// Those of kTiles, and of those for planes, whose consumers keep two sets of sums.
using Large = Tile<128, 256, 4, 2, false>;
using Wide = Tile<128, 192, 4, 3, false>;
using Medium = Tile<128, 128, 6, 2, true>;
using Small = Tile<64, 128, 8, 2, true>;
using Square = Tile<128, 128, 6, 2, false>;
/// Those of 16-bit elements that leave less of a round empty.
using Plain240 = Tile<128, 240, 4, 2, false>;
using Plain224 = Tile<128, 224, 4, 3, false>;
using Plain208 = Tile<128, 208, 4, 3, false>;
using Plain176 = Tile<128, 176, 5, 2, true>;
using Plain160 = Tile<128, 160, 5, 2, true>;
using Plain144 = Tile<128, 144, 5, 3, true>;
using Plain112 = Tile<128, 112, 6, 2, true>;
using Plain96 = Tile<128, 96, 6, 2, true>;
using Plain80 = Tile<128, 80, 7, 2, true>;
using Few = FewRows<Small>;
using Long = Plain<Tile<64, 192, 6, 2, true>>;
using Few192 = FewRows<Long>;
using Few240 = FewRows<Plain240>;
using Few224 = FewRows<Plain224>;
using Few208 = FewRows<Plain208>;
using Few176 = FewRows<Plain176>;
using Few160 = FewRows<Plain160>;
using Few112 = FewRows<Plain112>;
using Few96 = FewRows<Plain96>;
using Few80 = FewRows<Plain80>;
using Narrow = Tile<64, 64, 12, 2, true>;
using Slim = Tile<64, 32, 16, 2, true>;
using Slim48 = Tile<64, 48, 12, 2, true>;
using Slim80 = Tile<64, 80, 10, 2, true>;
using Slim96 = Tile<64, 96, 9, 2, true>;
using Slim112 = Tile<64, 112, 8, 2, true>;

template <class... Tiles>
struct TileList {
  static constexpr std::size_t kCount = sizeof...(Tiles);
};
/// The tiles for In, as plan.hpp numbers them.
template <class In>
auto tiles_for() {
  if constexpr (kPlanesOf < In >> 1)
    return TileList<Square, Small>{};
  else if constexpr (std::is_same_v<In, Residues>)
    return TileList<Large, Medium, Small>{};
  else if constexpr (kBytesOf<In> == 2)
    return TileList<Large, Wide, Medium, Small, Plain<Narrow>, Plain176, Plain144, Plain112,
                    Plain96, Plain80, Few, Slim48, Slim80, Slim96, Slim112, Slim, Long, Few192,
                    Few176, Few112, Few96, Few80, Plain240, Plain224, Plain208, Plain160, Few240,
                    Few224, Few208, Few160>{};
  else if constexpr (kBytesOf<In> == 1)
    return TileList<Large, Wide, Medium, Small, Narrow>{};
  else
    return TileList<Large, Wide, Medium, Small>{};
}
template <class In>
inline constexpr std::size_t kTileCount = decltype(tiles_for<In>())::kCount;

/// A product of tiles, of which it runs number `tile`; `p` without maps.
template <class In>
void run_engine(int tile, Problem<Sum<In>> p, const Source& a, const Source& b,
                const CudaQueue& queue);

template <class In>
constexpr CUtensorMapDataType kMapType =
    kBytesOf<In> == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
    : kBytesOf<In> == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                        : CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;  // rounds

/// launch_with() of what has been allowed its shared memory, without a copy of `p`.
template <class Parameter>
void launch_engine_kernel(const CudaQueue& queue, void (*kernel)(Parameter), unsigned blocks,
                          int threads, unsigned cluster, std::size_t shared, const Parameter& p) {
  LaunchAttributes attributes(starts_early(queue), cluster);
  const std::span<cudaLaunchAttribute> list = attributes;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.stream = queue.stream();
  config.attrs = list.data();
  config.numAttrs = unsigned(list.size());
  cuda_check(cudaLaunchKernelEx(&config, kernel, p), "kernel launch");
}

template <class T, class In, bool kAAlongK, bool kBAlongK>
void launch_engine(const Problem<Sum<In>>& p, const CudaQueue& queue) {
  constexpr bool kOwn = T::kJoins || T::kAcross;  // a kernel of its own
  if constexpr (has_joined(T::kRows, T::kCols) && kCuts<In> && !kOwn)
    if (p.schedule.joined) return launch_engine<Joins<T>, In, kAAlongK, kBAlongK>(p, queue);
  if constexpr (kHasAcross<T, In> && !kOwn)
    if (p.schedule.across) return launch_engine<Across<T>, In, kAAlongK, kBAlongK>(p, queue);
  const auto kernel = engine_kernel<T, In, kAAlongK, kBAlongK>;
  allow_shared(reinterpret_cast<const void*>(kernel), T::kShared, queue.device().ordinal);
  const Schedule& s = p.schedule;
  const unsigned at_once =
      unsigned(whole_clusters_at_once(int(s.cluster), queue.device().compute_units));
  const unsigned blocks = s.joined ? s.items : std::min(s.items, at_once) * s.cluster;
  launch_engine_kernel(queue, kernel, blocks, kThreads, s.together(), T::kShared, p);
  if constexpr (kCuts<In> && !kOwn) {
    if (s.items == s.whole) return;
    const unsigned sums = (s.items - s.whole) / s.slices * s.cluster * (kFours<T> / 256);
    with_output<T, In>(p, [&]<class Out, bool kFinish>() {
      launch_engine_kernel(queue, add_slices<T, In, Out, kFinish>, sums, 256, 1, 0, p);
    });
  }
}

template <class T, class In>
void run_tile(Problem<Sum<In>>& p, const Source& a, const Source& b, const CudaQueue& queue) {
  constexpr int kSize = kBytesOf<In>, kElements = kDepthBytes / kSize;
  const DeviceGuard guard(queue.device().ordinal);
  const auto panels = [](const Source& x, int tile, int cluster, int box_bytes = kDepthBytes) {
    const auto map_of = [&](int rows) { return x.map(kMapType<In>, kSize, rows, box_bytes); };
    Panels result =
        panels_of(x.along_k ? x.rows : x.cols, tile, cluster, x.along_k, kElements, map_of);
    result.box_bytes = box_bytes;
    if (x.along_k) return result;
    // Where a row ends inside of a sector, the engine takes two to three times as long for it: bf16
    // 4096×n×4096 18.7 us with n = 32, 22.9 with 24. So but for the last row the map has that
    // sector too; what follows a row there goes to sums that are not stored.
    constexpr std::int64_t kSector = 32 / kSize;
    Source whole = x;
    whole.cols = ceil_div(x.cols, kSector) * kSector;
    if (whole.cols == x.cols) return result;
    result.edge_map = result.map;
    result.map = whole.map(kMapType<In>, kSize, result.box_rows, box_bytes);
    result.last = int((x.rows - 1) / kElements * kElements);
    return result;
  };
  if (p.schedule.steps > 0) {
    const bool narrow = kNarrowBoxes<T, In, false> && !a.along_k;
    const int cluster = int(p.schedule.cluster);
    p.panels_a = panels(a, T::kRows, p.schedule.across ? cluster : 1,
                        narrow ? box_bytes_of(a.cols) : kDepthBytes);
    p.panels_b = panels(b, T::kCols, p.schedule.across ? 1 : cluster);
  }
  if constexpr (T::kPlain && T::kCols % 64 != 0) {
    // The columns' operand runs across k only where that of the rows does too: plan_of().
    if (a.along_k) {
      launch_engine<T, In, true, true>(p, queue);
    } else if (!b.along_k) {
      if constexpr (has_whole_boxes(T::kRows, T::kCols))
        launch_engine<WholeBoxes<T>, In, false, false>(p, queue);
    } else if constexpr (!T::kTurned) {
      if (p.turned)
        launch_engine<Turned<T>, In, false, true>(p, queue);
      else
        launch_engine<T, In, false, true>(p, queue);
    }
  } else if constexpr (kSize == 2) {
    if (a.along_k && b.along_k)
      launch_engine<T, In, true, true>(p, queue);
    else if (a.along_k)
      launch_engine<T, In, true, false>(p, queue);
    else if (b.along_k)
      launch_engine<T, In, false, true>(p, queue);
    else
      launch_engine<T, In, false, false>(p, queue);
  } else if constexpr (std::is_same_v<In, Tf32>) {
    if (a.along_k)
      launch_engine<T, In, true, true>(p, queue);
    else if (p.turned)
      launch_engine<ByRegisters<T, true>, In, false, true>(p, queue);
    else
      launch_engine<ByRegisters<T, false>, In, false, true>(p, queue);
  } else {
    launch_engine<T, In, true, true>(p, queue);
  }
}

template <class In>
void run_engine(int tile, Problem<Sum<In>> p, const Source& a, const Source& b,
                const CudaQueue& queue) {
  [&]<class... Tiles>(TileList<Tiles...>) {
    constexpr void (*kRun[])(Problem<Sum<In>>&, const Source&, const Source&,
                             const CudaQueue&) = {run_tile<Tiles, In>...};
    kRun[tile](p, a, b, queue);
  }(tiles_for<In>());
}

extern template void run_engine<__half>(int, Problem<float>, const Source&, const Source&,
                                        const CudaQueue&);
extern template void run_engine<__nv_bfloat16>(int, Problem<float>, const Source&, const Source&,
                                               const CudaQueue&);
extern template void run_engine<Tf32>(int, Problem<float>, const Source&, const Source&,
                                      const CudaQueue&);
extern template void run_engine<Bf16x3>(int, Problem<float>, const Source&, const Source&,
                                        const CudaQueue&);
extern template void run_engine<F16x2>(int, Problem<float>, const Source&, const Source&,
                                       const CudaQueue&);
extern template void run_engine<std::int8_t>(int, Problem<std::uint32_t>, const Source&,
                                             const Source&, const CudaQueue&);
extern template void run_engine<Residues>(int, Problem<std::uint32_t>, const Source&, const Source&,
                                          const CudaQueue&);

}  // namespace mblas::cuda::gemm::hopper
