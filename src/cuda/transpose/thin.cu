// Memory-bound: matrices with few columns or few rows, whose short rows would leave most of a
// warp's access unused. Many of them together are one contiguous run (run.cuh), which is accessed
// like a copy; the long side is accessed in runs of its own.
#include "cuda/kernels.hpp"
#include "cuda/transpose/run.cuh"
#include "cuda/transpose/selection.cuh"

namespace mblas::cuda::transpose {
namespace thin_file {

const char* declines(const TransposeArgs& args, const DeviceInfo&) {
  if (chosen(args) != Row::Thin) return "for matrices with one short side";
  return nullptr;
}

void run(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const int size = size_of(args.type);
  run_thin(transpose_problem(args, queue), size,
           access_bits(args.A, args.batch, size) | access_bits(args.B, args.batch, size), queue);
}

template <int S, turn::Run kRun, int kThreads>
void run_tiles(const TransposeProblem& p, int bytes, const CudaQueue& queue) {
  const bool tall = p.n <= p.m;
  const int width = int(std::min(p.m, p.n));
  int log_length = 5;
  while ((std::int64_t(width) * S << (log_length + 1)) <= bytes) ++log_length;
  const auto blocks = unsigned(ceil_div(std::max(p.m, p.n), std::int64_t(1) << log_length));
  const std::size_t shared = std::size_t(S) * turn::skewed_size<S>(width << log_length);
  const Moves<S> moves = {p};
  turn::for_each_part(1, p.batch, [&](turn::Part part, unsigned, unsigned z) {
    part.hold = hold_of(moves.bytes() * z, std::int64_t(blocks) * z, queue.device());
    launch_early(queue,
                 tall ? turn::tall_kernel<S, kRun, kThreads, Moves<S>>
                      : turn::wide_kernel<S, kRun, kThreads, Moves<S>>,
                 dim3(blocks, 1, z), kThreads, shared, moves, part, log_length,
                 turn::Divisor(width));
  });
}

}  // namespace thin_file

void run_thin(const TransposeProblem& p, int size, std::uintptr_t bits, const CudaQueue& queue) {
  using namespace thin_file;
  const bool tall = p.n <= p.m;
  const bool contiguous = tall ? p.lda == p.n : p.ldb == p.m;
  if (contiguous && !p.A.pointers && !p.B.pointers) {
    // Rows of the run need no alignment of their own.
    bits = reinterpret_cast<std::uintptr_t>(p.A.data) | reinterpret_cast<std::uintptr_t>(p.B.data) |
           std::uintptr_t((tall ? p.ldb : p.lda) * size);
    if (p.batch > 1) bits |= std::uintptr_t(p.A.stride | p.B.stride);
  }
  const ThinTile* tile = kThinTiles;
  while (std::min(p.m, p.n) > tile->most_elements) ++tile;
  with_size(size, [&]<int S>() {
    const auto with_threads = [&]<int kThreads>() {
      if (contiguous && bits % 16 == 0)
        run_tiles<S, turn::Run::Vectors, kThreads>(p, tile->bytes, queue);
      else if (contiguous)
        run_tiles<S, turn::Run::Elements, kThreads>(p, tile->bytes, queue);
      else
        run_tiles<S, turn::Run::Strided, kThreads>(p, tile->bytes, queue);
    };
    if (tile->threads == 128)
      with_threads.template operator()<128>();
    else
      with_threads.template operator()<256>();
  });
}

Kernel<TransposeArgs> thin() {
  using namespace thin_file;
  return {"thin", "short rows taken together as one run", declines, transpose_pointer_bytes, run};
}

}  // namespace mblas::cuda::transpose
