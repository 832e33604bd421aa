// How products are shared out: the steps of tiles among blocks that stay for several, and calls cut
// into parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/gemm/part.hpp"
#include "cuda/gemm/schedule.hpp"
#include "cuda/gemm/simt_tma_plan.hpp"

namespace mblas::testing {
namespace {

using cuda::gemm::Piece;
using cuda::gemm::Schedule;

/// The schedule of so many tiles, the last ones cut where that can be.
Schedule schedule_of(int tiles, int steps, int units) {
  const int whole = tiles / units * units;
  const std::int64_t cut = std::int64_t(tiles - whole) * steps;
  const int ranges = int(std::min<std::int64_t>(units, cut / 4));
  if (ranges <= tiles - whole) return cuda::gemm::schedule_of(tiles, tiles, steps, 0);
  return cuda::gemm::schedule_of(tiles, whole, steps, ranges);
}

// A step that is computed twice changes no result, and costs as much as the first time.
TEST(TileSchedule, EveryStepIsComputedOnce) {
  for (const int units : {4, 132})
    for (const int tiles : {1, 2, 5, 21, 48, 131, 132, 133, 153, 576})
      for (const int steps : {1, 3, 17, 64, 129, 256, 4096}) {
        const Schedule s = schedule_of(tiles, steps, units);
        const int blocks = std::min(std::max(s.whole, s.ranges), units);
        std::vector<int> computed(std::size_t(tiles) * std::size_t(steps));
        std::vector<int> parts(std::size_t(2 * units));
        for (int block = 0; block < blocks; ++block) {
          Piece piece, again;
          int at = 0;
          for (; s.find_piece(block, blocks, at, piece); at += piece.steps) {
            ASSERT_GT(piece.steps, 0);
            for (int i = 0; i < piece.steps; ++i)
              ASSERT_EQ(++computed[std::size_t(piece.tile * steps + piece.first + i)], 1)
                  << tiles << " tiles of " << steps << " steps, " << units << " units";
            if (piece.part >= 0) {
              ASSERT_EQ(++parts[std::size_t(piece.part)], 1);
            }
            ASSERT_TRUE(s.find_piece(block, blocks, at + piece.steps - 1, again));
            ASSERT_EQ(again.tile, piece.tile);
            ASSERT_EQ(again.part, piece.part);
          }
          ASSERT_EQ(s.steps_of(block, blocks), at);
        }
        for (const int times : computed) ASSERT_EQ(times, 1);
        for (int step = 0; s.ranges > 0 && step < (tiles - s.whole) * steps; ++step) {
          ASSERT_LE(s.begin(s.range_of(step)), step);
          ASSERT_GT(s.begin(s.range_of(step) + 1), step);
        }
      }
}

TEST(Parts, EveryProductIsInOneAndKnowsWhetherAStays) {
  const std::vector<float> data(3000);
  std::vector<float> result(3000);
  for (const std::int64_t k : {0, 5, 17}) {
    GemmArgs args;
    args.m = 7, args.n = 11, args.k = k, args.batch = 3;
    args.A = {data.data(), 20, 1000};
    args.B = {data.data(), 20, 1000};
    args.C = {result.data(), 20, 1000};
    std::vector<int> computed(std::size_t(args.batch * args.m * args.n));
    const void* before = nullptr;
    cuda::gemm::for_each_part(args, {3, 4, 6, 1}, [&](const GemmArgs& part, bool a_stays) {
      EXPECT_EQ(a_stays, part.A.data == before);
      before = part.A.data;
      const auto at = static_cast<const float*>(part.C.data) - result.data();
      const std::int64_t row = at % 1000 / 20, col = at % 20;
      ASSERT_TRUE(part.batch == 1 && row + part.m <= args.m && col + part.n <= args.n);
      for (std::int64_t i = row; i < row + part.m; ++i)
        for (std::int64_t j = col; j < col + part.n; ++j)
          computed[std::size_t((at / 1000 * args.m + i) * args.n + j)] += int(k == 0 ? 1 : part.k);
    });
    for (const int products : computed) ASSERT_EQ(products, k == 0 ? 1 : k);
  }
}

/// simt_tma's plan on an H200's 132 multiprocessors.
cuda::gemm::tma32::Plan float_plan(std::int64_t s, std::int64_t h, std::int64_t k,
                                   std::int64_t batch = 1) {
  return choose(cuda::gemm::tma32::Shape{s, h, k, batch, 132, false, false, 4.9e12});
}

// An H200, us, whole and cut: TN 2048³ 318 and 340, 3072³ 1408 and 1041, 4096³ 2509 and 2463.
TEST(FloatPlan, CutsTilesOfALastRoundThatIsNotFull) {
  EXPECT_EQ(float_plan(2048, 2048, 2048).ranges, 0);
  for (const std::int64_t n : {3072, 4096}) {
    const auto plan = float_plan(n, n, n);
    EXPECT_EQ(plan.tiles, n / 128 * (n / 256));
    EXPECT_EQ(plan.whole, plan.tiles / 132 * 132);
    EXPECT_EQ(plan.ranges, 132);
    EXPECT_EQ(plan.steps, n / 16);
  }
}

TEST(FloatPlan, CountsStayWithinWhatSchedulesHold) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const std::int64_t sizes[] = {1, 255, 70000, kMost - 1};
  for (const std::int64_t s : sizes)
    for (const std::int64_t h : sizes)
      for (const std::int64_t k : sizes)
        for (const std::int64_t batch : sizes) {
          const auto plan = float_plan(s, h, k, batch);
          if (plan.tiles == 0) continue;
          EXPECT_LE(plan.tiles, kMost);
          EXPECT_LE((plan.tiles / 132 + 1) * plan.steps, kMost);
          EXPECT_LE((plan.tiles - plan.whole) * plan.steps, plan.ranges > 0 ? kMost : 0);
        }
}

}  // namespace
}  // namespace mblas::testing
