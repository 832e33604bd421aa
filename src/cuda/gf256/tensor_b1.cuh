// A product over GF(2^8) as the binary tensor cores are given it.
#pragma once

#include <cuda.h>

#include "cuda/gf256/bit_products.hpp"
#include "cuda/gf256/gf256.cuh"

namespace mblas::cuda::gf256::b1 {

constexpr int kTileRows = 128, kTileCols = 256;  // of C, a block's
constexpr int kGranule = 32;                     // bytes of k of one wgmma, 256 bits
constexpr int kStages = 4, kStageDepth = 128;    // bytes of k a stage
constexpr int kStageBytes = (kTileRows + kTileCols) * kStageDepth;
constexpr std::size_t kShared = std::size_t(kStages) * kStageBytes + 2 * kStages * 8 + 1024;
static_assert(kShared <= 227 << 10);

/// Of the packed B, row column_place(j) has the bits of column j: so that a thread, which holds
/// columns 8 i + 2 (t % 4) and the one after it of 8 times 8 columns, holds 16 bytes of a row of C.
constexpr int kColumnGroup = 64;
__host__ __device__ constexpr int column_place(int j) {
  return j / kColumnGroup * kColumnGroup + j / 2 % 8 * 8 + j / 16 % 4 * 2 + j % 2;
}

struct Problem {
  CUtensorMap a, b;  ///< forms of the rows of A and of the columns of B, a matrix for each product
  DeviceOutput C;
  std::int64_t m, n, first_col;  ///< of C
  unsigned rows, cols;           ///< tiles; `rows` of clusters
  unsigned cluster;              ///< 1 or 2 tiles, one below the other
  int granules;                  ///< of k
  bool accumulate;
  std::uint32_t constant[kProducts];
};

void run_engine(const Problem& p, const CudaQueue& queue);

}  // namespace mblas::cuda::gf256::b1
