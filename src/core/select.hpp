// The choice of a kernel: the one that the tune file has for the call, else the first row of the
// backend's table that takes it.
#pragma once

#include "core/context_impl.hpp"
#include "core/finish.hpp"
#include "core/tune.hpp"
#include "mblas/backend.hpp"

namespace mblas {

inline constexpr std::string_view kOverLimit = "needs more workspace than the limit allows";
inline constexpr std::string_view kNoMemory = "there is no memory left for its workspace";
inline constexpr std::string_view kNoSuchKernel = "has no kernel of the forced name";
inline constexpr std::string_view kNoSuchConfig = "has no configuration of the forced name";
inline constexpr std::string_view kNoFinish =
    "does not fuse what the call asks for beyond the product, nor has its backend a pass for it";
inline constexpr std::string_view kNoTable = "has no kernels for this operation";

inline constexpr std::size_t kAlignment = 256;  // of what shares a workspace

template <class Args>
struct Selected {
  const Kernel<Args>* kernel = nullptr;  // null: every row declined
  std::size_t workspace = 0;             // bytes that run() needs
  int config = -1;                       // what the call's arguments must say
  bool tuned = false;                    // by the tune file
  FinishPass finish = nullptr;           // after the kernel; null: it does all
  std::string_view epilogue;             // as Dispatch has it

  void run(Args args, Queue& queue) const {
    args.config = config;
    if constexpr (std::is_same_v<Args, GemmArgs>)
      if (finish) return run_two_steps(TwoSteps(args), queue);
    kernel->run(args, queue);
  }
  /// Enters the choice in the receipt.
  void report(Dispatch& receipt) const {
    receipt.kernel = kernel->name;
    receipt.config = config < 0 ? std::string_view() : kernel->configs[std::size_t(config)];
    receipt.tuned = tuned;
    receipt.epilogue = epilogue;
  }

 private:
  void run_two_steps(TwoSteps steps, Queue& queue) const {
    const std::span<std::byte> all = queue.workspace;
    if (steps.bytes > 0) steps.set_sums(all.data() + (workspace - steps.bytes));
    queue.workspace = all.first(workspace - steps.bytes);
    kernel->run(steps.product, queue);
    finish(steps.finish, queue);
    queue.workspace = all;
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
  const auto take = [&](const Kernel<Args>& kernel, const Args& call, std::string_view epilogue,
                        std::size_t sums = 0, FinishPass finish = nullptr) -> Selected<Args> {
    if (const char* reason = kernel.declines(call, device)) {
      decline(kernel.name, reason);
      return {};
    }
    std::size_t bytes = kernel.workspace ? kernel.workspace(call, device) : 0;
    if (sums > 0) bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment + sums;
    if (const std::string_view reason = reserve(bytes); !reason.empty()) {
      decline(kernel.name, reason);
      return {};
    }
    return {&kernel, bytes, call.config, false, finish, epilogue};
  };
  const auto attempt = [&](const Kernel<Args>& kernel, const Args& call) -> Selected<Args> {
    if constexpr (std::is_same_v<Args, GemmArgs>)
      if (needs_finish(call)) {
        if (kernel.fuses && kernel.fuses(call)) return take(kernel, call, "fused");
        const FinishPass finish = backend.finish();
        if (!finish) {
          decline(kernel.name, kNoFinish);
          return {};
        }
        const TwoSteps steps(call);
        return take(kernel, steps.product, "pass", steps.bytes, finish);
      }
    return take(kernel, call, {});
  };
  const auto configured = [&](int config) {
    Args call = args;
    call.config = config;
    return call;
  };

  if (context.tune_record) *context.tune_record = tune_entry(backend, device, args);
  if (context.tuned && forced.empty()) {
    if (const TunedRow tuned = context.tuned->find(backend, device, args); tuned.row >= 0) {
      if (auto selected = attempt(table[std::size_t(tuned.row)],
                                  configured(tuned.config < 0 ? kForced : tuned.config));
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
    } else if (const auto selected = attempt(kernel, forced.empty() ? args : configured(kForced));
               selected.kernel) {
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
