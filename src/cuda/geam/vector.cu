// Memory-bound: the aligned case of a sum with a transposed operand, by the transpose's tiles of
// 16-byte vectors.
#include "cuda/geam/turned.cuh"
#include "cuda/kernels.hpp"
#include "cuda/transpose/selection.cuh"

namespace mblas::cuda::geam {
namespace vector_file {

const char* declines(const GeamArgs& args, const DeviceInfo&) {
  if (!turns(args)) return "for sums with a transposed operand";
  if (!transpose::fits_vectors(operand_bits(args, true), size_of(args.type)))
    return "rows must start at multiples of 16 bytes, of 32 where elements have 16";
  return nullptr;
}

void run(const GeamArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  with_geam_type(args.type, [&]<class T>() {
    using Tiles = transpose::TilesOf<int(sizeof(T))>;
    with_turned_sum<T>(args, queue, [&](const auto& problem) {
      if (turn::prefers_second<typename Tiles::Sum, typename Tiles::Small>(args.n, args.m))
        turn::run_tiles<typename Tiles::Small>(problem, queue);
      else
        turn::run_tiles<typename Tiles::Sum>(problem, queue);
    });
  });
}

}  // namespace vector_file

Kernel<GeamArgs> vector() {
  using namespace vector_file;
  return {"vector", "the transpose's tiles of 16-byte vectors, adding on the way", declines,
          geam_pointer_bytes, run};
}

}  // namespace mblas::cuda::geam
