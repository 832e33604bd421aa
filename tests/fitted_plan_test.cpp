// How `fitted` cuts C: every element is in one tile, and a block has room for a tile.
#include "cuda/gemm/fitted_plan.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "cuda/gemm/tensor_f64_plan.hpp"

namespace mblas::testing {
namespace {

namespace fitted = cuda::fitted;

constexpr std::int64_t kShared = 227 << 10;

/// A batch of m×n×k, op(A) and op(B) as they are, on 132 multiprocessors.
fitted::Shape shape_of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                       const fitted::Unit& u) {
  const auto is_loose = [&](std::int64_t row) { return row % 16 * u.element_bytes % 16 != 0; };
  return {m, n, k, batch, true, false, is_loose(n) || is_loose(k), is_loose(n), 132, kShared};
}

void expect_whole(const fitted::Tiling& t, const fitted::Shape& s, const fitted::Unit& u) {
  SCOPED_TRACE(::testing::Message() << s.m << "x" << s.n << " of " << u.element_bytes
                                    << " bytes as " << t.down << "x" << t.across);
  EXPECT_GE(t.rows * std::int64_t(t.down), s.m);
  EXPECT_LT(t.rows * std::int64_t(t.down - 1), s.m);
  EXPECT_GE(t.cols * std::int64_t(t.across), s.n);
  EXPECT_LT(t.cols * std::int64_t(t.across - 1), s.n);
  EXPECT_EQ(t.rows % u.step_rows, 0);
  EXPECT_EQ(t.cols % u.step_cols, 0);
  EXPECT_LE(t.threads(u), 256);
  EXPECT_GE(t.threads(u),
            cuda::divide_up(t.rows, u.rows) * cuda::divide_up(t.cols, u.cols) * u.lanes);
  EXPECT_LE(t.shared_bytes(s, u), kShared);
  EXPECT_GE(t.shared_bytes(s, u),
            fitted::kStages * (t.panel_a(s, u) + t.panel_b(s, u)) * u.element_bytes);
  EXPECT_EQ(t.panel_a(s, u) * u.element_bytes % 16, 0);
  EXPECT_GE(t.pitch_c(u), t.cols);
}

TEST(FittedPlan, TilesCoverC) {
  for (const fitted::Unit& u : {fitted::kFloat, fitted::kComplexFloat, fitted::kDouble})
    for (std::int64_t m = 1; m <= 400; m += m < 140 ? 1 : 13)
      for (const std::int64_t n : {std::int64_t{1}, std::int64_t{24}, m, 2 * m + 1}) {
        const fitted::Shape s = shape_of(m, n, m, 300, u);
        if (const fitted::Tiling t = choose(s, u); t.down > 0) expect_whole(t, s, u);
        for (int down = 1; down <= 8; ++down)
          for (int across = 1; across <= 8; ++across)
            if (const fitted::Tiling t = tiling_of(s, down, across, u); t.down > 0) {
              EXPECT_EQ(t.down, down);
              EXPECT_EQ(t.across, across);
              expect_whole(t, s, u);
            }
      }
}

TEST(FittedPlan, AllSizesUpToAThousandHaveTiles) {
  for (const fitted::Unit& u : {fitted::kFloat, fitted::kComplexFloat, fitted::kDouble})
    for (std::int64_t m = 40; m <= 1000; m += 7)
      EXPECT_GT(choose(shape_of(m, m, 100, 10, u), u).down, 0) << m;
}

TEST(FittedPlan, HasNoneWhereThereWouldBeTooMany) {
  const fitted::Unit& u = fitted::kFloat;
  const std::int64_t most = std::int64_t{1} << 62;
  EXPECT_EQ(choose(shape_of(1 << 20, 1 << 20, 16, 1, u), u).down, 0);
  EXPECT_EQ(choose(shape_of(most, 1, 16, 1, u), u).down, 0);
  EXPECT_EQ(choose(shape_of(1, most, 16, 1, u), u).down, 0);
}

/// What is known of an H100: 65³ and 100³ of doubles take 27 and 37 us in batches of 300, and 40
/// and 50 by tensor_f64; large products are for others.
TEST(FittedPlan, IsEstimatedAsMeasured) {
  const fitted::Unit& u = fitted::kDouble;
  const auto microseconds = [&](std::int64_t n, std::int64_t batch) {
    return choose(shape_of(n, n, n, batch, u), u).cycles / 1980;
  };
  EXPECT_NEAR(microseconds(65, 300), 27, 5);
  EXPECT_NEAR(microseconds(100, 300), 37, 6);
  const cuda::gemm::mma64::Shape large = {
      cuda::gemm::mma64::kTiles, 4096, 4096, 4096, 1, 1, 132, 8};
  EXPECT_GT(microseconds(4096, 1), cuda::gemm::mma64::choose(large).cycles / 1980);
}

}  // namespace
}  // namespace mblas::testing
