// What the transpose kernels share, in place and out of place: the problem as a kernel sees it.
#pragma once

#include "cuda/element.cuh"
#include "cuda/launch.cuh"

namespace mblas::cuda {

/// B (n×m, rows ldb apart) = Aᵀ, A m×n, rows lda apart.
struct TransposeProblem {
  std::int64_t m, n, lda, ldb, batch;
  DeviceInput A;
  DeviceOutput B;
};

/// Its pointer arrays are brought to the device.
inline TransposeProblem transpose_problem(const TransposeArgs& args, const CudaQueue& queue) {
  std::span<std::byte> workspace = queue.workspace;
  const int size = size_of(args.type);
  TransposeProblem p;
  p.m = args.m;
  p.n = args.n;
  p.lda = args.A.ld;
  p.ldb = args.B.ld;
  p.batch = args.batch;
  p.A = place(args.A, args.batch, args.A.stride * size, queue, workspace);
  p.B = place(args.B, args.batch, args.B.stride * size, queue, workspace);
  return p;
}

inline std::size_t transpose_pointer_bytes(const TransposeArgs& args, const DeviceInfo&) {
  return placed_bytes(args.A, args.batch) + placed_bytes(args.B, args.batch);
}

namespace transpose {
/// What the table would run for a problem: for in-place transposes by way of a workspace. `bits` as
/// access_bits says, of both sides.
void run_best(const TransposeProblem& problem, int size, std::uintptr_t bits,
              const CudaQueue& queue);
/// The padded row, which takes elements of any alignment.
void run_padded(const TransposeProblem& problem, int size, std::uintptr_t bits,
                const CudaQueue& queue);
}  // namespace transpose

}  // namespace mblas::cuda
