// The choice of a kernel: the one that the tune file has for the call, else the first row of the
// backend's table that takes it.
#pragma once

#include "core/context_impl.hpp"
#include "core/tune.hpp"
#include "mblas/backend.hpp"

namespace mblas {

inline constexpr std::string_view kOverLimit = "needs more workspace than the limit allows";
inline constexpr std::string_view kNoMemory = "there is no memory left for its workspace";
inline constexpr std::string_view kNoSuchKernel = "has no kernel of the forced name";
inline constexpr std::string_view kNoSuchConfig = "has no configuration of the forced name";
inline constexpr std::string_view kNoTable = "has no kernels for this operation";

template <class Args>
struct Selected {
  const Kernel<Args>* kernel = nullptr;  // null: every row declined
  std::size_t workspace = 0;             // bytes that the row asked for
  int config = -1;                       // what the call's arguments must say
  bool tuned = false;                    // by the tune file

  void run(Args args, Queue& queue) const {
    args.config = config;
    kernel->run(args, queue);
  }
  /// Enters the choice in the receipt.
  void report(Dispatch& receipt) const {
    receipt.kernel = kernel->name;
    receipt.config = config < 0 ? std::string_view() : kernel->configs[std::size_t(config)];
    receipt.tuned = tuned;
  }
};

/// What was forced; else what the tune file has for the call; else walks the table.
/// `reserve(bytes)` finds the workspace and says with an empty reason that it did. What was passed
/// over goes to the receipt.
template <class Args, class Reserve>
Selected<Args> select(Context::Impl& context, const Backend& backend, const DeviceInfo& device,
                      const Args& args, Reserve&& reserve) {
  const ForcedKernel& forced = context.kernels[op_index<Args>()];
  const auto table = backend.kernels<Args>();
  const auto decline = [&](std::string_view kernel, std::string_view reason) {
    context.receipt.declined.push_back({backend.name(), kernel, reason});
  };
  // Empty where the kernel declines.
  const auto attempt = [&](const Kernel<Args>& kernel, const Args& call) -> Selected<Args> {
    if (const char* reason = kernel.declines(call, device)) {
      decline(kernel.name, reason);
      return {};
    }
    const std::size_t bytes = kernel.workspace ? kernel.workspace(call, device) : 0;
    if (const std::string_view reason = reserve(bytes); !reason.empty()) {
      decline(kernel.name, reason);
      return {};
    }
    return {&kernel, bytes, call.config};
  };
  const auto configured = [&](int config) {
    Args call = args;
    call.config = config;
    return call;
  };

  if (context.tune_record) *context.tune_record = tune_entry(backend, device, args);
  if (context.tuned && forced.empty()) {
    if (const TunedRow tuned = context.tuned->find(backend, device, args); tuned.row >= 0) {
      if (auto selected = attempt(table[std::size_t(tuned.row)], configured(tuned.config));
          selected.kernel) {
        selected.tuned = true;
        return selected;
      }
    }
  }

  bool known = false;
  for (const Kernel<Args>& kernel : table) {
    if (!forced.empty() && kernel.name != forced.kernel) continue;
    known = true;
    if (!forced.config.empty()) {
      const int config = find_config(kernel, forced.config);
      if (config < 0) {
        decline(kernel.name, kNoSuchConfig);
        continue;
      }
      if (const auto selected = attempt(kernel, configured(config)); selected.kernel)
        return selected;
    } else if (const auto selected = attempt(kernel, args); selected.kernel) {
      return selected;
    }
  }
  if (table.empty())
    decline("", kNoTable);
  else if (!known)
    decline("", kNoSuchKernel);
  return {};
}

}  // namespace mblas
