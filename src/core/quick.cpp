#include "core/quick.hpp"

#include <bit>
#include <cstdint>

#include "core/api.hpp"
#include "core/context_impl.hpp"
#include "core/gf256_field.hpp"
#include "core/location.hpp"
#include "core/tune.hpp"
#include "core/validate.hpp"
#include "mblas/gemm.hpp"

namespace mblas {
namespace {

constexpr std::uint64_t kMost = 4096;                           // of m, n and k; a power of two
constexpr std::uint64_t kMostColumns = 1 << 20;                 // n of gf256
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

// A negative number has the highest bits.
std::uint64_t before(std::int64_t size) { return std::uint64_t(size) - 1; }
std::uint64_t padding(std::int64_t ld, std::int64_t cols) {
  return std::uint64_t(ld) - std::uint64_t(cols);
}

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
std::uint64_t bits(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// Is a call for products at equal distances and nothing else, with valid operations? In doubt no.
/// Bits that must be zero, and `others` too, are gathered: to the smallest products every
/// comparison of its own counts.
bool is_plain(const GemmArgs& g, std::uint64_t others) {
  const Epilogue& e = g.epilogue;
  const std::uint64_t more = others | bits(g.A.pointers) | bits(g.B.pointers) | bits(g.C.pointers) |
                             bits(g.tolerance) | std::uint64_t(e.bias.per) |
                             std::uint64_t(e.activation) | (bits(e.scale) ^ bits(1.0));
  const bool is_zero = (bits(g.alpha.re) | bits(g.alpha.im)) << 1 == 0;  // of either sign
  const bool converts = g.in == DType::i8 && g.out == DType::f32;
  return more == 0 && !is_zero && !converts && is_op(g.transA) && is_op(g.transB);
}

/// Are the sizes and operands of a row-major product valid and C apart from A and B? In doubt no.
/// Part of the shortest way, of which a call would be 2 %.
[[gnu::always_inline]] inline bool is_sound(const GemmArgs& g) {
  const bool trans_a = is_transposed(g.transA), trans_b = is_transposed(g.transB);
  const std::int64_t a_rows = trans_a ? g.k : g.m, a_cols = trans_a ? g.m : g.k;
  const std::int64_t b_rows = trans_b ? g.n : g.k, b_cols = trans_b ? g.k : g.n;
  if ((padding(g.A.ld, a_cols) | padding(g.B.ld, b_cols) | padding(g.C.ld, g.n)) >= kMostPadding)
    return false;
  if (!g.A.data || !g.B.data || !g.C.data) return false;
  const int in = size_of(g.in), out = size_of(g.out);
  const Bytes c = bytes_of(g.C.data, g.m, g.C.ld, out);
  return c.apart(bytes_of(g.A.data, a_rows, g.A.ld, in)) &&
         c.apart(bytes_of(g.B.data, b_rows, g.B.ld, in));
}

/// The same of a batch whose first product is sound: are all matrices of C apart, from each other
/// too?
bool is_sound_batch(const GemmArgs& g) {
  if ((std::uint64_t(g.A.stride) | std::uint64_t(g.B.stride) | std::uint64_t(g.C.stride)) >=
          kMostPadding ||
      g.C.stride < g.m * g.C.ld)
    return false;
  const auto all = [&](const auto& x, std::int64_t rows, int size) {
    Bytes bytes = bytes_of(x.data, rows, x.ld, size);
    bytes.end += std::uintptr_t((g.batch - 1) * x.stride * size);
    return bytes;
  };
  const int in = size_of(g.in);
  const Bytes c = all(g.C, g.m, size_of(g.out));
  return c.apart(all(g.A, is_transposed(g.transA) ? g.k : g.m, in)) &&
         c.apart(all(g.B, is_transposed(g.transB) ? g.n : g.k, in));
}

/// The same of rows that lie behind pointers.
bool are_sound_rows(const Gf256Args& g) {
  const auto begin = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const auto length = std::uintptr_t(g.n);
  // Rows that begin less than their length apart share bytes.
  const auto apart = [length](std::uintptr_t x, std::uintptr_t y) {
    return x - y + (length - 1) >= 2 * length - 1;
  };
  const Bytes a = bytes_of(g.A.data, g.m, g.A.ld, 1);
  bool sound = true;
  for (std::int64_t p = 0; p < g.k; ++p) sound &= g.B.pointers[p] != nullptr;
  for (std::int64_t i = 0; i < g.m; ++i) {
    const std::uintptr_t c = begin(g.C.pointers[i]);
    sound &= c != 0 && Bytes{c, c + length}.apart(a);
    for (std::int64_t p = 0; p < g.k; ++p) sound &= apart(c, begin(g.B.pointers[p]));
    for (std::int64_t other = 0; other < i; ++other) sound &= apart(c, begin(g.C.pointers[other]));
  }
  return sound;
}

bool is_sound(const Gf256Args& g) {
  if (!g.A.data || padding(g.A.ld, g.k) >= kMostPadding ||
      !gf256::detail::is_irreducible_degree8(g.poly))
    return false;
  if (g.B.pointers && g.C.pointers) return are_sound_rows(g);
  if (g.B.pointers || g.C.pointers || !g.B.data || !g.C.data) return false;
  if ((padding(g.B.ld, g.n) | padding(g.C.ld, g.n)) >= kMostPadding) return false;
  const Bytes c = bytes_of(g.C.data, g.m, g.C.ld, 1);
  return c.apart(bytes_of(g.A.data, g.m, g.A.ld, 1)) && c.apart(bytes_of(g.B.data, g.k, g.B.ld, 1));
}

/// None where calls are logged or verified, or a row is forced.
template <class Args>
[[gnu::noinline]] ImmediateRow<Args> immediate_of(const Context::Impl& context) {
  const BackendChoice& choice = context.backends;
  Backend* const backend = choice.automatic ? backends().front() : choice.list.front();
  const auto table = backend->kernels<Args>();
  if (table.empty() || context.verbose != 0 || context.verify.backend ||
      !context.kernels[op_index<Args>()].empty())
    return {backend, nullptr, {}, {}, nullptr, false, true};
  const bool tuned = context.tuned && context.tuned->mentions(*backend);
  const Kernel<Args>& row = table.front();
  return {backend, &row, backend->name(), row.name, row.immediate, tuned, true};
}

/// The row that may compute calls at once; null: there is none.
template <class Args>
const ImmediateRow<Args>* ready_row(Context::Impl& context) {
  auto& row = std::get<ImmediateRow<Args>>(context.immediate);
  if (!row.known) [[unlikely]] {
    row = immediate_of<Args>(context);
    context.reported = nullptr;
  }
  return row.run ? &row : nullptr;
}

/// Looks whether memory of a device may be in use.
[[gnu::noinline]] bool look_around(Context::Impl& context, const GemmArgs& g) {
  if (!only_host_memory()) return false;
  context.host_addresses[0] = bits(g.A.data);
  context.host_addresses[1] = bits(g.B.data);
  context.host_addresses[2] = bits(g.C.data);
  return true;
}

/// Are all operands in host memory? In doubt no. The clock that only_host_memory() reads takes a
/// fifth of a tiny call's time, so an operand in the page of the one that was found on the host is
/// taken to be there too: memory changes sides only by being given back and mapped anew.
bool are_on_host(Context::Impl& context, const GemmArgs& g) {
  constexpr int page = 21;  // bits of an address within a huge page, which is on one side
  const std::uintptr_t(&known)[3] = context.host_addresses;
  const std::uintptr_t off =
      (bits(g.A.data) ^ known[0]) | (bits(g.B.data) ^ known[1]) | (bits(g.C.data) ^ known[2]);
  if (off >> page == 0 && !has_device_backends()) [[likely]]
    return true;
  return look_around(context, g);
}

/// Has the tune file, which has entries of the backend, something for the call?
template <class Args>
[[gnu::noinline]] bool find_tuned(Context::Impl& context, Backend& backend, const Args& args,
                                  Compute compute) {
  Args call = args;
  if constexpr (std::is_same_v<Args, GemmArgs>) call.compute = compute;
  return context.tuned->find(backend, context.slot(backend).queue->device(), call).row >= 0;
}

template <class Args>
bool is_tuned(Context::Impl& context, const ImmediateRow<Args>& row, const Args& args,
              Compute compute) {
  if (context.tune_record) return true;  // the long way leaves the description
  return row.tuned && find_tuned(context, *row.backend, args, compute);
}

/// What the row does not compute at once it may take with the threads of the call's queue. False,
/// with nothing written, where it declines.
[[gnu::noinline]] bool run_with_queue(Context& context, const ImmediateRow<GemmArgs>& row,
                                      const GemmArgs& g) {
  if (row.row->workspace) return false;
  bool takes = false;
  detail::remember(context, [&](Context::Impl& impl) {
    Queue& queue = *impl.slot(*row.backend).queue;
    takes = row.row->declines(g, queue.device()) == nullptr;
    if (takes) row.row->run(g, queue);
  });
  return takes;
}

template <class Args>
[[gnu::noinline]] void write_receipt(Dispatch& receipt, const ImmediateRow<Args>& row,
                                     Compute compute) {
  receipt.operation = op_name<Args>;
  receipt.backend = row.name;
  receipt.kernel = row.kernel;
  receipt.config = {};
  receipt.tuned = false;
  receipt.epilogue = {};
  receipt.compute = compute;
  receipt.workspace_bytes = 0;
  receipt.staged_blocks = 0;
  receipt.declined.clear();
}

/// The receipt of one call is that of the next.
template <class Args>
void report(Context::Impl& context, const ImmediateRow<Args>& row, Compute compute) {
  if (context.reported == &row && context.receipt.compute == compute) [[likely]]
    return;
  write_receipt(context.receipt, row, compute);
  context.reported = &row;
}

/// What run_quick() does once sizes and kind of a call are found to suit: where is_sound(g),
/// run(row). Each caller has its own copy: to the smallest products a call counts.
template <class Sound, class Run>
[[gnu::always_inline]] inline bool run_if_sound(Context& whole, Layout layout, GemmArgs& g,
                                                const Sound& is_sound, const Run& run) {
  Context::Impl& context = whole.impl();
  if (layout != Layout::RowMajor && layout != Layout::ColMajor) [[unlikely]]
    return false;
  const Compute compute = g.compute == Compute::Default ? context.compute : g.compute;
  const auto* const row = ready_row<GemmArgs>(context);
  if (!row || !is_native(compute) || !are_on_host(context, g)) [[unlikely]]
    return false;
  if (layout == Layout::ColMajor) swap_layout(g);
  if (!is_sound(g) || is_tuned(context, *row, g, compute) || !run(*row)) [[unlikely]] {
    if (layout == Layout::ColMajor) swap_layout(g);
    return false;
  }
  report(context, *row, compute);
  return true;
}

/// False, with nothing written and `g` as it was: the call takes the long way.
bool run_quick(Context& whole, Layout layout, GemmArgs& g) {
  if ((before(g.m) | before(g.n) | before(g.k)) >= kMost || !is_plain(g, before(g.batch)))
      [[unlikely]]
    return false;
  return run_if_sound(
      whole, layout, g, [](const GemmArgs& one) { return is_sound(one); },
      [&](const ImmediateRow<GemmArgs>& row) {
        return row.run(g) || run_with_queue(whole, row, g);
      });
}

/// run_quick() of a batch at equal distances: of a few small products the long way would take
/// longer than they do.
bool run_quick_batch(Context& whole, Layout layout, GemmArgs& g) {
  if ((before(g.m) | before(g.n) | before(g.k) | before(g.batch)) >= kMost) return false;
  return is_plain(g, 0) &&
         run_if_sound(
             whole, layout, g,
             [](const GemmArgs& batch) { return is_sound(batch) && is_sound_batch(batch); },
             [&](const ImmediateRow<GemmArgs>& row) { return run_with_queue(whole, row, g); });
}

/// What run_quick() has left.
[[gnu::noinline]] void run_others(Context& context, Layout layout, GemmArgs& args) {
  if (args.batch < 2 || !run_quick_batch(context, layout, args))
    detail::gemm_by_hops(context, layout, args);
}

bool run_quick(Context::Impl& context, const Gf256Args& g) {
  if ((before(g.m) | before(g.k)) >= kMost || before(g.n) >= kMostColumns) return false;
  const auto* const row = ready_row<Gf256Args>(context);
  const Compute compute = Compute::Default;
  if (!row || !only_host_memory() || !is_sound(g) || is_tuned(context, *row, g, compute) ||
      !row->run(g))
    return false;
  report(context, *row, compute);
  return true;
}

}  // namespace

namespace detail {

void gemm(Context& context, Layout layout, GemmArgs& args) {
  if (!run_quick(context, layout, args)) run_others(context, layout, args);
}

void gf256(Context& context, const Gf256Args& args) {
  if (!run_quick(context.impl(), args)) gf256_by_hops(context, args);
}

}  // namespace detail
}  // namespace mblas
