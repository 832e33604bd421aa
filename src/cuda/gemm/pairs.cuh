// How threads lie on a tile of which each has some rows and columns.
#pragma once

namespace mblas::cuda {

/// Rows of `across` threads, two at a time: neighbours lie beneath each other. Shared memory serves
/// eight lanes a cycle that read 16 bytes, and sixteen where each two neighbours of a half warp
/// read the same, or each two that are two apart (a warp of an H100 takes 4.0 and 2.1 cycles). Row
/// by row the operand of a thread's columns has that never; so either operand has it.
namespace pairs {

__device__ constexpr int row(int thread, int across) {
  const unsigned at = unsigned(thread);
  return int(at / 2 / unsigned(across) * 2 + at % 2);
}
__device__ constexpr int col(int thread, int across) {
  return int(unsigned(thread) / 2 % unsigned(across));
}
/// The thread at `place`, counted row by row.
__device__ constexpr int thread_at(int place, int across) {
  const int row = place / across, col = place % across;
  return (row / 2 * across + col) * 2 + row % 2;
}

}  // namespace pairs
}  // namespace mblas::cuda
