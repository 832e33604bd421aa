// What the core offers to the library's other entries.
#pragma once

#include <string>

#include "mblas/backend.hpp"
#include "mblas/context.hpp"

namespace mblas::detail {

void gf256(Context& context, const Gf256Args& args);

/// Runs f(the context's implementation) and keeps the message of what it throws as the context's
/// last error.
template <class F>
void remember(Context& context, F&& f) {
  try {
    f(context.impl());
  } catch (...) {
    const Status status = catch_status(&context);
    if (status == Status::OutOfMemory)  // std::bad_alloc among them
      throw Error(status, std::string(context.last_error()));
    throw;
  }
}

}  // namespace mblas::detail
