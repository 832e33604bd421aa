// The short way of small calls: checks that nearly every one passes, then the kernel.
#pragma once

#include "core/context_impl.hpp"
#include "mblas/backend.hpp"

namespace mblas {

/// Computes a product that is small, valid and on the host, where the context asks for nothing that
/// needs more than that: no kernel by name or from the tune file, no log, no verification. False,
/// with nothing written: the call takes the long way, which also finds what is wrong with it. What
/// a call does and leaves in the receipt is the same on both ways. Uses up `args` where it returns
/// true, and leaves them as they were where it returns false.
bool run_quick(Context::Impl& context, Layout layout, GemmArgs& args);
bool run_quick(Context::Impl& context, const Gf256Args& args);

}  // namespace mblas
