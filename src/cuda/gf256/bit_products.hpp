// Multiplication in GF(2^8) by 24 products of bits, where the schoolbook takes 64.
//
// Over GF(4), of which GF(2^8) is an extension of degree 4, eight products suffice:
//   x y = sum over i of c_i T(a_i x) T(a_i y),   T(z) = z + z^4 + z^16 + z^64,
// T the trace to GF(4); that eight are enough is Chudnovsky and Chudnovsky's, "Algebraic
// complexities and algebraic curves over finite fields", 1987. With T(a_i x) = u + v w and T(a_i y)
// = s + t w, where u, v, s, t are bits and w^2 = w + 1, Karatsuba's three products give the one in
// GF(4): u s w^2 + v t + (u + v)(s + t) w. So all that is multiplied are linear forms of the bits
// of x by those of y, and each product that is 1 adds a constant.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "core/gf256_field.hpp"

namespace mblas::cuda::gf256 {

constexpr int kPairs = 8, kProducts = 3 * kPairs;

struct BitProducts {
  /// Which bits of a factor the forms u and v of pair i add up. Product 3 i is that of the u,
  /// product 3 i + 1 that of the v, product 3 i + 2 that of the u + v.
  std::uint8_t u[kPairs], v[kPairs];
  std::uint8_t constant[kProducts];
  unsigned poly;
};

/// Those of the field modulo `poly`, an irreducible polynomial of degree 8.
constexpr BitProducts bit_products(unsigned poly) {
  using mblas::gf256::detail::gf_multiply;
  // a_i and c_i as powers of a root of x^8 + x^4 + x^3 + x^2 + 1, which every such field has. They
  // were found by search: choices of 8 of the 85 forms T(a x) whose squares span all products.
  constexpr int kA[kPairs] = {0, 1, 2, 5, 24, 27, 28, 37};
  constexpr int kC[kPairs] = {11, 123, 13, 186, 182, 210, 39, 133};
  std::array<std::uint8_t, 255> power{};
  for (int root = 2; root < 256; ++root) {
    power[0] = 1;
    for (std::size_t e = 1; e < power.size(); ++e)
      power[e] = gf_multiply(power[e - 1], std::uint8_t(root), poly);
    if (power[8] == (power[4] ^ power[3] ^ power[2] ^ power[0])) break;
  }
  const auto fourth = [poly](std::uint8_t x) {
    const std::uint8_t square = gf_multiply(x, x, poly);
    return gf_multiply(square, square, poly);
  };
  const std::uint8_t w = power[85];  // of order 3
  BitProducts result{};
  result.poly = poly;
  for (int i = 0; i < kPairs; ++i) {
    const std::uint8_t a = power[std::size_t(kA[i])], c = power[std::size_t(kC[i])];
    for (int bit = 0; bit < 8; ++bit) {
      std::uint8_t conjugate = gf_multiply(a, std::uint8_t(1 << bit), poly), trace = 0;
      for (int j = 0; j < 4; ++j, conjugate = fourth(conjugate)) trace ^= conjugate;
      if (trace == 1 || trace == (w ^ 1)) result.u[i] |= std::uint8_t(1 << bit);
      if (trace == w || trace == (w ^ 1)) result.v[i] |= std::uint8_t(1 << bit);
    }
    result.constant[3 * i] = gf_multiply(c, std::uint8_t(w ^ 1), poly);
    result.constant[3 * i + 1] = c;
    result.constant[3 * i + 2] = gf_multiply(c, w, poly);
  }
  return result;
}

/// Whether they multiply: the powers of x by one another, which is enough, as both sides are linear
/// in either factor.
constexpr bool multiply_in_field(const BitProducts& p) {
  const auto form = [](int mask, int x) { return std::popcount(unsigned(mask & x)) % 2; };
  for (int x = 1; x < 256; x *= 2) {
    for (int y = 1; y < 256; y *= 2) {
      int sum = 0;
      for (int i = 0; i < kPairs; ++i) {
        const int u = form(p.u[i], x), v = form(p.v[i], x), s = form(p.u[i], y),
                  t = form(p.v[i], y);
        sum ^= u * s * p.constant[3 * i] ^ v * t * p.constant[3 * i + 1] ^
               (u ^ v) * (s ^ t) * p.constant[3 * i + 2];
      }
      if (sum != mblas::gf256::detail::gf_multiply(std::uint8_t(x), std::uint8_t(y), p.poly))
        return false;
    }
  }
  return true;
}
static_assert(multiply_in_field(bit_products(0x11D)) && multiply_in_field(bit_products(0x11B)));

}  // namespace mblas::cuda::gf256
