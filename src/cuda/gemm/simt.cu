// IEEE fp32 on the ordinary cores. Limited by the issue of instructions: a multiply-add reads three
// registers and a cycle has ports for two, so one operand must be the one of the instruction before
// (the order of products in simt.cuh), and what is no multiply-add takes its place. Hence 16x8
// elements of C per thread, six 16-byte loads from shared memory for 128 multiply-adds, and
// asynchronous copies that pass no registers. Products with few tiles are cut along k as well: the
// slices of a tile are a cluster of blocks that adds them up through its shared memory, or, where
// the device has none or k is long, go to the workspace and are added by a second kernel; both in
// the same order every time. simt_tiles.hpp chooses.
#include "cuda/gemm/simt_run.cuh"
#include "cuda/gemm/simt_tiles.hpp"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace {

constexpr int kSumThreads = 256;
constexpr std::int64_t kMostWorkspace = std::int64_t{256} << 20;

/// C = alpha (the sum of slices) + beta C; a thread computes a vector of a row.
__global__ void __launch_bounds__(kSumThreads)
    sum_kernel(const __grid_constant__ simt::Problem<float> p, const float* slices,
               std::int64_t pitch) {
  constexpr int kVec = simt::kVector<float>;
  const std::int64_t across = pitch / kVec, count = p.tiles.batch * p.m * across;
  for (std::int64_t t = blockIdx.x * std::int64_t(kSumThreads) + threadIdx.x; t < count;
       t += gridDim.x * std::int64_t(kSumThreads)) {
    const std::int64_t line = t / across, j = t % across * kVec;
    const auto* from = reinterpret_cast<const char*>(slices + line * pitch + j);
    simt::Vector<float> sum = *reinterpret_cast<const simt::Vector<float>*>(from);
#pragma unroll 8
    for (int s = 1; s < p.slices; ++s) {
      const auto more = *reinterpret_cast<const simt::Vector<float>*>(from + s * p.slice_stride);
#pragma unroll
      for (int e = 0; e < kVec; ++e) sum.e[e] += more.e[e];
    }
    auto* c = static_cast<float*>(p.C.at(line / p.m)) + line % p.m * p.ldc + j;
    simt::store_vector(p, sum, c, p.n - j);
  }
}

simt::Choice choice(const GemmArgs& args, const DeviceInfo& device) {
  return simt::choose({args.m, args.n, args.k, args.batch, !is_transposed(args.transA),
                       is_transposed(args.transB), std::max(device.compute_units, 1),
                       device.capability >= 90, kMostWorkspace, size_of(args.out)});
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32) return "computes float only";
  return declines_emulation(args, device);
}

/// Bytes of one slice's results.
std::int64_t slice_bytes(const GemmArgs& args) {
  return args.batch * args.m * simt::slice_pitch(args.n) * size_of(args.out);
}

std::size_t workspace(const GemmArgs& args, const DeviceInfo& device) {
  const simt::Choice c = choice(args, device);
  const std::size_t pointers = gemm_pointer_bytes(args, device);
  return c.slices == 1 || c.cluster ? pointers
                                    : pointers + std::size_t(c.slices * slice_bytes(args));
}

/// How op(X) is copied: `along` and `depth` are its strides along the tile and along k.
simt::Copy copy_of(const Input& x, std::int64_t count, std::int64_t along, int size) {
  if (along != 1) return simt::Copy::Turned;
  return access_bits(x, count, size) % 16 == 0 ? simt::Copy::Vectors : simt::Copy::Elements;
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const int size = size_of(args.in);
  const simt::Choice c = choice(args, queue.device());
  simt::Problem<float> p{gemm_problem<float, float>(args, queue, 1, 1)};
  p.slices = c.slices;
  p.cluster = c.cluster;
  p.slice_depth = args.k;
  p.vectors_c = access_bits(args.C, args.batch, size) % 16 == 0;
  const auto copy_a = copy_of(args.A, args.batch, p.a.row, size);
  const auto copy_b = copy_of(args.B, args.batch, p.b.col, size);
  if (c.slices > 1) {
    const int depth = simt::kTiles[c.tile].depth;
    p.slice_depth = ceil_div(ceil_div(args.k, depth), c.slices) * depth;
  }

  simt::Problem<float> part = p;
  if (c.slices > 1 && !c.cluster) {
    part.ldc = simt::slice_pitch(args.n);
    part.C = {queue.workspace.data() + gemm_pointer_bytes(args, queue.device()),
              args.m * part.ldc * size, nullptr};
    part.slice_stride = p.slice_stride = slice_bytes(args);
    part.alpha = 1;
    part.read_c = false;
    part.vectors_c = true;
  }
  constexpr decltype(&simt::run_tile_64x64) kRun[] = {
      simt::run_tile_128x256, simt::run_tile_256x128, simt::run_tile_128x128, simt::run_tile_64x128,
      simt::run_tile_64x64,   simt::run_tile_128x16,  simt::run_tile_16x128};
  static_assert(std::size(kRun) == simt::kTileCount);
  kRun[c.tile](part, copy_a, copy_b, queue);
  if (c.slices > 1 && !c.cluster) {
    const std::int64_t vectors = args.batch * args.m * (part.ldc / simt::kVector<float>);
    launch(queue, sum_kernel, ceil_div(vectors, kSumThreads), dim3(kSumThreads), p,
           static_cast<const float*>(part.C.data), part.ldc);
  }
}

}  // namespace

Kernel<GemmArgs> simt() {
  return {"simt",
          "fp32 tiles of up to 128x256, 16x8 elements of C per thread, k cut where tiles are few",
          declines, workspace, run};
}

}  // namespace mblas::cuda::gemm
