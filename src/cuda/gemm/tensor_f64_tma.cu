// gemm of doubles, real or complex, on Hopper: the operands as the copy engine takes them, and the
// choice of tiles. Left to tensor_f64 are operands whose rows do not start at multiples of 16
// bytes, small products, and those for which its tiles and parts of k are estimated to be faster.
#include <limits>
#include <string>
#include <tuple>

#include "core/config_list.hpp"
#include "cuda/gemm/fills.hpp"
#include "cuda/gemm/fitted.hpp"
#include "cuda/gemm/hopper/boxed.hpp"
#include "cuda/gemm/hopper/panels.cuh"
#include "cuda/gemm/tensor_f64.hpp"
#include "cuda/gemm/tensor_f64_tma_plan.hpp"
#include "cuda/gemm/tensor_f64_tma_run.cuh"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace tensor_f64_tma_file {

/// Those of doubles and then the complex one's: "64x48", "64x48_two", "64x48_cut", "64x48_join2".
const ConfigList<tma64::Config>& configs() {
  static const auto list = [] {
    ConfigList<tma64::Config> all;
    const auto add = [&](int, const tma64::Config& c) {
      all.add(c, std::to_string(c.x) + "x" + std::to_string(c.y) + (c.blocks > 1 ? "_two" : "") +
                     (c.cut ? "_cut" : "") +
                     (c.slices > 1 ? "_join" + std::to_string(c.slices) : ""));
    };
    tma64::for_each_config(tma64::kTiles, 1, add);
    tma64::for_each_config(tma64::kComplexTiles, 4, add);
    return all;
  }();
  return list;
}

/// X is op(B) where that lets loads bring neighbours in an operand of the instruction.
bool is_swapped(const GemmArgs& args) {
  return args.in == DType::f64 && !is_transposed(args.transB);
}

tma64::Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
  const bool real = args.in == DType::f64, swapped = is_swapped(args);
  const bool a_along_k = !is_transposed(args.transA), b_along_k = is_transposed(args.transB);
  tma64::Shape shape = {
      real ? std::span<const tma64::TileInfo>(tma64::kTiles) : tma64::kComplexTiles,
      swapped ? args.n : args.m,
      swapped ? args.m : args.n,
      args.k,
      args.batch,
      real ? 1 : 4,
      std::max(device.compute_units, 1),
      size_of(args.in),
      access_bits(args.C, args.batch, size_of(args.out)) % 16 != 0,
      swapped ? b_along_k : a_along_k,
      swapped ? a_along_k : b_along_k};
  if (device.memory_rate > 0) shape.memory = device.memory_rate;
  if (args.config >= 0) return tma64::choose(shape, &configs()[args.config]);
  std::tuple key(real, shape.x, shape.y, shape.k, shape.batch, shape.units, shape.loose_c,
                 shape.along_x, shape.along_y, shape.memory);
  thread_local Memo<decltype(key), tma64::Plan> memo;
  return memo(key, [&] { return tma64::choose(shape); });
}

/// An estimate for the kernels that the call would be left to.
double cycles_of_others(const GemmArgs& args, const DeviceInfo& device) {
  const double by_elements = tensor_f64_cycles(args, device);
  if (args.in == DType::f64) {
    // In batches whose tiles begin and end all the time, fitted is faster than it estimates.
    const double share = fills_device(args, device) && args.k <= 128 ? 0.92 : 1;
    // Of rows that are no whole sectors tensor_f64 reads more: best for 256 products on an H200.
    constexpr std::uintptr_t kSector = 32;
    const double more = args.batch == 1 && input_bits(args) % kSector != 0 ? 1.1 : 1;
    return std::min(more * by_elements, share * fitted_cycles(args, device));
  }
  // Where complex rows begin within lines, tensor_f64 asks for more of them than its model knows.
  // Shares that were best for 1,700 products on an H200.
  constexpr std::uintptr_t kLine = 128;
  constexpr std::int64_t kFew = 16, kSome = 24;  // rows or columns
  const std::int64_t fewest = std::min(args.m, args.n);
  const double share = args.batch > 1 ? (fewest <= kSome ? 1.2 : 1.1) : fewest <= kFew ? 1 : 1.1;
  return by_elements * (input_bits(args) % kLine == 0 ? 1 : share);
}

/// Why it does not take a call, whatever others would take for it.
const char* refuses(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f64 && args.in != DType::cf64) return "for f64 and cf64";
  if (const char* reason = hopper::declines_boxes(args, device)) return reason;
  if (input_bits(args) % 16 != 0) return "for rows at multiples of 16 bytes";
  return declines_emulation(args, device);
}

/// Below it the smaller tiles of tensor_f64, and their shorter way to the first product, win.
bool is_large(const GemmArgs& args, const DeviceInfo& device) {
  constexpr double kLeast = 200.0 * 200 * 200;
  const bool counts_all = args.in == DType::cf64 || fills_device(args, device);
  const double matrices = counts_all ? double(args.batch) : 1;
  return double(args.m) * double(args.n) * double(args.k) * matrices >= kLeast;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (const char* reason = refuses(args, device)) return reason;
  if (args.config == kOwnChoice && !is_large(args, device)) return "for larger products";
  const tma64::Plan plan = plan_of(args, device);
  if (plan.tile < 0)
    return args.config < 0 ? "for fewer tiles" : "the configuration's tiles are not for this call";
  if (args.config == kOwnChoice && tma64::is_left_to(cycles_of_others(args, device), plan))
    return "estimated to be slower than tensor_f64 or fitted";
  return nullptr;
}

std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
  return gemm_pointer_bytes(args, device) + std::size_t(plan_of(args, device).part_bytes);
}

template <class T>
void run_as(const GemmArgs& args, const CudaQueue& queue) {
  using namespace tma64;
  constexpr int kDoubles = int(sizeof(T)) / 8;  // elements of the maps
  const Plan plan = plan_of(args, queue.device());
  const auto tiles = kDoubles == 1 ? std::span<const TileInfo>(kTiles) : kComplexTiles;
  const TileInfo& t = tiles[std::size_t(plan.tile)];
  const bool swapped = is_swapped(args);
  Problem<T> p;
  static_cast<GemmProblem<T>&>(p) = gemm_problem<T, T>(args, queue, 1, 1);

  const auto panels = [&](const DeviceInput& data, const Input& x, bool along_k, std::int64_t side,
                          int box, bool& batch) {
    batch = x.stride != 0 && args.batch > 1;
    return hopper::panels_of(side, box, 1, along_k, t.depth, [&](int rows) {
      return hopper::tensor_map({CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8, data.data,
                                 along_k ? side : args.k, (along_k ? args.k : side) * kDoubles,
                                 x.ld * kDoubles, x.stride * kDoubles, batch ? args.batch : 1,
                                 rows});
    });
  };
  const bool a_along_k = !is_transposed(args.transA), b_along_k = is_transposed(args.transB);
  hopper::Panels& panels_a = swapped ? p.panels_y : p.panels_x;
  hopper::Panels& panels_b = swapped ? p.panels_x : p.panels_y;
  panels_a =
      panels(p.A, args.A, a_along_k, args.m, swapped ? t.y : t.x, swapped ? p.batch_y : p.batch_x);
  panels_b =
      panels(p.B, args.B, b_along_k, args.n, swapped ? t.x : t.y, swapped ? p.batch_x : p.batch_y);
  p.tiles_x = int(ceil_div(swapped ? args.n : args.m, t.x));
  p.tiles_y = int(ceil_div(swapped ? args.m : args.n, t.y));
  const std::uintptr_t bits_c = access_bits(args.C, args.batch, sizeof(T));
  p.vectors_c = bits_c % 16 == 0;
  p.whole_c = bits_c % (kDoubles == 1 ? 16 : 128) == 0;
  p.parts = reinterpret_cast<T*>(queue.workspace.data() + gemm_pointer_bytes(args, queue.device()));
  p.skips = plan.skips;
  p.slices = plan.slices;
  p.schedule = schedule_of(plan.tiles, plan.whole, plan.steps, plan.ranges);
  run_tile(plan.tile, p, swapped ? b_along_k : a_along_k, swapped ? a_along_k : b_along_k, swapped,
           queue);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (args.in == DType::f64)
    run_as<double>(args, queue);
  else
    run_as<Complex<double>>(args, queue);
}

}  // namespace tensor_f64_tma_file

double tensor_f64_tma_cycles(const GemmArgs& call, const DeviceInfo& device) {
  using namespace tensor_f64_tma_file;
  GemmArgs args = call;
  args.config = kOwnChoice;  // else another kernel's
  const double none = std::numeric_limits<double>::infinity();
  if (refuses(args, device) || !is_large(args, device)) return none;
  const tma64::Plan plan = plan_of(args, device);
  return plan.tile < 0 ? none : plan.cycles;
}

Kernel<GemmArgs> tensor_f64_tma() {
  using namespace tensor_f64_tma_file;
  return {"tensor_f64_tma",
          "doubles and complex ones on Hopper, fed by the copy engine, the last tiles cut along k",
          declines,
          workspace_bytes,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
