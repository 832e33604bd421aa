// Calls cut into parts, for kernels whose workspace has a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

struct Extents {
  std::int64_t m, n, k, batch;
};

/// The call with the sizes of `size` from the entries at `at` on: m, n and k are cut for single
/// matrices only.
inline GemmArgs part_of(const GemmArgs& args, const Extents& at, const Extents& size) {
  GemmArgs part = args;
  part.m = size.m;
  part.n = size.n;
  part.k = size.k;
  part.batch = size.batch;
  if (at.k > 0) part.beta = {1, 0};
  const auto move = [&](auto& x, int element, std::int64_t row, std::int64_t col) {
    if (x.pointers && size.batch > 1) {
      x.pointers += at.batch;
      return;
    }
    using Byte = typename std::remove_reference_t<decltype(x)>::Byte;
    if (x.data || x.pointers)
      x.data = static_cast<Byte*>(x.at(at.batch, element)) + (row * x.ld + col) * element;
    x.pointers = nullptr;
  };
  const int in = size_of(args.in), out = size_of(args.out);
  is_transposed(args.transA) ? move(part.A, in, at.k, at.m) : move(part.A, in, at.m, at.k);
  is_transposed(args.transB) ? move(part.B, in, at.n, at.k) : move(part.B, in, at.k, at.n);
  move(part.C, out, at.m, at.n);
  return part;
}

}  // namespace mblas::cuda::gemm
