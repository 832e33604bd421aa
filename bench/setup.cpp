#include "setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "element_types.hpp"
#include "machine.hpp"
#include "mblas/mblas.hpp"
#include "scalars.hpp"

namespace mblas::bench {
namespace {

template <class Args>
std::vector<std::string> names(const Backend& backend, bool configs) {
  std::vector<std::string> list;
  for (const Kernel<Args>& kernel : backend.kernels<Args>()) {
    list.emplace_back(kernel.name);
    if (!configs) continue;
    for (const std::string_view config : kernel.configs)
      list.push_back(fmt::format("{}:{}", kernel.name, config));
  }
  return list;
}

}  // namespace

std::vector<std::string> kernel_names(const Backend& backend, std::string_view op, bool configs) {
  if (op == op_name<GemmArgs>) return names<GemmArgs>(backend, configs);
  if (op == op_name<GeamArgs>) return names<GeamArgs>(backend, configs);
  if (op == op_name<TransposeArgs>) return names<TransposeArgs>(backend, configs);
  if (op == op_name<TransposeInplaceArgs>) return names<TransposeInplaceArgs>(backend, configs);
  return names<Gf256Args>(backend, configs);
}

Backend& runnable(std::string_view name) {
  Backend& backend = find_backend(name);
  if (!backend.unavailable().empty())
    throw Error(Status::BackendUnavailable,
                fmt::format("backend {} cannot run here: {}", name, backend.unavailable()));
  return backend;
}

int default_threads() {
  for (const char* name : {"MBLAS_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const char* value = std::getenv(name); value && std::atoi(value) > 0)
      return std::atoi(value);
  return cpu_cores();
}

std::vector<std::string> entries_of(const std::vector<std::string>& lists) {
  std::vector<std::string> entries;
  for (std::string_view rest : lists) {
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (comma > 0) entries.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return entries;
}

std::vector<Backend*> chosen_backends(std::vector<std::string> names) {
  const char* environment = std::getenv("MBLAS_BACKEND");
  if (names.empty() && environment && *environment && environment != std::string_view("auto"))
    names = {environment};
  std::vector<Backend*> list;
  for (const std::string& name : entries_of(names)) list.push_back(&runnable(name));
  if (names.empty())
    for (Backend* backend : backends())
      if (backend->unavailable().empty()) list.push_back(backend);
  return list;
}

std::vector<Call> calls_of(const cases::Case& resolved, std::span<cases::Run> runs,
                           Context& context, std::optional<GemmPlan::Operand> keep) {
  std::vector<Call> calls;
  const auto* gemm = std::get_if<cases::GemmCase>(&resolved);
  for (cases::Run& run : runs) {
    if (!gemm || gemm->batch != 1 || gemm->pointers) {
      calls.push_back([&run, &context] { run(context); });
      continue;
    }
    cases::visit_gemm_types(
        gemm->in, gemm->out,
        [&]<class TA, class TC>(std::type_identity<TA>, std::type_identity<TC>) {
          using S = scalar_t<TA, TC>;
          const auto at = run.operands();
          GemmOptions options = cases::options_of(*gemm, at);
          const auto plan = keep ? std::make_shared<GemmPlan>(*keep) : nullptr;
          options.plan = plan.get();
          calls.push_back([&context, c = *gemm, alpha = cases::scalar<S>(gemm->alpha),
                           beta = cases::scalar<S>(gemm->beta),
                           A = static_cast<const TA*>(at[0].at()),
                           B = static_cast<const TA*>(at[1].at()),
                           C = static_cast<TC*>(at.back().at()), options, plan] {
            mblas::gemm(context, c.layout, c.transA, c.transB, c.m, c.n, c.k, alpha, A, c.lda, B,
                        c.ldb, beta, C, c.ldc, options);
          });
          if (plan) calls.back()();  // fills it
        });
  }
  return calls;
}

}  // namespace mblas::bench
