// The third rung, the other way: each row of the tile is rotated by its number, so that rows and
// columns both meet all banks, and no shared memory is spent on padding.
#include "cuda/kernels.hpp"
#include "cuda/transpose/ladder.cuh"

namespace mblas::cuda::transpose {

Kernel<TransposeArgs> swizzled() {
  return {"swizzled", "32x32 tiles, rotated in shared memory against bank conflicts",
          declines_nothing, transpose_pointer_bytes, run_swizzled<32, 32, 8>};
}

}  // namespace mblas::cuda::transpose
