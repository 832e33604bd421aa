// What the kernels of few_vectors.cu share.
#pragma once

#include "cuda/gemm/parts.cuh"

namespace mblas::cuda::gemm::few {

constexpr int kWarps = 8, kThreads = kWarps * 32;
constexpr int kBlocks = 2;  // that share a multiprocessor
constexpr int kLoads = 8;   // of 16 bytes of the matrix that a thread has under way

/// Rows of a warp, where memory runs along k: as many as registers allow.
constexpr int rows_of(int element_bytes, int count) { return element_bytes * count < 64 ? 4 : 2; }

template <class Acc>
struct Problem : parts::Problem<Acc> {
  DeviceInput Matrix{}, Few{};
  std::int64_t line = 0;  ///< elements between the lines of the matrix in memory
  Strides few{};          ///< of the vectors: from one to the next, along k
  bool conjugate_few = false;
};

}  // namespace mblas::cuda::gemm::few
