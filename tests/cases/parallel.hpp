// Splits independent work over the machine's cores.
#pragma once

#include <cstdint>
#include <functional>

namespace mblas::cases {

/// Calls body(i) for every i in [0, count), from several threads when `work` (about nanoseconds in
/// all) is worth it. body must not throw.
void parallel_for(std::int64_t count, double work, const std::function<void(std::int64_t)>& body);

}  // namespace mblas::cases
