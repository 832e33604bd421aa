#include "cuda/cublas_library.hpp"

#include <dlfcn.h>

#include "cuda/device.hpp"
#include "mblas/error.hpp"

namespace mblas::cuda {
namespace {

struct Handles {
  void* cublas = nullptr;
  void* lt = nullptr;
};

/// Opens both libraries as `prefix`libcublas….so`suffix`. cublasLt first: libcublas needs that very
/// one.
Handles open(const std::string& prefix, const std::string& suffix, std::string& error) {
  Handles handles;
  const auto open_one = [&](const char* name) {
    void* handle = dlopen((prefix + name + ".so" + suffix).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle && error.empty()) error = dlerror();
    return handle;
  };
  handles.lt = open_one("libcublasLt");
  if (handles.lt) handles.cublas = open_one("libcublas");
  return handles;
}

/// The newest version that the driver can run, first where the loader looks, then where the toolkit
/// usually is.
Handles open_any(std::string& error) {
  const int driver_major = devices().driver_version / 1000;
  for (const char* prefix : {"", "/usr/local/cuda/lib64/"}) {
    for (const int major : {13, 12}) {
      if (major > driver_major) continue;
      const Handles handles = open(prefix, "." + std::to_string(major), error);
      if (handles.cublas) return handles;
    }
    const Handles handles = open(prefix, "", error);
    if (handles.cublas) return handles;
  }
  return {};
}

CublasLibrary load() {
  CublasLibrary library;
  std::string error;
  const Handles handles = open_any(error);
  if (!handles.cublas) {
    library.unavailable = "cuBLAS 12 or 13 cannot be opened: " + error;
    return library;
  }
  const auto find = [&](void* handle, const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (!function && library.unavailable.empty())
      library.unavailable = std::string("libcublas lacks ") + name;
  };
#define MBLAS_FIND(name) find(handles.cublas, #name, library.name);
#define MBLAS_FIND_LT(name) find(handles.lt, #name, library.name);
  MBLAS_CUBLAS_FUNCTIONS(MBLAS_FIND)
  MBLAS_CUBLASLT_FUNCTIONS(MBLAS_FIND_LT)
#undef MBLAS_FIND
#undef MBLAS_FIND_LT
  if (!library.unavailable.empty()) return library;

  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(library.cublasCreate_v2), &info) && info.dli_fname)
    library.path = info.dli_fname;
  for (const auto part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    library.cublasGetProperty(part, &value);
    library.version += (library.version.empty() ? "" : ".") + std::to_string(value);
  }
  return library;
}

}  // namespace

const CublasLibrary& cublas() {
  static const CublasLibrary& library = *new CublasLibrary(load());  // for queues that are statics
  return library;
}

void cublas_check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const Status meaning = [&] {
    switch (status) {
      case CUBLAS_STATUS_ALLOC_FAILED:
        return Status::OutOfMemory;
      case CUBLAS_STATUS_NOT_INITIALIZED:
      case CUBLAS_STATUS_ARCH_MISMATCH:
        return Status::BackendUnavailable;
      case CUBLAS_STATUS_NOT_SUPPORTED:
      case CUBLAS_STATUS_INVALID_VALUE:
        return Status::NotSupported;
      default:
        return Status::DeviceError;
    }
  }();
  throw Error(meaning, std::string(what) + ": " + cublas().cublasGetStatusString(status));
}

}  // namespace mblas::cuda
