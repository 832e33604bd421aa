// C = scale activation(alpha S + beta C + bias): what a row of gemm that does not fuse a call's
// epilogue leaves to do. Limited by memory: a thread goes down a column of eight elements, all of
// which it asks for first.
#include <algorithm>

#include "cuda/gemm/finish.cuh"
#include "cuda/kernels.hpp"
#include "cuda/launch.cuh"

namespace mblas::cuda::gemm {
namespace finish_file {

constexpr int kThreads = 128, kRows = 8;
constexpr int kPointers = 256;  // of matrices of C, in a launch's parameters

template <class N>
struct Problem {
  std::int64_t m, n, lds, ldc;
  N alpha, beta;
  bool read_c, in_place;
  Finish<N> finish;
  Tiles tiles;
  DeviceInput S;
  DeviceOutput C;
  bool pointers;
  void* matrices[kPointers];

  __device__ void* c(std::int64_t batch) const { return pointers ? matrices[batch] : C.at(batch); }
};

/// What epilogues compute with in place of a type of sums.
template <class S>
using Number = std::conditional_t<std::is_integral_v<S>, float, S>;

/// s x; a real s scales the parts, as 0 times an infinite part would make the other one NaN.
template <class N>
__device__ N scaled(N s, N x) {
  if constexpr (is_complex_v<N>)
    if (s.im == 0) return times(x, s.re);
  return s * x;
}

template <class S, class Out>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(const __grid_constant__ Problem<Number<S>> p) {
  using N = Number<S>;
  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto tile = p.tiles[t];
    const std::int64_t i0 = tile.row * kRows, j = tile.col * kThreads + threadIdx.x;
    if (j >= p.n) continue;
    Out* const c = static_cast<Out*>(p.c(tile.batch)) + j;
    const S* const s =
        p.in_place ? reinterpret_cast<const S*>(c) : static_cast<const S*>(p.S.at(tile.batch)) + j;
    const int rows = int(min(p.m - i0, std::int64_t(kRows)));
    S sums[kRows];
    Out old[kRows] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (r < rows) sums[r] = s[(i0 + r) * p.lds];
    if (p.read_c)
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (r < rows) old[r] = c[(i0 + r) * p.ldc];
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (r < rows) {
        N x = scaled(p.alpha, N(sums[r]));
        if (p.read_c) x = x + scaled(p.beta, N(widen(old[r])));
        c[(i0 + r) * p.ldc] = narrow<Out>(finished<Out>(p.finish, x, i0 + r, j));
      }
  }
}

template <class S, class Out>
void run(const FinishArgs& args, const CudaQueue& queue) {
  using N = Number<S>;
  Problem<N> p = {};
  p.m = args.m;
  p.n = args.n;
  p.lds = args.S.ld;
  p.ldc = args.C.ld;
  p.alpha = scalar_as<N>(args.alpha);
  p.beta = scalar_as<N>(args.beta);
  p.read_c = args.beta != Scalar{};
  p.in_place = args.S.data == args.C.data && args.S.pointers == args.C.pointers;
  p.finish = Finish<N>(args.epilogue);
  p.pointers = args.C.pointers != nullptr;
  const std::int64_t step = p.pointers ? kPointers : args.batch;
  for (std::int64_t b = 0; b < args.batch; b += step) {
    const std::int64_t batch = std::min(step, args.batch - b);
    if (p.pointers)
      std::copy_n(args.C.pointers + b, batch, p.matrices);
    else
      p.C = {args.C.at(b, sizeof(Out)), args.C.stride * std::int64_t(sizeof(Out))};
    if (!p.in_place) p.S = {args.S.at(b, sizeof(S)), args.S.stride * std::int64_t(sizeof(S))};
    p.tiles = {ceil_div(args.m, kRows), ceil_div(args.n, kThreads), batch};
    launch(queue, finish_kernel<S, Out>, p.tiles.count(), kThreads, p);
  }
}

}  // namespace finish_file

void finish(const FinishArgs& args, Queue& base) {
  using finish_file::run;
  const auto& queue = static_cast<const CudaQueue&>(base);
  switch (args.in) {
    case DType::f32:
      return args.out == DType::f16    ? run<float, __half>(args, queue)
             : args.out == DType::bf16 ? run<float, __nv_bfloat16>(args, queue)
                                       : run<float, float>(args, queue);
    case DType::f64:
      return run<double, double>(args, queue);
    case DType::cf32:
      return run<Complex<float>, Complex<float>>(args, queue);
    case DType::cf64:
      return run<Complex<double>, Complex<double>>(args, queue);
    default:
      return run<std::int32_t, float>(args, queue);
  }
}

}  // namespace mblas::cuda::gemm
