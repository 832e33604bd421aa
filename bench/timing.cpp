#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "machine.hpp"
#include "mblas/launches.hpp"

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

constexpr int kMostGraphCalls = 100;

constexpr double kSettled = 0.03;  // relative difference of two samples in a row
constexpr int kLeastWarmUps = 3, kMostWarmUps = 20;
constexpr double kMostDeviceWarmUpMs = 1500, kMostHostWarmUpMs = 400;
/// Of calls longer than this, what other threads do or has come before at their start does not
/// matter.
constexpr double kLongCallMs = 20;
constexpr int kMostSamples = 100;  // of those beyond what was asked for

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

std::size_t Site::next() { return turn_ = turn_ + 1 == runs_.size() ? 0 : turn_ + 1; }

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

void Timer::issue(int count) {
  for (int i = 0; i < count; ++i) calls_[site_->next()]();
}

double Timer::time(int count) {
  Queue* queue = site_->queue();
  if (!queue) {
    const Clock::time_point start = Clock::now();
    issue(count);
    return milliseconds_since(start) / count;
  }
  // What goes before the first mark keeps the device busy while the host issues the rest: what is
  // timed is the device's work, not how long it waited for the first of it.
  if (last_ms_ < kLongCallMs) graph_ ? graph_->launch() : issue(1);
  queue->mark(0);
  graph_ ? graph_->launch() : issue(count);
  queue->mark(1);
  return queue->elapsed_ms(0, 1) / count;
}

void Timer::warm_up() {
  const bool device = site_->queue() != nullptr;
  const double least = device ? kDeviceSampleMs : kHostSampleMs;
  const double most = device ? kMostDeviceWarmUpMs : kMostHostWarmUpMs;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kMostWarmUps && (i == 0 || milliseconds_since(start) < most); ++i) {
    const double now = time(count_);
    count_ = int(std::clamp(std::ceil(least / std::max(now, 1e-6)), 1.0, 10000.0));
    const double last = std::exchange(last_ms_, now);
    if (now >= kLongCallMs || (i >= kLeastWarmUps && std::fabs(now - last) <= kSettled * now))
      break;
  }
  if (!in_graphs_) return;
  count_ = std::min(count_, kMostGraphCalls);
  graph_ = std::make_shared<const Graph>(stream_of(*site_->queue()), [this] { issue(count_); });
}

double Timer::sample(bool untimed_first) {
  if (untimed_first && last_ms_ < kLongCallMs) calls_[site_->next()]();
  return last_ms_ = time(count_);
}

std::vector<Samples> measure(std::vector<Timer>& timers, const TimingOptions& options) {
  for (Timer& timer : timers) timer.warm_up();
  std::vector<Samples> samples(timers.size());
  const Clock::time_point start = Clock::now();
  const int most = std::max(options.repeats, options.least_seconds > 0 ? kMostSamples : 0);
  for (int i = 0; i < most; ++i) {
    const double seconds = milliseconds_since(start) / 1e3;
    if (i >= options.repeats && seconds > options.least_seconds) break;
    if (i >= options.least && seconds > options.max_seconds) break;
    if (options.each_round) options.each_round(i);
    for (std::size_t t = 0; t < timers.size(); ++t)
      samples[t].ms.push_back(timers[t].sample(options.untimed_first));
  }
  return samples;
}

DeviceCopy::DeviceCopy(Site& site, std::span<const std::byte> data, double moved)
    : queue_(site.queue()) {
  const auto places = std::int64_t(site.runs().size());
  const double most = kMemoryShare * double(queue_->memory_free()) / double(2 * places);
  bytes_ = std::int64_t(std::max(std::min(moved / 2, most), 1.0));
  const std::int64_t step = (bytes_ + 255) / 256 * 256;
  from_ = static_cast<std::byte*>(queue_->allocate(std::size_t(places * step)));
  to_ = static_cast<std::byte*>(queue_->allocate(std::size_t(places * step)));
  const auto size = std::int64_t(data.size());
  for (std::int64_t at = 0; at < places * step; at += size)
    cases::copy_bytes(*queue_, from_ + at, data.data(), std::min(size, places * step - at),
                      CopyKind::HostToDevice);
  for (std::int64_t at = 0; at < places * step; at += step)
    calls_.push_back([this, at] {
      cases::copy_bytes(*queue_, to_ + at, from_ + at, bytes_, CopyKind::DeviceToDevice);
    });
}

DeviceCopy::~DeviceCopy() {
  queue_->deallocate(from_);
  queue_->deallocate(to_);
}

double copy_bandwidth(Queue& queue) {
  const std::int64_t bytes = std::min(kCopyBytes, std::int64_t(queue.memory_free() / 4));
  auto* from = static_cast<std::byte*>(queue.allocate(std::size_t(bytes)));
  auto* to = static_cast<std::byte*>(queue.allocate(std::size_t(bytes)));
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

}  // namespace mblas::bench
