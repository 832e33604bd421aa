// What operands run along in memory, as kernels have it compiled in.
#pragma once

#include "cuda/gemm/gemm.cuh"

namespace mblas::cuda {

/// f<kAAlongK, kBAlongK>() of the call: whether op(A) and op(B) are contiguous along k.
template <class F>
void with_majors(const GemmArgs& args, F&& f) {
  const bool a = !is_transposed(args.transA), b = is_transposed(args.transB);
  if (a && b)
    f.template operator()<true, true>();
  else if (a)
    f.template operator()<true, false>();
  else if (b)
    f.template operator()<false, true>();
  else
    f.template operator()<false, false>();
}

}  // namespace mblas::cuda
