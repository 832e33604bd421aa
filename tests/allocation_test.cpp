// No allocation after the first call of a shape: counts every operator new of the process.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "support.hpp"
#include "sweep_cases.hpp"

namespace {
std::atomic<std::int64_t> count = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  ++count;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded ? rounded : alignment);
}
void* checked(void* p) { return p ? p : throw std::bad_alloc(); }
constexpr std::size_t kDefault = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
}  // namespace

void* operator new(std::size_t n) { return checked(allocate(n, kDefault)); }
void* operator new[](std::size_t n) { return checked(allocate(n, kDefault)); }
void* operator new(std::size_t n, std::align_val_t a) {
  return checked(allocate(n, std::size_t(a)));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return checked(allocate(n, std::size_t(a)));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, kDefault); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return allocate(n, kDefault);
}
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, std::size_t(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, std::size_t(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
// Not inlined: GCC would see a free() of what its own operator new had made.
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace mblas::testing {
namespace {

/// The cases whose calls, repeated, must not allocate. ReedSolomon's calls take shards that the
/// descriptor collects anew each time: they have a test of their own.
std::vector<cases::Case> all_cases() {
  std::vector<cases::Case> all;
  for (const std::string_view op : {op_name<GemmArgs>, op_name<GeamArgs>, op_name<TransposeArgs>,
                                    op_name<TransposeInplaceArgs>, op_name<Gf256Args>})
    for (const Types& types : types_of(op))
      for (const cases::Case& c : sampled_cases(op, types, 8)) {
        const auto* gf = std::get_if<cases::Gf256Case>(&c);
        if (!gf || !gf->pointers) all.push_back(c);
      }
  return all;
}

TEST(Allocations, NoneAfterTheFirstCallOfAShape) {
  for (const int threads : {1, 3}) {
    Context context("openmp");
    context.set_num_threads(threads);
    for (const cases::Case& c : all_cases()) {
      const auto problem = cases::prepare(c, 0);
      cases::Run run(*problem);
      run(context);
      const std::int64_t before = count;
      run(context);
      run(context);
      EXPECT_EQ(count - before, 0)
          << threads << " threads: " << cases::command(problem->description());
    }
  }
}

TEST(Allocations, NoneForASmallerShape) {
  Context context("openmp");
  const auto large = cases::prepare(cases::GemmCase{.m = 200, .n = 200, .k = 200}, 0);
  const auto small = cases::prepare(cases::GemmCase{.m = 70, .n = 90, .k = 50}, 0);
  cases::Run first(*large), second(*small);
  first(context);
  const std::int64_t before = count;
  second(context);
  first(context);
  EXPECT_EQ(count - before, 0);
}

TEST(Allocations, NoneInEncode) {
  const gf256::ReedSolomon code(10, 4);
  std::vector<std::uint8_t> bytes(14 * 1000);
  std::vector<const std::uint8_t*> data;
  std::vector<std::uint8_t*> parity;
  for (std::size_t i = 0; i < 14; ++i)
    i < 10 ? data.push_back(&bytes[i * 1000]) : parity.push_back(&bytes[i * 1000]);
  Context context("openmp");
  code.encode(context, data, parity, 1000);
  const std::int64_t before = count;
  code.encode(context, data, parity, 1000);
  code.update(context, 3, data[0], parity, 1000);
  EXPECT_EQ(count - before, 0);
}

}  // namespace
}  // namespace mblas::testing
