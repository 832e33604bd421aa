// Comparison of results with what the oracle expects.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "mblas/accuracy.hpp"
#include "oracle.hpp"

namespace mblas::cases {

/// What a verification found.
struct Outcome {
  bool ok = true;
  bool sampled = false;    ///< only corners, edges and a random sample of the result were compared
  double worst_ratio = 0;  ///< largest error / bound
  double max_error = 0;    ///< largest error
  double bound = 0;        ///< the bound where error / bound is largest
  std::string message;     ///< the first thing that is wrong

  void fail(const std::string& what) {
    if (ok) message = what;
    ok = false;
  }
};

namespace detail {

template <class W>
bool is_finite(W x) {
  if constexpr (std::is_integral_v<W>)
    return true;
  else if constexpr (requires { x.imag(); })
    return std::isfinite(x.real()) && std::isfinite(x.imag());
  else
    return std::isfinite(x);
}

template <class W>
std::string number_text(W x) {
  if constexpr (requires { x.imag(); }) {
    return "(" + number_text(x.real()) + ", " + number_text(x.imag()) + ")";
  } else if constexpr (std::is_integral_v<W>) {
    return std::to_string(x);
  } else {
    char text[64];
    std::snprintf(text, sizeof text, "%.17Lg", static_cast<long double>(x));
    return text;
  }
}

/// Numbers at least this large overflow when they are rounded to the type.
constexpr double overflow_threshold(DType t) {
  return t == DType::f16                       ? 65520.0
         : t == DType::f64 || t == DType::cf64 ? std::numeric_limits<double>::max()
                                               : double(std::numeric_limits<float>::max());
}

}  // namespace detail

/// Where an element is, for messages.
inline std::string place(std::int64_t b, std::int64_t i, std::int64_t j) {
  return "matrix " + std::to_string(b) + ", element (" + std::to_string(i) + ", " +
         std::to_string(j) + ")";
}

/// Compares one element of type T. `in` is the type whose arithmetic made it, `bound` what it may
/// be off by. Where the expected value is not finite, the element must be of its class (NaN or the
/// same infinity; complex: not finite either). An element may be infinite or NaN where rounding to
/// T, or an intermediate sum, may overflow.
template <class T, class W>
void compare(const T& element, const Expected<W>& expected, DType in, double bound, std::int64_t b,
             std::int64_t i, std::int64_t j, Outcome& outcome) {
  const auto got = W(widen(element));
  const W want = expected.value;
  bool good;
  if constexpr (std::is_integral_v<W>) {
    good = got == want;
    bound = 0;
    if (!good) outcome.max_error = std::max(outcome.max_error, std::fabs(double(got - want)));
  } else if (!detail::is_finite(want)) {
    if constexpr (requires { want.imag(); })
      good = !detail::is_finite(got);
    else
      good = std::isnan(want) ? std::isnan(got) : got == want;
  } else if (!detail::is_finite(got) &&
             (expected.magnitude >= detail::overflow_threshold(accumulator_of(in)) ||
              double(std::abs(want)) + bound >= detail::overflow_threshold(dtype_v<T>))) {
    good = true;
  } else {
    const double error = double(std::abs(got - want));
    good = error <= bound;
    const double ratio = error == 0 ? 0 : error / bound;
    if (!(error <= outcome.max_error)) outcome.max_error = error;
    if (!(ratio <= outcome.worst_ratio) || outcome.bound == 0) {
      outcome.worst_ratio = ratio;
      outcome.bound = bound;
    }
  }
  if (!good && outcome.ok) {
    outcome.fail(place(b, i, j) + ": got " + detail::number_text(got) + ", want " +
                 detail::number_text(want) + ", bound " + detail::number_text(bound));
  }
}

}  // namespace mblas::cases
