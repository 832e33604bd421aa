// The fifth rung: a tile of twice the columns. Each block passes as many barriers as before for
// twice the elements, and each thread has twice as many of them on their way.
#include "cuda/kernels.hpp"
#include "cuda/transpose/ladder.cuh"

namespace mblas::cuda::transpose {

Kernel<TransposeArgs> tall() {
  return {"tall", "64x32 tiles: half the barriers, twice the bytes on their way", declines_nothing,
          transpose_pointer_bytes, run_swizzled<64, 32, 32>};
}

}  // namespace mblas::cuda::transpose
