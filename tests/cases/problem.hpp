// A case with its operands and its expected result (Problem), and a place where it is run (Run):
//
//   const std::unique_ptr<Problem> problem = prepare(case);     // once, whatever it is run on
//   Run run(*problem, queue);                                   // operands copied there; null:
//   host run(context);                                               // the public function const
//   Outcome outcome = run.verify();
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "case.hpp"
#include "compare.hpp"
#include "mblas/context.hpp"
#include "mblas/gemm.hpp"

namespace mblas::cases {

class Problem {
 public:
  virtual ~Problem() = default;

  /// The resolved case.
  const Case& description() const { return case_; }
  /// Initial content of the operands; the last one is written by the call.
  std::span<const Buffer> operands() const { return operands_; }

  /// Calls the public function on operands placed somewhere.
  virtual void call(Context& context, std::span<const Placed> at) const = 0;
  /// Compares the result with the expected one; checks that inputs, guards and padding are
  /// unchanged.
  Outcome verify(std::span<Placed> at) const;
  Outcome verify_result(std::span<Placed> at) const;

 protected:
  explicit Problem(Case c) : case_(std::move(c)) {}
  virtual void compare_result(const Buffer& result, Outcome& outcome) const = 0;
  virtual std::string check_untouched(const Buffer& result) const;

  Case case_;
  std::vector<Buffer> operands_;
};

/// Fills the operands and computes the expected result: every element where that takes at most
/// `full_up_to` multiply-adds, else a sample (select_blocks()). Transposes are always compared
/// whole. std::invalid_argument where no public function takes the case's types.
std::unique_ptr<Problem> prepare(const Case& c, double full_up_to = 0x1p25);

/// The operands of a problem in one memory. The problem and the queue must outlive it.
class Run {
 public:
  explicit Run(const Problem& problem, Queue* queue = nullptr);
  /// Each operand in guarded pages of its own, which must outlive this object.
  Run(const Problem& problem, std::span<GuardedPages> pages, Flush flush);

  /// Calls the public function; throws what it throws.
  void operator()(Context& context) { problem_->call(context, operands_); }
  /// Puts the initial content back into the operand that calls write.
  void reset() { operands_.back().reset(problem_->operands().back()); }
  /// Calls before must have completed, or have been issued to the stream of this run's queue.
  Outcome verify() { return problem_->verify(operands_); }
  /// Likewise; the elements of the result alone, not what calls must leave as it is.
  Outcome verify_result() { return problem_->verify_result(operands_); }

  std::span<Placed> operands() { return operands_; }

 private:
  const Problem* problem_;
  std::vector<Placed> operands_;
};

/// Of the case's call on operands placed somewhere.
GemmOptions options_of(const GemmCase& c, std::span<const Placed> at);

// One per operation, in gemm_problem.cpp …
std::unique_ptr<Problem> prepare_case(const GemmCase& c, double full_up_to);
std::unique_ptr<Problem> prepare_case(const GeamCase& c, double full_up_to);
std::unique_ptr<Problem> prepare_case(const TransposeCase& c, double full_up_to);
std::unique_ptr<Problem> prepare_case(const TransposeInplaceCase& c, double full_up_to);
std::unique_ptr<Problem> prepare_case(const Gf256Case& c, double full_up_to);

}  // namespace mblas::cases
