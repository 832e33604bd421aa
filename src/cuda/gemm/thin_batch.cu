// Batches in which C has at most 16 rows or columns: limited by memory, which has each element of
// the operands once.
//
// Tiles of kernels that bring theirs in pieces along k are mostly empty here, and rows that start
// anywhere come element by element. Here operands come whole, many products to a block, and as they
// lie in memory (thin_batch.cuh): to bring and to write them takes 1.1 to 1.3 times what memory
// takes. They are multiplied on the ordinary cores (thin_batch_simt.cu), doubles and narrow types
// by mma.sync (thin_batch_mma.cu).
#include <algorithm>
#include <limits>

#include "cuda/gemm/short_k.hpp"
#include "cuda/gemm/simt.hpp"
#include "cuda/gemm/tensor_cores.hpp"
#include "cuda/gemm/thin_batch.cuh"
#include "cuda/gemm/thin_batch.hpp"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace thin_batch_file {

constexpr std::int64_t kMostCount = 16;

bool are_runs(const GemmArgs& args) {
  const bool a = is_transposed(args.transA), b = is_transposed(args.transB);
  const auto is_run = [&](const auto& x, std::int64_t rows, std::int64_t length) {
    return tiny::is_run(x, args.batch, rows, length);
  };
  return is_run(args.A, a ? args.k : args.m, a ? args.m : args.k) &&
         is_run(args.B, b ? args.n : args.k, b ? args.k : args.n) && is_run(args.C, args.m, args.n);
}

/// Whether all rows are whole vectors of 16 bytes, which others take at a time.
bool is_in_vectors(const GemmArgs& args) { return operand_bits(args) % 16 == 0; }

/// Whether short_k is faster, which has C's rows in the lanes of a warp: but where products have
/// few rows or columns and there are so many of them that memory limits both.
bool is_for_short_k(const GemmArgs& args, double bytes) {
  constexpr std::int64_t kRow = 64, kFew = 9;
  constexpr double kMany = 68e6;
  return args.n >= kRow && args.k <= short_k_most_depth(args.in) &&
         (bytes < kMany || std::min(args.m, args.n) >= kFew);
}

/// Whether halves are estimated to be faster by the rows that have tiles for the tensor cores:
/// where sums are long enough for those to be full. On an H200 8×128×256 takes 19.2 us here, 436
/// times, and 10.4 by tensor_wgmma.
bool is_for_tensor_cores(const GemmArgs& args, const DeviceInfo& device, double bytes) {
  constexpr double kStart = 3, kRate = 2.8e6, kShare = 1.1;
  return kShare * tensor_cores_microseconds(args, device) < kStart + bytes / kRate;
}

/// Whether other rows are faster: of 5,200 batches of 2 to 100,000 on an H200 this leaves 2 to 3 %
/// of the time on the average. Few products make too few blocks here; of the smallest ones, of
/// short sums and of many multiply-adds without tensor cores other kernels are better. Floats and
/// complex ones are left to what is estimated to be faster.
bool is_slower(const GemmArgs& args, const DeviceInfo& device) {
  if (args.batch < 2) return true;
  constexpr std::int64_t kSmall = 16, kSmallest = 4;
  const std::int64_t k = args.k, length = std::max(args.m, args.n),
                     count = std::min(args.m, args.n);
  const std::int64_t results = length * count, products = results * k;
  const double units = std::max(device.compute_units, 1);
  const double each = double(args.batch) / units;  // products of a multiprocessor
  const double bytes = double((args.m + args.n) * k + results) * size_of(args.in);
  const double groups = each / std::max(1.0, std::floor(40e3 / bytes));  // that fill a block
  const double all = bytes * double(args.batch);
  const bool runs = are_runs(args);
  const bool tf32 = is_tf32(args);
  if (!tf32 && std::max(length, k) <= kSmall && is_in_vectors(args)) return true;
  if (!tf32 && size_of(args.in) > 2 && is_for_short_k(args, all)) return true;
  if (tf32) {
    constexpr std::int64_t kFewResults = 64, kFewProducts = 2000, kThin = 4;
    if (results > kFewResults && count > kThin && products >= kFewProducts) return true;
    if (k < 45)
      return !(runs && groups >= 0.6) && !(each >= 6 && (runs || products < kFewProducts));
    if (groups < 0.5) return results >= 200;
    return count > 14 || products >= 200'000 || !(runs || products < 10'000);
  }
  if (args.in == DType::f32 || args.in == DType::cf32)
    return thin_batch::simt_microseconds(args, device) >=
           std::min(simt_microseconds_of_many(args.in, gemm::simt_microseconds(args, device)),
                    short_k_microseconds(args, device));
  switch (args.in) {
    case DType::f64:
    case DType::cf64:
      if (length <= 32) return true;  // tiny_warp's
      return each < 4 && (groups < 0.8 || (args.in == DType::f64 ? length >= 438 : k >= 45));
    default: {
      if (std::max(length, k) <= kSmallest) return true;
      if (results >= 96 ? !runs || groups < 0.65 : !runs && products >= 8000) return true;
      const bool few = results < 96 && (each < 2 || all < 1e6);
      if (few && !(runs && k >= 256 && args.batch >= 8)) return true;
      return is_for_tensor_cores(args, device, all);  // last: those estimates take the longest
    }
  }
}

/// Whether a block has room for a product.
bool fits(const GemmArgs& args, const DeviceInfo& device) {
  constexpr std::int64_t kMostElements = 1 << 17;
  return std::max({args.m * args.k, args.k * args.n, args.m * args.n}) <= kMostElements &&
         std::size_t(thin_batch::Plan(args).bytes(1)) <= device.shared_memory / 2;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (std::min(args.m, args.n) > kMostCount) return "for at most 16 rows or columns";
  if (args.in == DType::i8) return "for floating point";
  if (args.config != kForced && is_slower(args, device)) return "for batches of many";
  if (!fits(args, device)) return "needs more shared memory";
  if (device.capability < 80) return "needs compute capability 8.0";
  if (const char* reason = declines_halfway(args)) return reason;
  return declines_emulation_but_tf32(args, device);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (args.in == DType::f32 || args.in == DType::cf32)
    thin_batch::run_simt(args, queue);
  else
    thin_batch::run_mma(args, queue);
}

}  // namespace thin_batch_file

double thin_batch_microseconds(const GemmArgs& args, const DeviceInfo& device) {
  using namespace thin_batch_file;
  if (std::min(args.m, args.n) > kMostCount || !fits(args, device))
    return std::numeric_limits<double>::infinity();
  return thin_batch::simt_microseconds(args, device);
}

Kernel<GemmArgs> thin_batch() {
  using namespace thin_batch_file;
  return {"thin_batch", "batches with up to 16 rows or columns: whole operands in shared memory",
          declines, gemm_pointer_bytes, run};
}

}  // namespace mblas::cuda::gemm
