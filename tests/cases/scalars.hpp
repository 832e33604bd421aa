// alpha and beta from their erased form, and magnitudes.
#pragma once

#include <cmath>
#include <complex>

#include "mblas/backend.hpp"

namespace mblas::cases {

/// The scalar in a real, complex or integer type.
template <class S>
S scalar(const Scalar& s) {
  if constexpr (requires { typename S::value_type; })
    return {typename S::value_type(s.re), typename S::value_type(s.im)};
  else
    return S(s.re);
}

template <class W>
double magnitude(const W& x) {
  return double(std::abs(x));
}

}  // namespace mblas::cases
