#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace mblas::bench {
namespace {
using namespace std::chrono_literals;
constexpr auto kQuiet = 2s;  // before the first sign
constexpr auto kPlainEvery = 10s;
}  // namespace

Progress::Progress(std::size_t total)
    : total_(total), terminal_(isatty(STDERR_FILENO)), start_(Clock::now()), last_(start_) {}

void Progress::at(std::size_t index, std::string_view what) {
  const Clock::time_point now = Clock::now();
  if (now - start_ < kQuiet || (!terminal_ && now - last_ < kPlainEvery)) return;
  last_ = now;
  const std::string line = fmt::format("case {} of {}: {}", index + 1, total_, what);
  fmt::print(stderr, fmt::runtime(terminal_ ? "\r{}\033[K" : "{}\n"), line);
  std::fflush(stderr);
  shown_ = terminal_;
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace mblas::bench
