// Any shape, through a buffer of the matrix's size: a blocked transpose into it and a copy back, so
// half of copy speed. Matrices that the second-level cache holds are buffered one per thread,
// larger ones one after the other by all threads.
#include <algorithm>
#include <cstring>

#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"
#include "cpu/transpose/blocked.hpp"

namespace mblas::cpu {
namespace {

std::int64_t matrix_bytes(const TransposeInplaceArgs& args) {
  return args.m * args.n * size_of(args.type);
}

/// Buffers in use at a time.
int buffers(const TransposeInplaceArgs& args, int num_threads) {
  constexpr std::int64_t most_bytes = 256 << 10;
  if (matrix_bytes(args) > most_bytes) return 1;
  const int threads = copy_threads(args.batch, args.m, args.n, size_of(args.type), num_threads);
  return int(std::min<std::int64_t>(threads, args.batch));
}

/// Matrix `b`, through `buffer`.
void transpose_one(const TransposeInplaceArgs& args, std::int64_t b, std::byte* buffer,
                   int threads) {
  const int size = size_of(args.type);
  auto* A = static_cast<std::byte*>(args.A.at(b, size));
  transpose_batch(
      {.type = args.type, .m = args.m, .n = args.n, .A = {A, args.A.ld}, .B = {buffer, args.m}},
      threads);
  parallel(threads, [&](int thread, int granted) {
    const Range rows = share_of(args.n, thread, granted);
    for (std::int64_t j = rows.begin; j < rows.end; ++j)
      std::memcpy(A + j * args.ldb * size, buffer + j * args.m * size, std::size_t(args.m * size));
  });
}

}  // namespace

std::size_t transpose_inplace_buffered_workspace(const TransposeInplaceArgs& args,
                                                 const DeviceInfo& device) {
  return std::size_t(buffers(args, device.num_threads) * matrix_bytes(args));
}

void transpose_inplace_buffered(const TransposeInplaceArgs& args, Queue& queue) {
  const int num_threads = queue.device().num_threads;
  std::byte* buffer = queue.workspace.data();
  if (const int teams = buffers(args, num_threads); teams > 1) {
    parallel(teams, [&](int thread, int granted) {
      const Range range = share_of(args.batch, thread, granted);
      for (std::int64_t b = range.begin; b < range.end; ++b)
        transpose_one(args, b, buffer + thread * matrix_bytes(args), 1);
    });
  } else {
    const int threads = copy_threads(1, args.m, args.n, size_of(args.type), num_threads);
    for (std::int64_t b = 0; b < args.batch; ++b) transpose_one(args, b, buffer, threads);
  }
}

}  // namespace mblas::cpu
