// The choice of a kernel: the first row of the backend's table that takes the call.
#pragma once

#include "core/context_impl.hpp"
#include "mblas/backend.hpp"

namespace mblas {

inline constexpr std::string_view kOverLimit = "needs more workspace than the limit allows";
inline constexpr std::string_view kNoMemory = "there is no memory left for its workspace";
inline constexpr std::string_view kNoSuchKernel = "has no kernel of the forced name";
inline constexpr std::string_view kNoTable = "has no kernels for this operation";

template <class Args>
struct Selected {
  const Kernel<Args>* kernel = nullptr;  // null: every row declined
  std::size_t workspace = 0;             // bytes that the row asked for
};

/// Walks the table. `reserve(bytes)` finds the workspace and says with an empty reason that it did.
/// What was passed over goes to the receipt.
template <class Args, class Reserve>
Selected<Args> select(Context::Impl& context, const Backend& backend, const DeviceInfo& device,
                      const Args& args, Reserve&& reserve) {
  const std::string_view forced = context.kernels[op_index<Args>()];
  const auto table = backend.kernels<Args>();
  const auto decline = [&](std::string_view kernel, std::string_view reason) {
    context.receipt.declined.push_back({backend.name(), kernel, reason});
  };
  bool known = false;
  for (const Kernel<Args>& kernel : table) {
    if (!forced.empty() && kernel.name != forced) continue;
    known = true;
    if (const char* reason = kernel.declines(args, device)) {
      decline(kernel.name, reason);
      continue;
    }
    const std::size_t bytes = kernel.workspace ? kernel.workspace(args, device) : 0;
    if (const std::string_view reason = reserve(bytes); !reason.empty()) {
      decline(kernel.name, reason);
      continue;
    }
    return {&kernel, bytes};
  }
  if (table.empty())
    decline("", kNoTable);
  else if (!known)
    decline("", kNoSuchKernel);
  return {};
}

}  // namespace mblas
