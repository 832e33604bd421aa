// The choice of tiles and parts of k for doubles, and between tensor_f64_tma and tensor_f64: what
// is known of an H100 or H200 is chosen, or what takes at most 3 % longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cuda/gemm/tensor_f64_plan.hpp"
#include "cuda/gemm/tensor_f64_tma_plan.hpp"

namespace mblas::testing {
namespace {

namespace mma64 = cuda::gemm::mma64;
namespace tma64 = cuda::gemm::tma64;

/// m×n×k doubles, or complex ones, on 132 multiprocessors.
struct Doubles {
  std::int64_t m, n, k;
  bool complex = false;
  std::int64_t batch = 1;

  /// X is A: of op(B) whose rows are not C's.
  tma64::Shape for_tma() const {
    return {
        .tiles = complex ? tma64::kComplexTiles : std::span<const tma64::TileInfo>(tma64::kTiles),
        .x = m,
        .y = n,
        .k = k,
        .batch = batch,
        .products = complex ? 4 : 1,
        .units = 132,
        .element_bytes = complex ? 16 : 8,
        .loose_c = !complex && n % 2 != 0};
  }
  mma64::Shape for_mma() const {
    return {
        .tiles = complex ? mma64::kComplexTiles : std::span<const mma64::TileInfo>(mma64::kTiles),
        .m = m,
        .n = n,
        .k = k,
        .batch = batch,
        .products = complex ? 4 : 1,
        .units = 132,
        .element_bytes = complex ? 16 : 8};
  }
  std::string by_tma() const {
    const tma64::Plan plan = choose(for_tma());
    const tma64::TileInfo& t = for_tma().tiles[std::size_t(plan.tile)];
    return std::to_string(t.x) + "x" + std::to_string(t.y) + (t.blocks > 1 ? "_two" : "") +
           (plan.ranges > 0 ? "_cut" : "") +
           (plan.slices > 1 ? "_join" + std::to_string(plan.slices) : "");
  }
  std::string by_mma() const {
    const mma64::Plan plan = choose(for_mma());
    const mma64::TileInfo& t = for_mma().tiles[std::size_t(plan.tile)];
    return std::to_string(t.rows) + "x" + std::to_string(t.cols) +
           (plan.splits > 1 ? "_parts" + std::to_string(plan.splits) : "");
  }
  bool is_left_to_mma() const { return is_left_to(choose(for_mma()).cycles, choose(for_tma())); }
};

TEST(F64Plan, TilesOfTheCopyEngine) {
  EXPECT_EQ((Doubles{512, 512, 512}.by_tma()), "64x32");
  EXPECT_EQ((Doubles{576, 576, 576}.by_tma()), "64x48");
  EXPECT_EQ((Doubles{768, 768, 768}.by_tma()), "64x80");
  EXPECT_EQ((Doubles{1024, 1024, 1024}.by_tma()), "64x64_two");
  EXPECT_EQ((Doubles{1500, 1500, 1500}.by_tma()), "64x48_two");
  EXPECT_EQ((Doubles{2048, 2048, 2048}.by_tma()), "128x128");
  EXPECT_EQ((Doubles{3000, 3000, 3000}.by_tma()), "64x64_two_cut");
  EXPECT_EQ((Doubles{8192, 8192, 8192}.by_tma()), "128x128_cut");
  EXPECT_EQ((Doubles{1500, 1500, 24}.by_tma()), "64x48_two");
  EXPECT_EQ((Doubles{1500, 1500, 200}.by_tma()), "64x48_two");
  EXPECT_EQ((Doubles{711, 3000, 200}.by_tma()), "64x48_two");
  EXPECT_EQ((Doubles{200, 3000, 3000}.by_tma()), "64x48_two");
  EXPECT_EQ((Doubles{711, 200, 3000}.by_tma()), "64x48_two_join4");
  EXPECT_EQ((Doubles{64, 64, 262144}.by_tma()), "64x64_cut");
  EXPECT_EQ((Doubles{200, 200, 3000}.by_tma()), "64x32_join4");
  EXPECT_EQ((Doubles{1024, 1024, 1024, true}.by_tma()), "64x128");
  EXPECT_EQ((Doubles{2048, 2048, 2048, true}.by_tma()), "64x128_cut");
  EXPECT_EQ((Doubles{4096, 4096, 4096, true}.by_tma()), "64x128_cut");
  EXPECT_EQ((Doubles{1025, 1027, 1029, true}.by_tma()), "64x32_two_cut");
}

// Of few tiles and a k that no cache holds: 300×64×100000 takes 85 us so, and 122 where one tile's
// parts of k begin in the middle of another's.
TEST(F64Plan, PartsOfTilesBeginTogether) {
  for (const Doubles& x :
       {Doubles{300, 64, 100000}, Doubles{64, 300, 100000}, Doubles{160, 112, 255992},
        Doubles{80, 80, 372480}, Doubles{112, 112, 242664}}) {
    const tma64::Plan plan = choose(x.for_tma());
    EXPECT_EQ(plan.whole, 0);
    EXPECT_GT(plan.ranges, 110) << x.m << "x" << x.n << "x" << x.k;
    EXPECT_EQ(plan.ranges % plan.tiles, 0) << x.m << "x" << x.n << "x" << x.k;
  }
  const tma64::Config tiles = {.x = 64, .y = 64, .blocks = 1, .cut = true};
  const auto ranges = [&](const Doubles& x) { return choose(x.for_tma(), &tiles).ranges; };
  EXPECT_EQ(ranges({300, 64, 100000}), 130);      // of five tiles
  EXPECT_EQ(ranges({300, 64, 4000}), 132);        // a cache has it all
  EXPECT_EQ(ranges({64 * 17, 64, 100000}), 132);  // 13 blocks would be idle
}

// Tiles of 64 rows are half empty there; what is outside of C is left out.
TEST(F64Plan, TilesOfBatches) {
  EXPECT_EQ((Doubles{100, 100, 100, false, 2000}.by_tma()), "64x64_two");
  EXPECT_EQ((Doubles{65, 47, 118, true, 3987}.by_tma()), "64x48_two");
  EXPECT_EQ((Doubles{94, 56, 97, true, 1288}.by_tma()), "64x32_two");
  for (const Doubles& x : {Doubles{65, 47, 118, true, 3987}, Doubles{94, 56, 97, true, 1288},
                           Doubles{227, 71, 101, true, 1089}, Doubles{100, 100, 100, false, 2000}})
    EXPECT_FALSE(x.is_left_to_mma()) << x.m << "x" << x.n << "x" << x.k;
  EXPECT_TRUE((Doubles{31, 12, 464, true, 397}.is_left_to_mma()));
}

TEST(F64Plan, WhatIsInsideOfC) {
  using cuda::gemm::Inside;
  const Inside half(96, 64, 32, 16), edge(65, 64, 32, 16), few(20, 64, 32, 16);
  EXPECT_DOUBLE_EQ(half.mean, 0.75);  // 64 and 32 rows of 128
  EXPECT_DOUBLE_EQ(half.busiest, 1);
  EXPECT_DOUBLE_EQ(half.most, 1);
  EXPECT_DOUBLE_EQ(edge.mean, 80.0 / 128);
  EXPECT_DOUBLE_EQ(edge.busiest, 0.75);  // a whole warp, then half of one
  EXPECT_DOUBLE_EQ(few.mean, 0.5);
  EXPECT_DOUBLE_EQ(few.most, 1);
  const Inside all(128, 64, 32, 16);
  EXPECT_DOUBLE_EQ(share_inside(all, all, 7, 0.3), 1);
  EXPECT_DOUBLE_EQ(share_inside(edge, all, 1, 0), 1);
  EXPECT_DOUBLE_EQ(share_inside(edge, all, 3, 0), 80.0 / 128 + 48.0 / 128 / 3);
  EXPECT_DOUBLE_EQ(share_inside(edge, all, 1e9, 1), 0.75 + 0.25e-9);
}

// Whatever number of tiles a matrix has, no block has those at the edges of C alone.
TEST(F64Plan, EdgesAreDealtOut) {
  for (const int blocks : {3, 132, 264})
    for (const int whole : {1, 2, 131, 264, 265, 8000}) {
      std::vector<int> taken(std::size_t(whole), 0);
      for (int tile = 0; tile < whole; ++tile) {
        const int to = tma64::dealt(tile, whole, blocks);
        ASSERT_TRUE(to >= 0 && to < whole && to / blocks == tile / blocks);
        ASSERT_EQ(++taken[std::size_t(to)], 1) << whole << " tiles, " << blocks << " blocks";
      }
    }
  constexpr int kBlocks = 264, kWhole = 8000;
  for (const int of_matrix : {2, 4, 6})
    for (int block = 0; block < kBlocks; ++block) {
      int rounds = 0, of_first = 0;
      for (int tile = block; tile < kWhole; tile += kBlocks, ++rounds)
        of_first += tma64::dealt(tile, kWhole, kBlocks) % of_matrix == 0;
      ASSERT_LE(of_first, rounds / of_matrix + 2) << of_matrix << " tiles, block " << block;
      ASSERT_GE(of_first, rounds / of_matrix - 1) << of_matrix << " tiles, block " << block;
    }
}

TEST(F64Plan, TilesThatAreCopiedElementByElement) {
  EXPECT_EQ((Doubles{64, 64, 64}.by_mma()), "16x16");
  EXPECT_EQ((Doubles{128, 128, 128}.by_mma()), "16x16");
  EXPECT_EQ((Doubles{256, 256, 256}.by_mma()), "32x32");
  EXPECT_EQ((Doubles{320, 320, 320}.by_mma()), "32x32");
  EXPECT_EQ((Doubles{1500, 3, 200}.by_mma()), "16x16");
  EXPECT_EQ((Doubles{24, 1500, 3000}.by_mma()), "32x32_parts8");
  EXPECT_EQ((Doubles{200, 711, 3000}.by_mma()), "64x64_parts8");
  EXPECT_EQ((Doubles{512, 512, 512}.by_mma()), "64x32");
  EXPECT_EQ((Doubles{711, 711, 711}.by_mma()), "64x32");
  EXPECT_EQ((Doubles{711, 711, 24}.by_mma()), "64x64");
  EXPECT_EQ((Doubles{3000, 3000, 200}.by_mma()), "64x64");
  EXPECT_EQ((Doubles{1025, 1027, 1029}.by_mma()), "64x32");
  EXPECT_EQ((Doubles{4095, 4097, 4093}.by_mma()), "128x64");
  EXPECT_EQ((Doubles{128, 128, 128, true}.by_mma()), "16x16");
  EXPECT_EQ((Doubles{256, 256, 256, true}.by_mma()), "32x16");
  EXPECT_EQ((Doubles{512, 512, 512, true}.by_mma()), "32x32");
  EXPECT_EQ((Doubles{1024, 1024, 1024, true}.by_mma()), "64x64");
  EXPECT_EQ((Doubles{1025, 1027, 1029, true}.by_mma()), "32x32");
}

TEST(F64Plan, PartsCoverK) {
  for (const std::int64_t k : {0, 1, 127, 128, 3000, 262144})
    for (const bool complex : {false, true}) {
      const mma64::Shape shape = Doubles{200, 24, k, complex}.for_mma();
      for (int tile = 0; tile < int(shape.tiles.size()); ++tile)
        for (const int splits : mma64::kSplits) {
          if (!allows_parts(shape, splits)) continue;
          const mma64::Plan plan = plan_of(shape, tile, splits);
          EXPECT_LE(plan.splits, splits);
          EXPECT_GE(plan.splits * plan.depth, k);
          EXPECT_LT((plan.splits - 1) * plan.depth, std::max<std::int64_t>(k, 1));
          EXPECT_EQ(plan.depth % shape.tiles[std::size_t(tile)].depth, 0);
          EXPECT_TRUE(plan.cycles > 0 && plan.cycles < 1e12);
        }
    }
}

TEST(F64Plan, FewTilesOfALongKAreLeft) {
  for (const Doubles& x :
       {Doubles{24, 711, 3000}, Doubles{128, 128, 10000}, Doubles{200, 200, 200},
        Doubles{256, 256, 256}, Doubles{256, 256, 256, true}, Doubles{320, 320, 320, true}})
    EXPECT_TRUE(x.is_left_to_mma()) << x.m << "x" << x.n << "x" << x.k;
  for (const Doubles& x :
       {Doubles{1500, 200, 3000}, Doubles{200, 3000, 3000}, Doubles{711, 200, 3000},
        Doubles{3000, 711, 200}, Doubles{1500, 1500, 24}, Doubles{3000, 3000, 200},
        Doubles{1024, 1024, 1024, true}, Doubles{4096, 4096, 4096, true}})
    EXPECT_FALSE(x.is_left_to_mma()) << x.m << "x" << x.n << "x" << x.k;
  for (std::int64_t size = 512; size <= 16384; size += 128)
    EXPECT_FALSE((Doubles{size, size, size}.is_left_to_mma())) << size;
}

// Where an operand's rows do not run along k its boxes are many, for which several warps ask;
// smaller products are for the tiles of tensor_f64 then.
TEST(F64Plan, BoxesAcross) {
  for (std::int64_t size = 448; size <= 16384; size += 64) {
    const Doubles x{size, size, size};
    tma64::Shape shape = x.for_tma();
    const double along = choose(shape).cycles;
    for (const bool along_y : {false, true}) {
      shape.along_x = false, shape.along_y = along_y;
      const tma64::Plan plan = choose(shape);
      EXPECT_TRUE(size < 1024 || !is_left_to(choose(x.for_mma()).cycles, plan)) << size;
      EXPECT_GE(plan.cycles, along) << size;
    }
  }
}

}  // namespace
}  // namespace mblas::testing
