#include "core/quick.hpp"

#include <cstdint>

#include "core/finish.hpp"
#include "core/location.hpp"
#include "core/tune.hpp"
#include "core/validate.hpp"

namespace mblas {
namespace {

constexpr std::uint64_t kMost = 128;                            // of m, n and k; a power of two
constexpr std::uint64_t kMostPadding = std::uint64_t{1} << 40;  // no address of such overflows

/// Where a rows×cols matrix lies, to the end of its last row's padding: bytes.
struct Bytes {
  std::uintptr_t begin, end;
  bool apart(const Bytes& other) const { return end <= other.begin || other.end <= begin; }
};
Bytes bytes_of(const void* p, std::int64_t rows, std::int64_t ld, int size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  return {begin, begin + std::uintptr_t(rows * ld * size)};
}

/// Are the sizes and operands of a row-major product valid and C apart from A and B? In doubt no.
bool is_sound(const GemmArgs& g) {
  const bool trans_a = is_transposed(g.transA), trans_b = is_transposed(g.transB);
  const std::int64_t a_rows = trans_a ? g.k : g.m, a_cols = trans_a ? g.m : g.k;
  const std::int64_t b_rows = trans_b ? g.n : g.k, b_cols = trans_b ? g.k : g.n;
  // A negative number has the highest bits.
  const auto padding = [](std::int64_t ld, std::int64_t cols) {
    return std::uint64_t(ld) - std::uint64_t(cols);
  };
  if ((padding(g.A.ld, a_cols) | padding(g.B.ld, b_cols) | padding(g.C.ld, g.n)) >= kMostPadding)
    return false;
  if (!g.A.data || !g.B.data || !g.C.data) return false;
  const int in = size_of(g.in), out = size_of(g.out);
  const Bytes c = bytes_of(g.C.data, g.m, g.C.ld, out);
  return c.apart(bytes_of(g.A.data, a_rows, g.A.ld, in)) &&
         c.apart(bytes_of(g.B.data, b_rows, g.B.ld, in));
}

/// None where calls are logged or verified, or a row is forced.
[[gnu::noinline]] ImmediateRow immediate_of(const Context::Impl& context) {
  const BackendChoice& choice = context.backends;
  Backend* const backend = choice.automatic ? backends().front() : choice.list.front();
  const auto table = backend->gemm_kernels();
  if (table.empty() || context.verbose != 0 || context.verify.backend ||
      !context.kernels[op_index<GemmArgs>()].empty())
    return {backend, {}, nullptr, false, true};
  const bool tuned = context.tuned && context.tuned->mentions(*backend);
  return {backend, table.front().name, table.front().immediate, tuned, true};
}

/// Has the tune file something for the call?
bool is_tuned(Context::Impl& context, const GemmArgs& g, Compute compute) {
  if (context.tune_record) return true;  // the long way leaves the description
  if (!context.immediate.tuned) return false;
  Backend& backend = *context.immediate.backend;
  GemmArgs call = g;
  call.compute = compute;
  return context.tuned->find(backend, context.slot(backend).queue->device(), call).row >= 0;
}

}  // namespace

bool run_quick(Context::Impl& context, Layout layout, GemmArgs& g) {
  const auto before = [](std::int64_t size) { return std::uint64_t(size) - 1; };
  if ((before(g.m) | before(g.n) | before(g.k)) >= kMost) return false;
  if (g.batch != 1 || g.A.pointers || g.B.pointers || g.C.pointers || needs_finish(g) ||
      g.tolerance != 0)
    return false;
  const Compute compute = g.compute == Compute::Default ? context.compute : g.compute;
  if (!is_native(compute) || g.alpha == Scalar{} || !is_op(g.transA) || !is_op(g.transB))
    return false;
  if (layout != Layout::RowMajor && layout != Layout::ColMajor) return false;

  if (!context.immediate.known) context.immediate = immediate_of(context);
  const ImmediateRow& row = context.immediate;
  if (!row.run || !only_host_memory()) return false;
  if (layout == Layout::ColMajor) swap_layout(g);
  if (!is_sound(g) || is_tuned(context, g, compute) || !row.run(g)) {
    if (layout == Layout::ColMajor) swap_layout(g);
    return false;
  }
  Dispatch& receipt = context.receipt;
  receipt.operation = op_name<GemmArgs>;
  receipt.backend = row.backend->name();
  receipt.kernel = row.kernel;
  receipt.config = {};
  receipt.tuned = false;
  receipt.epilogue = {};
  receipt.compute = compute;
  receipt.workspace_bytes = 0;
  receipt.staged_blocks = 0;
  receipt.declined.clear();
  return true;
}

}  // namespace mblas
