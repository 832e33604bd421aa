// How simt_tma shares out the tiles of a product, and an estimate of its time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cuda/gemm/estimates.hpp"

namespace mblas::cuda::gemm::tma32 {

/// The sides of a tile; k of a step.
inline constexpr int kSideS = 128, kSideH = 256, kDepth = 16;

struct Shape {
  std::int64_t s, h, k, batch;  ///< the sides of S and H in C
  int units;
  bool along_k;   ///< H is
  bool swapped;   ///< H is op(A)
  double memory;  ///< bytes a second that it can deliver
};

/// Whether the tiles after the last full round are cut along k, so that all blocks end together.
struct Config {
  bool cut;
};

/// `tiles` 0: there is none.
struct Plan {
  std::int64_t tiles = 0, whole = 0, ranges = 0, steps = 0;
  double part_bytes = 0;
  double microseconds = std::numeric_limits<double>::infinity();
};

inline Plan plan_of(const Shape& x, const Config& config) {
  // Cycles of 1.98 GHz.
  constexpr double kMegahertz = 1980;
  constexpr double kStart = 5000;                       // of a launch
  constexpr double kEnds = 12000, kTurnedEnds = 17000;  // of a tile, in which C is written
  constexpr double kStep = 4780, kStepAlongK = 4875;
  // Of cut tiles' parts: bytes that all blocks write a cycle; of the kernel that adds them up,
  // which writes so many elements.
  constexpr double kPartBytes = 1800, kSecondKernel = 5000, kElements = 500;
  constexpr int kLeastSteps = 4;  // of a range
  constexpr double kMostPartBytes = 256 << 20;
  constexpr double kMost = 1 << 30;  // tiles; steps of a block, and those that are cut

  Plan plan;
  const std::int64_t tiles_s = divide_up(x.s, kSideS), tiles_h = divide_up(x.h, kSideH);
  const double tiles = double(tiles_s) * double(tiles_h) * double(x.batch);
  plan.steps = divide_up(x.k, kDepth);
  if (tiles > kMost || (tiles / x.units + 1) * double(plan.steps) > kMost) return plan;
  const std::int64_t all = tiles_s * tiles_h * x.batch;
  plan.whole = config.cut ? all / x.units * x.units : all;
  const std::int64_t left = all - plan.whole;
  const double step = x.along_k ? kStepAlongK : kStep;
  const double ends = x.along_k && !x.swapped ? kTurnedEnds : kEnds;
  double cycles = double(divide_up(plan.whole, x.units)) * (double(plan.steps) * step + ends);
  if (config.cut) {
    plan.ranges = std::min<std::int64_t>(x.units, left * plan.steps / kLeastSteps);
    if (plan.ranges <= left || double(left * plan.steps) > kMost) return Plan{};
    plan.part_bytes = 2.0 * double(plan.ranges) * kSideS * kSideH * 4;
    if (plan.part_bytes > kMostPartBytes) return Plan{};
    constexpr double kElementsOfTile = kSideS * kSideH;
    cycles += double(divide_up(left * plan.steps, plan.ranges)) * step + ends + kSecondKernel +
              double(plan.ranges + left) * kElementsOfTile * 4 / kPartBytes +
              double(left) * kElementsOfTile / kElements;
  }
  const double bytes =
      4 * double(x.batch) * (double(x.s + x.h) * double(x.k) + double(x.s) * double(x.h));
  plan.microseconds = (kStart + std::max(cycles, bytes / x.memory * 1e6 * kMegahertz)) / kMegahertz;
  plan.tiles = all;
  return plan;
}

/// The plan that takes least; the configuration's where that is given.
inline Plan choose(const Shape& x, const Config* only = nullptr) {
  Plan best;
  for (const bool cut : {false, true}) {
    if (only && only->cut != cut) continue;
    const Plan plan = plan_of(x, {cut});
    if (plan.microseconds < best.microseconds) best = plan;
  }
  return best;
}

}  // namespace mblas::cuda::gemm::tma32
