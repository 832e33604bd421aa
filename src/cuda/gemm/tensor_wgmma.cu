// gemm of half, bfloat16, int8 and, as TF32, of float on Hopper's tensor cores: operands as the
// engine in hopper/ takes them, and the choice of its tiles.
//
// The copy engine takes matrices whose rows start at multiples of 16 bytes, the tensor cores those
// of 1 and 4 bytes with k innermost. Others are copied, transposed where need be, before: a reading
// and a writing of the operand, at the speed of memory.
#include <string>

#include "core/config_list.hpp"
#include "cuda/gemm/hopper/plan.hpp"
#include "cuda/gemm/hopper/run.cuh"
#include "cuda/gemm/repack.cuh"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace {

constexpr double kMostSumBytes = 256 << 20;
constexpr std::int64_t kMostCoordinate = std::int64_t{1} << 31;

/// "128x256_cluster2_slices3".
const ConfigList<hopper::Config>& configs() {
  static const auto list = [] {
    ConfigList<hopper::Config> all;
    hopper::for_each_config([&](const hopper::Config& c) {
      const hopper::TileInfo& t = hopper::kTiles[c.tile];
      std::string name = std::to_string(t.rows) + "x" + std::to_string(t.cols);
      if (c.cluster > 1) name += "_cluster" + std::to_string(c.cluster);
      if (c.slices > 1) name += "_slices" + std::to_string(c.slices);
      all.add(c, std::move(name));
    });
    return all;
  }();
  return list;
}

hopper::Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
  const hopper::Shape shape = {args.m,
                               args.n,
                               args.batch,
                               ceil_div(args.k * size_of(args.in), hopper::kDepthBytes),
                               device.compute_units,
                               kMostSumBytes};
  thread_local Memo<hopper::Shape, hopper::Plan> memo;
  if (args.config < 0) return memo(shape, [&] { return hopper::choose(shape); });
  const hopper::Config& c = configs()[args.config];
  const hopper::Plan plan = hopper::plan_of(shape, c);
  return hopper::fits(shape, c, plan) ? plan : hopper::Plan{};
}

/// An operand as it is stored, and its copy where that is what the engine takes.
struct Source {
  std::int64_t rows, cols;
  bool along_k;
  bool copied;
  Repacked copy;

  std::size_t bytes() const { return copied ? copy.bytes() : 0; }
};

Source source_of(const Input& x, bool along_k, std::int64_t rows, std::int64_t cols,
                 const GemmArgs& args) {
  const int size = size_of(args.in);
  const bool transposed = size != 2 && !along_k;
  const bool scattered = x.pointers && args.batch > 1;
  const bool copied =
      args.k > 0 && (transposed || scattered || access_bits(x, args.batch, size) % 16 != 0);
  return {rows, cols, along_k || transposed, copied,
          Repacked::of(x, rows, cols, args.batch, size, transposed)};
}
Source source_of_a(const GemmArgs& args) {
  const bool turned = is_transposed(args.transA);
  return source_of(args.A, !turned, turned ? args.k : args.m, turned ? args.m : args.k, args);
}
Source source_of_b(const GemmArgs& args) {
  const bool turned = is_transposed(args.transB);
  return source_of(args.B, turned, turned ? args.n : args.k, turned ? args.k : args.n, args);
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  const bool tf32 = args.in == DType::f32 && args.compute == Compute::TF32;
  if (!tf32 && args.in != DType::f16 && args.in != DType::bf16 && args.in != DType::i8)
    return "for f16, bf16 and i8, and for f32 as TF32";
  if (device.capability != 90 || !runs_clusters(device))
    return "needs compute capability 9.0 and code for it";
  if (device.shared_memory < hopper::Large::kShared) return "needs more shared memory";
  if (std::max({args.m, args.n, args.k, args.batch}) >= kMostCoordinate)
    return "for sizes of less than 2^31";
  const int size = size_of(args.in);
  if (!hopper::is_mappable(args.A, args.batch, size) ||
      !hopper::is_mappable(args.B, args.batch, size) ||
      !hopper::is_mappable(args.C, args.batch, size_of(args.out)))
    return "for distances of less than 2^40 bytes";
  if (plan_of(args, device).rows == 0)
    return args.config < 0 ? "for fewer tiles" : "the configuration's slices are not for this call";
  return tf32 ? nullptr : declines_emulation(args, device);
}

std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
  return gemm_pointer_bytes(args, device) + source_of_a(args).bytes() + source_of_b(args).bytes() +
         std::size_t(plan_of(args, device).sum_bytes);
}

template <class In, class From, class Out>
void run_typed(const GemmArgs& args, const CudaQueue& queue) {
  using Acc = hopper::Sum<In>;
  const hopper::Plan plan = plan_of(args, queue.device());
  std::byte* free = queue.workspace.data() + gemm_pointer_bytes(args, queue.device());
  hopper::Problem<Acc> p;
  static_cast<GemmProblem<Acc>&>(p) = gemm_problem<From, Out>(args, queue, 1, 1);
  const auto prepare = [&](DeviceInput& x, bool& shared, const Input& from, const Source& s) {
    hopper::Source as = {x.data, s.rows, s.cols, from.ld, from.stride, args.batch, s.along_k};
    shared = s.copy.count == 1;
    if (s.copied) {
      x = repack(x, from.ld, access_bits(from, args.batch, sizeof(From)), s.copy, free, queue);
      free += s.bytes();
      as = {x.data,       s.copy.rows, s.copy.cols, s.copy.ld(), s.copy.rows * s.copy.ld(),
            s.copy.count, s.along_k};
    }
    if (shared) as.count = 1;
    return as;
  };
  const hopper::Source a = prepare(p.A, p.shared_a, args.A, source_of_a(args));
  const hopper::Source b = prepare(p.B, p.shared_b, args.B, source_of_b(args));
  const std::uintptr_t bits = access_bits(args.C, args.batch, sizeof(Out));
  p.wide = std::is_same_v<Out, hopper::WideOut<In>>;
  p.way = bits % 16 == 0 && !p.C.pointers ? hopper::Way::Boxes
          : bits % (2 * sizeof(Out)) == 0 ? hopper::Way::Pairs
                                          : hopper::Way::Elements;
  if (p.way == hopper::Way::Boxes)
    p.map_c = hopper::tensor_map(
        {sizeof(Out) == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16 : CU_TENSOR_MAP_DATA_TYPE_UINT32,
         int(sizeof(Out)), p.C.data, args.m, args.n, args.C.ld, args.C.stride, args.batch, 64});
  p.sums = reinterpret_cast<Acc*>(free);
  constexpr int kHeight = 2048;  // rows of C that are gone through together
  hopper::Schedule& s = p.schedule;
  s.rows = unsigned(plan.rows);
  s.cols = unsigned(plan.cols);
  s.cluster = unsigned(plan.cluster);
  s.height = unsigned(kHeight / (hopper::kTiles[plan.tile].rows * plan.cluster));
  s.whole = unsigned(plan.whole);
  s.slices = unsigned(plan.slices);
  s.items = unsigned(plan.items(args.batch));
  s.steps = int(ceil_div(args.k * std::int64_t(sizeof(From)), hopper::kDepthBytes));
  s.slice_steps = plan.slice_steps;
  hopper::run_engine<In>(plan.tile, p, a, b, queue);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const bool wide = args.out == DType::f32;
  if (args.in == DType::i8)
    run_typed<std::int8_t, std::int8_t, std::int32_t>(args, queue);
  else if (args.in == DType::f32)
    run_typed<hopper::Tf32, float, float>(args, queue);
  else if (args.in == DType::f16)
    wide ? run_typed<__half, __half, float>(args, queue)
         : run_typed<__half, __half, __half>(args, queue);
  else
    wide ? run_typed<__nv_bfloat16, __nv_bfloat16, float>(args, queue)
         : run_typed<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16>(args, queue);
}

}  // namespace

Kernel<GemmArgs> tensor_wgmma() {
  return {"tensor_wgmma",
          "half, bfloat16, int8, TF32 on Hopper's tensor cores, fed by the copy engine",
          declines,
          workspace_bytes,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
