#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace mblas::cases {

void parallel_for(std::int64_t count, double work, const std::function<void(std::int64_t)>& body) {
  constexpr double kWorthAThread = 1e6;
  const auto threads = std::int64_t(std::min<double>(
      {double(std::thread::hardware_concurrency()), double(count), work / kWorthAThread}));
  std::atomic<std::int64_t> next = 0;
  const auto worker = [&] {
    for (std::int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(i);
  };
  std::vector<std::jthread> helpers;
  for (std::int64_t t = 1; t < threads; ++t) helpers.emplace_back(worker);
  worker();
}

}  // namespace mblas::cases
