// Matrix products: C = alpha op(A) op(B) + beta C.
//
// For every form: op(A) is m×k, op(B) k×n, C m×n; sizes may be 0; lda, ldb, ldc count elements
// between consecutive columns (ColMajor) or rows (RowMajor) of the matrix as stored. A and B have
// one type TA, C the type TC, which is_gemm_pair allows; alpha and beta are of scalar_t<TA, TC>.
// BLAS semantics: alpha == 0: A and B are not read; beta == 0: C is not read; k == 0: C = beta C;
// NaN and infinities propagate otherwise. Elements of C's storage outside the matrix are not
// touched. int8 products accumulate in int32 and wrap; a C of float is alpha times that, in float.
// Errors (mblas::Error, C unchanged):
// InvalidArgument, NullPointer, SizeOverflow, Overlap, WrongMemory, NotSupported, OutOfMemory,
// BackendUnavailable; DeviceError and VerifyFailed as error.hpp says. Each function also exists
// without the Context (on default_context()) and as try_…, with the same arguments, returning a
// Status instead of throwing.
#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include "mblas/backend.hpp"
#include "mblas/context.hpp"
#include "mblas/forms.hpp"
#include "mblas/plan.hpp"
#include "mblas/types.hpp"

namespace mblas {

struct GemmOptions {
  Compute compute = Compute::Default;  ///< Default: the context's mode
  Epilogue epilogue = {};              ///< what becomes of the product; see epilogue.hpp
  GemmPlan* plan = nullptr;            ///< keeps an operand; not null only for the call's time
  /// OzakiFP64: by how much an element may be off, in relation to |alpha| times the Euclidean norms
  /// of its row of op(A) and column of op(B), beside the rounding of the result; what tolerates
  /// more takes less time. 0: as little as in double. Other modes have none (InvalidArgument), and
  /// less than a kernel can keep is NotSupported. docs/ACCURACY.md has the figures.
  double tolerance = 0;
};

template <class TA, class TC>
concept GemmPair = is_gemm_pair(dtype_v<TA>, dtype_v<TC>);

namespace detail {
/// Uses up `args`.
MBLAS_EXPORT void gemm(Context& context, Layout layout, GemmArgs& args);

struct LaidGemm {
  Layout layout;
  GemmArgs args;
};
MBLAS_EXPORT void gemm_grouped(Context& context, std::span<const LaidGemm> problems);

template <class S>
constexpr Scalar widen(S s) {
  if constexpr (requires { s.imag(); })
    return {double(s.real()), double(s.imag())};
  else
    return {double(s), 0};
}

template <class TA, class TC>
GemmArgs gemm_args(Op transA, Op transB, std::int64_t m, std::int64_t n, std::int64_t k,
                   scalar_t<TA, TC> alpha, const Input& A, const Input& B, scalar_t<TA, TC> beta,
                   const Output& C, std::int64_t batch, const GemmOptions& options) {
  return {
      .in = dtype_v<TA>,
      .out = dtype_v<TC>,
      .compute = options.compute,
      .transA = transA,
      .transB = transB,
      .m = m,
      .n = n,
      .k = k,
      .alpha = widen(alpha),
      .beta = widen(beta),
      .A = A,
      .B = B,
      .C = C,
      .batch = batch,
      .tolerance = options.tolerance,
      .epilogue = options.epilogue,
      .keeper = options.plan ? options.plan->keeper() : nullptr,
      .keeps_b = options.plan && options.plan->operand() == GemmPlan::Operand::B,
  };
}

template <class R>
using pointee_t = std::remove_cv_t<std::remove_pointer_t<std::ranges::range_value_t<R>>>;
template <class R>
concept PointerRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::is_pointer_v<std::ranges::range_value_t<R>>;

template <class R>
auto erase_pointers(R& range) {
  using Pointer = std::ranges::range_value_t<R>;
  using Void =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const void, void>;
  return reinterpret_cast<Void* const*>(std::ranges::data(range));
}
MBLAS_EXPORT void check_group_options(Context& context, const GemmOptions& options);
MBLAS_EXPORT void check_batch_sizes(Context& context, std::size_t a, std::size_t b, std::size_t c);
}  // namespace detail

/// One product.
template <class TA, class TC>
requires GemmPair<TA, TC>
void gemm(Context& context, Layout layout, Op transA, Op transB, std::int64_t m, std::int64_t n,
          std::int64_t k, std::type_identity_t<scalar_t<TA, TC>> alpha, const TA* A,
          std::int64_t lda, const TA* B, std::int64_t ldb,
          std::type_identity_t<scalar_t<TA, TC>> beta, TC* C, std::int64_t ldc,
          const GemmOptions& options = {}) {
  GemmArgs args = detail::gemm_args<TA, TC>(transA, transB, m, n, k, alpha, {A, lda}, {B, ldb},
                                            beta, {C, ldc}, 1, options);
  detail::gemm(context, layout, args);
}

/// batch_count products; matrix b of an operand lies b * stride elements after the first. A stride
/// of 0 repeats an input; C's matrices must not share elements. Negative strides: InvalidArgument.
template <class TA, class TC>
requires GemmPair<TA, TC>
void gemm_strided_batched(Context& context, Layout layout, Op transA, Op transB, std::int64_t m,
                          std::int64_t n, std::int64_t k,
                          std::type_identity_t<scalar_t<TA, TC>> alpha, const TA* A,
                          std::int64_t lda, std::int64_t strideA, const TA* B, std::int64_t ldb,
                          std::int64_t strideB, std::type_identity_t<scalar_t<TA, TC>> beta, TC* C,
                          std::int64_t ldc, std::int64_t strideC, std::int64_t batch_count,
                          const GemmOptions& options = {}) {
  GemmArgs args =
      detail::gemm_args<TA, TC>(transA, transB, m, n, k, alpha, {A, lda, strideA},
                                {B, ldb, strideB}, beta, {C, ldc, strideC}, batch_count, options);
  detail::gemm(context, layout, args);
}

/// A product for each entry of three arrays of equal length, which lie in host memory and hold host
/// or device pointers: std::span, std::vector, std::array … of const TA*, const TA* and TC*.
template <detail::PointerRange RA, detail::PointerRange RB, detail::PointerRange RC>
requires std::same_as<detail::pointee_t<RA>, detail::pointee_t<RB>> &&
    GemmPair<detail::pointee_t<RA>, detail::pointee_t<RC>>
void gemm_batched(Context& context, Layout layout, Op transA, Op transB, std::int64_t m,
                  std::int64_t n, std::int64_t k,
                  scalar_t<detail::pointee_t<RA>, detail::pointee_t<RC>> alpha, const RA& A,
                  std::int64_t lda, const RB& B, std::int64_t ldb,
                  scalar_t<detail::pointee_t<RA>, detail::pointee_t<RC>> beta, const RC& C,
                  std::int64_t ldc, const GemmOptions& options = {}) {
  using TA = detail::pointee_t<RA>;
  detail::check_batch_sizes(context, std::ranges::size(A), std::ranges::size(B),
                            std::ranges::size(C));
  GemmArgs args = detail::gemm_args<TA, detail::pointee_t<RC>>(
      transA, transB, m, n, k, alpha, {nullptr, lda, 0, detail::erase_pointers(A)},
      {nullptr, ldb, 0, detail::erase_pointers(B)}, beta,
      {nullptr, ldc, 0, detail::erase_pointers(C)}, std::int64_t(std::ranges::size(A)), options);
  detail::gemm(context, layout, args);
}

/// One problem of gemm_grouped.
template <class TA, class TC = TA>
requires GemmPair<TA, TC>
struct GemmGroup {
  Layout layout = Layout::RowMajor;
  Op transA = Op::NoTrans, transB = Op::NoTrans;
  std::int64_t m = 0, n = 0, k = 0;
  scalar_t<TA, TC> alpha = scalar_t<TA, TC>(1);
  const TA* A = nullptr;
  std::int64_t lda = 0;
  const TA* B = nullptr;
  std::int64_t ldb = 0;
  scalar_t<TA, TC> beta = scalar_t<TA, TC>(0);
  TC* C = nullptr;
  std::int64_t ldc = 0;
  Epilogue epilogue = {};
};

/// Products of different sizes. All are validated before the first is computed; no C may share
/// elements with an operand of any problem. Each problem has its epilogue; one in the options, or a
/// plan: InvalidArgument.
template <class TA, class TC>
void gemm_grouped(Context& context, std::span<const GemmGroup<TA, TC>> groups,
                  const GemmOptions& options = {}) {
  std::vector<detail::LaidGemm> problems;
  problems.reserve(groups.size());
  for (const auto& g : groups) {
    GemmArgs args =
        detail::gemm_args<TA, TC>(g.transA, g.transB, g.m, g.n, g.k, g.alpha, {g.A, g.lda},
                                  {g.B, g.ldb}, g.beta, {g.C, g.ldc}, 1, options);
    args.epilogue = g.epilogue;
    problems.push_back({g.layout, args});
  }
  detail::check_group_options(context, options);
  detail::gemm_grouped(context, problems);
}
template <class TA, class TC>
void gemm_grouped(Context& context, const std::vector<GemmGroup<TA, TC>>& groups,
                  const GemmOptions& options = {}) {
  gemm_grouped(context, std::span<const GemmGroup<TA, TC>>(groups), options);
}

/// Anything shaped like a strided std::mdspan of rank 2.
template <class M>
concept MatrixView = requires(const M& matrix) {
  {*matrix.data_handle()};
  { matrix.extent(0) } -> std::convertible_to<std::int64_t>;
  { matrix.stride(0) } -> std::convertible_to<std::int64_t>;
  { matrix.extent(1) } -> std::convertible_to<std::int64_t>;
  { matrix.stride(1) } -> std::convertible_to<std::int64_t>;
};

namespace detail {
/// A view seen as a row-major matrix, or as the transpose of one where its columns are contiguous.
struct ViewShape {
  std::int64_t rows, cols, ld;
  bool transposed;
};
MBLAS_EXPORT ViewShape view_shape(Context& context, char argument, std::int64_t rows,
                                  std::int64_t cols, std::int64_t row_stride,
                                  std::int64_t col_stride);
template <MatrixView M>
ViewShape shape_of(Context& context, char argument, const M& v) {
  return view_shape(context, argument, std::int64_t(v.extent(0)), std::int64_t(v.extent(1)),
                    std::int64_t(v.stride(0)), std::int64_t(v.stride(1)));
}
MBLAS_EXPORT void check_view_sizes(Context& context, const ViewShape& A, const ViewShape& B,
                                   const ViewShape& C);
template <class M>
using element_t = std::remove_cvref_t<decltype(*std::declval<const M&>().data_handle())>;
}  // namespace detail

/// C = alpha A B + beta C on views with data_handle(), extent(r) and stride(r): std::mdspan,
/// Kokkos::mdspan. Each needs a unit stride in one dimension (else InvalidArgument); row- and
/// column-strided views mix freely.
template <MatrixView MA, MatrixView MB, MatrixView MC>
requires std::same_as<detail::element_t<MA>, detail::element_t<MB>> &&
    GemmPair<detail::element_t<MA>, detail::element_t<MC>>
void gemm(Context& context, scalar_t<detail::element_t<MA>, detail::element_t<MC>> alpha,
          const MA& A, const MB& B, scalar_t<detail::element_t<MA>, detail::element_t<MC>> beta,
          const MC& C, const GemmOptions& options = {}) {
  const detail::ViewShape a = detail::shape_of(context, 'A', A);
  const detail::ViewShape b = detail::shape_of(context, 'B', B);
  const detail::ViewShape c = detail::shape_of(context, 'C', C);
  detail::check_view_sizes(context, a, b, c);
  // A column-strided C makes the whole call column-major; an operand of the other order is
  // transposed.
  const Layout layout = c.transposed ? Layout::ColMajor : Layout::RowMajor;
  const Op op_a = a.transposed == c.transposed ? Op::NoTrans : Op::Trans;
  const Op op_b = b.transposed == c.transposed ? Op::NoTrans : Op::Trans;
  gemm(context, layout, op_a, op_b, c.rows, c.cols, a.cols, alpha, A.data_handle(), a.ld,
       B.data_handle(), b.ld, beta, C.data_handle(), c.ld, options);
}

MBLAS_FORMS(gemm)
MBLAS_FORMS(gemm_strided_batched)
MBLAS_FORMS(gemm_batched)
MBLAS_FORMS(gemm_grouped)

}  // namespace mblas
