// gemm of doubles, real or complex, on the fp64 tensor cores: which tile and how many parts of k.
//
// Ratios to cuBLAS: tiles of 128×64, two blocks a multiprocessor, 1.41 for 4095×4097×4093. Where
// they leave multiprocessors idle, tiles are smaller (in graphs 256³ 1.14, 384³ 1.02, 512³ 1.01 to
// 1.08; complex 1.08, 1.10, 0.98), and k is cut into parts that a second kernel adds up in their
// order: the same bits every time.
#include <string>
#include <tuple>

#include "core/config_list.hpp"
#include "cuda/gemm/majors.cuh"
#include "cuda/gemm/tensor_f64.cuh"
#include "cuda/gemm/tensor_f64.hpp"
#include "cuda/gemm/tensor_f64_plan.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace tensor_f64_file {

using mma64::Plan;
using mma64::Shape;

/// Those that the model knows by their numbers.
template <class T>
struct TilesOf {
  using Complex128 = Complex<double>;
  using type = std::conditional_t<is_complex_v<T>,
                                  std::tuple<TensorTile<Complex128, 64, 64, 8, 32, 32, 3, 2>,
                                             TensorTile<Complex128, 64, 32, 16, 32, 16, 3, 1, 2>,
                                             TensorTile<Complex128, 32, 32, 16, 16, 16, 3, 2, 2>,
                                             TensorTile<Complex128, 32, 16, 32, 16, 16, 3, 2, 4>,
                                             TensorTile<Complex128, 16, 16, 32, 16, 16, 3, 3, 4>>,
                                  std::tuple<TensorTile<double, 128, 64, 16, 64, 32, 3, 2>,
                                             TensorTile<double, 64, 64, 16, 32, 32, 3, 3>,
                                             TensorTile<double, 64, 32, 32, 32, 32, 3, 2, 2>,
                                             TensorTile<double, 32, 32, 32, 32, 16, 3, 3, 2>,
                                             TensorTile<double, 32, 16, 32, 16, 16, 3, 2, 4>,
                                             TensorTile<double, 16, 16, 32, 16, 16, 3, 4, 4>>>;
};

/// f<Tile>(number) for each tile.
template <class T, class F>
constexpr void for_each_tile(F&& f) {
  using Tiles = typename TilesOf<T>::type;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (f.template operator()<std::tuple_element_t<i, Tiles>>(int(i)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Tiles>>());
}

template <class T>
constexpr bool are_tiles_of(std::span<const mma64::TileInfo> infos) {
  bool same = std::tuple_size_v<typename TilesOf<T>::type> == infos.size();
  for_each_tile<T>([&]<class Tile>(int i) {
    const mma64::TileInfo& t = infos[std::size_t(i)];
    same = same && Tile::kRows == t.rows && Tile::kCols == t.cols && Tile::kDepth == t.depth &&
           Tile::kBlocks == t.blocks;
  });
  return same;
}
static_assert(are_tiles_of<double>(mma64::kTiles) &&
              are_tiles_of<Complex<double>>(mma64::kComplexTiles));

Shape shape_of(const GemmArgs& args, const DeviceInfo& device) {
  const bool real = args.in == DType::f64;
  return {real ? std::span<const mma64::TileInfo>(mma64::kTiles) : mma64::kComplexTiles,
          args.m,
          args.n,
          args.k,
          args.batch,
          real ? 1 : 4,
          std::max(device.compute_units, 1),
          size_of(args.in),
          memory_rate_of(device)};
}

/// A configuration: the size of a tile and the number of parts.
struct Config {
  int rows, cols, splits;
};
/// Those of the tiles of doubles, among which those of complex ones are: "64x64_parts4".
const ConfigList<Config>& configs() {
  static const auto list = [] {
    ConfigList<Config> all;
    for (const mma64::TileInfo& t : mma64::kTiles)
      for (const int splits : mma64::kSplits)
        all.add({t.rows, t.cols, splits},
                std::to_string(t.rows) + "x" + std::to_string(t.cols) +
                    (splits > 1 ? "_parts" + std::to_string(splits) : ""));
    return all;
  }();
  return list;
}

/// The configuration's, else the fastest by the model; the same for the same call on the same
/// device.
Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
  const Shape shape = shape_of(args, device);
  if (args.config >= 0) {
    const Config& config = configs()[args.config];
    for (int tile = 0; tile < int(shape.tiles.size()); ++tile) {
      const mma64::TileInfo& t = shape.tiles[std::size_t(tile)];
      if (t.rows == config.rows && t.cols == config.cols)
        return mma64::plan_of(shape, tile, config.splits);
    }
    return {};
  }
  std::tuple key(args.in, args.m, args.n, args.k, args.batch, device.compute_units, shape.memory);
  thread_local Memo<decltype(key), Plan> memo;
  return memo(key, [&] { return mma64::choose(shape); });
}

std::size_t parts_bytes(const GemmArgs& args, const Plan& plan) {
  return plan.splits == 1
             ? 0
             : std::size_t(size_of(args.out)) * std::size_t(args.m * args.n * args.batch) *
                   std::size_t(plan.splits);
}

constexpr std::size_t most_shared() {
  std::size_t most = 0;
  const auto consider = [&]<class Tile>(int) {
    most = std::max(most, Tile::template kShared<true, true>);
  };
  for_each_tile<double>(consider);
  for_each_tile<Complex<double>>(consider);
  return most;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f64 && args.in != DType::cf64) return "for f64 and cf64";
  if (device.capability < 80) return "needs fp64 tensor cores: compute capability 8.0";
  if (args.config >= 0) {
    if (plan_of(args, device).tile < 0) return "has no such tile for the type";
    if (!mma64::allows_parts(shape_of(args, device), configs()[args.config].splits))
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

/// Whether pairs of doubles lie at multiples of 16 bytes. The first step along k takes what is more
/// than whole steps, so that those after it begin at an odd place where k is odd.
bool has_pairs(const GemmArgs& args) { return input_bits(args) % 16 == 0 && args.k % 2 == 0; }

template <class Tile, class T>
void run_tiles(const TensorProblem<T>& problem, const GemmArgs& args, const CudaQueue& queue) {
  TensorProblem<T> p = problem;
  p.tiles = {ceil_div(p.m, Tile::kRows), ceil_div(p.n, Tile::kCols), args.batch};
  const auto blocks = unsigned(std::min<std::int64_t>(p.tiles.count() * p.splits, 1 << 30));
  with_majors(args, [&]<bool kAAlongK, bool kBAlongK>() {
    const auto launch_by = [&](auto kernel) {
      launch_evenly(queue, kernel, blocks, Tile::kThreads,
                    Tile::template kShared<kAAlongK, kBAlongK>, p);
    };
    if constexpr (Tile::kWidens)
      if (has_pairs(args)) return launch_by(tensor_f64_kernel<Tile, kAAlongK, kBAlongK, 2>);
    launch_by(tensor_f64_kernel<Tile, kAAlongK, kBAlongK, 1>);
  });
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
                              access_bits(args.C, args.batch, sizeof(T)) % sizeof(T) == 0,
                              reinterpret_cast<T*>(parts),
                              where};
  for_each_tile<T>([&]<class Tile>(int tile) {
    if (tile == plan.tile) run_tiles<Tile>(p, args, queue);
  });
  if (plan.splits > 1)
    launch_early(queue, add_parts_kernel<T>,
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

double tensor_f64_cycles(const GemmArgs& args, const DeviceInfo& device) {
  return tensor_f64_file::plan_of(args, device).cycles;
}

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
