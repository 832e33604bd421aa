// The machine code of the Hopper kernels, read from the object files: no GPU is needed. Their
// spills are errors when they are compiled.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mblas::testing {
namespace {

/// What it is, is in the low bits of the first word.
struct Instruction {
  std::uint64_t low, high;
};

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
};

/// The kernels of an object file, which has them as ELF files for the GPU, uncompressed.
std::vector<Kernel> kernels_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  const auto at = [&]<class T>(std::size_t place, T value) {
    if (place + sizeof value <= bytes.size())
      std::memcpy(&value, bytes.data() + place, sizeof value);
    return value;
  };
  constexpr std::string_view kText = ".text.";
  std::vector<Kernel> list;
  for (std::size_t i = bytes.find(ELFMAG); i != bytes.npos; i = bytes.find(ELFMAG, i + 1)) {
    const auto header = at(i, Elf64_Ehdr{});
    if (header.e_machine != EM_CUDA) continue;
    const auto section = [&](std::size_t number) {
      return at(i + header.e_shoff + number * header.e_shentsize, Elf64_Shdr{});
    };
    const std::size_t names = i + section(header.e_shstrndx).sh_offset;
    for (std::size_t number = 0; number < header.e_shnum; ++number) {
      const Elf64_Shdr text = section(number);
      const std::string name = bytes.data() + names + text.sh_name;
      if (!name.starts_with(kText)) continue;
      Kernel kernel{name.substr(kText.size()), {}};
      for (std::size_t k = 0; k < text.sh_size; k += sizeof(Instruction))
        kernel.code.push_back(at(i + text.sh_offset + k, Instruction{}));
      list.push_back(std::move(kernel));
    }
  }
  return list;
}

/// A letter for each instruction that multiplies, stores to shared memory, waits or tells others
/// something; 0 for the rest.
char letter_of(const Instruction& i) {
  const unsigned code = i.low & 0xfff, kind = i.high & 0xfff;
  switch (code) {
    case 0x9f0:
    case 0x9f1:
    case 0x9f2:
    case 0xdf0:
      return 'M';  // HGMMA, IGMMA, BGMMA
    case 0x9c5:
      return i.low == 0x00008000000079c5 ? 'w' : 0;  // WARPGROUP.DEPBAR
    case 0x5b2:
      return 'E';  // SYNCS.EXCH: a barrier is made
    case 0x5a7:
      return 'P';  // SYNCS.PHASECHK: its phase is waited for
    case 0x9a7:
      // SYNCS.ARRIVE…RED, SYNCS.ARRIVE…A1T0: a stage is released
      return kind == 0x43f || (i.high >> 20 & 1) != 0 ? 'r' : 0;
    case 0x388:
    case 0x844:
      return 'S';  // STS, STSM
    case 0x3c6:
      return 'F';  // FENCE.VIEW.ASYNC: the copy engine sees what was stored
    case 0x3b5:
      return 'U';  // UTMASTG: it stores a box
    case 0x91a:
      return i.low >> 47 & 1 ? 'D' : 0;  // DEPBAR of SB0: it has read boxes, or copies are there
    case 0xb1d:
    case 0x51d:
      return (i.high >> 13 & 7) == 0 ? 'B' : 0;  // BAR.SYNC
    case 0x9c7:
      return 'A';  // UCGABAR_ARV: the cluster meets
    case 0xdc7:
      return 'W';  // UCGABAR_WAIT
    case 0x82e:
      return 'Q';  // ACQBULK: earlier kernels are waited for
    case 0x94d:
      return 'X';  // EXIT
    default:
      return 0;
  }
}

/// Those of a kernel, in the order of its code.
std::string events_of(const Kernel& kernel) {
  std::string events;
  for (const Instruction& i : kernel.code)
    if (const char letter = letter_of(i)) events += letter;
  return events;
}

/// An arrival that frees a stage of a loop of DMMA for the copy engine.
struct Release {
  bool after_wait = false;  ///< for the next stage: no instruction is moved past that branch
  /// Registers read from shared memory before that wait, which no product has used by then, nor by
  /// the arrival.
  std::size_t unused_at_wait = 0, unused = 0;
};

/// In the order of the code, one for each loop: the first arrival after the next stage has been
/// looked for.
std::vector<Release> releases_of(const Kernel& kernel) {
  std::vector<Release> list;
  std::vector<unsigned> read, before;  // registers that no product has used: all; before the wait
  Release release;
  bool looked = false;
  for (const Instruction& i : kernel.code) {
    const unsigned code = i.low & 0xfff, to = i.low >> 16 & 0xff;
    const unsigned a = i.low >> 24 & 0xff, b = i.low >> 32 & 0xff;
    if (code == 0x984 && (i.high >> 9 & 7) >= 5) {  // LDS.64 and LDS.128: of fragments
      read.push_back(to);
    } else if (code == 0x23f && i.low >> 40 == 0) {  // DMMA.16x8x16
      const auto is_used = [&](unsigned x) {
        return (x >= a && x < a + 16) || (x >= b && x < b + 8);
      };
      std::erase_if(read, is_used);
      std::erase_if(before, is_used);
    } else if (letter_of(i) == 'P' && (i.high & 0xfff) == 0x07f) {  // it only looks
      release = {};
      looked = true;
    } else if (letter_of(i) == 'P' && looked) {
      release.after_wait = true;
      before = read;
      release.unused_at_wait = before.size();
    } else if (letter_of(i) == 'P') {
      read.clear();  // before a loop: what the last step of another one has read for nothing
    } else if (letter_of(i) == 'r' && looked) {
      release.unused = release.after_wait ? before.size() : read.size();
      list.push_back(release);
      looked = false;
    }
  }
  return list;
}

// Else the copy engine may overwrite what is still to be read: results of tensor_f64_tma were wrong
// where blocks waited for memory.
TEST(HopperCode, StagesOfDoublesAreReleasedOnceTheyHaveBeenUsed) {
  std::size_t loops = 0, of_one_row = 0;
  for (const Kernel& kernel : kernels_of(MBLAS_HOPPER_F64_OBJECT))
    for (const Release& release : releases_of(kernel)) {
      ++loops;
      EXPECT_TRUE(release.after_wait) << kernel.name;
      EXPECT_EQ(release.unused, 0u) << kernel.name;
      of_one_row += release.unused_at_wait > 0;
    }
  EXPECT_EQ(of_one_row, 4 * (4 + 3 + 2u))
      << "loops of a single row of fragments, which 64x80, 64x64 and 64x48 have where there are "
         "two, "
         "for each number of columns: their last one is used after the wait; all others' before";
  EXPECT_EQ(loops, 4 * (5 + 8 + 6 + 4 + 3 + 4 + 2u))
      << "by four majors: one of each tile that has a multiprocessor for itself; of 64x80, 64x64, "
         "64x48 and complex 64x48 and 64x32, where there are two, by rows and columns";
}

/// Of FFMA, the registers that are multiplied.
std::pair<unsigned, unsigned> factors_of(const Instruction& i) {
  return {unsigned(i.low >> 24 & 0xff), unsigned(i.low >> 32 & 0xff)};
}

// A stage is released in the turn of the loop after its own, before that turn reads anything:
// behind the branch, that is, before which all that was read of it has been multiplied. What a turn
// reads last is the next stage's.
TEST(HopperCode, StagesOfFloatsAreReleasedOnceTheyHaveBeenUsed) {
  constexpr std::size_t kProducts = 16 * 8 * 16, kLoads = 16 * 6;  // of a turn
  std::size_t loops = 0;
  for (const Kernel& kernel : kernels_of(MBLAS_HOPPER_F32_OBJECT)) {
    if (kernel.name.find("add_parts") != kernel.name.npos) continue;
    SCOPED_TRACE(kernel.name);
    std::size_t products = 0, releases = 0;
    std::vector<std::vector<unsigned>> loads;  // of a turn: registers that it has not multiplied
    for (const Instruction& i : kernel.code) {
      const unsigned code = i.low & 0xfff;
      if (products == kProducts) break;
      if (code == 0x223) {  // FFMA
        const auto [a, b] = factors_of(i);
        for (auto& load : loads) std::erase_if(load, [&](unsigned x) { return x == a || x == b; });
        ++products;
      } else if (code == 0x984 && (i.high >> 9 & 7) == 6 && products > 0) {  // LDS.128
        const unsigned to = i.low >> 16 & 0xff;
        loads.push_back({to, to + 1, to + 2, to + 3});
      } else if (letter_of(i) == 'r') {
        EXPECT_TRUE(loads.empty());
        ++releases;
      }
    }
    EXPECT_EQ(releases, 1u);
    EXPECT_EQ(products, kProducts);
    const std::size_t of_next = kernel.name.find("ILb1E") != kernel.name.npos ? 16 : 12;
    ASSERT_GE(loads.size(), kLoads - of_next);  // the last ones may come after the products
    for (std::size_t l = 0; l < kLoads - of_next; ++l) EXPECT_TRUE(loads[l].empty()) << l;
    ++loops;
  }
  EXPECT_EQ(loops, 3u);
}

class HopperObjects : public ::testing::TestWithParam<const char*> {
 protected:
  /// f(kernel, its events) for each kernel of an engine. Returns the events of all of them.
  template <class F>
  std::string for_each_engine(F&& f) const {
    std::string all;
    for (const Kernel& kernel : kernels_) {
      if (kernel.name.find("engine_kernel") == std::string::npos &&
          kernel.name.find("fused_kernel") == std::string::npos)
        continue;
      const std::string events = events_of(kernel);
      SCOPED_TRACE(kernel.name + ": " + events);
      f(kernel, events);
      all += events;
    }
    EXPECT_FALSE(all.empty()) << GetParam();
    return all;
  }

  const std::vector<Kernel> kernels_ = kernels_of(GetParam());
};

// A kernel whose tensor cores run asynchronously waits in two places: for the stage before, and at
// the end; with an operand in registers, for halves of stages, of two products at least. Where the
// compiler finds that it may not let them, it says so in a remark and waits after each product, at
// half the speed.
TEST_P(HopperObjects, MultipliesOnTensorCoresAndDoesNotWaitForEachProduct) {
  const std::string all = for_each_engine([](const Kernel&, const std::string& events) {
    const auto products = std::ranges::count(events, 'M'), waits = std::ranges::count(events, 'w');
    EXPECT_GE(products, 4);
    EXPECT_GE(waits, 2);
    EXPECT_LT(waits, products);
  });
  EXPECT_LE(3 * std::ranges::count(all, 'w'), 2 * std::ranges::count(all, 'M')) << GetParam();
}

// A stage that is released earlier may be overwritten while it is multiplied.
TEST_P(HopperObjects, ReleasesStagesAfterAWait) {
  const std::string all = for_each_engine([](const Kernel&, const std::string& events) {
    EXPECT_FALSE(std::regex_search(events, std::regex("M[^w]*r")));
  });
  EXPECT_GE(std::ranges::count(all, 'r'), 2) << GetParam();
}

/// Instructions of a loop of products out of registers that write to registers which products in
/// flight read. The compiler does not know that these read them after their instruction.
std::size_t writes_in_flight(const Kernel& kernel) {
  const auto is_product = [](const Instruction& i) { return (i.low & 0xfff) == 0xdf0; };
  const auto first = std::ranges::find_if(kernel.code, is_product);
  if (first == kernel.code.end()) return 0;
  auto last = first, begin = first;
  for (auto i = first; i != kernel.code.end(); ++i)
    if (is_product(*i)) last = i;
  while (begin != kernel.code.begin() && letter_of(*begin) != 'P') --begin;  // a stage is full
  std::size_t writes = 0;
  std::vector<unsigned> read;
  for (int turn = 0; turn < 2; ++turn)
    for (auto i = begin; i != last + 1; ++i) {
      if (is_product(*i)) {
        for (unsigned r = 0; r < 4; ++r) read.push_back(unsigned(i->low >> 24 & 0xff) + r);
      } else if (letter_of(*i) == 'w') {
        read.clear();  // all are waited for
      } else {
        // MOV, LOP3, FMUL, FADD, FFMA, IMAD, F2FP, LDS
        constexpr unsigned kCodes[] = {0x002, 0x012, 0x020, 0x021, 0x023, 0x024, 0x03e, 0x184};
        const unsigned to = i->low >> 16 & 0xff;
        if (std::ranges::find(kCodes, unsigned(i->low & 0x1ff)) != std::end(kCodes))
          writes += std::size_t(std::ranges::count(read, to) > 0);
      }
    }
  return writes;
}

// Seen where a loop had one set of registers, which the next stage was split into while products of
// the one before were in work: results were wrong now and then.
TEST_P(HopperObjects, LeavesRegistersAloneThatProductsRead) {
  std::size_t loops = 0;
  for (const Kernel& kernel : kernels_) {
    if (kernel.name.find("fused_kernel") == std::string::npos) continue;
    ++loops;
    EXPECT_EQ(writes_in_flight(kernel), 0u) << kernel.name;
  }
  EXPECT_EQ(loops, std::string(GetParam()).find("fused") == std::string::npos ? 0u : 36u)
      << "nine tiles, along k or not, by vectors or not";
}

// What no timing brings to light, as the other side is always early enough: the order of the code
// must have it.
TEST_P(HopperObjects, WaitsWhereResultsAloneWouldNotShowIt) {
  for_each_engine([](const Kernel& kernel, const std::string& events) {
    if (kernel.name.find("4gemm6hopper") == std::string::npos)
      return;  // that of GF(2^8) and those that split on the way store no boxes
    // Barriers are made before any thread goes on.
    EXPECT_TRUE(std::regex_search(events, std::regex("^FE+(B|AW)")));
    // Producers and consumers wait for earlier kernels, and who reads how planes were scaled.
    const bool planes = kernel.name.find("Planes") != std::string::npos;
    EXPECT_EQ(std::ranges::count(events, 'Q'), planes ? 3 : 2);
    // A box is written once it has been read, all of it before the copy engine is told.
    const std::string others = std::regex_replace(events, std::regex("DBS+FBU+"), "");
    EXPECT_LT(others.size(), events.size());
    EXPECT_EQ(std::ranges::count(others, 'U'), 0);
    // So are elements that go there on their way, behind what C was where that came; slices that a
    // cluster adds up, once all have multiplied.
    const std::string rest = std::regex_replace(others, std::regex("DB(PD)?S+|AWBS+AWB"), "");
    EXPECT_EQ(std::ranges::count(rest, 'S'), 0);
    // Nobody leaves before the last boxes have been read.
    EXPECT_TRUE(std::regex_search(rest, std::regex("D([QX]|$)")));
  });
  for (const Kernel& kernel : kernels_) {
    if (kernel.name.find("add_slices") == std::string::npos) continue;
    EXPECT_EQ(std::ranges::count(events_of(kernel), 'Q'), 1) << kernel.name;
  }
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
