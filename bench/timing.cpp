#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "machine.hpp"

namespace mblas::bench {
namespace {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Twice the largest cache of the devices there are.
constexpr double kDeviceRotation = 256e6;
/// Allocations on a device are slow.
constexpr double kMostDeviceCopies = 64, kMostHostCopies = 1024;
/// Share of the free memory that copies may take.
constexpr double kMemoryShare = 0.4;

/// A sample lasts this long at least, so that the clock's resolution and its own cost vanish.
constexpr double kDeviceSampleMs = 1.0, kHostSampleMs = 0.2;

constexpr double kSettled = 0.03;  // relative difference of two samples in a row
constexpr int kLeastWarmUps = 3, kMostWarmUps = 20;
constexpr double kMostWarmUpMs = 1500;

double median_of(std::vector<double> v) {
  const auto middle = v.begin() + std::ptrdiff_t(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2) return *middle;
  return (*middle + *std::max_element(v.begin(), middle)) / 2;
}

constexpr std::int64_t kCopyBytes = std::int64_t(512) << 20;
constexpr int kCopySamples = 10, kCopiesInSample = 4;

}  // namespace

Site::Site(const cases::Problem& problem, std::unique_ptr<Queue> queue, bool hot)
    : queue_(std::move(queue)) {
  double size = 0;
  for (const cases::Buffer& operand : problem.operands()) size += double(operand.bytes().size());
  const double rotation = queue_ ? kDeviceRotation : 2 * double(last_level_cache());
  const double free = double(queue_ ? queue_->memory_free() : memory_available());
  const double copies =
      hot ? 1
          : std::min({std::ceil(rotation / size) + 1, queue_ ? kMostDeviceCopies : kMostHostCopies,
                      std::floor(kMemoryShare * free / size)});
  const auto count = std::size_t(size > rotation ? 1 : std::max(1.0, copies));
  runs_.reserve(count);
  while (runs_.size() < count) runs_.emplace_back(problem, queue_.get());
}

cases::Run& Site::next() {
  turn_ = turn_ + 1 == runs_.size() ? 0 : turn_ + 1;
  return runs_[turn_];
}

double Samples::median() const { return median_of(ms); }
double Samples::mean() const {
  return std::accumulate(ms.begin(), ms.end(), 0.0) / double(ms.size());
}
double Samples::deviation() const {
  if (ms.size() < 2) return 0;
  double sum = 0;
  for (const double x : ms) sum += (x - mean()) * (x - mean());
  return std::sqrt(sum / double(ms.size() - 1));
}

double Timer::time(int calls) {
  Queue* queue = site_->queue();
  if (!queue) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < calls; ++i) site_->next()(*context_);
    return milliseconds_since(start) / calls;
  }
  // The call before the first mark keeps the device busy while the host issues the others: what is
  // timed is the device's work, not how long it waited for the first of it.
  site_->next()(*context_);
  queue->mark(0);
  for (int i = 0; i < calls; ++i) site_->next()(*context_);
  queue->mark(1);
  return queue->elapsed_ms(0, 1) / calls;
}

void Timer::warm_up() {
  const double least = site_->queue() ? kDeviceSampleMs : kHostSampleMs;
  const Clock::time_point start = Clock::now();
  double last = 0;
  for (int i = 0; i < kMostWarmUps && (i == 0 || milliseconds_since(start) < kMostWarmUpMs); ++i) {
    const double now = time(calls_);
    calls_ = int(std::clamp(std::ceil(least / std::max(now, 1e-6)), 1.0, 10000.0));
    if (i >= kLeastWarmUps && std::fabs(now - last) <= kSettled * now) break;
    last = now;
  }
}

double Timer::sample() { return time(calls_); }

std::vector<Samples> measure(std::vector<Timer>& timers, const TimingOptions& options) {
  for (Timer& timer : timers) timer.warm_up();
  std::vector<Samples> samples(timers.size());
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < options.repeats; ++i) {
    if (i > 0 && milliseconds_since(start) > 1e3 * options.max_seconds) break;
    for (std::size_t t = 0; t < timers.size(); ++t) samples[t].ms.push_back(timers[t].sample());
  }
  return samples;
}

double copy_bandwidth(Queue& queue) {
  const std::int64_t bytes = std::min(kCopyBytes, std::int64_t(queue.memory_free() / 4));
  void* from = queue.allocate(std::size_t(bytes));
  void* to = queue.allocate(std::size_t(bytes));
  const auto copy = [&] { cases::copy_bytes(queue, to, from, bytes, CopyKind::DeviceToDevice); };
  std::vector<double> ms;
  for (int i = 0; i < kCopySamples; ++i) {
    copy();  // as in Timer::time, and to warm up
    queue.mark(0);
    for (int repeat = 0; repeat < kCopiesInSample; ++repeat) copy();
    queue.mark(1);
    ms.push_back(queue.elapsed_ms(0, 1) / kCopiesInSample);
  }
  queue.deallocate(from);
  queue.deallocate(to);
  return 2 * double(bytes) / median_of(ms) / 1e6;
}

double copy_bandwidth(int threads) {
  const auto bytes = std::min(std::size_t(kCopyBytes), memory_available() / 8);
  const std::size_t share = bytes / std::size_t(threads);
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{2});
  std::vector<double> ms;
  for (int i = 0; i < kCopySamples; ++i) {
    const Clock::time_point start = Clock::now();
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t) {
      const std::size_t at = std::size_t(t) * share;
      workers.emplace_back([&, at] { std::memcpy(to.data() + at, from.data() + at, share); });
    }
    workers.clear();
    ms.push_back(milliseconds_since(start));
  }
  return 2 * double(share) * threads / median_of(ms) / 1e6;
}

}  // namespace mblas::bench
