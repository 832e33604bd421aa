// The machine code of the Hopper kernels, read from the object files: no GPU is needed. Their
// spills are errors when they are compiled.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace mblas::testing {
namespace {

/// Instructions are pairs of words of 8 bytes; what they are is in the low bits of the first.
struct Counts {
  int products = 0;  ///< HGMMA, IGMMA, BGMMA
  int waits = 0;     ///< WARPGROUP.DEPBAR
};

Counts count(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  Counts counts;
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    const std::uint64_t code = word & 0xffff;
    const bool by_registers = code == 0x7df0;
    counts.products += (by_registers || (code >= 0x79f0 && code <= 0x79f2)) && word >> 32 != 0;
    counts.waits += word == 0x00008000000079c5;
  }
  return counts;
}

class HopperCode : public ::testing::TestWithParam<const char*> {};

// A kernel whose tensor cores run asynchronously waits in two places: for the stage before, and at
// the end; with an operand in registers, for halves of stages, of two products at least. Where the
// compiler finds that it may not let them, it says so in a remark and waits after each product, at
// half the speed.
TEST_P(HopperCode, MultipliesOnTensorCoresAndDoesNotWaitForEachProduct) {
  const Counts counts = count(GetParam());
  EXPECT_GE(counts.products, 4) << GetParam();
  EXPECT_GE(counts.waits, 2) << GetParam();
  EXPECT_LE(3 * counts.waits, 2 * counts.products) << GetParam();
}

constexpr const char* kObjects[] = {MBLAS_HOPPER_OBJECTS};
INSTANTIATE_TEST_SUITE_P(Objects, HopperCode, ::testing::ValuesIn(kObjects),
                         [](const auto& object) {
                           std::string name = object.param;
                           name = name.substr(name.find_last_of('/') + 1);
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace mblas::testing
