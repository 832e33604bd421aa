// Memory-bound: batches of matrices of which several fit a tile. Without gaps between them they are
// one contiguous run on both sides (run.cuh), read and written like a copy.
#include "cuda/kernels.hpp"
#include "cuda/transpose/run.cuh"
#include "cuda/transpose/selection.cuh"

namespace mblas::cuda::transpose {
namespace tiny_file {

const char* declines(const TransposeArgs& args, const DeviceInfo&) {
  if (chosen(args) != Row::Tiny) return "for batches of small matrices without gaps";
  return nullptr;
}

void run(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  run_tiny(transpose_problem(args, queue), size_of(args.type), queue);
}

}  // namespace tiny_file

void run_tiny(const TransposeProblem& p, int size, const CudaQueue& queue) {
  using namespace tiny_file;
  const std::int64_t matrix = p.m * p.n * size;
  const TinyTile* tile = kTinyTiles;
  while (matrix > tile->most_bytes) ++tile;
  // Vectors need tiles of a multiple of 16 bytes: so many matrices, or none at all.
  const std::int64_t step = 16 / std::min<std::int64_t>(16, matrix & -matrix);
  const auto addresses =
      reinterpret_cast<std::uintptr_t>(p.A.data) | reinterpret_cast<std::uintptr_t>(p.B.data);
  const bool vectors = addresses % 16 == 0 && step * matrix <= kTinyBytes;
  std::int64_t matrices = std::clamp<std::int64_t>(tile->bytes / matrix, 1, p.batch);
  if (vectors) matrices = ceil_div(matrices, step) * step;
  const std::int64_t blocks = ceil_div(p.batch, matrices);
  const Hold hold = hold_of(matrix * p.batch, blocks, queue.device());
  with_size(size, [&]<int S>() {
    const auto launch_with = [&]<turn::Run kRun, int kThreads>() {
      launch_early(queue, turn::tiny_kernel<S, kRun, kThreads, Moves<S>>, dim3(unsigned(blocks)),
                   kThreads, std::size_t(S) * turn::skewed_size<S>(int(matrices * p.m * p.n)),
                   Moves<S>{p}, hold, int(matrices), turn::Divisor(int(p.m)),
                   turn::Divisor(int(p.n)));
    };
    if (vectors && tile->threads == 128)
      launch_with.template operator()<turn::Run::Vectors, 128>();
    else if (vectors)
      launch_with.template operator()<turn::Run::Vectors, 256>();
    else if (tile->threads == 128)
      launch_with.template operator()<turn::Run::Elements, 128>();
    else
      launch_with.template operator()<turn::Run::Elements, 256>();
  });
}

void run_best(const TransposeProblem& problem, int size, std::uintptr_t bits,
              const CudaQueue& queue) {
  using namespace tiny_file;
  switch (chosen(problem, size, bits)) {
    case Row::Tiny:
      return run_tiny(problem, size, queue);
    case Row::Thin:
      return run_thin(problem, size, bits, queue);
    case Row::Vector:
      return run_vector(problem, size, queue);
    case Row::Sheared:
      return run_sheared(problem, size, queue);
    case Row::Ladder:
      return run_padded(problem, size, bits, queue);
  }
}

Kernel<TransposeArgs> tiny() {
  using namespace tiny_file;
  return {"tiny", "several matrices of a batch as one run on both sides", declines,
          transpose_pointer_bytes, run};
}

}  // namespace mblas::cuda::transpose
