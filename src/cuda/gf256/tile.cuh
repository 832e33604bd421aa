// What the rungs with tiles share: the generalised tiling of the document that this ladder is from.
// A tile of C has rows() × cols() words, one for each thread of a block; for it a tile of A, rows()
// × depth() bytes, and one of B, depth() × cols() words, are staged in shared memory again and
// again along k. The arithmetic is the document's too: two logarithms and a power from tables, and
// that for each byte, whatever a word holds. It is what limits all of them.
#pragma once

#include <string>

#include "core/config_list.hpp"
#include "core/gf256_field.hpp"
#include "cuda/gf256/gf256.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gf256 {

/// The sizes of a tile that the compiler knows, and those that it does not: the document's
/// tileWidthRow, tileWidthCol and tileDepth.
template <int kRows, int kCols, int kDepth>
struct FixedTile {
  static constexpr int rows() { return kRows; }
  static constexpr int cols() { return kCols; }
  static constexpr int depth() { return kDepth; }
};
struct AnyTile {
  int width_row, width_col, tile_depth;

  __host__ __device__ int rows() const { return width_row; }
  __host__ __device__ int cols() const { return width_col; }
  __host__ __device__ int depth() const { return tile_depth; }
};

/// Logarithms and powers of an element whose powers are all elements but 0.
struct Logarithms {
  std::uint8_t power[2 * 255], logarithm[256];

  /// By all threads of a block; none may be used before the next barrier.
  __device__ void fill(unsigned generator, unsigned poly) {
    const int thread = int(threadIdx.y * blockDim.x + threadIdx.x);
    for (int x = thread; x < 255; x += int(blockDim.x * blockDim.y)) {
      unsigned y = 1, square = generator;
      for (int e = x; e; e >>= 1, square = multiply(square, square, poly))
        if (e & 1) y = multiply(y, square, poly);
      power[x] = power[x + 255] = std::uint8_t(y);
      logarithm[y] = std::uint8_t(x);
    }
  }
  __device__ unsigned product(unsigned a, unsigned b) const {
    return a && b ? power[logarithm[a] + logarithm[b]] : 0;
  }
};

/// Bytes of shared memory: the tile of B, that of A, the tables.
template <class Word, class Tile>
constexpr std::size_t tile_bytes(const Tile& t) {
  return std::size_t(t.depth()) * std::size_t(t.cols()) * sizeof(Word) +
         std::size_t(t.depth()) * std::size_t(t.rows()) + sizeof(Logarithms);
}

template <class Word, class Tile>
__global__ void tile_kernel(const __grid_constant__ Gf256Problem p, const Tile tile,
                            unsigned generator) {
  extern __shared__ uint4 staged[];
  Word* const tile_b = reinterpret_cast<Word*>(staged);
  auto* const tile_a = reinterpret_cast<std::uint8_t*>(tile_b + tile.depth() * tile.cols());
  auto& field = *reinterpret_cast<Logarithms*>(tile_a + tile.depth() * tile.rows());

  const int x = int(threadIdx.x), y = int(threadIdx.y);
  const std::int64_t words = p.n / int(sizeof(Word));
  field.fill(generator, p.poly);
  for (std::int64_t t = blockIdx.x; t < p.tiles.count(); t += gridDim.x) {
    const auto place = p.tiles[t];
    const std::int64_t i = place.row * tile.rows() + y, j = place.col * tile.cols() + x;
    Word sum = 0;
    for (std::int64_t l0 = 0; l0 < p.k; l0 += tile.depth()) {
      for (int l = x; l < tile.depth(); l += tile.cols())
        tile_a[y * tile.depth() + l] = i < p.m && l0 + l < p.k ? p.row_a(i)[l0 + l] : 0;
      for (int l = y; l < tile.depth(); l += tile.rows())
        tile_b[l * tile.cols() + x] =
            j < words && l0 + l < p.k ? reinterpret_cast<const Word*>(p.row_b(l0 + l))[j] : 0;
      __syncthreads();
      for (int l = 0; l < tile.depth(); ++l) {
        const unsigned a = tile_a[y * tile.depth() + l];
        const Word b = tile_b[l * tile.cols() + x];
        Word products = 0;
#pragma unroll
        for (int byte = 0; byte < int(sizeof(Word)); ++byte)
          products |= Word(Word(field.product(a, unsigned(b >> 8 * byte & 0xFF))) << 8 * byte);
        sum ^= products;
      }
      __syncthreads();
    }
    if (i < p.m && j < words) {
      Word* const c = reinterpret_cast<Word*>(p.row_c(i)) + j;
      *c = p.accumulate ? Word(*c ^ sum) : sum;
    }
  }
}

/// An element whose powers are all but 0: of order 255, and so of none that divides it.
inline unsigned generator_of(unsigned poly) {
  const auto power = [&](std::uint8_t x, int e) {
    std::uint8_t y = 1;
    for (; e > 0; --e) y = mblas::gf256::detail::gf_multiply(y, x, poly);
    return y;
  };
  unsigned g = 2;
  while (power(std::uint8_t(g), 85) == 1 || power(std::uint8_t(g), 51) == 1 ||
         power(std::uint8_t(g), 15) == 1)
    ++g;
  return g;
}

template <class Word, class Tile>
void run_tile(const Gf256Args& args, const CudaQueue& queue, const Tile& tile) {
  const Gf256Problem problem =
      gf256_problem(args, queue, tile.rows(), tile.cols() * int(sizeof(Word)));
  const std::int64_t blocks =
      std::min<std::int64_t>(problem.tiles.count(), std::numeric_limits<int>::max());
  launch_grid(queue, tile_kernel<Word, Tile>, dim3(unsigned(blocks)),
              dim3(unsigned(tile.cols()), unsigned(tile.rows())), tile_bytes<Word>(tile), problem,
              tile, generator_of(args.poly));
}

template <class Tile>
void run_fixed(const Gf256Args& args, Queue& queue) {
  run_tile<std::uint8_t>(args, static_cast<const CudaQueue&>(queue), Tile());
}

/// The rung of the tiles Tile, all known to the compiler.
template <class Tile>
Kernel<Gf256Args> fixed_tile(std::string_view name, std::string_view note) {
  return {name, note, declines_nothing, gf256_pointer_bytes, run_fixed<Tile>};
}

/// The tiles that mblas tune tries: "4x64_depth16" has 4 rows and 64 words, 16 along k.
template <class Word>
const ConfigList<AnyTile>& tile_configs() {
  static const auto list = [] {
    constexpr std::size_t kMostBytes = 48 << 10;  // of shared memory that needs no asking for
    ConfigList<AnyTile> all;
    for (const int rows : {1, 2, 4, 8}) {
      for (const int cols : {32, 64, 128, 256}) {
        for (const int depth : {4, 16, 64}) {
          const AnyTile tile{rows, cols, depth};
          if (rows * cols < 64 || rows * cols > 1024 || tile_bytes<Word>(tile) > kMostBytes)
            continue;
          all.add(tile, std::to_string(rows) + "x" + std::to_string(cols) + "_depth" +
                            std::to_string(depth));
        }
      }
    }
    return all;
  }();
  return list;
}

/// Do all `rows` rows of x begin at multiples of `size` bytes?
template <class Void>
bool rows_aligned(const Operand<Void>& x, std::int64_t rows, int size) {
  const auto aligned = [&](const void* row) {
    return reinterpret_cast<std::uintptr_t>(row) % std::uintptr_t(size) == 0;
  };
  if (x.pointers) return std::all_of(x.pointers, x.pointers + rows, aligned);
  return rows == 0 || (aligned(x.data) && (rows == 1 || x.ld % size == 0));
}

template <class Word>
const char* declines_words(const Gf256Args& args, const DeviceInfo&) {
  constexpr int kSize = int(sizeof(Word));
  if (args.n % kSize || !rows_aligned(args.B, args.k, kSize) ||
      !rows_aligned(args.C, args.m, kSize))
    return "rows do not begin and end with words";
  return nullptr;
}

template <class Word>
void run_words(const Gf256Args& args, Queue& queue) {
  const AnyTile tile = args.config >= 0 ? tile_configs<Word>()[args.config] : AnyTile{4, 64, 16};
  run_tile<Word>(args, static_cast<const CudaQueue&>(queue), tile);
}

/// The rung of run-time tiles whose words are Word.
template <class Word>
Kernel<Gf256Args> any_tile(std::string_view name, std::string_view note) {
  return {name,
          note,
          declines_words<Word>,
          gf256_pointer_bytes,
          run_words<Word>,
          nullptr,
          tile_configs<Word>().names()};
}

}  // namespace mblas::cuda::gf256
