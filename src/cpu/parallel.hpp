// Teams of threads for the CPU kernels: OpenMP's where it is built in and safe to use,
// std::thread's elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace mblas::cpu {

/// Threads that a call uses unless told otherwise: what OpenMP would use, else the CPUs that this
/// process may run on; 1 inside an OpenMP parallel region.
int default_threads();

/// True inside an OpenMP parallel region of more than one thread.
bool in_parallel_region();

/// How teams are made, for `mblas info`: "OpenMP" or "std::thread".
const char* team_kind();

/// Do the threads of a team wait for the next one? Else each team starts its own.
bool keeps_threads();

/// True in the child of a fork, where OpenMP's threads no longer exist and waiting for them hangs.
bool in_forked_child();

namespace detail {
using TeamBody = void (*)(void* f, int thread, int granted);
void run_team(int threads, TeamBody body, void* f);
}  // namespace detail

/// Calls f(thread, granted) once on each thread of a team of `granted` ≤ `threads`, and returns
/// when all are done. The first exception of a thread is rethrown here. One thread means a plain
/// call.
template <class F>
void parallel(int threads, F&& f) {
  if (threads <= 1) {
    f(0, 1);
    return;
  }
  using Body = std::remove_reference_t<F>;
  detail::run_team(
      threads,
      [](void* body, int thread, int granted) { (*static_cast<Body*>(body))(thread, granted); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

/// Where the threads of a part of a team wait for one another; each in a cache line of its own.
class alignas(64) TeamBarrier {
 public:
  /// Returns once `members` threads have called it.
  void wait(int members);

 private:
  std::atomic<int> arrived_ = 0;
  std::atomic<unsigned> round_ = 0;
};

/// The share of thread `thread` of `granted` in [0, count), in whole multiples of `grain`.
struct Range {
  std::int64_t begin, end;
};
constexpr Range share_of(std::int64_t count, int thread, int granted, std::int64_t grain = 1) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t base = grains / granted, extra = grains % granted;
  const auto start = [&](std::int64_t t) {
    const std::int64_t g = (t * base + (t < extra ? t : extra)) * grain;
    return g < count ? g : count;
  };
  return {start(thread), start(thread + 1)};
}

/// Threads worth starting for `work` units where one thread should get at least `grain` of them.
constexpr int threads_for(double work, double grain, int most) {
  const double worth = work / grain;
  return worth < 2 ? 1 : worth < most ? static_cast<int>(worth) : most;
}

}  // namespace mblas::cpu
