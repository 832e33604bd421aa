// gemm of floats on the ordinary cores of Hopper, fed by the copy engine: the problem as the kernel
// sees it.
#pragma once

#include <cuda.h>

#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/schedule.hpp"

namespace mblas::cuda::gemm::tma32 {

/// S and H are op(A) and op(B) or, swapped, op(B) and op(A); their sides in a tile of C are kSideS
/// and kSideH. S lies along its side, H either way.
struct Problem : GemmProblem<float> {
  CUtensorMap map_s, map_h;
  Schedule schedule;
  int tiles_s, tiles_h;   ///< of a matrix
  bool batch_s, batch_h;  ///< or one matrix for all
  bool vectors_c;         ///< rows of C may be accessed 16 bytes at a time
  float* parts;
};

/// `along_k`: H is. Swapped it has to be.
void run_tiles(const Problem& p, bool along_k, bool swapped, const CudaQueue& queue);

}  // namespace mblas::cuda::gemm::tma32
