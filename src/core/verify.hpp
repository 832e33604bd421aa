// MBLAS_VERIFY: calls run a second time on another backend, and compared.
#pragma once

#include <memory>

#include "core/context_impl.hpp"

namespace mblas {

/// A call that will be compared: what it reads, copied to the host before it runs.
class Verification {
 public:
  virtual ~Verification() = default;
  /// Runs the call on the reference backend and throws Status::VerifyFailed where the two differ by
  /// more than the bounds of accuracy.hpp allow.
  virtual void finish(Context::Impl& context) = 0;
};

/// Null where this call is not in the sample.
template <class Args>
std::unique_ptr<Verification> begin_verification(Context::Impl& context, const Args& args);

}  // namespace mblas
