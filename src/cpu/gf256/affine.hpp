// A product with a coefficient of GF(2^8) as a matrix of bits.
#pragma once

#include <cstdint>

#include "core/gf256_field.hpp"

namespace mblas::cpu {

/// The 8×8 matrix that takes the bits of x to those of c x, as GF2P8AFFINEQB has it: byte 7 - i is
/// row i, and bit j of a byte its column j.
constexpr std::uint64_t gf256_matrix(std::uint8_t c, unsigned poly) {
  std::uint64_t matrix = 0;
  for (int column = 0; column < 8; ++column) {
    const std::uint64_t product = gf256::detail::gf_multiply(c, std::uint8_t(1u << column), poly);
    for (int i = 0; i < 8; ++i) matrix |= (product >> i & 1) << (8 * (7 - i) + column);
  }
  return matrix;
}

}  // namespace mblas::cpu
