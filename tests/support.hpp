// What several tests need: running a case and judging it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "mblas/mblas.hpp"
#include "problem.hpp"

namespace mblas::testing {

inline constexpr auto R = Layout::RowMajor;
inline constexpr auto N = Op::NoTrans;

/// What became of a case: Ran, Nothing (a quick return), Declined (every allowed kernel), Failed.
enum class Fate { Ran, Nothing, Declined, Failed };

struct Result {
  Fate fate = Fate::Failed;
  std::string text;            ///< the error, or what is wrong with the result
  Status status = Status::Ok;  ///< of the call; Ok with Fate::Failed: the result is wrong
};

/// Runs the case in `context` on operands in memory of `queue` (null: the host) and verifies it. A
/// case that is declined or fails must leave everything as it was; if not, status is Internal.
Result run_case(const cases::Case& c, Context& context, Queue* queue = nullptr);

/// Runs the problem and expects `status`, a message that holds every one of `words`, and operands
/// that are bit for bit what they were.
void expect_error(const cases::Problem& problem, Context& context, Queue* queue, Status status,
                  std::initializer_list<std::string_view> words);

/// f() must throw an Error of `status` whose message holds every one of `words`.
template <class F>
void expect_throws(Status status, std::initializer_list<std::string_view> words, F&& f) {
  try {
    f();
    ADD_FAILURE() << "nothing was thrown, expected " << name_of(status);
  } catch (const Error& e) {
    EXPECT_EQ(name_of(e.status()), name_of(status)) << e.what();
    for (const std::string_view word : words)
      EXPECT_NE(std::string_view(e.what()).find(word), std::string_view::npos)
          << "'" << word << "' is not in: " << e.what();
  }
}

/// Why kernels of compute capability 9.0 cannot run here; empty: they can.
std::string no_hopper();

/// `text` with what a test's name may not hold replaced.
std::string test_name(std::string text);

/// The pairs of types that gemm multiplies, the types that geam adds, those that transposes move.
std::vector<std::pair<DType, DType>> gemm_pairs();
std::vector<DType> geam_types();
std::vector<DType> transpose_types();

}  // namespace mblas::testing
