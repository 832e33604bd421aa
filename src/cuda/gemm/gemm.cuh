// What the gemm kernels share: the problem as a kernel sees it, and how a row of the table is made
// of one.
#pragma once

#include "cuda/element.cuh"
#include "cuda/launch.cuh"

namespace mblas::cuda {

/// Neighbours that are accessed at once: 16 bytes of them, unless it says how many.
template <class T>
inline constexpr int kVector = 16 / int(sizeof(T));
template <class T, int kCount = kVector<T>>
struct alignas(kCount * sizeof(T)) Vector {
  T e[kCount];
};

/// narrow() of two, in one instruction where there is one.
template <class Out, class Acc>
__device__ Vector<Out, 2> narrow_pair(Acc x, Acc y) {
  if constexpr (std::is_same_v<Out, __half>) {
    const __half2 v = __floats2half2_rn(x, y);
    return {v.x, v.y};
  } else if constexpr (std::is_same_v<Out, __nv_bfloat16>) {
    const __nv_bfloat162 v = __floats2bfloat162_rn(x, y);
    return {v.x, v.y};
  } else {
    return {Out(x), Out(y)};
  }
}

template <class Acc>
struct GemmProblem {
  std::int64_t m, n, k, ldc;
  Strides a, b;  // of op(A) and op(B)
  bool conjugate_a, conjugate_b, read_c;
  Acc alpha, beta;
  DeviceInput A, B;
  DeviceOutput C;
  Tiles tiles;
};

/// The problem cut into tiles of C of tile_m rows and tile_n columns, for operands on the device.
template <class Acc>
GemmProblem<Acc> gemm_problem(const GemmArgs& args, const DeviceInput& A, const DeviceInput& B,
                              const DeviceOutput& C, int tile_m, int tile_n) {
  GemmProblem<Acc> p;
  p.m = args.m;
  p.n = args.n;
  p.k = args.k;
  p.ldc = args.C.ld;
  p.a = strides_of(args.transA, args.A.ld);
  p.b = strides_of(args.transB, args.B.ld);
  p.conjugate_a = is_conjugated(args.transA);
  p.conjugate_b = is_conjugated(args.transB);
  p.read_c = args.beta != Scalar{};
  p.alpha = scalar_as<Acc>(args.k == 0 ? Scalar{} : args.alpha);
  p.beta = scalar_as<Acc>(args.beta);
  p.A = A;
  p.B = B;
  p.C = C;
  p.tiles = {ceil_div(args.m, tile_m), ceil_div(args.n, tile_n), args.batch};
  return p;
}

/// The same, its pointer arrays copied to the device.
template <class In, class Out>
GemmProblem<Accumulator<In>> gemm_problem(const GemmArgs& args, const CudaQueue& queue, int tile_m,
                                          int tile_n) {
  std::span<std::byte> workspace = queue.workspace;
  const auto in_bytes = std::int64_t(sizeof(In)), out_bytes = std::int64_t(sizeof(Out));
  const DeviceInput A = place(args.A, args.batch, args.A.stride * in_bytes, queue, workspace);
  const DeviceInput B = place(args.B, args.batch, args.B.stride * in_bytes, queue, workspace);
  const DeviceOutput C = place(args.C, args.batch, args.C.stride * out_bytes, queue, workspace);
  return gemm_problem<Accumulator<In>>(args, A, B, C, tile_m, tile_n);
}

/// c = alpha sum + beta c, rounded once; `read_c`: the problem's, where it is known before.
template <class Out, class Acc>
__device__ void store(const GemmProblem<Acc>& p, Acc sum, Out* c, bool read_c) {
  const Acc product = p.alpha * sum;
  *c = narrow<Out>(read_c ? multiply_add(p.beta, widen(*c), product) : product);
}
template <class Out, class Acc>
__device__ void store(const GemmProblem<Acc>& p, Acc sum, Out* c) {
  store(p, sum, c, p.read_c);
}

inline const char* declines_emulation(const GemmArgs& args, const DeviceInfo&) {
  return is_native(args.compute) ? nullptr : "computes in native arithmetic only";
}

/// Products of floats that ask for the tensor cores.
inline bool is_tf32(const GemmArgs& args) {
  return args.in == DType::f32 && args.compute == Compute::TF32;
}

/// For kernels that have TF32, or take floats whole, which is more than it asks for.
inline const char* declines_emulation_but_tf32(const GemmArgs& args, const DeviceInfo& device) {
  return is_tf32(args) ? nullptr : declines_emulation(args, device);
}

/// The bits in which addresses and distances of A's and B's rows and matrices are set.
inline std::uintptr_t input_bits(const GemmArgs& args) {
  const int size = size_of(args.in);
  return access_bits(args.A, args.batch, size) | access_bits(args.B, args.batch, size);
}

/// And of C's.
inline std::uintptr_t operand_bits(const GemmArgs& args) {
  return input_bits(args) | access_bits(args.C, args.batch, size_of(args.out));
}

/// For kernels that read elements whole: complex numbers may lie at multiples of half their size.
inline const char* declines_halfway(const GemmArgs& args) {
  if (!is_complex(args.in)) return nullptr;
  return input_bits(args) % std::uintptr_t(size_of(args.in)) == 0
             ? nullptr
             : "reads complex numbers that lie at multiples of their size only";
}

inline std::size_t gemm_pointer_bytes(const GemmArgs& args, const DeviceInfo&) {
  return placed_bytes(args.A, args.batch) + placed_bytes(args.B, args.batch) +
         placed_bytes(args.C, args.batch);
}

}  // namespace mblas::cuda
