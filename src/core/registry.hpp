// The list of backends.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "mblas/backend.hpp"

namespace mblas {

/// Those that programs registered.
std::span<Backend* const> user_backends();
/// Set once one of them is a device's.
extern std::atomic<bool> device_backend_added;
inline bool has_device_backends() { return device_backend_added.load(std::memory_order_acquire); }
/// "openmp, eigen (not built: …), cuda (no CUDA driver …)": what there is and why the rest is not.
std::string list_backends();

}  // namespace mblas
