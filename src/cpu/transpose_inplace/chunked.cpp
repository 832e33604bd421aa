// Rectangular matrices without padding whose sizes have a common divisor p, past what can be
// buffered. First each of the p×p squares that they consist of is transposed in place; then row i
// of square (K, b) has to move as a whole, p elements at a time, from [K][i][b] to [b][i][K]. Each
// pass reads and writes every element once, near copy speed where p elements are a kilobyte or
// more.
//
// The second pass is a permutation of chunks. Its cycles are written down one after the other, and
// each thread moves the chunks of an equal part of that list; a cycle that two threads share is cut
// by setting the first chunk of either part aside.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"
#include "cpu/transpose_inplace/square.hpp"

namespace mblas::cpu {
namespace {

/// Bytes of a chunk.
constexpr std::int64_t kLeast = 256, kMost = 8192;

/// The largest common divisor of m and n whose chunks are at most kMost.
std::int64_t chunk_length(const TransposeInplaceArgs& args) {
  const std::int64_t common = std::gcd(args.m, args.n), most = kMost / size_of(args.type);
  if (common <= most) return common;
  std::int64_t best = 1;
  for (std::int64_t d = 1; d <= most; ++d)
    if (common % d == 0) best = d;
  return best;
}

/// Chunks [K][i][b], K < k, i < p, b < q, that move to [b][i][K].
struct Permutation {
  std::int64_t k, p, q;

  std::int64_t count() const { return k * p * q; }
  std::int64_t next(std::int64_t position) const {
    const std::int64_t b = position % q, row = position / q;
    return (b * p + row % p) * k + row / p;
  }
};

/// The cycles of a permutation one after the other, in the workspace.
struct Cycles {
  std::int64_t* positions;
  std::uint64_t* marks;  ///< one bit a chunk: written down; then: the last one of its cycle
  std::int64_t count;    ///< of positions; fixed points have none

  bool marked(std::int64_t i) const { return marks[i / 64] >> (i % 64) & 1; }
  void mark(std::int64_t i) const { marks[i / 64] |= std::uint64_t{1} << (i % 64); }
};

std::int64_t words_of(std::int64_t chunks) { return divide_up(chunks, 64); }

Cycles find_cycles(const Permutation& permutation, std::byte* workspace) {
  const std::int64_t chunks = permutation.count();
  auto* positions = reinterpret_cast<std::int64_t*>(workspace);
  auto* marks = reinterpret_cast<std::uint64_t*>(positions + chunks);
  std::uint64_t* ends = marks + words_of(chunks);
  std::fill_n(marks, 2 * words_of(chunks), 0);
  const Cycles seen{positions, marks, 0};
  Cycles cycles{positions, ends, 0};
  for (std::int64_t start = 0; start < chunks; ++start) {
    if (seen.marked(start) || permutation.next(start) == start) continue;
    std::int64_t at = start;
    do {
      seen.mark(at);
      positions[cycles.count++] = at;
      at = permutation.next(at);
    } while (at != start);
    cycles.mark(cycles.count - 1);
  }
  return cycles;
}

/// Moves the chunks of a part of the list of cycles.
class Mover {
 public:
  Mover(const Permutation& permutation, const Cycles& cycles, std::byte* A, std::int64_t bytes,
        Range part, std::byte* aside)
      : permutation_(permutation),
        cycles_(cycles),
        A_(A),
        bytes_(bytes),
        part_(part),
        aside_(aside) {}

  /// Before any thread moves: the chunks that others will overwrite.
  void set_aside() {
    if (part_.begin == part_.end) return;
    copy(aside_, chunk(part_.begin));
    // The cycle that the part ends in begins after the last end in it.
    last_ = part_.end;
    if (cycles_.marked(part_.end - 1)) return;
    while (last_ > part_.begin && !cycles_.marked(last_ - 1)) --last_;
    if (last_ > part_.begin) copy(aside_ + bytes_, chunk(last_));
  }

  void move() {
    for (std::int64_t i = part_.begin; i < part_.end;) {
      std::int64_t end = i + 1;
      while (end < part_.end && !cycles_.marked(end - 1)) ++end;
      std::byte* first = aside_;
      if (i != part_.begin) {
        first = aside_ + bytes_;
        if (i != last_) copy(aside_ + 2 * bytes_, chunk(i)), first = aside_ + 2 * bytes_;
      }
      for (std::int64_t e = end - 1; e > i; --e) copy(target(e), chunk(e));
      copy(target(i), first);
      i = end;
    }
  }

 private:
  std::byte* chunk(std::int64_t i) const { return A_ + cycles_.positions[i] * bytes_; }
  std::byte* target(std::int64_t i) const {
    return A_ + permutation_.next(cycles_.positions[i]) * bytes_;
  }
  void copy(std::byte* to, const std::byte* from) const {
    std::memcpy(to, from, std::size_t(bytes_));
  }

  const Permutation& permutation_;
  const Cycles& cycles_;
  std::byte* A_;
  std::int64_t bytes_;
  Range part_;
  std::byte* aside_;        // three chunks
  std::int64_t last_ = -1;  // where the cycle that others continue begins
};

std::int64_t list_bytes(std::int64_t chunks) {
  return divide_up((chunks + 2 * words_of(chunks)) * 8, 64) * 64;
}

/// Each of the p×p squares in place.
void transpose_squares(const TransposeInplaceArgs& args, std::byte* A, std::int64_t p, int threads,
                       std::byte* workspace) {
  const int size = size_of(args.type);
  const Tiling tiles{args.m, args.n, 1, p, p};
  const bool streamed = inplace_past_caches(double(args.m) * double(args.n) * size);
  // Pieces that a square is cut into for the threads: pairs of blocks, or rows of tiles.
  const std::int64_t side = SquareInplace::kTileBytes / size;
  const std::int64_t pieces =
      streamed ? SquareStreamed{nullptr, p, 0, size}.pairs() : divide_up(p, side);
  parallel(threads, [&](int thread, int granted) {
    std::byte* blocks = workspace + thread * SquareStreamed::kWorkspace;
    const Range range = share_of(tiles.count() * pieces, thread, granted);
    for (std::int64_t t = range.begin; t < range.end;) {
      const std::int64_t first = t / pieces * pieces;
      const std::int64_t end = std::min(range.end, first + pieces);
      const Tile tile = tiles[t / pieces];
      std::byte* square = A + (tile.i * args.n + tile.j) * size;
      if (streamed) {
        SquareStreamed{square, p, args.n * size, size}.transpose(t - first, end - first, blocks);
      } else {
        for (std::int64_t r = t - first; r < end - first; ++r)
          SquareInplace{square, p, args.n * size, size}.transpose_row(r * side, 0, p);
      }
      t = end;
    }
  });
}

int threads_of(const TransposeInplaceArgs& args, const DeviceInfo& device) {
  return copy_threads(1, args.m, args.n, size_of(args.type), device.num_threads);
}

}  // namespace

const char* transpose_inplace_chunked_declines(const TransposeInplaceArgs& args,
                                               const DeviceInfo&) {
  if (args.A.ld != args.n || args.ldb != args.m) return "needs rows without padding";
  if (args.batch > 1 && args.m * args.n * size_of(args.type) <= (256 << 10))
    return "many small matrices";
  return chunk_length(args) * size_of(args.type) < kLeast
             ? "needs sizes with a common divisor of 256 bytes"
             : nullptr;
}

std::size_t transpose_inplace_chunked_workspace(const TransposeInplaceArgs& args,
                                                const DeviceInfo& device) {
  const std::int64_t p = chunk_length(args), bytes = p * size_of(args.type);
  return std::size_t(threads_of(args, device) * (SquareStreamed::kWorkspace + 3 * bytes) +
                     list_bytes(args.m * (args.n / p)));
}

void transpose_inplace_chunked(const TransposeInplaceArgs& args, Queue& queue) {
  const int size = size_of(args.type);
  const std::int64_t p = chunk_length(args), bytes = p * size;
  const Permutation permutation{args.m / p, p, args.n / p};
  const int threads = threads_of(args, queue.device());
  std::byte* list = queue.workspace.data() + threads * SquareStreamed::kWorkspace;
  std::byte* aside = list + list_bytes(permutation.count());
  const Cycles cycles = find_cycles(permutation, list);
  for (std::int64_t batch = 0; batch < args.batch; ++batch) {
    auto* A = static_cast<std::byte*>(args.A.at(batch, size));
    transpose_squares(args, A, p, threads, queue.workspace.data());
    TeamBarrier barrier;
    parallel(threads, [&](int thread, int granted) {
      Mover mover(permutation, cycles, A, bytes, share_of(cycles.count, thread, granted),
                  aside + thread * 3 * bytes);
      mover.set_aside();
      barrier.wait(granted);
      mover.move();
    });
  }
}

}  // namespace mblas::cpu
