// Sums of matrices: C = alpha op(A) + beta op(B).
//
// C, op(A) and op(B) are m×n. Types: float, double, their complex types, half and bfloat16
// (computed in float). alpha == 0: A is not read and may be null; beta == 0: likewise B. C may be A
// itself where transA does not transpose and lda == ldc, and B itself likewise; any other shared
// element is Status::Overlap. Layout, other errors and the forms without Context and as try_…: as
// in gemm.hpp.
#pragma once

#include <cstdint>

#include "mblas/backend.hpp"
#include "mblas/context.hpp"
#include "mblas/forms.hpp"
#include "mblas/gemm.hpp"
#include "mblas/types.hpp"

namespace mblas {

template <class T>
concept GeamType = is_geam_type(dtype_v<T>);

namespace detail {
MBLAS_EXPORT void geam(Context& context, Layout layout, const GeamArgs& args);
}  // namespace detail

/// batch_count sums; matrix b of an operand lies b * stride elements after the first.
template <GeamType T>
void geam_strided_batched(Context& context, Layout layout, Op transA, Op transB, std::int64_t m,
                          std::int64_t n, std::type_identity_t<scalar_t<T>> alpha, const T* A,
                          std::int64_t lda, std::int64_t strideA,
                          std::type_identity_t<scalar_t<T>> beta, const T* B, std::int64_t ldb,
                          std::int64_t strideB, T* C, std::int64_t ldc, std::int64_t strideC,
                          std::int64_t batch_count) {
  GeamArgs args;
  args.type = dtype_v<T>;
  args.transA = transA;
  args.transB = transB;
  args.m = m;
  args.n = n;
  args.alpha = detail::widen(alpha);
  args.beta = detail::widen(beta);
  args.A = {A, lda, strideA};
  args.B = {B, ldb, strideB};
  args.C = {C, ldc, strideC};
  args.batch = batch_count;
  detail::geam(context, layout, args);
}

/// One sum.
template <GeamType T>
void geam(Context& context, Layout layout, Op transA, Op transB, std::int64_t m, std::int64_t n,
          std::type_identity_t<scalar_t<T>> alpha, const T* A, std::int64_t lda,
          std::type_identity_t<scalar_t<T>> beta, const T* B, std::int64_t ldb, T* C,
          std::int64_t ldc) {
  geam_strided_batched(context, layout, transA, transB, m, n, alpha, A, lda, 0, beta, B, ldb, 0, C,
                       ldc, 0, 1);
}

MBLAS_FORMS(geam)
MBLAS_FORMS(geam_strided_batched)

}  // namespace mblas
