// Random operands.
#pragma once

#include <cstdint>

#include "buffer.hpp"
#include "random.hpp"

namespace mblas::cases {

/// Fills the matrices of `buffer`, not its padding, with random elements of its type; `operand`
/// tells the operands of a case apart. Untyped elements are random bytes whatever `data`.
void fill(Buffer& buffer, Data data, std::uint64_t seed, int operand);

}  // namespace mblas::cases
