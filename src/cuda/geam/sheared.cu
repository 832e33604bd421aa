// Memory-bound: a sum with a transposed operand whose rows start anywhere, by the transpose's tiles
// that start at a sector of each row of C.
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
    with_turned_sum<T>(args, queue, [&](const auto& problem) {
      turn::run_tiles<typename transpose::TilesOf<int(sizeof(T))>::ShearedSum>(problem, queue);
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
