// What the products by dot-product instructions, of AMX tiles and of AVX-512's vectors, are made
// of: packing, and the multiplication of packed panels. dot.cpp drives them; amx_tiles.cpp and
// dot_vectors.cpp, compiled for these instructions, define them.
//
// A panel is 32 rows of op(A) or 32 columns of op(B): two tiles. Its depth is cut into steps of 64
// bytes of a row. A step of a panel is [plane][tile][1 KiB]: rows of A as they are, B with the
// elements of four bytes next to one another, which is how the instructions want it. A panel of B
// ends with what its kernel may want to know of each column.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mblas/types.hpp"

namespace mblas::cpu {

inline constexpr int kDotPanel = 32;           ///< rows or columns of a panel
inline constexpr int kDotPlaneStep = 2 << 10;  ///< bytes of one plane of a step of a panel
inline constexpr int kDotSums = 4 << 10;       ///< bytes of the sums of two panels
inline constexpr int kDotTail = 128;  ///< bytes after a panel of B: a number for each column

/// The magnitudes of a panel's elements as bits of a float: the least that is not 0 (none: all
/// ones) and the largest. Bits of floats order like their values; NaN lies above infinity.
struct DotRange {
  std::uint32_t least = ~std::uint32_t{0}, most = 0;
};

/// Powers of two between which magnitudes that are not 0 must lie.
struct DotLimits {
  int least = -126, most = 127;
};

/// Members (rows of op(A), columns of op(B)) to pack, k deep; element (i, p) lies at
/// from[i * member + p * depth], one of the two being 1.
struct DotPack {
  const void* from;
  std::int64_t member, depth;
  std::int64_t members, k;
  std::byte* to;
  std::int64_t panel_bytes;
  DotRange* ranges;  ///< one a panel; widened by what is packed. Not of integers
};

/// C = alpha A B + beta C, or a part of the depth of it, for a block of C.
struct DotBlock {
  const std::byte *A, *B;  ///< packed
  std::int64_t a_panel_bytes, b_panel_bytes;
  const std::byte* tail;  ///< of the first panel of B; null: counted before
  std::int64_t m, n;
  std::int64_t steps;
  int steps_at_once;      ///< of the depth, while the operands of the block pass by
  bool keep_a;            ///< in the first-level cache; else B. Only of one plane
  bool fetch_b;           ///< to the second-level cache, as vectors always do
  bool first, last;       ///< parts of the depth: sums start at 0; C is written
  std::byte* sums;        ///< kDotSums for each pair of panels; null where one pass does everything
  std::int64_t sums_row;  ///< pairs of panels between rows of `sums`
  const bool* skip;       ///< by pair of panels, or null: leave C as it is
  std::byte* buffer;      ///< kDotSums, 64-byte aligned
  void* C;
  std::int64_t ldc;
  double alpha, beta;
};

/// The code for a pair of types.
struct DotKernel {
  DType in, out;
  int planes;          ///< bfloat16 numbers that an element is split into
  int step;            ///< elements of depth in a step
  std::int64_t strip;  ///< panels of A that a thread packs and multiplies at a time, at most
  std::int64_t block;  ///< steps that sums stay in registers, at most
  void (*pack_a)(const DotPack&);
  void (*pack_b)(const DotPack&);
  void (*multiply)(const DotBlock&);
  void (*begin)();  ///< makes the registers of this thread ready
  void (*end)();    ///< gives them back
};

namespace amx {
extern const DotKernel gemm_kernels[6];
}  // namespace amx
namespace dot {
extern const DotKernel gemm_kernels[3];  ///< that of int8 first, which needs VNNI alone
}  // namespace dot

/// True where the CPU has the instructions and the kernel lets this process use them: asks for it
/// once.
bool amx_permitted();

}  // namespace mblas::cpu
