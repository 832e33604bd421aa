// The context of a call (which backend, which device, which stream) and the receipt of the last
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "mblas/error.hpp"
#include "mblas/export.hpp"
#include "mblas/types.hpp"

namespace mblas {

/// A kernel, or with an empty kernel name a whole backend, that was not used, and why.
struct Decline {
  std::string_view backend, kernel, reason;
};

/// The receipt of a call: what ran. Valid until the context's next call.
struct Dispatch {
  std::string_view operation;  ///< gemm, geam, transpose, transpose_inplace, gf256
  std::string_view backend;    ///< empty: a quick return, nothing had to be computed
  std::string_view kernel;
  std::string_view config;  ///< of the kernel, where one was forced or tuned; empty: its own choice
  bool tuned = false;       ///< kernel and configuration are the tune file's
  Compute compute = Compute::Default;
  std::size_t workspace_bytes = 0;  ///< of the kernel, and of the staging where `staged_blocks` > 0
  /// How the call's epilogue was computed: "fused" by the kernel, "pass" over C after it; empty:
  /// there was none.
  std::string_view epilogue;
  std::int64_t staged_blocks = 0;  ///< blocks in which host operands went through the device
  std::vector<Decline> declined;   ///< better rows and preferred backends that were passed over
};

/// Settings, queues and workspaces. Contexts are independent of one another; one is used by one
/// thread at a time. A new context has the settings of the environment (README.md lists the
/// variables), read once per process. Setters throw mblas::Error and then leave the context as it
/// was.
class MBLAS_EXPORT Context {
 public:
  Context();
  /// A context that uses `backend`, as set_backend does.
  explicit Context(std::string_view backend);
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  /// A backend's name, a comma list in order of preference, or `auto`. A single backend that cannot
  /// run here is an error that says why; of a list, the first one that can do a call does it.
  void set_backend(std::string_view names);
  /// Device ordinal of device backends. Drops the queues made so far, as set_stream does.
  void set_device(int ordinal);
  /// The cudaStream_t (or a user's backend's own) that device backends work on from now on; null:
  /// the default stream. The context does not own it; it must outlive its use here. Workspace that
  /// graphs captured from it may use is kept as long as the context.
  void set_stream(void* stream);
  /// Threads of host backends; 0: MBLAS_NUM_THREADS, else what OpenMP would use, 1 in a parallel
  /// region.
  void set_num_threads(int threads);
  /// Forces kernels by name: `gemm=shared,transpose=naive`; an empty string: the library's choice.
  /// `gemm=simt:64x64` also forces one of the kernel's configurations. A forced kernel that
  /// declines a call is an error that quotes its reason.
  void set_kernel(std::string_view spec);
  /// The mode of calls that leave GemmOptions::compute at Default.
  void set_compute(Compute compute);
  /// Most bytes of workspace that a kernel or the staging may have, of each memory; 0: the
  /// documented defaults. A kernel that would need more declines.
  void set_workspace_limit(std::size_t bytes);
  /// Workspace of the caller's, in host or device memory and at a multiple of 256 bytes, that
  /// kernels use in place of the context's own for as long as it is set; null: none. A kernel that
  /// needs more than `bytes` declines. Host operands are still staged through memory of the
  /// context's.
  void set_workspace(void* p, std::size_t bytes);
  /// Re-runs calls on another backend: `eigen` or `cublas:0.1` (that fraction of them); empty:
  /// none.
  void set_verify(std::string_view spec);
  /// 0: silent; 1: a line per call on stderr; 2: with the declines. Lines of device backends are
  /// timed, so level 1 waits for each call.
  void set_verbose(int level);

  /// What the last call ran.
  const Dispatch& last_dispatch() const;
  /// The message of the last error on this context; empty when there was none.
  std::string_view last_error() const;
  /// Waits for every queue of the context.
  void synchronize();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// The calling thread's default context: what the functions without a Context argument use.
MBLAS_EXPORT Context& default_context();

namespace detail {
MBLAS_EXPORT void set_last_error(Context& context, std::string_view message) noexcept;
/// Turns the exception in flight into a status, keeping its message as the context's last error.
MBLAS_EXPORT Status catch_status(Context* context) noexcept;

template <class First, class... Rest>
Context* context_of(First& first, Rest&...) {
  if constexpr (std::is_same_v<First, Context>)
    return &first;
  else
    return nullptr;
}

template <class F>
Status to_status(Context* context, F&& f) noexcept {
  try {
    f();
    return Status::Ok;
  } catch (...) {
    return catch_status(context);
  }
}
}  // namespace detail
}  // namespace mblas
