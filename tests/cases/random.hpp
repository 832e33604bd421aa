// A small counter-based random generator: every line of a matrix has a stream of its own, so
// filling in parallel gives the same data as filling in order.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "mblas/types.hpp"

namespace mblas::cases {

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(mix(seed + 0x9e3779b97f4a7c15u) ^ mix(stream * 0xd1342543de82ef95u + 1)) {}

  std::uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  /// In [0, 1).
  double unit() { return double(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * unit(); }
  /// In [0, n).
  std::int64_t below(std::int64_t n) { return std::int64_t(bits() % std::uint64_t(n)); }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

/// What random operands look like.
enum class Data : std::uint8_t {
  Uniform,   ///< [-1, 1]; integers: their whole range
  Positive,  ///< (0, 1]: nothing cancels; integers: not negative
  Wide,      ///< magnitudes over most of the exponents whose products still fit
  Integers,  ///< integers in [-4, 4], exact in every type
  Special,   ///< Uniform with a NaN or an infinity in about one element of 300
  Tiny,      ///< zeros of both signs, subnormals and the smallest normal numbers among Uniform
  /// Of products of float or double: A's (i - 0.1 j + 1) / (i + j + 1), B's (j - 0.2 i + 1)
  /// (i + j + 1) / (i² + j² + 1), both after op; elsewhere Uniform
  Formulas,
  Normal,  ///< of mean 0 and deviation 1; integers: their whole range
  /// Of products of float or double: Uniform, of op(A) rows times 2^100, 1 and 2^-100 in turn
  Scaled,
  /// Likewise: in sums, pairs of products that differ in a last bit of B and in their signs
  Cancelling,
};

}  // namespace mblas::cases
