#include "cpu/parallel.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#ifdef MBLAS_HAVE_OPENMP
#include <omp.h>
#endif

namespace mblas::cpu {
namespace {

std::atomic<bool> forked_child = false;
// Registered when the library is loaded: a fork before the first call counts too, as the program
// may have started OpenMP threads of its own by then.
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { forked_child.store(true, std::memory_order_relaxed); });

/// Keeps the first exception that a team's threads throw.
class FirstException {
 public:
  void capture() noexcept {
    std::lock_guard lock(mutex_);
    if (!first_) first_ = std::current_exception();
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

void guarded(detail::TeamBody body, void* f, int thread, int granted, FirstException& exception) {
  try {
    body(f, thread, granted);
  } catch (...) {
    exception.capture();
  }
}

/// The calling thread is thread 0. Where the system gives fewer threads, the team is smaller:
/// nobody starts before the number is known.
void run_std_team(int threads, detail::TeamBody body, void* f, FirstException& exception) {
  std::atomic<int> granted = 0;
  std::vector<std::thread> team;
  try {
    team.reserve(static_cast<std::size_t>(threads) - 1);
    for (int t = 1; t < threads; ++t) {
      team.emplace_back([=, &granted, &exception] {
        granted.wait(0);
        guarded(body, f, t, granted.load(), exception);
      });
    }
  } catch (const std::exception&) {
    // No memory or no threads left: those that started are the team.
  }
  granted.store(static_cast<int>(team.size()) + 1);
  granted.notify_all();
  guarded(body, f, 0, granted.load(), exception);
  for (std::thread& t : team) t.join();
}

#ifndef MBLAS_HAVE_OPENMP
int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  const unsigned all = std::thread::hardware_concurrency();
  return all == 0 ? 1 : static_cast<int>(all);
}
#endif

/// Tells the core that this thread only waits.
void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void TeamBarrier::wait(int members) {
  if (members <= 1) return;
  const unsigned round = round_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    return;
  }
  // Where there are more threads than cores the others need this one's.
  for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins)
    spins < 4096 ? pause() : std::this_thread::yield();
}

bool in_forked_child() { return forked_child.load(std::memory_order_relaxed); }

#ifdef MBLAS_HAVE_OPENMP

bool in_parallel_region() { return omp_in_parallel() != 0; }

int default_threads() { return in_parallel_region() ? 1 : omp_get_max_threads(); }

bool keeps_threads() { return !in_forked_child(); }

const char* team_kind() { return keeps_threads() ? "OpenMP" : "std::thread"; }

void detail::run_team(int threads, TeamBody body, void* f) {
  FirstException exception;
  if (in_forked_child()) {
    run_std_team(threads, body, f, exception);
  } else {
#pragma omp parallel num_threads(threads)
    guarded(body, f, omp_get_thread_num(), omp_get_num_threads(), exception);
  }
  exception.rethrow();
}

#else

bool in_parallel_region() { return false; }

int default_threads() { return available_cpus(); }

bool keeps_threads() { return false; }

const char* team_kind() { return "std::thread"; }

void detail::run_team(int threads, TeamBody body, void* f) {
  FirstException exception;
  run_std_team(threads, body, f, exception);
  exception.rethrow();
}

#endif

}  // namespace mblas::cpu
