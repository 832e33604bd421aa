// Memory-bound: the aligned case, in which both sides can be accessed in vectors of 16 bytes. A
// thread turns squares of them in registers (bytes and halves by byte permutations), a tile is put
// together in shared memory without bank conflicts, and every access of a warp is whole sectors in
// runs of 128 to 512 bytes.
#include "cuda/kernels.hpp"
#include "cuda/transpose/selection.cuh"

namespace mblas::cuda::transpose {
namespace vector_file {

const char* declines(const TransposeArgs& args, const DeviceInfo&) {
  const int size = size_of(args.type);
  if (!fits_vectors(access_bits(args.A, args.batch, size) | access_bits(args.B, args.batch, size),
                    size))
    return "rows must start at multiples of 16 bytes, of 32 where elements have 16";
  return nullptr;
}

void run(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  run_vector(transpose_problem(args, queue), size_of(args.type), queue);
}

}  // namespace vector_file

void run_vector(const TransposeProblem& p, int size, const CudaQueue& queue) {
  using namespace vector_file;
  with_size(size, [&]<int S>() {
    using Tiles = TilesOf<S>;
    const Moves<S> moves = {p};
    if (turn::prefers_second<typename Tiles::Vector, typename Tiles::Small>(p.m, p.n))
      return turn::run_tiles<typename Tiles::Small>(moves, queue);
    if (is_large<typename Tiles::LargeVector, typename Tiles::Vector>(p.m, p.n))
      turn::run_tiles<typename Tiles::LargeVector>(moves, queue);
    else
      turn::run_tiles<typename Tiles::Vector>(moves, queue);
  });
}

Kernel<TransposeArgs> vector() {
  using namespace vector_file;
  return {"vector", "16-byte vectors on both sides, squares turned in registers, swizzled tiles",
          declines, transpose_pointer_bytes, run};
}

}  // namespace mblas::cuda::transpose
