// A device backend without a device: memory of its own that the host must not touch, work that is
// done no earlier than it must be, a capacity, and faults on request. What the core does for device
// backends is tested with it on machines that have none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "mblas/backend.hpp"

namespace mblas::testing {

/// The entries of a device that can be made to fail.
enum class Entry { Allocate, Copy, Run, Synchronize };

/// The one device of backend "fake". Used by one thread at a time.
struct FakeDevice {
  std::size_t capacity = std::size_t{1} << 30;
  bool capturing = false;  ///< what queues say of themselves
  bool lazy = true;        ///< work waits for synchronize(); else it is done when it is issued

  /// The `call`-th call of `entry` from now on (0: the next) throws `status`.
  void fail(Entry entry, int call, Status status);
  void no_more_faults();
  /// Did the fault happen?
  bool failed() const { return happened_; }

  // What happened since reset_counts().
  std::int64_t allocations = 0, copies_to_device = 0, copies_to_host = 0, runs = 0;
  void reset_counts() { allocations = copies_to_device = copies_to_host = runs = 0; }

  std::size_t used() const;
  /// Misuse found so far: touching the wrong memory, wrong directions, writes past allocations.
  /// Empty: none. Clears it.
  std::string take_misuse();

  // For the queue.
  void at(Entry entry);
  void misuse(const std::string& what);

 private:
  Entry entry_ = Entry::Allocate;
  int countdown_ = -1;
  bool happened_ = false;
  Status status_ = Status::Ok;
  std::string misuse_;
};

FakeDevice& fake_device();
/// Registers the backend, once; its name is "fake".
Backend& fake_backend();

}  // namespace mblas::testing
