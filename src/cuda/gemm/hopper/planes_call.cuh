// What the rows of the table that multiply float in planes have in common: the parts of a call that
// are in planes at a time, the workspace, the launches.
#pragma once

#include "cuda/gemm/hopper/call.cuh"
#include "cuda/gemm/part.hpp"
#include "cuda/gemm/repack.cuh"
#include "cuda/gemm/simt.hpp"

namespace mblas::cuda::gemm::hopper {

/// Products of In = Planes<…> by `kTiles`.
template <class In, const auto& kTiles>
struct PlaneProduct {
  using Plane = Element<In>;
  static constexpr int kPlanes = kPlanesOf<In>;
  static constexpr std::int64_t kMostPlaneBytes = std::int64_t{2} << 30;
  static constexpr int kSplitBlocksEach = 4;  // of a multiprocessor

  static const ConfigList<Config>& configs() {
    static const auto list = config_list(kTiles);
    return list;
  }

  static Shape shape_of(const GemmArgs& args, const DeviceInfo& device) {
    return hopper::shape_of(args, kTiles, sizeof(Plane), device);
  }
  static Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
    return hopper::plan_of(args, shape_of(args, device), configs());
  }

  /// An operand as it is stored, and its planes: matrix by matrix, with aligned rows.
  struct Split {
    std::int64_t rows, cols, count;
    bool along_k;

    /// Lines along k, each of which is scaled as one.
    std::int64_t lines() const { return count * (along_k ? rows : cols); }
    std::int64_t ld() const { return aligned_ld(cols, sizeof(Plane)); }
    std::int64_t bytes() const {
      return ceil_div(count * kPlanes * rows * ld() * std::int64_t(sizeof(Plane)), 256) * 256;
    }
  };
  static Split split_of(const Input& x, bool along_k, std::int64_t outer, const GemmArgs& args) {
    const bool shared = !x.pointers && x.stride == 0;
    return {along_k ? outer : args.k, along_k ? args.k : outer, shared ? 1 : args.batch, along_k};
  }
  static Split split_of_a(const GemmArgs& args) {
    return split_of(args.A, !is_transposed(args.transA), args.m, args);
  }
  static Split split_of_b(const GemmArgs& args) {
    return split_of(args.B, is_transposed(args.transB), args.n, args);
  }
  static std::int64_t plane_bytes(const GemmArgs& args) {
    return split_of_a(args).bytes() + split_of_b(args).bytes();
  }

  /// How much of a call is in planes at a time: all of it, or so many matrices, or a part of one.
  static Extents block_of(const GemmArgs& args) {
    constexpr std::int64_t kUnit = 384, kWorthCutting = 4096;  // a multiple of all tiles' edges
    Extents size = {args.m, args.n, args.k, args.batch};
    const auto half = [](std::int64_t x, std::int64_t unit) {
      return ceil_div(x, 2 * unit) * unit;
    };
    while (plane_bytes(part_of(args, {}, size)) > kMostPlaneBytes) {
      std::int64_t& longer = size.m > size.n ? size.m : size.n;
      if (size.batch > 1)
        size.batch = ceil_div(size.batch, 2);
      else if (longer > kWorthCutting)
        longer = half(longer, kUnit);
      else
        size.k = half(size.k, kUnit);
    }
    return size;
  }

  /// f(part) for every block in order.
  template <class F>
  static void for_each_block(const GemmArgs& args, F&& f) {
    const Extents size = block_of(args);
    Extents at = {};
    for (at.batch = 0; at.batch < args.batch; at.batch += size.batch)
      for (at.m = 0; at.m < args.m; at.m += size.m)
        for (at.n = 0; at.n < args.n; at.n += size.n) {
          at.k = 0;
          do {
            f(part_of(
                args, at,
                {std::min(size.m, args.m - at.m), std::min(size.n, args.n - at.n),
                 std::min(size.k, args.k - at.k), std::min(size.batch, args.batch - at.batch)}));
            at.k += size.k;
          } while (at.k < args.k);
        }
  }

  static int split_blocks(const DeviceInfo& device) {
    return std::max(device.compute_units, 1) * kSplitBlocksEach;
  }

  /// The parts of the workspace, from `begin` on.
  struct Places {
    std::int64_t a, b, most_a, most_b, ranges, left, sums, end;
  };
  static Places places_of(const GemmArgs& part, const DeviceInfo& device) {
    Places p;
    p.a = std::int64_t(gemm_pointer_bytes(part, device));
    p.b = p.a + split_of_a(part).bytes();
    p.most_a = p.b + split_of_b(part).bytes();
    constexpr std::int64_t kMostBytes = kScaled<In> ? sizeof(unsigned) : 0;
    p.most_b = p.most_a + split_of_a(part).lines() * kMostBytes;
    p.ranges = ceil_div(p.most_b + split_of_b(part).lines() * kMostBytes, 256) * 256;
    p.left = p.ranges + split_blocks(device) * std::int64_t(sizeof(Ranges));
    p.sums = ceil_div(p.left + std::int64_t(sizeof(unsigned)), 256) * 256;
    // Of the engine's slices and of simt's, which come after them.
    p.end = p.sums + std::max(std::int64_t(plan_of(part, device).sum_bytes),
                              std::int64_t(simt_where_bytes(part, device)));
    return p;
  }

  static std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
    std::int64_t most = 0;
    for_each_block(
        args, [&](const GemmArgs& part) { most = std::max(most, places_of(part, device).end); });
    return std::size_t(most);
  }

  static SplitOperand<Plane> split_operand(const Split& s, const DeviceInput& from, const Input& x,
                                           std::int64_t batch, std::byte* to, unsigned* most) {
    const bool pairs = access_bits(x, batch, sizeof(float)) % 8 == 0;
    return {from,   s.rows, s.cols, x.ld, s.count, s.along_k, pairs, reinterpret_cast<Plane*>(to),
            s.ld(), most};
  }
  static Source source_of(const Split& s, const std::byte* planes) {
    return {planes, s.rows, s.cols, s.ld(), s.rows * s.ld(), s.count * kPlanes, s.along_k};
  }

  static void run_block(const GemmArgs& part, const CudaQueue& queue) {
    const DeviceInfo& device = queue.device();
    const Places places = places_of(part, device);
    const Split split_a = split_of_a(part), split_b = split_of_b(part);
    std::byte* const base = queue.workspace.data();
    Problem<float> p;
    static_cast<GemmProblem<float>&>(p) = gemm_problem<float, float>(part, queue, 1, 1);
    auto* const ranges = reinterpret_cast<Ranges*>(base + places.ranges);
    auto* const most_a = reinterpret_cast<unsigned*>(base + places.most_a);
    auto* const most_b = reinterpret_cast<unsigned*>(base + places.most_b);
    const SplitProblem<Plane> split = {
        split_operand(split_a, p.A, part.A, part.batch, base + places.a, most_a),
        split_operand(split_b, p.B, part.B, part.batch, base + places.b, most_b), ranges};
    p.most_a = most_a;
    p.most_b = most_b;
    p.ranges = ranges;
    p.range_count = split_blocks(device);
    p.left = reinterpret_cast<unsigned*>(base + places.left);
    p.shared_a = split_a.count == 1;
    p.shared_b = split_b.count == 1;
    if constexpr (kScaled<In>) {
      const DeviceGuard guard(device.ordinal);
      cuda_check(
          cudaMemsetAsync(most_a, 0, std::size_t(places.ranges - places.most_a), queue.stream()),
          "clearing of magnitudes");
      launch(queue, find_most_kernel<Plane>, p.range_count, dim3(kSplitThreads), split);
    }
    launch(queue, split_kernel<In>, p.range_count, dim3(kSplitThreads), split);
    const Plan plan = plan_of(part, device);
    set_results<float>(p, part);
    set_schedule(p, plan, shape_of(part, device), base + places.sums);
    run_engine<In>(plan.tile, p, source_of(split_a, base + places.a),
                   source_of(split_b, base + places.b), queue);
    run_simt_where(p.left, p, part, base + places.sums, queue);
  }

  static void run(const GemmArgs& args, Queue& base) {
    const auto& queue = static_cast<const CudaQueue&>(base);
    for_each_block(args, [&](const GemmArgs& part) { run_block(part, queue); });
  }

  /// Null, or why a call is not for the engine.
  static const char* declines_engine(const GemmArgs& args, const DeviceInfo& device) {
    if (const char* reason = hopper::declines_engine(args, device)) return reason;
    if (args.config < 0) return nullptr;
    bool all = true;
    for_each_block(args, [&](const GemmArgs& part) { all &= plan_of(part, device).rows > 0; });
    return all ? nullptr : "the configuration's slices are not for this call";
  }
};

}  // namespace mblas::cuda::gemm::hopper
