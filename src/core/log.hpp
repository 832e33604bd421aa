// The lines of MBLAS_VERBOSE.
#pragma once

#include <string>

#include "core/context_impl.hpp"

namespace mblas {
/// One line on stderr: a `mblas bench` command that repeats the call, and what it took. At level 2
/// the declines follow.
template <class Args>
void log_call(const Context::Impl& context, const Args& args, double milliseconds);

/// The replaying command's arguments, from the operation's name on.
std::string replay(const GemmArgs& args);
std::string replay(const GeamArgs& args);
std::string replay(const TransposeArgs& args);
std::string replay(const TransposeInplaceArgs& args);
std::string replay(const Gf256Args& args);
}  // namespace mblas
