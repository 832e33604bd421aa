// How long calls take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cuda_driver.hpp"
#include "mblas/backend.hpp"
#include "peer.hpp"
#include "problem.hpp"

namespace mblas::bench {

/// The operands of a problem in one memory, as many copies as do not fit its caches together.
class Site {
 public:
  /// `queue`: of the device whose memory is used; null: host memory. `hot`: one copy only, so that
  /// small operands stay in cache.
  Site(const cases::Problem& problem, std::unique_ptr<Queue> queue, bool hot);

  Queue* queue() const { return queue_.get(); }
  std::span<cases::Run> runs() { return runs_; }
  /// Index of the copy whose turn it is, whoever calls.
  std::size_t next();

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
  int repeats = 20;          ///< samples
  int least = 1;             ///< samples to take however long they last
  double max_seconds = 30;   ///< of a kernel and case, after which fewer samples must do
  double least_seconds = 0;  ///< up to which more samples are taken
  /// An untimed call goes before each sample. Threads that the others' calls left spinning have
  /// then found out that there is nothing to do.
  bool untimed_first = false;
  std::function<void(int round)> each_round =
      nullptr;  ///< called between rounds of samples; may be null
};

/// Times calls on the operands of a site, one for each copy of them: with the device's own marks
/// where the operands are in its memory, else with the steady clock around calls that return when
/// they are done.
class Timer {
 public:
  /// `in_graphs`: the calls of a sample are launched as one CUDA graph. The site's queue must have
  /// a stream of its own, which they are issued to.
  Timer(Site& site, std::span<const Call> calls, bool in_graphs = false)
      : site_(&site), calls_(calls), in_graphs_(in_graphs) {}

  /// Calls until the times have settled; chooses how many calls make a sample long enough to be
  /// timed.
  void warm_up();
  /// Milliseconds of a call.
  double sample(bool untimed_first);

 private:
  double time(int count);
  void issue(int count);

  Site* site_;
  std::span<const Call> calls_;
  bool in_graphs_;
  std::shared_ptr<const Graph> graph_;  ///< of count_ calls, once they have settled
  int count_ = 1;
  double last_ms_ = 0;
};

/// Samples of all timers, taken in turn: A B A B.
std::vector<Samples> measure(std::vector<Timer>& timers, const TimingOptions& options);

/// Copies within a device's memory of as many bytes as a call moves: the most that anything moving
/// matrices can reach. To be timed in turn with the call.
class DeviceCopy {
 public:
  /// Of half of the `moved` bytes, or what memory there is for, in as many places as the site has
  /// runs; `data`: what is copied, over and over.
  DeviceCopy(Site& site, std::span<const std::byte> data, double moved);
  ~DeviceCopy();
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  /// One for each of the site's runs.
  std::span<const Call> calls() const { return calls_; }
  /// GB/s read and written where a copy takes so many milliseconds.
  double gbps(double ms) const { return 2 * double(bytes_) / ms / 1e6; }

 private:
  Queue* queue_;
  std::int64_t bytes_;
  std::byte *from_, *to_;
  std::vector<Call> calls_;
};

/// Bytes read and written per second, in GB/s, by a copy of 512 MiB within the memory of `queue`,
/// which does not fit its caches.
double copy_bandwidth(Queue& queue);

}  // namespace mblas::bench
