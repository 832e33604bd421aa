// Which of half, bfloat16 and int8 products are computed from operands as they lie, and which
// kernel takes what is small, on an H200: no GPU is needed to choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>
#include <tuple>

#include "mblas/backend.hpp"

namespace mblas::testing {
namespace {

DeviceInfo h200() {
  DeviceInfo device;
  device.memory = Memory::Device;
  device.compute_units = 132;
  device.capability = 90;
  device.shared_memory = 227 << 10;
  return device;
}

/// Row-major, with the smallest leading dimensions, at addresses that nothing reads.
GemmArgs product(DType in, DType out, std::int64_t m, std::int64_t n, std::int64_t k,
                 bool turned = false) {
  GemmArgs args;
  args.in = in;
  args.out = out;
  args.m = m, args.n = n, args.k = k;
  args.alpha = {1};
  if (turned) args.transA = args.transB = Op::Trans;
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  args.A = {at(1 << 20), turned ? m : k};
  args.B = {at(2 << 20), turned ? k : n};
  args.C = {at(3 << 20), n};
  return args;
}
GemmArgs half_product(std::int64_t m, std::int64_t n, std::int64_t k, bool turned = false) {
  return product(DType::bf16, DType::bf16, m, n, k, turned);
}

/// `count` of it, one after another.
GemmArgs many(GemmArgs args, std::int64_t count) {
  args.batch = count;
  args.A.stride = args.m * args.k, args.B.stride = args.k * args.n;
  args.C.stride = args.m * args.n;
  return args;
}

/// Null where this build has none of that name.
const Kernel<GemmArgs>* row(std::string_view name) {
  for (const Kernel<GemmArgs>& kernel : find_backend("cuda").gemm_kernels())
    if (kernel.name == name) return &kernel;
  return nullptr;
}

/// Bytes of copies and parts.
std::size_t workspace(const GemmArgs& args) {
  const Kernel<GemmArgs>& kernel = *row("tensor_mma");
  EXPECT_EQ(kernel.declines(args, h200()), nullptr);
  return kernel.workspace(args, h200());
}

int config_of(std::string_view name) {
  const auto names = row("tensor_mma")->configs;
  return int(std::ranges::find(names, name) - names.begin());
}

TEST(MmaChoice, SmallProductsAreNotCopied) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{711, 711, 24},
                                {24, 711, 24},
                                {711, 3, 24},
                                {200, 1500, 56},
                                {1500, 1500, 56}})
    for (const bool turned : {false, true})
      EXPECT_EQ(workspace(half_product(m, n, k, turned)), 0u) << m << " " << n << " " << k;
  EXPECT_EQ(workspace(product(DType::i8, DType::i32, 711, 24, 24)), 0u);
  EXPECT_EQ(workspace(product(DType::i8, DType::i32, 3, 1500, 64)), 0u);
}

TEST(MmaChoice, LargeProductsAre) {
  EXPECT_GT(workspace(half_product(4095, 4097, 4093)), 0u);
  EXPECT_GT(workspace(half_product(4096, 4098, 4100)), 0u);
  EXPECT_GT(workspace(product(DType::i8, DType::i32, 4096, 4096, 4096)), 0u);
  EXPECT_EQ(workspace(half_product(4096, 4096, 4096)), 0u) << "they lie at multiples of 16 bytes";
}

TEST(MmaChoice, ConfigurationsSayHowOperandsAreTaken) {
  const auto bytes = [](GemmArgs args, std::string_view name) {
    args.config = config_of(name);
    return workspace(args);
  };
  GemmArgs any = half_product(200, 1500, 56);  // rows of B at multiples of 8 bytes
  any.B.ld = 1501;                             // and of 2
  for (const GemmArgs& args : {half_product(200, 1500, 56), any,
                               product(DType::i8, DType::i32, 64, 64, 64)}) {  // B not along k
    for (const char* name : {"32x32_loose", "32x64_loose", "64x64_loose"})
      EXPECT_EQ(bytes(args, name), 0u) << name;
    for (const char* name : {"64x128", "128x256"}) EXPECT_GT(bytes(args, name), 0u) << name;
  }
}

TEST(MmaChoice, RowsOfWholeWordsAreTakenAsTheyLie) {
  const Kernel<GemmArgs>& kernel = *row("tensor_mma");
  const auto takes = [&](GemmArgs args) {
    bool all = true;
    for (const char* name : {"128x128_words", "64x64_words"}) {
      args.config = config_of(name);
      const bool taken = kernel.declines(args, h200()) == nullptr;
      EXPECT_TRUE(!taken || kernel.workspace(args, h200()) == 0) << name;
      all = all && taken;
    }
    return all;
  };
  EXPECT_TRUE(takes(half_product(250, 250, 250)));
  EXPECT_TRUE(takes(half_product(250, 250, 250, true)));
  EXPECT_TRUE(takes(half_product(251, 250, 250))) << "no row is of m elements";
  EXPECT_FALSE(takes(half_product(251, 250, 250, true)));
  EXPECT_FALSE(takes(half_product(250, 251, 250)));
  EXPECT_FALSE(takes(half_product(250, 250, 251)));
  GemmArgs args = half_product(250, 249, 250);
  args.B.ld = 250;
  EXPECT_FALSE(takes(args)) << "rows begin at words and end between";
  args = half_product(250, 250, 250);
  args.A.data = reinterpret_cast<void*>((1 << 20) + 2);
  EXPECT_FALSE(takes(args));
  args = product(DType::i8, DType::i32, 252, 252, 252);
  EXPECT_FALSE(takes(args)) << "B does not run along k";
  args.transB = Op::Trans;
  EXPECT_TRUE(takes(args));
  args.k = args.A.ld = args.B.ld = 250;
  EXPECT_FALSE(takes(args));
}

TEST(MmaChoice, HoppersReadsMatricesFasterWhateverTheMemorysRate) {
  const Kernel<GemmArgs>* const hopper = row("tensor_wgmma");
  if (!hopper || hopper->declines(half_product(4096, 4096, 4096), h200()))
    GTEST_SKIP() << "not in this build";
  for (const double rate : {2.0e12, 3.35e12, 4.9e12})  // an H100's with PCIe, an H100's, an H200's
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{128, 14336, 14336},
                                  {16, 14336, 14336},
                                  {16, 14336, 4096},
                                  {16, 4096, 14336}}) {
      GemmArgs args = half_product(m, n, k);
      args.transB = Op::Trans;
      args.B.ld = k;
      DeviceInfo device = h200();
      device.memory_rate = rate;
      EXPECT_EQ(hopper->declines(args, device), nullptr) << m << 'x' << n << 'x' << k;
    }
}

// A small operand that does not run along k is copied so that it does, where that saves more than
// it takes. An H200, us, with such copies and without: 100 and 134, 65.6 and 82.7, 80 and 102. A
// copy takes 2.2 at least, and 1024x1024x1024 without one 5.3.
TEST(MmaChoice, HoppersTransposesSmallOperands) {
  const Kernel<GemmArgs>* const hopper = row("tensor_wgmma");
  if (!hopper || hopper->declines(half_product(4096, 4096, 4096), h200()))
    GTEST_SKIP() << "not in this build";
  const auto copies = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    GemmArgs args = half_product(m, n, k);
    args.transA = args.transB = Op::Trans;
    args.A.ld = m;
    args.B.ld = k;
    return hopper->workspace(args, h200()) >= std::size_t(m * k * 2);
  };
  EXPECT_TRUE(copies(136, 16384, 11008));
  EXPECT_TRUE(copies(272, 8144, 8416));
  EXPECT_TRUE(copies(352, 7872, 9352));
  EXPECT_FALSE(copies(1024, 1024, 1024));
  EXPECT_FALSE(copies(512, 512, 512));
  EXPECT_FALSE(copies(4096, 4096, 4096));
}

TEST(MmaChoice, HoppersLeavesWhatItWouldCopyForLonger) {
  const Kernel<GemmArgs>* const hopper = row("tensor_wgmma");
  const auto leaves = [&](const GemmArgs& args) {
    return hopper->declines(args, h200()) != nullptr;
  };
  if (!hopper || leaves(half_product(4096, 4096, 4096))) GTEST_SKIP() << "not in this build";
  for (const std::int64_t n : {33, 101, 250, 255, 500}) EXPECT_TRUE(leaves(half_product(n, n, n)));
  EXPECT_FALSE(leaves(half_product(1002, 1002, 1002)));
  EXPECT_TRUE(leaves(half_product(711, 711, 24)));
  EXPECT_TRUE(leaves(half_product(3000, 3001, 24))) << "C's rows start anywhere";
  EXPECT_TRUE(leaves(half_product(200, 1500, 56)));
  EXPECT_TRUE(leaves(product(DType::i8, DType::i32, 1500, 24, 24)));
  EXPECT_TRUE(leaves(many(half_product(250, 250, 250), 300))) << "tensor_mma has tiles of words";
  EXPECT_FALSE(leaves(half_product(200, 1504, 56))) << "nothing is copied";
  EXPECT_TRUE(leaves(half_product(32, 32, 32))) << "tensor_mma has a warp for it";
  EXPECT_TRUE(leaves(half_product(64, 64, 32))) << "a tile takes longer than what it holds";
  EXPECT_TRUE(leaves(half_product(64, 64, 40)));
  EXPECT_FALSE(leaves(half_product(64, 64, 64)));
  EXPECT_FALSE(leaves(half_product(64, 72, 32)));
  EXPECT_TRUE(leaves(half_product(256, 16, 32)));
  EXPECT_TRUE(leaves(half_product(128, 32, 16)));
  EXPECT_TRUE(leaves(product(DType::i8, DType::i32, 64, 64, 64)));
  EXPECT_FALSE(leaves(half_product(4095, 4097, 4093)));
  EXPECT_FALSE(leaves(product(DType::i8, DType::i32, 4096, 4096, 4096)));
  EXPECT_FALSE(leaves(many(half_product(64, 72, 32), 1000)));
  EXPECT_FALSE(leaves(many(half_product(96, 64, 32), 3000)));
  EXPECT_FALSE(leaves(many(half_product(128, 48, 32), 1000)));
  EXPECT_TRUE(leaves(many(half_product(256, 16, 32), 3000)));
  const auto tf32_product = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    GemmArgs args = product(DType::f32, DType::f32, m, n, k);
    args.compute = Compute::TF32;
    return args;
  };
  EXPECT_FALSE(leaves(tf32_product(1024, 1024, 1024)));
  EXPECT_FALSE(leaves(tf32_product(4095, 4097, 4093)));
  EXPECT_FALSE(leaves(tf32_product(336, 2496, 6000)));
  EXPECT_TRUE(leaves(tf32_product(129, 129, 129)));
  EXPECT_TRUE(leaves(tf32_product(412, 500, 9)));
  EXPECT_TRUE(leaves(many(tf32_product(8, 8, 8), 30000)));
  EXPECT_TRUE(leaves(many(tf32_product(65, 65, 65), 300)));
  EXPECT_FALSE(leaves(many(tf32_product(128, 128, 128), 300)));
  GemmArgs args = half_product(711, 711, 24);
  args.config = 0;
  EXPECT_FALSE(leaves(args)) << "a configuration is not left to others";
  args.config = -1;
  args.epilogue.activation = Activation::Relu;
  EXPECT_FALSE(leaves(args)) << "it fuses epilogues";
}

TEST(MmaChoice, TinyIsForManyNarrowProducts) {
  const Kernel<GemmArgs>& tiny = *row("tiny");
  const auto takes_product = [&](GemmArgs args, std::int64_t batch) {
    args = many(args, batch);
    EXPECT_EQ((args.config = kForced, tiny.declines(args, h200())), nullptr);
    args.config = kOwnChoice;
    return tiny.declines(args, h200()) == nullptr;
  };
  const auto takes = [&](std::int64_t n, std::int64_t batch, DType in = DType::bf16) {
    return takes_product(product(in, in == DType::i8 ? DType::i32 : in, n, n, n), batch);
  };
  for (const std::int64_t n : {20, 33, 49})
    for (const std::int64_t batch : {1, 30, 300})
      EXPECT_FALSE(takes(n, batch)) << n << " " << batch;
  for (const std::int64_t n : {17, 20, 31})
    for (const std::int64_t batch : {1000, 10000, 100000})
      EXPECT_FALSE(takes(n, batch)) << n << " " << batch << ": tensor_mma has a warp for each";
  for (const std::int64_t n : {4, 8, 14, 16, 24, 32})
    EXPECT_FALSE(takes(n, 1000)) << n << ": likewise";
  EXPECT_TRUE(takes(8, 4000));
  EXPECT_FALSE(takes(16, 2000));
  EXPECT_TRUE(takes(16, 10000)) << "rows in line";
  EXPECT_FALSE(takes(32, 4000));
  EXPECT_FALSE(takes(32, 10000));
  EXPECT_FALSE(takes(14, 4000));
  EXPECT_TRUE(takes(14, 10000));
  EXPECT_FALSE(takes(33, 1000)) << "tensor_mma begins sooner";
  EXPECT_TRUE(takes(33, 4000));
  EXPECT_FALSE(takes(49, 4000)) << "wider tiles pay";
  EXPECT_TRUE(takes(18, 1000, DType::i8));
  EXPECT_FALSE(takes(33, 1000, DType::i8));
  EXPECT_FALSE(takes(49, 1000, DType::i8)) << "wider tiles pay";
  EXPECT_TRUE(takes(33, 4000, DType::i8));
  EXPECT_FALSE(takes(63, 4000)) << "wider tiles pay";
  EXPECT_TRUE(takes(71, 300)) << "a tile does not hold it";
  EXPECT_TRUE(takes(82, 300));
  EXPECT_TRUE(takes(90, 300));
  EXPECT_TRUE(takes(100, 2000));
  EXPECT_TRUE(takes_product(half_product(8, 64, 64), 3000)) << "copies take as long as products";
  EXPECT_TRUE(takes_product(half_product(64, 8, 64), 30000));
  EXPECT_FALSE(takes_product(half_product(48, 48, 48), 1000)) << "in line";
  EXPECT_TRUE(takes(92, 300)) << "rows at multiples of 8 bytes";
  EXPECT_FALSE(takes(20, 30, DType::f32));
  EXPECT_FALSE(takes(8, 300, DType::f32)) << "a tile of simt for each";
  EXPECT_TRUE(takes(8, 1000, DType::f32));
  EXPECT_TRUE(takes(14, 1000, DType::f32));
  EXPECT_FALSE(takes(20, 1000, DType::f32)) << "begins later";
  EXPECT_TRUE(takes(20, 5000, DType::f32));
  EXPECT_FALSE(takes(32, 100000, DType::f32)) << "fills a tile of simt";
  EXPECT_TRUE(takes(8, 1000, DType::f64));
  EXPECT_FALSE(takes(16, 5000, DType::f64)) << "fills a tile of the tensor cores";
  EXPECT_FALSE(takes(24, 100000, DType::f64)) << "multiplies too much";
  EXPECT_FALSE(takes(16, 1000, DType::cf32));
  EXPECT_TRUE(takes(16, 2000, DType::cf32));
  EXPECT_TRUE(takes(12, 1000, DType::cf64));
  EXPECT_FALSE(takes(32, 100000, DType::cf64)) << "multiplies too much";
  EXPECT_FALSE(takes(40, 300, DType::cf64)) << "multiplies too much";
}

TEST(MmaChoice, TinyWarpIsForUpTo32RowsAndColumns) {
  const Kernel<GemmArgs>& warp = *row("tiny_warp");
  const auto takes = [&](DType in, std::int64_t m, std::int64_t n, std::int64_t k,
                         std::int64_t batch = 1000) {
    return warp.declines(many(product(in, in, m, n, k), batch), h200()) == nullptr;
  };
  for (const DType in : {DType::f64, DType::cf64}) {
    EXPECT_TRUE(takes(in, 32, 32, 32));
    EXPECT_TRUE(takes(in, 3, 31, 15)) << "rows that start anywhere";
    EXPECT_FALSE(takes(in, 1, 16, 16)) << "vectors";
    EXPECT_TRUE(takes(in, 16, 16, 200, 20000));
    EXPECT_FALSE(takes(in, 16, 16, 200, 300)) << "k in parts";
    EXPECT_FALSE(takes(in, 4, 4, 4, 20000)) << "the smallest, many to a block";
    EXPECT_FALSE(takes(in, 33, 32, 32));
    EXPECT_FALSE(takes(in, 32, 33, 32));
    EXPECT_FALSE(takes(in, 32, 32, 257));
    EXPECT_FALSE(takes(in, 24, 24, 24, 16)) << "few begin sooner elsewhere";
    EXPECT_TRUE(takes(in, 20, 4, 96, 788)) << "few rows";
  }
  EXPECT_TRUE(takes(DType::f64, 22, 22, 22, 53));
  EXPECT_TRUE(takes(DType::f64, 20, 12, 136, 347));
  EXPECT_FALSE(takes(DType::f64, 20, 12, 136, 30)) << "each waits for its steps of k";
  EXPECT_FALSE(takes(DType::cf64, 24, 24, 24, 30)) << "likewise";
  GemmArgs halfway = product(DType::cf64, DType::cf64, 16, 16, 16);
  halfway.batch = 1000;
  halfway.A.data = static_cast<const std::byte*>(halfway.A.data) + 8;
  EXPECT_NE(warp.declines(halfway, h200()), nullptr) << "half an element";
  EXPECT_TRUE(takes(DType::bf16, 24, 24, 24));
  EXPECT_FALSE(takes(DType::bf16, 16, 16, 16));
  EXPECT_FALSE(takes(DType::bf16, 25, 25, 25));
  EXPECT_FALSE(takes(DType::bf16, 24, 24, 40));
}

std::string_view taken_by(const GemmArgs& args) {
  for (const Kernel<GemmArgs>& row : find_backend("cuda").gemm_kernels())
    if (!row.declines(args, h200())) return row.name;
  return "none";
}

std::string_view batch_taken_by(DType in, Compute compute, std::int64_t m, std::int64_t n,
                                std::int64_t k, std::int64_t batch) {
  GemmArgs args = many(product(in, in, m, n, k), batch);
  args.compute = compute;
  return taken_by(args);
}

// short_k has to turn such a B: 33.9 us on an H200, 24.7 by the tensor cores.
TEST(SmallChoice, LeavesDeepTurnedDoubles) {
  GemmArgs args = product(DType::f64, DType::f64, 3000, 3000, 24);
  args.transB = Op::Trans;
  args.B.ld = args.k;
  EXPECT_NE(taken_by(args), "short_k");
  args = product(DType::f64, DType::f64, 3000, 3000, 5);
  args.transB = Op::Trans;
  args.B.ld = args.k;
  EXPECT_EQ(taken_by(args), "short_k");
}

// Each was the fastest in races on an H200, most on an H100 too.
TEST(SmallChoice, TakesTheFastest) {
  struct Call {
    DType in;
    std::int64_t m, n, k, batch;
    std::string_view kernel;
  };
  for (const auto& [in, m, n, k, batch, kernel] : {
           Call{DType::f32, 20, 28, 180, 1500, "simt"},
           Call{DType::f32, 8, 8, 592, 710, "thin_batch"},
           Call{DType::f32, 8, 8, 100000, 1, "thin"},
           Call{DType::f32, 16, 16, 16, 100000, "whole_batch"},
           Call{DType::f32, 32, 32, 32, 100000, "whole_batch"},
           Call{DType::f32, 65, 65, 65, 300, "whole_batch"},
           Call{DType::f32, 711, 711, 24, 1, "short_k"},
           Call{DType::f32, 8, 32, 32, 353, "simt"},
           Call{DType::f32, 4096, 4096, 32, 1, "short_k"},
           Call{DType::f32, 30671, 26, 3, 1, "short_k"},
           Call{DType::f32, 76795, 64, 64, 1, "tall"},
           Call{DType::f64, 29072, 16, 12, 1, "tall"},
           Call{DType::f64, 31404, 33, 28, 1, "tensor_f64"},
           Call{DType::f32, 375, 5, 1595, 1, "few_vectors"},
           Call{DType::f32, 8, 384, 496, 22, "simt"},
           Call{DType::f64, 20, 28, 60, 1500, "tensor_batch"},
           Call{DType::f64, 8, 16, 456, 694, "tensor_f64"},
           Call{DType::f64, 136, 16, 10048, 1, "tensor_f64"},
           Call{DType::f32, 64, 64, 64, 10000, "simt"},
           Call{DType::f32, 28, 28, 28, 58423, "whole_batch"},
           Call{DType::f64, 3000, 711, 24, 1, "short_k"},
           Call{DType::f64, 711, 711, 24, 1, "short_k"},
           Call{DType::f32, 144, 57, 13, 1, "short_k"},
           Call{DType::f32, 711, 3, 24, 1, "short_k"},
           Call{DType::f64, 711, 3, 24, 1, "tensor_f64"},
           Call{DType::cf32, 20, 28, 60, 1500, "simt"},
           Call{DType::cf32, 33, 33, 33, 300, "whole_batch"},
           Call{DType::cf32, 65, 65, 65, 300, "whole_batch"},
           Call{DType::f32, 100, 100, 100, 2000, "whole_batch"},
           Call{DType::f32, 4, 4, 4, 100000, "tiny"},
           Call{DType::f64, 33, 33, 33, 2000, "tensor_batch"},
           Call{DType::f64, 65, 65, 65, 2000, "tensor_batch"},
           Call{DType::f64, 40, 40, 40, 20833, "tensor_batch"},
           Call{DType::f64, 72, 72, 72, 6430, "tensor_batch"},
           Call{DType::f64, 16, 16, 16, 1462, "tiny_warp"},
           Call{DType::cf64, 33, 33, 33, 2000, "tensor_batch"},
           Call{DType::cf64, 12, 12, 12, 5269, "tiny_warp"},
           Call{DType::cf32, 127, 444, 23, 1, "short_k"},
           Call{DType::cf32, 6003, 7, 27, 1, "simt"},
           Call{DType::cf32, 3000, 711, 24, 1, "short_k"},
           Call{DType::cf64, 30, 47, 54, 1543, "tensor_batch"},
           Call{DType::f32, 192, 42, 8, 289, "short_k"},
           Call{DType::f32, 383, 26, 23, 4252, "short_k"},
           Call{DType::f64, 374, 21, 8, 3954, "short_k"},
           Call{DType::cf32, 220, 165, 8, 276, "short_k"},
           Call{DType::cf32, 36, 59, 20, 15265, "short_k"},
           Call{DType::cf64, 80, 107, 5, 300, "short_k"},
           Call{DType::f32, 719, 33, 23, 1, "short_k"},
           Call{DType::f32, 58, 1, 5, 18160, "gemv"},
           Call{DType::cf64, 1, 12, 222, 12760, "gemv"},
           Call{DType::bf16, 438, 1, 34, 473, "gemv"},
           Call{DType::bf16, 3642, 1, 5821, 1, "few_vectors"},
           Call{DType::i8, 10, 1, 152, 7711, "gemv"},
           Call{DType::f32, 6, 6, 340, 2113, "thin_batch"},
           Call{DType::f32, 188, 6, 162, 2089, "simt"},
           Call{DType::f32, 8, 32, 396, 1749, "simt"},
           Call{DType::f32, 14, 622, 5, 1952, "short_k"},
           Call{DType::f32, 2, 1018, 2, 14865, "thin_batch"},
           Call{DType::f32, 61, 14, 242, 64, "simt"},
           Call{DType::f64, 61, 5, 15, 19029, "tensor_batch"},
           Call{DType::f64, 14, 14, 61, 282, "tiny_warp"},
           Call{DType::cf32, 10, 9, 500, 220, "thin_batch"},
           Call{DType::cf64, 80, 8, 10, 6764, "tensor_batch"},
           Call{DType::cf64, 23, 14, 180, 3035, "tiny_warp"},
           Call{DType::bf16, 6, 4, 475, 9778, "thin_batch"},
           Call{DType::bf16, 4, 4, 4, 100000, "tiny"},
           Call{DType::f16, 6, 351, 150, 822, "tensor_batch"},
           Call{DType::f16, 3, 18, 2153, 1, "tensor_wgmma"},
       }) {
    GemmArgs args = many(product(in, in == DType::i8 ? DType::i32 : in, m, n, k), batch);
    args.compute = Compute::Pedantic;
    EXPECT_EQ(taken_by(args), kernel)
        << m << "x" << n << "x" << k << " " << batch << " times, of " << size_of(in) << " bytes";
  }
}

// An H200, us, there and by tensor_mma: 33³ 9.7 and 22.6, 65³ 66 and 105; 4×216×240 147 and 130,
// tensor_wgmma 108; 12×12×28 5.3 and 9.1 by thin_batch, 6×6×340 14.3, thin_batch 11.3; 12³ 4.9 and
// 6.1 by thin_batch, 8³ 2,500 times 2.8 and 4.2, 100,000 times 49 and 32; 24³ 149 and 171, short_k
// 419; 45×45×38 137 and 248.
TEST(SmallChoice, TakesBatchesOfTf32Whole) {
  const auto taken = [](const auto&... sizes) {
    return batch_taken_by(DType::f32, Compute::TF32, sizes...);
  };
  EXPECT_EQ(taken(33, 33, 33, 2000), "tensor_batch");
  EXPECT_EQ(taken(65, 65, 65, 2000), "tensor_batch");
  EXPECT_EQ(taken(4, 216, 240, 1856), "tensor_wgmma");
  EXPECT_EQ(taken(12, 12, 12, 3985), "tensor_batch");
  EXPECT_EQ(taken(8, 8, 8, 2500), "tensor_batch");
  EXPECT_EQ(taken(8, 8, 8, 100000), "thin_batch");
  EXPECT_EQ(taken(24, 24, 24, 85393), "tensor_batch");
  EXPECT_EQ(taken(45, 45, 38, 24094), "tensor_batch");
  EXPECT_EQ(taken(12, 12, 28, 3769), "tensor_batch");
  EXPECT_EQ(taken(6, 6, 340, 2113), "thin_batch");
  EXPECT_NE(taken(33, 33, 33, 1), "tensor_batch");
}

// An H200, us, there and by the fastest other: NN 51824×4×28 3.8 and 8.0, 24×52128×31 4.5 and 7.2,
// 61764×16×36 4.5 and 10.6, TT 14×50112×32 3.7 and 7.2; but NN 4484×32×200 9.6 and 3.1
// (tensor_wgmma), 184×10×82 4.8 and 2.0 (tensor_mma), 928×1×1 3.4 and 2.0. In groups of 32 columns
// 69×51072×62 10.3 and 12.3; but 17724×48×157 16.8 and 9.5.
TEST(TallChoice, TakesLongHalves) {
  const auto taken = [](DType in, std::int64_t m, std::int64_t n, std::int64_t k, bool turned) {
    return taken_by(product(in, in, m, n, k, turned));
  };
  for (const DType in : {DType::bf16, DType::f16}) {
    EXPECT_EQ(taken(in, 51824, 4, 28, false), "tall_mma");
    EXPECT_EQ(taken(in, 24, 52128, 31, false), "tall_mma");
    EXPECT_EQ(taken(in, 61764, 16, 36, false), "tall_mma");
    EXPECT_EQ(taken(in, 14, 50112, 32, true), "tall_mma");
    EXPECT_EQ(taken(in, 69, 51072, 62, false), "tall_mma");
    EXPECT_NE(taken(in, 17724, 48, 157, false), "tall_mma");
    EXPECT_EQ(taken(in, 4484, 32, 200, false), "tensor_wgmma");
    EXPECT_EQ(taken(in, 184, 10, 82, false), "tensor_mma");
    EXPECT_NE(taken(in, 928, 1, 1, true), "tall_mma");
  }
  // What a plan keeps is tensor_wgmma's.
  GemmArgs args = product(DType::bf16, DType::bf16, 51824, 4, 28);
  const auto* const tall = row("tall_mma");
  ASSERT_NE(tall, nullptr);
  args.keeper = reinterpret_cast<decltype(args.keeper)>(std::uintptr_t{4 << 20});
  EXPECT_NE(tall->declines(args, h200()), nullptr);
  args.keeper = nullptr;
  args.config = kForced;
  EXPECT_EQ(tall->declines(args, h200()), nullptr);
  args.n = args.B.ld = args.C.ld = 97;
  EXPECT_NE(tall->declines(args, h200()), nullptr);
}

// An H200, us, by a row that takes floats whole and on the tensor cores: NN 41×152×16 1.6 and 2.6,
// 463×23×15 1.7 and 2.4, TT 32×392×16 1.6 and 2.6; NN 64908×10×22 7.0 and 21.8. But 664×1120×36 4.5
// and 3.7, NT 40×5624×6720 113 and 42, TT 40×4672×1840 36 and 15.
TEST(Tf32Choice, TakesFloatsWholeWhereThatIsFaster) {
  const auto taken = [](std::int64_t m, std::int64_t n, std::int64_t k, bool turned) {
    GemmArgs args = product(DType::f32, DType::f32, m, n, k, turned);
    args.compute = Compute::TF32;
    return taken_by(args);
  };
  EXPECT_EQ(taken(41, 152, 16, false), "short_k");
  EXPECT_EQ(taken(463, 23, 15, false), "short_k");
  EXPECT_EQ(taken(32, 392, 16, true), "short_k");
  EXPECT_EQ(taken(64908, 10, 22, false), "simt");
  EXPECT_EQ(taken(664, 1120, 36, false), "tensor_wgmma");
  EXPECT_EQ(taken(40, 4672, 1840, true), "tensor_wgmma");
  EXPECT_NE(taken(20, 8028, 322, true), "simt");
  EXPECT_EQ(taken(4096, 4096, 4096, false), "tensor_wgmma");
}

// An H200, us, there and by simt: NN 4096³ 2505 and 2574, 1536³ 161 and 166; NT 5212×544×4992 656
// and 698; TN 6000×5000×300 377 and 411; rows anywhere, NN 711×3000×3000 285 and 291. NN 1024³ 58
// and 55, TN 404×1052×3488 98 and 88, NT 684×1524×292 43 and 20.
TEST(FloatChoice, TakesLargeTilesByTheCopyEngine) {
  if (!row("simt_tma")) GTEST_SKIP() << "built for other devices";
  const auto taken = [](Op a, Op b, std::int64_t m, std::int64_t n, std::int64_t k) {
    GemmArgs args = product(DType::f32, DType::f32, m, n, k);
    args.compute = Compute::Pedantic;
    args.transA = a;
    args.transB = b;
    args.A.ld = a == Op::Trans ? m : k;
    args.B.ld = b == Op::Trans ? k : n;
    return taken_by(args);
  };
  constexpr Op kN = Op::NoTrans, kT = Op::Trans;
  EXPECT_EQ(taken(kN, kN, 4096, 4096, 4096), "simt_tma");
  EXPECT_EQ(taken(kN, kN, 1536, 1536, 1536), "simt_tma");
  EXPECT_EQ(taken(kN, kT, 5212, 544, 4992), "simt_tma");
  EXPECT_EQ(taken(kT, kN, 6000, 5000, 300), "simt_tma");
  EXPECT_EQ(taken(kN, kN, 711, 3000, 3000), "simt_tma");
  EXPECT_EQ(taken(kN, kN, 1024, 1024, 1024), "simt");
  EXPECT_EQ(taken(kT, kN, 404, 1052, 3488), "simt");
  EXPECT_EQ(taken(kN, kT, 684, 1524, 292), "simt");
}

// An H200, us, there and by others: 33³ 15.2 and 25 (tiny), 133³ 62 and 94 (tensor_mma), 100³ 36
// and 42 (tiny), 177×7×75 35 and 87 (tensor_mma), 40³ 9.2 and 15 (tensor_mma); 88³ 26,
// tensor_wgmma 20.5; 201×8×7 42, thin_batch 20; 24³ 5.8, tiny_warp 4; 18³ 84, tensor_mma 121.
TEST(SmallChoice, TakesBatchesOfHalvesWhole) {
  for (const DType in : {DType::bf16, DType::f16}) {
    const auto taken = [&](const auto&... sizes) {
      return batch_taken_by(in, Compute::Default, sizes...);
    };
    EXPECT_EQ(taken(33, 33, 33, 4000), "tensor_batch");
    EXPECT_EQ(taken(133, 133, 133, 700), "tensor_batch");
    EXPECT_EQ(taken(100, 100, 100, 1200), "tensor_batch");
    EXPECT_EQ(taken(177, 7, 75, 2814), "tensor_batch");
    EXPECT_EQ(taken(40, 40, 40, 3000), "tensor_batch");
    EXPECT_EQ(taken(18, 18, 18, 65670), "tensor_batch");
    EXPECT_NE(taken(88, 88, 88, 1366), "tensor_batch");
    EXPECT_NE(taken(201, 8, 7, 6494), "tensor_batch");
    EXPECT_NE(taken(24, 24, 24, 3245), "tensor_batch");
    EXPECT_NE(taken(33, 33, 33, 1), "tensor_batch");
  }
}

// An H200, us, there and by the faster one of simt and tensor_bf16x6: f32 4096×128×4096 46 and 90,
// 20000×48×500 21 and 39, 136×14496×1484 77 and 153; cf32 102×6604×6286 366 and 775, 36×1136×5568
// 35 and 94; TN 33×379×2295 10.3 and 12.0, 932×42×1784 11.0 and 15.1. 64×64×65536 57 and 22, NN
// 33×379×2295 11.1 and 9.4, 256³ 8.7 and 4.9, 4096³ is not for it.
TEST(SmallChoice, TakesFewColumnsOfFloatsInPlanesMadeOnTheWay) {
  if (!row("fused_bf16x6")) GTEST_SKIP() << "built for other devices";
  const auto taken = [](DType in, std::int64_t m, std::int64_t n, std::int64_t k) {
    return taken_by(product(in, in, m, n, k));
  };
  for (const auto& [in, m, n, k] :
       {std::tuple{DType::f32, 4096, 128, 4096}, std::tuple{DType::f32, 20000, 48, 500},
        std::tuple{DType::f32, 136, 14496, 1484}, std::tuple{DType::cf32, 102, 6604, 6286},
        std::tuple{DType::cf32, 36, 1136, 5568}})
    EXPECT_EQ(taken(in, m, n, k), "fused_bf16x6") << m << "x" << n << "x" << k;
  for (const auto& [m, n, k] : {std::tuple{64, 64, 65536}, std::tuple{33, 379, 2295},
                                std::tuple{256, 256, 256}, std::tuple{4096, 4096, 4096}})
    EXPECT_NE(taken(DType::f32, m, n, k), "fused_bf16x6") << m << "x" << n << "x" << k;
  for (const auto& [m, n, k] : {std::tuple{33, 379, 2295}, std::tuple{932, 42, 1784}}) {
    GemmArgs args = product(DType::f32, DType::f32, m, n, k);
    args.transA = Op::Trans;
    args.A.ld = m;
    EXPECT_EQ(taken_by(args), "fused_bf16x6") << m << "x" << n << "x" << k;
  }
  GemmArgs args = product(DType::f32, DType::f32, 4096, 128, 4096);
  args.compute = Compute::Pedantic;
  EXPECT_EQ(taken_by(args), "simt_tma");  // 98, by simt 106
}

// An H200, us, there and by the fastest of the other rows: cf32 128³ 300 times 66 and 119, 100³ 300
// times 59 and 96; f32 128³ 300 times 29 and 37, 200³ 118 and 176, 100³ 2,000 times 129 and, by
// whole_batch, 157; 65³ 2,000 times 99 and 59, cf32 40³ 2,000 times 78 and 48.
TEST(SmallChoice, TakesBatchesInPlanesThatBlocksMake) {
  if (!row("fused_bf16x6")) GTEST_SKIP() << "built for other devices";
  const auto of = [](DType type, std::int64_t n, std::int64_t batch) {
    return many(product(type, type, n, n, n), batch);
  };
  for (const auto& [type, n, batch] :
       {std::tuple{DType::cf32, 128, 300}, std::tuple{DType::cf32, 100, 300},
        std::tuple{DType::f32, 128, 300}, std::tuple{DType::f32, 200, 300},
        std::tuple{DType::f32, 100, 2000}})
    EXPECT_EQ(taken_by(of(type, n, batch)), "fused_bf16x6") << n;
  EXPECT_EQ(taken_by(of(DType::f32, 65, 2000)), "whole_batch");
  EXPECT_EQ(taken_by(of(DType::cf32, 40, 2000)), "whole_batch");
  GemmArgs args = of(DType::f32, 128, 300);
  args.compute = Compute::Pedantic;
  EXPECT_EQ(taken_by(args), "simt");
}

// Halves that begin between words are read one by one: what was chosen for others of their size,
// and is remembered, is not for them.
TEST(SmallChoice, RemembersWhereHalvesBegin) {
  const GemmArgs args = many(half_product(54, 54, 54), 900);
  const auto moved = [](GemmArgs by) {
    by.A.data = static_cast<const std::byte*>(by.A.data) + 2;
    return by;
  };
  std::string_view fresh;
  std::thread([&] { fresh = taken_by(moved(args)); }).join();
  EXPECT_NE(taken_by(args), fresh);
  EXPECT_EQ(taken_by(moved(args)), fresh);
}

TEST(MmaChoice, ThinBatchesAreTakenWhole) {
  const Kernel<GemmArgs>& thin = *row("thin_batch");
  GemmArgs args = many(product(DType::f32, DType::f32, 6, 6, 340), 2113);
  for (const auto& [compute, takes] : {std::pair(Compute::Default, true),
                                       {Compute::Pedantic, true},
                                       {Compute::TF32, true},
                                       {Compute::BF16x6, false}}) {
    args.compute = compute;
    EXPECT_EQ(thin.declines(args, h200()) == nullptr, takes);
  }
  args = many(half_product(6, 351, 150), 822);
  EXPECT_EQ(thin.declines(args, h200()), nullptr);
  ++args.A.ld;
  ++args.A.stride;
  EXPECT_NE(thin.declines(args, h200()), nullptr) << "rows apart";
  args.config = kForced;
  EXPECT_EQ(thin.declines(args, h200()), nullptr);
  args = many(half_product(16, 1 << 20, 1), 100);
  args.config = kForced;
  EXPECT_NE(thin.declines(args, h200()), nullptr) << "larger than shared memory";
}

TEST(MmaChoice, VectorsAreTakenWhole) {
  GemmArgs args = product(DType::f32, DType::f32, 138, 1, 774);
  for (const auto& [compute, takes] : {std::pair(Compute::Default, true),
                                       {Compute::Pedantic, true},
                                       {Compute::TF32, true},
                                       {Compute::BF16x6, false}}) {
    args.compute = compute;
    EXPECT_EQ(row("gemv")->declines(args, h200()) == nullptr, takes);
  }
  args = many(half_product(438, 1, 34), 473);
  EXPECT_EQ(row("gemv")->declines(args, h200()), nullptr);
  args.B.ld = 2;
  EXPECT_NE(row("gemv")->declines(args, h200()), nullptr) << "every other element";
}

TEST(MmaChoice, FewVectorsAreReadAsTheyLie) {
  const Kernel<GemmArgs>& few = *row("few_vectors");
  const Kernel<GemmArgs>* const hopper = row("tensor_wgmma");
  const auto takes = [&](const GemmArgs& args, const DeviceInfo& device = h200()) {
    return few.declines(args, device) == nullptr;
  };
  for (const std::int64_t n : {1, 2, 3, 7, 8})
    for (const bool turned : {false, true}) {
      EXPECT_TRUE(takes(half_product(711, n, 3001, turned))) << n;
      EXPECT_TRUE(takes(half_product(n, 711, 3001, turned))) << n;
      EXPECT_TRUE(takes(product(DType::f16, DType::f32, 711, n, 3001, turned))) << n;
    }
  EXPECT_TRUE(takes(half_product(711, 3, 3000))) << "only the matrix is aligned";
  EXPECT_FALSE(takes(half_product(711, 9, 3000)));
  EXPECT_FALSE(takes(half_product(127, 3, 3000)));
  EXPECT_FALSE(takes(half_product(711, 3, 301))) << "tensor_mma is faster";
  EXPECT_TRUE(takes(half_product(4711, 1, 301)));
  EXPECT_TRUE(takes(product(DType::f32, DType::f32, 711, 3, 1000)));
  EXPECT_FALSE(takes(product(DType::f32, DType::f32, 711, 3, 201))) << "simt is faster";
  EXPECT_FALSE(takes(product(DType::cf32, DType::cf32, 334, 8, 196))) << "simt is faster";
  EXPECT_FALSE(takes(product(DType::f32, DType::f32, 711, 1, 3000)));
  EXPECT_FALSE(takes(product(DType::i8, DType::i32, 711, 3, 3000)));

  GemmArgs args = half_product(4096, 8, 4096);
  DeviceInfo older = h200();
  older.capability = 80;
  EXPECT_TRUE(takes(args, older));
  if (!hopper || hopper->declines(args, h200())) GTEST_SKIP() << "not in this build";
  EXPECT_FALSE(takes(args)) << "nothing is copied";
  args.config = kForced;
  EXPECT_TRUE(takes(args));
  args.config = kOwnChoice;
  args.C.ld = 9;
  EXPECT_TRUE(takes(args)) << "a C that the copy engine does not write";
  args.C.ld = 8;
  args.batch = 2;
  args.B.pointers = &args.B.data;
  EXPECT_TRUE(takes(args)) << "matrices anywhere";
}

}  // namespace
}  // namespace mblas::testing
