// Transposes, out of place and in place, of elements of 1, 2, 4, 8 or 16 bytes. Bits are moved,
// never interpreted. Layout, errors and the forms without Context and as try_…: as in gemm.hpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "mblas/backend.hpp"
#include "mblas/context.hpp"
#include "mblas/forms.hpp"
#include "mblas/types.hpp"

namespace mblas {

template <class T>
concept TransposeElement = std::is_trivially_copyable_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);

namespace detail {
MBLAS_EXPORT void transpose(Context& context, Layout layout, const TransposeArgs& args);
MBLAS_EXPORT void transpose_inplace(Context& context, Layout layout,
                                    const TransposeInplaceArgs& args);
}  // namespace detail

/// batch_count transposes; matrix b of an operand lies b * stride elements after the first.
template <TransposeElement T>
void transpose_strided_batched(Context& context, Layout layout, std::int64_t m, std::int64_t n,
                               const T* A, std::int64_t lda, std::int64_t strideA, T* B,
                               std::int64_t ldb, std::int64_t strideB, std::int64_t batch_count) {
  TransposeArgs args;
  args.type = untyped(sizeof(T));
  args.m = m;
  args.n = n;
  args.A = {A, lda, strideA};
  args.B = {B, ldb, strideB};
  args.batch = batch_count;
  detail::transpose(context, layout, args);
}

/// B (n×m) = Aᵀ, A m×n.
template <TransposeElement T>
void transpose(Context& context, Layout layout, std::int64_t m, std::int64_t n, const T* A,
               std::int64_t lda, T* B, std::int64_t ldb) {
  transpose_strided_batched(context, layout, m, n, A, lda, 0, B, ldb, 0, 1);
}

/// batch_count in-place transposes; matrix b starts b * strideA elements after the first, before
/// and after.
template <TransposeElement T>
void transpose_inplace_strided_batched(Context& context, Layout layout, std::int64_t m,
                                       std::int64_t n, T* A, std::int64_t lda, std::int64_t ldb,
                                       std::int64_t strideA, std::int64_t batch_count) {
  TransposeInplaceArgs args;
  args.type = untyped(sizeof(T));
  args.m = m;
  args.n = n;
  args.A = {A, lda, strideA};
  args.ldb = ldb;
  args.batch = batch_count;
  detail::transpose_inplace(context, layout, args);
}

/// The m×n matrix at A, of leading dimension lda, becomes its n×m transpose, of leading dimension
/// ldb, at the same address. Rectangular too: A must have room for both. Elements that belong to
/// neither shape are not touched; those of the source that lie outside the result are left
/// undefined.
template <TransposeElement T>
void transpose_inplace(Context& context, Layout layout, std::int64_t m, std::int64_t n, T* A,
                       std::int64_t lda, std::int64_t ldb) {
  transpose_inplace_strided_batched(context, layout, m, n, A, lda, ldb, 0, 1);
}

MBLAS_FORMS(transpose)
MBLAS_FORMS(transpose_strided_batched)
MBLAS_FORMS(transpose_inplace)
MBLAS_FORMS(transpose_inplace_strided_batched)

}  // namespace mblas
