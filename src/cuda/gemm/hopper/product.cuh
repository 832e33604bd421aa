// The products of a warpgroup: wgmma of 64 rows, kN columns and 32 bytes of k, both operands in
// shared memory or, of TF32 and bfloat16, a in registers. PTX ISA, "Asynchronous warpgroup level
// matrix instructions".
#pragma once

#include <type_traits>

#include "cuda/element.cuh"
#include "cuda/gemm/hopper/sums.hpp"

namespace mblas::cuda::gemm::hopper {

/// float as a sum of `kCount` matrices of T: planes.cuh.
template <class T, int kCount>
struct Planes {};
/// int8, of whose sums the residues are stored, as bytes: of matrix b of a batch modulo modulus b
/// of ozaki/moduli.hpp.
struct Residues {};
template <class In>
inline constexpr int kPlanesOf = 1;
template <class T, int kCount>
inline constexpr int kPlanesOf<Planes<T, kCount>> = kCount;

template <class In>
struct ElementOf : std::type_identity<In> {};
template <class T, int kCount>
struct ElementOf<Planes<T, kCount>> : std::type_identity<T> {};
template <>
struct ElementOf<Residues> : std::type_identity<std::int8_t> {};
/// What the tensor cores multiply.
template <class In>
using Element = typename ElementOf<In>::type;
template <class In>
struct SumOf : AccumulatorOf<Element<In>> {};
/// What products of In are added up in.
template <class In>
using Sum = typename SumOf<In>::type;
template <class In>
inline constexpr int kBytesOf = int(sizeof(Element<In>));

/// The upper half of a descriptor: groups of 8 rows of 128, 64 or 32 bytes, swizzled.
constexpr unsigned groups_of(unsigned row_bytes) {
  return 8 * row_bytes / 16 | (row_bytes == 128 ? 1u : row_bytes == 64 ? 2u : 3u) << 30;
}

/// Where an operand lies in shared memory: rows of 128 or 64 bytes whose chunks of 16 are swizzled,
/// 8 of them a group. `next_columns`: bytes to the next row's length of the other dimension, where
/// that is the one along the rows.
template <int kRowBytes>
class DescriptorOf {
 public:
  __device__ DescriptorOf(unsigned address, unsigned next_columns)
      : low_((address & kWithinBlock) / 16 | (next_columns / 16) << 16) {}
  /// So many bytes on, a multiple of 16. (With all of it computed anew for each product, the loop
  /// along k had twice as many instructions.)
  __device__ DescriptorOf operator+(unsigned bytes) const {
    return DescriptorOf(low_ + bytes / 16);
  }
  __device__ operator std::uint64_t() const {
    return low_ | std::uint64_t{groups_of(kRowBytes)} << 32;
  }
  __device__ unsigned low() const { return low_; }

 private:
  static constexpr unsigned kWithinBlock = 0x3ffff;  // above: which block of the cluster
  __device__ explicit DescriptorOf(unsigned low) : low_(low) {}
  unsigned low_;
};
using Descriptor = DescriptorOf<128>;

/// The same of rows as long as is found out when the kernel runs, of an operand that does not run
/// along k and has no more than such a row: what the tensor cores read beyond it is the row again.
class NarrowDescriptor {
 public:
  __device__ NarrowDescriptor(unsigned address, unsigned row_bytes)
      : from_(address, 0), groups_(groups_of(row_bytes)) {}
  __device__ NarrowDescriptor operator+(unsigned bytes) const {
    NarrowDescriptor further = *this;
    further.from_ = from_ + bytes;
    return further;
  }
  __device__ operator std::uint64_t() const { return from_.low() | std::uint64_t{groups_} << 32; }

 private:
  Descriptor from_;
  unsigned groups_;
};

/// Registers that products in flight write are not touched by what comes before, and after.
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until all but the kNewer newest groups are done.
template <int kNewer>
__device__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kNewer) : "memory");
}

/// Nothing that uses `d` is moved before this: the compiler does not know that products are still
/// writing to it after their instruction.
template <int kCount, class T>
__device__ void pin(T (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if constexpr (std::is_same_v<T, float>)
      asm volatile("" : "+f"(d[i])::"memory");
    else
      asm volatile("" : "+r"(d[i])::"memory");
  }
}

// clang-format off
#define MBLAS_FLOAT(x) "+f"(x)
#define MBLAS_INT(x) "+r"(x)
/// p0 is the number of the operand after the sums; the operands a, b and kAdd follow, then `...`.
#define MBLAS_PRODUCT(n, shape, p0, p1, p2, scales, kind, ...)                                 \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" p2 ", 0;\n"                           \
               "wgmma.mma_async.sync.aligned.m64n" #n shape " {" MBLAS_SUMS_##n "}, %" p0 ", %" p1   \
               ", add" scales ";\n}"                                                               \
               : MBLAS_OF_##n(kind)                                                                \
               : "l"(a), "l"(b), "n"(int(kAdd)) __VA_OPT__(, ) __VA_ARGS__)
#define MBLAS_PRODUCT_BY_REGISTERS(n, shape, a0, a1, a2, a3, p1, p2, end)                          \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" p2 ", 0;\n"                               \
               "wgmma.mma_async.sync.aligned.m64n" #n shape " {" MBLAS_SUMS_##n "}, "               \
               "{%" a0 ", %" a1 ", %" a2 ", %" a3 "}, %" p1 ", add, 1, 1" end ";\n}"               \
               : MBLAS_OF_##n(MBLAS_FLOAT)                                                         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(kAdd)))
#define MBLAS_PRODUCTS_BY_REGISTERS(n, a0, a1, a2, a3, p1, p2)                                     \
  if constexpr (std::is_same_v<In, __nv_bfloat16>)                                                 \
    MBLAS_PRODUCT_BY_REGISTERS(n, "k16.f32.bf16.bf16", a0, a1, a2, a3, p1, p2, ", 0");             \
  else                                                                                             \
    MBLAS_PRODUCT_BY_REGISTERS(n, "k8.f32.tf32.tf32", a0, a1, a2, a3, p1, p2, "")
#define MBLAS_PRODUCTS(n, p0, p1, p2, p3, p4)                                                      \
  if constexpr (std::is_same_v<In, __half>)                                                        \
    MBLAS_PRODUCT(n, "k16.f32.f16.f16", p0, p1, p2, ", 1, 1, %" p3 ", %" p4, MBLAS_FLOAT,          \
                  "n"(int(!kAAlongK)), "n"(int(!kBAlongK)));                                       \
  else if constexpr (std::is_same_v<In, __nv_bfloat16>)                                            \
    MBLAS_PRODUCT(n, "k16.f32.bf16.bf16", p0, p1, p2, ", 1, 1, %" p3 ", %" p4, MBLAS_FLOAT,        \
                  "n"(int(!kAAlongK)), "n"(int(!kBAlongK)));                                       \
  else if constexpr (std::is_same_v<In, Tf32>)                                                     \
    MBLAS_PRODUCT(n, "k8.f32.tf32.tf32", p0, p1, p2, ", 1, 1", MBLAS_FLOAT);                       \
  else                                                                                             \
    MBLAS_PRODUCT(n, "k32.s32.s8.s8", p0, p1, p2, "", MBLAS_INT)

/// d += a b or, unless kAdd, d = a b: 64 rows by kN columns, thread t of the warpgroup holding row
/// t / 32 * 16 + t % 32 / 4 (and, in the second half of four sums, 8 below) of columns 8 j + t % 4 * 2
/// and one more, j by j. kAAlongK, kBAlongK: rows of 128 bytes run along k.
template <class In, bool kAAlongK, bool kBAlongK, int kN, bool kAdd = true>
__device__ void multiply(Sum<In> (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  static_assert(kBytesOf<In> == 2 || (kAAlongK && kBAlongK), "k innermost");
  if constexpr (kN == 32) {
    MBLAS_PRODUCTS(32, "16", "17", "18", "19", "20");
  } else if constexpr (kN == 48) {
    MBLAS_PRODUCTS(48, "24", "25", "26", "27", "28");
  } else if constexpr (kN == 64) {
    MBLAS_PRODUCTS(64, "32", "33", "34", "35", "36");
  } else if constexpr (kN == 80) {
    MBLAS_PRODUCTS(80, "40", "41", "42", "43", "44");
  } else if constexpr (kN == 96) {
    MBLAS_PRODUCTS(96, "48", "49", "50", "51", "52");
  } else if constexpr (kN == 112) {
    MBLAS_PRODUCTS(112, "56", "57", "58", "59", "60");
  } else if constexpr (kN == 128) {
    MBLAS_PRODUCTS(128, "64", "65", "66", "67", "68");
  } else if constexpr (kN == 144) {
    MBLAS_PRODUCTS(144, "72", "73", "74", "75", "76");
  } else if constexpr (kN == 160) {
    MBLAS_PRODUCTS(160, "80", "81", "82", "83", "84");
  } else if constexpr (kN == 176) {
    MBLAS_PRODUCTS(176, "88", "89", "90", "91", "92");
  } else if constexpr (kN == 192) {
    MBLAS_PRODUCTS(192, "96", "97", "98", "99", "100");
  } else if constexpr (kN == 208) {
    MBLAS_PRODUCTS(208, "104", "105", "106", "107", "108");
  } else if constexpr (kN == 224) {
    MBLAS_PRODUCTS(224, "112", "113", "114", "115", "116");
  } else if constexpr (kN == 240) {
    MBLAS_PRODUCTS(240, "120", "121", "122", "123", "124");
  } else if constexpr (kN == 256) {
    MBLAS_PRODUCTS(256, "128", "129", "130", "131", "132");
  } else {
    static_assert(kN < 0, "no such instruction here");
  }
}
/// The same of TF32 and bfloat16, k innermost in b: word a[i] of thread t is that of row t / 32 * 16 +
/// t % 32 / 4 + i % 2 * 8 and of 4 bytes of k from 4 (t % 4 + i / 2 * 4) on.
template <class In, int kN, bool kAdd = true>
__device__ void multiply(float (&d)[kN / 2], const unsigned (&a)[4], std::uint64_t b) {
  if constexpr (kN == 16) {
    MBLAS_PRODUCTS_BY_REGISTERS(16, "8", "9", "10", "11", "12", "13");
  } else if constexpr (kN == 32) {
    MBLAS_PRODUCTS_BY_REGISTERS(32, "16", "17", "18", "19", "20", "21");
  } else if constexpr (kN == 48) {
    MBLAS_PRODUCTS_BY_REGISTERS(48, "24", "25", "26", "27", "28", "29");
  } else if constexpr (kN == 64) {
    MBLAS_PRODUCTS_BY_REGISTERS(64, "32", "33", "34", "35", "36", "37");
  } else if constexpr (kN == 96) {
    MBLAS_PRODUCTS_BY_REGISTERS(96, "48", "49", "50", "51", "52", "53");
  } else if constexpr (kN == 128) {
    MBLAS_PRODUCTS_BY_REGISTERS(128, "64", "65", "66", "67", "68", "69");
  } else if constexpr (kN == 192) {
    MBLAS_PRODUCTS_BY_REGISTERS(192, "96", "97", "98", "99", "100", "101");
  } else if constexpr (kN == 256) {
    MBLAS_PRODUCTS_BY_REGISTERS(256, "128", "129", "130", "131", "132", "133");
  } else {
    static_assert(kN < 0, "no such instruction here");
  }
}
#undef MBLAS_FLOAT
#undef MBLAS_INT
#undef MBLAS_PRODUCT
#undef MBLAS_PRODUCT_BY_REGISTERS
#undef MBLAS_PRODUCTS_BY_REGISTERS
#undef MBLAS_PRODUCTS
// clang-format on

}  // namespace mblas::cuda::gemm::hopper
