// Entries of the core that other parts of the library call.
#pragma once

#include "mblas/backend.hpp"
#include "mblas/context.hpp"

namespace mblas::detail {
void gf256(Context& context, const Gf256Args& args);
}  // namespace mblas::detail
