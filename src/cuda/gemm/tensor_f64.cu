// gemm of doubles, real or complex, on the fp64 tensor cores: which tile and how many parts of k.
//
// Ratios to cuBLAS on an H200, kernels alone: tiles of 128×64, two blocks a multiprocessor, 0.93 to
// 0.97 from 2048 up for all pairs of ops and 1.29 for 2047×2049×2045; complex ones of 64×64 1.00
// and 1.09. Where they leave multiprocessors idle, tiles are smaller (256³ 1.5, 512³ 0.85; complex
// 0.8, 0.91), and k is cut into parts that a second kernel adds up in their order: the same bits
// every time.
#include <cmath>
#include <string>
#include <tuple>

#include "core/config_list.hpp"
#include "cuda/gemm/tensor_f64.cuh"
#include "cuda/gemm/tensor_f64.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace tensor_f64_file {

/// A tile, and which share of a multiprocessor's multiply-adds it reaches when all its blocks are
/// busy and when a block is by itself: fitted to measurements on an H200.
template <class Tile_, int kFullPercent, int kAlonePercent>
struct Candidate {
  using Tile = Tile_;
  static constexpr double kFull = kFullPercent / 100.0, kAlone = kAlonePercent / 100.0;
};

template <class T>
struct TilesOf {
  using Complex128 = Complex<double>;
  using type = std::conditional_t<
      is_complex_v<T>,
      std::tuple<Candidate<TensorTile<Complex128, 64, 64, 8, 32, 32, 3, 2>, 99, 77>,
                 Candidate<TensorTile<Complex128, 32, 32, 16, 16, 16, 3, 2, 2>, 93, 85>>,
      std::tuple<Candidate<TensorTile<double, 128, 64, 16, 64, 32, 3, 2>, 98, 82>,
                 Candidate<TensorTile<double, 64, 64, 16, 32, 32, 3, 3>, 92, 78>,
                 Candidate<TensorTile<double, 64, 32, 32, 32, 32, 3, 2, 2>, 78, 72>,
                 Candidate<TensorTile<double, 32, 32, 32, 32, 16, 3, 3, 2>, 54, 57>>>;
};

/// f<Candidate>(number) for each tile.
template <class T, class F>
constexpr void for_each_tile(F&& f) {
  using Tiles = typename TilesOf<T>::type;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (f.template operator()<std::tuple_element_t<i, Tiles>>(int(i)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Tiles>>());
}

/// The other terms of the model, in clocks of a multiprocessor.
struct Cost {
  static constexpr double kMultiplyAdds = 128;  // a clock
  static constexpr double kTile = 2500;         // beginning and end of a tile
  static constexpr double kParts = 12;          // bytes of parts a clock
  static constexpr double kSecondKernel = 5000;
};
constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr std::int64_t kLeastDepth = 64;
constexpr double kMostPartsBytes = 256 << 20;

struct Plan {
  int tile = 0;
  int splits = 1;
  std::int64_t depth = 0;
  double clocks = 0;
};

/// Bytes of one part of every result.
double part_bytes(const GemmArgs& args) {
  return double(size_of(args.out)) * double(args.m) * double(args.n) * double(args.batch);
}

template <class Candidate>
Plan plan_for(const GemmArgs& args, int units, int tile, int splits) {
  using Tile = typename Candidate::Tile;
  constexpr int kProducts = is_complex_v<typename Tile::Element> ? 4 : 1;
  Plan plan;
  plan.tile = tile;
  plan.depth = ceil_div(ceil_div(args.k, splits), Tile::kDepth) * Tile::kDepth;
  plan.splits = args.k == 0 ? 1 : int(ceil_div(args.k, plan.depth));
  const double blocks = double(ceil_div(args.m, Tile::kRows) * ceil_div(args.n, Tile::kCols)) *
                        double(args.batch) * plan.splits;
  const double block =
      double(Tile::kRows) * Tile::kCols * kProducts * double(plan.depth) / Cost::kMultiplyAdds;
  const double full = std::floor(blocks / (units * Tile::kBlocks));
  const double rest = std::ceil((blocks - full * units * Tile::kBlocks) / units);
  plan.clocks = full * (Tile::kBlocks * block / Candidate::kFull + Cost::kTile);
  if (rest > 0)
    plan.clocks +=
        std::max(block / Candidate::kAlone, rest * block / Candidate::kFull) + Cost::kTile;
  if (plan.splits > 1)
    plan.clocks +=
        2 * part_bytes(args) * plan.splits / (Cost::kParts * units) + Cost::kSecondKernel;
  return plan;
}

/// A configuration: the size of a tile and the number of parts.
struct Config {
  int rows, cols, splits;
};
/// Those of the tiles of doubles, among which those of complex ones are: "64x64_parts4".
const ConfigList<Config>& configs() {
  static const auto list = [] {
    ConfigList<Config> all;
    for_each_tile<double>([&]<class Candidate>(int) {
      using Tile = typename Candidate::Tile;
      for (const int splits : kSplits)
        all.add({Tile::kRows, Tile::kCols, splits},
                std::to_string(Tile::kRows) + "x" + std::to_string(Tile::kCols) +
                    (splits > 1 ? "_parts" + std::to_string(splits) : ""));
    });
    return all;
  }();
  return list;
}

/// Is k long enough for so many parts, and are there not too many bytes of them?
bool allows_parts(const GemmArgs& args, int splits) {
  return splits == 1 ||
         (args.k / splits >= kLeastDepth && part_bytes(args) * splits <= kMostPartsBytes);
}

/// That of the configuration, without clocks where the type has no such tile.
template <class T>
Plan plan_of(const GemmArgs& args, int units, const Config& config) {
  Plan plan;
  for_each_tile<T>([&]<class Candidate>(int tile) {
    if (Candidate::Tile::kRows == config.rows && Candidate::Tile::kCols == config.cols)
      plan = plan_for<Candidate>(args, units, tile, config.splits);
  });
  return plan;
}

/// The configuration's, else the fastest by the model above; the same for the same call on the same
/// device.
template <class T>
Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
  const int units = std::max(device.compute_units, 1);
  if (args.config >= 0) return plan_of<T>(args, units, configs()[args.config]);
  Plan best;
  for_each_tile<T>([&]<class Candidate>(int tile) {
    using Tile = typename Candidate::Tile;
    const double tiles = double(ceil_div(args.m, Tile::kRows)) *
                         double(ceil_div(args.n, Tile::kCols)) * double(args.batch);
    for (const int splits : kSplits) {
      // Not into more parts than fill the device once.
      if (!allows_parts(args, splits) ||
          (splits > 1 && tiles * splits > double(units * Tile::kBlocks)))
        break;
      const Plan plan = plan_for<Candidate>(args, units, tile, splits);
      if (best.clocks == 0 || plan.clocks < best.clocks) best = plan;
    }
  });
  return best;
}

Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
  std::tuple key(args.in, args.m, args.n, args.k, args.batch, args.config, device.compute_units);
  thread_local Memo<decltype(key), Plan> memo;
  return memo(key, [&] {
    return args.in == DType::f64 ? plan_of<double>(args, device)
                                 : plan_of<Complex<double>>(args, device);
  });
}

std::size_t parts_bytes(const GemmArgs& args, const Plan& plan) {
  return plan.splits == 1
             ? 0
             : std::size_t(size_of(args.out)) * std::size_t(args.m * args.n * args.batch) *
                   std::size_t(plan.splits);
}

constexpr std::size_t most_shared() {
  std::size_t most = 0;
  const auto consider = [&]<class Candidate>(int) {
    most = std::max(most, Candidate::Tile::template kShared<true, true>);
  };
  for_each_tile<double>(consider);
  for_each_tile<Complex<double>>(consider);
  return most;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f64 && args.in != DType::cf64) return "for f64 and cf64";
  if (device.capability < 80) return "needs fp64 tensor cores: compute capability 8.0";
  if (args.config >= 0) {
    if (plan_of(args, device).clocks == 0) return "has no such tile for the type";
    if (!allows_parts(args, configs()[args.config].splits))
      return "k is too short or C too large for the configuration's parts";
  }
  if (device.shared_memory < most_shared()) return "needs more shared memory";
  if (const char* reason = declines_halfway(args)) return reason;
  return declines_emulation(args, device);
}

std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
  return gemm_pointer_bytes(args, device) + parts_bytes(args, plan_of(args, device));
}

/// C = alpha (the sum of the parts) + beta C.
template <class T>
__global__ void __launch_bounds__(256)
    add_parts_kernel(const __grid_constant__ TensorProblem<T> p) {
  begin_early();
  if (p.where && *p.where == 0) return;
  const std::int64_t matrix = p.m * p.n, all = matrix * p.tiles.batch;
  for (std::int64_t e = blockIdx.x * std::int64_t(256) + threadIdx.x; e < all;
       e += gridDim.x * std::int64_t(256)) {
    T sum = p.parts[e];
    for (int s = 1; s < p.splits; ++s) sum = sum + p.parts[s * all + e];
    const std::int64_t batch = e / matrix, row = (e - batch * matrix) / p.n;
    T* const c = static_cast<T*>(p.C.at(batch));
    store(p, sum, c + row * p.ldc + (e - batch * matrix - row * p.n));
  }
}

template <class Tile, class T>
void run_tiles(const TensorProblem<T>& problem, const GemmArgs& args, const CudaQueue& queue) {
  TensorProblem<T> p = problem;
  p.tiles = {ceil_div(p.m, Tile::kRows), ceil_div(p.n, Tile::kCols), args.batch};
  const auto blocks = unsigned(std::min<std::int64_t>(p.tiles.count() * p.splits, 1 << 30));
  const DeviceInfo& device = queue.device();
  const std::int64_t each = ceil_div(blocks, std::max(device.compute_units, 1));
  const auto run = [&]<bool kAAlongK, bool kBAlongK>() {
    launch_early(After::Anything, queue, tensor_f64_kernel<Tile, kAAlongK, kBAlongK>, blocks,
                 Tile::kThreads,
                 shared_bytes_for(each, Tile::template kShared<kAAlongK, kBAlongK>, device), p);
  };
  const bool a = !is_transposed(args.transA), b = is_transposed(args.transB);
  if (a && b)
    run.template operator()<true, true>();
  else if (a)
    run.template operator()<true, false>();
  else if (b)
    run.template operator()<false, true>();
  else
    run.template operator()<false, false>();
}

template <class T>
void run_as(const GemmArgs& args, const CudaQueue& queue, std::byte* parts,
            const unsigned* where = nullptr) {
  const Plan plan = plan_of(args, queue.device());
  const TensorProblem<T> p = {gemm_problem<T, T>(args, queue, 1, 1),
                              args.A.ld,
                              args.B.ld,
                              std::max<std::int64_t>(plan.depth, 1),
                              plan.splits,
                              reinterpret_cast<T*>(parts),
                              where};
  for_each_tile<T>([&]<class Candidate>(int tile) {
    if (tile == plan.tile) run_tiles<typename Candidate::Tile>(p, args, queue);
  });
  if (plan.splits > 1)
    launch_early(After::Kernel, queue, add_parts_kernel<T>,
                 unsigned(std::min<std::int64_t>(ceil_div(p.m * p.n * args.batch, 256), 1 << 16)),
                 256, 0, p);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  std::byte* const parts = queue.workspace.data() + gemm_pointer_bytes(args, queue.device());
  if (args.in == DType::f64)
    run_as<double>(args, queue, parts);
  else
    run_as<Complex<double>>(args, queue, parts);
}

}  // namespace tensor_f64_file

std::size_t tensor_f64_where_bytes(const GemmArgs& args, const DeviceInfo& device) {
  using namespace tensor_f64_file;
  return parts_bytes(args, plan_of(args, device));
}

void run_tensor_f64_where(const unsigned* where, const GemmArgs& args, std::byte* workspace,
                          const CudaQueue& queue) {
  using namespace tensor_f64_file;
  run_as<double>(args, queue, workspace, where);
}

Kernel<GemmArgs> tensor_f64() {
  using namespace tensor_f64_file;
  return {"tensor_f64",
          "doubles and complex ones on tensor cores, copied one by one, k in parts if few tiles",
          declines,
          workspace_bytes,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
