#include "core/quick.hpp"

#include <cstdint>

#include "core/location.hpp"
#include "core/validate.hpp"

namespace mblas {
namespace {

constexpr std::int64_t kMost = 128;                      // of m, n and k
constexpr std::int64_t kMostLd = std::int64_t{1} << 40;  // no address of such a matrix overflows

bool is_native(Compute compute) {
  return compute == Compute::Default || compute == Compute::Pedantic;
}

struct Bytes {
  std::uintptr_t begin, end;
  bool apart(const Bytes& other) const { return end <= other.begin || other.end <= begin; }
};

/// The bytes from the first to past the last element of a rows×cols matrix.
Bytes bytes_of(const void* p, std::int64_t rows, std::int64_t cols, std::int64_t ld, int size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  return {begin, begin + std::uintptr_t(((rows - 1) * ld + cols) * size)};
}

/// Are the sizes and operands of a row-major product valid and C apart from A and B?
bool is_sound(const GemmArgs& g) {
  const bool trans_a = is_transposed(g.transA), trans_b = is_transposed(g.transB);
  const std::int64_t a_rows = trans_a ? g.k : g.m, a_cols = trans_a ? g.m : g.k;
  const std::int64_t b_rows = trans_b ? g.n : g.k, b_cols = trans_b ? g.k : g.n;
  const auto fits = [](std::int64_t cols, std::int64_t ld) { return cols <= ld && ld <= kMostLd; };
  if (!fits(a_cols, g.A.ld) || !fits(b_cols, g.B.ld) || !fits(g.n, g.C.ld)) return false;
  if (!g.A.data || !g.B.data || !g.C.data) return false;
  const int in = size_of(g.in), out = size_of(g.out);
  const Bytes c = bytes_of(g.C.data, g.m, g.n, g.C.ld, out);
  return c.apart(bytes_of(g.A.data, a_rows, a_cols, g.A.ld, in)) &&
         c.apart(bytes_of(g.B.data, b_rows, b_cols, g.B.ld, in));
}

ImmediateRow immediate_of(const BackendChoice& choice) {
  const Backend& backend = choice.automatic ? *backends().front() : *choice.list.front();
  const auto table = backend.gemm_kernels();
  if (table.empty()) return {{}, {}, nullptr, true};
  return {backend.name(), table.front().name, table.front().immediate, true};
}

}  // namespace

bool run_quick(Context::Impl& context, Layout layout, GemmArgs& g) {
  const auto small = [](std::int64_t size) { return std::uint64_t(size) - 1 < kMost; };
  if (!small(g.m) || !small(g.n) || !small(g.k) || g.batch != 1) return false;
  if (g.A.pointers || g.B.pointers || g.C.pointers) return false;
  if (context.verbose != 0 || context.verify.backend ||
      !context.kernels[op_index<GemmArgs>()].empty())
    return false;
  const Compute compute = g.compute == Compute::Default ? context.compute : g.compute;
  if (!is_native(compute) || g.alpha == Scalar{} || !is_op(g.transA) || !is_op(g.transB))
    return false;
  if (layout != Layout::RowMajor && layout != Layout::ColMajor) return false;

  if (!context.immediate.known) context.immediate = immediate_of(context.backends);
  const ImmediateRow& row = context.immediate;
  if (!row.run || !only_host_memory()) return false;
  if (layout == Layout::ColMajor) swap_layout(g);
  if (!is_sound(g) || !row.run(g)) {
    if (layout == Layout::ColMajor) swap_layout(g);
    return false;
  }
  Dispatch& receipt = context.receipt;
  receipt.operation = op_name<GemmArgs>;
  receipt.backend = row.backend;
  receipt.kernel = row.kernel;
  receipt.compute = compute;
  receipt.workspace_bytes = 0;
  receipt.staged_blocks = 0;
  receipt.declined.clear();
  return true;
}

}  // namespace mblas
