#include "mblas/context.hpp"

#include <algorithm>
#include <exception>
#include <new>

#include "core/context_impl.hpp"
#include "core/location.hpp"
#include "core/tune.hpp"
#include "cpu/parallel.hpp"
#include "mblas/version.hpp"

namespace mblas {

namespace {
constexpr std::size_t MiB = std::size_t{1} << 20;
}

Buffer::Buffer(Buffer&& other) noexcept
    : queue_(other.queue_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      captured_(other.captured_),
      retired_(std::move(other.retired_)) {}

Buffer::~Buffer() {
  if (data_) queue_->deallocate(data_);
  for (std::byte* p : retired_) queue_->deallocate(p);
}

std::byte* Buffer::get(std::size_t bytes) {
  const bool capturing = queue_->capturing();
  if (bytes > bytes_) {
    if (capturing)
      throw Error(
          Status::NotSupported,
          "the workspace cannot grow to " + std::to_string(bytes) +
              " bytes while a graph is captured: make the call once before, or set_workspace");
    if (captured_) retired_.reserve(retired_.size() + 1);
    std::byte* grown = nullptr;
    // What is outgrown is given back first, so that a retry after OutOfMemory finds the most room.
    if (data_ && !captured_) {
      queue_->deallocate(std::exchange(data_, nullptr));
      bytes_ = 0;
    }
    grown = static_cast<std::byte*>(queue_->allocate(bytes));
    if (data_) retired_.push_back(data_);
    data_ = grown;
    bytes_ = bytes;
    captured_ = false;
  }
  captured_ = captured_ || capturing;
  return data_;
}

Context::Impl::Impl() {
  const Environment& env = environment();
  backends = parse_backends(env.backend, "MBLAS_BACKEND");
  kernels = parse_kernels(env.kernel, "MBLAS_KERNEL");
  verify = parse_verify(env.verify, "MBLAS_VERIFY");
  compute = env.compute;
  device = env.device;
  verbose = env.verbose;
  tuned = tune_table();
}

Slot& Context::Impl::slot(Backend& backend) {
  auto found = std::ranges::find(slots, &backend, [](const auto& s) { return s->backend; });
  if (found == slots.end()) {
    if (backend.memory() == Memory::Device && device >= backend.device_count())
      throw Error(Status::InvalidArgument, "device " + std::to_string(device) +
                                               " does not exist: backend " +
                                               std::string(backend.name()) + " has " +
                                               std::to_string(backend.device_count()));
    const auto left = std::ranges::find_if(parked, [&](const Parked& p) {
      return p.slot->backend == &backend && p.stream == stream && p.device == device;
    });
    if (left != parked.end()) {
      slots.push_back(std::move(left->slot));
      parked.erase(left);
    } else {
      QueueOptions options;
      options.device = backend.memory() == Memory::Device ? device : 0;
      options.stream = stream;
      slots.push_back(std::make_unique<Slot>(&backend, backend.make_queue(options)));
    }
    found = slots.end() - 1;
  }
  Slot& result = **found;
  if (backend.memory() != Memory::Device) {
    const int wanted = num_threads > 0                 ? num_threads
                       : cpu::in_parallel_region()     ? 1
                       : environment().num_threads > 0 ? environment().num_threads
                                                       : cpu::default_threads();
    result.queue->set_num_threads(wanted);
  }
  return result;
}

void Context::Impl::leave_stream() {
  // Workspaces go with their queues: the old stream may still be using them, and freeing waits for
  // it.
  std::erase_if(slots, [&](auto& slot) {
    if (slot->backend->memory() != Memory::Device) return false;
    if (slot->workspace.is_captured()) parked.push_back({stream, device, std::move(slot)});
    return true;
  });
}

std::size_t Context::Impl::limit_of(const Queue& queue) const {
  if (workspace_limit) return workspace_limit;
  if (queue.device().memory == Memory::Device) return 2048 * MiB;
  return 64 * MiB + 4 * MiB * std::size_t(queue.device().num_threads);
}

Context::Context() : impl_(std::make_unique<Impl>()) {}
Context::Context(std::string_view backend) : Context() { set_backend(backend); }
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

void Context::set_backend(std::string_view names) {
  impl_->backends = parse_backends(names, "backend");
  impl_->immediate = {};
}

void Context::set_device(int ordinal) {
  if (ordinal < 0)
    throw Error(Status::InvalidArgument, "set_device: device " + std::to_string(ordinal));
  for (Backend* backend : backends())
    if (backend->memory() == Memory::Device && backend->unavailable().empty() &&
        ordinal >= backend->device_count())
      throw Error(Status::InvalidArgument, "set_device: there is no device " +
                                               std::to_string(ordinal) + "; backend " +
                                               std::string(backend->name()) + " has " +
                                               std::to_string(backend->device_count()));
  impl_->leave_stream();
  impl_->device = ordinal;
}

void Context::set_stream(void* stream) {
  if (stream == impl_->stream) return;
  impl_->leave_stream();
  impl_->stream = stream;
}

void Context::set_num_threads(int threads) {
  if (threads < 0)
    throw Error(Status::InvalidArgument,
                "set_num_threads: " + std::to_string(threads) + " threads");
  impl_->num_threads = threads;
}

void Context::set_kernel(std::string_view spec) {
  impl_->kernels = parse_kernels(spec, "kernel");
  impl_->immediate = {};
}
void Context::set_compute(Compute compute) { impl_->compute = compute; }
void Context::set_workspace_limit(std::size_t bytes) { impl_->workspace_limit = bytes; }

void Context::set_workspace(void* p, std::size_t bytes) {
  if (!p && bytes) throw Error(Status::NullPointer, "set_workspace: null of a size");
  if (reinterpret_cast<std::uintptr_t>(p) % 256 != 0)
    throw Error(Status::InvalidArgument, "set_workspace: the address is not a multiple of 256");
  impl_->user_workspace = p;
  impl_->user_workspace_bytes = bytes;
}

void Context::set_verify(std::string_view spec) {
  impl_->verify = parse_verify(spec, "verify");
  impl_->immediate = {};
}

void Context::set_verbose(int level) {
  if (level < 0 || level > 2)
    throw Error(Status::InvalidArgument,
                "set_verbose: level " + std::to_string(level) + " is not 0, 1 or 2");
  impl_->verbose = level;
  impl_->immediate = {};
}

const Dispatch& Context::last_dispatch() const { return impl_->receipt; }
std::string_view Context::last_error() const { return impl_->last_error; }

void Context::synchronize() {
  for (const auto& slot : impl_->slots) slot->queue->synchronize();
}

Context& default_context() {
  static thread_local Context context;
  return context;
}

std::string_view version() {
#define MBLAS_TEXT(x) #x
#define MBLAS_VERSION_TEXT(a, b, c) MBLAS_TEXT(a) "." MBLAS_TEXT(b) "." MBLAS_TEXT(c)
  return MBLAS_VERSION_TEXT(MBLAS_VERSION_MAJOR, MBLAS_VERSION_MINOR, MBLAS_VERSION_PATCH);
}

namespace detail {

void set_last_error(Context& context, std::string_view message) noexcept {
  try {
    context.impl().last_error = message;
  } catch (...) {  // no memory for the message: the status still tells
  }
}

Status catch_status(Context* context) noexcept {
  Status status = Status::Internal;
  std::string_view message = "unknown exception";
  const auto keep = [&](std::string_view text) {
    try {
      set_last_error(context ? *context : default_context(), text);
    } catch (...) {  // the default context itself cannot be made: a malformed environment
    }
  };
  try {
    throw;
  } catch (const Error& e) {
    keep(e.what());
    return e.status();
  } catch (const std::bad_alloc&) {
    status = Status::OutOfMemory;
    message = "no host memory";
  } catch (const std::exception& e) {
    keep(e.what());
    return status;
  } catch (...) {
  }
  keep(message);
  return status;
}

}  // namespace detail
}  // namespace mblas
