// Arithmetic of GF(2^8), in its plain form: what tables are built from and what kernels are checked
// by. A byte is a polynomial over GF(2), bit i the coefficient of x^i; `poly` is the modulus, of
// degree 8.
//
// Always inlined: the files that are compiled once for each instruction set may define no weak
// symbols.
#pragma once

#include <bit>
#include <cstdint>

namespace mblas::gf256::detail {

/// a b modulo poly: shift and add, Horner's rule over the bits of b. By masks: branches on random
/// bits would be guessed wrong half the time.
[[gnu::always_inline]] constexpr std::uint8_t gf_multiply(std::uint8_t a, std::uint8_t b,
                                                          unsigned poly) {
  unsigned product = 0;
  for (int bit = 7; bit >= 0; --bit) {
    product <<= 1;
    product ^= poly & (0u - (product >> 8));
    product ^= a & (0u - ((unsigned(b) >> bit) & 1u));
  }
  return std::uint8_t(product);
}

/// The inverse of a: a^254, as a^255 = 1 for every a but 0, which gives 0.
[[gnu::always_inline]] constexpr std::uint8_t gf_inverse(std::uint8_t a, unsigned poly) {
  std::uint8_t power = a;  // a^(2^i - 1)
  for (int i = 1; i < 7; ++i) power = gf_multiply(gf_multiply(power, power, poly), a, poly);
  return gf_multiply(power, power, poly);
}

/// Has `poly`, of degree 8, no factor of degree 1 … 4?
[[gnu::always_inline]] constexpr bool has_no_factor(unsigned poly) {
  for (unsigned divisor = 2; divisor < 0x20u; ++divisor) {
    unsigned rest = poly;
    for (unsigned shift = 8; shift-- > 0;) {
      const unsigned multiple = divisor << shift;
      if (std::bit_width(rest) == std::bit_width(multiple)) rest ^= multiple;
    }
    if (rest == 0) return false;
  }
  return true;
}

/// Bit i % 64 of word i / 64: may x^8 + the polynomial i be a modulus? Every call asks.
struct Moduli {
  std::uint64_t words[4] = {};
  constexpr Moduli() {
    for (unsigned i = 0; i < 256; ++i)
      words[i / 64] |= std::uint64_t{has_no_factor(0x100u + i)} << i % 64;
  }
};

[[gnu::always_inline]] constexpr bool is_irreducible_degree8(unsigned poly) {
  constexpr Moduli moduli;
  return poly >= 0x100u && poly <= 0x1ffu && (moduli.words[poly / 64 % 4] >> poly % 64 & 1) != 0;
}

}  // namespace mblas::gf256::detail
