// What `mblas bench` runs, and how.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "child.hpp"
#include "suites.hpp"
#include "support.hpp"
#include "survey.hpp"

namespace mblas::testing {
namespace {

namespace fs = std::filesystem;

Finished bench(std::vector<std::string> words) {
  words.insert(words.begin(), {MBLAS_COMMAND, "bench"});
  return run_program(words, {}, 120);
}

// Results are compared between machines and commits: the products must be the same ones.
TEST(Survey, IsTheSameEverywhere) {
  const auto device = bench::survey(false), host = bench::survey(true);
  ASSERT_EQ(device.size(), 324U);
  ASSERT_EQ(host.size(), 216U);
  EXPECT_EQ(device.front(), "gemm --type f32 -m 1898 -n 2676 -k 3385");
  EXPECT_EQ(device.back(), "gemm --type i8 -m 37 -n 9 -k 246 --batch 10 --transA T --transB T");
  EXPECT_EQ(host.front(), "gemm --type f32 -m 106 -n 372 -k 313");
  EXPECT_EQ(host.back(), "gemm --type i8 -m 10 -n 16 -k 11 --batch 3454 --transB T");
  const std::set<std::string_view> distinct(device.begin(), device.end());
  EXPECT_EQ(distinct.size(), device.size());
}

TEST(Survey, LinesAreCases) {
  for (const bool host : {false, true})
    EXPECT_EQ(bench::cases_of(bench::survey(host)).size(), bench::survey(host).size());
}

TEST(BenchCommand, GraphsAreOfDeviceMemory) {
  const Finished f = bench({"gemm", "--backend", "openmp", "--graph", "--host"});
  EXPECT_EQ(f.exit_code, 2) << f.out << f.err;
  EXPECT_NE(f.err.find("--graph"), f.err.npos) << f.err;
}

TEST(BenchCommand, TimesGraphs) {
  if (const std::string reason = find_backend("cuda").unavailable(); !reason.empty())
    GTEST_SKIP() << reason;
  const fs::path path = fs::temp_directory_path() / ("mblas-bench-" + std::to_string(getpid()));
  const Finished f = bench({"gemm", "--type", "f32,f64", "-m", "40", "-n", "m", "-k", "m",
                            "--backend", "cuda", "--graph", "--json", path.string()});
  EXPECT_EQ(f.exit_code, 0) << f.out << f.err;
  std::ifstream file(path);
  const std::string json(std::istreambuf_iterator<char>(file), {});
  fs::remove(path);
  EXPECT_NE(json.find("\"graph\": true"), json.npos) << json;
  EXPECT_EQ(json.find("skipped"), json.npos) << json;
}

}  // namespace
}  // namespace mblas::testing
