// The list of backends.
#pragma once

#include <span>
#include <string>

#include "mblas/backend.hpp"

namespace mblas {

/// Those that programs registered.
std::span<Backend* const> user_backends();
/// Is one of them a device's?
bool has_device_backends();
/// "openmp, eigen (not built: …), cuda (no CUDA driver …)": what there is and why the rest is not.
std::string list_backends();

}  // namespace mblas
