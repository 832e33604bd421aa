// Several threads, parallel regions of the program's own, and fork.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "child.hpp"
#include "support.hpp"
#include "sweep_cases.hpp"

namespace mblas::testing {
namespace {

std::vector<cases::Case> mixed_cases() {
  std::vector<cases::Case> all;
  for (const std::string_view op : {op_name<GemmArgs>, op_name<GeamArgs>, op_name<TransposeArgs>,
                                    op_name<TransposeInplaceArgs>, op_name<Gf256Args>})
    for (const Types& types : types_of(op))
      for (cases::Case& c : sampled_cases(op, types, 6)) all.push_back(std::move(c));
  return all;
}

std::vector<std::string> host_backends() {
  std::vector<std::string> names;
  for (Backend* backend : backends())
    if (backend->memory() == Memory::Host && backend->unavailable().empty())
      names.emplace_back(backend->name());
  return names;
}

TEST(Threads, EachWithAContextOfItsOwn) {
  const std::vector<cases::Case> all = mixed_cases();
  std::vector<std::string> failures(6);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < failures.size(); ++t)
    threads.emplace_back([&, t] {
      Context context(host_backends()[t % host_backends().size()]);
      for (std::size_t i = t; i < all.size() && failures[t].empty(); i += 2)
        if (const Result result = run_case(all[i], context); result.fate == Fate::Failed)
          failures[t] = cases::command(cases::resolve(all[i])) + ": " + result.text;
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

/// Small products on the default context; false where one is wrong.
bool compute_here(int times = 20) {
  const std::int64_t side = 70;
  const std::vector<double> A(std::size_t(side * side), 1), B(std::size_t(side * side), 2);
  std::vector<double> C(std::size_t(side * side));
  for (int i = 0; i < times; ++i) {
    C.assign(C.size(), 5);
    gemm(R, N, N, side, side, side, 1, A.data(), side, B.data(), side, 1, C.data(), side);
    for (const double c : C)
      if (c != 5 + 2 * double(side)) return false;
  }
  return true;
}

TEST(Threads, DefaultContextsComeAndGoWithTheirThreads) {
  std::atomic<int> right = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) threads.emplace_back([&] { right += compute_here(2); });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(right, 80);
}

TEST(Threads, DefaultContextsAreApart) {
  default_context().set_num_threads(1);
  default_context().set_workspace_limit(123);
  std::string_view error = "none";
  const Context* other = nullptr;
  std::thread([&] {
    other = &default_context();
    error = default_context().last_error();
    EXPECT_EQ(error, "");
  }).join();
  EXPECT_NE(other, &default_context());
  default_context() = Context();
}

#ifdef _OPENMP
TEST(Threads, InsideAParallelRegion) {
  std::atomic<int> right = 0;
#pragma omp parallel num_threads(4)
  right += compute_here(5);
  EXPECT_EQ(right, 4);
}

TEST(Threads, TheProgramsThreadCountIsLeftAlone) {
  const int before = omp_get_max_threads();
  for (const std::string& name : host_backends()) {
    Context context(name);
    context.set_num_threads(before + 3);
    EXPECT_EQ(run_case(cases::GemmCase{.m = 300, .n = 300, .k = 300}, context).fate, Fate::Ran);
    EXPECT_EQ(omp_get_max_threads(), before) << name;
  }
}
#endif

#ifndef MBLAS_TEST_SANITIZED  // sanitizers hang in the children of programs with threads
TEST(Fork, AChildComputesAfterItsParentUsedThreads) {
  ASSERT_TRUE(compute_here());
  Context context("openmp");
  context.set_num_threads(4);
  ASSERT_EQ(run_case(cases::GemmCase{.m = 400, .n = 400, .k = 400}, context).fate, Fate::Ran);
  const auto child = [] {
    for (const std::string& name : host_backends()) {
      Context own(name);
      own.set_num_threads(3);
      if (run_case(cases::GemmCase{.m = 300, .n = 200, .k = 400}, own).fate != Fate::Ran) return 2;
    }
    return compute_here() ? 0 : 1;
  };
  EXPECT_EQ(run_in_child(child, 30), 0);
  EXPECT_TRUE(compute_here()) << "the parent, afterwards";
}

TEST(Fork, AContextOfTheParentWorksInTheChild) {
  static Context context("openmp");
  context.set_num_threads(4);
  const cases::GemmCase c{.m = 300, .n = 200, .k = 400};
  ASSERT_EQ(run_case(c, context).fate, Fate::Ran);
  EXPECT_EQ(
      run_in_child(
          [] {
            return int(run_case(cases::GemmCase{.m = 300, .n = 200, .k = 400}, context).fate !=
                       Fate::Ran);
          },
          30),
      0);
}

TEST(Fork, AChildOfAChild) {
  ASSERT_TRUE(compute_here());
  EXPECT_EQ(run_in_child(
                [] {
                  if (!compute_here()) return 1;
                  return run_in_child([] { return int(!compute_here()); }, 20);
                },
                30),
            0);
}
#endif

TEST(Threads, ManyMoreThanProcessors) {
  for (const std::string& name : host_backends()) {
    Context context(name);
    context.set_num_threads(40);
    for (const cases::Case& c : mixed_cases()) {
      const Result result = run_case(c, context);
      EXPECT_NE(result.fate, Fate::Failed) << cases::command(cases::resolve(c)) << result.text;
    }
  }
}

}  // namespace
}  // namespace mblas::testing
