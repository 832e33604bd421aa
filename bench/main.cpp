// The mblas command: what can run here, and how fast.
// Exit status: 0; 1 where something failed or a result was wrong; 2 for a command that makes no
// sense.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "bench.hpp"
#include "case_flags.hpp"
#include "info.hpp"
#include "mblas/error.hpp"
#include "mblas/version.hpp"
#include "suites.hpp"

namespace mblas::bench {
namespace {

constexpr int kFailed = 1, kUsage = 2;

/// What the command line says about a benchmark.
struct BenchFlags {
  std::string suite;
  std::map<std::string, FlagTexts> by_operation;
  int repeats = 0;
  BenchOptions options;
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
void add_operation(CLI::App& bench, BenchFlags& flags) {
  CLI::App* app = bench.add_subcommand(std::string(C::kOp), std::string(C::kFormula));
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

void add_bench(CLI::App& app, BenchFlags& flags) {
  CLI::App* bench = app.add_subcommand("bench", "Verify and time calls");
  bench->require_subcommand(0, 1);
  bench->footer(
      "Sizes, strides and named values take lists: -m 64,128 --type f32,f64. Sizes also take "
      "ranges: "
      "-m 1024:4096:1024, -m 64:4096:*2; -n m and -k m repeat -m. Every combination is run.");
  const auto add_all = [&]<class... C>(std::type_identity<std::variant<C...>>) {
    (add_operation<C>(*bench, flags), ...);
  };
  add_all(std::type_identity<cases::Case>{});

  BenchOptions& o = flags.options;
  bench->add_option("--suite", flags.suite, suite_help());
  bench->add_option("--backend", o.backends, "backends to run, e.g. openmp,cuda")->expected(1);
  bench->add_option("--kernel", o.kernel, "a kernel by name, or all of the backend's table");
  bench
      ->add_option("--vs", o.versus,
                   "what to race against, e.g. eigen,cblas:libopenblas.so.0,onednn:libdnnl.so.2: "
                   "backends, and libraries that are loaded; the best of them is the reference")
      ->expected(1);
  bench->add_flag("--host", o.host, "operands in host memory for device backends too");
  bench->add_flag("--hot", o.hot, "the same operands every time: small ones stay in cache");
  bench->add_flag("--huge-pages", o.huge_pages, "large operands in host memory in huge pages");
  bench->add_option("--threads", o.threads, "threads of host backends and loaded libraries")
      ->check(CLI::PositiveNumber);
  bench->add_option("--device", o.device, "device ordinal")
      ->envname("MBLAS_DEVICE")
      ->check(CLI::NonNegativeNumber);
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

int run(const CLI::App& bench, BenchFlags& flags) {
  BenchOptions& o = flags.options;
  const auto chosen = bench.get_subcommands();
  if (chosen.empty() == flags.suite.empty())
    throw std::invalid_argument(
        fmt::format("name either an operation ({}) or a suite (--suite)", operations()));
  if (chosen.empty()) {
    const Suite& suite = find_suite(flags.suite);
    o.is_suite = true;
    o.cases = cases_of(suite.lines);
    o.host_cases = cases_of(suite.host_lines);
    o.hot_host = suite.hot_host;
    o.repeats = suite.repeats;
    if (o.kernel.empty()) o.kernel = suite.kernels;
  } else {
    const std::string op = chosen[0]->get_name();
    o.cases = expand(op, flags.by_operation[op]);
  }
  if (flags.repeats) o.repeats = flags.repeats;
  return run_bench(o);
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
  add_bench(app, flags);
  for (int i = 0; i < argc; ++i)
    flags.options.command += fmt::format("{}{}", i ? " " : "", i ? argv[i] : "mblas");
  try {
    app.parse(argc, argv);
    if (info->parsed())
      print_info(json);
    else
      return run(*app.get_subcommand("bench"), flags);
  } catch (const CLI::ExtrasError& e) {
    app.exit(e);
    fmt::print(stderr, "Operations of mblas bench: {}\n", operations());
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
