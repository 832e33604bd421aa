// The ring of stages in shared memory that producers fill and consumers empty.
#pragma once

namespace mblas::cuda::gemm::hopper {

/// A place in the ring of stages.
template <int kStages>
struct Ring {
  unsigned stage = 0, parity = 0;

  __device__ void advance() {
    const bool last = stage == kStages - 1;
    stage = last ? 0 : stage + 1;
    parity ^= unsigned(last);
  }
  template <unsigned kSteps>
  __device__ void advance_by() {
    const bool around = stage >= kStages - kSteps;
    stage = around ? stage + kSteps - kStages : stage + kSteps;
    parity ^= unsigned(around);
  }
  __device__ void advance(unsigned steps) {
    stage += steps;
    parity ^= stage / kStages & 1;
    stage %= kStages;
  }
};

}  // namespace mblas::cuda::gemm::hopper
