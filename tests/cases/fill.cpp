#include "fill.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "element_types.hpp"
#include "parallel.hpp"

namespace mblas::cases {
namespace {

/// Largest power of two of Data::Wide: products of two, summed many times, stay finite.
template <class T>
constexpr int kWideExponent = 30;
template <>
constexpr int kWideExponent<double> = 250;
template <>
constexpr int kWideExponent<half> = 5;

/// Exponent of the smallest normal number.
template <class T>
constexpr int kLeastExponent = -126;
template <>
constexpr int kLeastExponent<double> = -1022;
template <>
constexpr int kLeastExponent<half> = -14;
/// Powers of two from there down to the smallest number of all.
template <class T>
constexpr int kSubnormalBits = 23;
template <>
constexpr int kSubnormalBits<double> = 52;
template <>
constexpr int kSubnormalBits<half> = 10;
template <>
constexpr int kSubnormalBits<bfloat16> = 7;

template <class T>
T real_element(Data data, Random& random) {
  const auto make = [](double x) {
    if constexpr (std::is_same_v<T, double>)
      return x;
    else
      return T(float(x));
  };
  switch (data) {
    case Data::Uniform:
    case Data::Formulas:
    case Data::Scaled:
    case Data::Cancelling:
      break;
    case Data::Normal:  // G. E. P. Box, M. E. Muller, 1958
      return make(std::sqrt(-2 * std::log(1 - random.unit())) *
                  std::cos(6.283185307179586 * random.unit()));
    case Data::Positive:
      return make(1 - random.unit());
    case Data::Wide: {
      constexpr int kMost = kWideExponent<T>;
      const int exponent = int(random.below(2 * kMost + 1)) - kMost;
      return make(std::ldexp(random.uniform(-1, 1), exponent));
    }
    case Data::Integers:
      return make(double(random.below(9) - 4));
    case Data::Special:
      switch (random.below(900)) {
        case 0:
          return make(std::numeric_limits<double>::quiet_NaN());
        case 1:
          return make(std::numeric_limits<double>::infinity());
        case 2:
          return make(-std::numeric_limits<double>::infinity());
      }
      break;
    case Data::Tiny:
      switch (random.below(5)) {
        case 0:
          return make(random.below(2) ? 0.0 : -0.0);
        case 1:
          return make(std::ldexp(random.uniform(-1, 1),
                                 kLeastExponent<T> - int(random.below(kSubnormalBits<T>))));
        case 2:
          return make(std::ldexp(random.uniform(-2, 2), kLeastExponent<T> + int(random.below(4))));
      }
      break;
  }
  return make(random.uniform(-1, 1));
}

template <class T>
T element(Data data, Random& random) {
  if constexpr (requires { typename T::value_type; }) {
    using Real = typename T::value_type;
    const Real re = real_element<Real>(data, random);
    return {re, real_element<Real>(data, random)};
  } else if constexpr (std::is_integral_v<T>) {
    if (data == Data::Integers) return T(random.below(9) - 4);
    if (data == Data::Positive)
      return T(random.bits() & std::uint64_t(std::numeric_limits<T>::max()));
    return T(random.bits());
  } else {
    return real_element<T>(data, random);
  }
}

template <class Line>
void for_each_line(Buffer& buffer, std::uint64_t seed, int operand, Line&& fill_line) {
  const Shape& s = buffer.shape();
  const std::int64_t lines = s.stored() * s.lines;
  parallel_for(lines, double(lines) * double(s.length) * 3, [&](std::int64_t line) {
    Random random(seed * 8 + std::uint64_t(operand), std::uint64_t(line));
    fill_line(buffer.line(line / s.lines, line % s.lines), random);
  });
}

template <class T>
void fill_typed(Buffer& buffer, Data data, std::uint64_t seed, int operand) {
  const std::int64_t length = buffer.shape().length;
  for_each_line(buffer, seed, operand, [&](void* line, Random& random) {
    T* to = static_cast<T*>(line);
    for (std::int64_t j = 0; j < length; ++j) to[j] = element<T>(data, random);
  });
}

void fill_bytes(Buffer& buffer, Data data, std::uint64_t seed, int operand) {
  const int size = size_of(buffer.shape().type);
  const std::int64_t bytes = buffer.shape().length * size;
  // The sign and the upper two bits of the exponent of each floating-point number in a word.
  std::uint64_t clear = 0, set = 0;
  for (int top = std::min(size, 8) - 1; data == Data::Positive && top < 8; top += size) {
    clear |= std::uint64_t(0xe0) << (8 * top);
    set |= std::uint64_t(0x20) << (8 * top);
  }
  for_each_line(buffer, seed, operand, [&](void* line, Random& random) {
    auto* to = static_cast<std::byte*>(line);
    for (std::int64_t i = 0; i < bytes; i += 8) {
      const std::uint64_t word = (random.bits() & ~clear) | set;
      std::memcpy(to + i, &word, std::size_t(std::min<std::int64_t>(8, bytes - i)));
    }
  });
}

}  // namespace

void fill(Buffer& buffer, Data data, std::uint64_t seed, int operand) {
  switch (buffer.shape().type) {
    case DType::i8:
      return fill_typed<std::int8_t>(buffer, data, seed, operand);
    case DType::i32:
      return fill_typed<std::int32_t>(buffer, data, seed, operand);
    case DType::b1:
    case DType::b2:
    case DType::b4:
    case DType::b8:
    case DType::b16:
      return fill_bytes(buffer, data, seed, operand);
    default:
      return visit_float(buffer.shape().type, [&]<class T>(std::type_identity<T>) {
        fill_typed<T>(buffer, data, seed, operand);
      });
  }
}

}  // namespace mblas::cases
