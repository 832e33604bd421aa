// What the gf256 kernels share: the problem as a kernel sees it. Entry i of an operand is its row
// i.
#pragma once

#include <cstdint>

#include "cuda/launch.cuh"

namespace mblas::cuda {

struct Gf256Problem {
  std::int64_t m, n, k;
  DeviceInput A, B;
  DeviceOutput C;
  bool accumulate;
  unsigned poly;
  Tiles tiles;

  __device__ const std::uint8_t* row_a(std::int64_t i) const {
    return static_cast<const std::uint8_t*>(A.at(i));
  }
  __device__ const std::uint8_t* row_b(std::int64_t l) const {
    return static_cast<const std::uint8_t*>(B.at(l));
  }
  __device__ std::uint8_t* row_c(std::int64_t i) const {
    return static_cast<std::uint8_t*>(C.at(i));
  }
};

/// The problem cut into tiles of C of tile_m rows and tile_n columns, its row pointers on the
/// device.
inline Gf256Problem gf256_problem(const Gf256Args& args, const CudaQueue& queue, int tile_m,
                                  int tile_n) {
  std::span<std::byte> workspace = queue.workspace;
  Gf256Problem p;
  p.m = args.m;
  p.n = args.n;
  p.k = args.k;
  p.A = place(args.A, args.m, args.A.ld, queue, workspace);
  p.B = place(args.B, args.k, args.B.ld, queue, workspace);
  p.C = place(args.C, args.m, args.C.ld, queue, workspace);
  p.accumulate = args.accumulate;
  p.poly = args.poly;
  p.tiles = {ceil_div(args.m, tile_m), ceil_div(args.n, tile_n), 1};
  return p;
}

inline std::size_t gf256_pointer_bytes(const Gf256Args& args, const DeviceInfo&) {
  return placed_bytes(args.A, args.m) + placed_bytes(args.B, args.k) + placed_bytes(args.C, args.m);
}

/// x a, for the element a.
__device__ inline unsigned times_x(unsigned a, unsigned poly) {
  return a << 1 ^ (a & 0x80 ? poly : 0);
}

__device__ inline unsigned multiply(unsigned a, unsigned b, unsigned poly) {
  unsigned product = 0;
#pragma unroll
  for (int bit = 0; bit < 8; ++bit, a = times_x(a, poly)) product ^= b >> bit & 1 ? a : 0;
  return product;
}

}  // namespace mblas::cuda
