// The arithmetic of tensor_ozaki's residues, as its kernels do it, in plain integers.
#include "cuda/gemm/ozaki/moduli.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace mblas::testing {
namespace {

using namespace cuda::gemm::ozaki;
__extension__ using Signed = __int128;

int residue(Signed x, int modulus) {
  const int r = int(x % modulus);
  return r < 0 ? r + modulus : r;
}

std::vector<std::int64_t> numbers(std::int64_t most) {
  std::vector<std::int64_t> all = {0, 1, -1, most, -most, most - 1, 1 - most};
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) all.push_back((std::int64_t(random()) % (most + 1)) >> (i % 40));
  for (const int modulus : kModuli)
    for (int i = -300; i <= 300; ++i) all.push_back(i * modulus - 1), all.push_back(i * modulus);
  return all;
}

class ModuliOf : public ::testing::TestWithParam<int> {
 protected:
  const int count = GetParam();
  const Tables tables = tables_of(count);
};

TEST_P(ModuliOf, BytesHaveTheResiduesOfTheirNumber) {
  for (const std::int64_t x : numbers((std::int64_t{1} << kBits) - 1))
    for (int m = 0; m < count; ++m) {
      const Modulus& of = tables.moduli[m];
      const int modulus = kModuli[m], factor = x % 2 ? inverse(m, count) : 1;
      ASSERT_EQ(of.modulus, modulus);
      const Digits digits = x % 2 ? of.a : of.b;
      const std::uint64_t bytes = std::uint64_t(x) + (std::uint64_t{1} << kBits);
      std::int64_t sum = digits.offset;
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t word = i < 4 ? digits.low : digits.high;
        sum += std::int64_t(bytes >> (8 * i) & 255) * std::int8_t(word >> (8 * (i % 4)));
      }
      ASSERT_EQ(residue(sum, modulus), residue(Signed(x) * factor, modulus)) << x << " " << modulus;
      ASSERT_GE(sum, 0) << x << " " << modulus;
      ASSERT_LT(sum, 1 << 20) << x << " " << modulus;
      const float quotient = std::fma(std::ldexp(float(sum), -149), of.inverse, 192.f);
      std::uint32_t bits;
      std::memcpy(&bits, &quotient, sizeof bits);
      const auto byte = std::int8_t(std::uint32_t(sum) - bits * std::uint32_t(modulus));
      ASSERT_LE(2 * std::abs(int(byte)), modulus) << x << " " << modulus;
      ASSERT_EQ(residue(byte, modulus), residue(sum, modulus)) << x << " " << modulus;
    }
}

TEST_P(ModuliOf, WeightsGiveTheNumberBack) {
  const auto most = Signed(tables.most_norms);
  std::mt19937_64 random(4);
  for (int i = 0; i < 5000; ++i) {
    const Signed some = (Signed(random() >> 1) << 64 | Signed(random())) % most;
    const Signed x = i == 0 ? most : i == 1 ? -most : (i % 2 ? some : -some) >> (i % 118);
    double high = 0, mid = 0;  // of which all sums are exact
    std::uint64_t top = 0, low = 0;
    for (int m = 0; m < count; ++m) {
      const Limbs& weight = tables.weights[m];
      const int byte = residue(x % kModuli[m] * inverse(m, count), kModuli[m]);
      top += unsigned(byte) * weight.top;
      high += byte * (weight.high / Tables::kOfBytes);
      mid += byte * (weight.mid / Tables::kOfBytes);
      low += unsigned(byte) * weight.low;
    }
    ASSERT_LT(top, std::uint64_t{1} << 32);
    ASSERT_LT(high, 0x1p53);
    ASSERT_LT(mid, 0x1p53);
    ASSERT_LT(low, std::uint64_t{1} << 32);
    const auto quotient = Signed(std::nearbyint((double(top) * 0x1p41 + high) * tables.inverse));
    const auto whole = [](double t, double h, double m, double l) {
      return (((Signed(t) << kMidBits) + Signed(h)) << (kMidBits + kLowBits)) +
             (Signed(m) << kLowBits) + Signed(l);
    };
    const Limbs& p = tables.product;
    const Signed left =
        whole(double(top), high, mid, double(low)) - quotient * whole(p.top, p.high, p.mid, p.low);
    ASSERT_TRUE(left == x << tables.shift) << i;
  }
}

TEST_P(ModuliOf, KeepWhatTheyAreChosenFor) {
  for (const std::int64_t k : {1, 700, 65536}) {
    EXPECT_EQ(count_for(error_of(count, k), k), count) << k;
    EXPECT_EQ(count_for(error_of(count, k) * 0.999, k), count + 1) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, ModuliOf, ::testing::Range(kFewest, kCount + 1));

TEST(Moduli, SumsHaveTheResiduesThatTheDivisionGives) {
  for (const std::int64_t x : numbers((1 << 30) - 1))
    for (const int modulus : kModuli) {
      const Division by = division_by(modulus);
      const std::int64_t r = x - (x * by.inverse >> 32 >> 6) * by.modulus;
      ASSERT_GE(r, 0) << x << " " << modulus;
      ASSERT_LE(r, 255) << x << " " << modulus;
      ASSERT_EQ(residue(r, modulus), residue(x, modulus)) << x << " " << modulus;
    }
}

}  // namespace
}  // namespace mblas::testing
