#include "plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <variant>

namespace mblas::bench {
namespace {

constexpr double kWidth = 1000, kLeft = 380, kRight = 40, kTop = 70, kBar = 14;
constexpr double kChartHeight = 460, kChartLeft = 90;
constexpr const char* kColours[] = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
                                    "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

class Svg {
 public:
  void text(double x, double y, const std::string& what, const char* anchor = "start",
            int size = 11, const char* extra = "") {
    fmt::format_to(
        std::back_inserter(body_),
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" text-anchor=\"{}\" {}>{}</text>\n", x, y,
        size, anchor, extra, escaped(what));
  }
  void line(double x1, double y1, double x2, double y2, const char* colour, double width = 1) {
    fmt::format_to(std::back_inserter(body_),
                   "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
                   "stroke-width=\"{}\"/>\n",
                   x1, y1, x2, y2, colour, width);
  }
  void bar(double x, double y, double width, double height, const char* colour) {
    fmt::format_to(
        std::back_inserter(body_),
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
        width, height, colour);
  }
  void dot(double x, double y, const char* colour, const std::string& title) {
    fmt::format_to(std::back_inserter(body_),
                   "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" fill-opacity=\"0.8\">"
                   "<title>{}</title></circle>\n",
                   x, y, colour, escaped(title));
  }
  std::string document(double height) const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0} {1:.0f}\" font-family=\"sans-serif\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{2}</svg>\n",
        kWidth, height, body_);
  }

 private:
  std::string body_;
};

/// A colour for each backend and kernel, in the order in which they appear.
class Colours {
 public:
  const char* of(const Row& row) {
    const auto [it, added] = index_.try_emplace(row.backend + " " + row.kernel, index_.size());
    return kColours[it->second % std::size(kColours)];
  }
  void legend(Svg& svg, double x, double y) const {
    for (const auto& [name, index] : index_) {
      const double at = y + 16 * double(index);
      svg.bar(x, at - 9, 10, 10, kColours[index % std::size(kColours)]);
      svg.text(x + 15, at, name);
    }
  }
  double height() const { return 16 * double(index_.size()); }

 private:
  std::map<std::string, std::size_t> index_;
};

double bar_chart(Svg& svg, const std::vector<const Row*>& rows, Colours& colours) {
  const bool against = std::any_of(rows.begin(), rows.end(), [](auto* r) { return r->reference; });
  const auto value = [&](const Row& row) {
    return against ? row.ratio() : row.copy_gbps > 0 ? row.gbps / row.copy_gbps : 0;
  };
  double most = 1.1;
  for (const Row* row : rows) most = std::max(most, value(*row));
  const double scale = (kWidth - kLeft - kRight) / most;
  const double bottom = kTop + (kBar + 2) * double(rows.size());
  svg.text(kWidth / 2, 24,
           against ? "Speed relative to the reference" : "Bandwidth relative to a copy", "middle",
           16);
  svg.text(kLeft + (kWidth - kLeft - kRight) / 2, bottom + 34,
           against ? "reference time / time (above 1 is faster)" : "GB/s over copy GB/s", "middle");
  svg.text(kLeft - 8, kTop - 8, "case, backend, kernel", "end");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = *rows[i];
    const double y = kTop + (kBar + 2) * double(i);
    svg.text(kLeft - 8, y + kBar - 3,
             fmt::format("{}, {} {}", label(row.description), row.backend, row.kernel), "end", 10);
    svg.bar(kLeft, y, value(row) * scale, kBar, row.outcome.ok ? colours.of(row) : "#000000");
    svg.text(kLeft + value(row) * scale + 4, y + kBar - 3, fmt::format("{:.2f}", value(row)),
             "start", 10);
  }
  const double step = most <= 3 ? 0.5 : std::ceil(most / 6);
  for (double tick = 0; tick <= most; tick += step) {
    svg.line(kLeft + tick * scale, bottom, kLeft + tick * scale, bottom + 4, "black");
    svg.text(kLeft + tick * scale, bottom + 17, fmt::format("{}", tick), "middle", 10);
  }
  svg.line(kLeft, kTop, kLeft, bottom, "black");
  svg.line(kLeft, bottom, kWidth - kRight, bottom, "black");
  svg.line(kLeft + scale, kTop, kLeft + scale, bottom, "#888888");
  return bottom + 60;
}

struct Point {
  double x, y;
  const char* colour;
  std::string title, label;
};

/// Points between decades of both quantities.
struct LogChart {
  double x0 = 1e300, x1 = -1e300, y0 = 1e300, y1 = -1e300;  ///< logarithms
  double left = kChartLeft, right = kWidth - 260, up, down;

  LogChart(const std::vector<Point>& points, double top) : up(top + 50), down(up + kChartHeight) {
    const auto above = [](double v) { return std::ceil(std::log10(v) + 1e-9); };
    for (const Point& p : points) {
      x0 = std::min(x0, std::floor(std::log10(p.x)));
      x1 = std::max(x1, above(p.x));
      y0 = std::min(y0, std::floor(std::log10(p.y)));
      y1 = std::max(y1, above(p.y));
    }
  }
  double x(double log) const { return left + (log - x0) / (x1 - x0) * (right - left); }
  double y(double log) const { return down - (log - y0) / (y1 - y0) * (down - up); }

  void axes(Svg& svg, const char* title, const char* of_x, const char* of_y) const {
    svg.text(kWidth / 2, up - 26, title, "middle", 16);
    for (double d = x0; d <= x1; ++d) {
      svg.line(x(d), up, x(d), down, "#dddddd");
      svg.text(x(d), down + 16, fmt::format("{:g}", std::pow(10, d)), "middle", 10);
    }
    for (double d = y0; d <= y1; ++d) {
      svg.line(left, y(d), right, y(d), "#dddddd");
      svg.text(left - 6, y(d) + 4, fmt::format("{:g}", std::pow(10, d)), "end", 10);
    }
    svg.text((left + right) / 2, down + 36, of_x, "middle");
    svg.text(0, 0, of_y, "middle", 11,
             fmt::format("transform=\"translate({:.0f},{:.0f}) rotate(-90)\"", left - 60,
                         (up + down) / 2)
                 .c_str());
  }
  void draw(Svg& svg, const std::vector<Point>& points) const {
    for (const Point& p : points) {
      const double at_x = x(std::log10(p.x)), at_y = y(std::log10(p.y));
      svg.dot(at_x, at_y, p.colour, p.title);
      if (!p.label.empty()) svg.text(at_x + 7, at_y + 4, p.label, "start", 10);
    }
  }
};

double roofline(Svg& svg, const std::vector<const Row*>& rows, Colours& colours, double top) {
  std::vector<Point> points;
  double copy = 0;
  for (const Row* row : rows) {
    const double flops = cases::flops(row->description), bytes = cases::bytes(row->description);
    if (!(flops > 0) || !(bytes > 0)) continue;
    points.push_back({flops / bytes, row->gflops, colours.of(*row),
                      fmt::format("{}, {} {}: {:.1f} GFLOP/s", label(row->description),
                                  row->backend, row->kernel, row->gflops),
                      ""});
    copy = std::max(copy, row->copy_gbps);
  }
  if (points.empty()) return top;
  const LogChart chart(points, top);
  chart.axes(svg, "Roofline", "operations per byte", "GFLOP/s");
  if (copy > 0) {  // rate = intensity × bandwidth, where that is inside the axes
    const double roof = std::log10(copy);
    const double from = std::max(chart.x0, chart.y0 - roof),
                 to = std::min(chart.x1, chart.y1 - roof);
    if (from < to) {
      const double x = chart.x(from), y = chart.y(from + roof);
      svg.line(x, y, chart.x(to), chart.y(to + roof), "#444444", 2);
      svg.text(x + 8, y - 8, fmt::format("copy, {:.0f} GB/s", copy));
    }
  }
  chart.draw(svg, points);
  colours.legend(svg, chart.right + 24, chart.up + 10);
  return std::max(chart.down + 60, chart.up + colours.height() + 40);
}

/// Where products were computed in several modes: each mode's, and the references'.
double error_chart(Svg& svg, const std::vector<const Row*>& rows, Colours& colours, double top) {
  std::vector<Point> points;
  std::set<Compute> modes;
  for (const Row* row : rows) {
    const auto* product = std::get_if<cases::GemmCase>(&row->description);
    if (!product || !(row->outcome.max_error > 0)) continue;
    modes.insert(row->compute);
    std::string mode = fmt::format("{} {}", name_of(product->in), name_of(row->compute));
    if (product->tolerance > 0) mode += fmt::format(" {:g}", product->tolerance);
    const auto title = [&](std::string_view who, double rate, double error) {
      return fmt::format("{}, {}: {:.0f} GFLOP/s, {:.2g}", label(row->description), who, rate,
                         error);
    };
    points.push_back({row->gflops, row->outcome.max_error, colours.of(*row),
                      title(row->kernel, row->gflops, row->outcome.max_error), mode});
    if (!row->reference || !(row->reference->max_error > 0)) continue;
    const double rate = row->gflops / row->ratio();
    points.push_back({rate, row->reference->max_error, "#000000",
                      title(row->reference->backend, rate, row->reference->max_error), ""});
  }
  if (modes.size() < 2) return top;
  const LogChart chart(points, top);
  chart.axes(svg, "Error against speed (black: the reference)", "GFLOP/s", "largest error");
  chart.draw(svg, points);
  return chart.down + 60;
}

}  // namespace

void write_plot(const std::string& path, const std::vector<Row>& all) {
  std::vector<const Row*> rows;
  for (const Row& row : all)
    if (row.skipped.empty()) rows.push_back(&row);
  Svg svg;
  Colours colours;
  double height = bar_chart(svg, rows, colours);
  height = roofline(svg, rows, colours, height);
  height = error_chart(svg, rows, colours, height);
  write_file(path, svg.document(height));
}

}  // namespace mblas::bench
