// gemm of doubles through int8 on Hopper's tensor cores, by Ozaki scheme II: rows of op(A) and
// columns of op(B) are scaled to integers of such a size that every sum of products is less than
// half of the product of the moduli, and known by its residues. Those are products of the
// operands' residues, matrices of int8; the engine stores the residues of its sums as bytes.
// ozaki/moduli.hpp names the source, docs/ACCURACY.md has the bound. A product of operands that are
// not finite is left, on the device, to tensor_f64, which is launched in any case and otherwise
// does nothing.
//
// Limit: the engine's, with fifteen products of int8, and memory's in the passes before and after:
// 31 bytes for each element of A and B, 23 for one of C. A call that tolerates larger errors has
// fewer moduli, and all of it is less in proportion. The engine's batch of products writes
// bytes instead of sums of 32 bits, and residues of A are multiplied by what the way back needs.
//
// Measured on an H200 against cuBLAS's DGEMM: 4096³ 1.33 for all pairs of ops, 8192³ 1.6, 16384³
// 1.3 to 1.5, 4095×4097×4093 1.70; 2048³ 0.90, 1024³ 0.50; 4096³ with a tolerance of 1e-9 1.83.
// Of 1.76 ms of kernels at 4096³ the products take 1.31, norms and scales 0.08, the splitting 0.22
// and the joining 0.14.
#include <array>

#include "cuda/gemm/hopper/call.cuh"
#include "cuda/gemm/ozaki/passes.cuh"
#include "cuda/gemm/part.hpp"
#include "cuda/gemm/tensor_f64.hpp"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace tensor_ozaki_file {

using ozaki::kCount;
constexpr std::int64_t kRowUnit = 16;  // bytes that the copy engine wants rows at multiples of

/// How many moduli, of a call or a part of it; kCount + 1 where it tolerates less than all leave.
int count_of(const GemmArgs& args) {
  return args.tolerance > 0 ? ozaki::count_for(args.tolerance, std::min(args.k, ozaki::kMostDepth))
                            : kCount;
}

const ozaki::Tables& tables_of(int count) {
  static const auto all = [] {
    std::array<ozaki::Tables, kCount + 1> tables = {};
    for (int i = ozaki::kFewest; i <= kCount; ++i) tables[std::size_t(i)] = ozaki::tables_of(i);
    return tables;
  }();
  return all[std::size_t(count)];
}

std::int64_t padded(std::int64_t x) { return ceil_div(x, kRowUnit) * kRowUnit; }

hopper::Shape shape_of(const GemmArgs& part, int count, const DeviceInfo& device) {
  const double lines = hopper::lines_of_row(std::uintptr_t(padded(part.k)), true);
  return {hopper::kResidueTiles,
          int(std::size(hopper::kResidueTiles)),
          part.m,
          part.n,
          count,
          ceil_div(part.k, hopper::kDepthBytes),
          device.compute_units,
          0,
          true,
          false,
          lines,
          lines};
}

/// Of k, so that rows that lie next to each other occupy the device.
int parts_of(std::int64_t rows, std::int64_t k, bool along_k, const DeviceInfo& device) {
  constexpr std::int64_t kBlocksEach = 8, kShortest = 64;  // blocks of a multiprocessor
  if (along_k) return 1;
  const std::int64_t blocks = ceil_div(rows, ozaki::kNormRows);
  return int(std::clamp<std::int64_t>(kBlocksEach * device.compute_units / blocks, 1,
                                      ceil_div(k, kShortest)));
}

/// The parts of the workspace: first what blocks of the same rows share.
struct Places {
  std::int64_t planes_a, squares_a, scales_a, words, planes_b, squares_b, scales_b, planes_c,
      native, end = 0;

  Places(const GemmArgs& part, int count, const DeviceInfo& device) {
    const auto take = [&](std::int64_t& place, std::int64_t bytes) {
      place = end;
      end += ceil_div(bytes, 256) * 256;
    };
    const std::int64_t n = padded(part.n), k = padded(part.k);
    const auto squares = [&](std::int64_t rows, bool along_k) {
      return rows * parts_of(rows, part.k, along_k, device) * std::int64_t(sizeof(ozaki::Squares));
    };
    take(planes_a, count * part.m * k);
    take(squares_a, squares(part.m, !is_transposed(part.transA)));
    take(scales_a, part.m * std::int64_t(sizeof(int)));
    take(words, 3 * std::int64_t(sizeof(unsigned)));
    take(planes_b, count * n * k);
    take(squares_b, squares(part.n, is_transposed(part.transB)));
    take(scales_b, part.n * std::int64_t(sizeof(int)));
    take(planes_c, count * part.m * n);
    take(native, std::int64_t(tensor_f64_where_bytes(part, device)));
  }
};

/// How much of a product is in planes at a time: as few blocks of rows as possible, as the planes
/// of B are made for each of them anew.
Extents block_of(const GemmArgs& args, int count, const DeviceInfo& device) {
  constexpr std::int64_t kUnit = 256, kLeast = 2048;
  const auto piece = [](std::int64_t x, std::int64_t pieces) {
    return std::min(x, ceil_div(x, pieces * kUnit) * kUnit);
  };
  const auto fits = [&](const Extents& size) {
    const std::int64_t n = padded(size.n);
    return count * ((size.m + n) * padded(size.k) + size.m * n) <= kMostEmulationBytes &&
           Places(part_of(args, {}, size), count, device).end <= kMostEmulationBytes;
  };
  for (std::int64_t cuts_k = ceil_div(args.k, ozaki::kMostDepth);; cuts_k *= 2)
    for (std::int64_t cuts_m = 1;; ++cuts_m) {
      Extents size = {piece(args.m, cuts_m), 0, piece(args.k, cuts_k), 1};
      for (std::int64_t cuts_n = 1; size.n == 0 || size.n > kLeast; ++cuts_n) {
        size.n = piece(args.n, cuts_n);
        if (fits(size)) return size;
      }
      if (size.m <= kLeast) break;
    }
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f64) return "for f64";
  if (args.compute != Compute::OzakiFP64) return "computes through residues of int8 only";
  if (count_of(args) > kCount) return "tolerates smaller errors only than its moduli leave";
  return hopper::declines_engine(args, device);
}

std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
  if (args.k == 0) return 0;
  std::int64_t most = 0;
  const GemmArgs one = part_of(args, {}, {args.m, args.n, args.k, 1});  // matrix of a batch
  const int count = count_of(args);
  for_each_part(one, block_of(one, count, device), [&](const GemmArgs& part, bool) {
    most = std::max(most, Places(part, count, device).end);
  });
  return std::size_t(most);
}

void run_block(const GemmArgs& part, int count, bool has_a, const CudaQueue& queue) {
  const DeviceInfo& device = queue.device();
  const Places at(part, count, device);
  std::byte* const base = queue.workspace.data();
  const auto place = [&]<class T>(T*& p, std::int64_t offset) {
    p = reinterpret_cast<T*>(base + offset);
  };
  unsigned* words = nullptr;
  place(words, at.words);

  const auto operand = [&](const Input& x, bool along_k, std::int64_t rows) {
    ozaki::Operand o;
    o.data = static_cast<const double*>(x.data);
    o.rows = rows;
    o.k = part.k;
    o.ld = x.ld;
    o.along_k = along_k;
    o.pairs = access_bits(x, 1, sizeof(double)) % 16 == 0;
    o.parts = parts_of(rows, part.k, along_k, device);
    o.plane_rows = rows;
    o.plane_ld = padded(part.k);
    return o;
  };
  ozaki::Passes passes = {operand(part.A, !is_transposed(part.transA), part.m),
                          operand(part.B, is_transposed(part.transB), part.n), words + 2,
                          tables_of(count)};
  ozaki::Operand &a = passes.a, &b = passes.b;
  b.plane_rows = padded(part.n);
  b.is_b = true;
  place(a.planes, at.planes_a);
  place(b.planes, at.planes_b);
  place(a.squares, at.squares_a);
  place(b.squares, at.squares_b);
  place(a.scales, at.scales_a);
  place(b.scales, at.scales_b);
  a.flag = words;
  b.flag = words + 1;

  hopper::Problem<std::uint32_t> p = {};
  p.m = part.m;
  p.n = part.n;
  p.k = part.k;
  p.boxes = true;
  const hopper::Source of_c = {base + at.planes_c,    part.m, b.plane_rows, b.plane_rows,
                               part.m * b.plane_rows, count,  true};
  constexpr int kBoxRows = 64;
  p.map_c = of_c.map(CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, kBoxRows);
  const hopper::Shape shape = shape_of(part, count, device);
  const hopper::Plan plan = hopper::plan_of(part, shape, {});
  hopper::set_schedule(p, plan, shape, nullptr);
  const auto source = [&](const ozaki::Operand& x) {
    return hopper::Source{x.planes, x.plane_rows, x.k, x.plane_ld, x.plane_size(), count, true};
  };
  const hopper::Source source_a = source(a), source_b = source(b);

  if (has_a) a.rows = a.plane_rows = 0;
  constexpr std::int64_t kMostBlocks = 1 << 30;
  const dim3 threads(ozaki::kThreads);
  const auto pass = [&](void (*kernel)(ozaki::Passes), std::int64_t blocks) {
    launch(queue, kernel, std::min(blocks, kMostBlocks), threads, passes);
  };
  pass(ozaki::norms_kernel, ozaki::norm_blocks(a) + ozaki::norm_blocks(b));
  pass(ozaki::scales_kernel, ceil_div(a.rows + b.rows, ozaki::kThreads));
  pass(ozaki::split_kernel, ozaki::split_blocks(a) + ozaki::split_blocks(b));
  hopper::run_engine<hopper::Residues>(plan.tile, p, source_a, source_b, queue);

  ozaki::JoinProblem join;
  static_cast<GemmProblem<double>&>(join) = gemm_problem<double, double>(part, queue, 1, 1);
  place(join.planes, at.planes_c);
  join.plane_ld = b.plane_rows;
  join.plane_size = part.m * b.plane_rows;
  join.scales_a = a.scales;
  join.scales_b = b.scales;
  join.left = passes.left;
  join.pairs = access_bits(part.C, 1, sizeof(double)) % 16 == 0;
  join.tables = passes.tables;
  launch(queue, ozaki::join_kernel,
         std::min(ceil_div(part.m, ozaki::kWarps) * ceil_div(b.plane_rows, ozaki::kJoinCols),
                  kMostBlocks),
         threads, join);
  run_tensor_f64_where(passes.left, part, base + at.native, queue);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (args.k == 0) {  // C = beta C, for which nothing is read
    for (std::int64_t entry = 0; entry < args.batch; ++entry)
      run_tensor_f64_where(nullptr, part_of(args, {0, 0, 0, entry}, {args.m, args.n, 0, 1}),
                           nullptr, queue);
    return;
  }
  const int count = count_of(args);
  for_each_part(args, block_of(args, count, queue.device()),
                [&](const GemmArgs& part, bool has_a) { run_block(part, count, has_a, queue); });
}

}  // namespace tensor_ozaki_file

Kernel<GemmArgs> tensor_ozaki() {
  using namespace tensor_ozaki_file;
  return {"tensor_ozaki", "double through residues of int8 on Hopper's tensor cores", declines,
          workspace_bytes, run};
}

}  // namespace mblas::cuda::gemm
