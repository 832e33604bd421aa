// Child processes: the environment is read once a process, and some things must not happen in ours.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace mblas::testing {

struct Finished {
  int exit_code = -1;  ///< -1: did not end by itself (signal, or the time was over)
  std::string out, err;
};

/// Runs a program with the variables of `environment` and without any other MBLAS_ or OMP_ one;
/// where those do not say otherwise, without a tune file.
Finished run_program(const std::vector<std::string>& command,
                     const std::map<std::string, std::string>& environment, int seconds = 60);

/// Forks, runs f in the child and returns its exit status: what f returns; -1 as above. f must not
/// use GoogleTest.
int run_in_child(int (*f)(), int seconds = 60);

}  // namespace mblas::testing
