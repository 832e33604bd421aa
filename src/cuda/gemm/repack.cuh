// Copies of operands as kernels with asynchronous copies of 16 bytes want them.
#pragma once

#include <span>

#include "cuda/element.cuh"
#include "cuda/launch.cuh"

namespace mblas::cuda::gemm {

constexpr std::int64_t kLineBytes = 128;  // of the cache

/// Elements of `size` bytes from row to row of a copy of `cols` columns: rows start at multiples of
/// 16 bytes and, where that is little more, of a line of the cache: boxes of 128 bytes that lie in
/// two lines each make the engine of hopper/ take up to 1.6 times as long.
inline std::int64_t aligned_ld(std::int64_t cols, int size) {
  const std::int64_t unit = cols * size >= 8 * kLineBytes ? kLineBytes : 16;
  return ceil_div(cols * size, unit) * unit / size;
}

/// A copy of a batch of row-major matrices, transposed or not, with aligned rows. It costs one
/// reading and one writing of the operand.
struct Repacked {
  std::int64_t rows, cols;  ///< of the copy
  std::int64_t count;       ///< matrices: 1 for an operand that the whole batch shares
  int size;                 ///< bytes of an element
  bool transposed;

  /// Of `x`, stored as `rows`×`cols`, for a batch of `batch`.
  static Repacked of(const Input& x, std::int64_t rows, std::int64_t cols, std::int64_t batch,
                     int size, bool transposed) {
    const bool shared = !x.pointers && x.stride == 0;
    return {transposed ? cols : rows, transposed ? rows : cols, shared ? 1 : batch, size,
            transposed};
  }

  std::int64_t ld() const { return aligned_ld(cols, size); }
  std::int64_t matrix_bytes() const { return rows * ld() * size; }
  std::size_t bytes() const { return std::size_t(ceil_div(count * matrix_bytes(), 256) * 256); }
};

/// What repack() copies: `from`, whose rows are `ld` elements apart, to `to`; `bits`: access_bits()
/// of `from`.
struct RepackJob {
  DeviceInput from;
  std::int64_t ld;
  std::uintptr_t bits;
  Repacked copy;
  void* to;
  /// Zeros fill the last 16 bytes of rows, for kernels that read those whole.
  bool filled = true;

  /// Where a kernel finds the copy.
  DeviceInput result() const { return {to, copy.count == 1 ? 0 : copy.matrix_bytes(), nullptr}; }
};
/// Up to two operands of one type: in one launch those that need not be transposed, in another
/// those of 1 and 2 bytes that need.
void repack(std::span<const RepackJob> jobs, const CudaQueue& queue);

/// What a call of two kernels takes the host where no graph launches them, whatever they do.
constexpr double kTwoLaunches = 9.2;  // microseconds; from 7 to 15, of one kernel 3.5 to 9

/// An estimate of the time that such copies add to a call in a graph; `filled`: see RepackJob.
double repack_microseconds(std::span<const Repacked> copies, bool filled);

/// One operand; says where a kernel finds its copy.
inline DeviceInput repack(const DeviceInput& x, std::int64_t ld, std::uintptr_t bits,
                          const Repacked& copy, void* to, const CudaQueue& queue) {
  const RepackJob job = {x, ld, bits, copy, to};
  repack(std::span(&job, 1), queue);
  return job.result();
}

}  // namespace mblas::cuda::gemm
