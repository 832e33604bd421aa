#include "host_limits.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

#include "machine.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace mblas::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Seconds from the moment when all threads are ready until the last has done its share; starting
/// and joining them does not count.
double time_team(int threads, const std::function<void(int)>& body) {
  std::atomic<int> ready = 0;
  std::atomic<bool> go = false;
  std::vector<Clock::time_point> done(static_cast<std::size_t>(threads));
  const auto work = [&](int t) {
    ready.fetch_add(1);
    while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
    body(t);
    done[std::size_t(t)] = Clock::now();
  };
  std::vector<std::jthread> team;
  for (int t = 1; t < threads; ++t) team.emplace_back(work, t);
  while (ready.load() < threads - 1) std::this_thread::yield();
  const Clock::time_point start = Clock::now();
  go.store(true, std::memory_order_release);
  work(0);
  team.clear();
  return std::chrono::duration<double>(*std::max_element(done.begin(), done.end()) - start).count();
}

// ---------------------------------------------------------------------------------------------------
// Multiply-adds. More accumulators than the latency times the number of units, and fewer than
// registers.

/// Runs `steps` rounds of independent multiply-adds; returns operations done.
using FmaLoop = double (*)(std::int64_t steps);

/// Keeps the compiler from dropping or foreseeing what is in a vector register.
#ifdef __x86_64__
#define MBLAS_KEEP(x) asm volatile("" : "+v"(x))
#else
#define MBLAS_KEEP(x) asm volatile("" : "+m"(x))
#endif

#define MBLAS_FMA_LOOP(name, attributes, vector, count, fma)           \
  attributes double name(std::int64_t steps) {                         \
    using Element = std::remove_cvref_t<decltype(vector{}[0])>;        \
    constexpr auto kLanes = double(sizeof(vector) / sizeof(Element));  \
    vector sum[count], x, y;                                           \
    for (std::size_t i = 0; i < sizeof(vector) / sizeof(Element); ++i) \
      x[i] = Element(0.5), y[i] = Element(0.25);                       \
    for (auto& s : sum) s = y;                                         \
    MBLAS_KEEP(x);                                                     \
    MBLAS_KEEP(y);                                                     \
    for (std::int64_t step = 0; step < steps; ++step) {                \
      _Pragma("GCC unroll 32") for (auto& s : sum) s = fma;            \
      _Pragma("GCC unroll 32") for (auto& s : sum) MBLAS_KEEP(s);      \
    }                                                                  \
    return 2 * kLanes * (count) * double(steps);                       \
  }

typedef float F4 __attribute__((vector_size(16)));
typedef double D2 __attribute__((vector_size(16)));
MBLAS_FMA_LOOP(fma_generic_f32, , F4, 10, s* x + y)
MBLAS_FMA_LOOP(fma_generic_f64, , D2, 10, s* x + y)
#ifdef __x86_64__
#define MBLAS_AVX2 __attribute__((target("avx2,fma")))
#define MBLAS_AVX512 __attribute__((target("avx512f")))
MBLAS_FMA_LOOP(fma_avx2_f32, MBLAS_AVX2, __m256, 12, _mm256_fmadd_ps(s, x, y))
MBLAS_FMA_LOOP(fma_avx2_f64, MBLAS_AVX2, __m256d, 12, _mm256_fmadd_pd(s, x, y))
MBLAS_FMA_LOOP(fma_avx512_f32, MBLAS_AVX512, __m512, 24, _mm512_fmadd_ps(s, x, y))
MBLAS_FMA_LOOP(fma_avx512_f64, MBLAS_AVX512, __m512d, 24, _mm512_fmadd_pd(s, x, y))
#endif

// ---------------------------------------------------------------------------------------------------
// Copies. Four streams at a time, of a page each, keep more of the memory's banks busy than one.

constexpr std::size_t kPage = 4096, kLine = 64, kStreams = 4;

/// Copies whole groups of four pages.
using CopyLoop = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

#define MBLAS_COPY_LOOP(name, attributes, vector, load, stream)                   \
  attributes void name(std::byte* to, const std::byte* from, std::size_t bytes) { \
    for (std::size_t group = 0; group < bytes; group += kStreams * kPage)         \
      for (std::size_t at = group; at < group + kPage; at += kLine)               \
        for (std::size_t i = at; i < at + kStreams * kPage; i += kPage)           \
          for (std::size_t part = i; part < i + kLine; part += sizeof(vector))    \
            stream(reinterpret_cast<vector*>(to + part),                          \
                   load(reinterpret_cast<const vector*>(from + part)));           \
    _mm_sfence();                                                                 \
  }

#ifdef __x86_64__
MBLAS_COPY_LOOP(copy_sse2, , __m128i, _mm_load_si128, _mm_stream_si128)
MBLAS_COPY_LOOP(copy_avx2, MBLAS_AVX2, __m256i, _mm256_load_si256, _mm256_stream_si256)
MBLAS_COPY_LOOP(copy_avx512, MBLAS_AVX512, __m512i, _mm512_load_si512, _mm512_stream_si512)
#endif
void copy_plain(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

struct Isa {
  std::string_view name, title;  ///< as in MBLAS_ARCH, where it may be longer, and for people
  bool supported;
  FmaLoop f32, f64;
  CopyLoop copy;
};

const Isa& isa() {
  static const Isa isas[] = {
#ifdef __x86_64__
      {"avx512", "AVX-512", bool(__builtin_cpu_supports("avx512f")), fma_avx512_f32, fma_avx512_f64,
       copy_avx512},
      {"avx2", "AVX2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
       fma_avx2_f32, fma_avx2_f64, copy_avx2},
      {"generic", "SSE2", true, fma_generic_f32, fma_generic_f64, copy_sse2},
#else
      {"generic", "128-bit vectors", true, fma_generic_f32, fma_generic_f64, copy_plain},
#endif
  };
  const char* const arch = std::getenv("MBLAS_ARCH");
  std::string_view forced = arch ? arch : "";
  if (forced == "amx") forced = "avx512";
  for (const Isa& candidate : isas)
    if (candidate.supported && (forced.empty() || forced.starts_with(candidate.name)))
      return candidate;
  return *std::prev(std::end(isas));
}

/// Memory as mmap gives it.
class Pages {
 public:
  Pages(std::size_t bytes, bool huge)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    if (huge) madvise(data_, bytes, MADV_HUGEPAGE);
    std::memset(data_, 1, bytes);
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  std::byte* get() const { return static_cast<std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

constexpr std::size_t kLeastCopied = std::size_t(16) << 20;
constexpr int kCopySamples = 8;
constexpr double kPeakSeconds = 1e-3;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

std::string limits_isa() { return std::string(isa().title); }

double multiply_add_peak(DType type, int threads) {
  const FmaLoop loop = type == DType::f32 ? isa().f32 : isa().f64;
  static std::int64_t steps = 0;  // as many as take the time, found once
  if (steps == 0) {
    for (std::int64_t n = 1000;; n *= 2) {
      if (const double seconds = time_team(1, [&](int) { loop(n); }); seconds > kPeakSeconds / 4) {
        steps = std::max<std::int64_t>(1000, std::int64_t(double(n) * kPeakSeconds / seconds));
        break;
      }
    }
  }
  std::vector<double> operations(static_cast<std::size_t>(threads));
  const double seconds =
      time_team(threads, [&](int t) { operations[std::size_t(t)] = loop(steps); });
  double total = 0;
  for (const double one : operations) total += one;
  return total / seconds / 1e9;
}

double copy_bandwidth(int threads, bool huge_pages, std::size_t bytes) {
  constexpr std::size_t kGroup = kStreams * kPage;
  const std::size_t group = kGroup * std::size_t(threads);
  const std::size_t total = (std::min(bytes, memory_available() / 8) + group - 1) / group * group;
  const std::size_t share = total / std::size_t(threads);
  // Small ones several times, as long as it takes to time them.
  const auto repeats = int(std::max<std::size_t>(1, kLeastCopied / total));
  const Pages from(total, huge_pages), to(total, huge_pages);
  std::vector<CopyLoop> loops{isa().copy, copy_plain};
#ifdef __x86_64__
  if (isa().copy != copy_sse2) loops.push_back(copy_sse2);
#endif
  double best = 0;
  for (const CopyLoop loop : loops) {
    std::vector<double> seconds;
    for (int i = 0; i < kCopySamples; ++i)
      seconds.push_back(time_team(threads, [&](int t) {
        const std::size_t at = std::size_t(t) * share;
        for (int r = 0; r < repeats; ++r) loop(to.get() + at, from.get() + at, share);
      }));
    best = std::max(best, 2 * double(total) * repeats / median(seconds) / 1e9);
  }
  return best;
}

}  // namespace mblas::bench
