// The library's version.
#pragma once

#include <string_view>

#include "mblas/export.hpp"

#define MBLAS_VERSION_MAJOR 0
#define MBLAS_VERSION_MINOR 1
#define MBLAS_VERSION_PATCH 0

namespace mblas {
/// "major.minor.patch" of the library that the program runs with.
MBLAS_EXPORT std::string_view version();
}  // namespace mblas
