// Between which magnitudes the instructions that multiply bfloat16 are as good as arithmetic of
// float: they take subnormal numbers for zero and flush subnormal results, and planes of numbers
// near the largest overflow.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpu/gemm/dot.hpp"

namespace mblas::cpu {

/// Powers of two between which the magnitudes of operands must lie for the instructions to be as
/// good as native arithmetic.
struct Limits {
  int least, most;  // of an operand
  int least_sum;    // of the least of both: every product of planes is a multiple of a number
                    // that is not subnormal, and with it every sum
  int most_sum;     // of the largest of both: no sum overflows
};

inline Limits limits_of(int planes, std::int64_t k) {
  const int depth = k > 1 ? std::ilogb(double(k)) + 1 : 0;
  switch (planes) {
    case 1:  // 8 bits each: multiples of 2^-14 of the product of the powers of two
      return {-126, 127, -112, 125 - depth};
    case 2:  // of half: any finite number
      return {-126, 127, -126, 127};
    default:  // 24 bits each; rounding to a plane goes up to the next power of two
      return {-103, 126, -80, 124 - depth};
  }
}

inline int exponent(std::uint32_t bits) { return int(bits >> 23) - 127; }

inline bool native_needed(const DotRange& a, const DotRange& b, const Limits& limits) {
  const int most_a = exponent(a.most), most_b = exponent(b.most);
  if (most_a > limits.most || most_b > limits.most) return true;
  if (a.most == 0 || b.most == 0) return false;
  const int least_a = exponent(a.least), least_b = exponent(b.least);
  return least_a < limits.least || least_b < limits.least || least_a + least_b < limits.least_sum ||
         most_a + most_b > limits.most_sum;
}

/// Those of bfloat16 elements that meet others of range `other`: none at all, not
/// even 0, where these are beyond the limits themselves.
inline DotLimits limits_with(const DotRange& other, std::int64_t k) {
  if (other.most == 0) return {};
  const Limits limits = limits_of(1, k);
  const int least = exponent(other.least), most = exponent(other.most);
  if (least < limits.least || most > limits.most) return {127, -128};
  return {std::max(limits.least, limits.least_sum - least),
          std::min(limits.most, limits.most_sum - most)};
}

}  // namespace mblas::cpu
