// `mblas tune`.
#pragma once

#include <string>
#include <vector>

#include "case.hpp"

namespace mblas::bench {

struct TuneOptions {
  std::vector<cases::Case> cases;
  std::vector<cases::Case> host_cases;  ///< for host backends, where not empty; `cases` for others
  std::vector<std::string> backends;    ///< as those of BenchOptions
  bool hot = false;                     ///< the same operands every time
  bool hot_host = false;                ///< the same for host_cases
  int threads = 0;                      ///< of host backends; 0: the library's choice
  int device = 0;
  int repeats = 20;        ///< samples of the finalists
  double max_seconds = 2;  ///< of a race of finalists, after which fewer samples must do
  std::string file;        ///< the file; empty: MBLAS_TUNE_FILE, else tune_file_path()
};

/// For each case and backend times every kernel in every configuration, and enters in the tune file
/// those that beat the library's choice. The file is replaced as a whole after each case. 0, or 1
/// where a result was wrong or a call failed.
int run_tune(const TuneOptions& options);

}  // namespace mblas::bench
