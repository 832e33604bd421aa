#include "info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"
#include "machine.hpp"
#include "mblas/backend.hpp"
#include "mblas/tune.hpp"
#include "mblas/version.hpp"
#include "setup.hpp"

namespace mblas::bench {
namespace {

constexpr const char* kVariables[] = {
    "MBLAS_BACKEND", "MBLAS_KERNEL",  "MBLAS_COMPUTE", "MBLAS_NUM_THREADS", "MBLAS_ARCH",
    "MBLAS_DEVICE",  "MBLAS_VERBOSE", "MBLAS_VERIFY",  "MBLAS_TUNE_FILE",   "OMP_NUM_THREADS"};

/// The library's own backends, whether this build has them or not.
constexpr const char* kBuiltIn[] = {"openmp", "eigen", "cuda", "cublas"};

struct KernelInfo {
  std::string_view op, name, note;
  std::span<const std::string_view> configs;
};

struct BackendInfo {
  std::string name, unavailable, description;
  std::vector<KernelInfo> kernels;
};

template <class Args>
void add_kernels(const Backend& backend, std::vector<KernelInfo>& list) {
  for (const Kernel<Args>& kernel : backend.kernels<Args>())
    list.push_back({op_name<Args>, kernel.name, kernel.note, kernel.configs});
}

BackendInfo describe(Backend& backend) {
  BackendInfo info{std::string(backend.name()), backend.unavailable(), {}, {}};
  if (info.unavailable.empty()) info.description = backend.describe();
  add_kernels<GemmArgs>(backend, info.kernels);
  add_kernels<GeamArgs>(backend, info.kernels);
  add_kernels<TransposeArgs>(backend, info.kernels);
  add_kernels<TransposeInplaceArgs>(backend, info.kernels);
  add_kernels<Gf256Args>(backend, info.kernels);
  return info;
}

std::vector<BackendInfo> all_backends() {
  std::vector<BackendInfo> all;
  for (Backend* backend : backends()) all.push_back(describe(*backend));
  for (const char* name : kBuiltIn) {
    try {
      find_backend(name);
    } catch (const Error& e) {
      all.push_back({name, e.what(), {}, {}});
    }
  }
  return all;
}

/// What the tune file has for a device.
struct TunedDevice {
  std::string backend, device;
  int entries = 0;
  int unknown = 0;    ///< of those: naming kernels or configurations that are not here
  bool here = false;  ///< the device is the present one
};

std::vector<TunedDevice> tuned_devices() {
  std::vector<TunedDevice> all;
  for (const TuneEntry& e : tune_file().entries) {
    auto known = std::ranges::find_if(
        all, [&](const TunedDevice& d) { return d.backend == e.backend && d.device == e.device; });
    if (known == all.end()) {
      known = all.insert(all.end(), {e.backend, e.device});
      for (Backend* backend : backends())
        if (backend->name() == e.backend && backend->unavailable().empty())
          known->here = backend->make_queue({})->device().name == e.device;
    }
    ++known->entries;
    const std::string name = e.config.empty() ? e.kernel : e.kernel + ":" + e.config;
    for (const Backend* backend : backends())
      if (backend->name() == e.backend)
        known->unknown += std::ranges::count(kernel_names(*backend, e.operation, true), name) == 0;
  }
  return all;
}

std::string tune_json() {
  const TuneFile& file = tune_file();
  std::vector<std::string> devices;
  for (const TunedDevice& d : tuned_devices())
    devices.push_back(JsonObject()
                          .add("backend", d.backend)
                          .add("device", d.device)
                          .add("entries", d.entries)
                          .add("unknown", d.unknown)
                          .add("here", d.here)
                          .text());
  return JsonObject()
      .add("path", file.path)
      .add("problem", file.problem)
      .raw("devices", json_array(devices, 4))
      .text(2);
}

void print_tune() {
  const TuneFile& file = tune_file();
  fmt::print("\nTune file\n");
  if (file.path.empty())
    fmt::print("  none; the default is {}\n", tune_file_path());
  else if (!file.problem.empty())
    fmt::print("  {} is ignored: {}\n", file.path, file.problem);
  else
    fmt::print("  {}\n", file.path);
  for (const TunedDevice& d : tuned_devices())
    fmt::print("  {:<8} {}: {} entries{}{}\n", d.backend, d.device, d.entries,
               d.here ? "" : "; not this device",
               d.unknown ? fmt::format("; {} name what is not here", d.unknown) : "");
}

void print_json(const std::vector<BackendInfo>& all) {
  std::vector<std::string> listed;
  for (const BackendInfo& backend : all) {
    std::vector<std::string> kernels;
    for (const KernelInfo& kernel : backend.kernels) {
      std::vector<std::string> configs;
      for (const std::string_view config : kernel.configs) configs.push_back(json_string(config));
      kernels.push_back(JsonObject()
                            .add("op", kernel.op)
                            .add("name", kernel.name)
                            .add("note", kernel.note)
                            .raw("configs", fmt::format("[{}]", fmt::join(configs, ", ")))
                            .text());
    }
    listed.push_back(JsonObject()
                         .add("name", backend.name)
                         .add("available", backend.unavailable.empty())
                         .add("reason", backend.unavailable)
                         .add("description", backend.description)
                         .raw("kernels", json_array(kernels, 6))
                         .text(4));
  }
  JsonObject environment;
  for (const char* name : kVariables)
    if (const char* value = std::getenv(name)) environment.add(name, value);
  fmt::print("{}\n", JsonObject()
                         .add("version", version())
                         .add("commit", commit())
                         .add("compiler", compiler())
                         .add("cpu", cpu_model())
                         .add("cores", cpu_cores())
                         .raw("backends", json_array(listed, 2))
                         .raw("tune_file", tune_json())
                         .raw("environment", environment.text())
                         .text(0));
}

void print_text(const std::vector<BackendInfo>& all) {
  fmt::print("mblas {} ({}), {}\n{}, {} cores\n\nBackends\n", version(), commit(), compiler(),
             cpu_model(), cpu_cores());
  for (const BackendInfo& backend : all)
    fmt::print("  {:<8} {}\n", backend.name,
               backend.unavailable.empty() ? "available: " + backend.description
                                           : "not available: " + backend.unavailable);
  fmt::print("\nKernels, best first\n");
  for (const BackendInfo& backend : all)
    for (const KernelInfo& kernel : backend.kernels)
      fmt::print(
          "  {:<8} {:<18} {:<14} {}{}\n", backend.name, kernel.op, kernel.name, kernel.note,
          kernel.configs.empty() ? "" : fmt::format(" ({} configurations)", kernel.configs.size()));
  print_tune();
  fmt::print("\nEnvironment\n");
  bool any = false;
  for (const char* name : kVariables) {
    const char* value = std::getenv(name);
    if (!value) continue;
    fmt::print("  {}={}\n", name, value);
    any = true;
  }
  if (!any) fmt::print("  no variable of mblas is set\n");
}

}  // namespace

void print_info(bool json) {
  const std::vector<BackendInfo> all = all_backends();
  if (json)
    print_json(all);
  else
    print_text(all);
}

}  // namespace mblas::bench
