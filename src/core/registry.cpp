#include "core/registry.hpp"

#include <atomic>
#include <mutex>

#include "core/builtin.hpp"

namespace mblas {
namespace {

struct NotBuilt {
  std::string_view name, reason;
};
constexpr NotBuilt kNotBuilt[] = {
#ifndef MBLAS_HAVE_EIGEN
    {"eigen", "not built: configure with Eigen 3.4 installed and MBLAS_ENABLE_EIGEN=ON"},
#endif
#ifndef MBLAS_HAVE_CUDA
    {"cuda", "not built: configure with nvcc on the PATH and MBLAS_ENABLE_CUDA=ON"},
#endif
#ifndef MBLAS_HAVE_CUBLAS
    {"cublas", "not built: configure with the CUDA toolkit installed and MBLAS_ENABLE_CUBLAS=ON"},
#endif
    {"", ""}};

// Never destroyed: contexts of other threads and static objects may outlive main(). A fixed array,
// so that a span handed out stays valid while another thread registers.
struct Registry {
  static constexpr std::size_t kCapacity = 64;
  Backend* list[kCapacity] = {};
  std::atomic<std::size_t> size{0};
  std::size_t builtin = 0;
  std::mutex adding;

  Registry() {
    add(make_openmp_backend());
#ifdef MBLAS_HAVE_EIGEN
    add(make_eigen_backend());
#endif
#ifdef MBLAS_HAVE_CUDA
    add(make_cuda_backend());
#endif
#ifdef MBLAS_HAVE_CUBLAS
    add(make_cublas_backend());
#endif
    builtin = size;
  }

  void add(std::unique_ptr<Backend> backend) {
    const std::size_t n = size.load();
    if (n == kCapacity) throw Error(Status::NotSupported, "register_backend: the list is full");
    list[n] = backend.release();
    size.store(n + 1, std::memory_order_release);
  }

  std::span<Backend* const> all() const { return {list, size.load(std::memory_order_acquire)}; }

  static Registry& get() {
    static Registry* registry = new Registry;
    return *registry;
  }
};

}  // namespace

std::atomic<bool> device_backend_added{false};

std::span<Backend* const> backends() { return Registry::get().all(); }

std::span<Backend* const> user_backends() {
  const Registry& registry = Registry::get();
  return registry.all().subspan(registry.builtin);
}

std::string list_backends() {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view reason) {
    if (!text.empty()) text += ", ";
    text += name;
    if (!reason.empty()) text.append(" (").append(reason).append(")");
  };
  for (Backend* backend : backends()) add(backend->name(), backend->unavailable());
  for (const NotBuilt& missing : kNotBuilt)
    if (!missing.name.empty()) add(missing.name, missing.reason);
  return text;
}

Backend& find_backend(std::string_view name) {
  for (Backend* backend : backends())
    if (backend->name() == name) return *backend;
  for (const NotBuilt& missing : kNotBuilt)
    if (!name.empty() && missing.name == name)
      throw Error(Status::BackendUnavailable,
                  "backend " + std::string(name) + " is " + std::string(missing.reason));
  throw Error(Status::UnknownName,
              "no backend is called '" + std::string(name) + "'; there are: " + list_backends());
}

void register_backend(std::unique_ptr<Backend> backend) {
  if (!backend) throw Error(Status::NullPointer, "register_backend: backend is null");
  const std::string name(backend->name());
  if (name.empty() || name == "auto" || name.find_first_of(",:= \t\n") != std::string::npos)
    throw Error(Status::InvalidArgument,
                "register_backend: '" + name + "' cannot be a backend's name");
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.adding);
  for (const Backend* other : registry.all())
    if (other->name() == name)
      throw Error(Status::InvalidArgument, "register_backend: '" + name + "' is taken");
  for (const NotBuilt& missing : kNotBuilt)
    if (missing.name == name)
      throw Error(Status::InvalidArgument,
                  "register_backend: '" + name + "' is a name of the library's own");
  if (backend->memory() != Memory::Host)
    device_backend_added.store(true, std::memory_order_release);
  registry.add(std::move(backend));
}

}  // namespace mblas
