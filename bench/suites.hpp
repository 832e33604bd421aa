// Named collections of cases.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "case.hpp"

namespace mblas::bench {

struct Suite {
  std::string_view name;
  std::string_view description;
  std::string_view
      kernels;  ///< what --kernel is where it is not given; empty: the library's choice
  int repeats;  ///< likewise --repeats
  std::vector<std::string_view> lines;  ///< commands, each standing for one or more cases
  /// In their place on host backends, which are fit for other sizes; empty: the same.
  std::vector<std::string_view> host_lines = {};
  bool hot_host = false;         ///< host_lines run on the same operands every time
  bool ladder = false;           ///< what --ladder is where it is not given
  std::string_view versus = {};  ///< likewise --vs, where that can run here
};

std::span<const Suite> suites();
/// std::invalid_argument lists the suites.
const Suite& find_suite(std::string_view name);
std::vector<cases::Case> cases_of(std::span<const std::string_view> lines);

}  // namespace mblas::bench
