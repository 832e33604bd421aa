// What the geam kernels share: the problem as a kernel sees it, and how a row of the table is made
// of one.
#pragma once

#include "cuda/element.cuh"
#include "cuda/launch.cuh"

namespace mblas::cuda {

/// One of the two operands that are added.
template <class Acc>
struct GeamTerm {
  DeviceInput X;
  std::int64_t ld;
  bool present;  // false: the scalar is 0 and X is not read
  bool transposed, conjugate;
  Acc scalar;
};

template <class Acc>
struct GeamProblem {
  std::int64_t m, n, ldc;
  GeamTerm<Acc> a, b;
  DeviceOutput C;
  Tiles tiles;
};

/// The problem cut into tiles of C of tile_m rows and tile_n columns, its pointer arrays on the
/// device.
template <class T>
GeamProblem<Accumulator<T>> geam_problem(const GeamArgs& args, const CudaQueue& queue, int tile_m,
                                         int tile_n) {
  using Acc = Accumulator<T>;
  std::span<std::byte> workspace = queue.workspace;
  const auto bytes = std::int64_t(sizeof(T));
  const auto term = [&](const Input& X, Op op, const Scalar& scalar) {
    return GeamTerm<Acc>{place(X, args.batch, X.stride * bytes, queue, workspace),
                         X.ld,
                         scalar != Scalar{},
                         is_transposed(op),
                         is_conjugated(op),
                         scalar_as<Acc>(scalar)};
  };
  GeamProblem<Acc> p;
  p.m = args.m;
  p.n = args.n;
  p.ldc = args.C.ld;
  p.a = term(args.A, args.transA, args.alpha);
  p.b = term(args.B, args.transB, args.beta);
  p.C = place(args.C, args.batch, args.C.stride * bytes, queue, workspace);
  p.tiles = {ceil_div(args.m, tile_m), ceil_div(args.n, tile_n), args.batch};
  return p;
}

/// alpha a + beta b of the terms that are present, rounded once.
template <class T, class Acc>
__device__ T sum(const GeamProblem<Acc>& p, T a, T b) {
  Acc result{};
  if (p.a.present) result = p.a.scalar * widen(a, p.a.conjugate);
  if (p.b.present) {
    const Acc y = widen(b, p.b.conjugate);
    result = p.a.present ? multiply_add(p.b.scalar, y, result) : p.b.scalar * y;
  }
  return narrow<T>(result);
}

inline std::size_t geam_pointer_bytes(const GeamArgs& args, const DeviceInfo&) {
  return placed_bytes(args.A, args.batch) + placed_bytes(args.B, args.batch) +
         placed_bytes(args.C, args.batch);
}

}  // namespace mblas::cuda
