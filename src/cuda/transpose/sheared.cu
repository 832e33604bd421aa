// Memory-bound: the case in which rows start anywhere. Written as they come, the pieces of a row
// would begin and end within sectors of 32 bytes, which the memory then has to merge. Here each row
// of B gets tiles that begin where its own sectors do, so that only its two ends are partial; what
// that takes more of A is read again from the cache.
#include "cuda/kernels.hpp"
#include "cuda/transpose/selection.cuh"

namespace mblas::cuda::transpose {
namespace sheared_file {

const char* declines(const TransposeArgs& args, const DeviceInfo&) {
  const auto size = std::uintptr_t(size_of(args.type));
  if ((address_bits(args.A, args.batch) | address_bits(args.B, args.batch)) % size != 0)
    return "elements must be aligned to their size";
  return nullptr;
}

void run(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  run_sheared(transpose_problem(args, queue), size_of(args.type), queue);
}

}  // namespace sheared_file

void run_sheared(const TransposeProblem& p, int size, const CudaQueue& queue) {
  using namespace sheared_file;
  with_size(size, [&]<int S>() {
    using Tiles = TilesOf<S>;
    if (is_large<typename Tiles::LargeSheared, typename Tiles::Sheared>(p.m, p.n))
      turn::run_tiles<typename Tiles::LargeSheared>(Moves<S>{p}, queue);
    else
      turn::run_tiles<typename Tiles::Sheared>(Moves<S>{p}, queue);
  });
}

Kernel<TransposeArgs> sheared() {
  using namespace sheared_file;
  return {"sheared", "any alignment: tiles that start at a sector of each row that is written",
          declines, transpose_pointer_bytes, run};
}

}  // namespace mblas::cuda::transpose
