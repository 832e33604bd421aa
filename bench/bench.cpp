#include "bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <csignal>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "cuda_driver.hpp"
#include "host_limits.hpp"
#include "ladder.hpp"
#include "link.hpp"
#include "machine.hpp"
#include "mblas/accuracy.hpp"
#include "mblas/mblas.hpp"
#include "peer.hpp"
#include "plot.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "setup.hpp"
#include "timing.hpp"

namespace mblas::bench {
namespace {

using cases::Case;

/// References that are timed with every kernel: of each backend or library that was named the best
/// of a quick trial, and where only one was named the runner-up too, in case that was luck.
constexpr std::size_t kReferences = 2;
constexpr int kTrialRepeats = 5, kLongTrialRepeats = 2;
constexpr double kTrialSeconds = 1;
/// A way that takes this much longer than the best one is not run again where calls are long.
constexpr double kHopeless = 3, kSlow = 1.25;
constexpr double kLongCallMs = 50, kVeryLongCallMs = 500;
/// Nor is one that takes so long at all: a library without batches, called for each of millions.
constexpr double kEndlessCallMs = 5000;

constexpr double kMaxSeconds = 30, kMaxHostSuiteSeconds = 4;
constexpr std::size_t kPinnedFrom = std::size_t{1} << 20;  // smaller operands share their pages
constexpr int kLeastSamples = 3, kLeastPairs = 5;          // on the device, on the host
constexpr double kLeastSeconds = 0.1;                      // of a race on the host
/// OpenMP's threads look for work for as long after a call before they sleep.
constexpr auto kSpinning = std::chrono::milliseconds(15);
constexpr int kTeamPeaks = 3;

/// What is raced against: a backend or a library.
struct Versus {
  Backend* backend = nullptr;
  std::unique_ptr<Peer> peer;
  std::string name() const { return backend ? std::string(backend->name()) : peer->name(); }
};

std::vector<Versus> chosen_references(const BenchOptions& options, int threads) {
  std::vector<Versus> list;
  for (const std::string& name : entries_of(options.versus)) {
    Versus& versus = list.emplace_back();
    if (is_peer(name))
      versus.peer = load_peer(name, threads);
    else
      versus.backend = &runnable(name);
  }
  return list;
}

/// Set by the first SIGINT or SIGTERM: what has been measured is still written. The second one ends
/// the process.
volatile std::sig_atomic_t interrupted = 0;

void interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

/// Something in the race: a kernel of a backend, or a way of a library, ready to be called.
struct Subject {
  std::string name, kernel;  ///< of the backend or library; the kernel's empty: its own choice
  Site* site;
  std::unique_ptr<Context> context;  ///< of a backend
  std::vector<Call> calls;           ///< one for each copy of the operands
  double trial_ms = 0;
  double max_error = 0;  ///< of a reference
};

class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : options_(options),
        backends_(chosen_backends(options.backends)),
        threads_(options.threads > 0 ? options.threads : default_threads()),
        versus_(chosen_references(options, threads_)) {
    cases::Buffer::use_huge_pages(options.huge_pages);
    check_kernel_name();
  }

  int run() {
    // Host backends have cases of their own in some suites.
    struct Pass {
      const std::vector<Case>& cases;
      bool host, device;
    };
    const bool apart = !options_.host_cases.empty();
    const Pass passes[] = {{options_.cases, !apart, true}, {options_.host_cases, true, false}};
    std::size_t total = 0;
    for (Pass pass : passes)
      if (any_backend(pass.host, pass.device)) total += pass.cases.size();
    Progress progress(total);
    print_table_header();
    std::signal(SIGINT, interrupt);
    std::signal(SIGTERM, interrupt);
    std::size_t i = 0;
    for (const Pass& pass : passes) {
      if (!any_backend(pass.host, pass.device)) continue;
      own_host_cases_ = apart && pass.host;
      for (const Case& c : pass.cases) {
        if (interrupted) break;
        const auto report = [&](Row row) {
          progress.clear();
          print_row(row);
          rows_.push_back(std::move(row));
        };
        progress.at(i, label(c));
        run_case(c, pass.host, pass.device, report, [&](std::string_view kernel) {
          progress.at(i, fmt::format("{}, {}", label(c), kernel));
        });
        ++i;
      }
    }
    progress.clear();
    if (options_.ladder) print_ladders(rows_);
    print_summary(rows_);
    write_files();
    const bool nothing_ran = std::none_of(rows_.begin(), rows_.end(),
                                          [](const Row& row) { return row.skipped.empty(); });
    if (nothing_ran) fmt::print(stderr, "mblas bench: nothing could be run\n");
    if (interrupted)
      fmt::print(stderr, "mblas bench: interrupted after {} of {} cases\n", i, total);
    return failed_ || nothing_ran || interrupted ? 1 : 0;
  }

 private:
  void check_kernel_name() const {
    if (options_.kernel.empty() || options_.kernel == "all") return;
    std::vector<std::string> known;
    for (const auto* list : {&options_.cases, &options_.host_cases}) {
      for (const Case& c : *list) {
        for (const Backend* backend : backends_) {
          const bool configs = options_.kernel.find(':') != options_.kernel.npos;
          for (std::string& name : kernel_names(*backend, cases::op_of(c), configs)) {
            if (name == options_.kernel) return;
            if (std::find(known.begin(), known.end(), name) == known.end())
              known.push_back(std::move(name));
          }
        }
      }
    }
    throw Error(Status::UnknownName,
                fmt::format("no kernel '{}': {}, all", options_.kernel, fmt::join(known, ", ")));
  }

  static bool is_host(const Backend& backend) { return backend.memory() == Memory::Host; }
  bool any_backend(bool host, bool device) const {
    return std::any_of(backends_.begin(), backends_.end(),
                       [&](const Backend* backend) { return is_host(*backend) ? host : device; });
  }
  bool hot() const { return own_host_cases_ ? options_.hot_host || options_.hot : options_.hot; }

  /// Where operands go; made when first needed for a case.
  Site& site_on(Backend* device_backend) {
    std::unique_ptr<Site>& site = device_backend ? device_site_ : host_site_;
    if (site) return *site;
    std::unique_ptr<Queue> queue;
    if (device_backend) {
      queue =
          device_backend->make_queue({.device = options_.device, .own_stream = options_.graphs});
      if (device_copy_ == 0) {
        device_copy_ = copy_bandwidth(*queue);
        gpu_ = queue->device().name;
      }
      const double need = cases::footprint(problem_->description());
      if (const double free = double(queue->memory_free()); need > 0.95 * free)
        throw Error(
            Status::OutOfMemory,
            fmt::format("needs {:.1f} GB of device memory, {:.1f} free", need / 1e9, free / 1e9));
    } else if (host_copy_ == 0) {
      host_copy_ = copy_bandwidth(threads_, options_.huge_pages);
      f32_peak_ = multiply_add_peak(DType::f32, threads_);
      f64_peak_ = multiply_add_peak(DType::f64, threads_);
    }
    site = std::make_unique<Site>(*problem_, std::move(queue), hot());
    return *site;
  }
  bool on_device(const Backend& backend) const { return !is_host(backend) && !options_.host; }
  bool in_graphs(const Backend& backend) const { return options_.graphs && on_device(backend); }
  Timer timer_of(const Subject& subject) const {
    return {*subject.site, subject.calls, options_.graphs && subject.site->queue()};
  }
  Site& site_of(Backend& backend) {
    Site& site = site_on(on_device(backend) ? &backend : nullptr);
    if (options_.pinned && options_.host && !is_host(backend) && pinned_.empty()) {
      backend.make_queue({.device = options_.device})->synchronize();  // its device is current now
      for (cases::Run& run : site.runs())
        for (cases::Placed& operand : run.operands())
          if (const auto bytes = operand.fetch().bytes(); bytes.size() >= kPinnedFrom)
            pinned_.emplace_back(bytes);
    }
    return site;
  }

  /// What is asked of a reference: native arithmetic where a type's is made of narrower ones, which
  /// the mode is to be faster than.
  static Case native(Case c) {
    auto* gemm = std::get_if<cases::GemmCase>(&c);
    if (gemm && (gemm->compute == Compute::BF16x6 || gemm->compute == Compute::FP16x3 ||
                 gemm->compute == Compute::OzakiFP64))
      gemm->compute = Compute::Default, gemm->tolerance = 0;
    return c;
  }

  std::unique_ptr<Subject> subject(Backend& backend, const Case& c, const std::string& kernel,
                                   std::optional<GemmPlan::Operand> keep = {}) {
    auto made = std::make_unique<Subject>(Subject{std::string(backend.name()),
                                                  kernel,
                                                  &site_of(backend),
                                                  std::make_unique<Context>(backend.name()),
                                                  {}});
    Context& context = *made->context;
    // What would be timed along with the calls.
    context.set_verbose(0);
    context.set_verify("");
    context.set_num_threads(threads_);
    if (!is_host(backend)) context.set_device(options_.device);
    if (in_graphs(backend)) context.set_stream(stream_of(*made->site->queue()));
    if (!kernel.empty()) context.set_kernel(fmt::format("{}={}", cases::op_of(c), kernel));
    made->calls = calls_of(c, made->site->runs(), context, keep);
    return made;
  }

  static cases::Outcome verify(Subject& subject) {
    cases::Run& run = subject.site->runs().front();
    run.reset();
    subject.calls.front()();
    if (subject.context) subject.context->synchronize();
    return run.verify();
  }

  bool with_peers() const {
    return std::any_of(versus_.begin(), versus_.end(),
                       [](const Versus& versus) { return versus.peer != nullptr; });
  }
  /// Libraries transpose floating-point numbers, at the cost of those: bytes that happen to be NaN
  /// would change, and denormal ones would cost more.
  static Case numbers(Case c) {
    std::visit(
        [](auto& descriptor) {
          if constexpr (
              requires {
                descriptor.ldb;
                descriptor.data;
              } &&
              !requires { descriptor.alpha; })
            descriptor.data = cases::Data::Positive;
        },
        c);
    return c;
  }

  /// Whether it is bound by nothing but how fast memory is read and written.
  static bool only_moves(const Case& c) {
    const std::string_view op = cases::op_of(c);
    return op != op_name<GemmArgs> && op != op_name<Gf256Args>;
  }

  template <class Report, class Announce>
  void run_case(const Case& c, bool host, bool device, const Report& report,
                const Announce& announce) {
    // The content, a copy of it to run on, and what the oracle keeps.
    const double need = 2.2 * cases::footprint(c), available = double(memory_available());
    if (need > 0.9 * available) {
      Row row;
      row.description = c;
      row.skipped = fmt::format("skipped: needs {:.1f} GB of memory, {:.1f} available", need / 1e9,
                                available / 1e9);
      return report(std::move(row));
    }
    problem_ = cases::prepare(with_peers() ? numbers(c) : c);
    references_.clear();
    hopeless_.clear();
    references_found_ = false;
    for (Backend* backend : backends_) {
      if (!(is_host(*backend) ? host : device)) continue;
      std::vector<std::string> kernels{options_.kernel};
      if (options_.kernel == "all") kernels = kernel_names(*backend, cases::op_of(c));
      for (const std::string& kernel : kernels) {
        announce(fmt::format("{}{}{}", backend->name(), kernel.empty() ? "" : " ", kernel));
        report(run_kernel(c, *backend, kernel));
      }
    }
    references_.clear();
    hopeless_.clear();
    pinned_.clear();
    host_site_.reset();
    device_site_.reset();
  }

  Row run_kernel(const Case& c, Backend& backend, const std::string& kernel) {
    Row row;
    row.description = c;
    row.backend = backend.name();
    row.kernel = kernel;
    row.host_operands = options_.host && !is_host(backend);
    row.pinned = row.host_operands && options_.pinned;
    row.hot = hot();
    row.in_graphs = in_graphs(backend);
    if (options_.keep) row.kept = *options_.keep == GemmPlan::Operand::A ? "A" : "B";
    if (is_host(backend)) row.threads = threads_;
    try {
      const std::unique_ptr<Subject> candidate =
          subject(backend, problem_->description(), kernel, options_.keep);
      row.outcome = verify(*candidate);
      const Dispatch& receipt = candidate->context->last_dispatch();
      row.kernel = receipt.kernel;
      row.config = receipt.config;
      row.tuned = receipt.tuned;
      row.compute = receipt.compute;
      failed_ |= !row.outcome.ok;
      if (options_.ladder && on_device(backend)) row.launches = launches(backend, *candidate);
      find_references();
      std::vector<Timer> timers{timer_of(*candidate)};
      for (const auto& r : references_) timers.push_back(timer_of(*r));
      std::optional<Link> link;
      if (row.pinned) {
        Site& site = *candidate->site;
        link.emplace(backend, options_.device, row.description, site.runs());
        timers.emplace_back(site, link->calls());
      }
      std::optional<DeviceCopy> copy;
      if (on_device(backend) && only_moves(row.description)) {
        Site& site = *candidate->site;
        copy.emplace(site, problem_->operands().front().bytes(), cases::bytes(row.description));
        timers.emplace_back(site, copy->calls());
      }
      std::vector<double> peaks;
      const TimingOptions how = is_host(backend) ? host_timing(row, peaks) : device_timing();
      const std::vector<Samples> samples = measure(timers, how);
      fill_in_times(row, samples);
      if (link) row.link_ms = samples.back().median();
      if (copy) row.copy_gbps = copy->gbps(samples.back().median());
      if (!peaks.empty()) row.peak_gflops = peak_of(peaks);
    } catch (const Error& e) {
      const bool declined = e.status() == Status::NotSupported;
      const bool too_large = e.status() == Status::OutOfMemory;
      row.skipped = fmt::format("{}: {}",
                                declined    ? "declined"
                                : too_large ? "skipped"
                                            : "error",
                                e.what());
      const bool tolerated = options_.is_suite || options_.kernel == "all";
      failed_ |= !(tolerated && (declined || too_large));
    }
    return row;
  }

  /// What a call of the subject launches.
  std::vector<Launch> launches(Backend& backend, const Subject& subject) {
    const auto queue = backend.make_queue({.device = options_.device, .own_stream = true});
    void* const stream = stream_of(*queue);
    if (!stream) return {};
    Context& context = *subject.context;
    context.set_stream(stream);
    subject.calls.front()();
    context.synchronize();
    std::vector<Launch> list;
    try {
      list = launches_of(*queue, subject.calls.front());
    } catch (const Error& e) {  // what cannot be captured is not described
      if (e.status() != Status::NotSupported) throw;
    }
    context.set_stream(stream_of(*subject.site->queue()));
    return list;
  }

  double max_seconds() const {
    if (options_.max_seconds > 0) return options_.max_seconds;
    return own_host_cases_ ? kMaxHostSuiteSeconds : kMaxSeconds;
  }
  TimingOptions device_timing() const {
    return {.repeats = options_.repeats,
            .least = std::min(options_.repeats, kLeastSamples),
            .max_seconds = max_seconds()};
  }
  /// Also measures what the clock allows multiply-adds of the row's type to reach meanwhile.
  TimingOptions host_timing(const Row& row, std::vector<double>& peaks) const {
    TimingOptions how = device_timing();
    how.least = std::min(options_.repeats, references_.empty() ? 1 : kLeastPairs);
    how.least_seconds = options_.is_suite ? kLeastSeconds : 0;
    how.untimed_first = threads_ > 1;
    const auto* gemm = std::get_if<cases::GemmCase>(&row.description);
    if (!gemm || accumulator_of(gemm->in) == DType::i32 || gemm->in != gemm->out) return how;
    const DType real = size_of(gemm->in) / (is_complex(gemm->in) ? 2 : 1) == 8   ? DType::f64
                       : size_of(gemm->in) / (is_complex(gemm->in) ? 2 : 1) == 4 ? DType::f32
                                                                                 : DType::i32;
    if (real == DType::i32) return how;
    how.each_round = [this, real, &peaks](int round) {
      if (threads_ == 1) return peaks.push_back(multiply_add_peak(real, 1));
      if (round >= kTeamPeaks) return;
      std::this_thread::sleep_for(kSpinning);
      peaks.push_back(multiply_add_peak(real, threads_));
    };
    return how;
  }
  /// The median; of a team's few, which others' spinning threads may have disturbed, the best.
  double peak_of(std::vector<double>& peaks) const {
    std::sort(peaks.begin(), peaks.end());
    return threads_ == 1 ? peaks[peaks.size() / 2] : peaks.back();
  }

  void fill_in_times(Row& row, const std::vector<Samples>& samples) {
    const Samples& own = samples[0];
    row.ms = own.median();
    row.mean_ms = own.mean();
    row.deviation_ms = own.deviation();
    row.samples = int(own.ms.size());
    row.gflops = cases::flops(row.description) / row.ms / 1e6;
    row.gbps = cases::bytes(row.description) / row.ms / 1e6;
    const bool device = on_device(find_backend(row.backend));
    row.copy_gbps = device ? device_copy_ : host_copy(row);
    if (device) row.tables_gbps = tables_gbps(row.description);
    const auto add = [&](const Subject& reference, double ms, bool raced) {
      const auto known =
          std::find_if(row.peers.begin(), row.peers.end(),
                       [&](const Reference& peer) { return peer.backend == reference.name; });
      if (known == row.peers.end())
        row.peers.push_back({reference.name, reference.kernel, ms, raced, reference.max_error});
      else if (ms < known->ms)
        *known = {reference.name, reference.kernel, ms, raced, reference.max_error};
    };
    for (std::size_t r = 0; r < references_.size(); ++r)
      add(*references_[r], samples[r + 1].median(), true);
    for (const auto& one : hopeless_) add(*one, one->trial_ms, false);
    for (const Reference& peer : row.peers)
      if (peer.raced && (!row.reference || peer.ms < row.reference->ms)) row.reference = peer;
  }

  /// What reads of tables in shared memory would allow a product over GF(2^8): two of sixteen words
  /// a byte of B, for its halves, and four rows of A at a time. 0 for anything else.
  double tables_gbps(const Case& c) const {
    const auto* product = std::get_if<cases::Gf256Case>(&c);
    if (!product) return 0;
    const double groups = double((product->m + 3) / 4);
    const double words = 2 * groups * double(product->k) * double(product->n);
    return cases::bytes(c) / words * shared_words_per_second(options_.device) / 1e9;
  }

  /// The copy of operands that stay in a cache is one of such a size.
  double host_copy(const Row& row) {
    const double each = cases::footprint(row.description) / 2;
    if (!row.hot || each > double(last_level_cache())) return host_copy_;
    const auto size = std::bit_ceil(std::size_t(each));
    double& known = hot_copies_[size];
    if (known == 0) known = copy_bandwidth(threads_, options_.huge_pages, size);
    return known;
  }

  /// The fastest ways of each reference on this case; none where it cannot do it.
  void find_references() {
    if (std::exchange(references_found_, true)) return;
    double best_ms = std::numeric_limits<double>::infinity();
    std::vector<std::vector<std::unique_ptr<Subject>>> able;  // of each reference
    for (const Versus& versus : versus_) {
      auto& mine = able.emplace_back();
      for (std::unique_ptr<Subject>& one : ways_of(versus)) try_out(std::move(one), mine, best_ms);
    }
    // The best one or two of each.
    const std::size_t most = versus_.size() == 1 ? kReferences : 1;
    for (auto& mine : able) {
      std::sort(mine.begin(), mine.end(),
                [](const auto& a, const auto& b) { return a->trial_ms < b->trial_ms; });
      for (std::size_t i = 0; i < std::min(most, mine.size()); ++i) {
        const bool slow = mine[i]->trial_ms > kEndlessCallMs ||
                          (mine[i]->trial_ms > kLongCallMs && mine[i]->trial_ms > kSlow * best_ms);
        (slow ? hopeless_ : references_).push_back(std::move(mine[i]));
      }
    }
  }

  std::vector<std::unique_ptr<Subject>> ways_of(const Versus& versus) {
    std::vector<std::unique_ptr<Subject>> list;
    const Case& c = problem_->description();
    if (versus.peer) {
      Site& site = site_on(nullptr);
      for (Way& way : versus.peer->ways(c, site.runs()))
        list.push_back(std::make_unique<Subject>(
            Subject{versus.name(), std::move(way.name), &site, nullptr, std::move(way.calls)}));
      return list;
    }
    for (const std::string& kernel : kernel_names(*versus.backend, cases::op_of(c))) {
      try {
        list.push_back(subject(*versus.backend, native(c), kernel));
      } catch (const Error& e) {
        if (e.status() != Status::NotSupported && e.status() != Status::OutOfMemory) throw;
      }
    }
    return list;
  }

  /// Verifies a way and times it briefly; those that are right are kept. Very long calls are not
  /// repeated when they have been seen to be much slower than others.
  void try_out(std::unique_ptr<Subject> one, std::vector<std::unique_ptr<Subject>>& able,
               double& best_ms) {
    try {
      const auto start = std::chrono::steady_clock::now();
      one->site->runs().front().reset();
      one->calls.front()();
      if (one->context) one->context->synchronize();
      one->trial_ms =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
              .count();
      const cases::Outcome outcome = one->site->runs().front().verify_result();
      one->max_error = outcome.max_error;
      if (!outcome.ok) {
        fmt::print(stderr, "reference {} {} is wrong, and left out: {}\n", one->name, one->kernel,
                   outcome.message);
        return;
      }
    } catch (const Error& e) {
      if (e.status() != Status::NotSupported && e.status() != Status::OutOfMemory) throw;
      return;
    }
    if (one->trial_ms < kVeryLongCallMs ||
        (one->trial_ms < kEndlessCallMs && one->trial_ms < kHopeless * best_ms)) {
      std::vector<Timer> timer{timer_of(*one)};
      one->trial_ms = measure(timer, {.repeats = one->trial_ms < kLongCallMs ? kTrialRepeats
                                                                             : kLongTrialRepeats,
                                      .max_seconds = kTrialSeconds})[0]
                          .median();
    }
    best_ms = std::min(best_ms, one->trial_ms);
    able.push_back(std::move(one));
  }

  void write_files() const {
    if (!options_.json.empty()) {
      Header header;
      header.command = options_.command;
      header.threads = threads_;
      header.gpu = gpu_;
      header.gpu_ordinal = options_.device;
      header.host_copy_gbps = host_copy_;
      header.device_copy_gbps = device_copy_;
      header.f32_peak_gflops = f32_peak_;
      header.f64_peak_gflops = f64_peak_;
      header.limits_isa = limits_isa();
      header.huge_pages = options_.huge_pages;
      for (const Versus& versus : versus_)
        if (versus.peer) header.peers.emplace_back(versus.name(), versus.peer->description());
      write_json(options_.json, header, rows_);
    }
    if (!options_.plot.empty()) write_plot(options_.plot, rows_);
  }

  const BenchOptions& options_;
  const std::vector<Backend*> backends_;
  const int threads_;  ///< of host backends and loaded libraries
  const std::vector<Versus> versus_;
  std::vector<Row> rows_;
  bool failed_ = false;
  bool own_host_cases_ = false;  ///< the pass at hand is that of the host's own cases
  double host_copy_ = 0, device_copy_ = 0;
  double f32_peak_ = 0, f64_peak_ = 0;
  std::map<std::size_t, double> hot_copies_;  ///< by size of the arrays
  std::string gpu_;

  // Of the case at hand; operands before what refers to them.
  std::unique_ptr<cases::Problem> problem_;
  std::unique_ptr<Site> host_site_, device_site_;
  std::vector<Pinned> pinned_;  ///< of host_site_
  std::vector<std::unique_ptr<Subject>> references_;
  std::vector<std::unique_ptr<Subject>> hopeless_;  ///< too slow to be raced
  bool references_found_ = false;
};

}  // namespace

int run_bench(const BenchOptions& options) { return Bench(options).run(); }

}  // namespace mblas::bench
