// Host memory that the CUDA driver has pinned.
#pragma once

#include <cstddef>
#include <span>

namespace mblas::bench {

/// Keeps `memory` pinned for as long as this lives. A device must be current.
class Pinned {
 public:
  /// Status::BackendUnavailable where there is no driver, DeviceError where it refuses.
  explicit Pinned(std::span<const std::byte> memory);
  ~Pinned();
  Pinned(Pinned&& other) noexcept;
  Pinned& operator=(Pinned&&) = delete;

 private:
  void* data_;
};

}  // namespace mblas::bench
