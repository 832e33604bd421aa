#include "survey.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace mblas::bench {
namespace {

/// How large products are.
struct Range {
  int side_bits, batch_side_bits;  ///< sides are below two to the power of this
  double operations;               ///< multiply-adds of a call, at most
  double elements;                 ///< of all operands of a call, at most
};
constexpr Range kDevice{13, 9, 3e10, 1e8}, kHost{11, 7, 4e8, 1e7};
constexpr int kBatchBits = 12;
constexpr int kOfEachKind = 12;

constexpr std::string_view kDeviceTypes[] = {
    "f32", "f32 --compute pedantic", "f32 --compute tf32", "f64", "cf32", "cf64", "bf16", "f16",
    "i8"};
constexpr std::string_view kHostTypes[] = {"f32", "f64", "cf32", "cf64", "bf16", "i8"};

enum class Kind { Single, Thin, Batch };
constexpr Kind kKinds[] = {Kind::Single, Kind::Thin, Kind::Batch};

class Draw {
 public:
  explicit Draw(const Range& range) : range_(range) {}

  std::string product(std::string_view type, Kind kind) {
    for (;;) {
      std::array<std::int64_t, 3> size{};
      for (std::int64_t& s : size)
        s = kind == Kind::Batch ? about(2, range_.batch_side_bits) : about(4, range_.side_bits);
      if (kind == Kind::Thin) {  // in one or two ways
        size[std::size_t(below(3))] = 1 + below(48);
        if (below(3) == 0) size[std::size_t(below(3))] = 1 + below(48);
      }
      const std::int64_t batch = kind == Kind::Batch ? about(3, kBatchBits) : 1;
      const auto [m, n, k] = size;
      const double each = double(m) * double(n) * double(k);
      const double elements = double(m * n + m * k + k * n);
      if (each * double(batch) > range_.operations || elements * double(batch) > range_.elements)
        continue;
      std::string line = fmt::format("gemm --type {} -m {} -n {} -k {}", type, m, n, k);
      if (batch > 1) line += fmt::format(" --batch {}", batch);
      if (below(2)) line += " --transA T";
      if (below(2)) line += " --transB T";
      return line;
    }
  }

 private:
  /// Integers only, so that every standard library draws the same.
  std::int64_t below(std::int64_t n) { return std::int64_t(random_() % std::uint64_t(n)); }
  /// From 2^low to 2^high, each power of two as likely as the next.
  std::int64_t about(int low, int high) {
    const std::int64_t least = std::int64_t{1} << (low + below(high - low));
    return least + below(least);
  }

  const Range& range_;
  std::mt19937_64 random_{20261128};
};

std::vector<std::string> draw(bool host) {
  Draw next(host ? kHost : kDevice);
  std::vector<std::string> lines;
  const auto add = [&](std::span<const std::string_view> types) {
    for (const std::string_view type : types)
      for (const Kind kind : kKinds)
        for (int i = 0; i < kOfEachKind; ++i) lines.push_back(next.product(type, kind));
  };
  host ? add(kHostTypes) : add(kDeviceTypes);
  return lines;
}

}  // namespace

std::span<const std::string_view> survey(bool host) {
  struct Lines {
    explicit Lines(bool host) : text(draw(host)), views(text.begin(), text.end()) {}
    std::vector<std::string> text;
    std::vector<std::string_view> views;
  };
  static const Lines device(false), own(true);
  return host ? own.views : device.views;
}

}  // namespace mblas::bench
