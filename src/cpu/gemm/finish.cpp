// C = scale activation(alpha S + beta C + bias): what a row of gemm that does not fuse a call's
// epilogue leaves to do, and what one that does calls for blocks that are still in a cache
// (finish_isa.cpp computes them). As a pass it is limited by memory.
#include <algorithm>

#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/parallel.hpp"
#include "mblas/accuracy.hpp"

namespace mblas::cpu {
namespace {

constexpr double kGrain = 1 << 16;  // elements that are worth a thread

void finish(const FinishRows& rows, DType in, DType out) {
  for (const FinishKernel& kernel : isa().finish)
    if (kernel.in == in && kernel.out == out) return kernel.run(rows);
}

/// The bias from number `first` on.
Epilogue from(Epilogue e, DType type, std::int64_t first) {
  if (e.bias.per != BiasPer::None)
    e.bias.data = static_cast<const std::byte*>(e.bias.data) + first * size_of(type);
  return e;
}

/// A part of C.
struct Block {
  std::int64_t i, j, rows, cols;
};
/// S null: C itself.
void finish_block(const GemmArgs& args, DType in, const void* S, std::int64_t lds, Scalar alpha,
                  Scalar beta, std::int64_t batch, const Block& b) {
  const int size = size_of(args.out);
  std::byte* const C =
      static_cast<std::byte*>(args.C.at(batch, size)) + (b.i * args.C.ld + b.j) * size;
  const bool per_row = args.epilogue.bias.per == BiasPer::Row;
  finish({S ? S : C, S ? lds : args.C.ld, C, args.C.ld, b.rows, b.cols, alpha, beta,
          from(args.epilogue, args.out, per_row ? b.i : b.j)},
         in, args.out);
}

}  // namespace

void gemm_finish(const FinishArgs& args, Queue& queue) {
  const std::int64_t rows = args.batch * args.m;
  const int in = size_of(args.in), out = size_of(args.out);
  const int threads =
      threads_for(double(rows) * double(args.n), kGrain, queue.device().num_threads);
  parallel(threads, [&](int thread, int granted) {
    const Range mine = share_of(rows, thread, granted);
    for (std::int64_t row = mine.begin; row < mine.end;) {
      const std::int64_t batch = row / args.m, i = row % args.m;
      const std::int64_t count = std::min(mine.end - row, args.m - i);
      const bool per_row = args.epilogue.bias.per == BiasPer::Row;
      finish({static_cast<const std::byte*>(args.S.at(batch, in)) + i * args.S.ld * in, args.S.ld,
              static_cast<std::byte*>(args.C.at(batch, out)) + i * args.C.ld * out, args.C.ld,
              count, args.n, args.alpha, args.beta, from(args.epilogue, args.out, per_row ? i : 0)},
             args.in, args.out);
      row += count;
    }
  });
}

void gemm_finish_block(const GemmArgs& args, DType in, const void* S, std::int64_t lds,
                       std::int64_t batch, std::int64_t i, std::int64_t j, std::int64_t rows,
                       std::int64_t cols) {
  finish_block(args, in, S, lds, args.in == DType::i8 ? args.alpha : Scalar{1, 0},
               S ? args.beta : Scalar{}, batch, {i, j, rows, cols});
}

void gemm_finish_sums(const GemmArgs& args, const void* S, std::int64_t lds, std::int64_t batch,
                      std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t cols) {
  finish_block(args, accumulator_of(args.in), S, lds, args.alpha, args.beta, batch,
               {i, j, rows, cols});
}

}  // namespace mblas::cpu
