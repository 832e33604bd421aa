// What the rows of the table that multiply float in planes have in common: the parts of a call that
// are in planes at a time, the workspace, the launches.
#pragma once

#include <cmath>

#include "cuda/gemm/hopper/call.cuh"
#include "cuda/gemm/part.hpp"
#include "cuda/gemm/repack.cuh"
#include "cuda/gemm/simt.hpp"
#include "cuda/kept.hpp"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm::hopper {

/// A product of complex numbers, with real factors, as one of their parts: see planes.cuh. Others
/// as they are.
inline GemmArgs by_parts(const GemmArgs& args) {
  GemmArgs real = args;
  if (!is_complex(args.in)) return real;
  real.in = real.out = DType::f32;
  real.n *= 2;
  real.k *= 2;
  const auto widen = [](auto& x) { x.ld *= 2, x.stride *= 2; };
  widen(real.A);
  widen(real.B);
  widen(real.C);
  return real;
}

/// Products of In = Planes<…> by `kTiles`, for the row of that name.
template <class In, const auto& kTiles, const auto& kName>
struct PlaneProduct {
  using Plane = Element<In>;
  static constexpr int kPlanes = kPlanesOf<In>;
  static constexpr int kSplitBlocksEach = 4;  // of a multiprocessor

  static const ConfigList<Config>& configs() {
    static const auto list = config_list(kTiles);
    return list;
  }

  static Shape shape_of(const GemmArgs& args, const DeviceInfo& device) {
    return hopper::shape_of(by_parts(args), kTiles, sizeof(Plane), device);
  }
  static Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
    return hopper::plan_of(args, shape_of(args, device), configs());
  }

  /// The planes of an operand: matrix by matrix, with aligned rows. Those of real numbers lie as
  /// these are stored.
  struct Split {
    std::int64_t rows, cols, count;
    bool along_k;
    bool complex, conjugated;
    Parts parts;

    std::int64_t stored_rows() const { return complex && parts != Parts::Along ? rows / 2 : rows; }
    std::int64_t stored_cols() const { return complex && parts != Parts::Across ? cols / 2 : cols; }

    /// Lines along k, each of which is scaled as one.
    std::int64_t lines() const { return count * (along_k ? rows : cols); }
    std::int64_t ld() const { return aligned_ld(cols, sizeof(Plane)); }
    std::int64_t bytes() const {
      return ceil_div(count * kPlanes * rows * ld() * std::int64_t(sizeof(Plane)), 256) * 256;
    }
  };
  static Split split_of(const Input& x, Op op, bool along_k, Parts parts, std::int64_t outer,
                        const GemmArgs& args) {
    const bool shared = !x.pointers && x.stride == 0;
    const std::int64_t k = by_parts(args).k;
    return {along_k ? outer : k,
            along_k ? k : outer,
            shared ? 1 : args.batch,
            along_k,
            is_complex(args.in),
            is_conjugated(op),
            parts};
  }
  static Split split_of_a(const GemmArgs& args) {
    const bool along_k = !is_transposed(args.transA);
    return split_of(args.A, args.transA, along_k, along_k ? Parts::Along : Parts::Across, args.m,
                    args);
  }
  static Split split_of_b(const GemmArgs& args) {
    return split_of(args.B, args.transB, is_transposed(args.transB), Parts::Twice, by_parts(args).n,
                    args);
  }
  static std::int64_t plane_bytes(const GemmArgs& args) {
    return split_of_a(args).bytes() + split_of_b(args).bytes();
  }
  /// What splitting reads and writes, rows as long as the pieces that warps take of them, though of
  /// short ones not all of that is lost.
  static double split_bytes(const GemmArgs& args) {
    constexpr double kPiece = 256, kMostLost = 2.5;
    const auto of = [&](const Split& s) {
      const double cols = std::max(double(s.stored_cols()), 1.0);
      const double bytes =
          double(s.bytes()) + double(s.count * s.stored_rows()) * cols * size_of(args.in);
      return bytes * std::min(std::ceil(cols / kPiece) * kPiece / cols, kMostLost);
    };
    return of(split_of_a(args)) + of(split_of_b(args));
  }

  /// How much of a call is in planes at a time: all of it, or so many matrices, or a part of one.
  static Extents block_of(const GemmArgs& args) {
    constexpr std::int64_t kUnit = 384, kWorthCutting = 4096;  // a multiple of all tiles' edges
    constexpr std::int64_t kMostOfA = kMostEmulationBytes / 5 * 4;
    Extents size = {args.m, args.n, args.k, args.batch};
    const auto half = [](std::int64_t x, std::int64_t unit) {
      return ceil_div(x, 2 * unit) * unit;
    };
    while (plane_bytes(part_of(args, {}, size)) > kMostEmulationBytes) {
      if (size.batch > 1)
        size.batch = ceil_div(size.batch, 2);
      else if (size.n > kWorthCutting && split_of_a(part_of(args, {}, size)).bytes() < kMostOfA)
        size.n = half(size.n, kUnit);  // A stays in planes from block to block
      else if (std::max(size.m, size.n) > kWorthCutting)
        (size.m > size.n ? size.m : size.n) = half(std::max(size.m, size.n), kUnit);
      else
        size.k = half(size.k, kUnit);
    }
    return size;
  }

  template <class F>
  static void for_each_block(const GemmArgs& args, F&& f) {
    for_each_part(args, block_of(args), f);
  }

  static int split_blocks(const DeviceInfo& device) {
    return std::max(device.compute_units, 1) * kSplitBlocksEach;
  }

  static std::int64_t most_bytes(const Split& s) {
    return kScaled<In> ? ceil_div(s.lines() * std::int64_t(sizeof(unsigned)), 256) * 256 : 0;
  }
  static std::int64_t range_bytes(const DeviceInfo& device) {
    return split_blocks(device) * std::int64_t(sizeof(Ranges));
  }

  /// The parts of the workspace, from `begin` on.
  struct Places {
    std::int64_t a, most_a, ranges, b, most_b, ranges_b, left, sums, end;
  };
  /// What is of op(A) first, where it stays from one part to the next.
  static Places places_of(const GemmArgs& part, const DeviceInfo& device) {
    Places p;
    p.a = std::int64_t(gemm_pointer_bytes(part, device));
    p.most_a = p.a + split_of_a(part).bytes();
    p.ranges = p.most_a + most_bytes(split_of_a(part));
    p.b = ceil_div(p.ranges + range_bytes(device), 256) * 256;
    p.most_b = p.b + split_of_b(part).bytes();
    p.ranges_b = p.most_b + most_bytes(split_of_b(part));
    p.left = p.ranges_b + range_bytes(device);
    p.sums = ceil_div(p.left + std::int64_t(sizeof(unsigned)), 256) * 256;
    p.end = ceil_div(p.sums + std::int64_t(plan_of(part, device).sum_bytes), 256) * 256;
    return p;
  }

  /// Factors that are not real are left to finish().
  static bool finishes(const GemmArgs& args) { return args.alpha.im != 0 || args.beta.im != 0; }
  /// What it is given: the product alone, in C or, where that is read, in memory that is yet to be
  /// found.
  static GemmArgs without_factors(const GemmArgs& args) {
    GemmArgs product = args;
    product.alpha = {1, 0};
    product.beta = {};
    if (args.beta != Scalar{}) product.C = {nullptr, args.n, args.m * args.n};
    return product;
  }

  static std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
    std::int64_t most = 0;
    for_each_block(args, [&](const GemmArgs& part, bool) {
      std::int64_t bytes = 0;
      if (finishes(part)) {
        bytes = places_of(without_factors(part), device).end;
        if (part.beta != Scalar{}) bytes += part.batch * part.m * part.n * size_of(part.out);
      } else {
        bytes = places_of(part, device).end;
      }
      most = std::max(most, bytes);
    });
    return std::size_t(most);
  }

  /// Of an operand, in the workspace or in a plan.
  struct PlaneMemory {
    std::byte* planes;
    unsigned* most;
    Ranges* ranges;
  };
  static SplitOperand<Plane> split_operand(const Split& s, const DeviceInput& from, const Input& x,
                                           std::int64_t batch, const PlaneMemory& to) {
    const bool pairs = access_bits(x, batch, sizeof(float)) % (s.complex ? 16 : 8) == 0;
    return {from,   s.stored_rows(), s.stored_cols(), s.count,
            x.ld,   s.along_k,       pairs,           reinterpret_cast<Plane*>(to.planes),
            s.ld(), to.most,         s.parts,         s.conjugated};
  }
  static Source source_of(const Split& s, const std::byte* planes) {
    return {planes, s.rows, s.cols, s.ld(), s.rows * s.ld(), s.count * kPlanes, s.along_k};
  }

  static void launch_split(const SplitProblem<Plane>& split, bool complex, const CudaQueue& queue) {
    const int blocks = split_blocks(queue.device());
    if constexpr (kScaled<In>) {
      const DeviceGuard guard(queue.device().ordinal);
      const auto clear = [&](const SplitOperand<Plane>& x) {
        const std::int64_t lines = x.count * (x.along_k ? x.rows : x.cols);
        if (lines > 0)
          cuda_check(
              cudaMemsetAsync(x.most, 0, std::size_t(lines) * sizeof(unsigned), queue.stream()),
              "clearing of magnitudes");
      };
      clear(split.a);
      clear(split.b);
      launch(queue, find_most_kernel<Plane>, blocks, dim3(kSplitThreads), split);
    }
    if constexpr (!kScaled<In>)
      if (complex) return launch(queue, split_kernel<In, true>, blocks, dim3(kSplitThreads), split);
    launch(queue, split_kernel<In, false>, blocks, dim3(kSplitThreads), split);
  }

  /// The planes of A or B in the call's plan, filled; elsewhere nullptr.
  static PlaneMemory kept(const GemmArgs& args, bool is_b, const Split& s, const Input& x,
                          const DeviceInput& from, const CudaQueue& queue) {
    if (x.pointers) return {};
    const KeptPlace place =
        kept_place(args, is_b,
                   {kName, x.data, s.rows, s.cols, x.ld, x.stride, s.count, size_of(args.in),
                    s.along_k, queue.device().ordinal, s.conjugated},
                   std::size_t(s.bytes() + most_bytes(s) + range_bytes(queue.device())), queue);
    if (!place.at) return {};
    const PlaneMemory memory = {place.at, reinterpret_cast<unsigned*>(place.at + s.bytes()),
                                reinterpret_cast<Ranges*>(place.at + s.bytes() + most_bytes(s))};
    if (!place.filled) {
      SplitProblem<Plane> split = {{}, {}, memory.ranges};
      split.a.cols = split.b.cols = 1;
      (is_b ? split.b : split.a) = split_operand(s, from, x, args.batch, memory);
      launch_split(split, s.complex, queue);
      set_filled(args);
    }
    return memory;
  }

  /// `whole`: the part is all of the call. `a_stays`: the part before has left A in planes.
  static void run_block(const GemmArgs& part, bool whole, bool a_stays, const CudaQueue& queue) {
    const DeviceInfo& device = queue.device();
    const GemmArgs real = by_parts(part);
    const Places places = places_of(part, device);
    const Split split_a = split_of_a(part), split_b = split_of_b(part);
    std::byte* const base = queue.workspace.data();
    Problem<float> p;
    static_cast<GemmProblem<float>&>(p) = gemm_problem<float, float>(real, queue, 1, 1);
    auto* const ranges_a = reinterpret_cast<Ranges*>(base + places.ranges);
    auto* const ranges = a_stays ? reinterpret_cast<Ranges*>(base + places.ranges_b) : ranges_a;
    PlaneMemory a = {base + places.a, reinterpret_cast<unsigned*>(base + places.most_a), ranges};
    PlaneMemory b = {base + places.b, reinterpret_cast<unsigned*>(base + places.most_b), ranges};
    SplitProblem<Plane> split = {split_operand(split_a, p.A, real.A, part.batch, a),
                                 split_operand(split_b, p.B, real.B, part.batch, b), ranges};
    p.kept_ranges = nullptr;
    if (a_stays) {
      split.a.count = 0;
      p.kept_ranges = ranges_a;  // with those of the first part's B: more is left to simt then
    }
    if (whole && part.k > 0) {
      const PlaneMemory keep = part.keeps_b ? kept(part, true, split_b, real.B, p.B, queue)
                                            : kept(part, false, split_a, real.A, p.A, queue);
      if (keep.planes) {
        (part.keeps_b ? b : a) = keep;
        (part.keeps_b ? split.b : split.a).count = 0;
        p.kept_ranges = keep.ranges;
      }
    }
    p.most_a = a.most;
    p.most_b = b.most;
    p.ranges = ranges;
    p.range_count = split_blocks(device);
    p.left = reinterpret_cast<unsigned*>(base + places.left);
    p.shared_a = split_a.count == 1;
    p.shared_b = split_b.count == 1;
    launch_split(split, split_a.complex, queue);
    const Plan plan = plan_of(part, device);
    set_results<float>(p, real);
    set_schedule(p, plan, shape_of(part, device), base + places.sums);
    run_engine<In>(plan.tile, p, source_of(split_a, a.planes), source_of(split_b, b.planes), queue);
    run_simt_where(p.left, p.A, p.B, p.C, part, queue);
  }

  static void run(const GemmArgs& args, Queue& base) {
    const auto& queue = static_cast<const CudaQueue&>(base);
    for_each_block(args, [&](const GemmArgs& part, bool a_stays) {
      const bool whole =
          part.m == args.m && part.n == args.n && part.k == args.k && part.batch == args.batch;
      if (!finishes(part)) return run_block(part, whole, a_stays, queue);
      GemmArgs product = without_factors(part);
      if (part.beta != Scalar{})
        product.C.data = queue.workspace.data() + places_of(product, queue.device()).end;
      run_block(product, whole, a_stays, queue);
      const Output& S = product.C;
      gemm::finish({part.in,
                    part.out,
                    part.m,
                    part.n,
                    part.k == 0 ? Scalar{} : part.alpha,
                    part.beta,
                    {},
                    {S.data, S.ld, S.stride, S.pointers},
                    part.C,
                    part.batch},
                   base);
    });
  }

  /// Null, or why a call is not for the engine.
  static const char* declines_engine(const GemmArgs& args, const DeviceInfo& device) {
    if (const char* reason = hopper::declines_engine(args, device)) return reason;
    if (args.config < 0) return nullptr;
    bool all = true;
    for_each_block(args,
                   [&](const GemmArgs& part, bool) { all &= plan_of(part, device).rows > 0; });
    return all ? nullptr : "the configuration's slices are not for this call";
  }

  static Kernel<GemmArgs> row(const char* note,
                              const char* (*declines)(const GemmArgs&, const DeviceInfo&)) {
    return {kName, note, declines, workspace_bytes, run, nullptr, configs().names()};
  }
};

}  // namespace mblas::cuda::gemm::hopper
