// Reasons to decline that the host backends share.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cpu {

template <class Args>
const char* never(const Args&, const DeviceInfo&) {
  return nullptr;
}

inline const char* unless_native(const GemmArgs& args, const DeviceInfo&) {
  return is_native(args.compute) ? nullptr : "computes in native arithmetic only";
}

inline const char* unless_square(const TransposeInplaceArgs& args, const DeviceInfo&) {
  if (args.m != args.n) return "square matrices only";
  return args.A.ld == args.ldb ? nullptr : "needs equal leading dimensions";
}

}  // namespace mblas::cpu
