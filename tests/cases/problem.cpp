#include "problem.hpp"

#include <variant>

namespace mblas::cases {

Outcome Problem::verify_result(std::span<Placed> at) const {
  Outcome outcome;
  compare_result(at.back().fetch(), outcome);
  return outcome;
}

Outcome Problem::verify(std::span<Placed> at) const {
  Outcome outcome;
  const Buffer& result = at.back().fetch();
  compare_result(result, outcome);
  if (const std::string found = check_untouched(result); !found.empty())
    outcome.fail("written outside the result: " + found);
  for (std::size_t i = 0; i + 1 < at.size(); ++i)
    if (const std::string found = at[i].fetch().check_unchanged(operands_[i]); !found.empty())
      outcome.fail("input " + std::to_string(i) + " changed: " + found);
  return outcome;
}

std::string Problem::check_untouched(const Buffer& result) const {
  return result.check_untouched(operands_.back());
}

std::unique_ptr<Problem> prepare(const Case& any, double full_up_to) {
  return std::visit([&](const auto& c) { return prepare_case(resolve(c), full_up_to); }, any);
}

Run::Run(const Problem& problem, Queue* queue) : problem_(&problem) {
  operands_.reserve(problem.operands().size());
  for (const Buffer& operand : problem.operands()) operands_.emplace_back(operand, queue);
}

Run::Run(const Problem& problem, std::span<GuardedPages> pages, Flush flush) : problem_(&problem) {
  const std::span<const Buffer> operands = problem.operands();
  operands_.reserve(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i)
    operands_.emplace_back(operands[i], pages[i], flush, i + 1 == operands.size());
}

}  // namespace mblas::cases
