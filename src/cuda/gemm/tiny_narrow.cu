// The tiniest products of half, bfloat16 and bytes, of which the tensor cores' tiles would be
// mostly empty. One kernel for all pairs of operations: these are limited by the copies.
#include "cuda/gemm/tiny_simt.cuh"

namespace mblas::cuda::tiny {

void run_narrow(const GemmArgs& args, const CudaQueue& queue) {
  constexpr int kTile = 4;
  with_gemm_types(args.in, args.out, [&]<class In, class Out>() {
    if constexpr (sizeof(In) <= 2) {
      using Multiply =
          MultiplySimt<In, Out, Major::Either, Major::Either, kTile, kTile, 5, 36 << 10>;
      launch_tiny<In, Out, Multiply>(args, queue, kTile, kTile, Multiply::kThreads);
    }
  });
}

}  // namespace mblas::cuda::tiny
