// Errors: one enumeration, one exception type that carries it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "mblas/export.hpp"

namespace mblas {

/// Outcome of a call. Whatever the error, C is unchanged bit for bit and the context stays usable,
/// except where a value says otherwise.
enum class Status : std::uint8_t {
  Ok,
  InvalidArgument,     ///< a size, leading dimension, stride, op or scalar that is out of its range
  NullPointer,         ///< null where the call would read or write
  SizeOverflow,        ///< sizes whose byte extent does not fit in 63 bits
  Overlap,             ///< C shares elements with an input or with itself
  WrongMemory,         ///< pointers on the wrong side for the backend, or on different sides
  UnknownName,         ///< no backend, kernel, compute mode or setting of that name
  BackendUnavailable,  ///< the backend exists but cannot run here (no driver, no library, not
                       ///< built)
  NotSupported,        ///< every kernel that was allowed declined; the message quotes the reasons
  OutOfMemory,         ///< host or device memory
  DeviceError,         ///< the device failed in mid-run; the content of C is then undefined
  Singular,            ///< gf256::invert: the matrix has no inverse
  VerifyFailed,        ///< MBLAS_VERIFY found C outside the bound; C holds the suspect result
  Internal,            ///< a fault in the library or in a program's own backend
};

/// The enumerator's name.
constexpr std::string_view name_of(Status s) {
  constexpr std::string_view names[] = {
      "Ok",          "InvalidArgument", "NullPointer",        "SizeOverflow", "Overlap",
      "WrongMemory", "UnknownName",     "BackendUnavailable", "NotSupported", "OutOfMemory",
      "DeviceError", "Singular",        "VerifyFailed",       "Internal"};
  return names[static_cast<int>(s)];
}

/// What every throwing function throws. what() names the function, the argument and the reason.
class MBLAS_EXPORT Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

}  // namespace mblas
