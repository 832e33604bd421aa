// Rectangular matrices without padding of any sizes, past what can be buffered: the last rows and
// columns are set aside, so that what is left has sizes with a common divisor and can be transposed
// as `chunked` does it. Before that its rows move together, afterwards they move apart again, and
// what was aside takes its places. Each of the two moves reads and writes every element once more,
// by one thread, because the rows overlap what they move over.
#include <algorithm>
#include <cstring>

#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"
#include "cpu/transpose/blocked.hpp"

namespace mblas::cpu {
namespace {

/// Bytes of a multiple of which the sizes are left: fast pieces, and those of matrices with a side
/// of less than kLong.
constexpr std::int64_t kChunk = 1024, kShortChunk = 256, kLong = 4096;

/// The part that is transposed in place, and the rows and columns that are not in it.
struct Parts {
  std::int64_t m, n, rows, cols;
  int size;

  explicit Parts(const TransposeInplaceArgs& args) : size(size_of(args.type)) {
    const bool wide = std::min(args.m, args.n) * size >= kLong;
    const std::int64_t chunk = (wide ? kChunk : kShortChunk) / size;
    rows = args.m % chunk;
    cols = args.n % chunk;
    m = args.m - rows;
    n = args.n - cols;
  }
  TransposeInplaceArgs inner(const TransposeInplaceArgs& args, std::byte* A) const {
    return {.type = args.type, .m = m, .n = n, .A = {.data = A, .ld = n}, .ldb = m};
  }
  /// Of what is set aside: columns over all rows, and rows over the columns of the part.
  std::int64_t cols_bytes(const TransposeInplaceArgs& args) const {
    return divide_up(args.m * cols * size, 64) * 64;
  }
  std::int64_t rows_bytes() const { return divide_up(rows * n * size, 64) * 64; }
};

}  // namespace

const char* transpose_inplace_trimmed_declines(const TransposeInplaceArgs& args,
                                               const DeviceInfo& device) {
  const Parts parts(args);
  if (parts.m == 0 || parts.n == 0) return "needs 256 bytes in each direction";
  if (args.A.ld != args.n || args.ldb != args.m) return "needs rows without padding";
  TransposeInplaceArgs inner = parts.inner(args, nullptr);
  inner.batch = args.batch;
  return transpose_inplace_chunked_declines(inner, device);
}

std::size_t transpose_inplace_trimmed_workspace(const TransposeInplaceArgs& args,
                                                const DeviceInfo& device) {
  const Parts parts(args);
  return std::size_t(parts.cols_bytes(args) + parts.rows_bytes()) +
         transpose_inplace_chunked_workspace(parts.inner(args, nullptr), device);
}

void transpose_inplace_trimmed(const TransposeInplaceArgs& args, Queue& queue) {
  const Parts parts(args);
  const std::int64_t size = parts.size, m = args.m, n = args.n;
  const int threads = copy_threads(1, m, n, parts.size, queue.device().num_threads);
  const std::span<std::byte> workspace = queue.workspace;
  std::byte* const cols = workspace.data();
  std::byte* const rows = cols + parts.cols_bytes(args);
  queue.workspace = workspace.subspan(std::size_t(parts.cols_bytes(args) + parts.rows_bytes()));
  const auto transpose_to = [&](std::byte* to, std::int64_t height, std::int64_t width,
                                const std::byte* from) {
    if (height > 0 && width > 0)
      transpose_batch({.type = args.type,
                       .m = height,
                       .n = width,
                       .A = {.data = from, .ld = n},
                       .B = {.data = to, .ld = height}},
                      threads);
  };
  for (std::int64_t batch = 0; batch < args.batch; ++batch) {
    auto* const A = static_cast<std::byte*>(args.A.at(batch, parts.size));
    transpose_to(cols, m, parts.cols, A + parts.n * size);
    transpose_to(rows, parts.rows, parts.n, A + parts.m * n * size);
    if (parts.cols > 0)
      for (std::int64_t i = 1; i < parts.m; ++i)
        std::memmove(A + i * parts.n * size, A + i * n * size, std::size_t(parts.n * size));
    transpose_inplace_chunked(parts.inner(args, A), queue);
    if (parts.rows > 0) {
      const auto rest = std::size_t(parts.rows * size);
      for (std::int64_t j = parts.n - 1; j >= 0; --j) {
        std::memmove(A + j * m * size, A + j * parts.m * size, std::size_t(parts.m * size));
        std::memcpy(A + (j * m + parts.m) * size, rows + std::size_t(j) * rest, rest);
      }
    }
    std::memcpy(A + parts.n * m * size, cols, std::size_t(m * parts.cols * size));
  }
  queue.workspace = workspace;
}

}  // namespace mblas::cpu
