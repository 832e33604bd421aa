// gemm of half, bfloat16, int8 and, as TF32, of float on the tensor cores: which tile, how many
// parts of k, and how the operands come to it.
//
// The loop that reaches the tensor cores' rate takes operands whose rows start at multiples of 16
// bytes, bytes with k innermost. Others are copied, transposed where need be, before it runs: a
// reading and a writing of the operand for a product that reads it at least once. Or, as a launch
// takes longer than a small product, they are taken as they lie, by words where rows are of whole
// ones, by tiles that take longer for each step along k. Where tiles leave multiprocessors idle,
// they are smaller, and k is cut into parts that a second kernel adds up in their order: the same
// bits every time.
#include <cmath>
#include <limits>
#include <tuple>

#include "cuda/gemm/repack.cuh"
#include "cuda/gemm/tensor_cores.hpp"
#include "cuda/gemm/tensor_mma.cuh"
#include "cuda/gemm/tensor_mma.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace tensor_mma_file {

/// What a tile takes, in microseconds: the first block of a round and its results, each block, and
/// 128 bytes of k of each.
struct TileCost {
  double ends, block, step;
};

/// Of the tiles without copies, by type: fitted to times in graphs on an H200, of 1,160 to 1,190
/// products each.
struct DirectCosts {
  TileCost large_words, small_words, loose_small, loose_medium, loose_large, loose_one_stage;
  double words[3];       // of a loose step, where lines begin at words, by operands not along k
  TileCost warp, warps;  // of a block of one warp that has all of C, and of several
  double warp_words[3];
};
constexpr DirectCosts kOfBytes = {.large_words = {1.31, 1.07, 1.17},
                                  .small_words = {1.2, 0.38, 0.518},
                                  .loose_small = {0.73, 0.28, 0.547},
                                  .loose_medium = {0.75, 0.33, 0.73},
                                  .loose_large = {1.13, 0.14, 1.14},
                                  .loose_one_stage = {0.75, 0.27, 0.933},
                                  .words = {0.42, 0.59, 0.71},
                                  .warp = {},
                                  .warps = {},
                                  .warp_words = {}};
constexpr DirectCosts kOfHalves = {.large_words = {1.77, 0.77, 1.06},
                                   .small_words = {1.15, 0.3, 0.493},
                                   .loose_small = {0.75, 0.17, 0.426},
                                   .loose_medium = {0.73, 0.3, 0.568},
                                   .loose_large = {1.22, 0.14, 0.804},
                                   .loose_one_stage = {0.73, 0.23, 0.709},
                                   .words = {0.56, 0.61, 0.69},
                                   .warp = {0.8, 0.1, 0.095},
                                   .warps = {0.98, 0.082, 0.223},
                                   .warp_words = {0.47, 0.58, 0.66}};
constexpr DirectCosts kOfFloats = {.large_words = {},
                                   .small_words = {},
                                   .loose_small = {1.3, 0, 0.332},
                                   .loose_medium = {1.23, 0.2, 0.477},
                                   .loose_large = {1.78, 0, 0.765},
                                   .loose_one_stage = {1.12, 0.32, 0.311},
                                   .words = {0.72, 0.7, 0.71},
                                   .warp = {1.14, 0.08, 0.1},
                                   .warps = {1.46, 0.11, 0.085},
                                   .warp_words = {1, 0.86, 1.1}};
constexpr const DirectCosts& direct_costs(int size) {
  return size == 1 ? kOfBytes : size == 2 ? kOfHalves : kOfFloats;
}

/// What the choice is made by besides, in clocks of a multiprocessor if it does not say: estimates.
struct Cost {
  static constexpr double kMultiplyAdds = 1100;         // of 16 bits a clock; twice that of bytes
  static constexpr double kLarge = 1, kSmall = 0.8;     // of that, by tile, all blocks busy
  static constexpr double kAlone = 0.6;                 // of that, a small block by itself
  static constexpr double kTile = 5000, kOfSize = 825;  // a tile's ends, and for each 64×128 of it
  static constexpr double kParts = 16;                  // bytes of parts a clock
  static constexpr double kSecondKernel = 5000;
  static constexpr double kStart = 1500;         // of a launch
  static constexpr double kMemoryShare = 0.625;  // of what the memory can deliver
  static constexpr double kPerMicrosecond = 1700;
};
static_assert(LooseMmaWarp<2>::kRows == kMmaWarp && LooseMmaWarp<2>::kCols == kMmaWarp);
constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr std::int64_t kLeastDepthBytes = 512;
constexpr double kMostPartsBytes = 256 << 20;

/// By number: MmaWay.
constexpr std::string_view kConfigs[] = {"128x256",     "64x128",      "128x128_words",
                                         "64x64_words", "32x32_loose", "32x64_loose",
                                         "64x64_loose"};

/// Whether tensor_mma.cuh has tiles of the type, and not tensor_mma_loose.cuh alone.
bool has_panels(DType in) { return size_of(in) <= 2; }

/// An operand as it is stored.
struct Source {
  bool along_k;
  bool loose;      ///< pieces of 16 bytes take it copied only
  bool in_pieces;  ///< its lines are pieces of 4 bytes
  std::uintptr_t bits;
  Repacked copy;
};

/// `rows`×`cols`: as it is stored.
Source source_of(const Input& x, bool along_k, std::int64_t rows, std::int64_t cols,
                 const GemmArgs& args) {
  const int size = size_of(args.in);
  const bool transposed = size == 1 && !along_k;
  const std::uintptr_t bits = access_bits(x, args.batch, size);
  const bool loose = args.k > 0 && (transposed || bits % 16 != 0);
  const bool in_pieces = !transposed && (bits | std::uintptr_t(cols * size)) % 4 == 0;
  return {along_k, loose, in_pieces, bits,
          Repacked::of(x, rows, cols, args.batch, size, transposed)};
}

struct Plan {
  MmaWay way = MmaWay::Large;
  int splits = 0;  ///< 0: none yet
  std::int64_t depth = 1;
  double clocks = 0;
};

/// k of a call in so many parts or fewer, of whole steps.
template <class Tile>
Plan cut(const GemmArgs& args, MmaWay way, int splits) {
  const std::int64_t step = Tile::kDepth / size_of(args.in);
  Plan plan;
  plan.way = way;
  plan.depth = std::max(ceil_div(ceil_div(args.k, splits), step), std::int64_t(1)) * step;
  plan.splits = args.k == 0 ? 1 : int(ceil_div(args.k, plan.depth));
  return plan;
}

/// Rounds of blocks that fill the device, and how many the fullest multiprocessor has in a last
/// one.
struct Rounds {
  double full, rest;
};
template <class Tile>
Rounds rounds_of(const GemmArgs& args, const Plan& plan, int units) {
  const double blocks = double(ceil_div(args.m, Tile::kRows)) *
                        double(ceil_div(args.n, Tile::kCols)) * double(args.batch) * plan.splits;
  const double full = std::floor(blocks / (units * Tile::kBlocks));
  return {full, std::ceil((blocks - full * units * Tile::kBlocks) / units)};
}

double clocks_of_parts(const GemmArgs& args, const Plan& plan, int units) {
  if (plan.splits == 1) return 0;
  const double bytes = 8.0 * double(args.m) * double(args.n) * double(args.batch) * plan.splits;
  return bytes / (Cost::kParts * units) + Cost::kSecondKernel;
}

template <class Tile>
Plan plan_for(const GemmArgs& args, MmaWay way, int units, int splits, double efficiency,
              double alone_rate) {
  Plan plan = cut<Tile>(args, way, splits);
  const double alone = double(Tile::kRows) * Tile::kCols * double(plan.depth) * size_of(args.in) /
                       (2 * Cost::kMultiplyAdds);
  const double busy = alone / efficiency;
  const auto [full, rest] = rounds_of<Tile>(args, plan, units);
  const double ends = Cost::kTile + Cost::kOfSize * Tile::kRows * Tile::kCols / (64.0 * 128);
  plan.clocks = full * (Tile::kBlocks * busy + ends);
  if (rest > 0) plan.clocks += std::max(alone / alone_rate, rest * busy) + ends;
  plan.clocks += clocks_of_parts(args, plan, units);
  return plan;
}

/// Of tiles that take operands as they lie. `step_rate`: see DirectCosts.
template <class Tile>
Plan direct_plan_for(const GemmArgs& args, MmaWay way, int units, int splits, const TileCost& cost,
                     double step_rate = 1) {
  Plan plan = cut<Tile>(args, way, splits);
  const double bytes = double(std::min(plan.depth, args.k) * size_of(args.in));
  const double steps = std::ceil(bytes / Tile::kLeastDepth) * Tile::kLeastDepth / 128;
  const double each = cost.block + steps * cost.step * step_rate;
  const auto [full, rest] = rounds_of<Tile>(args, plan, units);
  const double rounds =
      full * (Tile::kBlocks * each + cost.ends) + (rest > 0 ? rest * each + cost.ends : 0);
  plan.clocks = rounds * Cost::kPerMicrosecond + clocks_of_parts(args, plan, units);
  return plan;
}

/// A call's operands, and the fastest plan by the model above, or that of its configuration: the
/// same for the same call on the same device.
struct Call {
  Source a, b;
  bool words;      ///< both have their lines at multiples of 4 bytes
  bool in_pieces;  ///< and these are whole pieces of that, bytes with k innermost
  Plan plan;

  Call(const GemmArgs& args, const DeviceInfo& device)
      : a(stored(args.A, is_transposed(args.transA), args.m, args.k, false, args)),
        b(stored(args.B, is_transposed(args.transB), args.k, args.n, true, args)),
        words((a.bits | b.bits) % 4 == 0),
        in_pieces(a.in_pieces && b.in_pieces) {
    const int units = std::max(device.compute_units, 1);
    const double memory_rate = memory_rate_of(device);
    std::tuple key(size_of(args.in), args.config, args.m, args.n, args.k, args.batch, a.along_k,
                   b.along_k, a.loose, b.loose, a.copy.count, b.copy.count, words, in_pieces, units,
                   memory_rate);
    thread_local Memo<decltype(key), Plan> memo;
    plan = memo(key, [&] { return choose(args, units, memory_rate); });
  }

  bool copies() const {
    return (plan.way == MmaWay::Large || plan.way == MmaWay::Small) && (a.loose || b.loose);
  }
  /// Of the copy of one operand.
  std::size_t bytes(const Source& x) const { return copies() && x.loose ? x.copy.bytes() : 0; }
  double microseconds() const { return (Cost::kStart + plan.clocks) / Cost::kPerMicrosecond; }

 private:
  /// An operand that is `rows`×`cols` after op.
  static Source stored(const Input& x, bool turned, std::int64_t rows, std::int64_t cols, bool is_b,
                       const GemmArgs& args) {
    return source_of(x, turned == is_b, turned ? cols : rows, turned ? rows : cols, args);
  }

  Plan choose(const GemmArgs& args, int units, double memory_rate) const {
    constexpr double kTwoKernels = kTwoLaunches * Cost::kPerMicrosecond - Cost::kStart;
    Plan best;
    Repacked copied[2];
    std::size_t count = 0;
    for (const Source* x : {&a, &b})
      if (x->loose) copied[count++] = x->copy;
    const double copies =
        repack_microseconds(std::span(copied, count), true) * Cost::kPerMicrosecond;
    const auto allows = [&](MmaWay way) {
      if (way < MmaWay::LooseSmall && !has_panels(args.in)) return false;
      return args.config < 0 || args.config == int(way);
    };
    // `before`: what comes first, as `copies`.
    const auto consider = [&](Plan found, double before = 0) {
      found.clocks += before;
      if (before > 0 || found.splits > 1) found.clocks = std::max(found.clocks, kTwoKernels);
      if (best.splits == 0 || found.clocks < best.clocks) best = found;
    };
    const double matrices = double(args.m) * double(args.n) * double(args.batch);
    const double tiles = double(ceil_div(args.m, SmallMmaTile::kRows)) *
                         double(ceil_div(args.n, SmallMmaTile::kCols)) * double(args.batch);
    const DirectCosts& costs = direct_costs(size_of(args.in));
    const int outermost = !a.along_k + !b.along_k;
    const double rate = words ? costs.words[outermost] : 1;
    const bool is_one = std::max(args.m, args.n) <= kMmaWarp;
    const double warp_rate = words ? costs.warp_words[outermost] : 1;
    for (const int splits : kSplits) {
      // Not into more parts than fill the device once.
      if (splits > 1 && (args.k * size_of(args.in) / splits < kLeastDepthBytes ||
                         tiles * splits > 2.0 * units * SmallMmaTile::kBlocks ||
                         4.0 * matrices * splits > kMostPartsBytes))
        break;
      if (allows(MmaWay::Large))
        consider(
            plan_for<LargeMmaTile>(args, MmaWay::Large, units, splits, Cost::kLarge, Cost::kLarge),
            copies);
      if (allows(MmaWay::Small))
        consider(
            plan_for<SmallMmaTile>(args, MmaWay::Small, units, splits, Cost::kSmall, Cost::kAlone),
            copies);
      if (in_pieces && allows(MmaWay::LargeWords))
        consider(direct_plan_for<LargeWordsTile>(args, MmaWay::LargeWords, units, splits,
                                                 costs.large_words));
      if (in_pieces && allows(MmaWay::SmallWords))
        consider(direct_plan_for<SmallWordsTile>(args, MmaWay::SmallWords, units, splits,
                                                 costs.small_words));
      if (allows(MmaWay::LooseSmall))
        consider(takes_warp(args.k, size_of(args.in))
                     ? direct_plan_for<LooseMmaWarp<2>>(args, MmaWay::LooseSmall, units, splits,
                                                        is_one ? costs.warp : costs.warps,
                                                        warp_rate)
                     : direct_plan_for<LooseMmaSmall>(args, MmaWay::LooseSmall, units, splits,
                                                      costs.loose_small, rate));
      if (allows(MmaWay::LooseMedium))
        consider(direct_plan_for<LooseMmaMedium>(args, MmaWay::LooseMedium, units, splits,
                                                 costs.loose_medium, rate));
      if (allows(MmaWay::LooseLarge))
        consider(in_one_stage<LooseMmaLarge>(args.k, size_of(args.in))
                     ? direct_plan_for<OneStage<LooseMmaLarge>>(args, MmaWay::LooseLarge, units,
                                                                splits, costs.loose_one_stage, rate)
                     : direct_plan_for<LooseMmaLarge>(args, MmaWay::LooseLarge, units, splits,
                                                      costs.loose_large, rate));
    }
    const double elements =
        double(args.batch) * (double(args.m + args.n) * double(args.k)) + matrices;
    best.clocks = std::max(best.clocks, elements * size_of(args.in) * 1e6 * Cost::kPerMicrosecond /
                                            (Cost::kMemoryShare * memory_rate));
    return best;
  }
};

std::size_t parts_bytes(const GemmArgs& args, const Plan& plan) {
  return plan.splits == 1
             ? 0
             : 4 * std::size_t(args.m * args.n * args.batch) * std::size_t(plan.splits);
}

/// Why it does not take a call, whatever others would take for it.
const char* refuses(const GemmArgs& args, const DeviceInfo& device) {
  if (!is_tf32(args) && args.in != DType::f16 && args.in != DType::bf16 && args.in != DType::i8)
    return "for f16, bf16 and i8, and for f32 as TF32";
  if (device.capability < 80) return "needs tensor cores of compute capability 8.0";
  if (device.shared_memory < LargeMmaTile::kShared) return "needs more shared memory";
  if (args.batch > kMmaPlanes * kMmaPlanes) return "for batches of less than 2^32";
  const bool by_words =
      args.config == int(MmaWay::LargeWords) || args.config == int(MmaWay::SmallWords);
  if (by_words && !Call(args, device).in_pieces)
    return "the configuration is for rows that begin and end at multiples of 4 bytes";
  if (!has_panels(args.in) && args.config >= 0 && args.config < int(MmaWay::LooseSmall))
    return "the configuration is for types of 1 and 2 bytes";
  return declines_emulation_but_tf32(args, device);
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (const char* reason = refuses(args, device)) return reason;
  if (args.config == kOwnChoice && is_for_simt(args, device))
    return "estimated to be slower than simt";
  return nullptr;
}

std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
  const Call call(args, device);
  return gemm_pointer_bytes(args, device) + call.bytes(call.a) + call.bytes(call.b) +
         parts_bytes(args, call.plan);
}

/// C = alpha (the sum of the parts) + beta C.
template <class Out, class Acc>
__global__ void __launch_bounds__(256) add_parts_kernel(const __grid_constant__ MmaProblem<Acc> p) {
  begin_early();
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
  const Call call(args, queue.device());
  std::byte* free = queue.workspace.data() + gemm_pointer_bytes(args, queue.device());
  MmaProblem<Acc> p;
  static_cast<GemmProblem<Acc>&>(p) = gemm_problem<In, Out>(args, queue, 1, 1);
  RepackJob jobs[2];
  std::size_t job_count = 0;
  const auto prepare = [&](DeviceInput& x, std::int64_t& ld, bool& along_k, const Input& from,
                           const Source& source) {
    ld = from.ld;
    along_k = source.along_k;
    if (!call.copies() || !source.loose) return;
    const RepackJob& job = jobs[job_count++] = {x, from.ld, source.bits, source.copy, free};
    x = job.result();
    ld = source.copy.ld();
    along_k |= source.copy.transposed;
    free += call.bytes(source);
  };
  prepare(p.A, p.lda, p.a_along_k, args.A, call.a);
  prepare(p.B, p.ldb, p.b_along_k, args.B, call.b);
  repack(std::span(jobs, job_count), queue);
  const Plan& plan = call.plan;
  p.depth = plan.depth;
  p.splits = plan.splits;
  p.way = plan.way;
  p.words = call.words;
  p.wide = std::is_same_v<Out, WideOut<In>>;
  p.parts = reinterpret_cast<Acc*>(free);
  run_mma<In>(p, queue);
  if (plan.splits > 1)
    launch_early(queue, add_parts_kernel<Out, Acc>,
                 unsigned(std::min<std::int64_t>(ceil_div(p.m * p.n * args.batch, 256), 1 << 16)),
                 256, 0, p);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const bool wide = args.out == DType::f32;
  if (args.in == DType::i8)
    run_typed<std::int8_t, std::int32_t>(args, queue);
  else if (args.in == DType::f32)
    run_typed<Tf32, float>(args, queue);
  else if (args.in == DType::f16)
    wide ? run_typed<__half, float>(args, queue) : run_typed<__half, __half>(args, queue);
  else
    wide ? run_typed<__nv_bfloat16, float>(args, queue)
         : run_typed<__nv_bfloat16, __nv_bfloat16>(args, queue);
}

}  // namespace tensor_mma_file

double tensor_mma_microseconds(const GemmArgs& args, const DeviceInfo& device) {
  using namespace tensor_mma_file;
  GemmArgs own = args;
  own.config = kOwnChoice;
  const Call call(own, device);
  const bool left_out = (call.copies() && args.batch > 1) || refuses(own, device);
  return left_out ? std::numeric_limits<double>::infinity() : call.microseconds();
}

Kernel<GemmArgs> tensor_mma() {
  using namespace tensor_mma_file;
  return {"tensor_mma",
          "half, bfloat16, int8, TF32 on tensor cores, operands as they lie or copied into line, k "
          "in parts if few tiles",
          declines,
          workspace_bytes,
          run,
          nullptr,
          kConfigs};
}

}  // namespace mblas::cuda::gemm
