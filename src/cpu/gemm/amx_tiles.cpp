// The product of packed panels on AMX tiles.
//
// Limited by the tile multiplier, one product of 16x16x64 bytes every 16 cycles, while a tile takes
// 10 cycles to load from the first-level cache and 22 from the second. So: 2x2 tiles of sums take
// four products for four loads; packed tiles are 1 KiB in a row, in the order of use; the depth is
// cut so that a panel of one operand stays in the first-level cache, and the tiles of the other are
// loaded past it. Through it, they pushed out the first: on an Emerald Rapids Xeon the loop went
// from 59 to 72% of the multiplier's peak at a depth of 256, and from 54 to 75% at 512, where
// prefetching them, or the lines of C, made it slower.
// The four tiles of a step are loaded first and multiplied then: that is 12% faster than products
// as soon as their operands are there where another thread of the core uses the multiplier too, or
// the depth is 512, and as fast elsewhere.
// Finished sums go through a buffer and are scaled, converted and written while the next products
// are under way, a few rows a step; storing them costs 14% at a depth of 256. Tiles of planes are
// used several times once loaded, so that more planes need fewer loads a product.
//
// The instruction adds the 32 products of a step in two chains of fused operations, then the two
// to each other and to the sum: at most 17 roundings for the first and one for each further step
// on the way of a product. Planes are added smallest first. Subnormal numbers count as zero and
// become zero: dot.cpp keeps operands away that would make some.
#include <utility>

#include "cpu/gemm/amx.hpp"
#include "cpu/gemm/dot_panels.hpp"

namespace mblas::cpu::amx {
namespace {

// Either to stay in the first-level cache or past it, so that others stay.
#define MBLAS_TILE_LOAD_TO(stay, t, p)                                                 \
  do {                                                                                 \
    if constexpr (stay)                                                                \
      MBLAS_TILE_LOAD(t, p, kRow);                                                     \
    else                                                                               \
      asm volatile("tileloaddt1 (%0,%1,1), %%tmm" #t ::"r"(p), "r"(std::int64_t(kRow)) \
                   : "memory");                                                        \
  } while (false)
/// Sums in tiles 0 … 3 (row by row of tiles), A in 4 and 5, B in 6 and 7.
template <int Rows, int Cols>
MBLAS_INLINE void load_sums(const std::byte* sums) {
  if (!sums) {
    MBLAS_TILE_ZERO(0);
    if constexpr (Cols == 2) MBLAS_TILE_ZERO(1);
    if constexpr (Rows == 2) MBLAS_TILE_ZERO(2);
    if constexpr (Rows == 2 && Cols == 2) MBLAS_TILE_ZERO(3);
  } else {
    MBLAS_TILE_LOAD(0, sums, kRow);
    if constexpr (Cols == 2) MBLAS_TILE_LOAD(1, sums + kTile, kRow);
    if constexpr (Rows == 2) MBLAS_TILE_LOAD(2, sums + 2 * kTile, kRow);
    if constexpr (Rows == 2 && Cols == 2) MBLAS_TILE_LOAD(3, sums + 3 * kTile, kRow);
  }
}
template <int Rows, int Cols>
MBLAS_INLINE void store_sums(std::byte* sums) {
  MBLAS_TILE_STORE(0, sums, kRow);
  if constexpr (Cols == 2) MBLAS_TILE_STORE(1, sums + kTile, kRow);
  if constexpr (Rows == 2) MBLAS_TILE_STORE(2, sums + 2 * kTile, kRow);
  if constexpr (Rows == 2 && Cols == 2) MBLAS_TILE_STORE(3, sums + 3 * kTile, kRow);
}

template <int Rows>
MBLAS_INLINE void load_a(const std::byte* a) {
  MBLAS_TILE_LOAD_TO(false, 4, a);
  if constexpr (Rows == 2) MBLAS_TILE_LOAD_TO(false, 5, a + kTile);
}
template <int Cols>
MBLAS_INLINE void load_b(const std::byte* b) {
  MBLAS_TILE_LOAD(6, b, kRow);
  if constexpr (Cols == 2) MBLAS_TILE_LOAD(7, b + kTile, kRow);
}
template <bool Integers, int Rows, int Cols>
MBLAS_INLINE void products() {
  MBLAS_TILE_PRODUCT(0, 4, 6);
  if constexpr (Cols == 2) MBLAS_TILE_PRODUCT(1, 4, 7);
  if constexpr (Rows == 2) MBLAS_TILE_PRODUCT(2, 5, 6);
  if constexpr (Rows == 2 && Cols == 2) MBLAS_TILE_PRODUCT(3, 5, 7);
}

/// Adds `steps` steps of a pair of panels to the sums. All tiles of a step are loaded before they
/// are multiplied. Products of planes come smallest first, in an order that changes one operand at
/// a time.
template <int Planes, bool Integers, bool KeepA, int Rows, int Cols>
MBLAS_INLINE void add_steps(const std::byte* a, const std::byte* b, std::int64_t steps) {
  constexpr int kStep = Planes * kDotPlaneStep;
  for (std::int64_t s = 0; s < steps; ++s) {
    const auto plane_a = [&](int p) __attribute__((always_inline)) {
      load_a<Rows>(a + p * kDotPlaneStep);
    };
    const auto plane_b = [&](int p) __attribute__((always_inline)) {
      load_b<Cols>(b + p * kDotPlaneStep);
    };
    const auto multiply = [&]() __attribute__((always_inline)) {
      products<Integers, Rows, Cols>();
    };
    if constexpr (Planes == 1) {
      MBLAS_TILE_LOAD_TO(KeepA, 4, a);
      MBLAS_TILE_LOAD_TO(!KeepA, 6, b);
      if constexpr (Rows == 2) MBLAS_TILE_LOAD_TO(KeepA, 5, a + kTile);
      if constexpr (Cols == 2) MBLAS_TILE_LOAD_TO(!KeepA, 7, b + kTile);
      multiply();
    } else if constexpr (Planes == 2) {
      plane_a(1), plane_b(0), multiply();
      plane_b(1), multiply();
      plane_a(0), multiply();
      plane_b(0), multiply();
    } else {
      plane_a(2), plane_b(0), multiply();
      plane_a(1), multiply();
      plane_b(1), multiply();
      plane_a(0), multiply();
      plane_b(2), multiply();
      plane_b(0), multiply();
    }
    a += kStep;
    b += kStep;
  }
}

/// Multiplies the pairs of panels of a block. The sums of a finished pair wait in the buffer and go
/// to C row by row while the tiles of the next pair are multiplied.
template <class T, class Out, bool KeepA>
class Multiplier {
 public:
  using Element = typename Out::Element;

  explicit Multiplier(const DotBlock& block) : x_(block) {}

  void run() {
    for_each_pair<Element>(
        x_, kStep, [&] { fetches_ = x_.fetch_b; },
        [&](const Pair& pair) {
          if (pair.rows > 16)
            pair.cols > 16 ? multiply<2, 2>(pair) : multiply<2, 1>(pair);
          else
            pair.cols > 16 ? multiply<1, 2>(pair) : multiply<1, 1>(pair);
        });
    write_waiting();
  }

 private:
  using Pair = DotPair<Element>;
  static constexpr bool kIntegers = Out::kInteger;
  static constexpr std::int64_t kStep = T::kPlanes * kDotPlaneStep;

  /// A part of C that waits for its sums.
  struct Waiting {
    Element* C;
    std::int64_t rows, cols;
  };

  /// Steps before the sums of the pair before are read, which are still on their way to the buffer.
  static constexpr std::int64_t kPause = 2;

  /// What is ahead of some steps of B goes to the second-level cache.
  static MBLAS_INLINE void fetch(const std::byte* b, std::int64_t steps) {
    for (std::int64_t at = 0; at < steps * kStep; at += kRow)
      _mm_prefetch(b + kAhead * kStep + at, _MM_HINT_T1);
  }

  /// The next rows of the part of C that waits.
  MBLAS_INLINE void write_some() {
    if (written_ >= waiting_.rows) return;
    const std::int64_t i = written_;
    write_back<Out>(x_.buffer + row_of_sums(i), waiting_.C + i * x_.ldc, x_.ldc,
                    smaller(kRowsAtOnce, waiting_.rows - i), waiting_.cols, x_.alpha, x_.beta);
    written_ = i + kRowsAtOnce;
  }
  void write_waiting() {
    while (written_ < waiting_.rows) write_some();
  }

  template <int TileRows, int TileCols>
  void multiply(const Pair& pair) {
    load_sums<TileRows, TileCols>(pair.from);
    const std::byte *a = pair.a, *b = pair.b;
    const std::int64_t pause = smaller(kPause, pair.steps);
    const bool fetches = std::exchange(fetches_, false);
    if (fetches) fetch(b, pause);
    add_steps<T::kPlanes, kIntegers, KeepA, TileRows, TileCols>(a, b, pause);
    for (std::int64_t s = pause; s < pair.steps; ++s) {
      write_some();
      if (fetches) fetch(b + s * kStep, 1);
      add_steps<T::kPlanes, kIntegers, KeepA, TileRows, TileCols>(a + s * kStep, b + s * kStep, 1);
    }
    if (pair.to) {
      store_sums<TileRows, TileCols>(pair.to);
    } else if (sizeof(Element) == 4 && x_.alpha == 1 && x_.beta == 0 &&
               pair.rows == 16 * TileRows && pair.cols == 16 * TileCols) {
      Element* const C = pair.C;
      const std::int64_t pitch = x_.ldc * std::int64_t(sizeof(Element));
      MBLAS_TILE_STORE(0, C, pitch);
      if constexpr (TileCols == 2) MBLAS_TILE_STORE(1, C + 16, pitch);
      if constexpr (TileRows == 2) MBLAS_TILE_STORE(2, C + 16 * x_.ldc, pitch);
      if constexpr (TileRows == 2 && TileCols == 2)
        MBLAS_TILE_STORE(3, C + 16 * x_.ldc + 16, pitch);
    } else {
      write_waiting();
      store_sums<TileRows, TileCols>(x_.buffer);
      waiting_ = {pair.C, pair.rows, pair.cols};
      written_ = 0;
    }
  }

  const DotBlock& x_;
  Waiting waiting_{};
  std::int64_t written_ = 0;  // of its rows
  bool fetches_ = false;      // the first pair of a panel of B, also of what is ahead
};

template <class T, class Out>
void multiply(const DotBlock& x) {
  if constexpr (T::kPlanes == 1)
    if (x.keep_a) return Multiplier<T, Out, true>(x).run();
  Multiplier<T, Out, false>(x).run();
}

void begin() { configure(16); }
void end() { release(); }

// A panel of bfloat16, so deep, stays in the first-level cache.
constexpr int kStrip = 8, kMostSteps = 16;

template <class T, class Out>
constexpr DotKernel row(DType in, DType out) {
  return {in,
          out,
          T::kPlanes,
          T::kStep,
          kStrip,
          kMostSteps,
          pack<T, false>,
          pack<T, true>,
          multiply<T, Out>,
          begin,
          end};
}

}  // namespace

constinit const DotKernel gemm_kernels[6] = {
    row<Bf16, ToBf16>(DType::bf16, DType::bf16), row<Bf16, ToF32>(DType::bf16, DType::f32),
    row<F16, ToF16>(DType::f16, DType::f16),     row<F16, ToF32>(DType::f16, DType::f32),
    row<F32, ToF32>(DType::f32, DType::f32),     row<Int8, ToI32>(DType::i8, DType::i32),
};

}  // namespace mblas::cpu::amx
