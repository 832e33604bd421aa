// Checks of a call's arguments, once for every backend. They see the arguments in the caller's
// layout, so that messages speak of what was passed, and throw mblas::Error before anything is
// written.
#pragma once

#include <span>

#include "mblas/backend.hpp"
#include "mblas/types.hpp"

namespace mblas {

/// Each throws what is wrong; false: nothing is to be computed. On true the arguments are made
/// row-major and operands that a zero scalar silences are dropped.
bool validate(GemmArgs& args, Layout layout);
bool validate(GeamArgs& args, Layout layout);
bool validate(TransposeArgs& args, Layout layout);
bool validate(TransposeInplaceArgs& args, Layout layout);
bool validate(Gf256Args& args);

/// Is `op` one of Op's values?
constexpr bool is_op(Op op) {
  return op == Op::NoTrans || op == Op::Trans || op == Op::ConjTrans || op == Op::ConjNoTrans;
}

/// Makes a column-major product row-major, or the other way: Cᵀ = op(B)ᵀ op(A)ᵀ, and a ColMajor
/// matrix is its transpose.
void swap_layout(GemmArgs& args);

/// Is `compute` a mode of products of `type`?
bool has_mode(DType type, Compute compute);

/// Across the problems of a group, each validated: no C shares elements with any problem's
/// operands.
void check_group_overlap(std::span<const GemmArgs> problems);

}  // namespace mblas
