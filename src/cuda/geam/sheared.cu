// Memory-bound: a sum with a transposed operand whose rows start anywhere, by the transpose's tiles
// that start at a sector of each row of C. A transposed operand alone is a transpose that scales.
#include "cuda/geam/turned.cuh"
#include "cuda/kernels.hpp"
#include "cuda/transpose/selection.cuh"

namespace mblas::cuda::geam {
namespace sheared_file {

const char* declines(const GeamArgs& args, const DeviceInfo&) {
  if (!turns(args)) return "for sums with a transposed operand";
  if (operand_bits(args, false) % std::uintptr_t(size_of(args.type)) != 0)
    return "elements must be aligned to their size";
  return nullptr;
}

void run(const GeamArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  with_geam_type(args.type, [&]<class T>() {
    using Tiles = transpose::TilesOf<int(sizeof(T))>;
    with_turned_sum<T>(args, queue, [&]<Turned kTurned>(const TurnedSum<T, kTurned>& problem) {
      using Large = typename Tiles::LargeScaled;
      using Sheared = typename Tiles::Sheared;
      if constexpr (kTurned != Turned::Only)
        turn::run_tiles<typename Tiles::ShearedSum>(problem, queue);
      else if (transpose::is_large<Large, Sheared>(problem.m, problem.n))
        turn::run_tiles<Large>(problem, queue);
      else
        turn::run_tiles<Sheared>(problem, queue);
    });
  });
}

}  // namespace sheared_file

Kernel<GeamArgs> sheared() {
  using namespace sheared_file;
  return {"sheared", "any alignment: tiles that start at a sector of each row of C", declines,
          geam_pointer_bytes, run};
}

}  // namespace mblas::cuda::geam
