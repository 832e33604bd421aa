// Sums so long that m and n of at most 16 are small: limited by reading both operands once.
//
// On an H200, ratios to cuBLAS: 8x8x100000 1.27 for floats, 1.06 for doubles. Long m or n with 2 to
// 16 vectors were slower here (0.5 to 0.7) than in tiles of simt and in thin_f64.
#include <algorithm>
#include <limits>

#include "cuda/gemm/thin.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace thin_file {

using thin::kThreads;

constexpr std::int64_t kLeastBytes = 16 << 10;  // of the long operand that a block reads,
constexpr std::int64_t kLeastDepth = 128;       // or of k, where a cluster has all of it

constexpr int kMostShort = 16;  // of m and n

/// k up to which others take less time, as they begin sooner: by graphs of 20 calls on an H100,
/// 16x16x2048 f32 9.6 us, by simt 8.0; f64 11.3, by tensor_f64 4.9.
constexpr std::int64_t kShort = 8192, kShortDoubles = 32768;

/// Which operand is the long one, and how the work is cut.
struct Plan {
  bool long_is_b, along_k;
  std::int64_t length, tiles, depth;
  int count, lanes, tile, parts;
  bool cluster;
  std::size_t shared;  // of a block; less than has to be asked for
};

template <class In, bool kAlongK, bool kVectors>
void cut(Plan& plan, const GemmArgs& args, const DeviceInfo& device) {
  using S = thin::Shape<In, kMostShort, kAlongK, kVectors>;
  using Acc = Accumulator<In>;
  const std::int64_t slots = std::int64_t(std::max(device.compute_units, 1)) * S::kBlocks;
  int slices;
  if constexpr (kAlongK) {
    // Rows of a block: enough that the short operand is read little.
    constexpr int kWanted = 64;
    plan.lanes = std::min(kWanted / S::kWarpRows, thin::kWarps);
    while (plan.lanes > 1 && plan.lanes / 2 * S::kWarpRows >= plan.length) plan.lanes /= 2;
    plan.tile = plan.lanes * S::kWarpRows;
    slices = thin::kWarps / plan.lanes * thin::kLanesAlongK;
  } else {
    // Fewer lanes along L, but whole lines, where tiles are too few for all multiprocessors.
    constexpr int kLine = std::max(128 / int(sizeof(In)) / S::kVector, 1);
    plan.lanes = 32;
    while (plan.lanes > 1 && (plan.lanes / 2 * S::kVector >= plan.length ||
                              (plan.lanes > kLine && plan.length * args.batch * thin::kMostCluster <
                                                         plan.lanes * S::kVector * slots)))
      plan.lanes /= 2;
    plan.tile = plan.lanes * S::kVector;
    slices = thin::kWarps * 32 / plan.lanes;
  }
  plan.tiles = ceil_div(plan.length, plan.tile);
  plan.shared =
      std::max(std::size_t(S::kShortBytes),
               sizeof(Acc) * std::size_t(slices * thin::slice_pitch<Acc>(plan.tile, kMostShort)));

  // As many parts as fill the device once, unless they would have too little to do. What a block
  // brings of the short operand comes element by element, so that a cluster pays for itself early.
  const std::int64_t line = std::min<std::int64_t>(plan.length, plan.tile) * int(sizeof(In));
  const std::int64_t parts =
      std::min(slots / (plan.tiles * args.batch),
               std::max(args.k * line / kLeastBytes,
                        std::min<std::int64_t>(args.k / kLeastDepth, thin::kMostCluster)));
  plan.cluster = runs_clusters(device) && parts <= 2 * thin::kMostCluster;
  plan.parts = int(std::clamp<std::int64_t>(parts, 1, plan.cluster ? thin::kMostCluster : slots));
  plan.depth = ceil_div(ceil_div(args.k, plan.parts), 32) * 32;
}

/// f<In, kAlongK, kVectors>() with the kernel that the operands ask for.
template <class F>
void with_variant(const GemmArgs& args, const Plan& plan, F&& f) {
  const auto with_type = [&]<class In>() {
    const auto bits = access_bits(plan.long_is_b ? args.B : args.A, args.batch, int(sizeof(In)));
    const auto with_order = [&]<bool kAlongK>() {
      constexpr int kVector = thin::Shape<In, kMostShort, kAlongK, true>::kVector;
      if (bits % (kVector * sizeof(In)) == 0 && (kAlongK || plan.length % kVector == 0))
        f.template operator()<In, kAlongK, true>();
      else
        f.template operator()<In, kAlongK, false>();
    };
    if (plan.along_k)
      with_order.template operator()<true>();
    else
      with_order.template operator()<false>();
  };
  if (args.in == DType::f32)
    with_type.template operator()<float>();
  else
    with_type.template operator()<double>();
}

Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
  Plan plan;
  const bool a_along_k = !is_transposed(args.transA), b_along_k = is_transposed(args.transB);
  // Of two as short, the one that memory follows along k.
  plan.long_is_b = args.m == args.n ? b_along_k && !a_along_k : args.m < args.n;
  plan.along_k = plan.long_is_b ? b_along_k : a_along_k;
  plan.length = plan.long_is_b ? args.n : args.m;
  plan.count = int(plan.long_is_b ? args.m : args.n);
  with_variant(args, plan, [&]<class In, bool kAlongK, bool kVectors>() {
    cut<In, kAlongK, kVectors>(plan, args, device);
  });
  return plan;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::f64) return "for f32 and f64";
  if (std::max(args.m, args.n) > kMostShort) return "for m and n of at most 16";
  const bool doubles = args.in == DType::f64;
  if (args.config != kForced && args.k <= (doubles ? kShortDoubles : kShort))
    return doubles ? "slower than tensor_f64 for short sums" : "slower than simt for short sums";
  return declines_emulation(args, device);
}

std::size_t parts_bytes(const GemmArgs& args, const Plan& plan) {
  if (plan.cluster || plan.parts == 1) return 0;
  return std::size_t(size_of(args.in)) * std::size_t(args.m * args.n * args.batch * plan.parts);
}

std::size_t workspace(const GemmArgs& args, const DeviceInfo& device) {
  return gemm_pointer_bytes(args, device) + parts_bytes(args, plan_of(args, device));
}

template <class In, bool kAlongK, bool kVectors>
void launch_thin(thin::Problem<In> p, std::size_t shared, const CudaQueue& queue) {
  const auto kernel = thin::thin_kernel<In, kMostShort, kAlongK, kVectors>;
  LaunchAttributes attributes(starts_early(queue), p.cluster ? unsigned(p.parts) : 1);
  const std::int64_t blocks = p.tiles.rows * p.tiles.batch * p.parts;
  const std::int64_t most = std::numeric_limits<int>::max() / p.parts * p.parts;
  for (p.first_block = 0; p.first_block < blocks; p.first_block += most)
    launch_with(attributes, queue, kernel, unsigned(std::min(blocks - p.first_block, most)),
                kThreads, shared, p);
}

template <class In, bool kAlongK, bool kVectors>
void run_as(const GemmArgs& args, const Plan& plan, const CudaQueue& queue) {
  thin::Problem<In> p{gemm_problem<In, In>(args, queue, 1, 1)};
  const bool b = plan.long_is_b;
  p.length = plan.length;
  p.count = plan.count;
  p.lanes = plan.lanes;
  p.tile = plan.tile;
  p.tiles = {plan.tiles, 1, args.batch};
  p.line = b ? args.B.ld : args.A.ld;
  p.small = b ? p.a : Strides{p.b.col, p.b.row};
  p.c = b ? Strides{1, p.ldc} : Strides{p.ldc, 1};
  p.Long = b ? p.B : p.A;
  p.Short = b ? p.A : p.B;
  p.depth = plan.depth;
  p.parts = plan.parts;
  p.cluster = plan.cluster;
  p.sums = reinterpret_cast<In*>(queue.workspace.data() + gemm_pointer_bytes(args, queue.device()));

  launch_thin<In, kAlongK, kVectors>(p, plan.shared, queue);
  if (p.parts > 1 && !p.cluster) {
    const std::int64_t blocks = ceil_div(p.length * p.count * args.batch, thin::kWarps);
    launch_early(queue, thin::add_parts_kernel<In>,
                 unsigned(std::min<std::int64_t>(blocks, 1 << 16)), kThreads, 0, p);
  }
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Plan plan = plan_of(args, queue.device());
  const DeviceGuard guard(queue.device().ordinal);
  with_variant(args, plan, [&]<class In, bool kAlongK, bool kVectors>() {
    run_as<In, kAlongK, kVectors>(args, plan, queue);
  });
}

}  // namespace thin_file

Kernel<GemmArgs> thin() {
  using namespace thin_file;
  return {"thin", "very long sums: m and n up to 16, k cut over clusters or blocks", declines,
          workspace, run};
}

}  // namespace mblas::cuda::gemm
