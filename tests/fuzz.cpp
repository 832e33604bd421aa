// mblas_fuzz: random calls of every operation on a host backend against the oracle. Case i of a
// seed is the same on every machine; what fails is printed as a command that repeats it, with a
// smaller case that fails too. Operands mostly lie against inaccessible pages, so that reading
// beyond them is found as well as writing.
//
// Exit status: 0; 1 where a case failed; 2 for a command that makes no sense.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guarded_pages.hpp"
#include "mblas/mblas.hpp"
#include "problem.hpp"
#include "random.hpp"
#include "support.hpp"
#include "sweep_cases.hpp"

namespace mblas::testing {
namespace {

using cases::Case;
using cases::Data;
using cases::Flush;
using cases::Random;
using Index = std::int64_t;

constexpr double kMostProducts = 0x1p21, kMostSums = 0x1p14, kMostElements = 0x1p17;
constexpr double kManyElements = 0x1p22;  // now and then

struct Options {
  std::uint64_t seed = 1;
  Index cases = 10000;
  std::optional<Index> only;  ///< one case
  Index share = 0, shares = 1;
  double max_seconds = 0;  ///< 0: no limit
  std::string backend = "openmp", kernel, op;
};

/// A call and how it is made.
struct Trial {
  Case c;
  std::string kernel;  ///< empty: the library's choice
  int threads = 1;
  int again = 0;  ///< number of threads of a second call, which must give the same bits
  std::optional<Flush> flush;  ///< against an end of guarded pages
};

// ---------------------------------------------------------------------------------------------------
// Random calls

class Generator {
 public:
  Generator(std::uint64_t seed, std::uint64_t index) : random_(seed, index) {}

  Trial trial(const Options& options, const Backend& backend) {
    constexpr std::string_view kOps[] = {
        "gemm", "gemm", "gemm", "gemm", "gemm", "geam", "transpose", "transpose_inplace", "gf256"};
    const std::string_view op = options.op.empty() ? pick(kOps) : std::string_view(options.op);
    const std::vector<Types> types = types_of(op);
    Types t = pick(types);
    if (op == "gemm" && chance(40)) t = types[std::size_t(random_.below(2))];  // f32, f64
    Trial trial;
    trial.c = cases::make_case(op);
    std::visit([&](auto& c) { describe(c, t); }, trial.c);
    const std::vector<std::string> kernels = kernels_of(backend, op);
    trial.kernel = !options.kernel.empty()         ? options.kernel
                   : kernels.empty() || chance(50) ? ""
                                                   : pick(kernels);
    constexpr int kThreads[] = {1, 1, 1, 1, 1, 1, 2, 2, 3, 8};
    trial.threads = pick(kThreads);
    // Which of several NaN an instruction returns depends on the order of its operands.
    const bool nan = std::visit(
        [](const auto& c) {
          if constexpr (requires { c.data; })
            return c.data == Data::Special;
          else
            return false;
        },
        trial.c);
    if (chance(10) && !nan) trial.again = pick(kThreads);
    if (!chance(25)) trial.flush = chance(67) ? Flush::End : Flush::Start;
    return trial;
  }

 private:
  static std::vector<std::string> kernels_of(const Backend& backend, std::string_view op) {
    std::vector<std::string> names;
    const auto add = [&]<class Args>(std::type_identity<Args>) {
      if (op == op_name<Args>)
        for (const Kernel<Args>& kernel : backend.kernels<Args>()) names.emplace_back(kernel.name);
    };
    add(std::type_identity<GemmArgs>{});
    add(std::type_identity<GeamArgs>{});
    add(std::type_identity<TransposeArgs>{});
    add(std::type_identity<TransposeInplaceArgs>{});
    add(std::type_identity<Gf256Args>{});
    return names;
  }

  bool chance(int percent) { return random_.below(100) < percent; }
  template <class List>
  std::remove_cvref_t<decltype(std::declval<const List&>()[0])> pick(const List& list) {
    return list[std::size_t(random_.below(Index(std::size(list))))];
  }

  /// As many small ones as large ones, odd or next to a multiple of a vector's or tile's length.
  Index size(double most) {
    if (chance(1)) return 0;
    auto n = Index(std::exp(random_.uniform(0, std::log(most + 1))));
    if (chance(30)) {
      constexpr Index kMultiples[] = {4, 8, 16, 24, 32, 48, 64, 128};
      const Index multiple = pick(kMultiples);
      n = (n + multiple - 1) / multiple * multiple + random_.below(3) - 1;
    }
    return std::max<Index>(1, n);
  }
  template <std::size_t n>
  std::array<Index, n> sizes(double most_side, double most_product) {
    std::array<Index, n> s;
    for (Index& x : s) x = size(most_side);
    if (chance(15)) s[std::size_t(random_.below(n))] = size(20000);
    const auto product = [&] {
      double p = 1;
      for (const Index x : s) p *= double(x);
      return p;
    };
    while (product() > most_product) *std::max_element(s.begin(), s.end()) /= 2;
    return s;
  }

  Index ld(Index least) {
    if (chance(50)) return 0;
    constexpr Index kPads[] = {0, 1, 2, 3, 4, 7, 8, 13, 16, 32, 61};
    return std::max<Index>(1, least) + pick(kPads);
  }
  static Index line_length(Layout layout, Op op, Index rows, Index cols) {
    return (layout == Layout::RowMajor) != is_transposed(op) ? cols : rows;
  }
  Layout layout() { return chance(70) ? Layout::RowMajor : Layout::ColMajor; }
  Op op(DType type) {
    constexpr Op kReal[] = {Op::NoTrans, Op::Trans};
    constexpr Op kAll[] = {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans};
    return is_complex(type) || chance(5) ? pick(kAll) : pick(kReal);
  }
  Scalar factor(DType type) {
    const Index choice = random_.below(100);
    if (choice < 15) return {};
    if (choice < 50) return {1, 0};
    if (choice < 60) return {-1, 0};
    if (type == DType::i32) return {double(random_.below(11) - 5), 0};
    return {random_.uniform(-2, 2), is_complex(type) && chance(70) ? random_.uniform(-2, 2) : 0.0};
  }
  Data data() {
    constexpr Data kData[] = {Data::Uniform,  Data::Uniform, Data::Uniform, Data::Positive,
                              Data::Integers, Data::Wide,    Data::Special, Data::Tiny};
    return pick(kData);
  }
  Index offset() { return chance(50) ? 0 : 1 + random_.below(31); }
  std::uint64_t seed() { return random_.bits() >> 40; }
  Index batch(double work, double most) {
    if (!chance(20)) return 1;
    const double room = std::max(1.0, most / std::max(1.0, work));
    return std::min(chance(20) ? 2 + random_.below(200) : 2 + random_.below(7), Index(room) + 1);
  }

  void describe(cases::GemmCase& c, Types types) {
    c.in = types.in, c.out = types.out;
    const auto [m, n, k] = sizes<3>(400, kMostProducts);
    c.m = m, c.n = n, c.k = k;
    c.layout = layout();
    c.transA = op(c.in), c.transB = op(c.in);
    c.lda = ld(line_length(c.layout, c.transA, m, k));
    c.ldb = ld(line_length(c.layout, c.transB, k, n));
    c.ldc = ld(line_length(c.layout, Op::NoTrans, m, n));
    const DType scalar = scalar_type(c.in, c.out);
    c.alpha = factor(scalar), c.beta = factor(scalar);
    c.batch = batch(double(m) * double(n) * double(k), kMostProducts);
    if (c.batch != 1) {
      if (chance(15)) c.strideA = 0;
      if (chance(15)) c.strideB = 0;
      if (chance(30)) {
        const cases::Shape C = shapes(c).back();
        c.strideC = C.lines * C.ld + random_.below(9);
      }
    }
    c.pointers = c.batch != 1 && chance(40);
    if (chance(15)) c.compute = Compute::Pedantic;
    if (c.out != DType::i32 && chance(25)) {
      c.bias = BiasPer(random_.below(3));
      if (!is_complex(c.out)) c.activation = Activation(random_.below(3));
      if (chance(50)) c.scale = random_.uniform(-2, 2);
    }
    c.data = data(), c.offset = offset(), c.seed = seed();
  }
  void describe(cases::GeamCase& c, Types types) {
    c.type = types.in;
    const auto [m, n] = sizes<2>(2000, chance(1) ? kManyElements : kMostSums);
    c.m = m, c.n = n;
    c.layout = layout();
    c.transA = op(c.type), c.transB = op(c.type);
    c.lda = ld(line_length(c.layout, c.transA, m, n));
    c.ldb = ld(line_length(c.layout, c.transB, m, n));
    c.ldc = ld(line_length(c.layout, Op::NoTrans, m, n));
    c.alpha = factor(c.type), c.beta = factor(c.type);
    c.batch = batch(double(m) * double(n), kMostSums);
    if (chance(20)) {
      const bool a = chance(50);
      c.alias = a ? cases::Alias::A : cases::Alias::B;
      Op& trans = a ? c.transA : c.transB;
      trans = is_conjugated(trans) ? Op::ConjNoTrans : Op::NoTrans;
      (a ? c.lda : c.ldb) = c.ldc;
    }
    c.data = data(), c.offset = offset(), c.seed = seed();
  }
  void describe(cases::TransposeCase& c, Types types) {
    c.type = types.in;
    const auto [m, n] = sizes<2>(2000, chance(3) ? kManyElements : kMostElements);
    c.m = m, c.n = n;
    c.layout = layout();
    c.lda = ld(line_length(c.layout, Op::NoTrans, m, n));
    c.ldb = ld(line_length(c.layout, Op::NoTrans, n, m));
    c.batch = batch(double(m) * double(n), kMostElements);
    c.offset = offset(), c.seed = seed();
  }
  void describe(cases::TransposeInplaceCase& c, Types types) {
    c.type = types.in;
    const auto [m, n] = sizes<2>(1000, chance(3) ? kManyElements : kMostElements);
    c.m = m, c.n = chance(40) ? m : n;
    c.layout = layout();
    c.lda = ld(line_length(c.layout, Op::NoTrans, c.m, c.n));
    c.ldb = c.m == c.n && chance(60) ? c.lda : ld(line_length(c.layout, Op::NoTrans, c.n, c.m));
    c.batch = batch(double(c.m) * double(c.n), kMostElements);
    c.offset = offset(), c.seed = seed();
  }
  void describe(cases::Gf256Case& c, Types) {
    const auto [m, n, k] = sizes<3>(400, kMostProducts);
    c.m = m, c.n = n, c.k = k;
    c.accumulate = chance(40);
    if (chance(15)) c.poly = chance(50) ? 0x11B : 0x12B;
    c.lda = ld(k), c.ldb = ld(n), c.ldc = ld(n);
    c.offset = offset(), c.seed = seed();
  }

  Random random_;
};

// ---------------------------------------------------------------------------------------------------
// Running them

std::string describe(const Trial& trial, const std::string& backend) {
  std::string line = "mblas bench " + cases::command(cases::resolve(trial.c)) + " --backend " +
                     backend + " --threads " + std::to_string(trial.threads);
  if (!trial.kernel.empty()) line += " --kernel " + trial.kernel;
  if (trial.again) line += "; again with " + std::to_string(trial.again) + " threads";
  if (trial.flush)
    line += std::string("; operands against the ") +
            (*trial.flush == Flush::End ? "end" : "start") + " of their pages";
  return line;
}

class Runner {
 public:
  explicit Runner(const Options& options) : options_(options) {}

  enum class Fate { Ran, Declined, Failed };
  struct Result {
    Fate fate;
    std::string message;
  };

  Result run(const Trial& trial) {
    // Contexts keep workspaces: mostly one that others have used, sometimes a new one.
    if (!context_ || ++uses_ % 64 == 0) context_.emplace(options_.backend);
    context_->set_kernel(
        trial.kernel.empty() ? "" : std::string(cases::op_of(trial.c)) + "=" + trial.kernel);
    const std::unique_ptr<cases::Problem> problem = cases::prepare(trial.c);
    std::optional<cases::Run> run;
    if (trial.flush)
      run.emplace(*problem, pages_, *trial.flush);
    else
      run.emplace(*problem);
    context_->set_num_threads(trial.threads);
    try {
      (*run)(*context_);
    } catch (const Error& e) {
      const auto operands = run->operands();
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (const std::string found = operands[i].fetch().check_unchanged(problem->operands()[i]);
            !found.empty())
          return {Fate::Failed, std::string(e.what()) + "; and operand " + std::to_string(i) +
                                    " changed: " + found};
      return {e.status() == Status::NotSupported ? Fate::Declined : Fate::Failed, e.what()};
    }
    if (const cases::Outcome outcome = run->verify(); !outcome.ok)
      return {Fate::Failed, outcome.message};
    if (trial.again) {
      const cases::Buffer first = run->operands().back().fetch().clone();
      run->reset();
      context_->set_num_threads(trial.again);
      try {
        (*run)(*context_);
      } catch (const Error& e) {
        // A kernel may go by what the threads' caches hold together.
        const bool declined = e.status() == Status::NotSupported && !trial.kernel.empty();
        return {declined ? Fate::Declined : Fate::Failed, e.what()};
      }
      if (const std::string found = run->operands().back().fetch().check_unchanged(first);
          !found.empty())
        return {Fate::Failed, "other bits with another number of threads: " + found};
    }
    return {Fate::Ran, {}};
  }

  std::span<const cases::GuardedPages> pages() const { return pages_; }

 private:
  const Options& options_;
  std::optional<Context> context_;
  unsigned uses_ = 0;
  cases::GuardedPages pages_[4];
};

// ---------------------------------------------------------------------------------------------------
// Smaller cases that fail too

/// Everything about the trial that can be simpler, one at a time.
std::vector<Trial> simpler(const Trial& trial) {
  std::vector<Trial> list;
  const auto with = [&](auto&& change) {
    Trial t = trial;
    std::visit([&](auto& c) { change(t, c); }, t.c);
    if (describe(t, "") != describe(trial, "")) list.push_back(std::move(t));
  };
  with([](Trial&, auto& c) {
    if constexpr (requires { c.batch; }) c.batch = 1;
  });
  for (const int part : {2, 1}) {  // half, or one less
    const auto less = [part](Index& x) { x = part == 2 ? x / 2 : std::max<Index>(x - 1, 0); };
    with([&](Trial&, auto& c) { less(c.m); });
    with([&](Trial&, auto& c) { less(c.n); });
    with([&](Trial&, auto& c) {
      if constexpr (requires { c.k; }) less(c.k);
    });
  }
  with([](Trial&, auto& c) { c.lda = 0; });
  with([](Trial&, auto& c) { c.ldb = 0; });
  with([](Trial&, auto& c) {
    if constexpr (requires { c.ldc; }) c.ldc = 0;
  });
  with([](Trial&, auto& c) {
    if constexpr (requires { c.layout; }) c.layout = Layout::RowMajor;
  });
  with([](Trial&, auto& c) {
    if constexpr (requires { c.transA; }) c.transA = Op::NoTrans;
  });
  with([](Trial&, auto& c) {
    if constexpr (requires { c.transB; }) c.transB = Op::NoTrans;
  });
  with([](Trial&, auto& c) {
    if constexpr (requires { c.alpha; }) c.alpha = {1, 0};
  });
  with([](Trial&, auto& c) {
    if constexpr (requires { c.beta; }) c.beta = {};
  });
  with([](Trial&, auto& c) {
    if constexpr (requires { c.pointers; }) c.pointers = false;
  });
  with([](Trial&, auto& c) {
    if constexpr (requires { c.data; }) c.data = Data::Uniform;
  });
  with([](Trial&, auto& c) { c.offset = 0; });
  with([](Trial& t, auto&) { t.threads = 1; });
  with([](Trial& t, auto&) { t.again = 0; });
  with([](Trial& t, auto&) { t.flush.reset(); });
  return list;
}

bool still_fails(Runner& runner, const Trial& trial) {
  try {
    return runner.run(trial).fate == Runner::Fate::Failed;
  } catch (const std::exception&) {
    return false;  // makes no sense
  }
}

Trial shrink(Runner& runner, Trial trial) {
  for (int attempts = 0; attempts < 400;) {
    bool shrunk = false;
    for (Trial& candidate : simpler(trial)) {
      ++attempts;
      if (!still_fails(runner, candidate)) continue;
      trial = std::move(candidate);
      shrunk = true;
      break;
    }
    if (!shrunk) break;
  }
  return trial;
}

// ---------------------------------------------------------------------------------------------------

struct Current {
  Options options;
  Index index = 0;
  Trial trial;
  const Runner* runner = nullptr;
};
Current current;

/// MBLAS_ARCH is part of what repeats a case.
std::string replay() {
  const char* isa = std::getenv("MBLAS_ARCH");
  std::string line = isa && *isa ? "MBLAS_ARCH=" + std::string(isa) + " " : "";
  line += "mblas_fuzz --seed " + std::to_string(current.options.seed) + " --case " +
          std::to_string(current.index);
  if (current.options.backend != "openmp") line += " --backend " + current.options.backend;
  if (!current.options.kernel.empty()) line += " --kernel " + current.options.kernel;
  if (!current.options.op.empty()) line += " --op " + current.options.op;
  return line;
}

void print_failure(const std::string& message) {
  std::printf("FAILED: %s\n  %s\n  %s\n", replay().c_str(),
              describe(current.trial, current.options.backend).c_str(), message.c_str());
  std::fflush(stdout);
}

/// Not made for signal handlers, but the process ends here anyway.
void on_signal(int signal, siginfo_t* info, void*) {
  std::string message = strsignal(signal);
  constexpr const char* kNames[] = {"first", "second", "third", "fourth"};
  for (std::size_t i = 0; current.runner && i < std::size(kNames); ++i)
    if (signal != SIGABRT && current.runner->pages()[i].contains(info->si_addr))
      message += std::string(", beyond the ") + kNames[i] + " operand";
  print_failure(message);
  _exit(1);
}

int fuzz(const Options& options) {
  current.options = options;
  Runner runner(options);
  current.runner = &runner;
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(signal, &action, nullptr);

  const Backend& backend = find_backend(options.backend);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Index ran = 0, declined = 0, failed = 0;
  const Index first = options.only.value_or(options.share);
  const Index step = options.only ? options.cases + *options.only : options.shares;
  const Index end = options.only ? *options.only + 1 : options.cases;
  for (Index i = first; i < end; i += step) {
    if (options.max_seconds > 0 && seconds() > options.max_seconds) break;
    current.index = i;
    current.trial = Generator(options.seed, std::uint64_t(i)).trial(options, backend);
    if (options.only) std::printf("%s\n", describe(current.trial, options.backend).c_str());
    const Runner::Result result = runner.run(current.trial);
    ran += result.fate == Runner::Fate::Ran;
    declined += result.fate == Runner::Fate::Declined;
    if (result.fate != Runner::Fate::Failed) continue;
    print_failure(result.message);
    const Trial smaller = shrink(runner, current.trial);
    std::printf("  smaller: %s\n", describe(smaller, options.backend).c_str());
    std::fflush(stdout);
    if (++failed == 20) break;
  }
  std::printf("%lld cases right, %lld declined by a forced kernel, %lld failed; %.0f s\n",
              static_cast<long long>(ran), static_cast<long long>(declined),
              static_cast<long long>(failed), seconds());
  return failed ? 1 : 0;
}

template <class T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

int run_main(int argc, char** argv) {
  constexpr const char* kUsage =
      "usage: mblas_fuzz [--seed S] [--cases N] [--case I] [--share I/N] [--max-seconds T]\n"
      "                  [--op OPERATION] [--kernel NAME] [--backend NAME]\n";
  Options o;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    bool good = !value.empty();
    if (flag == "--seed") {
      good = parse(value, o.seed);
    } else if (flag == "--cases") {
      good = parse(value, o.cases);
    } else if (flag == "--case") {
      good = parse(value, o.only.emplace());
    } else if (flag == "--max-seconds") {
      good = parse(value, o.max_seconds);
    } else if (flag == "--share") {
      const std::size_t slash = std::min(value.find('/'), value.size());
      good = slash < value.size() && parse(value.substr(0, slash), o.share) &&
             parse(value.substr(slash + 1), o.shares) && o.shares > 0;
    } else if (flag == "--backend") {
      o.backend = value;
    } else if (flag == "--kernel") {
      o.kernel = value;
    } else if (flag == "--op") {
      o.op = value;
    } else {
      good = false;
    }
    if (!good) {
      std::fputs(kUsage, stderr);
      return 2;
    }
  }
  try {
    return fuzz(o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mblas_fuzz: %s\n", e.what());
    return 2;
  }
}

}  // namespace
}  // namespace mblas::testing

int main(int argc, char** argv) { return mblas::testing::run_main(argc, argv); }
