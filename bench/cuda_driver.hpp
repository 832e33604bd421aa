// What the bench asks of the CUDA driver itself, which is loaded where there is one.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace mblas::bench {

/// Keeps host memory pinned for as long as this lives. A device must be current.
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

/// Work to be launched as one graph.
class Graph {
 public:
  /// What `work` issues to `stream`, which is not the default one; nothing runs yet. DeviceError
  /// where something in it cannot be captured.
  Graph(void* stream, const std::function<void()>& work);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch() const;

 private:
  void* stream_;
  void* executable_ = nullptr;
};

/// Words of four bytes that a device can read from its shared memory in a second, each thread its
/// own, at the highest clock.
double shared_words_per_second(int device);

}  // namespace mblas::bench
