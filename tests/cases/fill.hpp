// Random operands.
#pragma once

#include <cstdint>

#include "buffer.hpp"
#include "random.hpp"

namespace mblas::cases {

/// Fills the matrices of `buffer`, not its padding, with random elements of its type; `operand`
/// tells the operands of a case apart. Untyped elements are random bytes; with Data::Positive those
/// of positive normal numbers, whatever floating-point type of their size they are taken for.
void fill(Buffer& buffer, Data data, std::uint64_t seed, int operand);

}  // namespace mblas::cases
