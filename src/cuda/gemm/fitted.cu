// Products whose C is one tile or a few of them, f32, cf32 and f64: matrices of some hundred rows,
// in batches or odd. Tiles of fixed sizes are mostly empty there: 65³ takes four of 64×64, and a
// batch of them as many rounds as one of 128³. Here tiles are as large as the matrix, or an even
// share of it.
//
// Limited by memory, 3 n^2 elements for n^3 multiply-adds, and as much by what is no multiply-add:
// of a short k, copies and results are a third of the instructions.
#include <limits>
#include <string>
#include <tuple>

#include "core/config_list.hpp"
#include "cuda/gemm/fitted.cuh"
#include "cuda/gemm/fitted.hpp"
#include "cuda/gemm/simt.hpp"
#include "cuda/gemm/tensor_f64.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace fitted_file {

using fitted::Shape;
using fitted::Tiling;

/// A configuration: how many tiles C is.
struct Config {
  int down, across;
};
/// "2x3".
const ConfigList<Config>& configs() {
  static const auto list = [] {
    constexpr int kMost = 8;
    ConfigList<Config> all;
    for (int down = 1; down <= kMost; ++down)
      for (int across = 1; across <= kMost; ++across)
        all.add({down, across}, std::to_string(down) + "x" + std::to_string(across));
    return all;
  }();
  return list;
}

const fitted::Unit& unit_of(DType type) {
  return type == DType::f64   ? fitted::kDouble
         : type == DType::f32 ? fitted::kFloat
                              : fitted::kComplexFloat;
}

/// Whether C can be written 16 bytes at a time.
bool has_vectors(const Output& c, std::int64_t n, std::int64_t batch, int size) {
  return access_bits(c, batch, size) % 16 == 0 && n * size % 16 == 0;
}

Shape shape_of(const GemmArgs& args, const DeviceInfo& device) {
  const int size = size_of(args.in);
  return {args.m,
          args.n,
          args.k,
          args.batch,
          !is_transposed(args.transA),
          is_transposed(args.transB),
          input_bits(args) % 16 != 0,
          !has_vectors(args.C, args.n, args.batch, size),
          std::max(device.compute_units, 1),
          std::int64_t(device.shared_memory)};
}

/// The configuration's, else the fastest by the model.
Tiling tiling_of(const GemmArgs& args, const DeviceInfo& device) {
  const Shape shape = shape_of(args, device);
  const fitted::Unit& unit = unit_of(args.in);
  if (args.config >= 0) {
    const Config& config = configs()[args.config];
    return fitted::tiling_of(shape, config.down, config.across, unit);
  }
  std::tuple key(args.in, args.m, args.n, args.k, args.batch, shape.along_a, shape.along_b,
                 shape.loose, shape.loose_c, shape.processors, shape.shared_bytes);
  thread_local Memo<decltype(key), Tiling> memo;
  return memo(key, [&] { return fitted::choose(shape, unit); });
}

/// Why it does not take a call, whatever others would take for it.
const char* refuses(const GemmArgs& args, const DeviceInfo& device) {
  constexpr std::int64_t kMostDepth = 1 << 30;
  if (args.in != DType::f32 && args.in != DType::cf32 && args.in != DType::f64)
    return "for f32, cf32 and f64";
  if (device.capability < 80) return "needs compute capability 8.0";
  if (args.k >= kMostDepth) return "for k below 2^30";
  if (args.config == kOwnChoice && args.in != DType::f64 && args.batch == 1)
    return "for batches, if not of doubles";
  if (const char* reason = declines_halfway(args)) return reason;
  if (const char* reason = declines_emulation(args, device)) return reason;
  if (tiling_of(args, device).down == 0)
    return args.config < 0 ? "for C of a few tiles" : "C cannot be cut into so many tiles";
  return nullptr;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (const char* reason = refuses(args, device)) return reason;
  if (args.config != kOwnChoice) return nullptr;
  const double own = tiling_of(args, device).cycles;
  if (args.in != DType::f64)
    return own / kFittedCyclesPerMicrosecond < simt_microseconds(args, device)
               ? nullptr
               : "estimated to be slower than simt";
  constexpr double kTooLow = 1.15;  // by which tensor_f64 estimates a batch
  return own < kTooLow * tensor_f64_cycles(args, device) ? nullptr
                                                         : "estimated to be slower than tensor_f64";
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Shape shape = shape_of(args, queue.device());
  const Tiling tiling = tiling_of(args, queue.device());
  if (args.in == DType::f64)
    fitted::run_f64(args, shape, tiling, queue);
  else
    fitted::run_simt(args, shape, tiling, queue);
}

}  // namespace fitted_file

double fitted_cycles(const GemmArgs& call, const DeviceInfo& device) {
  using namespace fitted_file;
  GemmArgs args = call;
  args.config = kOwnChoice;  // else another kernel's
  if (refuses(args, device)) return std::numeric_limits<double>::infinity();
  return tiling_of(args, device).cycles;
}

Kernel<GemmArgs> fitted() {
  using namespace fitted_file;
  return {"fitted",
          "C as one tile or a few that are cut to its size",
          declines,
          gemm_pointer_bytes,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
