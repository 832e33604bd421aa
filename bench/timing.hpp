// How long calls take.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "mblas/backend.hpp"
#include "mblas/context.hpp"
#include "problem.hpp"

namespace mblas::bench {

/// The operands of a problem in one memory, as many copies as do not fit its caches together.
class Site {
 public:
  /// `queue`: of the device whose memory is used; null: host memory. `hot`: one copy only, so that
  /// small operands stay in cache.
  Site(const cases::Problem& problem, std::unique_ptr<Queue> queue, bool hot);

  Queue* queue() const { return queue_.get(); }
  /// The copy whose turn it is.
  cases::Run& next();
  cases::Run& first() { return runs_.front(); }

 private:
  std::unique_ptr<Queue> queue_;
  std::vector<cases::Run> runs_;
  std::size_t turn_ = 0;
};

/// Milliseconds of one call, several times over.
struct Samples {
  std::vector<double> ms;
  double median() const;
  double mean() const;
  double deviation() const;
};

struct TimingOptions {
  int repeats = 20;         ///< samples
  double max_seconds = 30;  ///< of a kernel and case, after which fewer samples must do
};

/// Times the calls of a context at a site: with the device's own marks where the operands are in
/// its memory, else with the steady clock around calls that return when they are done.
class Timer {
 public:
  Timer(Site& site, Context& context) : site_(&site), context_(&context) {}

  /// Calls until the times have settled; chooses how many calls make a sample long enough to be
  /// timed.
  void warm_up();
  /// Milliseconds of a call.
  double sample();

 private:
  double time(int calls);

  Site* site_;
  Context* context_;
  int calls_ = 1;
};

/// Samples of all timers, taken in turn: A B A B.
std::vector<Samples> measure(std::vector<Timer>& timers, const TimingOptions& options);

/// Bytes read and written per second, in GB/s, by a copy within the memory of `queue`, or of the
/// host by that many threads: the most that anything moving matrices can reach.
double copy_bandwidth(Queue& queue);
double copy_bandwidth(int threads);

}  // namespace mblas::bench
