// gemm of float, real or complex, in planes of bfloat16 that are made on the way: hopper/fused.cuh.
#include <limits>
#include <string>

#include "core/config_list.hpp"
#include "cuda/gemm/fitted.hpp"
#include "cuda/gemm/fused_bf16x6.hpp"
#include "cuda/gemm/hopper/fused.cuh"
#include "cuda/gemm/part.hpp"
#include "cuda/gemm/simt.hpp"
#include "cuda/gemm/tensor_bf16x6.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace fused_bf16x6_file {

using fused::Plan;

struct Config {
  int tile, parts;
};

/// "48_parts4", "96_both".
const ConfigList<Config>& configs() {
  static const ConfigList<Config> list = [] {
    ConfigList<Config> all;
    for (int tile = 0; tile < int(std::size(fused::kTiles)); ++tile)
      for (int parts = 1; parts <= fused::kMostParts; parts += std::max(parts / 3, 1)) {
        const fused::TileInfo& t = fused::kTiles[tile];
        all.add({tile, parts}, std::to_string(t.cols) + (t.both ? "_both" : "") +
                                   (parts > 1 ? "_parts" + std::to_string(parts) : ""));
      }
    return all;
  }();
  return list;
}

bool rows_are_long(const GemmArgs& args) { return args.m >= args.n; }
int floats_of(const GemmArgs& args) { return size_of(args.in) / int(sizeof(float)); }
const Input& short_operand(const GemmArgs& args) { return rows_are_long(args) ? args.B : args.A; }
const Input& long_operand(const GemmArgs& args) { return rows_are_long(args) ? args.A : args.B; }
bool is_shared(const GemmArgs& args) {
  const Input& x = short_operand(args);
  return args.batch == 1 || (!x.pointers && x.stride == 0);
}

fused::Shape shape_of(const GemmArgs& args, const DeviceInfo& device) {
  const int floats = floats_of(args), size = size_of(args.in);
  const bool of_a = rows_are_long(args);
  const bool a_along_k = !is_transposed(args.transA), b_along_k = is_transposed(args.transB);
  const Input& x = long_operand(args);
  return {std::max(args.m, args.n),
          std::min(args.m, args.n) * floats,
          args.k * floats,
          args.batch,
          is_shared(args),
          access_bits(x, args.batch, size) % 16 == 0 ? 16 : size,
          of_a ? a_along_k : b_along_k,
          of_a ? b_along_k : a_along_k,
          is_complex(args.in),
          std::max(device.compute_units, 1),
          memory_rate_of(device) * 1e-6};
}

Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
  const fused::Shape shape = shape_of(args, device);
  if (args.config >= 0) {
    const Config& c = configs()[args.config];
    return {c.tile, c.parts, 0};
  }
  thread_local Memo<decltype(shape.key()), Plan> memo;
  return memo(shape.key(), [&] { return fused::choose(shape); });
}

/// The parts of the workspace, by where they begin.
struct Places {
  std::size_t sums, images, end;
};

Places places_of(const GemmArgs& args, const Plan& plan, const DeviceInfo& device) {
  const auto aligned = [](std::size_t x) { return (x + 255) / 256 * 256; };
  const fused::Shape shape = shape_of(args, device);
  const fused::TileInfo& t = fused::kTiles[plan.tile];
  const fused::Tiling tiling = tiling_of(shape, t);
  const std::int64_t sums =
      plan.parts > 1 ? tiling.rows * tiling.cols * plan.parts * args.batch : 0;
  const std::int64_t images = t.both ? 0 : shape.short_matrices() * tiling.cols * tiling.steps;
  Places p;
  p.sums = aligned(gemm_pointer_bytes(args, device));
  p.images = p.sums + std::size_t(sums * t.rows() * t.cols * int(sizeof(float)));
  p.end = p.images + std::size_t(images * fused::image_bytes(t.cols));
  return p;
}

std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
  return places_of(args, plan_of(args, device), device).end;
}

/// Why it does not take a call, whatever others would take for it.
const char* refuses(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::cf32) return "for f32 and cf32";
  if (args.compute != Compute::Default && args.compute != Compute::BF16x6)
    return "computes in bfloat16 planes only";
  if (const char* reason = declines_halfway(args)) return reason;
  if (!runs_hopper(device)) return "needs compute capability 9.0 and code for it";
  if (device.shared_memory < std::size_t(fused::room_of(1))) return "needs more shared memory";
  // docs/ACCURACY.md: shorter sums need the bound of BF16x6.
  constexpr std::int64_t kShortest = 16;
  if (args.k * floats_of(args) < kShortest) return "for longer sums";
  // What kernels count in 32 bits: items, rows of images, bytes of a panel of an operand.
  constexpr std::int64_t kMost = std::int64_t{1} << 31, kMostRows = 256;
  const fused::Shape shape = shape_of(args, device);
  const std::int64_t steps = ceil_div(shape.depth, fused::kDepth);
  const std::int64_t tiles = ceil_div(shape.length, 64) * ceil_div(shape.width, 16) * shape.batch;
  if (std::max(shape.depth, shape.width) >= kMost || tiles >= kMost / fused::kMostParts ||
      (shape.width + 128) * steps >= kMost / shape.batch ||
      std::max(args.A.ld, args.B.ld) >= kMost / kMostRows / size_of(args.in))
    return "for smaller products";
  return nullptr;
}
/// What else, which takes a plan.
const char* refuses_bytes(const GemmArgs& args, const DeviceInfo& device) {
  return std::int64_t(workspace_bytes(args, device)) > kMostEmulationBytes
             ? "would take too much workspace"
             : nullptr;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (const char* reason = refuses(args, device)) return reason;
  if (args.config != kOwnChoice) return refuses_bytes(args, device);
  double simt = std::numeric_limits<double>::infinity(), others = simt;
  if (args.compute == Compute::Default) {
    // Nothing is worth a look that others do in the time of the launches.
    constexpr double kLeast = 6;
    const double one = simt_microseconds(args, device);
    if (one < kLeast) return "for longer products";
    // Longer sums along neither operand's rows take simt longer: best for 243 products.
    constexpr std::int64_t kLong = 800;
    constexpr double kAcross = 1.2;
    const bool across = is_transposed(args.transA) && !is_transposed(args.transB);
    const bool is_longer = args.in == DType::f32 && args.batch == 1 && args.k >= kLong && across;
    simt = (is_longer ? kAcross : 1) * simt_microseconds_of_many(args.in, one);
    others = fitted_cycles(args, device) / kFittedCyclesPerMicrosecond;
  }
  const double planes = tensor_bf16x6_microseconds(args, device);
  // A plan has that one's planes, which takes less time then.
  if (args.keeper && planes < std::min(simt, others)) return "for calls without a plan";
  // Short sums take longer than estimated. Of the others' estimates these have launches that
  // nothing overlaps; and the least of many plans takes longer than it is estimated to.
  constexpr std::int64_t kShort = 32;
  constexpr double kTooLowIfShort = 1.15, kTooHigh = 1.5, kTooLow = 1.04;
  // Where launches do not overlap two take longer; complex products are longer.
  const double least_saved = args.in == DType::f32 ? 0.6 : 0;
  const double own = (args.k <= kShort ? kTooLowIfShort : 1) * plan_of(args, device).microseconds;
  if (simt < own + least_saved || std::min(others, planes) < kTooHigh + kTooLow * own)
    return "estimated to be slower than simt, fitted or tensor_bf16x6";
  return refuses_bytes(args, device);
}

template <class T>
void run_as(const GemmArgs& args, const CudaQueue& queue) {
  const DeviceInfo& device = queue.device();
  const Plan plan = plan_of(args, device);
  const Places places = places_of(args, plan, device);
  const fused::Shape shape = shape_of(args, device);
  const bool of_a = rows_are_long(args);
  fused::Problem<T> p;
  static_cast<GemmProblem<T>&>(p) = gemm_problem<T, T>(args, queue, 1, 1);
  const fused::Side a = {p.A, p.a.row, p.a.col, p.conjugate_a};
  const fused::Side b = {p.B, p.b.col, p.b.row, p.conjugate_b};
  p.rows = of_a ? a : b;
  p.cols = of_a ? b : a;
  p.length = shape.length;
  p.count = int(std::min(args.m, args.n));
  p.c = of_a ? Strides{p.ldc, 1} : Strides{1, p.ldc};
  p.parts = plan.parts;
  std::byte* const base = queue.workspace.data();
  p.sums = reinterpret_cast<T*>(base + places.sums);
  p.images = base + places.images;
  const fused::TileInfo& t = fused::kTiles[plan.tile];
  const fused::Tiling tiling = tiling_of(shape, t);
  p.steps = int(tiling.steps);
  p.row_tiles = unsigned(tiling.rows);
  p.col_tiles = unsigned(tiling.cols);
  p.items = p.row_tiles * p.col_tiles * unsigned(p.parts * args.batch);
  p.each = p.steps / p.parts;
  p.more = p.steps % p.parts;
  p.shared_images = shape.shared;
  const std::int64_t chunks =
      shape.short_matrices() * tiling.cols * tiling.steps * t.cols * (fused::kDepth / 8);
  constexpr std::int64_t kMostBlocks = 2048;
  p.image_blocks =
      unsigned(std::clamp<std::int64_t>(ceil_div(chunks, fused::kImageThreads), 1, kMostBlocks));
  fused::run_fused<T>(plan.tile, shape.copy_bytes == 16, p, queue);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (args.in == DType::f32)
    run_as<float>(args, queue);
  else
    run_as<Complex<float>>(args, queue);
}

}  // namespace fused_bf16x6_file

double fused_bf16x6_microseconds(const GemmArgs& args, const DeviceInfo& device) {
  using namespace fused_bf16x6_file;
  GemmArgs own = args;
  own.config = kOwnChoice;
  return declines(own, device) ? std::numeric_limits<double>::infinity()
                               : plan_of(own, device).microseconds;
}

Kernel<GemmArgs> fused_bf16x6() {
  using namespace fused_bf16x6_file;
  return {"fused_bf16x6",
          "float, real or complex, as planes of bfloat16 that are made on the way",
          declines,
          workspace_bytes,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
