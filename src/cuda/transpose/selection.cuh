// Which kernel and tile transpose what: the tables, and the classes that their rows stand for. Each
// choice is the fastest of those measured on an H200; docs/BENCHMARKING.md has the figures.
#pragma once

#include "cuda/transpose/transpose.cuh"
#include "cuda/transpose/turn.cuh"

namespace mblas::cuda::transpose {

enum class Shape { Tiny, Thin, Plain };
enum class Alignment { Vectors, Elements, Bytes };  ///< what all rows of both sides start at
enum class Row { Tiny, Thin, Vector, Sheared, Ladder };

constexpr Row kRows[3][3] = {
    //            Vectors      Elements      Bytes
    /* Tiny  */ {Row::Tiny, Row::Tiny, Row::Ladder},
    /* Thin  */ {Row::Thin, Row::Thin, Row::Ladder},
    /* Plain */ {Row::Vector, Row::Sheared, Row::Ladder},
};

/// A batch of whole matrices within tiles: without gaps, and no larger than this.
constexpr std::int64_t kTinyBytes = 44 << 10;
/// Aligned ones fill the vector kernel's tiles where squares of so many bytes a side cover no more
/// than so many times the matrix.
constexpr std::int64_t kVectorBytes = 128;
constexpr double kMostCovered = 1.25;
/// Thin: the shorter side has at most so many elements and bytes, the other one many times more.
constexpr std::int64_t kThinElements = 128, kThinBytes = 512, kThinRatio = 8;

/// Whether a matrix gets the tiles for those, which a narrow one would not fill.
template <class Large, class Other>
bool is_large(std::int64_t m, std::int64_t n) {
  return m * n > kCachedBytes / Large::kSize && !turn::prefers_second<Large, Other>(m, n);
}

/// Tiles by size of element. Small: Vector for matrices that would fill little of the last of
/// those. LargeVector, LargeSheared: for matrices beyond the cache. Sum, ShearedSum: those of a
/// geam that adds. LargeScaled: LargeSheared of one that does not. Marks (hold.cuh) cost sheared
/// sums up to 7 % and scaled 16-bit elements 2.5 %.
template <int S>
struct TilesOf;
template <>
struct TilesOf<1> {
  using Vector = turn::VectorTile<1, 128, 256, 128>;
  using LargeVector = Vector;
  using Small = turn::VectorTile<1, 128, 128, 64>;
  using Sheared = turn::FetchedTile<1, 256, 8, 512, 3, 1, false>;
  using LargeSheared = turn::TaperedTile<1, 256, 16, 512, 2, 2>;
};
template <>
struct TilesOf<2> {
  using Vector = turn::VectorTile<2, 64, 128, 128>;
  using LargeVector = turn::VectorTile<2, 128, 128, 256>;
  using Sum = Vector;
  using Small = turn::VectorTile<2, 64, 64, 64>;
  using Sheared = turn::FetchedTile<2, 256, 16, 512, 3, 2, false>;
  using LargeSheared = turn::TaperedTile<2, 256, 32, 512, 2, 4>;
  using LargeScaled = turn::FetchedTile<2, 256, 32, 512, 2, 4, false>;
  using ShearedSum = turn::ShearedTile<2, 256, 64, 256, 16, 4, false>;
};
template <>
struct TilesOf<4> {
  using Vector = turn::VectorTile<4, 64, 64, 256, 32 << 10>;
  using LargeVector = Vector;
  using Sum = Vector;
  using Small = turn::VectorTile<4, 32, 32, 64>;
  using Sheared = turn::ShearedTile<4, 256, 64, 512, 4, 4, false>;
  using LargeSheared = turn::TaperedTile<4, 512, 32, 512, 2, 8>;
  using LargeScaled = LargeSheared;
  using ShearedSum = Sheared;
};
template <>
struct TilesOf<8> {
  using Vector = turn::VectorTile<8, 64, 32, 128, 32 << 10>;
  using LargeVector = Vector;
  using Sum = Vector;
  using Small = turn::VectorTile<8, 16, 16, 64>;
  using Sheared = turn::ShearedTile<8, 512, 64, 512, 8>;
  using LargeSheared = Sheared;
  using LargeScaled = LargeSheared;
  using ShearedSum = turn::ShearedTile<8, 512, 32, 256, 8, 0, false>;
};
template <>
struct TilesOf<16> {
  using Vector = turn::VectorTile<16, 32, 32, 512>;
  using LargeVector = Vector;
  using Sum = turn::VectorTile<16, 32, 32, 256>;
  using Small = turn::VectorTile<16, 16, 16, 64>;
  using Sheared = turn::ShearedTile<16, 512, 32, 256, 16>;
  using LargeSheared = Sheared;
  using LargeScaled = LargeSheared;
  using ShearedSum = turn::ShearedTile<16, 512, 32, 256, 16, 0, false>;
};

/// Bytes of a tile of the thin kernel and its threads, by elements of the shorter side.
struct ThinTile {
  int most_elements, bytes, threads;
};
constexpr ThinTile kThinTiles[] = {{48, 10 << 10, 128}, {int(kThinElements), 32 << 10, 256}};
/// Likewise of the tiny kernel, by bytes of a matrix.
struct TinyTile {
  std::int64_t most_bytes;
  int bytes, threads;
};
constexpr TinyTile kTinyTiles[] = {{16 << 10, 8 << 10, 128}, {kTinyBytes, 8 << 10, 256}};

/// Vectors have 16 bytes; elements of that size want whole sectors too.
constexpr bool fits_vectors(std::uintptr_t bits, int size) {
  return bits % (size == 16 ? 32 : 16) == 0;
}

inline Alignment alignment_of(std::uintptr_t bits, int size) {
  if (fits_vectors(bits, size)) return Alignment::Vectors;
  return bits % std::uintptr_t(size) == 0 ? Alignment::Elements : Alignment::Bytes;
}

inline Shape shape_of(const TransposeProblem& p, int size, Alignment alignment) {
  const std::int64_t least = std::min(p.m, p.n), most = std::max(p.m, p.n);
  const std::int64_t matrix = p.m * p.n * size;
  const bool packed = p.batch > 1 && !p.A.pointers && !p.B.pointers && p.lda == p.n &&
                      p.ldb == p.m && p.A.stride == matrix && p.B.stride == matrix;
  const std::int64_t step = kVectorBytes / size;
  const double covered = double(ceil_div(p.m, step) * step) * double(ceil_div(p.n, step) * step);
  const bool fills_vectors =
      alignment == Alignment::Vectors && covered <= kMostCovered * double(p.m) * double(p.n);
  if (packed && matrix <= kTinyBytes && !fills_vectors) return Shape::Tiny;
  if (least <= kThinElements && least * size <= kThinBytes && most >= kThinRatio * least &&
      !fills_vectors)
    return Shape::Thin;
  return Shape::Plain;
}

inline Row chosen(const TransposeProblem& p, int size, std::uintptr_t bits) {
  const Alignment alignment = alignment_of(bits, size);
  return kRows[int(shape_of(p, size, alignment))][int(alignment)];
}

/// The same before pointers are on the device.
inline Row chosen(const TransposeArgs& args) {
  const int size = size_of(args.type);
  TransposeProblem p = {args.m, args.n, args.A.ld, args.B.ld, args.batch, {}, {}};
  p.A.stride = args.A.stride * size;
  p.B.stride = args.B.stride * size;
  // Only whether there are any matters.
  p.A.pointers = args.A.pointers;
  p.B.pointers = args.B.pointers;
  return chosen(p, size,
                access_bits(args.A, args.batch, size) | access_bits(args.B, args.batch, size));
}

/// A problem whose elements have S bytes, for the kernels of turn.cuh.
template <int S>
struct Moves : TransposeProblem {
  std::int64_t pitch() const { return lda * S; }
  std::int64_t bytes() const { return m * n * S; }
  template <class Mark>
  __device__ turn::Source<S, Mark> source(std::int64_t b, Mark mark) const {
    return {static_cast<const turn::Raw<S>*>(A.at(b)), lda, mark};
  }
  __device__ turn::Sink<S> sink(std::int64_t b) const {
    return {static_cast<turn::Raw<S>*>(B.at(b)), ldb};
  }
};

void run_tiny(const TransposeProblem& p, int size, const CudaQueue& queue);
void run_thin(const TransposeProblem& p, int size, std::uintptr_t bits, const CudaQueue& queue);
void run_vector(const TransposeProblem& p, int size, const CudaQueue& queue);
void run_sheared(const TransposeProblem& p, int size, const CudaQueue& queue);

}  // namespace mblas::cuda::transpose
