// What the rows of the table `whole_batch` and `tensor_batch` have in common.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/config_list.hpp"
#include "cuda/gemm/whole_plan.hpp"
#include "mblas/backend.hpp"

namespace mblas::cuda::whole {

inline constexpr double kCyclesPerMicrosecond = 1980;

/// "8x4x2": sizes, each once, with numbers of products of a block.
template <class Size>
ConfigList<Config> configs_of(std::initializer_list<std::span<const Size>> sizes,
                              std::span<const int> groups) {
  std::vector<Config> known;
  for (const auto& some : sizes)
    for (const Size& size : some)
      if (std::ranges::none_of(known, [&](const Config& other) {
            return other.rows == size.rows && other.cols == size.cols;
          }))
        known.push_back({size.rows, size.cols});
  ConfigList<Config> all;
  for (const auto& [rows, cols, none] : known)
    for (const int group : groups)
      all.add({rows, cols, group},
              std::to_string(rows) + "x" + std::to_string(cols) + "x" + std::to_string(group));
  return all;
}

/// The configuration, if it is of the shape's type and fits: of a group of 0 else.
template <class Shape>
Config fitting(const Config& config, const Shape& shape) {
  const bool is_of_type = std::ranges::any_of(shape.sizes(), [&](const auto& size) {
    return size.rows == config.rows && size.cols == config.cols;
  });
  return is_of_type && shape.fits(config) ? config : Config{};
}

/// What estimates were made of.
inline bool is_strided_batch(const GemmArgs& args) {
  return args.batch >= 2 && !args.A.pointers && !args.B.pointers && !args.C.pointers;
}

}  // namespace mblas::cuda::whole
