// What a long run says on stderr while it works.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace mblas::bench {

/// Runs of more than a few seconds show which case they are at: on a terminal a line that is
/// rewritten in place, elsewhere a plain line now and then.
class Progress {
 public:
  explicit Progress(std::size_t total);
  ~Progress() { clear(); }

  void at(std::size_t index, std::string_view what);
  /// Takes the line away, before something else is printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  const std::size_t total_;
  const bool terminal_;
  const Clock::time_point start_;
  Clock::time_point last_;
  bool shown_ = false;
};

}  // namespace mblas::bench
