// The environment's settings, and the parsing that they share with Context's setters.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "mblas/backend.hpp"
#include "mblas/types.hpp"

namespace mblas {

/// Index of an operation in per-operation settings.
inline constexpr std::array<std::string_view, 5> kOperations = {
    op_name<GemmArgs>, op_name<GeamArgs>, op_name<TransposeArgs>, op_name<TransposeInplaceArgs>,
    op_name<Gf256Args>};
template <class Args>
constexpr std::size_t op_index() {
  for (std::size_t i = 0; i < kOperations.size(); ++i)
    if (kOperations[i] == op_name<Args>) return i;
  return kOperations.size();
}

/// Backends in order of preference.
struct BackendChoice {
  bool automatic = true;
  std::vector<Backend*> list;
};
BackendChoice parse_backends(std::string_view names, std::string_view setting);

/// A kernel by name, and one of its configurations or, where that is empty, the kernel's own
/// choice.
struct ForcedKernel {
  std::string kernel, config;
  bool empty() const { return kernel.empty(); }
};
/// A forced kernel for each operation; empty: none.
using KernelChoice = std::array<ForcedKernel, kOperations.size()>;
KernelChoice parse_kernels(std::string_view spec, std::string_view setting);

struct VerifyChoice {
  Backend* backend = nullptr;  // null: no verification
  double fraction = 1;
};
VerifyChoice parse_verify(std::string_view spec, std::string_view setting);

Compute parse_compute(std::string_view name, std::string_view setting);

struct Environment {
  std::string backend = "auto", kernel, verify, tune_file;
  Compute compute = Compute::Default;
  int num_threads = 0, device = 0, verbose = 0;
};
/// The value of MBLAS_TUNE_FILE that stands for none at all.
inline constexpr std::string_view kNoTuneFile = "off";
/// Reads every MBLAS_ variable once, at the first call. A malformed value is an Error at each call.
const Environment& environment();

}  // namespace mblas
