// What the kernels on GemmPanels share: the panels of a call's type and its operands as tiles.
#pragma once

#include "cpu/isa.hpp"
#include "mblas/backend.hpp"

namespace mblas::cpu {

/// Work that pays for starting a thread, in vector multiply-adds: about 5 µs.
inline constexpr double kGemmGrain = 16384;

/// nullptr, or why a kernel on panels does not take the call.
inline const char* unless_panels(const GemmArgs& args) {
  if (args.in != args.out || args.in > DType::cf64)
    return "float, double and complex products only";
  return is_native(args.compute) ? nullptr : "computes in native arithmetic only";
}

inline const GemmPanels& panels_of(const GemmArgs& args) { return isa().panels[int(args.in)]; }

/// Product `batch` of the call as one tile.
inline GemmTile tile_of(const GemmArgs& args, std::int64_t batch) {
  const Strides a = strides_of(args.transA, args.A.ld), b = strides_of(args.transB, args.B.ld);
  const int size = size_of(args.in);
  return {args.k > 0 ? args.A.at(batch, size) : nullptr,
          a.row,
          a.col,
          args.k > 0 ? args.B.at(batch, size) : nullptr,
          b.row,
          b.col,
          args.C.at(batch, size),
          args.C.ld,
          is_conjugated(args.transA),
          is_conjugated(args.transB),
          args.m,
          args.n,
          args.k,
          args.alpha,
          args.beta,
          args.m * args.k * size};
}

/// p + `elements` of `size` bytes; null stays null.
inline const void* advance(const void* p, std::int64_t elements, int size) {
  return p ? static_cast<const std::byte*>(p) + elements * size : nullptr;
}
inline void* advance(void* p, std::int64_t elements, int size) {
  return static_cast<std::byte*>(p) + elements * size;
}

}  // namespace mblas::cpu
