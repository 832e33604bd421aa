// The mblas command: what can run here, how fast, and with which kernel fastest.
// Exit status: 0; 1 where something failed or a result was wrong; 2 for a command that makes no
// sense.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "case_flags.hpp"
#include "info.hpp"
#include "mblas/backend.hpp"
#include "mblas/error.hpp"
#include "mblas/tune.hpp"
#include "mblas/version.hpp"
#include "suites.hpp"
#include "tune.hpp"

namespace mblas::bench {
namespace {

constexpr int kFailed = 1, kUsage = 2;

/// What the command line says about the cases of a subcommand.
struct CaseFlags {
  std::string suite;
  std::map<std::string, FlagTexts> by_operation;
  std::pair<std::size_t, std::size_t> part = {1, 1};  ///< which, of how many
};
struct BenchFlags {
  CaseFlags cases;
  int repeats = 0;
  BenchOptions options;
};
struct TuneFlags {
  CaseFlags cases;
  TuneOptions options;
};

std::string operations() {
  std::string list;
  try {
    cases::make_case("");
  } catch (const std::invalid_argument& e) {
    list = e.what();
  }
  return list.substr(list.find(':') + 2);
}

std::string suite_help() {
  std::string help = "a named collection of cases in place of an operation:";
  for (const Suite& suite : suites())
    help += fmt::format("\n{}: {}", suite.name, suite.description);
  return help;
}

template <class C>
void add_operation(CLI::App& command, CaseFlags& flags) {
  CLI::App* app = command.add_subcommand(std::string(C::kOp), std::string(C::kFormula));
  app->fallthrough();
  FlagTexts& texts = flags.by_operation[std::string(C::kOp)];
  const C defaults;
  C::fields(defaults, [&]<class T>(std::string_view flag, const T& value, std::string_view help) {
    const std::string name(flag), text(help);
    const std::string shown = cases::to_text(value);
    const auto store = [&texts, name](const std::string& given) { texts[name] = given; };
    if constexpr (std::is_same_v<T, bool>)
      app->add_flag_function(
          name, [store](std::int64_t count) { store(cases::to_text(count > 0)); }, text);
    else
      app->add_option_function<std::string>(name, store, text)->default_str(shown);
  });
}

/// The operations, each with its flags, and the suites.
void add_cases(CLI::App& command, CaseFlags& flags) {
  command.require_subcommand(0, 1);
  command.footer(
      "Sizes, strides and named values take lists: -m 64,128 --type f32,f64. Sizes also take "
      "ranges: "
      "-m 1024:4096:1024, -m 64:4096:*2; -n m and -k m repeat -m. Every combination is run.");
  const auto add_all = [&]<class... C>(std::type_identity<std::variant<C...>>) {
    (add_operation<C>(command, flags), ...);
  };
  add_all(std::type_identity<cases::Case>{});
  command.add_option("--suite", flags.suite, suite_help());
  command
      .add_option("--part", flags.part,
                  "I/N: of the cases number I and every N-th after it, for a suite in N runs")
      ->delimiter('/')
      ->type_name("I/N")
      ->check(CLI::PositiveNumber);
}

/// Flags that bench and tune share; `Options` is that of either.
template <class Options>
void add_places(CLI::App& command, Options& o) {
  command.add_option("--backend", o.backends, "backends to run, e.g. openmp,cuda")->expected(1);
  command.add_flag("--hot", o.hot, "the same operands every time: small ones stay in cache");
  command.add_option("--threads", o.threads, "threads of host backends and loaded libraries")
      ->check(CLI::PositiveNumber);
  command.add_option("--device", o.device, "device ordinal")
      ->envname("MBLAS_DEVICE")
      ->check(CLI::NonNegativeNumber);
}

void add_bench(CLI::App& app, BenchFlags& flags) {
  CLI::App* bench = app.add_subcommand("bench", "Verify and time calls");
  BenchOptions& o = flags.options;
  add_cases(*bench, flags.cases);
  add_places(*bench, o);
  bench->add_option("--kernel", o.kernel,
                    "a kernel by name, with a configuration as NAME:CONFIG, or all of the "
                    "backend's table");
  bench
      ->add_option("--vs", o.versus,
                   "what to race against, e.g. eigen,cblas:libopenblas.so.0,onednn:libdnnl.so.2, "
                   "isal:libisal.so.2: backends, and libraries that are loaded; the best of them "
                   "is the reference")
      ->expected(1);
  bench->add_flag("--ladder", o.ladder,
                  "at the end a table of the kernels on each case, with registers, shared memory "
                  "and occupancy of those of a GPU");
  bench->add_flag("--host", o.host, "operands in host memory for device backends too");
  bench->add_flag("--pinned", o.pinned, "with --host: in memory that the CUDA driver has pinned")
      ->needs("--host");
  bench
      ->add_flag("--graph", o.graphs,
                 "calls on a device are captured into CUDA graphs and timed as those run, which "
                 "leaves out what the host does")
      ->excludes("--host");
  bench->add_option("--keep", o.keep, "A or B: the calls of gemm keep that operand in a plan")
      ->transform(CLI::CheckedTransformer(std::map<std::string, GemmPlan::Operand>{
          {"A", GemmPlan::Operand::A}, {"B", GemmPlan::Operand::B}}));
  bench->add_flag("--huge-pages", o.huge_pages, "large operands in host memory in huge pages");
  bench->add_option("--repeats", flags.repeats, "samples of each time (20; suites have their own)")
      ->check(CLI::PositiveNumber);
  bench
      ->add_option("--max-seconds", o.max_seconds,
                   "time for a kernel and case, before samples are cut (30; 4 in suites on the "
                   "host)")
      ->check(CLI::PositiveNumber);
  bench->add_option("--json", o.json, "file for the results");
  bench->add_option("--plot", o.plot, "SVG file for the charts");
}

void add_tune(CLI::App& app, TuneFlags& flags) {
  CLI::App* tune = app.add_subcommand(
      "tune", "Find the fastest kernel and configuration for calls, for the tune file");
  TuneOptions& o = flags.options;
  add_cases(*tune, flags.cases);
  add_places(*tune, o);
  tune->add_option("--repeats", o.repeats, "samples of the best few")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  tune->add_option("--max-seconds", o.max_seconds,
                   "time for the best few of a case, before samples are cut")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  tune->add_option("--file", o.file,
                   "the file, whose entries for other calls are kept (MBLAS_TUNE_FILE, else " +
                       (tune_file_path().empty() ? "none" : tune_file_path()) + ")");
}

/// What --part leaves of the cases.
std::vector<cases::Case> part_of(std::vector<cases::Case> all, const CaseFlags& flags) {
  const auto [number, count] = flags.part;
  if (number > count)
    throw std::invalid_argument(fmt::format("there is no part {} of {}", number, count));
  std::vector<cases::Case> part;
  for (std::size_t i = number - 1; i < all.size(); i += count) part.push_back(std::move(all[i]));
  return part;
}

/// The suite, where that and not an operation was named; null: `o.cases` are the operation's.
template <class Options>
const Suite* take_cases(const CLI::App& command, const CaseFlags& flags, Options& o) {
  const auto chosen = command.get_subcommands();
  if (chosen.empty() == flags.suite.empty())
    throw std::invalid_argument(
        fmt::format("name either an operation ({}) or a suite (--suite)", operations()));
  if (!chosen.empty()) {
    const std::string op = chosen[0]->get_name();
    o.cases = part_of(expand(op, flags.by_operation.at(op)), flags);
    return nullptr;
  }
  const Suite& suite = find_suite(flags.suite);
  o.cases = part_of(cases_of(suite.lines), flags);
  o.host_cases = part_of(cases_of(suite.host_lines), flags);
  o.hot_host = suite.hot_host;
  return &suite;
}

bool can_run(std::string_view name) {
  return std::ranges::any_of(backends(), [&](Backend* backend) {
    return backend->name() == name && backend->unavailable().empty();
  });
}

int run(const CLI::App& bench, BenchFlags& flags) {
  BenchOptions& o = flags.options;
  if (const Suite* suite = take_cases(bench, flags.cases, o)) {
    o.is_suite = true;
    o.repeats = suite->repeats;
    if (o.kernel.empty()) o.kernel = suite->kernels;
    o.ladder |= suite->ladder;
    if (o.versus.empty() && can_run(suite->versus)) o.versus.emplace_back(suite->versus);
  }
  if (flags.repeats) o.repeats = flags.repeats;
  return run_bench(o);
}

int run(const CLI::App& tune, TuneFlags& flags) {
  take_cases(tune, flags.cases, flags.options);
  return run_tune(flags.options);
}

int run_main(int argc, char** argv) {
  CLI::App app{
      "mblas: dense matrix products and transposes over exchangeable CPU and GPU backends"};
  app.name("mblas");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(version()));
  bool json = false;
  CLI::App* info = app.add_subcommand("info", "Show backends, kernels and settings");
  info->add_flag("--json", json, "as JSON");
  BenchFlags flags;
  TuneFlags tune_flags;
  add_bench(app, flags);
  add_tune(app, tune_flags);
  for (int i = 0; i < argc; ++i)
    flags.options.command += fmt::format("{}{}", i ? " " : "", i ? argv[i] : "mblas");
  try {
    app.parse(argc, argv);
    if (info->parsed())
      print_info(json);
    else if (const CLI::App& tune = *app.get_subcommand("tune"); tune.parsed())
      return run(tune, tune_flags);
    else
      return run(*app.get_subcommand("bench"), flags);
  } catch (const CLI::ExtrasError& e) {
    app.exit(e);
    fmt::print(stderr, "Operations of mblas bench and tune: {}\n", operations());
    return kUsage;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  } catch (const std::invalid_argument& e) {
    fmt::print(stderr, "mblas: {}\n", e.what());
    return kUsage;
  } catch (const Error& e) {
    fmt::print(stderr, "mblas: {}: {}\n", name_of(e.status()), e.what());
    return e.status() == Status::UnknownName ? kUsage : kFailed;
  } catch (const std::exception& e) {
    fmt::print(stderr, "mblas: {}\n", e.what());
    return kFailed;
  }
  return 0;
}

}  // namespace
}  // namespace mblas::bench

int main(int argc, char** argv) { return mblas::bench::run_main(argc, argv); }
