// Memory of the host for workspaces and what plans keep.
#pragma once

#include <cstddef>

namespace mblas {

/// 256-byte aligned; large ones in huge pages, where the system has some. Status::OutOfMemory.
void* allocate_host(std::size_t bytes);
void deallocate_host(void* p) noexcept;

}  // namespace mblas
