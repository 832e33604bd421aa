// The short way of small calls: checks that nearly every one passes, then the kernel. It takes a
// product that is small, valid and on the host, where the context asks for nothing that needs more
// than that: no kernel by name or from the tune file, no log, no verification. All others go by the
// four hops, with nothing written before. What a call does and leaves in the receipt is the same on
// both ways.
//
// It begins in the erased entries of the API, detail::gemm and detail::gf256, themselves: the
// smallest products notice every call in between.
#pragma once

#include "mblas/backend.hpp"
#include "mblas/context.hpp"

namespace mblas::detail {

/// Any call. Uses up `args`.
void gemm_by_hops(Context& context, Layout layout, GemmArgs& args);
void gf256_by_hops(Context& context, const Gf256Args& args);

}  // namespace mblas::detail
