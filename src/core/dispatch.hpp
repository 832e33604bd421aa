// From validated arguments to a kernel that ran: finds the side the pointers are on, walks the
// preferred backends, and leaves the receipt.
#pragma once

#include "core/context_impl.hpp"
#include "mblas/backend.hpp"

namespace mblas {

/// Throws mblas::Error, with C as it was, where no backend may or can do it.
template <class Args>
void dispatch(Context::Impl& context, const Args& args);

/// Runs `args`, whose pointers are the host's, on a device backend, in blocks that fit the
/// workspace limit. False: every kernel declined, as the receipt says.
template <class Args>
bool stage(Context::Impl& context, Slot& slot, const Args& args);

/// f(name, operand, count of its pointers) for the operands that the call uses.
template <class F>
void for_each_operand(const GemmArgs& g, F&& f) {
  if (g.k > 0) {
    f("A", g.A, g.batch);
    f("B", g.B, g.batch);
  }
  f("C", g.C, g.batch);
  if (g.epilogue.bias.per != BiasPer::None) f("bias", Input{g.epilogue.bias.data}, 1);
}
template <class F>
void for_each_operand(const GeamArgs& g, F&& f) {
  if (g.alpha != Scalar{}) f("A", g.A, g.batch);
  if (g.beta != Scalar{}) f("B", g.B, g.batch);
  f("C", g.C, g.batch);
}
template <class F>
void for_each_operand(const TransposeArgs& t, F&& f) {
  f("A", t.A, t.batch);
  f("B", t.B, t.batch);
}
template <class F>
void for_each_operand(const TransposeInplaceArgs& t, F&& f) {
  f("A", t.A, t.batch);
}
template <class F>
void for_each_operand(const Gf256Args& g, F&& f) {
  if (g.k > 0) {
    f("A", g.A, 1);
    f("B", g.B, g.k);
  }
  f("C", g.C, g.m);
}

}  // namespace mblas
