// Groups of a block's threads that share the parts of the same sums. One thread that adds up many
// parts waits for memory once for every eight of them that it asks for together.
#pragma once

#include "cuda/gemm/groups.hpp"

namespace mblas::cuda::gemm {

/// A thread's place: the elements of a block are `width`, the parts of an element are all groups'.
struct Group {
  int number, count, width, element;

  __device__ explicit Group(int groups)
      : number(int(threadIdx.x) / (int(blockDim.x) / groups)),
        count(groups),
        width(int(blockDim.x) / groups),
        element(int(threadIdx.x) % (int(blockDim.x) / groups)) {}

  /// The group's parts of `parts` are those from begin() to the next one's.
  __device__ int begin(int parts) const { return parts * number / count; }
  __device__ int end(int parts) const { return parts * (number + 1) / count; }

  /// The groups' sums of an element, one after the other, for the first group, which gets true.
  /// `shared` has a place for each thread of the block; all of them call.
  template <class Sum, class Add>
  __device__ bool join(Sum* shared, Sum& sum, const Add& add) const {
    if (count == 1) return true;
    __syncthreads();
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (number > 0) return false;
    for (int g = 1; g < count; ++g) add(sum, shared[g * width + element]);
    return true;
  }
};

}  // namespace mblas::cuda::gemm
