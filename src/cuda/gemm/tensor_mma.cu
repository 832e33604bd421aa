// gemm of half, bfloat16 and int8 on the tensor cores: which tile, how many parts of k, and which
// operands are copied first.
//
// The kernel takes operands whose rows start at multiples of 16 bytes, bytes with k innermost.
// Others are copied, transposed where need be, before it runs: a reading and a writing of the
// operand for a product that reads it at least once. Where tiles leave multiprocessors idle, they
// are smaller, and k is cut into parts that a second kernel adds up in their order: the same bits
// every time.
#include <cmath>

#include "cuda/gemm/repack.cuh"
#include "cuda/gemm/tensor_mma.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace tensor_mma_file {

/// What the choice is made by, in clocks of a multiprocessor: estimates, not fitted to
/// measurements.
struct Cost {
  static constexpr double kMultiplyAdds = 1100;      // of 16 bits a clock; twice that of bytes
  static constexpr double kLarge = 1, kSmall = 0.8;  // of that, by tile, all blocks busy
  static constexpr double kAlone = 0.45;             // of that, a small block by itself
  static constexpr double kTile = 3000;              // beginning and end of a tile
  static constexpr double kParts = 16;               // bytes of parts a clock
  static constexpr double kSecondKernel = 5000;
};
constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr std::int64_t kLeastDepthBytes = 512;
constexpr double kMostPartsBytes = 256 << 20;

struct Plan {
  bool small = false;
  int splits = 1;
  std::int64_t depth = 1;
  double clocks = 0;
};

template <class Tile>
Plan plan_for(const GemmArgs& args, int units, int splits, double efficiency, double alone_rate) {
  const int size = size_of(args.in);
  const std::int64_t step = Tile::kDepth / size;
  Plan plan;
  plan.small = std::is_same_v<Tile, SmallMmaTile>;
  plan.depth = std::max(ceil_div(ceil_div(args.k, splits), step), std::int64_t(1)) * step;
  plan.splits = args.k == 0 ? 1 : int(ceil_div(args.k, plan.depth));
  const double blocks = double(ceil_div(args.m, Tile::kRows)) *
                        double(ceil_div(args.n, Tile::kCols)) * double(args.batch) * plan.splits;
  const double alone =
      double(Tile::kRows) * Tile::kCols * double(plan.depth) * size / (2 * Cost::kMultiplyAdds);
  const double full = std::floor(blocks / (units * Tile::kBlocks));
  const double rest = std::ceil((blocks - full * units * Tile::kBlocks) / units);
  plan.clocks = full * (Tile::kBlocks * alone / efficiency + Cost::kTile);
  if (rest > 0)
    plan.clocks += std::max(alone / alone_rate, rest * alone / efficiency) + Cost::kTile;
  if (plan.splits > 1) {
    const double bytes = 8.0 * double(args.m) * double(args.n) * double(args.batch) * plan.splits;
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
  const double matrices = double(args.m) * double(args.n) * double(args.batch);
  const double tiles = double(ceil_div(args.m, SmallMmaTile::kRows)) *
                       double(ceil_div(args.n, SmallMmaTile::kCols)) * double(args.batch);
  for (const int splits : kSplits) {
    // Not into more parts than fill the device once.
    if (splits > 1 && (args.k * size_of(args.in) / splits < kLeastDepthBytes ||
                       tiles * splits > 2.0 * units * SmallMmaTile::kBlocks ||
                       4.0 * matrices * splits > kMostPartsBytes))
      break;
    consider(plan_for<LargeMmaTile>(args, units, splits, Cost::kLarge, Cost::kLarge));
    consider(plan_for<SmallMmaTile>(args, units, splits, Cost::kSmall, Cost::kAlone));
  }
  return best;
}

/// An operand as the kernel takes it.
struct Source {
  bool along_k;
  bool copied;
  Repacked copy;

  std::size_t bytes() const { return copied ? copy.bytes() : 0; }
};

/// `rows`×`cols`: as it is stored.
Source source_of(const Input& x, bool along_k, std::int64_t rows, std::int64_t cols,
                 const GemmArgs& args) {
  const int size = size_of(args.in);
  const bool transposed = size == 1 && !along_k;
  const bool copied = args.k > 0 && (transposed || access_bits(x, args.batch, size) % 16 != 0);
  return {along_k || transposed, copied, Repacked::of(x, rows, cols, args.batch, size, transposed)};
}
Source source_of_a(const GemmArgs& args) {
  const bool turned = is_transposed(args.transA);
  return source_of(args.A, !turned, turned ? args.k : args.m, turned ? args.m : args.k, args);
}
Source source_of_b(const GemmArgs& args) {
  const bool turned = is_transposed(args.transB);
  return source_of(args.B, turned, turned ? args.n : args.k, turned ? args.k : args.n, args);
}

std::size_t parts_bytes(const GemmArgs& args, const Plan& plan) {
  return plan.splits == 1
             ? 0
             : 4 * std::size_t(args.m * args.n * args.batch) * std::size_t(plan.splits);
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f16 && args.in != DType::bf16 && args.in != DType::i8)
    return "for f16, bf16 and i8";
  if (device.capability < 80) return "needs tensor cores of compute capability 8.0";
  if (device.shared_memory < LargeMmaTile::kShared) return "needs more shared memory";
  if (args.batch > kMmaPlanes * kMmaPlanes) return "for batches of less than 2^32";
  return declines_emulation(args, device);
}

std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
  return gemm_pointer_bytes(args, device) + source_of_a(args).bytes() + source_of_b(args).bytes() +
         parts_bytes(args, plan_of(args, device));
}

/// C = alpha (the sum of the parts) + beta C.
template <class Out, class Acc>
__global__ void __launch_bounds__(256) add_parts_kernel(const __grid_constant__ MmaProblem<Acc> p) {
  const std::int64_t matrix = p.m * p.n, all = matrix * p.tiles.batch;
  for (std::int64_t e = blockIdx.x * std::int64_t(256) + threadIdx.x; e < all;
       e += gridDim.x * std::int64_t(256)) {
    Acc sum = p.parts[e];
    for (int s = 1; s < p.splits; ++s) sum += p.parts[s * all + e];
    const std::int64_t batch = e / matrix, row = (e - batch * matrix) / p.n;
    Out* const c = static_cast<Out*>(p.C.at(batch));
    store(p, sum, c + row * p.ldc + (e - batch * matrix - row * p.n));
  }
}

template <class In, class Out>
void run_typed(const GemmArgs& args, const CudaQueue& queue) {
  using Acc = Accumulator<In>;
  const Plan plan = plan_of(args, queue.device());
  std::byte* free = queue.workspace.data() + gemm_pointer_bytes(args, queue.device());
  MmaProblem<Acc> p;
  static_cast<GemmProblem<Acc>&>(p) = gemm_problem<In, Out>(args, queue, 1, 1);
  const auto prepare = [&](DeviceInput& x, std::int64_t& ld, bool& along_k, const Input& from,
                           const Source& source) {
    ld = from.ld;
    along_k = source.along_k;
    if (!source.copied) return;
    x = repack(x, ld, access_bits(from, args.batch, sizeof(In)), source.copy, free, queue);
    ld = source.copy.ld();
    free += source.bytes();
  };
  prepare(p.A, p.lda, p.a_along_k, args.A, source_of_a(args));
  prepare(p.B, p.ldb, p.b_along_k, args.B, source_of_b(args));
  p.depth = plan.depth;
  p.splits = plan.splits;
  p.small = plan.small;
  p.wide = std::is_same_v<Out, WideOut<In>>;
  p.paired = access_bits(args.C, args.batch, sizeof(Out)) % (2 * sizeof(Out)) == 0;
  p.parts = reinterpret_cast<Acc*>(free);
  run_mma<In>(p, queue);
  if (plan.splits > 1)
    launch(queue, add_parts_kernel<Out, Acc>,
           std::min<std::int64_t>(ceil_div(p.m * p.n * args.batch, 256), 1 << 16), dim3(256), p);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const bool wide = args.out == DType::f32;
  if (args.in == DType::i8)
    run_typed<std::int8_t, std::int32_t>(args, queue);
  else if (args.in == DType::f16)
    wide ? run_typed<__half, float>(args, queue) : run_typed<__half, __half>(args, queue);
  else
    wide ? run_typed<__nv_bfloat16, float>(args, queue)
         : run_typed<__nv_bfloat16, __nv_bfloat16>(args, queue);
}

}  // namespace tensor_mma_file

Kernel<GemmArgs> tensor_mma() {
  using namespace tensor_mma_file;
  return {
      "tensor_mma",
      "half, bfloat16, int8 on tensor cores, operands copied into line, k in parts if few tiles",
      declines, workspace_bytes, run};
}

}  // namespace mblas::cuda::gemm
