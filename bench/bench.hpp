// `mblas bench`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "case.hpp"
#include "mblas/plan.hpp"

namespace mblas::bench {

struct BenchOptions {
  std::string command;  ///< as it was typed, for the results file
  std::vector<cases::Case> cases;
  std::vector<cases::Case> host_cases;  ///< for host backends, where not empty; `cases` for others
  bool is_suite = false;                ///< a case that a backend cannot do is then no failure
  std::vector<std::string> backends;    ///< empty: MBLAS_BACKEND, else every one that can run here
  std::string kernel;                   ///< a name, `all`, or empty: the library's choice
  /// What is raced against: names of backends, cblas:PATH, onednn:PATH, isal:PATH; each may be a
  /// comma list.
  std::vector<std::string> versus;
  bool ladder = false;  ///< also asks what kernels take of a GPU, and prints tables of a case
  bool host = false;    ///< device backends get operands in host memory
  bool pinned = false;  ///< and that memory pinned
  bool graphs = false;  ///< calls on a device are timed as CUDA graphs of several
  std::optional<GemmPlan::Operand> keep;  ///< which operand the calls of gemm keep in a plan
  bool hot = false;         ///< the same operands every time, so that small ones stay in cache
  bool hot_host = false;    ///< the same for host_cases
  bool huge_pages = false;  ///< large operands in host memory ask for huge pages
  int threads = 0;          ///< of host backends and peers; 0: the library's choice
  int device = 0;
  int repeats = 20;
  double max_seconds = 0;  ///< of a kernel and case; 0: 30, and 4 for host_cases
  std::string json, plot;  ///< files to write; empty: none
};

/// Runs, verifies, times and reports the cases. 0, or 1 where a result was wrong or a call failed.
/// Throws mblas::Error for backends and kernels that do not exist or cannot run here.
int run_bench(const BenchOptions& options);

}  // namespace mblas::bench
