// What the rows of the table that run the engine have in common.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "core/config_list.hpp"
#include "cuda/gemm/hopper/plan.hpp"
#include "cuda/gemm/hopper/run.cuh"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm::hopper {

constexpr double kMostSumBytes = 256 << 20;

static_assert(std::size(kHalfTiles) == kTileCount<__half> &&
              std::size(kByteTiles) == kTileCount<std::int8_t> &&
              std::size(kTiles) == kTileCount<Tf32> &&
              std::size(kRegisterTiles) == kTileCount<Tf32> &&
              std::size(kBf16x3Tiles) == kTileCount<Bf16x3> &&
              std::size(kF16x2Tiles) == kTileCount<F16x2> &&
              std::size(kResidueTiles) == kTileCount<Residues>);

/// "128x256_cluster2_slices3".
inline ConfigList<Config> config_list(std::span<const TileInfo> tiles) {
  ConfigList<Config> all;
  for_each_config(tiles, [&](const Config& c) {
    const TileInfo& t = tiles[std::size_t(c.tile)];
    std::string name = std::to_string(t.turned ? t.cols : t.rows) + "x" +
                       std::to_string(t.turned ? t.rows : t.cols);
    if (c.cluster > 1) name += "_cluster" + std::to_string(c.cluster);
    if (c.slices > 1) name += (c.joined ? "_joined" : "_slices") + std::to_string(c.slices);
    all.add(c, std::move(name));
  });
  return all;
}

/// Whether the copy engine can write C.
inline bool in_boxes(const GemmArgs& args) {
  return access_bits(args.C, args.batch, size_of(args.out)) % 16 == 0 &&
         !(args.C.pointers && args.batch > 1);
}

/// Of elements of `size` bytes.
inline Shape shape_of(const GemmArgs& args, std::span<const TileInfo> tiles, int size,
                      const DeviceInfo& device) {
  const bool boxes = in_boxes(args) && args.beta == Scalar{};
  Shape shape = {tiles.data(),
                 int(tiles.size()),
                 args.m,
                 args.n,
                 args.batch,
                 ceil_div(args.k * size, kDepthBytes),
                 device.compute_units,
                 kMostSumBytes,
                 boxes,
                 boxes && args.n * size_of(args.out) % 16 == 0,
                 1,
                 1};
  shape.filled = args.k * size < kDepthBytes;
  if (device.memory_rate > 0) shape.memory = device.memory_rate * 1e-6;
  shape.result_bytes = size_of(args.out);
  return shape;
}

/// By the call's configuration or the model; with no rows where there is none.
inline Plan plan_of(const GemmArgs& args, const Shape& shape, const ConfigList<Config>& configs) {
  thread_local Memo<Shape, Plan> memo;
  if (args.config < 0) return memo(shape, [&] { return choose(shape); });
  return plan_of(shape, configs[args.config]);
}

/// Null, or why the engine is not for this device or these sizes.
inline const char* declines_engine(const GemmArgs& args, const DeviceInfo& device) {
  constexpr std::int64_t kMostCoordinate = std::int64_t{1} << 31;
  if (!runs_hopper(device)) return "needs compute capability 9.0 and code for it";
  if (device.shared_memory < Large::kShared) return "needs more shared memory";
  if (std::max({args.m, args.n, args.k, args.batch}) >= kMostCoordinate)
    return "for sizes of less than 2^31";
  if (!is_mappable(args.C, args.batch, size_of(args.out)))
    return "for distances of less than 2^40 bytes";
  return nullptr;
}

/// The part of `p` that says how C, of type Out, is written, by a tile that is plain or not;
/// `p.turned` is known.
template <class Out, class Acc>
void set_results(Problem<Acc>& p, const GemmArgs& args, bool plain = false) {
  p.wide = sizeof(Out) == 4;
  p.boxes = in_boxes(args);
  p.brings_c = p.boxes && p.read_c && sizeof(Out) == 2;
  if (!p.boxes) return;
  BoxedMatrices c = {
      sizeof(Out) == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16 : CU_TENSOR_MAP_DATA_TYPE_UINT32,
      int(sizeof(Out)),
      p.C.data,
      args.m,
      args.n,
      args.C.ld,
      args.C.stride,
      args.batch,
      p.turned && sizeof(Out) == 4 ? kSquare : 64};
  p.map_c = tensor_map(c);
  if (!plain) return;
  if (p.turned)
    c.box_rows = kNarrowCols;
  else
    c.box_bytes = kNarrowCols * int(sizeof(Out));
  p.map_narrow = tensor_map(c);
}

/// `sums`: where slices leave theirs.
template <class Acc>
void set_schedule(Problem<Acc>& p, const Plan& plan, const Shape& shape, void* sums) {
  p.sums = static_cast<Acc*>(sums);
  Schedule& s = p.schedule;
  s.rows = unsigned(plan.rows);
  s.cols = unsigned(plan.cols);
  s.cluster = unsigned(plan.cluster);
  s.across = plan.across;
  s.height = unsigned(kHeight / (shape.tiles[plan.tile].rows * plan.cluster));
  s.whole = unsigned(plan.whole);
  s.slices = unsigned(plan.slices);
  s.items = unsigned(plan.items(shape.batch));
  s.steps = int(shape.steps);
  s.slice_steps = plan.slice_steps;
  s.joined = plan.joined;
}

}  // namespace mblas::cuda::gemm::hopper
