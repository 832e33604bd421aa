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
  int releases = 0;  ///< arrivals at barriers of the cluster: SYNCS.ARRIVE…RED
  int early = 0;     ///< of those, with no wait since the last product
};

bool is_release(std::uint64_t low, std::uint64_t high) {
  return (low & 0xfff) == 0x9a7 && (high & 0xfff) == 0x43f;
}

/// f(word, the next one) for all of a file.
template <class F>
void for_each_pair(const std::string& file, F&& f) {
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  for (std::size_t i = 0; i + 16 <= bytes.size(); i += 8) {
    std::uint64_t low, high;
    std::memcpy(&low, bytes.data() + i, 8);
    std::memcpy(&high, bytes.data() + i + 8, 8);
    f(low, high);
  }
}

Counts count(const std::string& file) {
  Counts counts;
  bool waited = true;
  for_each_pair(file, [&](std::uint64_t word, std::uint64_t next) {
    const std::uint64_t code = word & 0xffff;
    const bool by_registers = code == 0x7df0;
    const bool product = (by_registers || (code >= 0x79f0 && code <= 0x79f2)) && word >> 32 != 0;
    const bool wait = word == 0x00008000000079c5, release = is_release(word, next);
    waited = wait || (waited && !product);
    counts.products += product;
    counts.waits += wait;
    counts.releases += release;
    counts.early += release && !waited;
  });
  return counts;
}

/// An arrival that frees a stage of a loop of DMMA for the copy engine.
struct Release {
  bool after_wait = false;  ///< for the next stage: no instruction is moved past that branch
  std::size_t unused = 0;   ///< registers read from shared memory that no product has used by then
};

/// In the order of the code, one for each loop: the first arrival after the next stage has been
/// looked for.
std::vector<Release> releases(const std::string& file) {
  std::vector<Release> list;
  std::vector<unsigned> read;  // registers that no product has used
  Release release;
  bool looked = false;
  for_each_pair(file, [&](std::uint64_t low, std::uint64_t high) {
    const unsigned code = low & 0xfff, to = low >> 16 & 0xff;
    const unsigned a = low >> 24 & 0xff, b = low >> 32 & 0xff;
    if (code == 0x5b2) {  // SYNCS.EXCH: a kernel begins
      read.clear();
      looked = false;
    } else if (code == 0x984 && (high >> 9 & 7) >= 5) {  // LDS.64 and LDS.128: of fragments
      read.push_back(to);
    } else if (code == 0x23f && low >> 40 == 0) {  // DMMA.16x8x16
      const auto in = [](unsigned x, unsigned first, unsigned count) {
        return x >= first && x < first + count;
      };
      std::erase_if(read, [&](unsigned x) { return in(x, a, 16) || in(x, b, 8); });
    } else if (code == 0x5a7 && (high & 0xfff) == 0x07f) {  // SYNCS.PHASECHK
      release = {};
      looked = true;
    } else if (code == 0x5a7 && looked) {  // the same, with TRYWAIT
      release = {true, read.size()};
    } else if (is_release(low, high) && looked) {
      if (!release.after_wait) release.unused = read.size();
      list.push_back(release);
      looked = false;
    }
  });
  return list;
}

// Else the copy engine may overwrite what is still to be read: results of tensor_f64_tma were wrong
// where blocks waited for memory.
TEST(HopperCode, StagesOfDoublesAreReleasedOnceTheyHaveBeenUsed) {
  const std::vector<Release> list = releases(MBLAS_HOPPER_F64_OBJECT);
  EXPECT_EQ(list.size(), 36u)
      << "a loop for each kernel: eight tiles and a complex one by four majors";
  for (const Release& release : list) {
    EXPECT_TRUE(release.after_wait);
    EXPECT_EQ(release.unused, 0u);
  }
}

class HopperObjects : public ::testing::TestWithParam<const char*> {};

// A kernel whose tensor cores run asynchronously waits in two places: for the stage before, and at
// the end; with an operand in registers, for halves of stages, of two products at least. Where the
// compiler finds that it may not let them, it says so in a remark and waits after each product, at
// half the speed.
TEST_P(HopperObjects, MultipliesOnTensorCoresAndDoesNotWaitForEachProduct) {
  const Counts counts = count(GetParam());
  EXPECT_GE(counts.products, 4) << GetParam();
  EXPECT_GE(counts.waits, 2) << GetParam();
  EXPECT_LE(3 * counts.waits, 2 * counts.products) << GetParam();
}

// A stage that is released earlier may be overwritten while it is multiplied.
TEST_P(HopperObjects, ReleasesStagesAfterAWait) {
  const Counts counts = count(GetParam());
  EXPECT_GE(counts.releases, 2) << GetParam();
  EXPECT_EQ(counts.early, 0) << GetParam();
}

constexpr const char* kObjects[] = {MBLAS_HOPPER_OBJECTS};
INSTANTIATE_TEST_SUITE_P(Engine, HopperObjects, ::testing::ValuesIn(kObjects),
                         [](const auto& object) {
                           std::string name = object.param;
                           name = name.substr(name.find_last_of('/') + 1);
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace mblas::testing
