#include "ladder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "problem.hpp"

namespace mblas::bench {
namespace {

std::string times(const std::array<int, 3>& dims) {
  return dims[2] > 1 ? fmt::format("({},{},{})", dims[0], dims[1], dims[2])
                     : fmt::format("({},{})", dims[0], dims[1]);
}

template <class T>
std::string cell(bool known, const char* format, T value) {
  return known ? fmt::format(fmt::runtime(format), value) : "-";
}

void print_ladder(const std::vector<const Row*>& rows) {
  const Row& first = *rows.front();
  int samples = 0;
  for (const Row* row : rows) samples = std::max(samples, row->samples);
  fmt::print("\n{}: at most {} runs, mean and standard deviation\n", label(first.description),
             samples);
  fmt::print("{:<26} {:>16} {:>12} {:>11} {:>9} {:>9} {:>8} {:>6} {:>9} {:>5} {:>7} {:>9}\n",
             "kernel", "grid", "block", "ms", "+-", "GFLOP/s", "GB/s", "copy", "reference", "regs",
             "shared", "occupancy");
  for (const Row* row : rows) {
    const bool launched = !row->launches.empty();
    const Launch launch = launched ? row->launches.front() : Launch{};
    fmt::print(
        "{:<26} {:>16} {:>12} {:>11.4f} {:>9.4f} {:>9} {:>8.1f} {:>6} {:>9} {:>5} {:>7} {:>9}\n",
        fmt::format("{} {}", row->backend, row->kernel), launched ? times(launch.grid) : "-",
        launched ? times(launch.block) : "-", row->mean_ms, row->deviation_ms,
        cell(row->gflops > 0, "{:.1f}", row->gflops), row->gbps,
        cell(row->copy_gbps > 0, "{:.3f}", row->gbps / row->copy_gbps),
        cell(row->reference.has_value(), "{:.3f}", row->ratio()),
        cell(launched, "{}", launch.registers), cell(launched, "{}", launch.shared_bytes),
        cell(launched, "{:.2f}", launch.occupancy));
  }
}

}  // namespace

void print_ladders(const std::vector<Row>& rows) {
  std::vector<std::pair<std::string, std::vector<const Row*>>> tables;
  for (const Row& row : rows) {
    if (!row.skipped.empty()) continue;
    const std::string command = cases::command(cases::resolve(row.description));
    auto table = std::ranges::find(tables, command, [](const auto& t) { return t.first; });
    if (table == tables.end()) table = tables.insert(tables.end(), {command, {}});
    table->second.push_back(&row);
  }
  for (auto& [command, table] : tables) {
    if (table.size() < 2) continue;
    // As one climbs: the slowest first.
    std::ranges::stable_sort(table, std::greater(), [](const Row* row) { return row->mean_ms; });
    print_ladder(table);
  }
}

}  // namespace mblas::bench
