// The choice of tiles for Hopper's tensor cores: plans cover a product, and what is known of an
// H200 is chosen.
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "cuda/gemm/hopper/plan.hpp"

namespace mblas::testing {
namespace {

namespace hopper = cuda::gemm::hopper;
using hopper::kHalfTiles;

/// m×n×k elements of 16 bits on 132 multiprocessors.
hopper::Shape half_shape(std::int64_t m, std::int64_t n, std::int64_t k, bool plain, bool turns) {
  return {.tiles = kHalfTiles,
          .tile_count = int(std::size(kHalfTiles)),
          .m = m,
          .n = n,
          .batch = 1,
          .steps = (k * 2 + 127) / 128,
          .processors = 132,
          .workspace_bytes = 256 << 20,
          .boxes = true,
          .joins = true,
          .lines_a = 1,
          .lines_b = 1,
          .plain = plain,
          .turns = turns,
          .across = true};
}

std::string tile_name(int tile) {
  const hopper::TileInfo& t = kHalfTiles[tile];
  return std::to_string(t.rows) + "x" + std::to_string(t.cols);
}
std::string tile_name(const hopper::Plan& p) { return tile_name(p.tile); }
/// "64x80 by 2" of clusters across, or "none".
std::string across_name(const hopper::Plan& p) {
  return p.across ? tile_name(p) + " by " + std::to_string(p.cluster) : "none";
}

TEST(HopperPlan, CoversTheProduct) {
  constexpr std::int64_t kShapes[][3] = {{1, 1, 64},       {129, 184, 208},    {1000, 72, 5000},
                                         {40, 3000, 1000}, {1536, 1536, 1536}, {4095, 4097, 4093}};
  for (const auto& [m, n, k] : kShapes)
    for (const bool turns : {false, true}) {
      const hopper::Shape x = half_shape(m, n, k, true, turns);
      int count = 0;
      hopper::for_each_config(kHalfTiles, [&](const hopper::Config& c) {
        const hopper::Plan p = plan_of(x, c);
        if (p.rows == 0) return;
        ++count;
        const hopper::TileInfo& t = x.tiles[c.tile];
        std::int64_t rows = m, cols = n;
        if (t.is_turned(turns)) std::swap(rows, cols);
        const std::int64_t below = t.rows * (p.across ? 1 : c.cluster);
        const std::int64_t aside = t.cols * (p.across ? c.cluster : 1);
        EXPECT_GE(p.rows * below, rows);
        EXPECT_LT((p.rows - 1) * below, rows);
        EXPECT_GE(p.cols * aside, cols);
        EXPECT_LT((p.cols - 1) * aside, cols);
        EXPECT_TRUE(!p.across || p.slices == 1);
        EXPECT_TRUE(!p.across || p.cols * aside < cols + t.cols || (t.rows == 64 && p.rows == 1));
        EXPECT_GE(std::int64_t(p.slices) * p.slice_steps, x.steps);
        EXPECT_LT(std::int64_t(p.slices - 1) * p.slice_steps, x.steps);
        EXPECT_LE(p.whole, p.clusters(1));
        if (p.joined) {
          EXPECT_EQ(p.whole, 0);
          EXPECT_LE(p.items(1), x.processors);
          EXPECT_EQ(p.sum_bytes, 0);
        }
        EXPECT_EQ(p.items(1), p.whole + (p.clusters(1) - p.whole) * p.slices);
        EXPECT_TRUE(p.microseconds > 0 && p.microseconds < 1e9);
      });
      EXPECT_GT(count, 0);
    }
}

TEST(HopperPlan, PlainTilesAreForPlainProducts) {
  for (std::int64_t size = 64; size <= 4096; size += 64) {
    const hopper::Shape x = half_shape(size, size, size, false, false);
    EXPECT_FALSE(kHalfTiles[choose(x).tile].plain) << size;
  }
  const hopper::Shape all = half_shape(512, 512, 512, true, false);
  hopper::Shape few = all;
  few.tile_count = int(std::size(hopper::kTiles));
  for (int tile = 0; tile < all.tile_count; ++tile) {
    EXPECT_GT(plan_of(all, {tile, 1, 1}).rows, 0);
    EXPECT_EQ(plan_of(few, {tile, 1, 1}).rows > 0, tile < few.tile_count);
  }
  hopper::Shape neither = all;
  neither.box_a = neither.box_b = hopper::kBoxOf16Bits;
  for (int tile = 0; tile < all.tile_count; ++tile)
    EXPECT_EQ(plan_of(neither, {tile, 1, 1}).rows > 0,
              kHalfTiles[tile].cols % 64 == 0 ||
                  hopper::has_whole_boxes(kHalfTiles[tile].rows, kHalfTiles[tile].cols));
  hopper::Shape across = all;
  across.box_b = hopper::kBoxOf16Bits;  // and C^T is not asked for
  for (int tile = 0; tile < all.tile_count; ++tile)
    EXPECT_EQ(plan_of(across, {tile, 1, 1}).rows > 0,
              kHalfTiles[tile].cols % 64 == 0 || kHalfTiles[tile].turned);
}

TEST(HopperPlan, LeavesLittleOfARoundEmpty) {
  const auto tile_of = [](std::int64_t m, std::int64_t n, std::int64_t k, bool turns) {
    return tile_name(choose(half_shape(m, n, k, true, turns)));
  };
  EXPECT_EQ(tile_of(1536, 1536, 1536, true), "128x144");
  EXPECT_EQ(tile_of(1280, 1280, 1280, true), "128x112");
  EXPECT_EQ(tile_of(16, 14336, 14336, false), "64x112");
  EXPECT_EQ(tile_of(14336, 16, 14336, true), "64x112");
  EXPECT_EQ(tile_of(48, 5120, 5120, false), "64x48");
  EXPECT_EQ(tile_of(64, 11008, 4096, false), "64x96");
  EXPECT_EQ(tile_of(1024, 14336, 4096, false), "128x176");
  EXPECT_EQ(tile_of(4096, 4096, 4096, true), "128x256");
  const hopper::Plan plan = choose(half_shape(1536, 1536, 1536, true, true));
  EXPECT_EQ(plan.clusters(1), 132);
}

// A few columns, or rows that the engine has as such, come faster to as many blocks as there can be
// that share them: what holds a block up is the lines that it asks for.
TEST(HopperPlan, FewColumnsAreSharedByFour) {
  for (const bool turns : {false, true}) {
    hopper::Shape x =
        turns ? half_shape(24, 3000, 3000, true, true) : half_shape(3000, 24, 3000, true, false);
    x.lines_a = x.lines_b = 2;
    x.memory = 3.35e6;
    (turns ? x.box_b : x.box_a) = 64;
    EXPECT_EQ(tile_name(choose(x)), "64x32");
    constexpr int kSlim = 15;
    ASSERT_EQ(tile_name(kSlim), "64x32");
    const hopper::Plan alone = plan_of(x, {kSlim, 1, 1}), shared = plan_of(x, {kSlim, 4, 1});
    EXPECT_LT(shared.microseconds, alone.microseconds);
  }
}

// Where rows start between lines of the cache, and tiles fill the device once at most.
TEST(HopperPlan, LooseRowsAreSharedByFour) {
  const auto cluster_of = [](std::int64_t m, std::int64_t n, std::int64_t k, bool loose) {
    hopper::Shape x = half_shape(m, n, k, true, true);
    x.lines_a = x.lines_b = loose ? 2 : 1;
    const hopper::Plan plan = choose(x);
    return plan.clusters(1) > 30 ? 0 : plan.cluster;
  };
  EXPECT_EQ(cluster_of(711, 3000, 3000, true), 4);
  EXPECT_EQ(cluster_of(3000, 200, 3000, true), 4);
  EXPECT_EQ(cluster_of(200, 3000, 3000, true), 4);
  EXPECT_NE(cluster_of(3000, 3000, 3000, true), 4);
  for (const hopper::TileInfo& t : kHalfTiles) {
    const hopper::Config four{int(&t - kHalfTiles), 4, 1};
    EXPECT_EQ(plan_of(half_shape(8192, 8192, 64, true, true), four).rows, 0);
  }
}

// Few tiles and a long k: a cluster adds up its slices. Where a result is not written as boxes, or
// tiles are many, none does.
TEST(HopperPlan, JoinsTheSlicesOfFewTiles) {
  hopper::Shape x = half_shape(256, 256, 2048, true, true);
  EXPECT_TRUE(choose(x).joined);
  x.joins = false;
  EXPECT_FALSE(choose(x).joined);
  EXPECT_FALSE(choose(half_shape(512, 512, 512, true, true)).joined);
  EXPECT_FALSE(choose(half_shape(4096, 4096, 4096, true, true)).joined);
}

// Of few rows each part of op(B) is read by one tile, whichever operand of the engine it is; where
// it is small, two tiles take no longer: 64x1024x4096 NN 6.2 us by 64x32, by one of 64x64 8.5.
TEST(HopperPlan, ReadsTheLargeOperandOnce) {
  for (const std::int64_t m : {16, 64, 100, 128})
    for (const std::int64_t n : {1024, 4096, 5120, 8192, 14336})
      for (const bool turns : {false, true}) {
        if (m >= 64 && n == 1024) continue;
        const hopper::Shape x = half_shape(m, n, 4096, true, turns);
        const hopper::Plan p = choose(x);
        const hopper::TileInfo& t = kHalfTiles[p.tile];
        EXPECT_EQ(t.is_turned(turns) ? p.cols : p.rows, 1) << m << " " << n << " " << tile_name(p);
      }
  for (const bool turns : {false, true}) {
    const hopper::Plan plan = choose(half_shape(128, 4096, 4096, true, turns));
    EXPECT_TRUE(plan.joined && kHalfTiles[plan.tile].turned);
  }
}

// In plain calls a second launch takes longer than in graphs. An H200, us, by joined slices or by
// whole tiles, and by slices that a second kernel adds up: 6.4 and 9.2, 8.8 and 15.9.
TEST(HopperPlan, SecondLaunchesTakeTime) {
  for (const std::int64_t m : {200, 711}) {
    hopper::Shape x = half_shape(m, 200, 3000, true, true);
    x.lines_a = x.lines_b = 2;
    x.box_b = hopper::kBoxOf16Bits;
    x.two_launches = 9.2;
    const hopper::Plan plan = choose(x);
    EXPECT_TRUE(plan.joined || plan.slices == 1) << m;
  }
}

// Of a batch that memory limits, tiles that read an operand once more take longer.
TEST(HopperPlan, BatchesFetchLittle) {
  const auto tile_of = [](std::int64_t size, std::int64_t batch) {
    hopper::Shape x = half_shape(size, size, size, true, true);
    x.batch = batch;
    const hopper::Plan plan = choose(x);
    EXPECT_EQ(plan.cluster, 2);
    return tile_name(plan);
  };
  EXPECT_EQ(tile_of(200, 300), "128x112");  // not 128x80
  EXPECT_EQ(tile_of(256, 100), "128x128");  // not 128x96
}

// Tiles as wide as leave little of a round empty. An H200, us, by these and by what was taken
// before there were such tiles: 51.0 and 58.5, 43.7 and 49.4, 79.2 and 83.8, 340 and 346.
TEST(HopperPlan, WidthsThatFillRounds) {
  hopper::Shape x = half_shape(2504, 2504, 2504, true, true);
  x.lines_a = x.lines_b = 2;
  x.box_b = hopper::kBoxOf16Bits;
  EXPECT_EQ(tile_name(choose(x)), "128x208");
  EXPECT_EQ(tile_name(choose(half_shape(256, 14336, 4096, true, false))), "128x224");
  EXPECT_EQ(tile_name(choose(half_shape(512, 14336, 4096, true, false))), "128x224");
  x = half_shape(5120, 5120, 5120, true, true);
  x.box_b = hopper::kBoxOf16Bits;
  EXPECT_EQ(tile_name(choose(x)), "128x224");
}

// Likewise where neither operand runs along k, by whole boxes of columns. An H200, us, by these and
// by what was taken before: 13.8 and 16.3, 38.5 and 42.7, 16.7 and 20.7; those of 64 rows, or of 80
// columns, that would be taken else, 18.2 for 12.1 and 23.9 for 21.1.
TEST(HopperPlan, WidthsWhereNeitherOperandRunsAlongK) {
  const auto tile_of = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    hopper::Shape x = half_shape(m, n, k, true, false);
    x.lines_a = hopper::lines_of_row(std::uintptr_t(m * 2), false);
    x.lines_b = hopper::lines_of_row(std::uintptr_t(n * 2), false);
    x.box_a = x.box_b = hopper::kBoxOf16Bits;
    return tile_name(choose(x));
  };
  EXPECT_EQ(tile_of(1536, 1536, 1536), "128x144");
  EXPECT_EQ(tile_of(2304, 2304, 2304), "128x176");
  EXPECT_EQ(tile_of(1816, 4424, 416), "128x176");
  EXPECT_EQ(tile_of(256, 2048, 4096), "64x64");
  EXPECT_EQ(tile_of(320, 3584, 4864), "64x192");
}

// 128x128 is not for large products, also where rows do not start at lines: 4095x4104x4096 208 us,
// 187 by what is taken. But it is with GELU, which one consumer computes while the other one
// multiplies: 4096x4096x4096 NT 181 us, 195 by 128x256.
TEST(HopperPlan, SquareTilesAreForEpilogues) {
  hopper::Shape x = half_shape(4095, 4104, 4096, true, true);
  x.lines_b = 2;
  x.box_b = hopper::kBoxOf16Bits;
  EXPECT_NE(tile_name(choose(x)), "128x128");
  x = half_shape(4096, 4096, 4096, true, false);
  EXPECT_NE(tile_name(choose(x)), "128x128");
  x.epilogue = 9.1e-5;
  EXPECT_EQ(tile_name(choose(x)), "128x128");
}

// However short k is, a tile takes until its results are on their way: an H200, us, by 64x128 and
// by what was estimated to take as long, 6.0 and 8.6 (128x64 by two), 27 and 36 (128x176).
TEST(HopperPlan, ShortSumsTakeTheTimeOfResults) {
  hopper::Shape x = half_shape(16, 352, 56, true, true);
  x.batch = 220;
  x.filled = true;
  x.lines_a = x.lines_b = 2;
  x.box_b = 64;
  EXPECT_EQ(tile_name(choose(x)), "64x128");
  x = half_shape(32, 480, 8, true, false);
  x.batch = 1108;
  x.filled = true;
  x.lines_a = x.lines_b = 2;
  x.box_a = 64;
  EXPECT_EQ(tile_name(choose(x)), "64x128");
}

// Eight rows that lie across k are 16 bytes of each line, which all tiles ask for at a time: the
// more tiles, the longer. 8x4840x848 by 64x64 takes 7.7 us, by 64x112 5.0.
TEST(HopperPlan, NarrowBoxesAreAskedForByFewTiles) {
  hopper::Shape x = half_shape(8, 4840, 848, true, false);
  x.box_a = hopper::kBoxOf16Bits;
  EXPECT_GE(kHalfTiles[choose(x).tile].cols, 80);
  const double many = plan_of(x, {4, 1, 1}).microseconds;
  EXPECT_EQ(kHalfTiles[4].cols, 64);
  x.box_a = 0;
  EXPECT_LT(plan_of(x, {4, 1, 1}).microseconds, many) << "along k each has lines of its own";
}

// Tiles of a C of few rows are clusters side by side, which share the rows' operand. An H200, us,
// with them and by the fastest plan without: 7.0 and 10.3, 4.4 and 6.0, 23.8 and 25.5.
TEST(HopperPlan, FewRowsAreSharedAcross) {
  const auto plan_across = [](std::int64_t m, std::int64_t n, std::int64_t k, int box_a,
                              int box_b) {
    hopper::Shape x = half_shape(m, n, k, true, false);
    x.box_a = box_a;
    x.box_b = box_b;
    const hopper::Plan plan = choose(x);
    x.across = false;
    EXPECT_LT(plan.microseconds, choose(x).microseconds);
    return across_name(plan);
  };
  constexpr int kBox = hopper::kBoxOf16Bits;
  EXPECT_EQ(plan_across(8, 6960, 1976, kBox, kBox), "64x64 by 4");
  EXPECT_EQ(plan_across(24, 6176, 1008, kBox, 0), "64x64 by 4");
  EXPECT_EQ(plan_across(64, 11008, 4096, 0, 0), "64x96 by 4");
}

// Tiles of 128 rows of the longer operand, side by side, fill the device once where clusters share
// it. An H200, us, with them and by the fastest plan without: 18.5 and 20.8, 18.6 and 19.7.
TEST(HopperPlan, LongOperandsAreSharedAcross) {
  const auto plan_across = [](std::int64_t m, std::int64_t n, std::int64_t k, bool turns) {
    hopper::Shape x = half_shape(m, n, k, true, turns);
    if (turns) x.box_b = hopper::kBoxOf16Bits;
    const hopper::Plan plan = choose(x);
    return across_name(plan);
  };
  EXPECT_EQ(plan_across(320, 4096, 4096, false), "128x80 by 2");
  EXPECT_EQ(plan_across(200, 8192, 3072, true), "128x112 by 2");
  EXPECT_EQ(plan_across(4096, 4096, 4096, false), "none");
}

// Tiles of 64 rows too, where all columns of C, or of C^T, are one cluster's, so that the long
// operand is fetched once; or where there are few of them. An H200, us, with them and by what was
// taken before: 12.7 and 14.4, 28.9 and 39.2, 15.0 and 17.2, 5.4 and 6.7. By such clusters the last
// one takes 20.8 for 17.4.
TEST(HopperPlan, RowsOfTilesAreSharedAcross) {
  const auto shape_of = [](std::int64_t m, std::int64_t n, std::int64_t k, bool a_across,
                           bool b_across, bool loose) {
    hopper::Shape x = half_shape(m, n, k, true, b_across);
    x.two_launches = 9.2;
    x.lines_a = x.lines_b = loose ? 2 : 1;
    if (a_across) x.box_a = hopper::kBoxOf16Bits;
    if (b_across) x.box_b = hopper::kBoxOf16Bits;
    return x;
  };
  const auto plan_across = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool a_across,
                               bool b_across, bool loose = false) {
    return across_name(choose(shape_of(m, n, k, a_across, b_across, loose)));
  };
  EXPECT_EQ(plan_across(136, 4096, 4096, false, true), "64x80 by 2");
  EXPECT_EQ(plan_across(144, 4096, 11008, false, true), "64x80 by 2");
  EXPECT_EQ(plan_across(200, 4096, 4096, false, false), "64x128 by 2");
  EXPECT_EQ(plan_across(72, 1760, 1416, true, true, true), "64x64 by 4");
  EXPECT_EQ(plan_across(3072, 240, 5120, false, true), "none");

  // Gpu.ForcedTilesAcross asks for these, where the direction is the model's choice.
  const auto forced = [&](int tile, int cluster, const hopper::Shape& x) {
    return across_name(plan_of(x, {tile, cluster, 1}));
  };
  EXPECT_EQ(forced(12, 2, shape_of(136, 4032, 4032, false, true, false)), "64x80 by 2");
  EXPECT_EQ(forced(10, 2, shape_of(200, 4096, 4096, false, false, false)), "64x128 by 2");
  EXPECT_EQ(forced(13, 2, shape_of(4032, 136, 4096, false, false, false)), "64x96 by 2");
  EXPECT_EQ(forced(14, 2, shape_of(4096, 200, 4032, true, false, false)), "64x112 by 2");
  EXPECT_EQ(forced(4, 4, shape_of(72, 1760, 1416, true, true, true)), "64x64 by 4");
  EXPECT_EQ(forced(4, 2, shape_of(160, 2040, 2048, true, false, true)), "64x64 by 2");
}

static_assert(hopper::box_bytes_of(16) == 32 && hopper::box_bytes_of(17) == 64 &&
              hopper::box_bytes_of(32) == 64 && hopper::box_bytes_of(33) == 128);

// A block that brings its half of a panel outside of the matrix takes several times as long; halves
// are of eight columns or more.
TEST(HopperPlan, ClustersShareColumns) {
  for (int tile = 0; tile < int(std::size(kHalfTiles)); ++tile)
    for (const std::int64_t n : {8, 40, 64, 88, 136}) {
      const hopper::Plan p = plan_of(half_shape(n, n, 4096, true, false), {tile, 2, 1});
      EXPECT_EQ(p.rows > 0, n > 8) << n << " " << kHalfTiles[tile].cols;
    }
}

}  // namespace
}  // namespace mblas::testing
