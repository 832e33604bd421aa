#include "cpu/isa.hpp"

#ifdef MBLAS_HAVE_ISA_AVX2
#include <cpuid.h>
#endif

#include <string>

#include "mblas/error.hpp"

namespace mblas::cpu {
namespace {

#ifdef MBLAS_HAVE_ISA_AVX2
/// Conversions of half precision, which not every compiler's __builtin_cpu_supports knows.
bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif
#ifdef MBLAS_HAVE_ISA_AVX512
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("fma") && has_f16c();
}
bool has_vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }
/// Zen 4 starts a product of vectors of bfloat16 each cycle, twice the speed of float's; Emerald
/// Rapids one in two cycles, half of that speed.
bool multiplies_bf16_fast() { return __builtin_cpu_is("amd"); }
#endif

#define MBLAS_ISA_ROW(name, isa, title, supported, affine, ...)                            \
  {                                                                                        \
    name, title, supported, isa::gemm_kernels, isa::gemm_panels, isa::thin_kernels,        \
        isa::split_along, isa::gemm_finish, isa::geam_blocks, isa::transpose_blocks,       \
        isa::transpose_panels, isa::gf256_table_columns, affine __VA_OPT__(, ) __VA_ARGS__ \
  }

/// Best first.
const CpuIsa kIsas[] = {
#if defined(MBLAS_HAVE_AMX) && defined(MBLAS_HAVE_ISA_AVX512)
    MBLAS_ISA_ROW("amx", avx512, "AVX-512 and AMX", [] { return has_avx512() && amx_permitted(); },
                  avx512::gf256_affine_columns, dot::gemm_kernels, amx::gemm_kernels, nullptr,
                  {amx::thin_kernels, avx512_vnni::thin_kernels}),
#endif
#ifdef MBLAS_HAVE_ISA_AVX512
    MBLAS_ISA_ROW("avx512_bf16", avx512, "AVX-512 with VNNI and BF16",
                  [] { return has_vnni() && __builtin_cpu_supports("avx512bf16"); },
                  avx512::gf256_affine_columns, dot::gemm_kernels, {}, multiplies_bf16_fast,
                  {avx512_vnni::thin_kernels, avx512_bf16::thin_kernels}),
    MBLAS_ISA_ROW("avx512_vnni", avx512, "AVX-512 with VNNI", has_vnni,
                  avx512::gf256_affine_columns, std::span(dot::gemm_kernels).first(1), {}, nullptr,
                  {avx512_vnni::thin_kernels}),
    MBLAS_ISA_ROW("avx512", avx512, "AVX-512", has_avx512, avx512::gf256_affine_columns),
#endif
#ifdef MBLAS_HAVE_ISA_AVX2
    MBLAS_ISA_ROW(
        "avx2", avx2, "AVX2",
        [] {
          return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
        },
        avx2::gf256_affine_columns),
#endif
    MBLAS_ISA_ROW(
        "generic", generic, "generic", [] { return true; }, nullptr),
};
#undef MBLAS_ISA_ROW

bool is_amd() {
#ifdef MBLAS_HAVE_ISA_AVX2
  static const bool amd = __builtin_cpu_is("amd");
  return amd;
#else
  return false;
#endif
}

/// By family and model: compilers' __builtin_cpu_is takes some of Zen 4 for it.
bool is_zen3() {
#ifdef MBLAS_HAVE_ISA_AVX2
  static const bool zen3 = [] {
    unsigned signature, b, c, d;
    if (!is_amd() || !__get_cpuid(1, &signature, &b, &c, &d)) return false;
    const unsigned family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
    const unsigned tens = signature >> 16 & 0xf;  // of the model
    return family == 0x19 && (tens == 0 || tens == 2 || tens == 4 || tens == 5);
  }();
  return zen3;
#else
  return false;
#endif
}

}  // namespace

const CpuIsa& select_isa(std::string_view forced) {
  std::string known, lacking;
  for (const CpuIsa& candidate : kIsas) {
    const bool runs = candidate.supported();
    const bool best = !candidate.best || candidate.best();
    if (runs && (forced.empty() ? best : forced == candidate.name)) return candidate;
    std::string& list = runs ? known : lacking;
    if (!list.empty()) list += ", ";
    list += candidate.name;
  }
  throw Error(Status::UnknownName, "instruction set '" + std::string(forced) + "': this CPU runs " +
                                       known + (lacking.empty() ? "" : "; it lacks " + lacking));
}

std::atomic<const CpuIsa*> detail::current_isa = nullptr;

const CpuIsa& detail::choose_isa() {
  // Threads that race here store the same value; one that forces a set keeps it.
  const CpuIsa* chosen = nullptr;
  const CpuIsa* const best = &select_isa({});
  return current_isa.compare_exchange_strong(chosen, best) ? *best : *chosen;
}

void force_isa(std::string_view name) { detail::current_isa.store(&select_isa(name)); }

bool follows_few_rows() { return is_amd(); }
bool follows_rows_far() { return is_zen3(); }
bool meets_soon() { return is_amd(); }
bool spares_loads() { return !is_amd(); }

bool has_gfni() {
#ifdef MBLAS_HAVE_ISA_AVX2
  static const bool has = __builtin_cpu_supports("gfni");
  return has;
#else
  return false;
#endif
}

}  // namespace mblas::cpu
