// Products that nobody thought of.
#pragma once

#include <span>
#include <string_view>

namespace mblas::bench {

/// Commands as a Suite has them, one for each product: sizes, batches and operations drawn at
/// random from a fixed seed, of every type; smaller ones for `host` backends. No choice among
/// kernels may be fitted to them.
std::span<const std::string_view> survey(bool host);

}  // namespace mblas::bench
