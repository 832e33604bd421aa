// The erased entries of the API: validate, return where nothing is to be done, dispatch.
#include "core/api.hpp"

#include "core/context_impl.hpp"
#include "core/dispatch.hpp"
#include "core/quick.hpp"
#include "core/validate.hpp"
#include "mblas/geam.hpp"
#include "mblas/gemm.hpp"
#include "mblas/transpose.hpp"

namespace mblas::detail {
namespace {

template <class Args>
void begin(Context::Impl& context) {
  context.reported = nullptr;
  Dispatch& receipt = context.receipt;
  receipt.operation = op_name<Args>;
  receipt.backend = receipt.kernel = receipt.config = {};
  receipt.tuned = false;
  receipt.epilogue = {};
  receipt.compute = Compute::Default;
  receipt.workspace_bytes = 0;
  receipt.staged_blocks = 0;
  receipt.declined.clear();  // keeps its capacity
}

/// Throws what the headers' own checks find.
[[noreturn]] void fail(Context& context, Status status, const std::string& message) {
  set_last_error(context, message);
  throw Error(status, message);
}

template <class Args>
void call(Context& context, Layout layout, Args args) {
  remember(context, [&](Context::Impl& impl) {
    begin<Args>(impl);
    if (validate(args, layout)) dispatch(impl, args);
  });
}

/// Default means the context's mode where the type has that mode.
void resolve_compute(Context::Impl& impl, GemmArgs& args) {
  if (args.compute == Compute::Default && has_mode(args.in, impl.compute))
    args.compute = impl.compute;
  impl.receipt.compute = args.compute;
}

}  // namespace

void gemm_by_hops(Context& context, Layout layout, GemmArgs& args) {
  remember(context, [&](Context::Impl& impl) {
    begin<GemmArgs>(impl);
    resolve_compute(impl, args);
    if (validate(args, layout)) dispatch(impl, args);
  });
}

void gemm_grouped(Context& context, std::span<const LaidGemm> problems) {
  remember(context, [&](Context::Impl& impl) {
    std::vector<GemmArgs> valid;
    valid.reserve(problems.size());
    begin<GemmArgs>(impl);
    for (const LaidGemm& problem : problems) {
      GemmArgs args = problem.args;
      resolve_compute(impl, args);
      try {
        if (validate(args, problem.layout)) valid.push_back(args);
      } catch (const Error& e) {
        throw Error(e.status(),
                    "problem " + std::to_string(&problem - problems.data()) + ": " + e.what());
      }
    }
    check_group_overlap(valid);
    for (const GemmArgs& args : valid) {
      begin<GemmArgs>(impl);
      impl.receipt.compute = args.compute;
      dispatch(impl, args);
    }
  });
}

void geam(Context& context, Layout layout, const GeamArgs& args) { call(context, layout, args); }

void transpose(Context& context, Layout layout, const TransposeArgs& args) {
  call(context, layout, args);
}

void transpose_inplace(Context& context, Layout layout, const TransposeInplaceArgs& args) {
  call(context, layout, args);
}

void gf256_by_hops(Context& context, const Gf256Args& args) {
  remember(context, [&](Context::Impl& impl) {
    begin<Gf256Args>(impl);
    Gf256Args local = args;
    if (validate(local)) dispatch(impl, local);
  });
}

void check_group_options(Context& context, const GemmOptions& options) {
  if (!options.epilogue.is_none())
    fail(context, Status::InvalidArgument,
         "gemm_grouped: the options have an epilogue, but each problem has its own");
  if (options.plan)
    fail(context, Status::InvalidArgument,
         "gemm_grouped: the options have a plan, which is for one operand");
}

void check_batch_sizes(Context& context, std::size_t a, std::size_t b, std::size_t c) {
  if (a != b || a != c)
    fail(context, Status::InvalidArgument,
         "gemm_batched: A has " + std::to_string(a) + " pointers, B " + std::to_string(b) +
             " and C " + std::to_string(c));
}

ViewShape view_shape(Context& context, char argument, std::int64_t rows, std::int64_t cols,
                     std::int64_t row_stride, std::int64_t col_stride) {
  // A dimension of at most one element has no stride that matters.
  const auto most = [](std::int64_t a, std::int64_t b) { return a > b ? a : b; };
  if (cols <= 1 || col_stride == 1)
    if (rows <= 1 || row_stride >= most(1, cols))
      return {rows, cols, rows <= 1 ? most(1, cols) : row_stride, false};
  if (rows <= 1 || row_stride == 1)
    if (cols <= 1 || col_stride >= most(1, rows))
      return {rows, cols, cols <= 1 ? most(1, rows) : col_stride, true};
  fail(context, Status::InvalidArgument,
       std::string("gemm: ") + argument + " has strides " + std::to_string(row_stride) + " and " +
           std::to_string(col_stride) + "; one must be 1 and the other not less than " +
           "the extent it steps over");
}

void check_view_sizes(Context& context, const ViewShape& A, const ViewShape& B,
                      const ViewShape& C) {
  const auto text = [](const ViewShape& x) {
    return std::to_string(x.rows) + "×" + std::to_string(x.cols);
  };
  if (A.rows != C.rows || B.cols != C.cols || A.cols != B.rows)
    fail(context, Status::InvalidArgument,
         "gemm: A is " + text(A) + ", B " + text(B) + " and C " + text(C) +
             ": these do not multiply");
}

}  // namespace mblas::detail
