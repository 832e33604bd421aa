// Calls cut into parts, for kernels whose workspace has a limit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mblas/backend.hpp"

namespace mblas::cuda::gemm {

/// Of workspace that is in use at a time, for arithmetic made of that of narrower types.
inline constexpr std::int64_t kMostEmulationBytes = std::int64_t{2} << 30;

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

/// f(part, whether its op(A) is that of the part before) for the parts of up to `size` in order;
/// one where k is 0.
template <class F>
void for_each_part(const GemmArgs& args, const Extents& size, F&& f) {
  Extents at = {};
  for (at.batch = 0; at.batch < args.batch; at.batch += size.batch)
    for (at.m = 0; at.m < args.m; at.m += size.m) {
      at.k = 0;
      do {
        for (at.n = 0; at.n < args.n; at.n += size.n)
          f(part_of(args, at,
                    {std::min(size.m, args.m - at.m), std::min(size.n, args.n - at.n),
                     std::min(size.k, args.k - at.k), std::min(size.batch, args.batch - at.batch)}),
            at.n > 0);
        at.k += size.k;
      } while (at.k < args.k);
    }
}

}  // namespace mblas::cuda::gemm
