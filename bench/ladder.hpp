// Tables of all kernels on one case.
#pragma once

#include <vector>

#include "report.hpp"

namespace mblas::bench {

/// For each case with several kernels a table of what they reached, and of what those of a GPU take
/// of a multiprocessor; rows of host backends on the same case beside those.
void print_ladders(const std::vector<Row>& rows);

}  // namespace mblas::bench
