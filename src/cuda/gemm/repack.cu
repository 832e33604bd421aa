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
constexpr std::int64_t kMostBlocks = 1 << 29, kMostGrid = 65535;

/// A block has a tile of 16 << lanes_log2 bytes of its rows.
struct CopyProblem {
  DeviceInput from;
  std::byte* to;
  std::int64_t rows, row_bytes, pitch_from, pitch_to, matrix_bytes, count;
  unsigned lanes_log2 = 0, across = 0, down = 0;  // tiles of a matrix
  unsigned at_once = 1;                           // matrices in x of the grid; of 1, they are in y

  __host__ __device__ unsigned blocks() const { return across * down * at_once; }
};
struct CopyProblems {
  CopyProblem of[2];
};

/// `Element`: what rows are aligned to.
template <class Element>
__global__ void __launch_bounds__(kThreads) copy_kernel(const __grid_constant__ CopyProblems p) {
  const unsigned first = p.of[0].blocks();
  const bool second = blockIdx.x >= first;
  const CopyProblem& x = p.of[second];
  const unsigned tile = blockIdx.x - (second ? first : 0);
  unsigned line = x.across == 1 ? tile : tile / x.across, matrix = blockIdx.y, matrices = gridDim.y;
  const unsigned lane = threadIdx.x % (1u << x.lanes_log2);
  const std::int64_t at = (std::int64_t(tile - line * x.across) << x.lanes_log2 | lane) * 16;
  const std::int64_t left = x.row_bytes - at, step = kThreads >> x.lanes_log2;
  if (x.at_once > 1) {
    matrix = line / x.down;
    line -= matrix * x.down;
    matrices = x.at_once;
  }
  const std::int64_t top = line * step * kRows + (threadIdx.x >> x.lanes_log2);
  begin_early();
  if (left <= 0) return;
  for (std::int64_t b = matrix; b < x.count; b += matrices) {
    const auto* const begin = static_cast<const std::byte*>(x.from.at(b));
    const auto* const end = begin + (x.rows - 1) * x.pitch_from + x.row_bytes;
    std::byte* const to = x.to + b * x.matrix_bytes + at;
    for (std::int64_t i = top; i < x.rows; i += x.down * step * kRows) {
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

/// Each operand has tiles of its own shape: of a grid for the larger of both, where one is tall and
/// the other wide, most blocks would have nothing to do (130×8194 and 8194×130: 40 us for 7).
void tile(CopyProblem& x, bool matrices_too) {
  const auto most = [](std::int64_t wanted, std::int64_t each) {
    return unsigned(std::min(wanted, std::max(kMostBlocks / each, std::int64_t(1))));
  };
  const auto chunks = std::uint64_t(ceil_div(x.row_bytes, std::int64_t(16)));
  x.lanes_log2 = unsigned(std::bit_width(std::min<std::uint64_t>(chunks, 32) - 1));
  x.across = unsigned(ceil_div(std::int64_t(chunks), std::int64_t(1) << x.lanes_log2));
  x.down = most(ceil_div(x.rows, std::int64_t(kThreads >> x.lanes_log2) * kRows), x.across);
  if (matrices_too) x.at_once = most(x.count, std::int64_t(x.across) * x.down);
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
  const bool alike = count == 1 || p.of[0].count == p.of[1].count;
  for (int i = 0; i < count; ++i) tile(p.of[i], !alike);
  const dim3 grid(p.of[0].blocks() + p.of[1].blocks(),
                  alike ? unsigned(std::min(p.of[0].count, kMostGrid)) : 1);
  const auto launch = [&](auto kernel) { launch_early(queue, kernel, grid, kThreads, 0, p); };
  if (size == 1)
    launch(copy_kernel<std::uint8_t>);
  else if (size == 2)
    launch(copy_kernel<std::uint16_t>);
  else
    launch(copy_kernel<std::uint32_t>);
}

}  // namespace mblas::cuda::gemm
