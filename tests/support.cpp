#include "support.hpp"

#include <cctype>

namespace mblas::testing {
namespace {

constexpr int kTypes = int(DType::b16) + 1;

std::string unchanged(const cases::Problem& problem, std::span<cases::Placed> operands) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (std::string found = operands[i].fetch().check_unchanged(problem.operands()[i]);
        !found.empty())
      return "operand " + std::to_string(i) + ": " + found;
  return {};
}

}  // namespace

Result run_case(const cases::Case& c, Context& context, Queue* queue) {
  const std::unique_ptr<cases::Problem> problem = cases::prepare(c);
  cases::Run run(*problem, queue);
  try {
    run(context);
  } catch (const Error& e) {
    const std::string text = std::string(name_of(e.status())) + ": " + e.what();
    if (const std::string found = unchanged(*problem, run.operands()); !found.empty())
      return {Fate::Failed, text + "; and it changed " + found, Status::Internal};
    return {e.status() == Status::NotSupported ? Fate::Declined : Fate::Failed, text, e.status()};
  }
  const bool computed = !context.last_dispatch().backend.empty();
  const cases::Outcome outcome = run.verify();
  if (!outcome.ok) return {Fate::Failed, outcome.message};
  return {computed ? Fate::Ran : Fate::Nothing, {}};
}

void expect_error(const cases::Problem& problem, Context& context, Queue* queue, Status status,
                  std::initializer_list<std::string_view> words) {
  cases::Run run(problem, queue);
  expect_throws(status, words, [&] { run(context); });
  EXPECT_EQ(unchanged(problem, run.operands()), "");
}

std::string no_hopper() {
  Backend& cuda = find_backend("cuda");
  if (const std::string& reason = cuda.unavailable(); !reason.empty()) return reason;
  return cuda.make_queue({})->device().capability == 90 ? "" : "for compute capability 9.0";
}

std::string test_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

std::vector<std::pair<DType, DType>> gemm_pairs() {
  std::vector<std::pair<DType, DType>> pairs;
  for (int in = 0; in < kTypes; ++in)
    for (int out = 0; out < kTypes; ++out)
      if (is_gemm_pair(DType(in), DType(out))) pairs.push_back({DType(in), DType(out)});
  return pairs;
}

std::vector<DType> geam_types() {
  std::vector<DType> types;
  for (int t = 0; t < kTypes; ++t)
    if (is_geam_type(DType(t))) types.push_back(DType(t));
  return types;
}

std::vector<DType> transpose_types() {
  return {DType::b1, DType::b2, DType::b4, DType::b8, DType::b16};
}

}  // namespace mblas::testing
