#include "report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "json.hpp"
#include "machine.hpp"
#include "mblas/backend.hpp"
#include "mblas/version.hpp"

namespace mblas::bench {
namespace {

/// The texts of a case's fields by flag.
std::map<std::string, std::string, std::less<>> texts(const cases::Case& any) {
  std::map<std::string, std::string, std::less<>> result;
  std::visit(
      [&](const auto& c) {
        c.fields(c, [&](std::string_view flag, const auto& value, std::string_view) {
          result.emplace(flag, cases::to_text(value));
        });
      },
      any);
  return result;
}

std::string versions_json(const Header& header) {
  JsonObject versions;
  versions.add("mblas", version()).add("compiler", compiler());
  for (Backend* backend : backends())
    if (backend->unavailable().empty()) versions.add(backend->name(), backend->describe());
  for (const auto& [name, description] : header.peers) versions.add(name, description);
  return versions.text();
}

std::string header_json(const Header& header) {
  const bool device = !header.gpu.empty();
  JsonObject machine, copy, peak, json;
  machine.add("cpu", cpu_model())
      .add("cores", cpu_cores())
      .add("family", cpu_info("cpu family"))
      .add("model", cpu_info("model"))
      .add("stepping", cpu_info("stepping"))
      .add("extensions", cpu_extensions())
      .add("l1d", first_level_cache())
      .add("l2", second_level_cache())
      .add("last_level", last_level_cache());
  copy.add("host", header.host_copy_gbps).add("device", header.device_copy_gbps);
  peak.add("f32", header.f32_peak_gflops)
      .add("f64", header.f64_peak_gflops)
      .add("isa", header.limits_isa);
  json.raw("machine", machine.text())
      .add("gpu", header.gpu)
      .add("driver", device ? gpu_driver() : "")
      .add("clocks", device ? gpu_clocks(header.gpu_ordinal) : "")
      .raw("versions", versions_json(header))
      .add("threads", header.threads)
      .raw("copy_gbps", copy.text())
      .raw("peak_gflops", peak.text())
      .add("huge_pages", header.huge_pages)
      .add("commit", commit())
      .add("date", date())
      .add("command", header.command);
  return json.text(2);
}

std::string row_json(const Row& row) {
  const cases::Case c = cases::resolve(row.description);
  const auto fields = texts(c);
  JsonObject json;
  const auto text = [&](std::string_view key, std::string_view flag) {
    const auto found = fields.find(flag);
    if (found == fields.end())
      json.raw(key, "null");
    else
      json.add(key, found->second);
  };
  const auto number = [&](std::string_view key, std::string_view flag) {
    const auto found = fields.find(flag);
    json.raw(key, found == fields.end() ? "null" : found->second);
  };
  json.add("op", cases::op_of(c)).add("dtype", row.dtype());
  text("out", "--out");
  json.add("compute", name_of(row.compute));
  text("layout", "--layout");
  text("transA", "--transA");
  text("transB", "--transB");
  number("m", "-m");
  number("n", "-n");
  number("k", "-k");
  if (fields.contains("--batch"))
    number("batch", "--batch");
  else
    json.add("batch", 1);
  json.add("backend", row.backend).add("kernel", row.kernel);
  if (!row.config.empty()) json.add("config", row.config);
  if (row.tuned) json.add("tuned", true);
  if (!row.kept.empty()) json.add("kept", row.kept);
  json.add("operands", row.pinned          ? "pinned"
                       : row.host_operands ? "host"
                                           : "native")
      .add("hot", row.hot);
  if (row.in_graphs) json.add("graph", true);
  if (row.threads > 0) json.add("threads", row.threads);
  if (!row.skipped.empty()) return json.add("skipped", row.skipped).text();
  json.add("ms", row.ms)
      .add("mean_ms", row.mean_ms)
      .add("deviation_ms", row.deviation_ms)
      .add("samples", row.samples)
      .add("gflops", row.gflops)
      .add("gbps", row.gbps);
  if (row.reference) {
    json.add("reference", row.reference->backend)
        .add("reference_kernel", row.reference->kernel)
        .add("reference_ms", row.reference->ms)
        .add("ratio", row.ratio());
  } else {
    json.raw("reference", "null").raw("reference_ms", "null").raw("ratio", "null");
  }
  std::vector<std::string> peers;
  for (const Reference& peer : row.peers)
    peers.push_back(JsonObject()
                        .add("name", peer.backend)
                        .add("kernel", peer.kernel)
                        .add("ms", peer.ms)
                        .add("raced", peer.raced)
                        .add("max_error", peer.max_error)
                        .text());
  json.raw("peers", fmt::format("[{}]", fmt::join(peers, ", ")));
  if (!row.launches.empty()) {
    std::vector<std::string> launches;
    for (const Launch& launch : row.launches)
      launches.push_back(JsonObject()
                             .raw("grid", fmt::format("[{}]", fmt::join(launch.grid, ", ")))
                             .raw("block", fmt::format("[{}]", fmt::join(launch.block, ", ")))
                             .add("registers", launch.registers)
                             .add("shared_bytes", launch.shared_bytes)
                             .add("occupancy", launch.occupancy)
                             .text());
    json.raw("launches", fmt::format("[{}]", fmt::join(launches, ", ")));
  }
  if (row.peak_gflops > 0)
    json.add("peak_gflops", row.peak_gflops).add("peak_ratio", row.peak_ratio());
  if (row.link_ms > 0) json.add("link_ms", row.link_ms).add("link_ratio", row.link_ratio());
  if (row.tables_gbps > 0)
    json.add("tables_gbps", row.tables_gbps).add("tables_ratio", row.tables_ratio());
  json.add("copy_ratio", row.gbps / row.copy_gbps)
      .add("error", row.outcome.max_error)
      .add("bound", row.outcome.bound)
      .add("worst_ratio", row.outcome.worst_ratio)
      .add("sampled", row.outcome.sampled)
      .add("ok", row.outcome.ok)
      .add("command", cases::command(c));
  return json.text();
}

}  // namespace

std::string Row::dtype() const {
  const auto fields = texts(cases::resolve(description));
  const auto type = fields.find("--type");
  return type == fields.end() ? "b1" : type->second;
}

std::int64_t Row::batch() const {
  return std::visit(
      [](const auto& c) -> std::int64_t {
        if constexpr (requires { c.batch; })
          return c.batch;
        else
          return 1;
      },
      description);
}

std::string label(const cases::Case& any) {
  return std::visit(
      [](const auto& c) {
        using C = std::remove_cvref_t<decltype(c)>;
        std::string text(C::kOp);
        if constexpr (requires { c.out; }) {
          text += fmt::format(" {}", name_of(c.in));
          if (c.out != c.in && c.in != DType::i8) text += fmt::format(">{}", name_of(c.out));
        } else if constexpr (requires { c.type; }) {
          text += fmt::format(" {}", name_of(c.type));
        }
        if constexpr (requires { c.transA; })
          text += fmt::format(" {}{}", char(c.transA), char(c.transB));
        if constexpr (requires { c.layout; })
          if (c.layout == Layout::ColMajor) text += " colmajor";
        text += fmt::format(" {}x{}", c.m, c.n);
        if constexpr (requires { c.k; }) text += fmt::format("x{}", c.k);
        if constexpr (requires { c.batch; })
          if (c.batch != 1) text += fmt::format(" x{}", c.batch);
        if constexpr (requires { c.compute; })
          if (c.compute != Compute::Default) text += fmt::format(" {}", name_of(c.compute));
        if constexpr (requires { c.tolerance; })
          if (c.tolerance != 0) text += fmt::format(" {:g}", c.tolerance);
        if constexpr (requires { c.data; })
          if (c.data != cases::Data::Uniform) text += " " + cases::to_text(c.data);
        if constexpr (requires { c.pointers; })
          if (c.pointers) text += " pointers";
        if constexpr (requires { c.alias; })
          if (c.alias != cases::Alias::None) text += fmt::format(" C={}", char(c.alias));
        return text;
      },
      any);
}

void print_table_header() {
  fmt::print("{:<44} {:<8} {:<12} {:>10} {:>9} {:>9} {:>8} {:>6} {:>6} {:>7} {:>9}  {}\n", "case",
             "backend", "kernel", "ms", "+-", "GFLOP/s", "GB/s", "copy", "peak", "ratio",
             "err/bound", "");
}

namespace {
/// "  vs blis 0.81, openblas 1.02": the ratio to each where there are several. Limits of the case
/// alike.
std::string ratios_text(const Row& row) {
  std::string text;
  if (row.link_ms > 0) text += fmt::format("  {:.2f} of the link", row.link_ratio());
  if (row.tables_gbps > 0) text += fmt::format("  {:.2f} of tables", row.tables_ratio());
  if (row.peers.size() < 2) return text;
  for (const Reference& peer : row.peers)
    text += fmt::format("{} {} {:.2f}", &peer == &row.peers[0] ? "  vs" : ",", peer.backend,
                        peer.ms / row.ms);
  return text;
}
}  // namespace

void print_row(const Row& row) {
  fmt::print("{:<44} {:<8} {:<12} ", label(row.description), row.backend,
             row.config.empty() ? row.kernel : fmt::format("{}:{}", row.kernel, row.config));
  if (!row.skipped.empty()) {
    fmt::print("{}\n", row.skipped);
  } else {
    const auto cell = [](bool shown, const char* format, double v) {
      return shown ? fmt::format(fmt::runtime(format), v) : std::string("-");
    };
    // Times of a few nanoseconds need more digits.
    const auto time = [](double ms) { return fmt::format("{:.{}f}", ms, ms < 0.01 ? 6 : 4); };
    fmt::print("{:>10} {:>9} {:>9} {:>8.1f} {:>6} {:>6} {:>7} {:>9}  {}{}\n", time(row.ms),
               time(row.deviation_ms), cell(row.gflops > 0, "{:.1f}", row.gflops), row.gbps,
               cell(row.copy_gbps > 0, "{:.2f}", row.gbps / row.copy_gbps),
               cell(row.peak_gflops > 0, "{:.2f}", row.peak_ratio()),
               cell(row.reference.has_value(), "{:.3f}", row.ratio()),
               cell(row.outcome.bound > 0, "{:.2g}", row.outcome.worst_ratio),
               row.outcome.ok ? "ok" : "FAILED: " + row.outcome.message, ratios_text(row));
  }
  std::fflush(stdout);
}

void print_summary(const std::vector<Row>& rows) {
  struct Group {
    int count = 0;
    double log_sum = 0, worst = 0;
    const Row* at = nullptr;
    void add(const Row& row) {
      ++count;
      log_sum += std::log(row.ratio());
      if (at && row.ratio() >= worst) return;
      worst = row.ratio();
      at = &row;
    }
    void print(std::string_view name) const {
      fmt::print("{:<44} {:>4} rows  geometric mean {:>7.3f}  worst {:>7.3f}: {}, {}\n", name,
                 count, std::exp(log_sum / count), worst, label(at->description), at->kernel);
    }
  };
  std::map<std::string, Group> groups;
  Group all;
  for (const Row& row : rows) {
    if (!row.skipped.empty() || !row.reference) continue;
    std::string name =
        fmt::format("{} {} {}", row.backend, cases::op_of(row.description), row.dtype());
    if (row.compute != Compute::Default) name += fmt::format(" {}", name_of(row.compute));
    if (row.batch() > 1) name += ", batches";
    groups[name].add(row);
    all.add(row);
  }
  if (all.count < 2) return;
  fmt::print("\nRatios\n");
  for (const auto& [name, group] : groups) group.print(name);
  if (groups.size() > 1) all.print("all");
}

void write_file(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".part";
  std::ofstream file(temporary, std::ios::binary);
  file << content << std::flush;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path, error);
  if (!file || error)
    throw std::runtime_error(
        fmt::format("cannot write {}{}{}", path, error ? ": " : "", error.message()));
}

void write_json(const std::string& path, const Header& header, const std::vector<Row>& rows) {
  std::vector<std::string> lines;
  for (const Row& row : rows) lines.push_back(row_json(row));
  write_file(
      path,
      JsonObject().raw("header", header_json(header)).raw("rows", json_array(lines, 2)).text(0) +
          "\n");
}

}  // namespace mblas::bench
