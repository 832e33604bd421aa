// Results: the table on stdout and the JSON file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "case.hpp"
#include "compare.hpp"

namespace mblas::bench {

/// Times of the best way in which the reference does the same.
struct Reference {
  std::string backend, kernel;
  double ms = 0;
};

/// One kernel on one case.
struct Row {
  cases::Case description;
  std::string backend, kernel;
  bool host_operands = false;          ///< a device backend was given host memory
  std::string skipped;                 ///< why it was not run; the rest is then meaningless
  Compute compute = Compute::Default;  ///< what was used
  double ms = 0;                       ///< median
  double mean_ms = 0, deviation_ms = 0;
  int samples = 0;
  double gflops = 0, gbps = 0;
  double copy_gbps = 0;  ///< copy bandwidth of the same memory in the same run
  std::optional<Reference> reference;
  cases::Outcome outcome;

  double ratio() const { return reference ? reference->ms / ms : 0; }
  /// Of the results file: the element type, b1 for gf256.
  std::string dtype() const;
};

/// A case in few words: "gemm f32 NT 64x64x64".
std::string label(const cases::Case& c);

void print_table_header();
void print_row(const Row& row);

struct Header {
  std::string command;  ///< as it was typed
  int threads = 0;
  std::string gpu;  ///< empty: no device backend took part
  int gpu_ordinal = 0;
  double host_copy_gbps = 0, device_copy_gbps = 0;  ///< 0: not measured
};

/// Writes {"header": {…}, "rows": […]} by way of a temporary file; std::runtime_error where it
/// cannot.
void write_json(const std::string& path, const Header& header, const std::vector<Row>& rows);
/// Replaces the file at `path` as a whole.
void write_file(const std::string& path, std::string_view content);

}  // namespace mblas::bench
