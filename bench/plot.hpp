// Charts of the results.
#pragma once

#include <string>
#include <vector>

#include "report.hpp"

namespace mblas::bench {

/// Two charts in one SVG file: the ratio to the reference of each case (to the copy bandwidth where
/// there was no reference), and a roofline, arithmetic intensity against rate, under the bandwidth
/// of the copy.
void write_plot(const std::string& path, const std::vector<Row>& rows);

}  // namespace mblas::bench
