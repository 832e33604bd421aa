// Batches of products whose operands fit in a block's shared memory, on the tensor cores: f64,
// cf64, TF32, half and bfloat16, matrices of some ten to a hundred rows.
//
// Limited by memory, with multiply-adds hardly fewer. Tiles of other rows are larger than such
// products are, 64 for 33 rows, and their panels along k come one after the other. Here operands
// come whole, as in `whole_batch`, and warps have tiles of the sizes that fit a product best.
#include <algorithm>
#include <limits>
#include <tuple>
#include <type_traits>

#include "cuda/gemm/fitted.hpp"
#include "cuda/gemm/short_k.hpp"
#include "cuda/gemm/tensor_batch.cuh"
#include "cuda/gemm/tensor_batch_halves.cuh"
#include "cuda/gemm/tensor_f64.hpp"
#include "cuda/gemm/tensor_mma.hpp"
#include "cuda/gemm/thin_batch.hpp"
#include "cuda/gemm/whole_rows.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace tensor_batch_file {

using tensor_batch::Config;
using tensor_batch::Plan;
using whole::Choice;
using whole::kCyclesPerMicrosecond;

/// "32x16x2": of a warp, products of a block.
const ConfigList<Config>& configs() {
  static const auto list = whole::configs_of<tensor_batch::Size>(
      {tensor_batch::kSizes, tensor_batch::kHalfSizes, tensor_batch::kFloatSizes,
       tensor_batch::kComplexSizes},
      tensor_batch::kGroups);
  return list;
}

bool is_half(const GemmArgs& args) { return args.in == DType::f16 || args.in == DType::bf16; }

/// Why it does not take a call, whatever others would take for it.
const char* refuses(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f64 && args.in != DType::cf64 && !is_tf32(args) && !is_half(args))
    return "for f64, cf64, TF32, half and bfloat16";
  if (device.capability < 80) return "needs compute capability 8.0";
  if (whole::exceeds_shared(args, device)) return "needs more shared memory";
  if (const char* reason = declines_halfway(args)) return reason;
  return declines_emulation_but_tf32(args, device);
}

/// Why it leaves a call to others, whatever estimates say: they are of strided batches, and there
/// are none of tiny_warp and thin_batch.
const char* leaves(const GemmArgs& args, const DeviceInfo& device) {
  if (!whole::is_strided_batch(args)) return "for strided batches";
  constexpr std::int64_t kWarp = 32, kHalf = 16, kMany = 4, kThin = 4;
  constexpr double kLeast = 20 * 20 * 20, kLeastOfHalves = 5500, kLeastOfTf32 = 500;
  constexpr const char* kSmall = "for larger matrices";
  const std::int64_t fewest = std::min(args.m, args.n);
  const double products = double(args.m) * double(args.n) * double(args.k);
  if (is_half(args)) {
    constexpr std::int64_t kShort = 28;
    constexpr double kFewResults = 32;
    const bool of_warp = std::max({args.m, args.n, args.k}) <= kWarp && input_bits(args) % 16 == 0;
    const bool thin =
        fewest <= kHalf && (args.k <= kShort || double(args.m) * double(args.n) <= kFewResults);
    return products < kLeastOfHalves || of_warp || thin ? kSmall : nullptr;
  }
  if (is_tf32(args)) return products < kLeastOfTf32 || fewest <= kThin ? kSmall : nullptr;
  const bool small = products < kLeast;
  if (std::max(args.m, args.n) > kWarp) return nullptr;
  const bool few = args.batch < kMany * device.compute_units;
  return small || few || fewest < kHalf || args.in == DType::cf64 ? kSmall : nullptr;
}

const tensor_batch::Rates& rates_of(DType in) {
  return in == DType::f64    ? tensor_batch::kDoubleRates
         : in == DType::cf64 ? tensor_batch::kComplexRates
         : in != DType::f32  ? tensor_batch::kHalfRates
                             : tensor_batch::kTf32Rates;
}

/// The least of what other rows are estimated to take, with the shares of their estimates that were
/// best for 1,160 batches on an H200.
double others(const GemmArgs& args, const DeviceInfo& device) {
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](double share, double microseconds) {
    least = std::min(least, share * microseconds);
  };
  if (is_tf32(args) || is_half(args)) {
    consider(is_half(args) ? 1.2 : 1.05, tensor_mma_microseconds(args, device));
    if (is_tf32(args)) {
      consider(1.2, thin_batch_microseconds(args, device));
      consider(1.2, short_k_microseconds(args, device));
    }
#ifdef MBLAS_HAVE_HOPPER
    consider(1, tensor_wgmma_microseconds(args, device));
#endif
    return least;
  }
  const bool real = args.in == DType::f64;
  consider(real ? 1.06 : 1.2, tensor_f64_cycles(args, device) / kTensorF64CyclesPerMicrosecond);
#ifdef MBLAS_HAVE_HOPPER
  consider(real ? 1.2 : 1, tensor_f64_tma_cycles(args, device) / kTensorF64CyclesPerMicrosecond);
#endif
  consider(1, short_k_microseconds(args, device));
  if (real) consider(1, fitted_cycles(args, device) / kFittedCyclesPerMicrosecond);
  return least;
}

/// The choice of least cycles, and what other rows take.
struct Verdict {
  Choice own;
  double others = 0;
};
template <class Plan>
Verdict verdict(const GemmArgs& args, const DeviceInfo& device, const Plan& plan) {
  const tensor_batch::Shape& s = plan.shape;
  const auto place = [&](const auto& x, DType type) {
    return access_bits(x, args.batch, size_of(type)) % 16;
  };
  const std::tuple key(args.in, args.out, args.transA, args.transB, s.m, s.n, s.k, s.batch,
                       s.a_bytes, s.b_bytes, s.c_bytes, s.copies_in, s.copies_out, args.A.ld,
                       args.B.ld, place(args.A, args.in), place(args.B, args.in),
                       place(args.C, args.out), s.shared_bytes, s.processors);
  thread_local Memo<std::remove_const_t<decltype(key)>, Verdict> memo;
  return memo(key, [&] {
    const auto reads_of = [&](const Config& config) { return plan.reads_of(config); };
    return Verdict{tensor_batch::choose(s, rates_of(args.in), reads_of), others(args, device)};
  });
}

/// f(plan) with that of the call's type.
template <class F>
decltype(auto) with_plan(const GemmArgs& args, const DeviceInfo& device, F&& f) {
  return is_half(args) ? f(tensor_batch::HalfPlan(args, device)) : f(Plan(args, device));
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.config == kOwnChoice)
    if (const char* reason = leaves(args, device)) return reason;
  if (const char* reason = refuses(args, device)) return reason;
  if (args.batch > std::numeric_limits<int>::max()) return "for fewer matrices";
  return with_plan(args, device, [&](const auto& plan) -> const char* {
    const bool given = args.config >= 0;
    const Verdict found = given ? Verdict{} : verdict(args, device, plan);
    if ((given ? whole::fitting(configs()[args.config], plan.shape) : found.own.config).group == 0)
      return "needs more shared memory or threads";
    if (args.config != kOwnChoice) return nullptr;
    return found.own.cycles / kCyclesPerMicrosecond < found.others ? nullptr
                                                                   : "estimated to be slower";
  });
}

void run_plan(const GemmArgs& args, const Plan& plan, const Config& config,
              const CudaQueue& queue) {
  if (args.in == DType::f64)
    tensor_batch::run_f64(args, plan, config, queue);
  else if (args.in == DType::cf64)
    tensor_batch::run_cf64(args, plan, config, queue);
  else
    tensor_batch::run_tf32(args, plan, config, queue);
}
void run_plan(const GemmArgs& args, const tensor_batch::HalfPlan& plan, const Config& config,
              const CudaQueue& queue) {
  if (args.in == DType::bf16)
    tensor_batch::run_bf16(args, plan, config, queue);
  else
    tensor_batch::run_f16(args, plan, config, queue);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  with_plan(args, queue.device(), [&](const auto& plan) {
    run_plan(args, plan,
             args.config >= 0 ? whole::fitting(configs()[args.config], plan.shape)
                              : verdict(args, queue.device(), plan).own.config,
             queue);
  });
}

}  // namespace tensor_batch_file

Kernel<GemmArgs> tensor_batch() {
  using namespace tensor_batch_file;
  return {"tensor_batch",
          "batches whose operands fit in shared memory: brought whole, multiplied on the tensor "
          "cores",
          declines,
          gemm_pointer_bytes,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
