// The erasure example as a user runs it: what is lost comes back, too much lost is refused, and
// nothing is left half done.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../examples/erasure/crc32c.hpp"
#include "child.hpp"
#include "random.hpp"

namespace mblas::testing {
namespace {

namespace fs = std::filesystem;
constexpr int kOk = 0, kFailed = 1, kUsage = 2, kDamaged = 3, kInterrupted = 130;
constexpr std::int64_t kHeader = 512, kBlock = 1000, kCheck = 4;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_file(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}
/// Changes one byte.
void damage(const fs::path& path, std::int64_t at) {
  std::string content = read_file(path);
  content.at(std::size_t(at)) ^= 0x10;
  write_file(path, content);
}
std::int64_t block_at(std::int64_t stripe) { return kHeader + stripe * (kBlock + kCheck); }

class Erasure : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "mblas-erasure-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  Finished run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ERASURE_COMMAND);
    return run_program(arguments, {{"MBLAS_BACKEND", "openmp"}});
  }
  void expect(int status, const std::vector<std::string>& texts,
              const std::vector<std::string>& arguments) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.exit_code, status) << finished.out << finished.err;
    for (const std::string& text : texts)
      EXPECT_NE((finished.out + finished.err).find(text), std::string::npos)
          << "no '" << text << "' in:\n"
          << finished.out << finished.err;
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  fs::path shard(int index, const std::string& set = "shards",
                 const std::string& name = "f") const {
    const std::string number = std::to_string(index);
    return folder_ / set / (name + "." + std::string(3 - number.size(), '0') + number + ".shard");
  }

  std::string split(std::int64_t bytes, const std::string& set = "shards",
                    const std::string& name = "f") {
    cases::Random random(std::uint64_t(bytes) + 1);
    std::string content;
    while (std::int64_t(content.size()) < bytes) content.push_back(char(random.bits()));
    write_file(at(name), content);
    expect(kOk, {},
           {"split", at(name), "--data", "5", "--parity", "3", "--dir", at(set), "--block",
            std::to_string(kBlock)});
    return content;
  }
  void expect_joined(const std::string& content) {
    fs::remove(at("joined"));
    expect(kOk, {}, {"join", at("shards"), "--output", at("joined")});
    EXPECT_EQ(read_file(at("joined")), content);
  }
  /// The names and contents of a folder's files.
  std::map<std::string, std::string> snapshot(const std::string& set = "shards") const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_ / set))
      files[entry.path().filename()] = read_file(entry.path());
    return files;
  }

  fs::path folder_;
};

TEST(Crc32c, Vectors) {
  const auto of = [](std::string_view text) {
    return ::erasure::crc32c(std::as_bytes(std::span(text)));
  };
  EXPECT_EQ(of("123456789"), 0xe3069283u);
  EXPECT_EQ(of(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(of(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST_F(Erasure, FilesOfAllSizes) {
  for (const std::int64_t bytes : {0, 1, 4, 5, 6, 999, 4999, 5000, 5001, 123456}) {
    const std::string content = split(bytes);
    expect(kOk, {"all is well"}, {"check", at("shards")});
    expect_joined(content);
    for (const int lost : {0, 4, 6}) fs::remove(shard(lost));
    expect(kDamaged, {"000.shard: missing", "006.shard: missing"}, {"check", at("shards")});
    expect_joined(content);
    const auto rest = snapshot();
    expect(kOk, {"004.shard: repaired"}, {"repair", at("shards")});
    const auto whole = snapshot();
    EXPECT_EQ(whole.size(), 8u);
    for (const auto& [name, shard_content] : rest) EXPECT_EQ(whole.at(name), shard_content);
    expect(kOk, {"nothing to repair"}, {"repair", at("shards")});
    expect_joined(content);
    fs::remove_all(folder_ / "shards");
  }
}

TEST_F(Erasure, DifferentStripesLackDifferentShards) {
  const std::string content = split(40000);  // 8 stripes
  const auto whole = snapshot();
  // Three of eight shards are bad in every stripe, and none is good throughout.
  for (int stripe = 0; stripe < 8; ++stripe)
    for (const int lost : {0, 3, 5}) damage(shard((stripe + lost) % 8), block_at(stripe) + 17);
  expect(kDamaged, {"3 of 8 blocks", "can be repaired"}, {"check", at("shards")});
  expect_joined(content);
  expect(kOk, {"007.shard: repaired"}, {"repair", at("shards")});
  EXPECT_EQ(snapshot(), whole);
}

TEST_F(Erasure, EveryKindOfDamageIsRepaired) {
  const std::string content = split(12345);  // the last blocks are shorter
  const auto whole = snapshot();
  const std::vector<std::pair<const char*, std::function<void()>>> kinds = {
      {"header", [&] { damage(shard(2), 100); }},
      {"magic", [&] { damage(shard(2), 0); }},
      {"first block", [&] { damage(shard(2), block_at(0)); }},
      {"checksum", [&] { damage(shard(2), block_at(1) - 1); }},
      {"last byte", [&] { damage(shard(2), std::int64_t(fs::file_size(shard(2))) - 1); }},
      {"cut off", [&] { fs::resize_file(shard(2), fs::file_size(shard(2)) - 1); }},
      {"cut to the header", [&] { fs::resize_file(shard(2), kHeader); }},
      {"cut within the header", [&] { fs::resize_file(shard(2), 100); }},
      {"empty", [&] { fs::resize_file(shard(2), 0); }},
      {"too long", [&] { write_file(shard(2), read_file(shard(2)) + "x"); }},
      {"blocks exchanged",
       [&] {
         std::string bytes = read_file(shard(2));
         std::swap_ranges(bytes.begin() + block_at(0), bytes.begin() + block_at(1),
                          bytes.begin() + block_at(1));
         write_file(shard(2), bytes);
       }},
  };
  for (const auto& [name, spoil] : kinds) {
    SCOPED_TRACE(name);
    spoil();
    expect(kDamaged, {"002.shard"}, {"check", at("shards")});
    expect_joined(content);
    expect(kOk, {"002.shard: repaired"}, {"repair", at("shards")});
    EXPECT_EQ(snapshot(), whole);
  }
}

TEST_F(Erasure, TooMuchLostIsRefusedAndLeftAsItIs) {
  split(40000);
  for (const int lost : {1, 2}) fs::remove(shard(lost));
  damage(shard(0), block_at(3));
  damage(shard(6), block_at(3));
  const auto before = snapshot();
  for (const char* command : {"check", "repair"})
    expect(kFailed, {"1 of 8 stripes", "cannot be restored"}, {command, at("shards")});
  expect(kFailed, {"stripe 3: 4 blocks are left, 5 are needed"},
         {"join", at("shards"), "--output", at("joined")});
  fs::remove(shard(3));
  fs::remove(shard(4));
  expect(kFailed, {"4 of 8 shards are missing"}, {"repair", at("shards")});
  expect(kFailed, {"4 blocks are left"}, {"join", at("shards"), "--output", at("joined")});
  EXPECT_EQ(snapshot().size(), before.size() - 2);
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_TRUE(entry.path().filename() == "f" || entry.path().filename() == "shards")
        << entry.path();
}

TEST_F(Erasure, ShardsThatDoNotBelongTogether) {
  const std::string content = split(10000);
  split(10000, "others", "g");
  fs::copy_file(shard(1, "others", "g"), folder_ / "shards" / "g.001.shard");
  for (const char* command : {"check", "repair"})
    expect(kFailed, {"is a shard of g", "of f", "name the shards of one"}, {command, at("shards")});
  fs::remove(folder_ / "shards" / "g.001.shard");
  fs::copy_file(shard(1), folder_ / "shards" / "again.shard");
  expect(kFailed, {"are the same shard, number 1"}, {"check", at("shards")});
  fs::remove(folder_ / "shards" / "again.shard");

  std::string later = read_file(shard(1));
  later[8] = 2;
  const auto check = ::erasure::crc32c(std::as_bytes(std::span(later).first(kHeader - 4)));
  later.replace(kHeader - 4, 4, reinterpret_cast<const char*>(&check), 4);
  write_file(shard(1), later);
  expect(kDamaged, {"001.shard has version 2, this program knows 1"}, {"check", at("shards")});
  expect(kFailed, {"is in the way"}, {"repair", at("shards")});
  EXPECT_EQ(read_file(shard(1)), later);
  expect_joined(content);
}

TEST_F(Erasure, NothingIsOverwritten) {
  const std::string content = split(10000);
  const auto before = snapshot();
  expect(kFailed, {"exists already"}, {"split", at("f"), "--dir", at("shards")});
  write_file(at("joined"), "mine");
  expect(kFailed, {"exists already"}, {"join", at("shards"), "--output", at("joined")});
  EXPECT_EQ(read_file(at("joined")), "mine");
  EXPECT_EQ(snapshot(), before);
}

TEST_F(Erasure, CommandsThatMakeNoSense) {
  expect(kUsage, {}, {});
  expect(kUsage, {"--data"}, {"split", at("f"), "--data", "0"});
  expect(kFailed, {"No such file"}, {"split", at("f")});
  expect(kFailed, {"not a regular file"}, {"split", folder_.string()});
  expect(kFailed, {"no usable shard"}, {"check", folder_.string()});
  write_file(at("f"), "x");
  expect(kFailed, {"k + m at most 256"}, {"split", at("f"), "--data", "200", "--parity", "100"});
  expect(kFailed, {"need more than"}, {"split", at("f"), "--block", "1000000000"});
  expect(kFailed, {"f is shorter than the header"}, {"check", at("f")});
}

TEST_F(Erasure, InterruptionLeavesNothing) {
  const auto interrupt = [&](const std::string& seconds, std::vector<std::string> arguments) {
    // --foreground: once; without it the group gets the signal too, and a second one kills.
    const std::vector<std::string> before = {
        "/usr/bin/timeout", "--foreground", "--preserve-status", "-s", "INT", seconds,
        ERASURE_COMMAND};
    arguments.insert(arguments.begin(), before.begin(), before.end());
    return run_program(arguments, {{"MBLAS_BACKEND", "openmp"}});
  };
  write_file(at("f"), "");
  fs::resize_file(at("f"), std::uintmax_t{8} << 30);  // a hole
  const Finished split =
      interrupt("0.2", {"split", at("f"), "--dir", at("shards"), "--block", "100000"});
  EXPECT_EQ(split.exit_code, kInterrupted) << split.out << split.err;
  EXPECT_NE(split.err.find("interrupted, nothing was changed"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder_ / "shards"));

  // First while it looks for damage, then while it writes; the last ones may come too late.
  fs::resize_file(at("f"), 100'000'000);
  expect(kOk, {}, {"split", at("f"), "--dir", at("shards"), "--block", "1000"});
  const std::string whole = read_file(shard(2));
  damage(shard(2), block_at(0));
  const std::string damaged = read_file(shard(2));
  bool finished = false;
  for (int tenths = 1; tenths < 100 && !finished; ++tenths) {
    const Finished repair = interrupt(std::to_string(0.1 * tenths), {"repair", at("shards")});
    finished = repair.exit_code == kOk;
    EXPECT_EQ(repair.exit_code, finished ? kOk : kInterrupted) << repair.out << repair.err;
    EXPECT_TRUE(tenths > 1 || !finished);
    EXPECT_TRUE(read_file(shard(2)) == (finished ? whole : damaged));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "shards"), {}), 14);
  }
  EXPECT_TRUE(finished);
}

}  // namespace
}  // namespace mblas::testing
