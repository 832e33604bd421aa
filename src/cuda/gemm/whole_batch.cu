// Batches of products whose operands fit in a block's shared memory: f32 and cf32, matrices of some
// ten to a hundred rows, and others as large.
//
// Limited by multiply-adds and memory alike, 3 n^2 elements for n^3 of them. What walks along k in
// panels waits for each of them, and spends a third of its instructions on copies, places and
// results. Here operands come whole, in runs of memory, and blocks of which a multiprocessor has
// two to eight hide each other's waiting: between a product's only two barriers all that threads do
// is read from shared memory and multiply.
#include <algorithm>
#include <limits>
#include <tuple>
#include <type_traits>

#include "cuda/gemm/fitted.hpp"
#include "cuda/gemm/fused_bf16x6.hpp"
#include "cuda/gemm/short_k.hpp"
#include "cuda/gemm/simt.hpp"
#include "cuda/gemm/thin_batch.hpp"
#include "cuda/gemm/whole_batch.cuh"
#include "cuda/gemm/whole_rows.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace whole_batch_file {

using whole::Choice;
using whole::kCyclesPerMicrosecond;
using whole_batch::Config;
using whole_batch::Plan;

/// "8x4x2": lines of a thread, products of a block.
const ConfigList<Config>& configs() {
  // Complex numbers have no sizes of their own.
  static const auto list = whole::configs_of<whole_batch::Size>(
      {whole_batch::kFloatVectors, whole_batch::kFloats}, whole_batch::kGroups);
  return list;
}

/// Why it does not take a call, whatever others would take for it.
const char* refuses(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f32 && args.in != DType::cf32) return "for f32 and cf32";
  if (device.capability < 80) return "needs compute capability 8.0";
  if (whole::exceeds_shared(args, device)) return "needs more shared memory";
  if (const char* reason = declines_halfway(args)) return reason;
  return declines_emulation_but_tf32(args, device);
}

/// Why it leaves a call to others, whatever estimates say: they are of strided batches.
const char* leaves(const GemmArgs& args) {
  constexpr std::int64_t kLeast = 4;  // 4³ 100,000 times: tiny 8.9 us, 10.1 here
  if (!whole::is_strided_batch(args)) return "for strided batches";
  return std::max({args.m, args.n, args.k}) <= kLeast ? "for larger matrices" : nullptr;
}

/// The least of what other rows are estimated to take, with the shares of their estimates that were
/// best for 1,300 batches on an H200 of up to 128 rows and columns: 3 to 4 % from the fastest row
/// on the average. `short_k`'s estimate of longer ones is as it is, and `simt`'s of those that fill
/// its tiles.
double others(const GemmArgs& args, const DeviceInfo& device) {
  struct Shares {
    double simt, fitted, short_k, thin_batch;
  };
  constexpr std::int64_t kFull = 48, kLong = 128;
  Shares shares = args.in == DType::f32 ? Shares{1.15, 1, 1.2, 1.3} : Shares{0.95, 1, 1.05, 1.15};
  if (std::min(args.m, args.n) >= kFull) shares.simt = 1;
  if (std::max(args.m, args.n) > kLong) shares.short_k = 1;
  return std::min(
      {shares.simt * simt_microseconds_of_many(args.in, simt_microseconds(args, device)),
       shares.fitted * fitted_cycles(args, device) / kFittedCyclesPerMicrosecond,
       shares.short_k * short_k_microseconds(args, device),
       shares.thin_batch * thin_batch_microseconds(args, device)});
}

/// The choice of least cycles, and what other rows take.
struct Verdict {
  Choice own;
  double others = 0;
};
Verdict verdict(const GemmArgs& args, const DeviceInfo& device, const Plan& plan) {
  const whole_batch::Shape& s = plan.shape;
  const auto in_line = [&](const auto& x, DType type) {
    return access_bits(x, args.batch, size_of(type)) % 16 == 0;
  };
  const std::tuple key(args.in, args.transA, args.transB, args.m, args.n, s.k, s.batch, s.vectors,
                       s.direct, s.x_bytes, s.y_bytes, s.c_bytes, s.copies_in, s.copies_out,
                       in_line(args.A, args.in), in_line(args.B, args.in),
                       in_line(args.C, args.out), s.shared_bytes, s.processors);
  thread_local Memo<std::remove_const_t<decltype(key)>, Verdict> memo;
  return memo(key, [&] { return Verdict{whole_batch::choose(s), others(args, device)}; });
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.config == kOwnChoice)
    if (const char* reason = leaves(args)) return reason;
  if (const char* reason = refuses(args, device)) return reason;
  if (args.batch > std::numeric_limits<int>::max()) return "for fewer matrices";
  const Plan plan(args, device);
  const bool given = args.config >= 0;
  const Verdict found = given ? Verdict{} : verdict(args, device, plan);
  if ((given ? whole::fitting(configs()[args.config], plan.shape) : found.own.config).group == 0)
    return "needs more shared memory or threads";
  if (args.config != kOwnChoice) return nullptr;
  if (is_tf32(args)) return "left to the tensor cores";
  const double own = found.own.cycles / kCyclesPerMicrosecond;
  if (own >= found.others) return "estimated to be slower";
#ifdef MBLAS_HAVE_HOPPER
  // The share that was best for those batches. Looked at last, as it takes a plan. Shorter sums
  // would be short_k's, which comes before it.
  const double share = args.in == DType::f32 ? 0.8 : 1;
  if (args.k > short_k_most_depth(args.in) &&
      own >= share * fused_bf16x6_microseconds(args, device))
    return "estimated to be slower than fused_bf16x6";
#endif
  return nullptr;
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Plan plan(args, queue.device());
  const Config config = args.config >= 0 ? whole::fitting(configs()[args.config], plan.shape)
                                         : verdict(args, queue.device(), plan).own.config;
  if (args.in == DType::f32)
    whole_batch::run_f32(args, plan, config, queue);
  else
    whole_batch::run_cf32(args, plan, config, queue);
}

}  // namespace whole_batch_file

Kernel<GemmArgs> whole_batch() {
  using namespace whole_batch_file;
  return {"whole_batch",
          "batches whose operands fit in shared memory: brought whole, multiplied from there",
          declines,
          gemm_pointer_bytes,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
