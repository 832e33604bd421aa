// `mblas bench`.
#pragma once

#include <string>
#include <vector>

#include "case.hpp"

namespace mblas::bench {

struct BenchOptions {
  std::string command;  ///< as it was typed, for the results file
  std::vector<cases::Case> cases;
  bool is_suite = false;              ///< a case that a backend cannot do is then no failure
  std::vector<std::string> backends;  ///< empty: MBLAS_BACKEND, else every one that can run here
  std::string kernel;                 ///< a name, `all`, or empty: the library's choice
  std::string versus;                 ///< backend of the reference; empty: none
  bool host = false;                  ///< device backends get operands in host memory
  bool hot = false;  ///< the same operands every time, so that small ones stay in cache
  int threads = 0;   ///< 0: the library's choice
  int device = 0;
  int repeats = 20;
  double max_seconds = 30;
  std::string json, plot;  ///< files to write; empty: none
};

/// Runs, verifies, times and reports the cases. 0, or 1 where a result was wrong or a call failed.
/// Throws mblas::Error for backends and kernels that do not exist or cannot run here.
int run_bench(const BenchOptions& options);

}  // namespace mblas::bench
