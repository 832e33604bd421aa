// Up to 16 vectors of bytes or bfloat16 times a matrix along its rows, as thin_isa.cpp has it, on
// AMX tiles: 16 rows of the matrix are the first operand of an instruction as they lie, so that 16
// vectors are limited by reading it. The sums come out transposed.
//
// On an Emerald Rapids Xeon, 4096x4096, one thread: bfloat16 2.8 ms with 8 vectors and 3.5 with 16
// (by registers 3.5 and 6.0, packed 4.2), int8 1.5 ms with either (1.7 and 2.3; 1.8). Rows that
// went to a tile through a buffer took 3.7 ms and 2.0; what is ahead, fetched to the second level
// and not the first, as much. Across rows, interleaved through a buffer, tiles gained nothing with
// 8 vectors, and with 16 no more than packing.
#include "cpu/gemm/amx.hpp"
#include "cpu/gemm/thin_lines.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

constexpr int kHeight = 16, kVectors = 16;  // of a tile

struct Bytes : ByteLines {
  using Sum = std::uint32_t;
  static constexpr bool kIntegers = true;
  static constexpr int kLeast = 7;
  static MBLAS_INLINE __m512i first(const Element* p, std::int64_t count) {
    return _mm512_maskz_loadu_epi8(~__mmask64(0) >> (64 - count), p);
  }
};
struct Bf16 : Bf16Lines {
  using Sum = float;
  static constexpr bool kIntegers = false;
  static constexpr int kLeast = 5;
  static MBLAS_INLINE __m512i first(const Element* p, std::int64_t count) {
    return _mm512_maskz_loadu_epi16(~__mmask32(0) >> (32 - count), p);
  }
};

/// A tile's rows and what is read of them.
template <class T>
struct Tile {
  const ThinPart& g;
  const typename T::Element* M;
  int rows;
  Ahead<false> after;
  alignas(kLine) std::byte lines[kHeight][kLine] = {};  // where not all of them are there

  Tile(const ThinPart& part, const typename T::Element* at, int count)
      : g(part), M(at), rows(count), after(ahead<false>(g.cols * kSize, rows * g.ld * kSize)) {}

  static constexpr std::int64_t kSize = sizeof(typename T::Element);

  bool is_whole(std::int64_t p) const { return rows == kHeight && p + kWidth<T> <= g.cols; }

  /// From p on: sees the elements and fetches what is ahead.
  MBLAS_INLINE void see(std::int64_t p, typename T::Watch& watch) const {
    const std::int64_t further = after(p * kSize);
#pragma GCC unroll 16
    for (int i = 0; i < kHeight; ++i) {
      const auto* const line = M + i * g.ld + p;
      fetch<false>(line, further);
      if constexpr (T::kLimited) watch.note(_mm512_loadu_si512(line));
    }
  }
  /// The same, and copies what is there, between zeros.
  void copy(std::int64_t p, typename T::Watch& watch) {
    for (int i = 0; i < rows; ++i) {
      const __m512i line = T::first(M + i * g.ld + p, smaller(g.cols - p, kWidth<T>));
      watch.note(line);
      _mm512_store_si512(lines[i], line);
    }
  }
};

/// Up to 16 rows from M on times all vectors: sums at y.
template <class T>
void dot_rows(const ThinPart& g, const typename T::Element* M, int rows, typename T::Sum* y,
              typename T::Watch& watch) {
  constexpr bool Integers = T::kIntegers;
  Tile<T> tile(g, M, rows);
  typename T::Watch seen = watch;
  MBLAS_TILE_ZERO(0);
  MBLAS_TILE_ZERO(1);
  MBLAS_TILE_ZERO(2);
  MBLAS_TILE_ZERO(3);
#define MBLAS_TILE_STEP(c, a, b, p)                                                            \
  do {                                                                                         \
    if (tile.is_whole(p)) {                                                                    \
      tile.see(p, seen);                                                                       \
      MBLAS_TILE_LOAD(a, M + (p), g.ld * tile.kSize);                                          \
    } else {                                                                                   \
      tile.copy(p, seen);                                                                      \
      MBLAS_TILE_LOAD(a, tile.lines, kLine);                                                   \
    }                                                                                          \
    MBLAS_TILE_LOAD(b, static_cast<const std::byte*>(g.x) + (p)*kVectors * tile.kSize, kLine); \
    MBLAS_TILE_PRODUCT(c, a, b);                                                               \
  } while (false)
  // Four sums: one product waits for the one before it three times as long as it takes.
  std::int64_t p = 0;
  for (; p + 3 * kWidth<T> < g.cols; p += 4 * kWidth<T>) {
    MBLAS_TILE_STEP(0, 4, 6, p);
    MBLAS_TILE_STEP(1, 5, 7, p + kWidth<T>);
    MBLAS_TILE_STEP(2, 4, 6, p + 2 * kWidth<T>);
    MBLAS_TILE_STEP(3, 5, 7, p + 3 * kWidth<T>);
  }
  for (; p < g.cols; p += kWidth<T>) MBLAS_TILE_STEP(0, 4, 6, p);
#undef MBLAS_TILE_STEP
  watch = seen;
  alignas(kLine) typename T::Sum sums[4][kHeight][kVectors];
  MBLAS_TILE_STORE(0, sums[0], kLine);
  MBLAS_TILE_STORE(1, sums[1], kLine);
  MBLAS_TILE_STORE(2, sums[2], kLine);
  MBLAS_TILE_STORE(3, sums[3], kLine);
  for (int r = 0; r < g.vectors; ++r)
    for (int i = 0; i < rows; ++i)
      y[r * g.y_ld + i] = (sums[0][i][r] + sums[1][i][r]) + (sums[2][i][r] + sums[3][i][r]);
}

template <class T>
void dot(const ThinPart& g) {
  const auto* const M = static_cast<const typename T::Element*>(g.M);
  auto* const y = static_cast<typename T::Sum*>(g.y);
  configure(kHeight);
  for (std::int64_t i = 0; i < g.rows;) {
    typename T::Watch watch;
    bool* const beyond = T::kLimited ? g.beyond + i / kThinPart : nullptr;
    for (const std::int64_t end = smaller(i + kThinPart, g.rows); i < end; i += kHeight)
      dot_rows<T>(g, M + i * g.ld, int(smaller(kHeight, end - i)), y + i, watch);
    if (watch.beyond(g.limits)) *beyond = true;
  }
  release();
}

/// Tiles of a line of 16 vectors, the elements of four bytes of all of them after one another.
template <class T>
DotRange pack(const ThinVectors& v) {
  using Element = typename T::Element;
  constexpr int width = kWidth<T>, depth = kDepth<T>;
  const auto* const from = static_cast<const Element*>(v.from);
  auto* const to = static_cast<Element*>(v.to);
  const std::int64_t k = round_up(v.k, width);
  DotRange range;
  for (int r = 0; r < kVectors; ++r)
    for (std::int64_t p = 0; p < k; ++p) {
      const Element x = r < v.vectors && p < v.k ? from[r * v.vector + p * v.depth] : Element(0);
      T::note(range, x);
      to[(p / depth * kVectors + r) * depth + p % depth] = x;
    }
  return range;
}

template <class T>
constexpr ThinKernels row(DType in) {
  return {.in = in,
          .step = kWidth<T>,
          .x_size = sizeof(typename T::Element),
          .pack = pack<T>,
          .dot = dot<T>,
          .add = nullptr,
          .limited = T::kLimited,
          .group = kVectors,
          .least = T::kLeast};
}

}  // namespace

constinit const ThinKernels thin_kernels[2] = {row<Bytes>(DType::i8), row<Bf16>(DType::bf16)};

}  // namespace mblas::cpu::MBLAS_ISA
