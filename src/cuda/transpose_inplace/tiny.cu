// Matrices that fit a tile: several of a batch are read into shared memory as one run and written
// back transposed, at the speed of a copy and without workspace.
#include "cuda/kernels.hpp"
#include "cuda/transpose/selection.cuh"

namespace mblas::cuda::transpose_inplace {
namespace tiny_file {

const char* declines(const TransposeInplaceArgs& args, const DeviceInfo&) {
  const auto size = std::int64_t(size_of(args.type));
  const bool packed = args.A.ld == args.n && args.ldb == args.m && !args.A.pointers &&
                      (args.batch == 1 || args.A.stride == args.m * args.n);
  if (!packed || args.m * args.n > transpose::kTinyBytes / size)
    return "for small matrices without gaps";
  if (address_bits(args.A, args.batch) % std::uintptr_t(size) != 0)
    return "elements must be aligned to their size";
  return nullptr;
}

void run(const TransposeInplaceArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const int size = size_of(args.type);
  const std::int64_t matrix = args.m * args.n * size;
  transpose::run_tiny(
      {args.m, args.n, args.n, args.m, args.batch, DeviceInput{args.A.data, matrix, nullptr},
       DeviceOutput{args.A.data, matrix, nullptr}},
      size, queue);
}

}  // namespace tiny_file

Kernel<TransposeInplaceArgs> tiny() {
  using namespace tiny_file;
  return {"tiny", "matrices that fit shared memory, several at a time", declines, nullptr, run};
}

}  // namespace mblas::cuda::transpose_inplace
