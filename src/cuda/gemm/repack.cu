// Memory-bound. A thread writes 16 bytes, which it shifts together from the two words of 16 bytes
// of the source that they lie in: every access is of a whole vector, and neighbours find the second
// word in the cache. It has two rows, whose words it asks for together. Both operands of a product
// are copied by one launch, which begins while the kernel before it ends. Transposed copies are the
// transpose kernels' work.
//
// Two bf16 matrices of 4096×4096 with odd leading dimensions: 34 us, 3.9 TB/s; a launch for each, a
// row a thread, 41. Hints to the second-level cache on what is read or written, and words from
// neighbours by shuffles, made no difference or cost 1 to 2 us.
#include <algorithm>
#include <bit>

#include "cuda/early.cuh"
#include "cuda/gemm/repack.cuh"
#include "cuda/gemm/words.cuh"
#include "cuda/transpose/transpose.cuh"

namespace mblas::cuda::gemm {
namespace repack_file {

constexpr int kThreads = 256, kRows = 2;  // of a thread
constexpr std::int64_t kMostGrid = 65535;

struct CopyProblem {
  DeviceInput from;
  std::byte* to;
  std::int64_t rows, row_bytes, pitch_from, pitch_to, matrix_bytes, count;
};
struct CopyProblems {
  CopyProblem of[2];
};

/// `Element`: what rows are aligned to.
template <class Element>
__global__ void __launch_bounds__(kThreads) copy_kernel(const __grid_constant__ CopyProblems p) {
  begin_early();
  const std::int64_t at = (blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x) * 16;
  for (std::int64_t z = blockIdx.z; z < p.of[0].count + p.of[1].count; z += gridDim.z) {
    const bool second = z >= p.of[0].count;
    const CopyProblem& x = p.of[second];
    const std::int64_t b = second ? z - p.of[0].count : z, left = x.row_bytes - at;
    if (left <= 0) continue;
    const auto* const begin = static_cast<const std::byte*>(x.from.at(b));
    const auto* const end = begin + (x.rows - 1) * x.pitch_from + x.row_bytes;
    std::byte* const to = x.to + b * x.matrix_bytes + at;
    const std::int64_t step = blockDim.y;
    for (std::int64_t i = blockIdx.y * step * kRows + threadIdx.y; i < x.rows;
         i += gridDim.y * step * kRows) {
      Words words[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (const std::int64_t row = i + r * step; row < x.rows)
          words[r] = Words::at<Element>(begin + row * x.pitch_from + at, begin, end, left);
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (const std::int64_t row = i + r * step; row < x.rows)
          *reinterpret_cast<uint4*>(to + row * x.pitch_to) = words[r].bytes(left);
    }
  }
}

template <class Element>
void launch_copies(const CopyProblems& p, const CudaQueue& queue) {
  std::int64_t chunks = 1, rows = 1;
  for (const CopyProblem& x : p.of) {
    chunks = std::max(chunks, ceil_div(x.row_bytes, std::int64_t(16)));
    rows = std::max(rows, x.rows);
  }
  const unsigned across =
      std::min(32u, std::bit_ceil(unsigned(std::min<std::int64_t>(chunks, 32))));
  const std::int64_t down = kThreads / across;
  const dim3 grid(unsigned(ceil_div(chunks, std::int64_t(across))),
                  unsigned(std::min(ceil_div(rows, down * kRows), kMostGrid)),
                  unsigned(std::min(p.of[0].count + p.of[1].count, kMostGrid)));
  launch_early(queue, copy_kernel<Element>, grid, dim3(across, unsigned(down)), 0, p);
}

/// Bytes from the end of a row of the copy to a multiple of 16.
std::size_t rest_of(const Repacked& copy) { return -std::size_t(copy.cols * copy.size) % 16; }

void transpose_to(const RepackJob& job, const CudaQueue& queue) {
  const Repacked& copy = job.copy;
  const TransposeProblem p = {
      copy.cols, copy.rows, job.ld, copy.ld(), copy.count, job.from, {job.to, job.result().stride}};
  transpose::run_best(p, copy.size, job.bits, queue);
  const std::size_t pitch = std::size_t(copy.ld() * copy.size);
  const std::size_t used = std::size_t(copy.cols * copy.size), rest = rest_of(copy);
  const DeviceGuard guard(queue.device().ordinal);
  if (rest > 0 && job.filled)
    cuda_check(cudaMemset2DAsync(static_cast<std::byte*>(job.to) + used, pitch, 0, rest,
                                 std::size_t(copy.rows * copy.count), queue.stream()),
               "cudaMemset2DAsync");
}

}  // namespace repack_file

double repack_microseconds(std::span<const Repacked> copies, bool filled) {
  constexpr double kLaunch = 2.2, kBytes = 3e6;  // read and written a microsecond
  double sum = 0;
  int together = 0;
  for (const Repacked& copy : copies) {
    sum += 2 * double(copy.count) * double(copy.rows) * double(copy.cols) * copy.size / kBytes;
    if (copy.transposed)
      sum += kLaunch * (filled && repack_file::rest_of(copy) > 0 ? 2 : 1);
    else
      together = 1;
  }
  return sum + together * kLaunch;
}

void repack(std::span<const RepackJob> jobs, const CudaQueue& queue) {
  using namespace repack_file;
  CopyProblems p = {};
  int count = 0, size = 0;
  for (const RepackJob& job : jobs) {
    const Repacked& copy = job.copy;
    if (copy.transposed) {
      transpose_to(job, queue);
      continue;
    }
    size = copy.size;
    p.of[count++] = {job.from,
                     static_cast<std::byte*>(job.to),
                     copy.rows,
                     copy.cols * size,
                     job.ld * size,
                     copy.ld() * size,
                     copy.matrix_bytes(),
                     copy.count};
  }
  if (count == 0) return;
  if (size == 1)
    launch_copies<std::uint8_t>(p, queue);
  else if (size == 2)
    launch_copies<std::uint16_t>(p, queue);
  else
    launch_copies<std::uint32_t>(p, queue);
}

}  // namespace mblas::cuda::gemm
