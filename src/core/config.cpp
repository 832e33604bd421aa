#include "core/config.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/registry.hpp"
#include "cpu/isa.hpp"

namespace mblas {
namespace {

std::string quoted(std::string_view s) { return std::string("'").append(s).append("'"); }

/// The parts of `text` between separators, without surrounding blanks.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    std::string_view part = text.substr(0, end);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    parts.push_back(part);
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Calls f for every kernel of the operation in any backend.
template <class Args, class F>
void for_each_kernel_of(F&& f) {
  for (const Backend* backend : backends())
    for (const Kernel<Args>& kernel : backend->kernels<Args>()) f(kernel);
}
template <class F>
void for_each_kernel(std::string_view operation, F&& f) {
  if (operation == op_name<GemmArgs>) for_each_kernel_of<GemmArgs>(f);
  if (operation == op_name<GeamArgs>) for_each_kernel_of<GeamArgs>(f);
  if (operation == op_name<TransposeArgs>) for_each_kernel_of<TransposeArgs>(f);
  if (operation == op_name<TransposeInplaceArgs>) for_each_kernel_of<TransposeInplaceArgs>(f);
  if (operation == op_name<Gf256Args>) for_each_kernel_of<Gf256Args>(f);
}

std::vector<std::string> kernel_names(std::string_view operation) {
  std::vector<std::string> names;
  for_each_kernel(operation, [&](const auto& kernel) { names.emplace_back(kernel.name); });
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// Of all kernels of that name, in the kernels' order.
std::vector<std::string> config_names(std::string_view operation, std::string_view name) {
  std::vector<std::string> names;
  for_each_kernel(operation, [&](const auto& kernel) {
    if (kernel.name == name)
      names.insert(names.end(), kernel.configs.begin(), kernel.configs.end());
  });
  return names;
}

template <class Names>
std::string join(const Names& names) {
  std::string text;
  for (const auto& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

int parse_int(std::string_view text, int lowest, int highest, std::string_view setting) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest || value > highest)
    throw Error(Status::InvalidArgument, std::string(setting) + " is " + quoted(text) +
                                             ", not a number from " + std::to_string(lowest) +
                                             " to " + std::to_string(highest));
  return value;
}

}  // namespace

BackendChoice parse_backends(std::string_view names, std::string_view setting) {
  BackendChoice choice;
  if (names == "auto") return choice;
  choice.automatic = false;
  std::string reasons;
  bool usable = false;
  const auto lacks = [&](std::string_view name, std::string_view reason) {
    reasons.append(reasons.empty() ? "" : "; ").append(name).append(": ").append(reason);
  };
  for (std::string_view name : split(names, ',')) {
    try {
      Backend& backend = find_backend(name);
      // Once each: dispatch has room for as many candidates as the registry has backends.
      if (std::ranges::find(choice.list, &backend) == choice.list.end())
        choice.list.push_back(&backend);
      if (usable || backend.unavailable().empty())
        usable = true;
      else
        lacks(name, backend.unavailable());
    } catch (const Error& e) {
      if (e.status() != Status::BackendUnavailable)
        throw Error(e.status(), std::string(setting) + "=" + std::string(names) + ": " + e.what());
      lacks(name, "not built");
    }
  }
  if (!usable)
    throw Error(Status::BackendUnavailable, std::string(setting) + "=" + std::string(names) +
                                                " cannot run here: " + reasons +
                                                "; there are: " + list_backends());
  return choice;
}

KernelChoice parse_kernels(std::string_view spec, std::string_view setting) {
  KernelChoice choice;
  if (spec.empty()) return choice;
  for (std::string_view part : split(spec, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view operation = part.substr(0, equals);
    const auto found = std::ranges::find(kOperations, operation);
    if (equals == part.npos || found == kOperations.end())
      throw Error(Status::UnknownName, std::string(setting) + ": " + quoted(part) +
                                           " is not OPERATION=KERNEL with an operation of " +
                                           join(kOperations));
    const std::string_view forced = part.substr(equals + 1);
    const std::size_t colon = forced.find(':');
    const std::string_view kernel = forced.substr(0, colon);
    const auto names = kernel_names(operation);
    if (std::ranges::find(names, kernel) == names.end())
      throw Error(Status::UnknownName, std::string(setting) + ": no kernel of " +
                                           std::string(operation) + " is called " + quoted(kernel) +
                                           "; there are: " + join(names));
    std::string config;
    if (colon != forced.npos) {
      config = forced.substr(colon + 1);
      const auto configs = config_names(operation, kernel);
      if (std::ranges::find(configs, config) == configs.end())
        throw Error(Status::UnknownName,
                    std::string(setting) + ": kernel " + std::string(kernel) +
                        " has no configuration " + quoted(config) +
                        "; there are: " + (configs.empty() ? "none" : join(configs)));
    }
    choice[std::size_t(found - kOperations.begin())] = {std::string(kernel), config};
  }
  return choice;
}

VerifyChoice parse_verify(std::string_view spec, std::string_view setting) {
  VerifyChoice choice;
  if (spec.empty()) return choice;
  const std::size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  if (colon != spec.npos) {
    const std::string_view text = spec.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), choice.fraction);
    if (error != std::errc() || end != text.data() + text.size() ||
        !(choice.fraction > 0 && choice.fraction <= 1))
      throw Error(Status::InvalidArgument, std::string(setting) + ": " + quoted(text) +
                                               " is not a fraction above 0 and at most 1");
  }
  if (name == "auto" || name.find(',') != name.npos)
    throw Error(Status::UnknownName,
                std::string(setting) + ": name one backend to verify on, of " + list_backends());
  choice.backend = parse_backends(name, setting).list.front();
  return choice;
}

Compute parse_compute(std::string_view name, std::string_view setting) {
  std::string names;
  for (int i = 0; i <= int(Compute::OzakiFP64); ++i) {
    if (name == name_of(Compute(i))) return Compute(i);
    names.append(names.empty() ? "" : ", ").append(name_of(Compute(i)));
  }
  throw Error(Status::UnknownName, std::string(setting) + ": no compute mode is called " +
                                       quoted(name) + "; there are: " + names);
}

const Environment& environment() {
  static const Environment settings = [] {
    Environment env;
    const auto read = [](const char* name, auto&& use) {
      const char* value = std::getenv(name);
      if (value && *value) use(std::string_view(value), std::string_view(name));
    };
    // Names of backends and kernels are checked by each context: a program may register some later.
    read("MBLAS_BACKEND", [&](auto value, auto) { env.backend = value; });
    read("MBLAS_KERNEL", [&](auto value, auto) { env.kernel = value; });
    read("MBLAS_VERIFY", [&](auto value, auto) { env.verify = value; });
    read("MBLAS_TUNE_FILE", [&](auto value, auto) { env.tune_file = value; });
    read("MBLAS_COMPUTE", [&](auto value, auto name) { env.compute = parse_compute(value, name); });
    read("MBLAS_NUM_THREADS",
         [&](auto value, auto name) { env.num_threads = parse_int(value, 1, 1 << 20, name); });
    read("MBLAS_DEVICE",
         [&](auto value, auto name) { env.device = parse_int(value, 0, 1023, name); });
    read("MBLAS_VERBOSE",
         [&](auto value, auto name) { env.verbose = parse_int(value, 0, 2, name); });
    read("MBLAS_ARCH", [](auto value, auto) { cpu::force_isa(value); });
    return env;
  }();
  return settings;
}

}  // namespace mblas
