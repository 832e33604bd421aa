#include "cpu/isa.hpp"

#include <atomic>
#include <string>

#include "mblas/error.hpp"

namespace mblas::cpu {
namespace {

#define MBLAS_ISA_ROW(isa, title, supported)                                            \
  {                                                                                     \
#isa, title, supported, isa::gemm_kernels, isa::geam_blocks, isa::transpose_blocks, \
        isa::gf256_columns                                                              \
  }

/// Best first.
const CpuIsa kIsas[] = {
#ifdef MBLAS_HAVE_ISA_AVX512
    MBLAS_ISA_ROW(avx512, "AVX-512",
                  [] {
                    return __builtin_cpu_supports("avx512f") &&
                           __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") &&
                           __builtin_cpu_supports("f16c");
                  }),
#endif
#ifdef MBLAS_HAVE_ISA_AVX2
    MBLAS_ISA_ROW(avx2, "AVX2",
                  [] {
                    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                           __builtin_cpu_supports("f16c");
                  }),
#endif
    MBLAS_ISA_ROW(generic, "generic", [] { return true; }),
};
#undef MBLAS_ISA_ROW

std::atomic<const CpuIsa*> current = nullptr;

}  // namespace

const CpuIsa& select_isa(std::string_view forced) {
  std::string known, lacking;
  for (const CpuIsa& candidate : kIsas) {
    const bool runs = candidate.supported();
    if (runs && (forced.empty() || forced == candidate.name)) return candidate;
    std::string& list = runs ? known : lacking;
    if (!list.empty()) list += ", ";
    list += candidate.name;
  }
  throw Error(Status::UnknownName, "instruction set '" + std::string(forced) + "': this CPU runs " +
                                       known + (lacking.empty() ? "" : "; it lacks " + lacking));
}

void force_isa(std::string_view name) { current.store(&select_isa(name)); }

const CpuIsa& isa() {
  const CpuIsa* chosen = current.load(std::memory_order_relaxed);
  if (!chosen) {
    // Threads that race here store the same value; one that forces a set keeps it.
    const CpuIsa* best = &select_isa({});
    chosen = current.compare_exchange_strong(chosen, best) ? best : chosen;
  }
  return *chosen;
}

}  // namespace mblas::cpu
