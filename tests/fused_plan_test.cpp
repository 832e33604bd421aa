// How `fused_bf16x6` cuts a product: the plan is the one of least time, of those that there are.
#include "cuda/gemm/hopper/fused_plan.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace mblas::testing {
namespace {

namespace fused = cuda::gemm::fused;

fused::Shape shape_of(std::int64_t length, std::int64_t width, std::int64_t depth,
                      std::int64_t batch = 1) {
  return {length, width, depth, batch, batch == 1, 16, true, false, false, 132, 4.9e6};
}

TEST(FusedPlan, IsTheOneOfLeastTime) {
  for (const std::int64_t length : {1, 100, 3000, 200000})
    for (const std::int64_t width : {1, 24, 130, 2000})
      for (const std::int64_t depth : {1, 40, 3000, 100000})
        for (const std::int64_t batch : {1, 300}) {
          const fused::Shape x = shape_of(length, width, depth, batch);
          const fused::Plan plan = fused::choose(x);
          ASSERT_GE(plan.tile, 0);
          ASSERT_LT(plan.tile, int(std::size(fused::kTiles)));
          ASSERT_GE(plan.parts, 1);
          ASSERT_LE(plan.parts, fused::kMostParts);
          // No part is without steps.
          ASSERT_LE(plan.parts, (depth + fused::kDepth - 1) / fused::kDepth);
          EXPECT_TRUE(plan.microseconds > 0);
          for (const fused::TileInfo& t : fused::kTiles)
            EXPECT_LE(plan.microseconds, fused::microseconds_of(x, t, 1));
        }
}

// Few rows leave most of the device idle, unless k is cut.
TEST(FusedPlan, CutsWhatIsFew) {
  EXPECT_GT(fused::choose(shape_of(500, 48, 8000)).parts, 4);
  EXPECT_EQ(fused::choose(shape_of(100000, 48, 500)).parts, 1);
}

// Tiles for more columns than there are compute what nobody stores.
TEST(FusedPlan, TakesTilesAsWideAsThereAreColumns) {
  const auto cols = [](std::int64_t width) {
    return fused::kTiles[fused::choose(shape_of(20000, width, 3000)).tile].cols;
  };
  EXPECT_LE(cols(16), 32);
  EXPECT_LE(cols(48), 64);
  EXPECT_EQ(cols(128), 128);
}

// Images that one product of a batch has for itself are made where they are read.
TEST(FusedPlan, MakesImagesInTheBlockWhereFewReadThem) {
  const auto both = [](std::int64_t length, std::int64_t width, std::int64_t depth,
                       std::int64_t batch) {
    return fused::kTiles[fused::choose(shape_of(length, width, depth, batch)).tile].both;
  };
  EXPECT_TRUE(both(128, 128, 128, 300));
  EXPECT_TRUE(both(573, 500, 189, 1));
  EXPECT_FALSE(both(20000, 48, 3000, 1));
}

}  // namespace
}  // namespace mblas::testing
