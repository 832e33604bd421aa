// How many groups of threads share the parts of the same sums: groups.cuh.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace mblas::cuda::gemm {

/// So many groups, a power of two, that each has at least eight of the parts.
constexpr int groups_for(std::int64_t parts) {
  return int(std::bit_floor(std::uint64_t(std::clamp<std::int64_t>(parts / 8, 1, 16))));
}

}  // namespace mblas::cuda::gemm
