#include "bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "machine.hpp"
#include "mblas/mblas.hpp"
#include "plot.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "timing.hpp"

namespace mblas::bench {
namespace {

using cases::Case;

/// References that are timed with every kernel: the best of a quick trial, and the runner-up in
/// case that was luck.
constexpr std::size_t kReferences = 2;
constexpr int kTrialRepeats = 5;

template <class Args>
std::vector<std::string> names(const Backend& backend) {
  std::vector<std::string> list;
  for (const Kernel<Args>& kernel : backend.kernels<Args>()) list.emplace_back(kernel.name);
  return list;
}

std::vector<std::string> kernel_names(const Backend& backend, std::string_view op) {
  if (op == op_name<GemmArgs>) return names<GemmArgs>(backend);
  if (op == op_name<GeamArgs>) return names<GeamArgs>(backend);
  if (op == op_name<TransposeArgs>) return names<TransposeArgs>(backend);
  if (op == op_name<TransposeInplaceArgs>) return names<TransposeInplaceArgs>(backend);
  return names<Gf256Args>(backend);
}

/// The backend, where it can run here.
Backend& runnable(std::string_view name) {
  Backend& backend = find_backend(name);
  if (!backend.unavailable().empty())
    throw Error(Status::BackendUnavailable,
                fmt::format("backend {} cannot run here: {}", name, backend.unavailable()));
  return backend;
}

/// What the library would use: said explicitly, so that the results can tell.
int default_threads() {
  for (const char* name : {"MBLAS_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const char* value = std::getenv(name); value && std::atoi(value) > 0)
      return std::atoi(value);
  return cpu_cores();
}

std::vector<Backend*> chosen_backends(const BenchOptions& options) {
  std::vector<std::string> names = options.backends;
  const char* environment = std::getenv("MBLAS_BACKEND");
  if (names.empty() && environment && *environment && environment != std::string_view("auto"))
    names = {environment};
  std::vector<Backend*> list;
  for (const std::string& entry : names) {
    std::string_view rest = entry;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      list.push_back(&runnable(rest.substr(0, comma)));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  if (names.empty())
    for (Backend* backend : backends())
      if (backend->unavailable().empty()) list.push_back(backend);
  return list;
}

/// One kernel of a backend, ready to be called at a site.
struct Subject {
  std::string kernel;  ///< empty: the library's choice
  Site* site;
  Context context;
};

class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : options_(options),
        backends_(chosen_backends(options)),
        versus_(options.versus.empty() ? nullptr : &runnable(options.versus)),
        threads_(options.threads > 0 ? options.threads : default_threads()) {
    check_kernel_name();
  }

  int run() {
    Progress progress(options_.cases.size());
    print_table_header();
    for (std::size_t i = 0; i < options_.cases.size(); ++i) {
      const Case& c = options_.cases[i];
      const auto report = [&](Row row) {
        progress.clear();
        print_row(row);
        rows_.push_back(std::move(row));
      };
      progress.at(i, label(c));
      run_case(c, report, [&](std::string_view kernel) {
        progress.at(i, fmt::format("{}, {}", label(c), kernel));
      });
    }
    progress.clear();
    write_files();
    const bool nothing_ran = std::none_of(rows_.begin(), rows_.end(),
                                          [](const Row& row) { return row.skipped.empty(); });
    if (nothing_ran) fmt::print(stderr, "mblas bench: nothing could be run\n");
    return failed_ || nothing_ran ? 1 : 0;
  }

 private:
  void check_kernel_name() const {
    if (options_.kernel.empty() || options_.kernel == "all") return;
    std::vector<std::string> known;
    for (const Case& c : options_.cases) {
      for (const Backend* backend : backends_) {
        for (std::string& name : kernel_names(*backend, cases::op_of(c))) {
          if (name == options_.kernel) return;
          if (std::find(known.begin(), known.end(), name) == known.end())
            known.push_back(std::move(name));
        }
      }
    }
    throw Error(Status::UnknownName,
                fmt::format("no kernel '{}': {}, all", options_.kernel, fmt::join(known, ", ")));
  }

  /// Where the backend's operands go; made when first needed for a case.
  Site& site_of(Backend& backend) {
    const bool device = backend.memory() != Memory::Host && !options_.host;
    std::unique_ptr<Site>& site = device ? device_site_ : host_site_;
    if (site) return *site;
    std::unique_ptr<Queue> queue;
    if (device) {
      queue = backend.make_queue({.device = options_.device});
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
      host_copy_ = copy_bandwidth(threads_);
    }
    site = std::make_unique<Site>(*problem_, std::move(queue), options_.hot);
    return *site;
  }

  std::unique_ptr<Subject> subject(Backend& backend, const std::string& kernel) {
    auto made =
        std::make_unique<Subject>(Subject{kernel, &site_of(backend), Context(backend.name())});
    Context& context = made->context;
    // What would be timed along with the calls.
    context.set_verbose(0);
    context.set_verify("");
    context.set_num_threads(threads_);
    if (backend.memory() != Memory::Host) context.set_device(options_.device);
    if (!kernel.empty())
      context.set_kernel(fmt::format("{}={}", cases::op_of(problem_->description()), kernel));
    return made;
  }

  static cases::Outcome verify(Subject& subject) {
    cases::Run& run = subject.site->first();
    run.reset();
    run(subject.context);
    subject.context.synchronize();
    return run.verify();
  }

  template <class Report, class Announce>
  void run_case(const Case& c, const Report& report, const Announce& announce) {
    // The content, a copy of it to run on, and what the oracle keeps.
    const double need = 2.2 * cases::footprint(c), available = double(memory_available());
    if (need > 0.9 * available) {
      Row row;
      row.description = c;
      row.skipped = fmt::format("skipped: needs {:.1f} GB of memory, {:.1f} available", need / 1e9,
                                available / 1e9);
      return report(std::move(row));
    }
    problem_ = cases::prepare(c);
    references_.clear();
    references_found_ = false;
    for (Backend* backend : backends_) {
      std::vector<std::string> kernels{options_.kernel};
      if (options_.kernel == "all") kernels = kernel_names(*backend, cases::op_of(c));
      for (const std::string& kernel : kernels) {
        announce(fmt::format("{}{}{}", backend->name(), kernel.empty() ? "" : " ", kernel));
        report(run_kernel(c, *backend, kernel));
      }
    }
    references_.clear();
    host_site_.reset();
    device_site_.reset();
  }

  Row run_kernel(const Case& c, Backend& backend, const std::string& kernel) {
    Row row;
    row.description = c;
    row.backend = backend.name();
    row.kernel = kernel;
    row.host_operands = options_.host && backend.memory() != Memory::Host;
    try {
      const std::unique_ptr<Subject> candidate = subject(backend, kernel);
      row.outcome = verify(*candidate);
      const Dispatch& receipt = candidate->context.last_dispatch();
      row.kernel = receipt.kernel;
      row.compute = receipt.compute;
      failed_ |= !row.outcome.ok;
      find_references();
      std::vector<Timer> timers{Timer(*candidate->site, candidate->context)};
      for (const auto& r : references_) timers.emplace_back(*r->site, r->context);
      fill_in_times(row, measure(timers, {options_.repeats, options_.max_seconds}));
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

  void fill_in_times(Row& row, const std::vector<Samples>& samples) const {
    const Samples& own = samples[0];
    row.ms = own.median();
    row.mean_ms = own.mean();
    row.deviation_ms = own.deviation();
    row.samples = int(own.ms.size());
    row.gflops = cases::flops(row.description) / row.ms / 1e6;
    row.gbps = cases::bytes(row.description) / row.ms / 1e6;
    const bool device = find_backend(row.backend).memory() != Memory::Host && !options_.host;
    row.copy_gbps = device ? device_copy_ : host_copy_;
    for (std::size_t r = 0; r < references_.size(); ++r) {
      const double ms = samples[r + 1].median();
      if (!row.reference || ms < row.reference->ms)
        row.reference = Reference{std::string(versus_->name()), references_[r]->kernel, ms};
    }
  }

  /// The fastest kernels of the reference backend on this case; none where it cannot do it.
  void find_references() {
    if (!versus_ || std::exchange(references_found_, true)) return;
    std::vector<std::unique_ptr<Subject>> able;
    for (const std::string& kernel :
         kernel_names(*versus_, cases::op_of(problem_->description()))) {
      try {
        std::unique_ptr<Subject> one = subject(*versus_, kernel);
        if (const cases::Outcome outcome = verify(*one); outcome.ok)
          able.push_back(std::move(one));
        else
          fmt::print(stderr, "reference {} {} is wrong, and left out: {}\n", versus_->name(),
                     kernel, outcome.message);
      } catch (const Error& e) {
        if (e.status() != Status::NotSupported && e.status() != Status::OutOfMemory) throw;
      }
    }
    std::vector<Timer> timers;
    for (const auto& one : able) timers.emplace_back(*one->site, one->context);
    const std::vector<Samples> samples = measure(timers, {kTrialRepeats, options_.max_seconds});
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < able.size(); ++i) order.emplace_back(samples[i].median(), i);
    std::sort(order.begin(), order.end());
    for (const auto& [ms, i] : order)
      if (references_.size() < kReferences) references_.push_back(std::move(able[i]));
  }

  void write_files() const {
    if (!options_.json.empty())
      write_json(options_.json,
                 {options_.command, threads_, gpu_, options_.device, host_copy_, device_copy_},
                 rows_);
    if (!options_.plot.empty()) write_plot(options_.plot, rows_);
  }

  const BenchOptions& options_;
  const std::vector<Backend*> backends_;
  Backend* const versus_;
  const int threads_;  ///< of host backends
  std::vector<Row> rows_;
  bool failed_ = false;
  double host_copy_ = 0, device_copy_ = 0;
  std::string gpu_;

  // Of the case at hand; operands before what refers to them.
  std::unique_ptr<cases::Problem> problem_;
  std::unique_ptr<Site> host_site_, device_site_;
  std::vector<std::unique_ptr<Subject>> references_;
  bool references_found_ = false;
};

}  // namespace

int run_bench(const BenchOptions& options) { return Bench(options).run(); }

}  // namespace mblas::bench
