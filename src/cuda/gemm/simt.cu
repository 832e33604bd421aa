// IEEE fp32, real or complex, on the ordinary cores. Limited by the issue of instructions: a
// multiply-add reads three registers and a cycle has ports for two, so one operand must be the one
// of the instruction before (the order of products in simt.cuh), and what is no multiply-add takes
// its place. Hence 16x8 elements of C per thread, six 16-byte loads from shared memory for 128
// multiply-adds, and asynchronous copies that pass no registers; of complex elements 8x8, eight
// loads for 256. Products with few tiles are cut along k as well: the slices of a tile are a
// cluster of blocks that adds them up through its shared memory, or, where the device has none or k
// is long, go to the workspace and are added by a second kernel; both in the same order every time.
// simt_tiles.hpp chooses.
#include "cuda/gemm/simt_run.cuh"
#include "cuda/gemm/simt_tiles.hpp"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace {

constexpr std::int64_t kMostWorkspace = std::int64_t{256} << 20;

template <class T>
using RunTile = void (*)(const simt::Problem<T>&, simt::Copy, simt::Copy, const CudaQueue&);

/// The tiles of a type and what runs them, in the same order.
template <class T>
struct TilesOf {
  static constexpr std::span<const simt::TileInfo> kInfos = simt::kTiles;
  static constexpr RunTile<T> kRun[] = {
      simt::run_tile_128x256, simt::run_tile_256x128, simt::run_tile_128x128, simt::run_tile_64x128,
      simt::run_tile_64x64,   simt::run_tile_128x16,  simt::run_tile_16x128};
  static_assert(std::size(kRun) == kInfos.size());
};
template <>
struct TilesOf<Complex<float>> {
  static constexpr std::span<const simt::TileInfo> kInfos = simt::kComplexTiles;
  static constexpr RunTile<Complex<float>> kRun[] = {simt::run_tile_128x64, simt::run_tile_64x64,
                                                     simt::run_tile_32x64, simt::run_tile_32x32};
  static_assert(std::size(kRun) == kInfos.size());
};

simt::Shape shape_of(const GemmArgs& args, const DeviceInfo& device) {
  const auto tiles =
      args.in == DType::f32 ? TilesOf<float>::kInfos : TilesOf<Complex<float>>::kInfos;
  return {tiles,
          args.m,
          args.n,
          args.k,
          args.batch,
          !is_transposed(args.transA),
          is_transposed(args.transB),
          std::max(device.compute_units, 1),
          device.capability >= 90,
          kMostWorkspace,
          size_of(args.out)};
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::cf32) return "for f32 and cf32";
  if (args.in == DType::cf32 &&
      (access_bits(args.A, args.batch, 8) | access_bits(args.B, args.batch, 8)) % 8 != 0)
    return "copies complex numbers that lie at multiples of their size only";
  return declines_emulation(args, device);
}

std::size_t workspace(const GemmArgs& args, const DeviceInfo& device) {
  const simt::Shape shape = shape_of(args, device);
  return gemm_pointer_bytes(args, device) +
         std::size_t(simt::slice_bytes(shape, simt::choose(shape)));
}

/// How op(X) is copied: `along` and `depth` are its strides along the tile and along k.
simt::Copy copy_of(const Input& x, std::int64_t count, std::int64_t along, int size) {
  if (along != 1) return simt::Copy::Turned;
  return access_bits(x, count, size) % 16 == 0 ? simt::Copy::Vectors : simt::Copy::Elements;
}

template <class T>
void run_as(const GemmArgs& args, const CudaQueue& queue) {
  const int size = size_of(args.in);
  const simt::Choice c = simt::choose(shape_of(args, queue.device()));
  const auto tile = std::size_t(c.tile);
  simt::Problem<T> p{gemm_problem<T, T>(args, queue, 1, 1)};
  p.whole = c.whole;
  p.slices = c.slices;
  p.cluster = c.cluster;
  p.sums = queue.workspace.data() + gemm_pointer_bytes(args, queue.device());
  p.vectors_c = access_bits(args.C, args.batch, size) % 16 == 0;
  const int depth = TilesOf<T>::kInfos[tile].depth;
  p.slice_depth = ceil_div(ceil_div(args.k, depth), c.slices) * depth;
  TilesOf<T>::kRun[tile](p, copy_of(args.A, args.batch, p.a.row, size),
                         copy_of(args.B, args.batch, p.b.col, size), queue);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (args.in == DType::f32)
    run_as<float>(args, queue);
  else
    run_as<Complex<float>>(args, queue);
}

}  // namespace

Kernel<GemmArgs> simt() {
  return {"simt",
          "fp32 tiles of up to 128x256, real or complex, k cut where tiles leave a round idle",
          declines, workspace, run};
}

}  // namespace mblas::cuda::gemm
