// From flags to cases: every flag that describes a call may hold several values, and a command
// stands for all their combinations.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "case.hpp"

namespace mblas::bench {

/// The flags that were given, with their texts.
using FlagTexts = std::map<std::string, std::string, std::less<>>;

/// All cases that the flags describe: sizes and strides take a value, a list a,b,c or a range
/// lo:hi:step or lo:hi:*factor (hi included), -n and -k also `m` (the same as -m); named values
/// take lists. std::invalid_argument says which flag is wrong and why.
std::vector<cases::Case> expand(std::string_view op, const FlagTexts& flags);

/// The same from one line: "gemm --type f32 -m 64 --pointers".
std::vector<cases::Case> expand_line(std::string_view line);

}  // namespace mblas::bench
