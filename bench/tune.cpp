#include "tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <variant>

#include "json.hpp"
#include "machine.hpp"
#include "mblas/mblas.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "setup.hpp"
#include "timing.hpp"

namespace mblas::bench {
namespace {

using cases::Case;

/// What is kept must be this much faster than the library's choice.
constexpr double kLeastGain = 1.02;
/// What takes this many times as long as the best one so far is not timed any further …
constexpr double kHopeless = 3;
/// … where a call is long enough for a single run to tell.
constexpr double kTellingMs = 0.3, kEndlessMs = 200;
constexpr std::size_t kFinalists = 4;
constexpr int kTrialRepeats = 3;
constexpr double kTrialSeconds = 0.5;

/// Kernels that are out of the question are found on a smaller problem: the naive ones would take
/// hours for a large one. What scales up to this many times the best one's time is not run.
constexpr double kHostTrialWork = 2e8, kDeviceTrialWork = 2e9;
constexpr double kOutOfTheQuestion = 20;

using Clock = std::chrono::steady_clock;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// A kernel in a configuration; an empty name: the library's choice.
struct Candidate {
  std::string name;
  std::unique_ptr<Context> context;
  std::vector<Call> calls;
  double ms = kNever;
};

double work_of(const Case& c) { return std::max(cases::flops(c), cases::bytes(c)); }

/// The case with its longest extent halved, until it is no more work than `most`.
Case shrunk(Case c, double most) {
  while (work_of(c) > most) {
    const bool done = std::visit(
        [](auto& d) {
          std::int64_t* longest = d.m > d.n ? &d.m : &d.n;
          if constexpr (requires { d.k; })
            if (d.k > *longest) longest = &d.k;
          if constexpr (requires { d.batch; })
            if (d.batch > *longest) longest = &d.batch;
          // What is in place and square stays square, as that has kernels of its own.
          const bool square = d.m == d.n;
          if (*longest <= 1) return true;
          *longest = (*longest + 1) / 2;
          if constexpr (!requires { d.ldc; })
            if (square) d.m = d.n = std::min(d.m, d.n);
          return false;
        },
        c);
    if (done) break;
  }
  return c;
}

std::string entry_json(const TuneEntry& e) {
  return JsonObject()
      .add("backend", e.backend)
      .add("device", e.device)
      .add("threads", e.threads)
      .add("op", e.operation)
      .add("dtype", name_of(e.in))
      .add("out", name_of(e.out))
      .add("compute", name_of(e.compute))
      .add("transA", cases::to_text(e.transA))
      .add("transB", cases::to_text(e.transB))
      .add("reads", e.reads)
      .add("aligned", e.aligned)
      .add("pointers", e.pointers)
      .add("m", e.m)
      .add("n", e.n)
      .add("k", e.k)
      .add("batch", e.batch)
      .add("kernel", e.kernel)
      .add("config", e.config)
      .add("ms", e.ms)
      .add("default_kernel", e.default_kernel)
      .add("default_ms", e.default_ms)
      .text();
}

/// Everything that an entry is found by.
auto key(const TuneEntry& e) {
  return std::tie(e.backend, e.device, e.threads, e.operation, e.in, e.out, e.compute, e.transA,
                  e.transB, e.reads, e.aligned, e.pointers, e.m, e.n, e.k, e.batch);
}

/// The file as it was, and what is found out.
class Results {
 public:
  explicit Results(std::string path) : path_(std::move(path)) {
    if (path_.empty())
      throw std::invalid_argument("name a file: --file, or MBLAS_TUNE_FILE in the environment");
    if (!std::filesystem::exists(path_)) return;
    TuneFile old = read_tune_file(path_);
    entries_ = std::move(old.entries);
    if (old.problem.empty()) return;
    std::filesystem::rename(path_, path_ + ".old");
    fmt::print(stderr, "{}: {}; it is kept as {}.old\n", path_, old.problem, path_);
  }
  const std::string& path() const { return path_; }

  /// The call of `found` gets it as its entry, or none where its kernel is empty.
  void put(const TuneEntry& found) {
    std::erase_if(entries_, [&](const TuneEntry& e) { return key(e) == key(found); });
    if (!found.kernel.empty()) entries_.push_back(found);
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder);
    std::vector<std::string> lines;
    for (const TuneEntry& e : entries_) lines.push_back(entry_json(e));
    write_file(path_, JsonObject()
                              .add("mblas_tune", 1)
                              .add("version", version())
                              .add("date", date())
                              .raw("entries", json_array(lines, 2))
                              .text(0) +
                          "\n");
  }

 private:
  std::string path_;
  std::vector<TuneEntry> entries_;
};

/// A problem where a backend wants it, and its contexts.
class Place {
 public:
  Place(const Case& c, Backend& backend, const TuneOptions& options, int threads, bool hot)
      : backend_(&backend), device_(options.device), threads_(threads) {
    const double need = cases::footprint(c);
    std::unique_ptr<Queue> queue;
    if (on_device()) queue = backend.make_queue({.device = device_});
    // On the host: the content, a copy of it to run on, and what the oracle keeps.
    if (2.2 * need > 0.9 * double(memory_available()) ||
        (queue && need > 0.95 * double(queue->memory_free())))
      throw Error(Status::OutOfMemory, "too large for the memory that is left");
    problem_ = cases::prepare(c);
    site_ = std::make_unique<Site>(*problem_, std::move(queue), hot);
  }

  bool on_device() const { return backend_->memory() == Memory::Device; }
  Site& site() { return *site_; }

  Candidate candidate(const std::string& name) {
    Candidate made{name, std::make_unique<Context>(backend_->name()), {}};
    Context& context = *made.context;
    detail::ignore_tune_file(context);
    context.set_verbose(0);
    context.set_verify("");
    context.set_num_threads(threads_);
    if (on_device()) context.set_device(device_);
    const std::string_view op = cases::op_of(problem_->description());
    context.set_kernel(name.empty() ? "" : fmt::format("{}={}", op, name));
    made.calls = calls_of(problem_->description(), site_->runs(), context);
    return made;
  }

  /// Times the candidate briefly; it stays at kNever where it declines or there is no memory.
  void try_out(Candidate& one, double best_ms) {
    try {
      // The first run may also load code; the second tells unless the first is far off already.
      if (const double first = once(one); first > kEndlessMs && first > kHopeless * best_ms) return;
      if (const double again = once(one); again > kTellingMs && again > kHopeless * best_ms) return;
    } catch (const Error& e) {
      if (e.status() != Status::NotSupported && e.status() != Status::OutOfMemory) throw;
      return;
    }
    one.ms = race({&one}, {.repeats = kTrialRepeats, .max_seconds = kTrialSeconds})[0];
  }

  /// Medians, taken in turn.
  std::vector<double> race(const std::vector<Candidate*>& runners, TimingOptions how) {
    how.untimed_first = threads_ > 1 && !on_device();
    std::vector<Timer> timers;
    for (Candidate* one : runners) timers.emplace_back(*site_, one->calls);
    std::vector<double> medians;
    for (const Samples& samples : measure(timers, how)) medians.push_back(samples.median());
    return medians;
  }

  cases::Outcome verify(Candidate& one) {
    cases::Run& run = site_->runs().front();
    run.reset();
    once(one);
    return run.verify();
  }

  /// Milliseconds of the first call, waiting included.
  static double once(Candidate& one) {
    const Clock::time_point start = Clock::now();
    one.calls.front()();
    one.context->synchronize();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

 private:
  Backend* backend_;
  int device_, threads_;
  std::unique_ptr<cases::Problem> problem_;
  std::unique_ptr<Site> site_;
};

class Tuner {
 public:
  Tuner(const TuneOptions& options, std::string path)
      : options_(options),
        backends_(chosen_backends(options.backends)),
        threads_(options.threads > 0 ? options.threads : default_threads()),
        results_(std::move(path)) {}

  int run() {
    struct Work {
      const Case* description;
      Backend* backend;
      bool hot;
    };
    std::vector<Work> all;
    for (Backend* backend : backends_) {
      const bool own = backend->memory() == Memory::Host && !options_.host_cases.empty();
      for (const Case& c : own ? options_.host_cases : options_.cases)
        all.push_back({&c, backend, options_.hot || (own && options_.hot_host)});
    }
    Progress progress(all.size());
    fmt::print("{:<44} {:<8} {:<20} {:>10} {:<32} {:>10} {:>6}\n", "case", "backend", "default",
               "ms", "fastest", "ms", "gain");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Work& work = all[i];
      const auto announce = [&](std::string_view name) {
        progress.at(
            i, fmt::format("{} on {}, {}", label(*work.description), work.backend->name(), name));
      };
      const std::string line = tune(*work.description, *work.backend, work.hot, announce);
      progress.clear();
      fmt::print("{:<44} {:<8} {}\n", label(*work.description), work.backend->name(), line);
      std::fflush(stdout);
    }
    fmt::print("\n{} of {} have an entry in {}\n", kept_, all.size(), results_.path());
    return failed_ ? 1 : 0;
  }

 private:
  /// What is to be said of the case.
  template <class Announce>
  std::string tune(const Case& c, Backend& backend, bool hot, const Announce& announce) {
    try {
      return search(c, backend, hot, announce);
    } catch (const Error& e) {
      const bool passed = e.status() == Status::NotSupported || e.status() == Status::OutOfMemory;
      failed_ |= !passed;
      return fmt::format("{}: {}", passed ? "skipped" : "error", e.what());
    }
  }

  template <class Announce>
  std::string search(const Case& c, Backend& backend, bool hot, const Announce& announce) {
    const std::string_view op = cases::op_of(c);
    const std::vector<std::string> rows = sensible_rows(c, backend, announce);
    Place place(c, backend, options_, threads_, hot);

    Candidate standard = place.candidate("");
    TuneEntry entry;
    detail::record_tune_entry(*standard.context, &entry);
    Place::once(standard);
    detail::record_tune_entry(*standard.context, nullptr);
    entry.default_kernel = standard.context->last_dispatch().kernel;
    place.try_out(standard, kNever);

    std::vector<Candidate> others;
    double best_ms = standard.ms;
    for (const std::string& name : kernel_names(backend, op, true)) {
      const std::string row = name.substr(0, name.find(':'));
      if (name == entry.default_kernel || std::ranges::find(rows, row) == rows.end()) continue;
      announce(name);
      Candidate one = place.candidate(name);
      place.try_out(one, best_ms);
      if (one.ms > kHopeless * best_ms) continue;
      best_ms = std::min(best_ms, one.ms);
      others.push_back(std::move(one));
    }
    std::ranges::sort(others, {}, &Candidate::ms);
    if (others.size() > kFinalists) others.resize(kFinalists);

    // The best few against the library's choice; then the best of them once more, as one of several
    // may be first by luck.
    announce("finalists");
    const TimingOptions how{.repeats = options_.repeats, .max_seconds = options_.max_seconds};
    std::vector<Candidate*> runners{&standard};
    for (Candidate& one : others) runners.push_back(&one);
    std::vector<double> ms = place.race(runners, how);
    const auto first = std::ranges::min_element(ms.begin() + 1, ms.end());
    Candidate* winner = nullptr;
    entry.default_ms = ms[0];
    if (first != ms.end() && ms[0] > kLeastGain * *first) {
      winner = runners[std::size_t(first - ms.begin())];
      ms = place.race({&standard, winner}, how);
      entry.default_ms = ms[0];
      entry.ms = ms[1];
    }
    std::string line = fmt::format("{:<20} {:>10.4f}", entry.default_kernel, entry.default_ms);
    if (!winner || entry.default_ms <= kLeastGain * entry.ms) {
      results_.put(entry);
      return line;
    }
    line += fmt::format(" {:<32} {:>10.4f} {:>6.3f}", winner->name, entry.ms,
                        entry.default_ms / entry.ms);
    if (const cases::Outcome outcome = place.verify(*winner); !outcome.ok) {
      failed_ = true;
      return line + "  FAILED: " + outcome.message;
    }
    const Dispatch& receipt = winner->context->last_dispatch();
    entry.kernel = receipt.kernel;
    entry.config = receipt.config;
    results_.put(entry);
    ++kept_;
    return line;
  }

  /// The kernels that are worth being run on the case at all.
  template <class Announce>
  std::vector<std::string> sensible_rows(const Case& c, Backend& backend,
                                         const Announce& announce) {
    std::vector<std::string> names = kernel_names(backend, cases::op_of(c));
    const bool device = backend.memory() == Memory::Device;
    const double most = device ? kDeviceTrialWork : kHostTrialWork;
    if (work_of(c) <= most) return names;
    const Case small = shrunk(c, most);
    Place place(small, backend, options_, threads_, true);
    std::vector<double> ms;
    for (const std::string& name : names) {
      announce(fmt::format("{} on {}", name, label(small)));
      Candidate one = place.candidate(name);
      try {
        Place::once(one);
        ms.push_back(Place::once(one));
      } catch (const Error& e) {
        // What declines the small case may be for large ones.
        if (e.status() != Status::NotSupported && e.status() != Status::OutOfMemory) throw;
        ms.push_back(0);
      }
    }
    double best = kNever;
    for (const double one : ms)
      if (one > 0) best = std::min(best, one);
    std::vector<std::string> sensible;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (ms[i] <= kOutOfTheQuestion * best) sensible.push_back(std::move(names[i]));
    return sensible;
  }

  const TuneOptions& options_;
  const std::vector<Backend*> backends_;
  const int threads_;
  Results results_;
  std::size_t kept_ = 0;
  bool failed_ = false;
};

}  // namespace

int run_tune(const TuneOptions& options) {
  std::string path = options.file;
  const char* named = std::getenv("MBLAS_TUNE_FILE");
  if (path.empty() && named && *named && named != std::string_view("off")) path = named;
  if (path.empty()) path = tune_file_path();
  return Tuner(options, path).run();
}

}  // namespace mblas::bench
