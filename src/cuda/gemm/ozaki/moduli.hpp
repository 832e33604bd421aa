// The moduli of Ozaki scheme II and what goes with them, computed by the compiler.
//
// An integer x is known by its residues modulo pairwise coprime numbers if |x| is less than half of
// their product P: x = Σ (r_i (P/p_i)⁻¹ mod p_i) P/p_i modulo P. K. Ozaki, Y. Uchino, T.
// Imamura, "Ozaki Scheme II: a GEMM-oriented emulation of floating-point matrix multiplication
// using an integer modular technique", 2025.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>

namespace mblas::cuda::gemm::ozaki {

__extension__ using Wide = unsigned __int128;

/// The largest with residues of a byte. All of them make the errors smaller than those of sums in
/// double: docs/ACCURACY.md. Where a call tolerates more, the first ones are used, kFewest or more.
inline constexpr int kCount = 15, kFewest = 4;
inline constexpr int kModuli[kCount] = {256, 255, 253, 251, 247, 241, 239, 233,
                                        229, 227, 223, 217, 211, 199, 197};

constexpr bool are_coprime() {
  for (int i = 0; i < kCount; ++i)
    for (int j = 0; j < i; ++j)
      if (std::gcd(kModuli[i], kModuli[j]) != 1) return false;
  return true;
}
static_assert(are_coprime());

/// Steps of k in a sum of products of residues: those are less than 2^30.
inline constexpr std::int64_t kMostDepth = 65536;
static_assert(kMostDepth * 127 * 127 < std::int64_t{1} << 30);

/// Of the first `count`.
constexpr Wide product(int count) {
  Wide p = 1;
  for (int i = 0; i < count; ++i) p *= unsigned(kModuli[i]);
  return p;
}

/// P / p_i, and its inverse modulo p_i: weight 1 modulo p_i is their product, and residues of A's
/// integers times the inverses make those of products so, at no cost.
constexpr Wide weight(int i, int count) { return product(count) / unsigned(kModuli[i]); }
constexpr int inverse(int i, int count) {
  const auto modulus = unsigned(kModuli[i]), others = unsigned(weight(i, count) % modulus);
  unsigned inverse = 1;
  while (others * inverse % modulus != 1) ++inverse;
  return int(inverse);
}

/// The limbs of which weights and P consist: of 20 bits, twice 41 bits and the others. Sums of
/// bytes times the first and the last are less than 2^32, those of the others less than 2^53: exact
/// in double.
inline constexpr int kLowBits = 20, kMidBits = 41;
struct Limbs {
  std::uint32_t low;
  double mid, high;
  std::uint32_t top;
};
constexpr Limbs limbs_of(Wide x) {
  const auto bits = [&](int from, int count) {
    return std::uint64_t(x >> from & ((Wide{1} << count) - 1));
  };
  return {std::uint32_t(bits(0, kLowBits)), double(bits(kLowBits, kMidBits)),
          double(bits(kLowBits + kMidBits, kMidBits)),
          std::uint32_t(x >> (kLowBits + 2 * kMidBits))};
}
static_assert(kCount * 255 < 1 << (32 - kLowBits) && kCount * 255 < 1 << (53 - kMidBits));
static_assert(product(kCount) * kCount >> (kLowBits + 2 * kMidBits) < Wide{1} << 32);

constexpr int bits_of(Wide x) {
  int bits = 0;
  for (; x > 0; x /= 2) ++bits;
  return bits;
}
/// By which power of two fewer moduli's weights and P are multiplied, and with them the integers,
/// so that they have the limbs of all moduli's.
constexpr int shift_of(int count) { return bits_of(product(kCount)) - bits_of(product(count)); }

/// What the norms of a row of integers and of a column may be, times each other: with a margin for
/// the rounding of norms and integers, and for a quotient's by P.
constexpr double most_norms(int count) { return double(product(count)) / 2 * (1 - 0x1p-9); }

/// Integers are less than 2^kBits in magnitude.
inline constexpr int kBits = 59;
static_assert(most_norms(kCount) < 0x1p118);  // as a norm is less than its root

/// What rounding to integers costs a sum of k products at most, in relation to the norms of its row
/// and column: those of integers are no less than half the root of most_norms().
inline double error_of(int count, std::int64_t k) {
  const double norms = most_norms(count);
  return 2 * std::sqrt(double(k) / norms) + double(k) / norms;
}
/// How few moduli keep that to `tolerance`, or kCount + 1 where all do not.
inline int count_for(double tolerance, std::int64_t k) {
  int count = kFewest;
  while (count <= kCount && !(error_of(count, k) <= tolerance)) ++count;
  return count;
}

/// For the residues of integers times `factor`: of the bytes of the integer plus 2^kBits, what
/// they are worth modulo the modulus, a byte each; and what is to be added to make their sum
/// congruent and positive.
struct Digits {
  std::uint32_t low, high, offset;
};
constexpr Digits digits_of(int modulus, int factor) {
  Digits d = {};
  int power = factor, least = 0;
  for (int i = 0; i < 8; ++i, power = power * 256 % modulus) {
    const int nearest = power > modulus / 2 ? power - modulus : power;
    (i < 4 ? d.low : d.high) |= std::uint32_t(nearest & 255) << (8 * (i % 4));
    if (nearest < 0) least += 255 * nearest;
  }
  const int added = int((std::uint64_t{1} << kBits) % unsigned(modulus)) * factor % modulus;
  d.offset = std::uint32_t((-least + added + modulus - 1) / modulus * modulus - added);
  return d;
}

/// What residues of operands take: those of A are times the inverse.
struct Modulus {
  std::int32_t modulus;
  float inverse;  ///< 1 / modulus, times kOfSums
  Digits a, b;

  static constexpr double kOfSums = 0x1p133;
};
/// All that a product with the first `count` moduli needs; the others weigh nothing.
struct Tables {
  int count, shift;
  double most_norms;
  Modulus moduli[kCount];
  Limbs weights[kCount];  ///< mid and high times kOfBytes
  Limbs product;
  double inverse;  ///< of the product: of sums of the two highest limbs, the quotient by it

  static constexpr double kOfBytes = 0x1p980;
};
constexpr Tables tables_of(int count) {
  const int shift = shift_of(count);
  const Wide p = product(count) << shift;
  Tables t = {count, shift, most_norms(count), {}, {}, limbs_of(p), 0x1p61 / double(p)};
  for (int i = 0; i < count; ++i) {
    const int modulus = kModuli[i];
    t.moduli[i] = {modulus, float(Modulus::kOfSums / modulus),
                   digits_of(modulus, inverse(i, count)), digits_of(modulus, 1)};
    t.weights[i] = limbs_of(weight(i, count) << shift);
    t.weights[i].mid *= Tables::kOfBytes;
    t.weights[i].high *= Tables::kOfBytes;
  }
  return t;
}

/// For the residue of a sum x, |x| < 2^30: x - modulus * (x * inverse / 2^38), rounded down, which
/// is not less than 0 nor more than 255.
struct Division {
  std::int32_t modulus, inverse;
};
constexpr Division division_by(int modulus) {
  return {modulus, std::int32_t(((std::int64_t{1} << 38) + modulus - 1) / modulus)};
}

struct Divisions {
  Division of[kCount];
};
constexpr Divisions divisions() {
  Divisions all = {};
  for (int i = 0; i < kCount; ++i) all.of[i] = division_by(kModuli[i]);
  return all;
}

}  // namespace mblas::cuda::gemm::ozaki
