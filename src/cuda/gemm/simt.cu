// IEEE fp32, real or complex, on the ordinary cores. Limited by the issue of instructions: a
// multiply-add reads three registers and a cycle has ports for two, so one operand must be the one
// of the instruction before (the order of products in simt.cuh), and what is no multiply-add takes
// its place. Hence 16x8 elements of C per thread, six 16-byte loads from shared memory for 128
// multiply-adds, and asynchronous copies that pass no registers; of complex elements 8x8, eight
// loads for 256. Products with few tiles are cut along k as well: the slices of a tile are a
// cluster of blocks that adds them up through its shared memory, or, where the device has none or k
// is long, go to the workspace and are added by a second kernel; both in the same order every time.
// Large tiles after the last full round are cut so that every block has as many steps:
// schedule.hpp. simt_tiles.hpp chooses.
#include <algorithm>
#include <string>

#include "core/config_list.hpp"
#include "cuda/gemm/repack.cuh"
#include "cuda/gemm/simt.hpp"
#include "cuda/gemm/simt_run.cuh"
#include "cuda/gemm/simt_tiles.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace simt_file {

constexpr std::int64_t kMostWorkspace = std::int64_t{256} << 20;

template <class T>
using RunTile = void (*)(const simt::Problem<T>&, simt::Copy, simt::Copy, const CudaQueue&);

/// The tiles of a type and what runs them, in the same order.
template <class T>
struct TilesOf {
  static constexpr std::span<const simt::TileInfo> kInfos = simt::kTiles;
  static constexpr RunTile<T> kRun[] = {
      simt::run_tile_128x256, simt::run_tile_256x128, simt::run_tile_128x128, simt::run_tile_64x128,
      simt::run_tile_64x64,   simt::run_tile_128x16,  simt::run_tile_16x128,  simt::run_tile_128x32,
      simt::run_tile_32x128,  simt::run_tile_64x32,   simt::run_tile_32x64,   simt::run_tile_32x32,
      simt::run_tile_32x16,   simt::run_tile_16x32};
  static_assert(std::size(kRun) == kInfos.size());
};
template <>
struct TilesOf<Complex<float>> {
  static constexpr std::span<const simt::TileInfo> kInfos = simt::kComplexTiles;
  static constexpr RunTile<Complex<float>> kRun[] = {
      simt::run_tile_128x64, simt::run_tile_64x64, simt::run_tile_64x32, simt::run_tile_32x64,
      simt::run_tile_32x32,  simt::run_tile_32x16, simt::run_tile_16x32};
  static_assert(std::size(kRun) == kInfos.size());
};

/// How op(X) is copied: `along` is its stride along the tile.
simt::Copy copy_of(const Input& x, std::int64_t count, std::int64_t along, int size) {
  if (along != 1) return simt::Copy::Turned;
  return access_bits(x, count, size) % 16 == 0 ? simt::Copy::Vectors : simt::Copy::Elements;
}

/// The copies of operands that are contiguous along the tile.
Repacked repacked_a(const GemmArgs& args) {
  return Repacked::of(args.A, args.k, args.m, args.batch, size_of(args.in), false);
}
Repacked repacked_b(const GemmArgs& args) {
  return Repacked::of(args.B, args.k, args.n, args.batch, size_of(args.in), false);
}

simt::Shape shape_of(const GemmArgs& args, const DeviceInfo& device) {
  const auto tiles =
      args.in == DType::f32 ? TilesOf<float>::kInfos : TilesOf<Complex<float>>::kInfos;
  const auto loose = [&](const Input& x, bool turned, const Repacked& copy) {
    const bool is = args.in == DType::f32 && args.k > 0 && !turned &&
                    copy_of(x, args.batch, 1, size_of(args.in)) == simt::Copy::Elements;
    return is ? double(copy.bytes()) : 0;
  };
  const bool turned_a = !is_transposed(args.transA), turned_b = is_transposed(args.transB);
  return {tiles,
          args.m,
          args.n,
          args.k,
          args.batch,
          turned_a,
          turned_b,
          loose(args.A, turned_a, repacked_a(args)),
          loose(args.B, turned_b, repacked_b(args)),
          access_bits(args.C, args.batch, size_of(args.out)) % 16 != 0,
          std::max(device.compute_units, 1),
          runs_clusters(device),
          kMostWorkspace,
          size_of(args.out)};
}

/// Those of the tiles of floats, and then of complex ones that have other sizes: "64x64",
/// "64x64_slices5", "64x64_cluster4_repacked".
const ConfigList<simt::Config>& configs() {
  static const auto list = [] {
    ConfigList<simt::Config> all;
    const auto add = [&](const simt::Config& c) {
      std::string name = std::to_string(c.m) + "x" + std::to_string(c.n);
      if (c.cut) name += "_cut";
      if (c.slices > 1) name += (c.cluster ? "_cluster" : "_slices") + std::to_string(c.slices);
      if (c.repack) name += "_repacked";
      all.add(c, std::move(name));
    };
    constexpr auto floats = TilesOf<float>::kInfos, complex = TilesOf<Complex<float>>::kInfos;
    simt::for_each_config(floats, add);
    simt::for_each_config(complex, [&](const simt::Config& c) {
      const bool there = std::ranges::any_of(
          floats, [&](const simt::TileInfo& t) { return t.m == c.m && t.n == c.n; });
      if (!there && !c.repack) add(c);
    });
    return all;
  }();
  return list;
}

/// That of the configuration, else the model's.
simt::Choice choice(const GemmArgs& args, const simt::Shape& shape) {
  if (args.config >= 0) return simt::choose(shape, &configs()[args.config]);
  thread_local Memo<decltype(shape.key()), simt::Choice> memo;
  return memo(shape.key(), [&] { return simt::choose(shape); });
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::cf32) return "for f32 and cf32";
  if (const char* reason = declines_halfway(args)) return reason;
  if (args.config >= 0 && choice(args, shape_of(args, device)).slices == 0)
    return "the configuration's tile, slices or copies are not for this call";
  return declines_emulation_but_tf32(args, device);
}

std::size_t workspace(const GemmArgs& args, const DeviceInfo& device) {
  const simt::Shape shape = shape_of(args, device);
  const simt::Choice c = choice(args, shape);
  return gemm_pointer_bytes(args, device) + std::size_t(simt::slice_bytes(shape, c)) +
         (c.repack ? std::size_t(shape.loose_a + shape.loose_b) : 0);
}

/// `free`: of the workspace.
template <class T>
void run_choice(const simt::Shape& shape, const simt::Choice& c, simt::Problem<T> p,
                const GemmArgs& args, std::byte* free, const CudaQueue& queue) {
  const int size = size_of(args.in);
  const auto tile = std::size_t(c.tile);
  p.whole = c.whole;
  p.slices = c.slices;
  p.cluster = c.cluster;
  p.vectors_c = !shape.loose_c;
  const int depth = TilesOf<T>::kInfos[tile].depth;
  p.slice_depth = ceil_div(ceil_div(args.k, depth), c.slices) * depth;
  if (c.ranges > 0) {
    const std::int64_t tiles = simt::tiles_of(shape, shape.tiles[tile]) - c.whole;
    p.cut = schedule_of(tiles, 0, simt::steps_of(shape, shape.tiles[tile]), c.ranges);
  }
  simt::Copy copy_a = copy_of(args.A, args.batch, p.a.row, size);
  simt::Copy copy_b = copy_of(args.B, args.batch, p.b.col, size);
  const auto line_up = [&](DeviceInput& x, std::int64_t& ld, simt::Copy& way, const Input& from,
                           const Repacked& copy) {
    x = repack(x, from.ld, access_bits(from, args.batch, size), copy, free, queue);
    ld = copy.ld();
    way = simt::Copy::Vectors;
    free += copy.bytes();
  };
  if (c.repack && shape.loose_a > 0) line_up(p.A, p.a.col, copy_a, args.A, repacked_a(args));
  if (c.repack && shape.loose_b > 0) line_up(p.B, p.b.row, copy_b, args.B, repacked_b(args));
  p.sums = free;
  TilesOf<T>::kRun[tile](p, copy_a, copy_b, queue);
}

template <class T>
void run_as(const GemmArgs& args, const CudaQueue& queue) {
  const simt::Shape shape = shape_of(args, queue.device());
  run_choice<T>(shape, choice(args, shape), {gemm_problem<T, T>(args, queue, 1, 1)}, args,
                queue.workspace.data() + gemm_pointer_bytes(args, queue.device()), queue);
}

/// For operands as they are, in one kernel: copies of them, and a kernel that adds up slices, would
/// be launched whether they are needed or not, which takes a microsecond or more each.
simt::Shape shape_without_others(const GemmArgs& args, const DeviceInfo& device) {
  simt::Shape shape = shape_of(args, device);
  shape.loose_a = shape.loose_b = 0;
  shape.workspace_bytes = 0;
  return shape;
}
/// Of another kernel's call, whose configuration is not one of these.
simt::Choice choice_instead(const simt::Shape& shape) { return choice(GemmArgs{}, shape); }

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (args.in == DType::f32)
    run_as<float>(args, queue);
  else
    run_as<Complex<float>>(args, queue);
}

}  // namespace simt_file

double simt_microseconds(const GemmArgs& args, const DeviceInfo& device) {
  using namespace simt_file;
  constexpr double kCyclesPerMicrosecond = 1700;
  // The estimates choose a tile; where others are chosen instead, complex ones have been too low.
  const double too_low = args.in == DType::cf32 ? 1.12 : 1;
  return too_low * choice_instead(shape_of(args, device)).cycles / kCyclesPerMicrosecond;
}

double simt_microseconds_of_many(DType in, double microseconds) {
  // Of 2,300 products on an H200: by as much they are shorter, and 8 % from that.
  constexpr double kOverlap = 1.8, kReal = 1.06, kComplex = 0.96;
  return (in == DType::f32 ? kReal : kComplex) * (microseconds - kOverlap);
}

void run_simt_where(const unsigned* where, const DeviceInput& A, const DeviceInput& B,
                    const DeviceOutput& C, const GemmArgs& args, const CudaQueue& queue) {
  using namespace simt_file;
  const simt::Shape shape = shape_without_others(args, queue.device());
  const auto run_as = [&]<class T>(T) {
    simt::Problem<T> problem{gemm_problem<T>(args, A, B, C, 1, 1)};
    problem.where = where;
    run_choice<T>(shape, choice_instead(shape), problem, args, nullptr, queue);
  };
  if (args.in == DType::f32)
    run_as(float{});
  else
    run_as(Complex<float>{});
}

Kernel<GemmArgs> simt() {
  using namespace simt_file;
  return {"simt",
          "fp32 tiles of up to 128x256, real or complex, k cut where tiles leave a round idle",
          declines,
          workspace,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
