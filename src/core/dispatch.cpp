#include "core/dispatch.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <string>

#include "core/location.hpp"
#include "core/log.hpp"
#include "core/registry.hpp"
#include "core/select.hpp"
#include "core/verify.hpp"

namespace mblas {
namespace {

std::string describe(const Place& place) {
  if (place.memory != Memory::Device) return "host memory";
  return place.owner ? "memory of backend " + std::string(place.owner->name())
                     : "memory of CUDA device " + std::to_string(place.ordinal);
}

/// The one side that every operand is on; managed memory goes with either.
struct Side {
  Locator locator;
  Place place;
  const char* witness = "";  // an operand that is there
  bool decided = false;

  void add(std::string_view operation, const char* name, const void* p) {
    const Place here = locator.locate(p);
    if (here.memory == Memory::Managed) return;
    if (!decided) {
      place = here;
      witness = name;
      decided = true;
      return;
    }
    const bool same = here.memory == place.memory && here.owner == place.owner &&
                      (here.memory == Memory::Host || here.ordinal == place.ordinal);
    if (!same)
      throw Error(Status::WrongMemory, std::string(operation) + ": " + name + " is in " +
                                           describe(here) + ", but " + witness + " is in " +
                                           describe(place));
  }
};

template <class Args>
Side side_of(const Args& args) {
  Side side;
  for_each_operand(args, [&](const char* name, const auto& operand, std::int64_t count) {
    if (std::is_same_v<Args, Gf256Args> && name[0] == 'A') return;  // see coefficients_on_host
    if (!operand.pointers) return side.add(op_name<Args>, name, operand.data);
    if (side.locator.only_host()) count = std::min<std::int64_t>(count, 1);
    for (std::int64_t i = 0; i < count; ++i)
      if (i == 0 || !side.locator.is_near(operand.pointers[i]))
        side.add(op_name<Args>, name, operand.pointers[i]);
  });
  return side;
}

/// gf256 takes its coefficients A from the host also when the shards are on the device.
template <class Args>
bool coefficients_on_host(const Args& args, Side& side) {
  if constexpr (std::is_same_v<Args, Gf256Args>) {
    if (args.k == 0) return false;
    if (side.decided && side.place.memory == Memory::Device &&
        side.locator.locate(args.A.data).memory == Memory::Host)
      return true;
    side.add(op_name<Args>, "A", args.A.data);
  }
  return false;
}

/// Rough cost of a call with host operands: is it worth probing for a GPU and sending them there?
/// Only the order of magnitude counts; a program that knows better names its backend.
template <class Args>
bool device_may_win(const Args& args) {
  if constexpr (std::is_same_v<Args, GemmArgs>) {
    constexpr double kHostFlops = 1e11, kDeviceFlops = 2e13, kLinkBytes = 1e10, kSetUp = 0.02;
    const double b = double(args.batch), m = double(args.m), n = double(args.n), k = double(args.k);
    const double flops = 2 * b * m * n * k;
    const double bytes = b * ((m * k + k * n) * size_of(args.in) + 2 * m * n * size_of(args.out));
    return flops / kHostFlops > kSetUp + flops / kDeviceFlops + bytes / kLinkBytes;
  } else {
    return false;  // moves each byte once: the link is slower than the host's memory
  }
}

struct Candidates {
  static constexpr std::size_t kMost = 64;
  Backend* list[kMost];
  std::size_t size = 0;
  void add(Backend* b) { list[size++] = b; }
};

template <class Args>
Candidates candidates(const Context::Impl& context, const Args& args, const Side& side) {
  Candidates result;
  if (!context.backends.automatic) {
    for (Backend* backend : context.backends.list) result.add(backend);
    return result;
  }
  const bool on_device = side.place.memory == Memory::Device;
  const bool any = side.decided ? on_device : true;  // all managed: the device, if there is one
  const bool probe = any || device_may_win(args);
  for (Backend* backend : backends())
    if (probe && backend->memory() == Memory::Device && backend->unavailable().empty() &&
        (!side.place.owner || side.place.owner == backend))
      result.add(backend);
  if (!on_device) result.add(backends().front());
  return result;
}

[[noreturn]] void fail_unsupported(std::string_view operation, const Dispatch& receipt,
                                   const Side& side) {
  std::string reasons;
  bool memory = false, wrong = false, other = false;
  for (const Decline& d : receipt.declined) {
    reasons.append(reasons.empty() ? "" : "; ").append(d.backend);
    if (!d.kernel.empty()) reasons.append("/").append(d.kernel);
    reasons.append(": ").append(d.reason);
    if (d.reason == kNoMemory)
      memory = true;
    else if (d.kernel.empty() && d.reason.find("memory") != d.reason.npos)
      wrong = true;
    else
      other = true;
  }
  if (receipt.declined.empty())
    reasons = "no device backend can run here; there are: " + list_backends();
  const Status status = memory            ? Status::OutOfMemory
                        : wrong && !other ? Status::WrongMemory
                                          : Status::NotSupported;
  std::string text(operation);
  if (wrong) text.append(": ").append(side.witness).append(" is in ").append(describe(side.place));
  throw Error(status, text + ": no kernel takes this call: " + reasons);
}

template <class Args>
void run_in_place(Context::Impl& context, Slot& slot, const Args& args, bool upload, bool& done) {
  Queue& queue = *slot.queue;
  Args local = args;
  std::size_t extra = 0;  // the coefficients' place in front of the kernel's workspace
  if constexpr (std::is_same_v<Args, Gf256Args>)
    if (upload) {
      if (queue.capturing())
        throw Error(Status::NotSupported,
                    "gf256: while a graph is captured A must be in device memory, as B and C are");
      extra = (std::size_t(args.m * args.k) + 255) / 256 * 256;
    }
  const bool users =
      context.user_workspace && (Locator().locate(context.user_workspace).memory == Memory::Host) ==
                                    (slot.backend->memory() == Memory::Host);
  std::byte* memory = nullptr;
  const auto reserve = [&](std::size_t bytes) -> std::string_view {
    bytes += extra;
    if (bytes == 0) return {};
    if (users) {
      if (bytes > context.user_workspace_bytes) return kOverLimit;
      memory = static_cast<std::byte*>(context.user_workspace);
      return {};
    }
    if (bytes > context.limit_of(queue)) return kOverLimit;
    try {
      memory = slot.workspace.get(bytes);
    } catch (const Error& e) {
      if (e.status() != Status::OutOfMemory) throw;
      return kNoMemory;
    }
    return {};
  };
  const Selected<Args> selected = select(context, *slot.backend, queue.device(), args, reserve);
  if (!selected.kernel) return;
  if constexpr (std::is_same_v<Args, Gf256Args>)
    if (upload) {
      queue.copy({memory, args.k, args.A.data, args.A.ld, args.k, args.m}, CopyKind::HostToDevice);
      local.A = {memory, args.k};
    }
  queue.workspace = {memory ? memory + extra : nullptr, selected.workspace};
  context.receipt.backend = slot.backend->name();
  selected.report(context.receipt);
  context.receipt.workspace_bytes = selected.workspace + extra;
  selected.run(local, queue);
  done = true;
}

}  // namespace

template <class Args>
void dispatch(Context::Impl& context, const Args& args) {
  Dispatch& receipt = context.receipt;
  Side side = side_of(args);
  const bool upload = coefficients_on_host(args, side);
  const bool on_device = side.place.memory == Memory::Device;

  std::unique_ptr<Verification> check;
  if (context.verify.backend && !context.verifying) check = begin_verification(context, args);

  using Clock = std::chrono::steady_clock;
  const Clock::time_point started = context.verbose > 0 ? Clock::now() : Clock::time_point();
  bool done = false;
  Slot* used = nullptr;
  const Candidates list = candidates(context, args, side);
  for (std::size_t i = 0; i < list.size && !done; ++i) {
    Backend& backend = *list.list[i];
    if (const std::string& reason = backend.unavailable(); !reason.empty()) {
      receipt.declined.push_back({backend.name(), "", reason});
      continue;
    }
    const bool device = backend.memory() == Memory::Device;
    if (on_device && !device) {
      receipt.declined.push_back({backend.name(), "", "takes pointers to host memory only"});
      continue;
    }
    if (on_device && side.place.owner != nullptr && side.place.owner != &backend) {
      receipt.declined.push_back({backend.name(), "", "the memory is another backend's"});
      continue;
    }
    used = &context.slot(backend);
    if (on_device && side.place.ordinal != used->queue->device().ordinal)
      throw Error(Status::WrongMemory, std::string(op_name<Args>) + ": " + side.witness +
                                           " is in " + describe(side.place) +
                                           ", but the context works on device " +
                                           std::to_string(used->queue->device().ordinal));
    if (device && side.decided && !on_device)
      done = stage(context, *used, args);
    else
      run_in_place(context, *used, args, upload, done);
  }
  if (!done) fail_unsupported(op_name<Args>, receipt, side);

  if (context.verbose > 0 && !context.verifying) {
    if (!used->queue->capturing()) used->queue->synchronize();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - started;
    log_call(context, args, elapsed.count());
  }
  if (check) check->finish(context);
}

template void dispatch(Context::Impl&, const GemmArgs&);
template void dispatch(Context::Impl&, const GeamArgs&);
template void dispatch(Context::Impl&, const TransposeArgs&);
template void dispatch(Context::Impl&, const TransposeInplaceArgs&);
template void dispatch(Context::Impl&, const Gf256Args&);

}  // namespace mblas
