// gemm of doubles on the fp64 tensor cores: which tile and how many parts of k.
//
// The tiles of 128×64, two blocks a multiprocessor, run at 0.97 of cuBLAS from 2048 up for all
// pairs of ops, and at 1.39 of it for 4095×4097×4093 (H200). Where they leave multiprocessors idle,
// tiles are smaller, and k is cut into parts that a second kernel adds up in their order: the same
// bits every time.
#include <cmath>

#include "cuda/gemm/tensor_f64.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace {

using LargeTile = TensorTile<128, 64, 16, 64, 32, 3, 2>;
using SmallTile = TensorTile<64, 64, 16, 32, 32, 3, 3>;

/// What the choice is made by, in clocks of a multiprocessor; fitted to measurements on an H200.
struct Cost {
  static constexpr double kMultiplyAdds = 128;          // a clock
  static constexpr double kLarge = 0.9, kSmall = 0.83;  // of that, by tile, all blocks busy
  static constexpr double kAlone = 0.75;                // of that, a block by itself
  static constexpr double kTile = 2500;                 // beginning and end of a tile
  static constexpr double kParts = 12;                  // bytes of parts a clock
  static constexpr double kSecondKernel = 5000;
};
constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr std::int64_t kLeastDepth = 64;
constexpr double kMostPartsBytes = 256 << 20;

struct Plan {
  bool small = false;
  int splits = 1;
  std::int64_t depth = 0;
  double clocks = 0;
};

template <class Tile>
Plan plan_for(const GemmArgs& args, int units, int splits, double efficiency) {
  Plan plan;
  plan.small = std::is_same_v<Tile, SmallTile>;
  plan.depth = ceil_div(ceil_div(args.k, splits), Tile::kDepth) * Tile::kDepth;
  plan.splits = args.k == 0 ? 1 : int(ceil_div(args.k, plan.depth));
  const double blocks = double(ceil_div(args.m, Tile::kRows) * ceil_div(args.n, Tile::kCols)) *
                        double(args.batch) * plan.splits;
  const double alone = double(Tile::kRows) * Tile::kCols * double(plan.depth) / Cost::kMultiplyAdds;
  const double full = std::floor(blocks / (units * Tile::kBlocks));
  const double rest = std::ceil((blocks - full * units * Tile::kBlocks) / units);
  plan.clocks = full * (Tile::kBlocks * alone / efficiency + Cost::kTile);
  if (rest > 0)
    plan.clocks += std::max(alone / Cost::kAlone, rest * alone / efficiency) + Cost::kTile;
  if (plan.splits > 1) {
    const double bytes = 16.0 * double(args.m * args.n * args.batch) * plan.splits;
    plan.clocks += bytes / (Cost::kParts * units) + Cost::kSecondKernel;
  }
  return plan;
}

/// The fastest by the model above, the same for the same call on the same device.
Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
  const int units = std::max(device.compute_units, 1);
  Plan best;
  const auto consider = [&](const Plan& plan) {
    if (best.clocks == 0 || plan.clocks < best.clocks) best = plan;
  };
  const double tiles = double(ceil_div(args.m, SmallTile::kRows)) *
                       double(ceil_div(args.n, SmallTile::kCols)) * double(args.batch);
  for (const int splits : kSplits) {
    // Not into more parts than fill the device once.
    if (splits > 1 &&
        (args.k / splits < kLeastDepth || tiles * splits > 2.0 * units * SmallTile::kBlocks ||
         8.0 * double(args.m * args.n * args.batch) * splits > kMostPartsBytes))
      break;
    consider(plan_for<LargeTile>(args, units, splits, Cost::kLarge));
    consider(plan_for<SmallTile>(args, units, splits, Cost::kSmall));
  }
  return best;
}

std::size_t parts_bytes(const GemmArgs& args, const Plan& plan) {
  return plan.splits == 1 ? 0
                          : sizeof(double) * std::size_t(args.m * args.n * args.batch) *
                                std::size_t(plan.splits);
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f64) return "for f64";
  if (device.capability < 80) return "needs fp64 tensor cores: compute capability 8.0";
  if (device.shared_memory < LargeTile::kShared<true, true>) return "needs more shared memory";
  return declines_emulation(args, device);
}

std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
  return gemm_pointer_bytes(args, device) + parts_bytes(args, plan_of(args, device));
}

/// C = alpha (the sum of the parts) + beta C.
__global__ void __launch_bounds__(256) add_parts_kernel(const __grid_constant__ TensorProblem p) {
  const std::int64_t matrix = p.m * p.n, all = matrix * p.tiles.batch;
  for (std::int64_t e = blockIdx.x * std::int64_t(256) + threadIdx.x; e < all;
       e += gridDim.x * std::int64_t(256)) {
    double sum = p.parts[e];
    for (int s = 1; s < p.splits; ++s) sum += p.parts[s * all + e];
    const std::int64_t batch = e / matrix, row = (e - batch * matrix) / p.n;
    double* const c = static_cast<double*>(p.C.at(batch));
    store(p, sum, c + row * p.ldc + (e - batch * matrix - row * p.n));
  }
}

template <class Tile>
void run_tiles(const TensorProblem& problem, const GemmArgs& args, const CudaQueue& queue) {
  TensorProblem p = problem;
  p.tiles = {ceil_div(p.m, Tile::kRows), ceil_div(p.n, Tile::kCols), args.batch};
  const auto blocks = unsigned(std::min<std::int64_t>(p.tiles.count() * p.splits, 1 << 30));
  const auto run = [&]<bool kAAlongK, bool kBAlongK>() {
    launch_grid(queue, tensor_f64_kernel<Tile, kAAlongK, kBAlongK>, dim3(blocks), Tile::kThreads,
                Tile::template kShared<kAAlongK, kBAlongK>, p);
  };
  const bool a = !is_transposed(args.transA), b = is_transposed(args.transB);
  if (a && b)
    run.template operator()<true, true>();
  else if (a)
    run.template operator()<true, false>();
  else if (b)
    run.template operator()<false, true>();
  else
    run.template operator()<false, false>();
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Plan plan = plan_of(args, queue.device());
  auto* const parts = queue.workspace.data() + gemm_pointer_bytes(args, queue.device());
  const TensorProblem p = {gemm_problem<double, double>(args, queue, 1, 1),
                           args.A.ld,
                           args.B.ld,
                           std::max<std::int64_t>(plan.depth, 1),
                           plan.splits,
                           reinterpret_cast<double*>(parts)};
  if (plan.small)
    run_tiles<SmallTile>(p, args, queue);
  else
    run_tiles<LargeTile>(p, args, queue);
  if (plan.splits > 1)
    launch(queue, add_parts_kernel,
           std::min<std::int64_t>(ceil_div(p.m * p.n * args.batch, 256), 1 << 16), dim3(256), p);
}

}  // namespace

Kernel<GemmArgs> tensor_f64() {
  return {"tensor_f64",
          "doubles on tensor cores, copies of single elements, k in parts if few tiles", declines,
          workspace_bytes, run};
}

}  // namespace mblas::cuda::gemm
