// IEEE fp32 on Hopper, fed by the copy engine: which operand lies how in a tile, what is copied
// before, and whether the call is left to simt, whose tiles are of other sizes too.
#include <string>
#include <tuple>

#include "core/config_list.hpp"
#include "cuda/gemm/hopper/boxed.hpp"
#include "cuda/gemm/repack.cuh"
#include "cuda/gemm/simt.hpp"
#include "cuda/gemm/simt_tma.cuh"
#include "cuda/gemm/simt_tma_plan.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace simt_tma_file {

constexpr bool kFilled = false;  // copies end in the last 16 bytes of their rows as they happen to

const ConfigList<tma32::Config>& configs() {
  static const auto list = [] {
    ConfigList<tma32::Config> all;
    for (const bool cut : {false, true}) all.add({cut}, cut ? "128x256_cut" : "128x256");
    return all;
  }();
  return list;
}

/// An operand as the kernel takes it.
struct Source {
  bool along_k, copied;
  Repacked copy;

  std::size_t bytes() const { return copied ? copy.bytes() : 0; }
};

/// S lies along its side: one that runs along k is transposed on the way.
Source source_of(const Input& x, bool along_k, std::int64_t side, const GemmArgs& args, bool is_s) {
  const int size = size_of(args.in);
  const bool transposed = is_s && along_k;
  const bool stays = access_bits(x, args.batch, size) % 16 == 0;
  return {along_k && !transposed, transposed || !stays,
          Repacked::of(x, along_k ? side : args.k, along_k ? args.k : side, args.batch, size,
                       transposed)};
}

/// What the kernel is to do. A is H where it runs along k: of two that do, the one that is S has to
/// be copied.
struct Call {
  bool swapped = false;  ///< S is op(B)
  Source s = {}, h = {};
  tma32::Plan plan;
  double microseconds = 0;

  Call() = default;
  Call(const GemmArgs& args, const DeviceInfo& device) : Call(args, device, runs_along_k(args)) {
    const bool both = swapped && is_transposed(args.transB);
    if (!both) return;
    const Call other(args, device, false);
    if (other.microseconds < microseconds) *this = other;
  }

 private:
  static bool runs_along_k(const GemmArgs& args) { return !is_transposed(args.transA); }

  Call(const GemmArgs& args, const DeviceInfo& device, bool swaps) : swapped(swaps) {
    const Source a = source_of(args.A, runs_along_k(args), args.m, args, !swaps);
    const Source b = source_of(args.B, is_transposed(args.transB), args.n, args, swaps);
    s = swaps ? b : a;
    h = swaps ? a : b;
    const tma32::Shape shape = {swaps ? args.n : args.m,
                                swaps ? args.m : args.n,
                                args.k,
                                args.batch,
                                std::max(device.compute_units, 1),
                                h.along_k,
                                swaps,
                                memory_rate_of(device)};
    plan = tma32::choose(shape, args.config >= 0 ? &configs()[args.config] : nullptr);
    Repacked copies[2];
    std::size_t count = 0;
    for (const Source* x : {&s, &h})
      if (x->copied) copies[count++] = x->copy;
    microseconds = plan.microseconds + repack_microseconds(std::span(copies, count), kFilled);
  }
};

Call call_of(const GemmArgs& args, const DeviceInfo& device) {
  if (args.config >= 0) return {args, device};
  const auto key_of = [&](const Input& x) {
    return std::tuple(access_bits(x, args.batch, size_of(args.in)) % 16 == 0, x.stride == 0);
  };
  const std::tuple key(args.m, args.n, args.k, args.batch, args.transA, args.transB, key_of(args.A),
                       key_of(args.B), device.compute_units, device.memory_rate);
  thread_local Memo<std::remove_const_t<decltype(key)>, Call> memo;
  return memo(key, [&] { return Call(args, device); });
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32) return "for f32";
  if (const char* reason = hopper::declines_boxes(args, device)) return reason;
  if (const char* reason = declines_emulation_but_tf32(args, device)) return reason;
  // Spares calls of few microseconds two estimates: simt is faster for all of them.
  constexpr double kLeast = 2.5e8;
  if (args.config == kOwnChoice &&
      double(args.m) * double(args.n) * double(args.k) * double(args.batch) < kLeast)
    return "for larger products";
  const Call call = call_of(args, device);
  if (call.plan.tiles == 0)
    return args.config < 0 ? "for fewer tiles" : "the configuration's tiles are not for this call";
  if (args.config == kOwnChoice && call.microseconds >= simt_microseconds(args, device))
    return "estimated to be slower than simt";
  return nullptr;
}

std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
  const Call call = call_of(args, device);
  return gemm_pointer_bytes(args, device) + call.s.bytes() + call.h.bytes() +
         std::size_t(call.plan.part_bytes);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Call call = call_of(args, queue.device());
  tma32::Problem p;
  static_cast<GemmProblem<float>&>(p) = gemm_problem<float, float>(args, queue, 1, 1);
  std::byte* free = queue.workspace.data() + gemm_pointer_bytes(args, queue.device());

  RepackJob jobs[2];
  std::size_t job_count = 0;
  const auto prepare = [&](const DeviceInput& data, const Input& x, const Source& source, bool is_s,
                           bool& batch) {
    const Repacked& copy = source.copy;
    hopper::BoxedMatrices boxes = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                                   4,
                                   data.data,
                                   copy.transposed ? copy.cols : copy.rows,
                                   copy.transposed ? copy.rows : copy.cols,
                                   x.ld,
                                   x.stride,
                                   copy.count,
                                   0};
    if (source.copied) {
      jobs[job_count++] = {data, x.ld, access_bits(x, args.batch, 4), copy, free, kFilled};
      boxes.data = free;
      boxes.rows = copy.rows, boxes.cols = copy.cols;
      boxes.ld = copy.ld(), boxes.stride = copy.rows * copy.ld();
      free += copy.bytes();
    }
    batch = copy.count > 1;
    const int side = is_s ? tma32::kSideS : tma32::kSideH;
    boxes.box_rows = source.along_k ? side : tma32::kDepth;
    boxes.box_bytes = (source.along_k ? tma32::kDepth : side) * 4;
    return hopper::tensor_map(boxes);
  };
  const bool swapped = call.swapped;
  p.map_s = prepare(swapped ? p.B : p.A, swapped ? args.B : args.A, call.s, true, p.batch_s);
  p.map_h = prepare(swapped ? p.A : p.B, swapped ? args.A : args.B, call.h, false, p.batch_h);
  repack(std::span(jobs, job_count), queue);

  const tma32::Plan& plan = call.plan;
  p.tiles_s = int(ceil_div(swapped ? args.n : args.m, tma32::kSideS));
  p.tiles_h = int(ceil_div(swapped ? args.m : args.n, tma32::kSideH));
  p.schedule = schedule_of(plan.tiles, plan.whole, plan.steps, plan.ranges);
  p.vectors_c = access_bits(args.C, args.batch, size_of(args.out)) % 16 == 0;
  p.parts = reinterpret_cast<float*>(free);
  tma32::run_tiles(p, call.h.along_k, swapped, queue);
}

}  // namespace simt_tma_file

Kernel<GemmArgs> simt_tma() {
  using namespace simt_tma_file;
  return {"simt_tma",
          "fp32 tiles of 128x256 on Hopper, fed by the copy engine, the last ones cut along k",
          declines,
          workspace_bytes,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
