// Results: the table on stdout and the JSON file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "case.hpp"
#include "compare.hpp"
#include "mblas/launches.hpp"

namespace mblas::bench {

/// Time of the best way in which a reference does the same.
struct Reference {
  std::string backend, kernel;
  double ms = 0;
  bool raced = true;  ///< else it was so slow in a trial that its time is of that
  double max_error = 0;
};

/// One kernel on one case.
struct Row {
  cases::Case description;
  std::string backend, kernel;
  std::string config;                  ///< of the kernel, where one was forced or tuned
  bool tuned = false;                  ///< kernel and configuration are the tune file's
  bool host_operands = false;          ///< a device backend was given host memory
  bool pinned = false;                 ///< which was pinned
  bool in_graphs = false;              ///< the calls of a sample were one CUDA graph
  std::string kept;                    ///< A or B: which operand a plan kept; else empty
  std::string skipped;                 ///< why it was not run; the rest is then meaningless
  Compute compute = Compute::Default;  ///< what was used
  double ms = 0;                       ///< median
  double mean_ms = 0, deviation_ms = 0;
  int samples = 0;
  double gflops = 0, gbps = 0;
  double copy_gbps = 0;    ///< copy bandwidth of the same memory in the same run
  double link_ms = 0;      ///< of pinned operands' way to a device and back alone; 0: not measured
  double tables_gbps = 0;  ///< what tables in shared memory would allow; 0: does not apply
  double peak_gflops = 0;  ///< of multiply-adds of the type during the same race; 0: not measured
  int threads = 0;         ///< of a host backend
  bool hot = false;        ///< the same operands every time
  std::optional<Reference> reference;  ///< the fastest of the peers
  std::vector<Reference> peers;        ///< everything that was raced against
  std::vector<Launch> launches;        ///< of a call on a GPU, where asked for
  cases::Outcome outcome;

  double ratio() const { return reference ? reference->ms / ms : 0; }
  double link_ratio() const { return link_ms / ms; }
  double tables_ratio() const { return tables_gbps > 0 ? gbps / tables_gbps : 0; }
  double peak_ratio() const { return peak_gflops > 0 ? gflops / peak_gflops : 0; }
  /// Of the results file: the element type, b1 for gf256.
  std::string dtype() const;
  std::int64_t batch() const;
};

/// A case in few words: "gemm f32 NT 64x64x64".
std::string label(const cases::Case& c);

void print_table_header();
void print_row(const Row& row);
/// The geometric mean of the ratios, and the worst one, of each operation and type.
void print_summary(const std::vector<Row>& rows);

struct Header {
  std::string command;  ///< as it was typed
  int threads = 0;
  std::string gpu;  ///< empty: no device backend took part
  int gpu_ordinal = 0;
  double host_copy_gbps = 0, device_copy_gbps = 0;  ///< 0: not measured
  double f32_peak_gflops = 0, f64_peak_gflops = 0;  ///< of the host; 0: not measured
  std::string limits_isa;                           ///< what those were measured with
  bool huge_pages = false;
  std::vector<std::pair<std::string, std::string>> peers;  ///< names, versions and files
};

/// Writes {"header": {…}, "rows": […]} by way of a temporary file; std::runtime_error where it
/// cannot.
void write_json(const std::string& path, const Header& header, const std::vector<Row>& rows);
/// Replaces the file at `path` as a whole.
void write_file(const std::string& path, std::string_view content);

}  // namespace mblas::bench
