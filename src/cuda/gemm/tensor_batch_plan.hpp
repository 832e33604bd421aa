// How many rows and columns a warp of `tensor_batch` has, and how many products a block: an
// estimate of clock cycles for each, of which the least is taken. docs/BENCHMARKING.md holds it
// against measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "cuda/gemm/whole_plan.hpp"

namespace mblas::cuda::tensor_batch {

using whole::Config;
using whole::Share;

/// By the registers that a thread's sums take; complex ones are multiplied by way of others.
constexpr Share share_of(int rows, int cols, int element_bytes) {
  const int words = rows * cols / 32 * std::max(element_bytes, 4) / 4;
  if (element_bytes == 2)
    return {words > 64 ? 384 : words > 44 ? 512 : words > 32 ? 640 : words > 24 ? 768 : 1024, 1};
  return words > 60                          ? Share{384, 1}
         : words > 48                        ? Share{512, 1}
         : words > 40 && element_bytes == 16 ? Share{256, 2}
         : words > 28                        ? Share{320, 2}
                                             : Share{512, 2};
}

/// Bytes of zeros before operands of halves, and how far beyond a row their lanes read.
inline constexpr int kZeros = 160, kBeyond = 160;

inline constexpr int kGroups[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64};

/// What warps have, by type.
struct Size {
  int rows, cols;
};
inline constexpr Size kSizes[] = {{16, 8},  {16, 16}, {16, 24}, {16, 32}, {16, 40}, {16, 56},
                                  {32, 16}, {32, 24}, {32, 32}, {48, 16}, {48, 24}, {64, 16}};
inline constexpr Size kFloatSizes[] = {{16, 16}, {16, 24}, {16, 40}, {16, 56}, {32, 16}, {32, 24},
                                       {32, 32}, {32, 40}, {48, 24}, {48, 40}, {64, 24}, {64, 32}};
inline constexpr Size kHalfSizes[] = {{16, 16}, {16, 24}, {16, 32}, {16, 40}, {16, 56}, {16, 72},
                                      {32, 16}, {32, 32}, {32, 40}, {32, 48}, {48, 48}, {64, 32}};
inline constexpr Size kComplexSizes[] = {{16, 8}, {16, 16}, {16, 24}, {32, 8}, {32, 16}, {48, 8}};

/// What a type's products take, in cycles of 1.98 GHz.
struct Rates {
  whole::Pace pace;
  double put;       ///< an instruction that writes a warp's results
  double mma;       ///< one of 16 rows and 8 columns
  double lines;     ///< how long a warp reads eight lines for it
  double read = 0;  ///< of shared memory: see choose()
};

// Fitted to 6,960 times of 1,130 batches of 20 to 160,000 on an H200, within graphs: 12 % off
// (f64), 11 % (halves), 7 % (cf64) and 13 % (TF32), and what is chosen 0.6 (cf64) to 2.9 % (TF32)
// from the fastest of the configurations measured.
inline constexpr Rates kDoubleRates = {{1855, 27, 116, 0, 0.84, 2080}, 0.74, 3.1, 17};
inline constexpr Rates kComplexRates = {{2245, 13.5, 38, 0.148, 0.655, 2472}, 6.5, 3.05, 44};
inline constexpr Rates kTf32Rates = {{2466, 16, 105, 0.347, 0.548, 2362}, 1.8, 1.91, 9.6};
inline constexpr Rates kHalfRates = {{4075, 45, 65.6, 0.52, 0.4765, 3158}, 1.2, 0.5, 0, 0.548};

struct Shape {
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  int element_bytes = 0, c_element_bytes = 0;          ///< of operands, of results
  int products = 1;                                    ///< real ones of an element's
  std::int64_t a_bytes = 0, b_bytes = 0, c_bytes = 0;  ///< that a matrix takes in shared memory
  /// Copies that bring a product's operands, and that write its results.
  std::int64_t copies_in = 0, copies_out = 0;
  std::int64_t shared_bytes = 0;  ///< of a multiprocessor
  int processors = 1;

  std::span<const Size> sizes() const {
    return element_bytes == 2   ? std::span<const Size>(kHalfSizes)
           : element_bytes == 4 ? std::span<const Size>(kFloatSizes)
           : products == 1      ? std::span<const Size>(kSizes)
                                : kComplexSizes;
  }
  int depth() const { return element_bytes == 2 ? 16 : element_bytes == 4 ? 8 : 4; }  ///< of a step
  /// Warps of a product, along C's columns and along its rows.
  int down(const Config& c) const { return int(divide_up(m, c.rows)); }
  int across(const Config& c) const { return int(divide_up(n, c.cols)); }
  std::int64_t threads(const Config& c) const {
    return std::int64_t(down(c)) * across(c) * c.group * 32;
  }
  /// Where A and B begin, and all that a block takes: room for what comes before a multiple of 16
  /// bytes.
  std::int64_t a_begin() const { return element_bytes == 2 ? kZeros : 0; }
  std::int64_t b_begin(const Config& c) const { return a_begin() + c.group * a_bytes + kEnds; }
  std::int64_t bytes(const Config& c) const {
    const std::int64_t beyond = element_bytes == 2 ? kBeyond : 0;
    return std::max(b_begin(c) + c.group * b_bytes + kEnds + beyond, c.group * c_bytes + kEnds);
  }
  Share share(const Config& c) const { return share_of(c.rows, c.cols, element_bytes); }
  bool fits(const Config& c) const {
    return threads(c) <= share(c).threads && bytes(c) <= shared_bytes && c.group <= batch;
  }

 private:
  static constexpr std::int64_t kEnds = 64;
};

/// `reads`: see choose().
inline double cycles_of(const Shape& s, const Config& c, const Rates& r, double reads) {
  const double warps = double(s.threads(c)) / 32;
  const double steps = double(divide_up(s.k, s.depth()));
  const double tiles = double(c.rows * c.cols) / 128, lines = c.rows / 8 + c.cols / 8;
  const double mma = tiles * s.products * r.mma;
  // Of a block: reading for a step, writing.
  const double read = warps * reads * r.read, put = warps * tiles * 4 * r.put;
  const double bytes =
      double((s.m + s.n) * s.k) * s.element_bytes + double(s.m * s.n) * s.c_element_bytes;
  const whole::Load load = whole::load_of(s, c, bytes * double(s.batch));
  const double each = steps * (warps * mma + read) + put;
  return whole::cycles_of(load, r.pace, each, [&](double blocks) {
    // Each quarter of a multiprocessor has its own tensor cores.
    const double quarter = 4 * std::ceil(blocks * warps / 4);
    return steps * (lines * r.lines + quarter * mma + blocks * read) + blocks * put;
  });
}

/// reads_of(configuration): how often a warp reads shared memory for a step.
template <class ReadsOf>
whole::Choice choose(const Shape& s, const Rates& rates, ReadsOf&& reads_of) {
  return whole::least(s, kGroups, [&](const Size& size) {
    return [&, reads = reads_of(Config{size.rows, size.cols, 1})](const Config& c) {
      return cycles_of(s, c, rates, reads);
    };
  });
}

}  // namespace mblas::cuda::tensor_batch
