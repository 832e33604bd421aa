// What this CPU could reach at most: multiply-adds that touch registers only, and copies.
#pragma once

#include <cstddef>
#include <string>

#include "mblas/types.hpp"

namespace mblas::bench {

/// The instruction set that the limits are measured with: the best of this CPU that the bench knows
/// and that MBLAS_ARCH allows, in words.
std::string limits_isa();

/// Floating-point operations per second, in GFLOP/s, of `threads` threads that do nothing but
/// independent vector multiply-adds of that type, f32 or f64, during about a millisecond.
double multiply_add_peak(DType type, int threads);

/// Bytes read and written per second, in GB/s, by the best of several ways for `threads` threads to
/// copy an array of `bytes`: streaming stores to four pages in turn, and memcpy. `huge_pages`: the
/// arrays ask for them.
double copy_bandwidth(int threads, bool huge_pages, std::size_t bytes = std::size_t(512) << 20);

}  // namespace mblas::bench
