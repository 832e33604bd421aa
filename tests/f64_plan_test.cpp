// The choice of tiles and parts of k for doubles, and between tensor_f64_tma and tensor_f64: what
// is known of an H100 or H200 is chosen, or what takes at most 3 % longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

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

  /// X is A: of op(B) whose rows are not C's.
  tma64::Shape for_tma() const {
    return {
        .tiles = complex ? tma64::kComplexTiles : std::span<const tma64::TileInfo>(tma64::kTiles),
        .x = m,
        .y = n,
        .k = k,
        .batch = 1,
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
        .batch = 1,
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
  EXPECT_EQ((Doubles{64, 64, 262144}.by_tma()), "64x80_cut");
  EXPECT_EQ((Doubles{200, 200, 3000}.by_tma()), "64x32_join4");
  EXPECT_EQ((Doubles{1024, 1024, 1024, true}.by_tma()), "64x128");
  EXPECT_EQ((Doubles{2048, 2048, 2048, true}.by_tma()), "64x128_cut");
  EXPECT_EQ((Doubles{4096, 4096, 4096, true}.by_tma()), "64x128_cut");
  EXPECT_EQ((Doubles{1025, 1027, 1029, true}.by_tma()), "64x128_cut");
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
        Doubles{256, 256, 256}, Doubles{384, 384, 384, true}, Doubles{512, 512, 512, true}})
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
