// What pinned host operands cost on their way to a device and back, and nothing else.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "case.hpp"
#include "mblas/backend.hpp"
#include "peer.hpp"
#include "problem.hpp"

namespace mblas::bench {

/// Moves as many bytes as a call must read from its operands to the device and, at the same time,
/// as many as it writes from there into its result, in copies as long as the operands. No call that
/// computes on the device can be faster.
class Link {
 public:
  /// `runs`: operands in pinned memory, which must outlive this object.
  Link(Backend& backend, int device, const cases::Case& c, std::span<cases::Run> runs);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// One for each of the runs; they overwrite the result with anything.
  std::span<const Call> calls() const { return calls_; }

 private:
  std::unique_ptr<Queue> up_, down_;
  void* memory_;
  std::vector<Call> calls_;
};

}  // namespace mblas::bench
