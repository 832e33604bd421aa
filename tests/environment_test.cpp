// The environment's variables, each in a child process of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "child.hpp"
#include "support.hpp"

namespace mblas::testing {
namespace {

using Environment = std::map<std::string, std::string>;

Finished probe(const std::vector<std::string>& calls, const Environment& environment) {
  std::vector<std::string> command{MBLAS_PROBE};
  command.insert(command.end(), calls.begin(), calls.end());
  Finished finished = run_program(command, environment);
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  return finished;
}

/// Runs the calls with a variable set; the output must hold every one of `words`.
void expect(const std::vector<std::string>& calls, const Environment& environment,
            const std::vector<std::string>& words) {
  const Finished f = probe(calls, environment);
  for (const std::string& word : words)
    EXPECT_NE(f.out.find(word), std::string::npos)
        << "'" << word << "' is not in: " << f.out << f.err;
}

std::string last_kernel(const std::string& backend) {
  return std::string(find_backend(backend).gemm_kernels().back().name);
}

TEST(Environment, NothingSet) {
  const Finished f =
      probe({"gemm", "geam", "transpose", "transpose_inplace", "gf256", "shards"}, {});
  EXPECT_EQ(f.err, "") << "the library printed unasked";
  EXPECT_NE(f.out.find("gemm: ok "), std::string::npos);
  EXPECT_NE(f.out.find("shards: ok openmp/"), std::string::npos);
}

TEST(Environment, Backend) {
  expect({"gemm"}, {{"MBLAS_BACKEND", "openmp"}}, {"gemm: ok openmp/"});
  expect({"gemm"}, {{"MBLAS_BACKEND", "auto"}}, {"gemm: ok "});
  expect({"gemm"}, {{"MBLAS_BACKEND", ""}}, {"gemm: ok "});
  expect({"gemm"}, {{"MBLAS_BACKEND", "opnemp"}},
         {"UnknownName", "MBLAS_BACKEND=opnemp", "there are: openmp"});
  expect({"gemm"}, {{"MBLAS_BACKEND", "openmp,nonsense"}}, {"UnknownName", "nonsense"});
  expect({"gemm", "set_backend:openmp"}, {{"MBLAS_BACKEND", "nonsense"}},
         {"gemm: UnknownName", "set_backend:openmp: UnknownName"});
  expect({"try"}, {{"MBLAS_BACKEND", "nonsense"}}, {"try: UnknownName"});
}

TEST(Environment, ABackendNamedManyTimesIsOneCandidate) {
  std::string names = "openmp";
  for (int i = 1; i < 1000; ++i) names += ",openmp";
  expect({"gemm", "gemm1"}, {{"MBLAS_BACKEND", names}}, {"gemm: ok openmp/", "gemm1: ok openmp/"});
  // A call that every candidate declines reports each of them once.
  const Finished f = probe({"gemm"}, {{"MBLAS_BACKEND", names}, {"MBLAS_COMPUTE", "tf32"}});
  const std::size_t first = f.out.find("native arithmetic");
  ASSERT_NE(first, f.out.npos) << f.out;
  EXPECT_LT(f.out.size(), std::size_t{4096}) << f.out;
}

TEST(Environment, ABackendThatCannotRunHereSaysWhy) {
  for (const std::string name : {"eigen", "cuda", "cublas"}) {
    std::string reason = "not built";
    for (Backend* backend : backends())
      if (backend->name() == name) reason = backend->unavailable();
    if (reason.empty()) {
      expect({"gemm"}, {{"MBLAS_BACKEND", name}}, {"gemm: ok " + name + "/"});
      continue;
    }
    expect({"gemm"}, {{"MBLAS_BACKEND", name}},
           {"gemm: BackendUnavailable: MBLAS_BACKEND=" + name, reason, "openmp"});
    // In a list the next one does it.
    expect({"gemm"}, {{"MBLAS_BACKEND", name + ",openmp"}}, {"gemm: ok openmp/"});
  }
}

TEST(Environment, ABackendOfTheProgramsOwn) {
  expect({"register:reference", "gemm", "geam"}, {{"MBLAS_BACKEND", "reference"}},
         {"gemm: ok reference/naive", "geam: NotSupported", "no kernels for this operation"});
  expect({"register:reference", "gemm", "geam"}, {{"MBLAS_BACKEND", "reference,openmp"}},
         {"gemm: ok reference/naive", "geam: ok openmp/"});
  expect({"gemm"}, {{"MBLAS_BACKEND", "reference"}}, {"UnknownName"});
}

TEST(Environment, Kernel) {
  const std::string kernel = last_kernel("openmp");
  expect({"gemm", "geam"}, {{"MBLAS_BACKEND", "openmp"}, {"MBLAS_KERNEL", "gemm=" + kernel}},
         {"gemm: ok openmp/" + kernel, "geam: ok openmp/"});
  expect({"gemm"}, {{"MBLAS_KERNEL", "gemm=fastest"}},
         {"UnknownName", "MBLAS_KERNEL", "fastest", kernel});
  expect({"gemm"}, {{"MBLAS_KERNEL", "gamm=" + kernel}}, {"UnknownName", "MBLAS_KERNEL", "gamm"});
  expect({"gemm"}, {{"MBLAS_KERNEL", kernel}}, {"UnknownName", "OPERATION=KERNEL"});
}

TEST(Environment, Compute) {
  expect({"gemm"}, {{"MBLAS_BACKEND", "openmp"}, {"MBLAS_COMPUTE", "pedantic"}},
         {"gemm: ok openmp/", " pedantic"});
  expect({"gemm"}, {{"MBLAS_BACKEND", "openmp"}, {"MBLAS_COMPUTE", "tf32"}},
         {"gemm: NotSupported", "native arithmetic"});
  expect({"gemm"}, {{"MBLAS_COMPUTE", "fast"}},
         {"UnknownName", "MBLAS_COMPUTE", "'fast'", "pedantic", "ozaki"});
}

TEST(Environment, NumThreads) {
  const auto threads = [](const Environment& more) {
    Environment environment = more;
    environment["MBLAS_BACKEND"] = "wrong";
    return probe({"register:wrong", "gemm", "threads"}, environment).out;
  };
  EXPECT_NE(threads({{"MBLAS_NUM_THREADS", "3"}}).find("threads 3\n"), std::string::npos);
  EXPECT_NE(threads({{"MBLAS_NUM_THREADS", "1"}}).find("threads 1\n"), std::string::npos);
#ifdef _OPENMP
  EXPECT_NE(threads({{"OMP_NUM_THREADS", "5"}}).find("threads 5\n"), std::string::npos);
  EXPECT_NE(threads({{"OMP_NUM_THREADS", "5"}, {"MBLAS_NUM_THREADS", "2"}}).find("threads 2\n"),
            std::string::npos);
#endif
  for (const char* wrong : {"0", "-1", "four", "3x", "99999999999"})
    expect({"gemm"}, {{"MBLAS_NUM_THREADS", wrong}},
           {"InvalidArgument", "MBLAS_NUM_THREADS", wrong});
}

TEST(Environment, Arch) {
  expect({"describe", "gemm", "geam", "transpose", "gf256"},
         {{"MBLAS_ARCH", "generic"}, {"MBLAS_BACKEND", "openmp"}},
         {"generic", "gemm: ok", "geam: ok", "transpose: ok", "gf256: ok"});
  expect({"gemm"}, {{"MBLAS_ARCH", "sse9"}}, {"UnknownName", "sse9", "generic"});
#ifdef __x86_64__
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  const struct {
    const char *name, *title;
    bool here;
  } sets[] = {
      {"avx2", "AVX2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
      {"avx512", "AVX-512", avx512},
      {"avx512_vnni", "AVX-512 with VNNI", vnni},
      {"avx512_bf16", "AVX-512 with VNNI and BF16", vnni && __builtin_cpu_supports("avx512bf16")}};
  for (const auto& set : sets) {
    if (set.here)
      expect({"describe", "gemm"}, {{"MBLAS_ARCH", set.name}, {"MBLAS_BACKEND", "openmp"}},
             {set.title, "gemm: ok"});
    else
      expect({"gemm"}, {{"MBLAS_ARCH", set.name}}, {"UnknownName", set.name, "lacks"});
  }
#endif
}

TEST(Environment, Device) {
  const Environment fake{{"MBLAS_BACKEND", "fake"}};
  const auto with = [&](const char* device) {
    Environment e = fake;
    e["MBLAS_DEVICE"] = device;
    return e;
  };
  expect({"register:fake", "gemm"}, with("0"), {"gemm: ok fake/"});
  expect({"register:fake", "gemm"}, with("7"),
         {"InvalidArgument", "device 7 does not exist", "fake has 1"});
  expect({"register:fake", "gemm"}, with("-1"), {"InvalidArgument", "MBLAS_DEVICE", "-1"});
  expect({"register:fake", "gemm"}, with("first"), {"InvalidArgument", "MBLAS_DEVICE", "first"});
  expect({"gemm"}, {{"MBLAS_BACKEND", "openmp"}, {"MBLAS_DEVICE", "7"}}, {"gemm: ok openmp/"});
}

const std::vector<std::string> kCalls{
    "gemm", "gemm1", "gemm2", "gemm3", "geam", "transpose", "transpose_inplace", "gf256", "shards"};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Environment, VerboseLines) {
  const Finished f = probe(kCalls, {{"MBLAS_BACKEND", "openmp"}, {"MBLAS_VERBOSE", "1"}});
  const auto lines = lines_of(f.err);
  ASSERT_EQ(lines.size(), kCalls.size()) << f.err;
  const std::regex format(
      R"(mblas bench (gemm|geam|transpose|transpose_inplace|gf256)( --?[A-Za-z]+( [^ ]+)?)+ )"
      R"(--backend openmp --kernel [a-z0-9_]+  # [0-9.]+ ms, workspace [0-9]+(, epilogue (pass|fused))?)");
  for (const std::string& line : lines) EXPECT_TRUE(std::regex_match(line, format)) << line;
  EXPECT_NE(lines[0].find("gemm --type f32 --out f32 --layout R --transA N --transB T -m 48 -n 48 "
                          "-k 48 --lda 48 --ldb 48 --ldc 48 --alpha 2 --beta 0.5"),
            std::string::npos)
      << lines[0];
  EXPECT_EQ(probe({"gemm"}, {{"MBLAS_VERBOSE", "0"}}).err, "");
  expect({"gemm"}, {{"MBLAS_VERBOSE", "3"}}, {"InvalidArgument", "MBLAS_VERBOSE"});
  const Finished more =
      probe({"transpose_inplace"}, {{"MBLAS_BACKEND", "openmp"}, {"MBLAS_VERBOSE", "2"}});
  EXPECT_NE(more.err.find("declined: "), std::string::npos) << more.err;
}

#ifdef MBLAS_COMMAND
TEST(Environment, AnInterruptedBenchWritesWhatItHas) {
  const std::string file = ::testing::TempDir() + "interrupted.json";
  const Finished f =
      run_program({"/bin/sh", "-c",
                   std::string(MBLAS_COMMAND) +
                       " bench gemm --backend openmp -m 16:64:1 -n 16:64:1 -k 16:64:1 --json " +
                       file + " & sleep 2; kill -TERM $!; wait $!"},
                  {});
  EXPECT_EQ(f.exit_code, 1) << f.err;
  EXPECT_NE(f.err.find("interrupted after "), f.err.npos) << f.err;
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_NE(text.find("16"), text.npos) << text;
}

TEST(Environment, InfoShowsWhatCallsWouldUse) {
  const Finished f =
      run_program({MBLAS_COMMAND, "info"}, {{"MBLAS_ARCH", "generic"}, {"MBLAS_NUM_THREADS", "3"}});
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_NE(f.out.find("available: generic, 3 threads"), f.out.npos) << f.out;
}

TEST(Environment, PartsOfABenchAreItsCasesOnce) {
  const auto rows = [](const std::vector<std::string>& part) {
    std::vector<std::string> command{MBLAS_COMMAND, "bench",     "gemm", "--backend", "openmp",
                                     "-m",          "3:9:1",     "-n",   "5",         "-k",
                                     "7",           "--repeats", "1"};
    command.insert(command.end(), part.begin(), part.end());
    const Finished f = run_program(command, {});
    std::set<std::string> found;
    const std::regex row("gemm f32 NN ([0-9]+)x5x7 ");
    for (std::sregex_iterator at(f.out.begin(), f.out.end(), row), end; at != end; ++at)
      found.insert((*at)[1]);
    return std::pair(f.exit_code, found);
  };
  using Found = std::pair<int, std::set<std::string>>;
  EXPECT_EQ(rows({"--part", "1/2"}), Found(0, {"3", "5", "7", "9"}));
  EXPECT_EQ(rows({"--part", "2/2"}), Found(0, {"4", "6", "8"}));
  for (const char* wrong : {"0/3", "4/3", "2", "1/3x", "a/3", "1/-1", "1/2/3"})
    EXPECT_EQ(rows({"--part", wrong}), Found(2, {})) << wrong;
}

TEST(Environment, VerboseLinesReplay) {
  const Finished f = probe(kCalls, {{"MBLAS_BACKEND", "openmp"}, {"MBLAS_VERBOSE", "1"}});
  const std::regex receipt(" --backend ([a-z]+) --kernel ([a-z0-9_]+)  #");
  for (const std::string& line : lines_of(f.err)) {
    std::smatch ran;
    ASSERT_TRUE(std::regex_search(line, ran, receipt)) << line;
    std::vector<std::string> command{MBLAS_COMMAND};
    std::istringstream words(line.substr(std::string("mblas ").size()));
    for (std::string word; words >> word && word != "#";) command.push_back(word);
    command.insert(command.end(), {"--repeats", "1"});
    const Finished again = run_program(command, {}, 120);
    EXPECT_EQ(again.exit_code, 0) << line << "\n" << again.out << again.err;
    // One row, of that kernel, and verified.
    const std::regex row(ran[1].str() + " +" + ran[2].str() + " [^\n]*  ok\n");
    EXPECT_TRUE(std::regex_search(again.out, row)) << line << "\n" << again.out;
  }
}
#endif

TEST(Environment, Verify) {
  for (const std::string reference : {"openmp", "eigen"}) {
    bool here = false;
    for (Backend* backend : backends())
      here = here || (backend->name() == reference && backend->unavailable().empty());
    if (!here) continue;
    std::vector<std::string> calls = kCalls;
    if (reference == "eigen") calls = {"gemm", "gemm1", "gemm2", "geam", "transpose"};
    std::vector<std::string> words;
    for (const std::string& call : calls) words.push_back(call + ": ok openmp/");
    expect(calls, {{"MBLAS_BACKEND", "openmp"}, {"MBLAS_VERIFY", reference}}, words);
  }
  const Environment wrong{{"MBLAS_BACKEND", "wrong"}, {"MBLAS_VERIFY", "openmp"}};
  expect({"register:wrong", "gemm"}, wrong,
         {"gemm: VerifyFailed", "verification on openmp failed", "gemm --type f32", "wrong/wrong",
          "element (1, 3)"});
  expect({"gemm"}, {{"MBLAS_VERIFY", "nobody"}}, {"UnknownName", "MBLAS_VERIFY", "nobody"});
  expect({"gemm"}, {{"MBLAS_VERIFY", "openmp:2"}}, {"InvalidArgument", "MBLAS_VERIFY", "fraction"});
}

TEST(Environment, VerifySamples) {
  const std::vector<std::string> calls{"register:wrong", "gemm", "gemm", "gemm", "gemm",
                                       "gemm",           "gemm", "gemm", "gemm"};
  for (const auto& [fraction, failures] :
       std::map<std::string, int>{{"1", 8}, {"0.5", 4}, {"0.25", 2}, {"0.01", 1}}) {
    const std::string out =
        probe(calls, {{"MBLAS_BACKEND", "wrong"}, {"MBLAS_VERIFY", "openmp:" + fraction}}).out;
    int found = 0;
    for (std::size_t at = 0; (at = out.find("VerifyFailed", at)) != out.npos; ++at) ++found;
    EXPECT_EQ(found, failures) << fraction;
  }
}

TEST(Environment, CallsInsideAParallelRegion) {
  expect({"in_parallel", "gemm"}, {{"MBLAS_BACKEND", "openmp"}}, {"in_parallel: ok", "gemm: ok"});
  expect({"gemm", "in_parallel"}, {{"MBLAS_BACKEND", "openmp"}, {"MBLAS_NUM_THREADS", "2"}},
         {"in_parallel: ok", "gemm: ok"});
}

#ifndef MBLAS_TEST_SANITIZED  // sanitizers map more than any limit allows
TEST(HostMemory, OutOfIt) {
  expect({"starve"}, {{"MBLAS_NUM_THREADS", "1"}}, {"starve: OutOfMemory: ", "afterwards: Ok"});
}
#endif

}  // namespace
}  // namespace mblas::testing
