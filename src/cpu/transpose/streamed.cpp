// Transposes that no cache holds, written past the caches: streamed_isa.cpp says how. Threads share
// the rows of the result, or its columns where there are few rows, or the matrices of a batch.
#include <algorithm>

#include "cpu/cache.hpp"
#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"
#include "cpu/transpose/blocked.hpp"

namespace mblas::cpu {
namespace {

int threads_of(const TransposeArgs& args, const DeviceInfo& device) {
  return copy_threads(args.batch, args.m, args.n, size_of(args.type), device.num_threads);
}

TransposePanel panel_of(const TransposeArgs& args, std::int64_t b, std::byte* buffer) {
  const int size = size_of(args.type);
  return {.src = static_cast<const std::byte*>(args.A.at(b, size)),
          .src_pitch = args.A.ld * size,
          .dst = static_cast<std::byte*>(args.B.at(b, size)),
          .dst_pitch = args.B.ld * size,
          .rows = args.m,
          .cols = args.n,
          .buffer = buffer,
          .src_stride = args.A.stride * size,
          .dst_stride = args.B.stride * size};
}

/// The share of a thread in one matrix.
TransposePanel share(TransposePanel p, int size, int thread, int granted) {
  constexpr std::int64_t run = 256;  // bytes: whole lines and what streamed_isa.cpp writes at once
  if (p.cols >= p.rows || p.cols * size >= 4096 * granted) {
    const Range cols = share_of(p.cols, thread, granted, run / size);
    p.src += cols.begin * size;
    p.dst += cols.begin * p.dst_pitch;
    p.cols = cols.end - cols.begin;
  } else {
    const Range rows = share_of(p.rows, thread, granted, run / size);
    p.src += rows.begin * p.src_pitch;
    p.dst += rows.begin * size;
    p.rows = rows.end - rows.begin;
  }
  return p;
}

}  // namespace

void transpose_streams(const TransposeArgs& args, std::byte* buffers, int threads) {
  const int size = size_of(args.type);
  const TransposePanelKernel run = isa().transpose_panel[int(untyped(size)) - int(DType::b1)];
  const bool strided = !args.A.pointers && !args.B.pointers;
  parallel(threads, [&](int thread, int granted) {
    std::byte* buffer = buffers + thread * kStreamBuffer;
    if (args.batch < granted) {
      for (std::int64_t b = 0; b < args.batch; ++b)
        run(share(panel_of(args, b, buffer), size, thread, granted));
      return;
    }
    const Range range = share_of(args.batch, thread, granted);
    const std::int64_t step = strided ? range.end - range.begin : 1;
    for (std::int64_t b = range.begin; b < range.end; b += step) {
      TransposePanel p = panel_of(args, b, buffer);
      p.count = step;
      run(p);
    }
  });
}

std::size_t transpose_streamed_workspace(const TransposeArgs& args, const DeviceInfo& device) {
  return std::size_t(threads_of(args, device) * kStreamBuffer);
}

void transpose_streamed(const TransposeArgs& args, Queue& queue) {
  transpose_streams(args, queue.workspace.data(), threads_of(args, queue.device()));
}

}  // namespace mblas::cpu
