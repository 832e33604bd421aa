// What a measurement begins with: names into backends, cases into calls.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "case.hpp"
#include "mblas/backend.hpp"
#include "mblas/context.hpp"
#include "mblas/plan.hpp"
#include "peer.hpp"
#include "problem.hpp"

namespace mblas::bench {

/// Names of a backend's kernels for an operation, best first; with `configs` each is followed by
/// its configurations, as NAME:CONFIG.
std::vector<std::string> kernel_names(const Backend& backend, std::string_view op,
                                      bool configs = false);
/// The entries of comma lists.
std::vector<std::string> entries_of(const std::vector<std::string>& lists);
/// The backend of that name; Status::BackendUnavailable where it cannot run here.
Backend& runnable(std::string_view name);
/// The backends of comma lists; of none: those of MBLAS_BACKEND, else every one that can run here.
std::vector<Backend*> chosen_backends(std::vector<std::string> names);
/// Threads that the library would use: said explicitly, so that the results can tell.
int default_threads();

/// The calls that a program would write, one for each copy of the operands. One plain product is
/// called directly, as libraries are: tiny ones take no longer than what a test's descriptor needs
/// to be unwrapped.
/// `keep`: with a plan, each of them with one of its own.
std::vector<Call> calls_of(const cases::Case& resolved, std::span<cases::Run> runs,
                           Context& context, std::optional<GemmPlan::Operand> keep = {});

}  // namespace mblas::bench
