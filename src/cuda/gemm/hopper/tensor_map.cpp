#include "cuda/gemm/hopper/tensor_map.hpp"

#include <algorithm>
#include <string>

#include "cuda/device.hpp"

namespace mblas::cuda::gemm::hopper {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

/// The driver's function; the library links to no driver.
Encode encode() {
  static const Encode function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = {};
    constexpr unsigned kCuda12 = 12000;  // the first version that has it
    cuda_check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, kCuda12,
                                                cudaEnableDefault, &result),
               "looking up cuTensorMapEncodeTiled");
    if (result != cudaDriverEntryPointSuccess || !found)
      throw Error(Status::NotSupported, "the CUDA driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<Encode>(found);
  }();
  return function;
}

CUtensorMapSwizzle swizzle_of(int row_bytes) {
  switch (row_bytes) {
    case 128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
    case 64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case 32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    default:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
  }
}

}  // namespace

CUtensorMap tensor_map(const BoxedMatrices& x) {
  const auto size = cuuint64_t(x.size);
  const cuuint64_t extents[] = {cuuint64_t(x.cols), cuuint64_t(x.rows), cuuint64_t(x.count)};
  const cuuint64_t ld = cuuint64_t(x.ld) * size;
  const cuuint64_t strides[] = {ld, x.count > 1 ? cuuint64_t(x.stride) * size : ld};
  const cuuint32_t box[] = {cuuint32_t(x.box_bytes / x.size), cuuint32_t(x.box_rows), 1};
  const cuuint32_t every[] = {1, 1, 1};
  CUtensorMap map;
  const CUresult result =
      encode()(&map, x.type, 3, const_cast<void*>(x.data), extents, strides, box, every,
               CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(x.box_bytes),
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw Error(Status::Internal,
                "cuTensorMapEncodeTiled failed with error " + std::to_string(int(result)));
  return map;
}

}  // namespace mblas::cuda::gemm::hopper
