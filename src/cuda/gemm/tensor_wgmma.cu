// gemm of half, bfloat16, int8 and, as TF32, of float on Hopper's tensor cores: operands as the
// engine in hopper/ takes them, and the choice of its tiles.
//
// The copy engine takes matrices whose rows start at multiples of 16 bytes, the tensor cores those
// of 1 and 4 bytes with k innermost, but for one of floats. Others are copied, transposed where
// need be, before: a reading and a writing of the operand, at the speed of memory.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/finish.hpp"
#include "cuda/gemm/hopper/call.cuh"
#include "cuda/gemm/repack.cuh"
#include "cuda/gemm/tensor_cores.hpp"
#include "cuda/gemm/tensor_mma.hpp"
#include "cuda/kept.hpp"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace tensor_wgmma_file {

constexpr char kName[] = "tensor_wgmma";
constexpr bool kFilled = false;  // the ends of copied rows, which the copy engine finds

const ConfigList<hopper::Config>& configs() {
  static const auto list = hopper::config_list(hopper::kHalfTiles);
  return list;
}

/// An operand as it is stored, and its copy where that is what the engine takes.
struct Source {
  std::int64_t rows, cols;
  bool along_k;  ///< as the engine gets it
  bool copied;
  std::uintptr_t bits;  ///< access_bits() of what is stored
  Repacked copy;

  double lines() const {
    return hopper::lines_of_row(copied ? std::uintptr_t(copy.ld() * copy.size) : bits, along_k);
  }
  std::size_t bytes() const { return copied ? copy.bytes() : 0; }
};

/// How the engine gets an operand whose rows do not run along k.
enum class Form { AsStored, Transposed };

Source source_of(const Input& x, bool along_k, std::int64_t rows, std::int64_t cols,
                 const GemmArgs& args, Form form) {
  const int size = size_of(args.in);
  const bool scattered = x.pointers && args.batch > 1;
  const std::uintptr_t bits = access_bits(x, args.batch, size);
  const bool stays = !scattered && bits % 16 == 0;
  const bool transposed = !along_k && form == Form::Transposed;
  const bool copied = args.k > 0 && (transposed || !stays);
  return {rows,   cols, along_k || transposed,
          copied, bits, Repacked::of(x, rows, cols, args.batch, size, transposed)};
}
Source source_of_a(const GemmArgs& args, Form form) {
  const bool turned = is_transposed(args.transA);
  return source_of(args.A, !turned, turned ? args.k : args.m, turned ? args.m : args.k, args, form);
}
Source source_of_b(const GemmArgs& args, Form form) {
  const bool turned = is_transposed(args.transB);
  return source_of(args.B, turned, turned ? args.n : args.k, turned ? args.k : args.n, args, form);
}

/// Both, and whether the engine computes C^T. Of bytes both have to run along k; of 16 bits they
/// may be as stored or not. Floats with k outermost come to the tensor cores by registers, as the
/// operand of the rows; where both are such, a plan's operand or the smaller one is copied.
struct Sources {
  Source a, b;
  bool turned = false;

  Sources(const GemmArgs& args, Form form_a, Form form_b)
      : a(source_of_a(args, form_a)), b(source_of_b(args, form_b)) {}
  explicit Sources(const GemmArgs& args) : Sources(args, stored(args), stored(args)) {
    if (args.in != DType::f32 || b.along_k) return;
    turned = a.along_k || (args.keeper ? !args.keeps_b : a.copy.bytes() < b.copy.bytes());
    if (turned)
      a = source_of_a(args, Form::Transposed);
    else
      b = source_of_b(args, Form::Transposed);
  }
  static Form stored(const GemmArgs& args) {
    return size_of(args.in) == 1 ? Form::Transposed : Form::AsStored;
  }

  bool by_registers(const GemmArgs& args) const {
    return args.in == DType::f32 && !(turned ? b : a).along_k;
  }
};

/// Microseconds that its epilogue takes a consumer for an element of C, on an H200: by bfloat16's
/// tanh, by the exponential and reciprocal of others, by additions.
double epilogue_microseconds(const GemmArgs& args) {
  if (!needs_finish(args)) return 0;
  if (args.epilogue.activation != Activation::Gelu) return 4.1e-5;
  return args.out == DType::bf16 ? 9.1e-5 : 2.1e-4;
}

hopper::Shape shape_of(const GemmArgs& args, const Sources& sources, const DeviceInfo& device) {
  const int size = size_of(args.in);
  std::span<const hopper::TileInfo> tiles = hopper::kTiles;
  if (size == 1) tiles = hopper::kByteTiles;
  if (size == 2) tiles = hopper::kHalfTiles;
  if (sources.by_registers(args)) tiles = hopper::kRegisterTiles;
  hopper::Shape shape = hopper::shape_of(args, tiles, size, device);
  shape.joins &= !sources.by_registers(args);
  // Boxes that C ends in are written up to a multiple of 16 bytes.
  shape.plain = shape.boxes && size_of(args.out) == 2 && args.n % 8 == 0;
  shape.across = args.batch == 1;  // of batches more tiles at a time are faster
  shape.turns = sources.a.along_k && !sources.b.along_k;
  shape.lines_a = sources.a.lines();
  shape.lines_b = sources.b.lines();
  shape.epilogue = epilogue_microseconds(args);
  // Where there are copies a call has two anyway: microseconds().
  if (!sources.a.copied && !sources.b.copied) shape.two_launches = kTwoLaunches;
  const int box = hopper::kDepthBytes / size;
  shape.box_a = sources.a.along_k ? 0 : box;
  shape.box_b = sources.b.along_k ? 0 : box;
  if (sources.turned) {
    std::swap(shape.m, shape.n);
    std::swap(shape.lines_a, shape.lines_b);
    std::swap(shape.box_a, shape.box_b);
  }
  return shape;
}

/// What a call comes to; a plan with no rows where the engine has none for it.
struct Call {
  Sources sources;
  hopper::Shape shape;
  hopper::Plan plan;
  double copying;  ///< estimated microseconds of copies

  /// Of 16 bits, an operand that the tensor cores could take as it lies is copied, transposed,
  /// where that is less than what tiles of other widths and aligned rows save: bf16 TT
  /// 136×16384×11008 100 us, by 192×64 of what is stored 134, by cuBLAS 98.
  Call(const GemmArgs& args, const DeviceInfo& device) : Call(args, device, Sources(args)) {
    constexpr double kMostCopying = 0.4;  // of the time without: it has not saved as much
    if (size_of(args.in) != 2) return;
    using enum Form;
    for (const bool is_b : {false, true}) {
      if ((is_b ? sources.b : sources.a).along_k) continue;
      const Sources others(args, is_b ? AsStored : Transposed, is_b ? Transposed : AsStored);
      if (copying_of(others) > kMostCopying * microseconds()) continue;
      const Call other(args, device, others);
      if (other.microseconds() < microseconds()) *this = other;
    }
  }

  bool copies() const { return sources.a.copied || sources.b.copied; }
  double microseconds() const {
    return copying > 0 ? std::max(plan.microseconds + copying, kTwoLaunches) : plan.microseconds;
  }

 private:
  Call(const GemmArgs& args, const DeviceInfo& device, const Sources& sources)
      : sources(sources),
        shape(shape_of(args, sources, device)),
        plan(hopper::plan_of(args, shape, configs())),
        copying(copying_of(sources)) {}

  static double copying_of(const Sources& sources) {
    Repacked copies[2];
    std::size_t count = 0;
    for (const Source* x : {&sources.a, &sources.b})
      if (x->copied) copies[count++] = x->copy;
    return repack_microseconds(std::span(copies, count), kFilled);
  }
};

/// How much longer than tensor_mma's the time here is estimated where both take the same: fitted to
/// 7,000 products on an H200, of all types.
double even_estimate(const GemmArgs& args, bool copied) {
  struct Rates {
    double copied, small, medium, large;
  };
  // Of one product and of batches, of elements of 1, 2 and 4 bytes; of batches with longer sums,
  // not of bytes.
  constexpr Rates kRates[][2] = {{{0.9, 0.84, 0.84, 1}, {0.44, 0.44, 0.6, 0.95}},
                                 {{1.1, 0.87, 0.87, 1.02}, {1.1, 0.8, 1.1, 1.15}},
                                 {{1.1, 0.84, 0.84, 0.88}, {1.05, 0.8, 0.88, 0.95}}};
  constexpr double kLonger = 1.25;
  constexpr std::int64_t kLongerBytes = 512;
  const int size = size_of(args.in);
  const Rates& rates = kRates[size / 2][args.batch > 1];
  if (copied) return rates.copied;
  if (std::max(args.m, args.n) <= 32) return rates.small;
  if (args.batch > 1 && size > 1 && args.k * size >= kLongerBytes) return kLonger;
  return args.m * args.n <= 64 * 64 ? rates.medium : rates.large;
}

/// An estimate to be held against tensor_mma's: operands may be copied here that it takes as they
/// lie, and a product may be so small that a tile, 0.7 us of a multiprocessor, takes as long as
/// any.
double microseconds(const GemmArgs& args, const Call& call) {
  return call.microseconds() / even_estimate(args, call.copies());
}

/// Whether tensor_mma takes less time by estimates. A plan's operand is copied once, and what is
/// not fused takes one more launch there.
bool is_slower(const GemmArgs& args, const Call& call, const DeviceInfo& device) {
  if (args.keeper || needs_finish(args)) return false;
  return microseconds(args, call) > tensor_mma_microseconds(args, device);
}

/// Why it does not take a call, whatever tensor_mma would take for it.
const char* refuses(const GemmArgs& args, const DeviceInfo& device) {
  const bool tf32 = is_tf32(args);
  if (!tf32 && args.in != DType::f16 && args.in != DType::bf16 && args.in != DType::i8)
    return "for f16, bf16 and i8, and for f32 as TF32";
  if (const char* reason = hopper::declines_engine(args, device)) return reason;
  const int size = size_of(args.in);
  if (!hopper::is_mappable(args.A, args.batch, size) ||
      !hopper::is_mappable(args.B, args.batch, size))
    return "for distances of less than 2^40 bytes";
  return tf32 ? nullptr : declines_emulation(args, device);
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (const char* reason = refuses(args, device)) return reason;
  const Call call(args, device);
  if (call.plan.rows == 0)
    return args.config < 0 ? "for fewer tiles" : "the configuration is not for this call";
  if (args.config == kOwnChoice && is_slower(args, call, device))
    return "estimated to be slower than tensor_mma";
  if (args.config == kOwnChoice && is_for_simt(args, device))
    return "estimated to be slower than simt";
  return nullptr;
}

std::size_t workspace_bytes(const GemmArgs& args, const DeviceInfo& device) {
  const Call call(args, device);
  return gemm_pointer_bytes(args, device) + call.sources.a.bytes() + call.sources.b.bytes() +
         std::size_t(call.plan.sum_bytes);
}

template <class In, class From, class Out>
void run_typed(const GemmArgs& args, const CudaQueue& queue) {
  using Acc = hopper::Sum<In>;
  const auto [sources, shape, plan, copying] = Call(args, queue.device());
  std::byte* free = queue.workspace.data() + gemm_pointer_bytes(args, queue.device());
  hopper::Problem<Acc> p;
  GemmArgs product = args;
  p.finishes = needs_finish(args);
  if (p.finishes) {
    product.alpha = {1};
    if (args.beta != Scalar{}) product.beta = {1};
    p.real_alpha = args.k == 0 ? 0 : float(args.alpha.re);
    p.real_beta = float(args.beta.re);
    p.finish = Finish<float>(args.epilogue);
  }
  static_cast<GemmProblem<Acc>&>(p) = gemm_problem<From, Out>(product, queue, 1, 1);
  RepackJob jobs[2];
  int job_count = 0;
  bool fills_kept = false;
  const auto prepare = [&](DeviceInput& x, bool& shared, bool is_b, const Input& from,
                           const Source& s) {
    hopper::Source as = {x.data, s.rows, s.cols, from.ld, from.stride, args.batch, s.along_k};
    shared = s.copy.count == 1;
    if (s.copied) {
      const KeptPlace kept =
          from.pointers ? KeptPlace{}
                        : kept_place(args, is_b,
                                     {kName, from.data, s.rows, s.cols, from.ld, from.stride,
                                      s.copy.count, s.copy.size, s.along_k && !s.copy.transposed,
                                      queue.device().ordinal, false, s.copy.transposed},
                                     s.bytes(), queue);
      std::byte* const to = kept.at ? kept.at : free;
      const RepackJob job = {x,      from.ld, access_bits(from, args.batch, sizeof(From)),
                             s.copy, to,      kFilled};
      if (!kept.filled) jobs[job_count++] = job;
      fills_kept |= kept.at && !kept.filled;
      x = job.result();
      free += s.bytes();
      as = {x.data,       s.copy.rows, s.copy.cols, s.copy.ld(), s.copy.rows * s.copy.ld(),
            s.copy.count, s.along_k};
    }
    if (shared) as.count = 1;
    return as;
  };
  hopper::Source a = prepare(p.A, p.shared_a, false, args.A, sources.a);
  hopper::Source b = prepare(p.B, p.shared_b, true, args.B, sources.b);
  repack(std::span(jobs, std::size_t(job_count)), queue);
  if (fills_kept) set_filled(args);
  const hopper::TileInfo& tile = shape.tiles[plan.tile];
  p.turned = sources.turned || tile.is_turned(shape.turns);
  if (p.turned) {
    std::swap(a, b);
    std::swap(p.shared_a, p.shared_b);
  }
  hopper::set_results<Out>(p, args, tile.plain);
  hopper::set_schedule(p, plan, shape, free);
  hopper::run_engine<In>(plan.tile, p, a, b, queue);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const bool wide = args.out == DType::f32;
  if (args.in == DType::i8)
    wide ? run_typed<std::int8_t, std::int8_t, float>(args, queue)
         : run_typed<std::int8_t, std::int8_t, std::int32_t>(args, queue);
  else if (args.in == DType::f32)
    run_typed<Tf32, float, float>(args, queue);
  else if (args.in == DType::f16)
    wide ? run_typed<__half, __half, float>(args, queue)
         : run_typed<__half, __half, __half>(args, queue);
  else
    wide ? run_typed<__nv_bfloat16, __nv_bfloat16, float>(args, queue)
         : run_typed<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16>(args, queue);
}

}  // namespace tensor_wgmma_file

double tensor_wgmma_microseconds(const GemmArgs& call, const DeviceInfo& device) {
  using namespace tensor_wgmma_file;
  GemmArgs args = call;
  args.config = kOwnChoice;  // else another kernel's
  const double none = std::numeric_limits<double>::infinity();
  if (refuses(args, device)) return none;
  const Call own(args, device);
  return own.plan.rows == 0 ? none : microseconds(args, own);
}

Kernel<GemmArgs> tensor_wgmma() {
  using namespace tensor_wgmma_file;
  return {kName,
          "half, bfloat16, int8, TF32 on Hopper's tensor cores, fed by the copy engine",
          declines,
          workspace_bytes,
          run,
          nullptr,
          configs().names(),
          [](const GemmArgs&) { return true; }};
}

}  // namespace mblas::cuda::gemm
