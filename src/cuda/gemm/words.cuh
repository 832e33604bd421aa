// 16 bytes of a matrix from any address on, by way of the aligned words that they lie in.
#pragma once

#include <cstdint>

#include "cuda/transpose/turn.cuh"

namespace mblas::cuda::gemm {

/// The two words that 16 bytes lie in, from byte `shift` of the first one on.
struct Words {
  uint4 low, high;
  unsigned shift;

  /// Those at `x`. Of words that are partly outside of the matrix only the elements up to the row's
  /// end are read, of which there are `left` bytes.
  template <class Element>
  __device__ static Words at(const std::byte* x, const std::byte* begin, const std::byte* end,
                             std::int64_t left) {
    if (are_inside(x, begin, end)) return read(x);
    union {
      uint4 v;
      Element e[16 / sizeof(Element)];
    } read = {};
#pragma unroll
    for (int i = 0; i < int(16 / sizeof(Element)); ++i)
      if (i * int(sizeof(Element)) < left) read.e[i] = reinterpret_cast<const Element*>(x)[i];
    return {read.v, read.v, 0};
  }

  /// The 16 bytes, those from `left` on zeros.
  __device__ uint4 bytes(std::int64_t left) const {
    uint4 v = turn::shifted(low, high, shift);
    if (left < 16) {
      const auto kept = [&](unsigned w, int at) {
        const int bytes = int(left) - at;
        return bytes >= 4 ? w : bytes <= 0 ? 0 : w & ((1u << bytes * 8) - 1);
      };
      v = {kept(v.x, 0), kept(v.y, 4), kept(v.z, 8), kept(v.w, 12)};
    }
    return v;
  }

 private:
  /// Whether those at `x` are whole within a matrix from `begin` to `end`.
  __device__ static bool are_inside(const std::byte* x, const std::byte* begin,
                                    const std::byte* end) {
    const std::byte* const word = x - shift_of(x);
    return word >= begin && word + 32 <= end;
  }
  /// Those at `x`, which are inside.
  __device__ static Words read(const std::byte* x) {
    const unsigned shift = shift_of(x);
    const auto* const words = reinterpret_cast<const uint4*>(x - shift);
    return {__ldg(words), __ldg(words + 1), shift};
  }
  __device__ static unsigned shift_of(const std::byte* x) {
    return unsigned(reinterpret_cast<std::uintptr_t>(x) % 16);
  }
};

}  // namespace mblas::cuda::gemm
