// Batches of tiny products. Limited by memory, 3 n^2 elements for n^3 multiply-adds, and almost as
// much by the issue of instructions: those that move and place elements are more than those that
// multiply. A block of one product would leave most of its threads and of the memory's width idle
// (but for 16-bit types one of a single warp does not: tensor_mma has those).
// Here a block takes as many as fill some 32 to 64 KiB of shared memory (tiny.cuh), and a
// multiprocessor has several such blocks, some of which load while others compute: on the ordinary
// cores (tiny_simt.cuh), or by mma.sync where narrow types fill its tiles (tiny_mma.cu). Of narrow
// types whose rows start anywhere it takes larger ones too, one to a block.
//
// What did not help on an H200: persistent blocks that load the next group before they write,
// places of copies found by steps from the last one instead of by division, blocks of 256 threads
// for several products.
#include <algorithm>
#include <span>

#include "cuda/gemm/fills.hpp"
#include "cuda/gemm/tensor_mma.hpp"
#include "cuda/gemm/tiny.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace tiny_file {

constexpr std::int64_t kNarrow = 8;  // m and n up to which tiles of mma.sync are mostly empty

/// The largest m and n, and k. `fitted` is faster for batches of complex<float> from 40 on.
std::int64_t most_size(const GemmArgs& args, const DeviceInfo& device) {
  if (size_of(args.in) <= 2) return 64;
  if (args.in == DType::cf32 && fills_device(args, device)) return 36;
  return is_complex(args.in) ? 48 : 32;
}
constexpr std::int64_t kMostDepth = 64;

bool is_in_vectors(const GemmArgs& args) { return input_bits(args) % 16 == 0; }

/// Whether larger ones of narrow types are for it too: batches whose rows start anywhere, for which
/// tensor_wgmma would copy operands, and which come as runs here.
bool takes_larger(const GemmArgs& args, const DeviceInfo& device) {
  constexpr std::int64_t kLargest = 128;
  if (size_of(args.in) > 2 || std::max({args.m, args.n, args.k}) > kLargest) return false;
  if (is_in_vectors(args) || !fills_device(args, device)) return false;
  const tiny::Plan plan = tiny::plan_of_narrow(args);
  const auto comes = [](const tiny::Image& x) { return x.packed || x.unit >= 4; };
  return comes(plan.a) && comes(plan.b) &&
         std::size_t(plan.bytes(1, args.beta != Scalar{})) <= device.shared_memory / 2;
}

/// Microseconds that batches of narrow types take: fitted to 2,460 of 2 to 30,000 on an H200.
double narrow_microseconds(const GemmArgs& args, const DeviceInfo& device) {
  const double each = double(args.batch) / std::max(device.compute_units, 1);
  const double results = double(args.m) * double(args.n);
  if (std::max(args.m, args.n) <= kNarrow)
    return 3.87 + each * 1.7e-4 * double(args.m + args.n) * double(args.k);
  const tiny::Plan plan = tiny::plan_of_narrow(args);
  const double copies = plan.a.rows * plan.a.units + plan.b.rows * plan.b.units;
  const double tiles = double(ceil_div(args.m, std::int64_t(16)) * ceil_div(args.n, kNarrow) *
                              ceil_div(args.k * size_of(args.in), std::int64_t(32)));
  return 3.71 +
         each * (0.035 + 1.6e-4 * copies + 0.0043 * tiles + 6.8e-5 * results * size_of(args.out));
}

/// Of 4 bytes and more: whether there are too few products for their size, as each has a small tile
/// to itself elsewhere. Fitted to a thousand batches of 64 to 100,000 on an H100 and an H200.
bool is_slower_than_tiles(const GemmArgs& args, const DeviceInfo& device) {
  constexpr std::int64_t kTile = 32, kHalf = 16, kMostResults = 24 * 24, kTensorCores = 3;
  const std::int64_t most = std::max(args.m, args.n);
  // Larger ones take several tiles there. cf64 48x48x48 80 times: 18.2 us, tensor_f64 6.4.
  constexpr std::int64_t kMostComplex = 16000;
  if (most > kTile && args.in == DType::cf64 && args.m * args.n * args.k > kMostComplex)
    return true;
  if (most > kTile) return args.k > kTile + kHalf || !fills_device(args, device);
  if (args.in == DType::f32 && args.m * args.n > kMostResults) return true;

  // Batches of so many for each multiprocessor, of products of up to so many multiply-adds.
  struct Limit {
    std::int64_t each, products;
  };
  constexpr Limit kFloat[] = {{7, 4096}, {37, 20000}};
  constexpr Limit kDouble[] = {{7, 1200}, {15, 2200}, {37, 3200}, {150, 9300}};
  constexpr Limit kComplexFloat[] = {{7, 1600}, {15, 4700}, {150, 13000}};
  constexpr Limit kComplexDouble[] = {{7, 2304}, {15, 6400}};
  const bool doubles = args.in == DType::f64 || args.in == DType::cf64;
  std::int64_t products = args.m * args.n * args.k;
  if (doubles && args.k > kHalf) products *= kTensorCores;
  // Rows that start anywhere hold the others up as well, as do tiles that are not full.
  if ((args.in == DType::f64 && !is_in_vectors(args)) || (args.in == DType::cf64 && most > kHalf))
    products /= 2;
  const auto suits = [&](std::span<const Limit> limits) {
    return std::ranges::any_of(limits, [&](const Limit& limit) {
      return args.batch >= limit.each * device.compute_units && products <= limit.products;
    });
  };
  return !suits(args.in == DType::f32    ? std::span<const Limit>(kFloat)
                : args.in == DType::f64  ? std::span<const Limit>(kDouble)
                : args.in == DType::cf32 ? std::span<const Limit>(kComplexFloat)
                                         : std::span<const Limit>(kComplexDouble));
}

/// Whether products are left to the rows that give each of them blocks of its own, which begin
/// sooner than those here.
const char* declines_slower(const GemmArgs& args, const DeviceInfo& device) {
  if (args.config == kForced || args.batch == 0) return nullptr;
  if (size_of(args.in) > 2)
    return is_slower_than_tiles(args, device) ? "slower than simt or tensor_f64" : nullptr;
  // Of larger ones of halves it is 0.75 of what they take there.
  const bool larger = size_of(args.in) == 2 && std::max({args.m, args.n, args.k}) > kMostDepth;
  const double there = tensor_mma_microseconds(args, device) * (larger ? 1.35 : 1);
  return narrow_microseconds(args, device) > there ? "estimated to be slower than tensor_mma"
                                                   : nullptr;
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (device.capability < 80) return "needs compute capability 8.0";
  if ((std::max(args.m, args.n) > most_size(args, device) || args.k > kMostDepth) &&
      !takes_larger(args, device))
    return "for tiny matrices";
  if (const char* reason = declines_slower(args, device)) return reason;
  if (tiny::most_shared(args) > device.shared_memory) return "needs more shared memory";
  return declines_emulation(args, device);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (is_complex(args.in))
    tiny::run_complex(args, queue);
  else if (size_of(args.in) > 2)
    tiny::run_real(args, queue);
  else if (std::max(args.m, args.n) <= kNarrow)
    tiny::run_narrow(args, queue);
  else
    tiny::run_mma(args, queue);
}

}  // namespace tiny_file

Kernel<GemmArgs> tiny() {
  using namespace tiny_file;
  return {"tiny", "batches of tiny matrices: many products in a block's shared memory", declines,
          gemm_pointer_bytes, run};
}

}  // namespace mblas::cuda::gemm
