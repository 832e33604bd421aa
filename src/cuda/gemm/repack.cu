// Memory-bound. A thread writes 16 bytes, which it shifts together from the two words of 16 bytes
// of the source that they lie in: every access is of a whole vector, and neighbours find the second
// word in the cache. It has two rows, whose words it asks for together. Both operands of a product
// are copied by one launch, which begins while the kernel before it ends. So are both that are
// transposed, of 1 and 2 bytes; those of larger elements are the transpose kernels' work.
//
// Two bf16 matrices of 4096×4096 with odd leading dimensions: 34 us, 3.9 TB/s; a launch for each, a
// row a thread, 41. Hints to the second-level cache on what is read or written, and words from
// neighbours by shuffles, made no difference or cost 1 to 2 us.
//
// Transposed: a thread turns four rows of 16 bytes in registers, so that a tile of 16 KiB has 256
// threads; the transpose kernels turn as many rows as columns, of bytes by a quarter of the
// threads, and products wait for them longer: int8 TN 2048³ 25.4 us with two launches of
// those, 23.3 with one, 20.8 so; bf16 TN 328×13608×1520 35.7 and 30.5. (Not of 4 bytes: TF32 TN
// 1024³ 13.6 and 14.4, TN 511×513×509 13.4 and 15.0.)
#include <algorithm>
#include <bit>

#include "cuda/early.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/repack.cuh"
#include "cuda/gemm/words.cuh"
#include "cuda/transpose/transpose.cuh"

namespace mblas::cuda::gemm {
namespace repack_file {

constexpr int kThreads = 256, kRows = 2;  // of a thread
// Of a tile of the source that is transposed: rows, and bytes of each.
constexpr int kTurned = 128, kTurnedBytes = 128;
constexpr std::int64_t kMostBlocks = 1 << 29, kMostGrid = 65535;

/// A block has a tile of 16 << lanes_log2 bytes of the copy's rows, of transposed ones of kTurned.
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

/// Which tile a block has, of which matrices.
struct Place {
  unsigned problem, row, col;  ///< in tiles
  unsigned matrix, matrices;   ///< the first one, and how many are at once
};
__device__ Place place_in(const CopyProblems& p) {
  const unsigned first = p.of[0].blocks(), problem = blockIdx.x >= first;
  const CopyProblem& x = p.of[problem];
  const unsigned tile = blockIdx.x - (problem ? first : 0);
  const unsigned line = x.across == 1 ? tile : tile / x.across, col = tile - line * x.across;
  if (x.at_once == 1) return {problem, line, col, blockIdx.y, gridDim.y};
  const unsigned matrix = line / x.down;
  return {problem, line - matrix * x.down, col, matrix, x.at_once};
}

/// `Element`: what rows are aligned to.
template <class Element>
__global__ void __launch_bounds__(kThreads) copy_kernel(const __grid_constant__ CopyProblems p) {
  const Place place = place_in(p);
  const CopyProblem& x = p.of[place.problem];
  const unsigned lane = threadIdx.x % (1u << x.lanes_log2);
  const std::int64_t at = (std::int64_t(place.col) << x.lanes_log2 | lane) * 16;
  const std::int64_t left = x.row_bytes - at, step = kThreads >> x.lanes_log2;
  const std::int64_t top = place.row * step * kRows + (threadIdx.x >> x.lanes_log2);
  begin_early();
  if (left <= 0) return;
  for (std::int64_t b = place.matrix; b < x.count; b += place.matrices) {
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

/// Transposed, with zeros up to a multiple of 16 bytes. A thread has four rows of 16 bytes, of
/// which each column is a run of the copy's row. In shared memory the tile's rows are those of the
/// copy, and chunk c of 16 bytes of a row is at c ^ the source's chunk that the row is of: threads
/// write runs of eight rows and read chunks of one in all banks. kAligned: rows begin at multiples
/// of 16 bytes. What can be found out again is, so that a multiprocessor has all blocks of two
/// operands of 2048×2048 bytes.
template <int kSize, bool kAligned>
__global__ void __launch_bounds__(kThreads, kAligned ? 6 : 4)
    turn_kernel(const __grid_constant__ CopyProblems p) {
  constexpr int kQuad = 4, kPacked = turn::kPacked<kSize>;
  constexpr int kAcross = kTurnedBytes / 16;     // chunks of the source's row
  constexpr int kChunks = kTurned * kSize / 16;  // of the copy's
  constexpr int kInChunk = 16 / kSize;           // elements
  static_assert(kThreads == kTurned / kQuad * kAcross && kSize * kPacked == kQuad);
  using Run = typename turn::VectorOf<kQuad * kSize>::type;
  using Element = turn::Raw<kSize>;
  __shared__ uint4 tile[kAcross * kInChunk * kChunks];
  const Place place = place_in(p);
  const int column = int(threadIdx.x) % kAcross, quad = int(threadIdx.x) / kAcross;
  begin_early();
  for (std::int64_t b = place.matrix; b < p.of[place.problem].count; b += place.matrices) {
    const CopyProblem& x = p.of[late(int(place.problem))];
    const std::int64_t rows = x.row_bytes / kSize, bytes = x.rows * kSize;  // of the source
    const auto* const begin = static_cast<const std::byte*>(x.from.at(b));
    const auto* const end = begin + (rows - 1) * x.pitch_from + bytes;
    const std::int64_t row = std::int64_t(place.col) * kTurned + quad * kQuad;
    const std::int64_t at = std::int64_t(place.row) * kTurnedBytes + column * 16, left = bytes - at;
    const std::byte* const from = begin + row * x.pitch_from + at;
    union {
      uint4 v;
      std::uint32_t words[4];
    } read[kQuad] = {};
    if (kAligned && row + kQuad <= rows && left >= 16) {
#pragma unroll
      for (int r = 0; r < kQuad; ++r)
        read[r].v = __ldg(reinterpret_cast<const uint4*>(from + r * x.pitch_from));
    } else if (left > 0) {
#pragma unroll
      for (int r = 0; r < kQuad; ++r)
        if (row + r < rows)
          read[r].v = Words::at<Element>(from + r * x.pitch_from, begin, end, left).bytes(16);
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      union {
        std::uint32_t words[kSize];
        Run whole;
      } run[kPacked];
#pragma unroll
      for (int s = 0; s < kSize; ++s) {
        std::uint32_t square[kPacked];
#pragma unroll
        for (int r = 0; r < kPacked; ++r) square[r] = read[s * kPacked + r].words[w];
        turn::turn_words<kSize>(square);
#pragma unroll
        for (int r = 0; r < kPacked; ++r) run[r].words[s] = square[r];
      }
#pragma unroll
      for (int r = 0; r < kPacked; ++r) {
        constexpr int kRuns = 16 / (kQuad * kSize);  // of a chunk
        uint4* const chunk =
            tile + (column * kInChunk + w * kPacked + r) * kChunks + (quad / kRuns ^ column);
        reinterpret_cast<Run*>(chunk)[quad % kRuns] = run[r].whole;
      }
    }
    __syncthreads();
    std::byte* const to = x.to + b * x.matrix_bytes;
#pragma unroll
    for (int v = 0; v < int(std::size(tile)) / kThreads; ++v) {
      const int s = v * kThreads + late(int(threadIdx.x)), j = s / kChunks, chunk = s % kChunks;
      const std::int64_t i = std::int64_t(place.col) * (kChunks * 16) + chunk * 16;
      const std::int64_t to_row = std::int64_t(place.row) * (kAcross * kInChunk) + j;
      if (to_row < x.rows && i < x.row_bytes)
        *reinterpret_cast<uint4*>(to + to_row * x.pitch_to + i) =
            tile[j * kChunks + (chunk ^ j / kInChunk)];
    }
    __syncthreads();
  }
}

/// Each operand has tiles of its own shape: of a grid for the larger of both, where one is tall and
/// the other wide, most blocks would have nothing to do (130×8194 and 8194×130: 40 us for 7).
void tile(CopyProblem& x, int size, bool turned, bool matrices_too) {
  const auto most = [](std::int64_t wanted, std::int64_t each) {
    return unsigned(std::min(wanted, std::max(kMostBlocks / each, std::int64_t(1))));
  };
  std::int64_t rows = kTurnedBytes / size, bytes = kTurned * size;  // of a tile
  if (!turned) {
    const auto chunks = std::uint64_t(ceil_div(x.row_bytes, std::int64_t(16)));
    x.lanes_log2 = unsigned(std::bit_width(std::min<std::uint64_t>(chunks, 32) - 1));
    rows = (kThreads >> x.lanes_log2) * kRows;
    bytes = std::int64_t(16) << x.lanes_log2;
  }
  x.across = unsigned(ceil_div(x.row_bytes, bytes));
  x.down = most(ceil_div(x.rows, rows), x.across);
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

/// Whether transposed copies are turn_kernel's.
bool turns(const Repacked& copy) { return copy.transposed && copy.size <= 2; }

/// Of one or two.
void copy_all(std::span<const RepackJob> jobs, bool turned, const CudaQueue& queue) {
  CopyProblems p = {};
  std::uintptr_t bits = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const RepackJob& job = jobs[i];
    const Repacked& copy = job.copy;
    p.of[i] = {job.from,
               static_cast<std::byte*>(job.to),
               copy.rows,
               copy.cols * copy.size,
               job.ld * copy.size,
               copy.ld() * copy.size,
               copy.matrix_bytes(),
               copy.count};
    bits |= job.bits;
  }
  const bool alike = jobs.size() == 1 || p.of[0].count == p.of[1].count;
  for (std::size_t i = 0; i < jobs.size(); ++i) tile(p.of[i], jobs[i].copy.size, turned, !alike);
  const dim3 grid(p.of[0].blocks() + p.of[1].blocks(),
                  alike ? unsigned(std::min(p.of[0].count, kMostGrid)) : 1);
  const int size = jobs[0].copy.size;
  const bool aligned = bits % 16 == 0;
  const auto launch = [&](auto kernel) { launch_early(queue, kernel, grid, kThreads, 0, p); };
  if (turned && size == 1)
    launch(aligned ? turn_kernel<1, true> : turn_kernel<1, false>);
  else if (turned)
    launch(aligned ? turn_kernel<2, true> : turn_kernel<2, false>);
  else if (size == 1)
    launch(copy_kernel<std::uint8_t>);
  else if (size == 2)
    launch(copy_kernel<std::uint16_t>);
  else
    launch(copy_kernel<std::uint32_t>);
}

}  // namespace repack_file

double repack_microseconds(std::span<const Repacked> copies, bool filled) {
  constexpr double kLaunch = 2.2, kBytes = 3e6;  // read and written a microsecond
  double sum = 0;
  bool copied = false, turned = false;
  for (const Repacked& copy : copies) {
    sum += 2 * double(copy.count) * double(copy.rows) * double(copy.cols) * copy.size / kBytes;
    if (repack_file::turns(copy))
      turned = true;
    else if (copy.transposed)
      sum += kLaunch * (filled && repack_file::rest_of(copy) > 0 ? 2 : 1);
    else
      copied = true;
  }
  return sum + (int(copied) + int(turned)) * kLaunch;
}

void repack(std::span<const RepackJob> jobs, const CudaQueue& queue) {
  using namespace repack_file;
  constexpr std::size_t kMost = 2;
  RepackJob copied[kMost], turned[kMost];
  std::size_t copied_count = 0, turned_count = 0;
  for (const RepackJob& job : jobs) {
    if (turns(job.copy))
      turned[turned_count++] = job;
    else if (job.copy.transposed)
      transpose_to(job, queue);
    else
      copied[copied_count++] = job;
  }
  if (copied_count > 0) copy_all({copied, copied_count}, false, queue);
  if (turned_count > 0) copy_all({turned, turned_count}, true, queue);
}

}  // namespace mblas::cuda::gemm
