// What estimates of times have in common.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace mblas::cuda {

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What two things take that hide each other in part: from the sum of both (`hides` 1) to the
/// longer one, the nearer to that the more they differ.
inline double partly_hidden(double a, double b, double hides) {
  const double longer = std::max(a, b);
  return longer * std::pow(1 + std::pow(std::min(a, b) / longer, hides), 1 / hides);
}

/// What reading takes of a cache that holds the first `held` bytes, and of memory the others: by
/// bytes in a unit of time.
inline double reading(double bytes, double held, double cache_rate, double memory_rate) {
  return std::min(bytes, held) / cache_rate + std::max(bytes - held, 0.0) / memory_rate;
}

}  // namespace mblas::cuda
