// AMX's instructions. Local to the including object, which is compiled for them.
#pragma once

#include <cstdint>

#include "cpu/simd.hpp"

namespace mblas::cpu {
namespace {

// The intrinsics do not tell the compiler what memory they touch.
#define MBLAS_TILE_ZERO(t) asm volatile("tilezero %%tmm" #t ::: "memory")
#define MBLAS_TILE_LOAD(t, p, stride) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(p), "r"(std::int64_t(stride)) : "memory")
#define MBLAS_TILE_STORE(t, p, stride) \
  asm volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(p), "r"(std::int64_t(stride)) : "memory")
#define MBLAS_TILE_PRODUCT(c, a, b)                                              \
  do {                                                                           \
    if constexpr (Integers)                                                      \
      asm volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory");   \
    else                                                                         \
      asm volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory"); \
  } while (false)

/// Eight tiles of rows of 64 bytes: those of 0 … 4 as told, 16 of the others.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
MBLAS_INLINE void configure(int rows) {
  static_assert(sizeof(TileConfig) == 64);
  TileConfig config;
  for (int t = 0; t <= 4; ++t) config.rows[t] = std::uint8_t(rows);
  asm volatile("ldtilecfg %0" ::"m"(config));
}
MBLAS_INLINE void release() { asm volatile("tilerelease" ::: "memory"); }

}  // namespace
}  // namespace mblas::cpu
