// How many rows and columns a thread of `whole_batch` has, and how many products a block: an
// estimate of clock cycles for each, of which the least is taken. docs/BENCHMARKING.md holds it
// against measurements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "cuda/gemm/whole_plan.hpp"

namespace mblas::cuda::whole_batch {

using whole::Config;
using whole::Share;

/// By the registers that a thread's sums take.
constexpr Share share_of(int words) {
  return words > 36 ? Share{256, 2} : words > 16 ? Share{384, 2} : Share{512, 2};
}

inline constexpr int kGroups[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128};

/// What operands run along: both across k, X along it, both along it.
enum class Majors { Across, XAlong, Along };

/// What threads have, by type, operands in vectors or not.
struct Size {
  int rows, cols;
  double rate[3];  ///< multiply-adds of a multiprocessor full of warps in a cycle, by Majors
};
inline constexpr Size kFloatVectors[] = {
    {8, 8, {122, 95, 109}}, {8, 4, {148, 102, 103}}, {4, 4, {137, 107, 94}}};
inline constexpr Size kFloats[] = {
    {8, 8, {84, 100, 103}}, {6, 6, {110, 104, 103}}, {4, 4, {81, 85, 88}}};
inline constexpr Size kComplexVectors[] = {{8, 4, {123, 108, 102}}, {4, 4, {106, 118, 108}}};
inline constexpr Size kComplexes[] = {{8, 4, {97, 91, 115}}, {4, 4, {93, 91, 105}}};

struct Shape {
  std::int64_t length = 0, count = 0, k = 0, batch = 0;  ///< lines of X and Y
  bool vectors = false;                                  ///< operands are read by vectors
  bool direct = false;                                   ///< C is written by them
  Majors majors = Majors::XAlong;
  int element_bytes = 0;
  int products = 1;                                    ///< real ones of an element's
  std::int64_t x_bytes = 0, y_bytes = 0, c_bytes = 0;  ///< that a matrix takes in shared memory
  /// Copies that bring a product's operands row by row, and that write its results.
  std::int64_t copies_in = 0, copies_out = 0;
  std::int64_t shared_bytes = 0;  ///< of a multiprocessor
  int processors = 1;

  std::span<const Size> sizes() const {
    if (products == 1) return vectors ? std::span<const Size>(kFloatVectors) : kFloats;
    return vectors ? std::span<const Size>(kComplexVectors) : kComplexes;
  }
  /// Threads of a product, along X's lines and along Y's.
  int down(const Config& c) const { return of_lines(length, c.rows, majors == Majors::Across); }
  int across(const Config& c) const { return of_lines(count, c.cols, majors != Majors::Along); }
  std::int64_t threads(const Config& c) const {
    return divide_up(std::int64_t(down(c)) * across(c) * c.group, 32) * 32;
  }
  /// Where Y begins, and all that a block takes: room for what comes before a multiple of 16 bytes,
  /// and for what lanes beyond the last lines read.
  std::int64_t y_begin(const Config& c) const { return c.group * x_bytes + kEnds; }
  std::int64_t bytes(const Config& c) const {
    return std::max(y_begin(c) + c.group * y_bytes + kEnds + kBeyond, c.group * c_bytes + kEnds);
  }
  Share share(const Config& c) const { return share_of(c.rows * c.cols * element_bytes / 4); }
  /// Whether a block can have it.
  bool fits(const Config& c) const {
    return threads(c) <= share(c).threads && bytes(c) <= shared_bytes && c.group <= batch;
  }

 private:
  static constexpr std::int64_t kEnds = 64, kBeyond = 128;

  /// How many have up to `each` lines; those that lie across k are dealt out in vectors.
  int of_lines(std::int64_t lines, int each, bool across_k) const {
    const int vector = vectors && across_k ? 16 / element_bytes : 1;
    return int(divide_up(divide_up(lines, vector), each / vector));
  }
};

// Fitted, as rates and what all blocks take, to 11,500 times of 1,390 batches of 8 to 160,000 on an
// H200, within graphs: 15 % off, and what is chosen 2.5 % from the fastest of the configurations
// measured.
inline constexpr whole::Pace kPace = {3040, 69, 102, 0.383, 0.76, 2062};

inline double cycles_of(const Shape& s, const Config& c, double rate) {
  constexpr double kFewWarps = 6.6;  // with as many rates are half
  const double threads = double(s.threads(c)), warps = threads / 32;
  const double products = threads * c.rows * c.cols * double(s.k) * s.products;
  const double elements = double((s.length + s.count) * s.k + s.length * s.count);
  const whole::Load load = whole::load_of(s, c, elements * s.element_bytes * double(s.batch));
  return whole::cycles_of(load, kPace, products / rate, [&](double blocks) {
    return products * (blocks * warps + kFewWarps) / (rate * warps);
  });
}

inline whole::Choice choose(const Shape& s) {
  return whole::least(s, kGroups, [&](const Size& size) {
    return [&s, rate = size.rate[int(s.majors)]](const Config& c) { return cycles_of(s, c, rate); };
  });
}

}  // namespace mblas::cuda::whole_batch
