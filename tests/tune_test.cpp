// Tune files: what is found in them, what is wrong with them, and how `mblas tune` makes them.
#include "mblas/tune.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "child.hpp"
#include "support.hpp"
#include "tune.hpp"

namespace mblas::testing {
namespace {

namespace fs = std::filesystem;
using cases::GemmCase;

// ---------------------------------------------------------------------------------------------------
// A backend whose kernels differ in what they say of themselves only.

constexpr std::int64_t kWrongM = 77;  // of products that configuration "wrong" takes

constexpr std::string_view kConfigs[] = {"quick", "slow", "never", "wrong"};

const char* declines(const GemmArgs& args, const DeviceInfo&) {
  if (args.in != DType::f32) return "multiplies float only";
  if (args.config == 2) return "fits no call";
  if ((args.config == 3) != (args.m == kWrongM) && args.config >= 0)
    return "is for another number of rows";
  return nullptr;
}

template <int kMilliseconds>
void run(const GemmArgs& args, Queue& queue) {
  find_backend("openmp").gemm_kernels().back().run(args, queue);
  if (args.config == 3) *static_cast<float*>(args.C.data) += 1;
  if (args.config < 0 || args.config == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(kMilliseconds));
}

class TunableBackend final : public Backend {
 public:
  std::string_view name() const override { return "tunable"; }
  std::span<const Kernel<GemmArgs>> gemm_kernels() const override {
    static constexpr Kernel<GemmArgs> table[] = {
        {"first", "", declines, nullptr, run<1>, nullptr, kConfigs},
        {"second", "", declines, nullptr, run<5>}};
    return table;
  }
};

void use_tunable_backend() {
  static const bool once = (register_backend(std::make_unique<TunableBackend>()), true);
  (void)once;
}

// ---------------------------------------------------------------------------------------------------
// This process's file: it must be there before the first context is.

fs::path folder() {
  static const struct Folder {
    fs::path path = fs::temp_directory_path() / ("mblas_tune_" + std::to_string(getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
  } folder;
  return folder.path;
}

std::string host_name() { return find_backend("openmp").make_queue({})->device().name; }

std::string line(const TuneEntry& e) {
  const auto text = [](std::string_view key, std::string_view value) {
    return "\"" + std::string(key) + "\": \"" + std::string(value) + "\", ";
  };
  const auto number = [](std::string_view key, double value) {
    return "\"" + std::string(key) + "\": " + std::to_string(value) + ", ";
  };
  const auto flag = [](std::string_view key, bool value) {
    return "\"" + std::string(key) + "\": " + (value ? "true" : "false") + ", ";
  };
  return "{" + text("backend", e.backend) + text("device", e.device) +
         number("threads", e.threads) + text("op", e.operation) + text("dtype", name_of(e.in)) +
         text("out", name_of(e.out)) + text("compute", name_of(e.compute)) +
         text("transA", std::string(1, char(e.transA))) +
         text("transB", std::string(1, char(e.transB))) + text("reads", e.reads) +
         flag("aligned", e.aligned) + flag("pointers", e.pointers) + number("m", double(e.m)) +
         number("n", double(e.n)) + number("k", double(e.k)) + number("batch", double(e.batch)) +
         text("kernel", e.kernel) + text("config", e.config) + number("ms", e.ms) +
         text("default_kernel", e.default_kernel) + "\"default_ms\": 2.5}";
}

std::string file_text(const std::vector<TuneEntry>& entries,
                      const std::string& version = std::string(mblas::version())) {
  std::string text = "{\n  \"mblas_tune\": 1,\n  \"version\": \"" + version +
                     "\",\n  \"more\": [null, -1.5e3, \"\\u0009\\\"\"],\n  \"entries\": [";
  for (const TuneEntry& e : entries) text += (&e == entries.data() ? "\n" : ",\n") + line(e);
  return text + "]\n}\n";
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A row-major product of m×m×m floats on the backend, C not read.
TuneEntry product(std::int64_t m, std::string kernel, std::string config = "",
                  std::string backend = "tunable") {
  TuneEntry e;
  e.backend = std::move(backend);
  e.device = host_name();
  e.threads = 2;
  e.operation = "gemm";
  e.reads = "AB";
  e.m = e.n = e.k = m;
  e.kernel = std::move(kernel);
  e.config = std::move(config);
  return e;
}

std::vector<TuneEntry> own_entries() {
  std::vector<TuneEntry> all{product(8, "second"),
                             product(9, "second", "", "openmp"),
                             product(12, "first", "quick"),
                             product(16, "first", "never"),
                             product(20, "third"),
                             product(24, "first", "fast"),
                             product(28, "second"),
                             product(28, "first", "quick"),
                             product(40, "naive", "", "openmp")};
  all[1].backend = "tunable";
  all[1].aligned = false;
  for (std::int64_t m = 1000; m < 3000; ++m) {  // none is found for another
    all.push_back(product(8, m % 2 ? "second" : "first", m % 2 ? "" : "quick"));
    all.back().n = 4 * m;
    all.back().k = 4;
  }
  TuneEntry wide = product(32, "second");
  wide.n = 64;
  all.push_back(wide);
  return all;
}

class Tuned : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    use_tunable_backend();
    write(folder() / "own.json", file_text(own_entries()));
    setenv("MBLAS_TUNE_FILE", (folder() / "own.json").c_str(), 1);
  }
  Tuned() : context("tunable") { context.set_num_threads(2); }

  /// "kernel:config", with "*" where the file chose it.
  std::string chosen(const cases::Case& c) {
    const Result result = run_case(c, context);
    EXPECT_EQ(result.fate, Fate::Ran) << result.text;
    const Dispatch& d = context.last_dispatch();
    return std::string(d.kernel) + (d.config.empty() ? "" : ":") + std::string(d.config) +
           (d.tuned ? "*" : "");
  }
  Context context;
};

GemmCase cube(std::int64_t m) { return {.m = m, .n = m, .k = m}; }

TEST_F(Tuned, TheFileIsRead) {
  EXPECT_EQ(tune_file().problem, "");
  EXPECT_EQ(tune_file().path, folder() / "own.json");
  ASSERT_EQ(tune_file().entries.size(), own_entries().size());
  EXPECT_EQ(tune_file().entries[0].default_ms, 2.5);
}

TEST_F(Tuned, AnEntryChoosesKernelAndConfiguration) {
  EXPECT_EQ(chosen(cube(8)), "second*");
  EXPECT_EQ(chosen(cube(12)), "first:quick*");
  EXPECT_EQ(chosen(cube(10)), "first");
  EXPECT_EQ(chosen(cube(28)), "first:quick*") << "of two entries the last one holds";
  EXPECT_EQ(chosen(cube(8)), "second*");
}

TEST_F(Tuned, EverythingOfTheCallMustBeEqual) {
  GemmCase c = cube(8);
  c.alpha = {2, 0};
  EXPECT_EQ(chosen(c), "second*") << "scalars do not matter";
  c.lda = 12;
  EXPECT_EQ(chosen(c), "second*") << "nor do gaps between rows";
  std::vector<GemmCase> others(9, cube(8));
  others[0].m = 7;
  others[1].n = 7;
  others[2].k = 7;
  others[3].batch = 2;
  others[4].transA = Op::Trans;
  others[5].transB = Op::Trans;
  others[6].beta = {1, 0};
  others[7].compute = Compute::Pedantic;
  others[8].offset = 1;
  for (const GemmCase& other : others) EXPECT_EQ(chosen(other), "first") << cases::command(other);
  context.set_num_threads(1);
  EXPECT_EQ(chosen(cube(8)), "first");
  context.set_backend("openmp");
  context.set_num_threads(2);
  EXPECT_EQ(chosen(cube(12)), chosen(cube(11))) << "another backend's entry";
}

TEST_F(Tuned, AlignmentIsPartOfTheCall) {
  EXPECT_EQ(chosen(cube(9)), "second*");
  GemmCase c = cube(9);
  c.lda = c.ldb = c.ldc = 12;
  EXPECT_EQ(chosen(c), "first");
}

TEST_F(Tuned, ColumnMajorCallsAreLookedUpRowMajor) {
  GemmCase c = cube(32);
  c.m = 64;
  c.layout = Layout::ColMajor;
  EXPECT_EQ(chosen(c), "second*");
  c.layout = Layout::RowMajor;
  EXPECT_EQ(chosen(c), "first");
}

TEST_F(Tuned, NoEntryIsTakenForAnother) {
  context.set_num_threads(2);
  for (std::int64_t m = 1000; m < 3000; m += 7) {
    GemmCase c{.m = 8, .n = 4 * m, .k = 4};
    EXPECT_EQ(chosen(c), m % 2 ? "second*" : "first:quick*") << m;
  }
}

TEST_F(Tuned, WhatDeclinesOrIsUnknownLeavesTheChoiceToTheTable) {
  EXPECT_EQ(chosen(cube(16)), "first");
  ASSERT_EQ(context.last_dispatch().declined.size(), 1u);
  EXPECT_EQ(context.last_dispatch().declined[0].reason, "fits no call");
  EXPECT_EQ(chosen(cube(20)), "first") << "no kernel of that name";
  EXPECT_EQ(chosen(cube(24)), "first") << "no configuration of that name";
}

TEST_F(Tuned, AForcedKernelWins) {
  context.set_kernel("gemm=first");
  EXPECT_EQ(chosen(cube(8)), "first");
  context.set_kernel("gemm=first:slow");
  EXPECT_EQ(chosen(cube(8)), "first:slow");
  context.set_kernel("gemm=first:never");
  EXPECT_EQ(run_case(cube(8), context)
                .text.find("NotSupported: gemm: no kernel takes this call: "
                           "tunable/first: fits no call"),
            0u);
  context.set_kernel("");
  EXPECT_EQ(chosen(cube(8)), "second*");
  expect_throws(Status::UnknownName, {"first", "'fast'", "there are: quick, slow, never, wrong"},
                [&] { context.set_kernel("gemm=first:fast"); });
  expect_throws(Status::UnknownName, {"second", "''", "there are: none"},
                [&] { context.set_kernel("gemm=second:"); });
  expect_throws(Status::UnknownName, {"'third'"}, [&] { context.set_kernel("gemm=third:quick"); });
  EXPECT_EQ(chosen(cube(8)), "second*") << "a setter that throws changes nothing";
}

TEST_F(Tuned, SmallProductsOnTheShortWay) {
  context.set_backend("openmp");
  context.set_num_threads(2);
  EXPECT_EQ(chosen(cube(40)), "naive*");
  const std::string other = chosen(cube(41));
  EXPECT_EQ(other.find('*'), other.npos);
  context.set_compute(Compute::Pedantic);
  EXPECT_NE(chosen(cube(40)), "naive*") << "the context's mode is the call's";
}

TEST_F(Tuned, CallsDescribeThemselves) {
  TuneEntry e;
  detail::record_tune_entry(context, &e);
  GemmCase c{.layout = Layout::ColMajor, .transA = Op::Trans, .m = 5, .n = 6, .k = 7};
  c.beta = {2, 0};
  chosen(c);
  EXPECT_EQ(e.backend, "tunable");
  EXPECT_EQ(e.device, host_name());
  EXPECT_EQ(e.threads, 2);
  EXPECT_EQ(e.operation, "gemm");
  EXPECT_EQ(e.transB, Op::Trans);
  EXPECT_EQ(e.reads, "ABC");
  EXPECT_EQ(std::tuple(e.m, e.n, e.k, e.batch), std::tuple(6, 5, 7, 1));
  EXPECT_FALSE(e.aligned);
  detail::record_tune_entry(context, nullptr);
  chosen(cube(12));
  EXPECT_EQ(e.m, 6);
}

// ---------------------------------------------------------------------------------------------------
// What may be wrong with a file.

std::string problem_of(const std::string& text) {
  const fs::path path = folder() / "wrong.json";
  write(path, text);
  const TuneFile file = read_tune_file(path);
  EXPECT_TRUE(file.problem.empty() || file.entries.empty());
  return file.problem;
}

void expect_problem(const std::string& text, std::string_view words) {
  EXPECT_NE(problem_of(text).find(words), std::string::npos) << problem_of(text) << "\n" << text;
}

TEST(TuneFiles, EveryPrefixIsDamaged) {
  const std::string text = file_text({product(8, "second")});
  EXPECT_EQ(problem_of(text), "");
  const std::size_t end = text.rfind('}');
  for (std::size_t size = 0; size <= end; ++size)
    ASSERT_NE(problem_of(text.substr(0, size)), "") << size;
  // Nor does a wrong byte crash the reader.
  for (std::size_t at = 0; at < end; at += 5)
    for (const char c : {'\0', '"', '{', '\\', '9'}) {
      std::string changed = text;
      changed[at] = c;
      problem_of(changed);
    }
}

TEST(TuneFiles, WhatIsWrongIsSaid) {
  const std::string good = file_text({product(8, "second")});
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  expect_problem("", "line 1");
  expect_problem("{}", "not a tune file");
  expect_problem("[1, 2]", "not a tune file");
  expect_problem("{\"rows\": []}", "not a tune file");
  expect_problem(good + "x", "after the end");
  expect_problem(std::string(100000, '['), "too deeply");
  expect_problem(file_text({}, "0.0.9"), "of mblas 0.0.9, this is");
  expect_problem(file_text({}, "77.1.0"), "of mblas 77.1.0");
  expect_problem(with("\"mblas_tune\": 1", "\"mblas_tune\": 2"), "of mblas");
  expect_problem(with("\"f32\"", "\"f33\""), "entry 1: 'dtype' is 'f33'");
  expect_problem(with("\"gemm\"", "\"gamm\""), "'op' is 'gamm'");
  expect_problem(with("\"AB\"", "\"AX\""), "'reads'");
  expect_problem(with("8.000000", "-8"), "'m' is not a size");
  expect_problem(with("8.000000", "8.5"), "'m' is not a size");
  expect_problem(with("8.000000", "1e300"), "'m' is not a size");
  expect_problem(with("\"kernel\"", "\"kernels\""), "'kernel' is missing");
  EXPECT_EQ(problem_of(file_text({}, std::string(version()) + ".9")), "")
      << "another patch's kernels are these";
  EXPECT_NE(read_tune_file((folder() / "none.json").string()).problem, "");
  EXPECT_NE(read_tune_file(folder().string()).problem, "");
}

// ---------------------------------------------------------------------------------------------------
// The environment, in child processes.

/// The product of the probe as the core stages it for backend fake, or runs it on openmp.
TuneEntry probes_product(const std::string& backend, const std::string& kernel,
                         const std::string& config = "") {
  TuneEntry e = product(48, kernel, config, backend);
  e.transB = Op::Trans;
  e.reads = "ABC";
  if (backend == "fake") e.device = "fake", e.threads = 0;
  return e;
}

Finished probe(std::map<std::string, std::string> environment, const std::string& backend) {
  environment.emplace("MBLAS_BACKEND", backend);
  environment.emplace("MBLAS_NUM_THREADS", "2");
  environment.emplace("MBLAS_VERBOSE", "1");
  return run_program({MBLAS_PROBE, "register:fake", "gemm", "gemm"}, environment);
}

TEST(TuneEnvironment, ANamedFile) {
  const fs::path path = folder() / "fake.json";
  write(path,
        file_text({probes_product("fake", "fake", "wide"), probes_product("openmp", "naive")}));
  const std::map<std::string, std::string> environment{{"MBLAS_TUNE_FILE", path}};
  Finished f = probe(environment, "fake");
  EXPECT_NE(f.out.find("gemm: ok fake/fake:wide default tuned"), f.out.npos) << f.out;
  EXPECT_NE(f.err.find("--backend fake --kernel fake:wide --host  # "), f.err.npos) << f.err;
  EXPECT_NE(f.err.find(", tuned\n"), f.err.npos) << f.err;
  f = probe(environment, "openmp");
  EXPECT_NE(f.out.find("gemm: ok openmp/naive default tuned"), f.out.npos) << f.out;
  std::map<std::string, std::string> forced = environment;
  forced["MBLAS_KERNEL"] = "gemm=fake:narrow";
  f = probe(forced, "fake");
  EXPECT_NE(f.out.find("gemm: ok fake/fake:narrow default\n"), f.out.npos) << f.out;
}

TEST(TuneEnvironment, TheDefaultFileAndNone) {
  const fs::path cache = folder() / "cache";
  const auto tuned = [&](std::map<std::string, std::string> environment) {
    environment.emplace("MBLAS_TUNE_FILE", "");
    const Finished f = probe(environment, "openmp");
    EXPECT_EQ(f.err.find("tune file"), f.err.npos) << f.err;
    return f.out.find("tuned") != f.out.npos;
  };
  EXPECT_FALSE(tuned({{"XDG_CACHE_HOME", cache}})) << "there is none yet, which is no problem";
  fs::create_directories(cache / "mblas");
  write(cache / "mblas" / "tune.json", file_text({probes_product("openmp", "naive")}));
  EXPECT_TRUE(tuned({{"XDG_CACHE_HOME", cache}}));
  EXPECT_FALSE(tuned({{"XDG_CACHE_HOME", cache}, {"MBLAS_TUNE_FILE", "off"}}));
  fs::create_directories(folder() / ".cache");
  fs::rename(cache / "mblas", folder() / ".cache" / "mblas");
  EXPECT_TRUE(tuned({{"XDG_CACHE_HOME", ""}, {"HOME", folder()}}));
}

TEST(TuneEnvironment, WhatIsIgnoredIsReportedOnce) {
  const fs::path path = folder() / "ignored.json";
  const auto expect_line = [&](std::string_view words) {
    const Finished f = probe({{"MBLAS_TUNE_FILE", path}}, "fake");
    EXPECT_NE(f.out.find("gemm: ok fake/fake default\n"), f.out.npos) << f.out;
    const std::size_t first = f.err.find("# tune file " + path.string() + " is ignored: ");
    ASSERT_NE(first, f.err.npos) << f.err;
    EXPECT_NE(f.err.find(words, first), f.err.npos) << f.err;
    EXPECT_EQ(f.err.find("# tune file", first + 1), f.err.npos) << f.err;
    const Finished quiet = run_program({MBLAS_PROBE, "register:fake", "gemm"},
                                       {{"MBLAS_BACKEND", "fake"}, {"MBLAS_TUNE_FILE", path}});
    EXPECT_EQ(quiet.err, "") << "the library printed unasked";
  };
  expect_line("cannot be read");
  write(path, "{\"mblas_tune\": 1, ");
  expect_line("line 1");
  write(path, file_text({probes_product("fake", "fake", "wide")}, "0.0.1"));
  expect_line("of mblas 0.0.1");
  TuneEntry elsewhere = probes_product("fake", "fake", "wide");
  elsewhere.device = "another fake";
  write(path, file_text({elsewhere}));
  expect_line("another device");
}

Finished command(const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& environment = {}) {
  std::vector<std::string> all{MBLAS_COMMAND};
  all.insert(all.end(), words.begin(), words.end());
  return run_program(all, environment, 120);
}

TEST(TuneEnvironment, InfoSaysWhatThereIs) {
  const fs::path path = folder() / "info.json";
  TuneEntry other = product(8, "first");
  other.backend = "openmp";
  other.device = "abacus";
  write(path, file_text({probes_product("openmp", "naive"), other}));
  Finished f = command({"info"}, {{"MBLAS_TUNE_FILE", path}});
  EXPECT_NE(f.out.find("openmp   " + host_name() + ": 1 entries\n"), f.out.npos) << f.out;
  EXPECT_NE(f.out.find("abacus: 1 entries; not this device; 1 name what is not here\n"), f.out.npos)
      << f.out;
  write(path, "?");
  f = command({"info"}, {{"MBLAS_TUNE_FILE", path}});
  EXPECT_NE(f.out.find(path.string() + " is ignored: line 1"), f.out.npos) << f.out;
  f = command({"info", "--json"}, {{"MBLAS_TUNE_FILE", path}});
  EXPECT_NE(f.out.find("\"problem\": \"line 1"), f.out.npos) << f.out;
}

// ---------------------------------------------------------------------------------------------------
// The search.

bench::TuneOptions search(const fs::path& file, std::vector<cases::Case> list) {
  bench::TuneOptions o;
  o.cases = std::move(list);
  o.backends = {"tunable"};
  o.threads = 2;
  o.repeats = 3;
  o.max_seconds = 1;
  o.file = file;
  return o;
}

class Tune : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { use_tunable_backend(); }
};

TEST_F(Tune, FindsVerifiesAndMerges) {
  const fs::path path = folder() / "new" / "tuned.json";
  GemmCase deep{.transB = Op::Trans, .m = 12, .n = 16, .k = 20, .alpha = {2, 0}, .beta = {1, 0}};
  EXPECT_EQ(bench::run_tune(search(path, {cube(8), deep})), 0);
  TuneFile file = read_tune_file(path);
  ASSERT_EQ(file.problem, "");
  ASSERT_EQ(file.entries.size(), 2u);
  for (const TuneEntry& e : file.entries) {
    EXPECT_EQ(e.kernel + ":" + e.config, "first:quick");
    EXPECT_EQ(e.default_kernel, "first");
    EXPECT_GT(e.default_ms, e.ms);
    EXPECT_EQ(e.device, host_name());
    EXPECT_EQ(e.threads, 2);
  }
  EXPECT_EQ(std::tuple(file.entries[1].m, file.entries[1].n, file.entries[1].k),
            std::tuple(12, 16, 20));
  EXPECT_EQ(file.entries[1].reads, "ABC");
  EXPECT_EQ(file.entries[1].transB, Op::Trans);

  // Another run keeps what it did not measure, and replaces what it did.
  EXPECT_EQ(bench::run_tune(search(path, {cube(8), cube(16)})), 0);
  file = read_tune_file(path);
  ASSERT_EQ(file.entries.size(), 3u);
  EXPECT_EQ(file.entries[0].m, 12);
  EXPECT_EQ(file.entries[1].m, 8);
  EXPECT_EQ(file.entries[2].m, 16);
  EXPECT_FALSE(fs::exists(path.string() + ".part"));
}

TEST_F(Tune, AWrongWinnerIsAFailure) {
  const fs::path path = folder() / "wrong_winner.json";
  GemmCase c = cube(kWrongM);
  EXPECT_EQ(bench::run_tune(search(path, {c, cube(8)})), 1);
  const TuneFile file = read_tune_file(path);
  ASSERT_EQ(file.entries.size(), 1u) << file.problem;
  EXPECT_EQ(file.entries[0].m, 8);
}

TEST_F(Tune, WhatNoKernelTakesIsSkipped) {
  const fs::path path = folder() / "skipped.json";
  GemmCase c = cube(8);
  c.in = c.out = DType::f64;
  EXPECT_EQ(bench::run_tune(search(path, {c})), 0);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(Tune, ADamagedFileIsSetAside) {
  const fs::path path = folder() / "damaged.json";
  write(path, "something else");
  EXPECT_EQ(bench::run_tune(search(path, {cube(8)})), 0);
  EXPECT_EQ(read_tune_file(path).entries.size(), 1u);
  EXPECT_EQ(read(path.string() + ".old"), "something else");
}

// The file is written beside its place and moved there: where that fails it is what it was.
TEST_F(Tune, TheFileIsReplacedAsAWhole) {
  const fs::path path = folder() / "whole.json";
  const std::string before = file_text({product(8, "second")});
  write(path, before);
  fs::create_directories(path.string() + ".part");
  EXPECT_THROW(bench::run_tune(search(path, {cube(8)})), std::runtime_error);
  EXPECT_EQ(read(path), before);
}

TEST_F(Tune, TheCommand) {
  const fs::path path = folder() / "command.json";
  Finished f = command({"tune", "gemm", "--type", "f32,f64", "-m", "48", "-n", "m", "-k", "m",
                        "--backend", "openmp", "--repeats", "3", "--file", path.string()});
  EXPECT_EQ(f.exit_code, 0) << f.out << f.err;
  EXPECT_NE(f.out.find("of 2 have an entry in " + path.string()), f.out.npos) << f.out;
  EXPECT_EQ(read_tune_file(path).problem, "");
  f = command(
      {"tune", "transpose", "-m", "300", "-n", "200", "--backend", "openmp", "--repeats", "3"},
      {{"MBLAS_TUNE_FILE", path}});
  EXPECT_EQ(f.exit_code, 0) << f.out << f.err;
  EXPECT_NE(f.out.find(path.string()), f.out.npos) << f.out;
  EXPECT_EQ(command({"tune"}).exit_code, 2);
  EXPECT_EQ(command({"tune", "--suite", "nothing"}).exit_code, 2);
  f = command({"bench", "gemm", "--backend", "openmp", "--kernel", "naive:fast"});
  EXPECT_EQ(f.exit_code, 2) << f.err;
}

}  // namespace
}  // namespace mblas::testing
