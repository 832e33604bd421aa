// Memory-bound. A thread writes 16 bytes, which it shifts together from the two words of 16 bytes
// of the source that they lie in: every access is of a whole vector, and neighbours find the second
// word in the cache. The ends of a row, whose words hold bytes that are not the operand's, are read
// by element. Transposed copies are the transpose kernels' work.
#include <algorithm>
#include <bit>

#include "cuda/gemm/repack.cuh"
#include "cuda/transpose/transpose.cuh"

namespace mblas::cuda::gemm {
namespace repack_file {

constexpr int kThreads = 256;
constexpr std::int64_t kMostGrid = 65535;

struct CopyProblem {
  DeviceInput from;
  std::byte* to;
  std::int64_t rows, row_bytes, pitch_from, pitch_to, matrix_bytes, count;
};

/// 16 bytes from byte `shift` on of the 32 of `low` and `high`.
__device__ uint4 shifted(const uint4& low, const uint4& high, int shift) {
  unsigned w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 6; ++i) w[i] = shift & 8 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) w[i] = shift & 4 ? w[i + 1] : w[i];
  const int bits = shift % 4 * 8;
  return {__funnelshift_r(w[0], w[1], bits), __funnelshift_r(w[1], w[2], bits),
          __funnelshift_r(w[2], w[3], bits), __funnelshift_r(w[3], w[4], bits)};
}

/// `Element`: what rows are aligned to.
template <class Element>
__global__ void __launch_bounds__(kThreads) copy_kernel(const __grid_constant__ CopyProblem p) {
  constexpr int kElements = 16 / int(sizeof(Element));
  const std::int64_t begin = (blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x) * 16;
  if (begin >= p.row_bytes) return;
  for (std::int64_t b = blockIdx.z; b < p.count; b += gridDim.z)
    for (std::int64_t i = blockIdx.y * std::int64_t(blockDim.y) + threadIdx.y; i < p.rows;
         i += gridDim.y * std::int64_t(blockDim.y)) {
      const auto* const row = static_cast<const std::byte*>(p.from.at(b)) + i * p.pitch_from;
      const auto* const x = row + begin;
      const int shift = int(reinterpret_cast<std::uintptr_t>(x) % 16);
      uint4 v = {};
      if (begin >= shift && begin - shift + 32 <= p.row_bytes) {
        const auto* const words = reinterpret_cast<const uint4*>(x - shift);
        const uint4 low = __ldg(words);
        v = shifted(low, shift == 0 ? low : __ldg(words + 1), shift);
      } else {
        auto* const e = reinterpret_cast<Element*>(&v);
        const auto* const from = reinterpret_cast<const Element*>(x);
        const int left = int(min(std::int64_t(16), p.row_bytes - begin) / int(sizeof(Element)));
#pragma unroll
        for (int l = 0; l < kElements; ++l)
          if (l < left) e[l] = from[l];
      }
      *reinterpret_cast<uint4*>(p.to + b * p.matrix_bytes + i * p.pitch_to + begin) = v;
    }
}

}  // namespace repack_file

DeviceInput repack(const DeviceInput& x, std::int64_t ld, std::uintptr_t bits, const Repacked& copy,
                   void* to, const CudaQueue& queue) {
  using namespace repack_file;
  const std::int64_t matrix_bytes = copy.matrix_bytes();
  const std::int64_t stride = copy.count == 1 ? 0 : matrix_bytes;
  if (copy.transposed) {
    const TransposeProblem p = {copy.cols, copy.rows, ld, copy.ld(), copy.count, x, {to, stride}};
    transpose::run_best(p, copy.size, bits, queue);
    // Kernels that read whole vectors find zeros at the ends of rows.
    const std::size_t pitch = std::size_t(copy.ld() * copy.size);
    const std::size_t used = std::size_t(copy.cols * copy.size), rest = -used % 16;
    const DeviceGuard guard(queue.device().ordinal);
    if (rest > 0)
      cuda_check(cudaMemset2DAsync(static_cast<std::byte*>(to) + used, pitch, 0, rest,
                                   std::size_t(copy.rows * copy.count), queue.stream()),
                 "cudaMemset2DAsync");
  } else {
    const std::int64_t row_bytes = copy.cols * copy.size;
    const CopyProblem p = {x,
                           static_cast<std::byte*>(to),
                           copy.rows,
                           row_bytes,
                           ld * copy.size,
                           copy.ld() * copy.size,
                           matrix_bytes,
                           copy.count};
    const std::int64_t chunks = ceil_div(row_bytes, 16);
    const unsigned across =
        std::min(32u, std::bit_ceil(unsigned(std::min<std::int64_t>(chunks, 32))));
    const dim3 threads(across, kThreads / across);
    const dim3 grid(unsigned(ceil_div(chunks, across)),
                    unsigned(std::min(ceil_div(copy.rows, std::int64_t(threads.y)), kMostGrid)),
                    unsigned(std::min(copy.count, kMostGrid)));
    if (copy.size == 1)
      launch_grid(queue, copy_kernel<std::uint8_t>, grid, threads, 0, p);
    else if (copy.size == 2)
      launch_grid(queue, copy_kernel<std::uint16_t>, grid, threads, 0, p);
    else
      launch_grid(queue, copy_kernel<std::uint32_t>, grid, threads, 0, p);
  }
  return {to, stride, nullptr};
}

}  // namespace mblas::cuda::gemm
