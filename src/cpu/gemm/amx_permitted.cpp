// May this process use AMX tiles?
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/gemm/dot.hpp"

namespace mblas::cpu {
namespace {

/// AMX with bfloat16 and int8, and the AVX-512 conversions that go with it; registers that the
/// operating system saves.
bool has_amx() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(1, 0, &a, &b, &c, &d) || !(c & 1u << 27)) return false;  // XGETBV
  unsigned low, high;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kTileState = 3u << 17;
  if ((low & kTileState) != kTileState) return false;
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;
  constexpr unsigned kAmx = kAmxBf16 | kAmxTile | kAmxInt8;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kAmx) != kAmx) return false;
  constexpr unsigned kAvx512Bf16 = 1u << 5;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & kAvx512Bf16);
}

/// Linux lets a process use the tiles' data once it has asked; it may refuse, as signal frames
/// grow.
bool ask() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

bool amx_permitted() {
  static const bool permitted = has_amx() && ask();
  return permitted;
}

}  // namespace mblas::cpu
