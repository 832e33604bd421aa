// Estimates of blocks with a product of a batch or a few: rounds of them on multiprocessors.
#include <gtest/gtest.h>

#include <cstdint>

#include "cuda/gemm/tensor_batch_plan.hpp"

namespace mblas::testing {
namespace {

namespace batch = cuda::tensor_batch;

constexpr int kProcessors = 132;

/// Products of 40×40×40 doubles.
batch::Shape doubles(std::int64_t count) {
  constexpr std::int64_t kSide = 40, kBytes = kSide * kSide * 8;
  batch::Shape s;
  s.m = s.n = s.k = kSide;
  s.batch = count;
  s.element_bytes = s.c_element_bytes = 8;
  s.a_bytes = s.b_bytes = s.c_bytes = kBytes;
  s.copies_in = 2 * kBytes / 16;
  s.shared_bytes = 227 << 10;
  s.processors = kProcessors;
  return s;
}
constexpr batch::Config kConfig = {16, 40, 1};

/// As if memory took no time, which more blocks do not take more of.
double cycles(std::int64_t count) {
  batch::Rates rates = batch::kDoubleRates;
  rates.pace.memory = 1e12;
  return cycles_of(doubles(count), kConfig, rates, 0);
}
std::int64_t at_once() {
  const batch::Shape s = doubles(kProcessors);
  return std::int64_t(cuda::whole::blocks_at_once(s.share(kConfig), s.threads(kConfig),
                                                  s.bytes(kConfig), s.shared_bytes));
}

// A block more than all multiprocessors have in two rounds takes as long as one more for each.
TEST(BatchPlan, RoundsAreThoseOfTheFullest) {
  const std::int64_t two = 2 * kProcessors * at_once();
  EXPECT_GT(cycles(two + 1), 1.05 * cycles(two));
  EXPECT_NEAR(cycles(two + 1), cycles(two + kProcessors), 1);
}

// What one block waits for is hidden by others, but in the first round.
TEST(BatchPlan, LaterRoundsTakeLess) {
  const std::int64_t all = kProcessors * at_once();
  const double later = (cycles(40 * all) - cycles(20 * all)) / 20;
  EXPECT_LT(later, 0.8 * cycles(all));
  EXPECT_GT(later, 0.2 * cycles(all));
}

}  // namespace
}  // namespace mblas::testing
