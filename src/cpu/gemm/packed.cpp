// The product of large and middling matrices. Blocks of B, which threads share, are packed one
// after the other to stay in the second-level cache while the rows of A pass by, a slice of them in
// the first (packed_isa.cpp has what one thread does with a block).
//
// Threads form a grid over C. Those of a column of the grid pack its part of B together and then
// take their own rows; the one wait per block of B is hidden by packing into two buffers in turn.
// Still, what another thread has packed comes from that one's caches, so two threads have a column
// each (float 511³ and 1024³ on a Xeon with AVX-512: 8 to 23 percent faster, 511³ with nothing
// transposed twice as fast, with both transposed 2 to 6 percent slower). Where B is small, or read
// where it lies, threads share nothing and wait for nobody (float 96³ to 160³ on two threads of a
// Zen 4: 1.13 to 1.35 times as fast as sharing).
// Operands that are used few times, or lie well, are read where they lie: a B that fits five
// eighths of the second-level cache, its rows at lines of it, for products of up to some 500 rows
// (float 128³, 192³, 256³ and 512³ on an Emerald Rapids Xeon 17, 15, 5 and 4 percent faster, where
// its rows are not so 100³ 19 percent, 255³ nothing). By AVX2, whose loops are shorter on packed
// panels, such a B is packed a panel at a time. k is cut where kc says, which depends on the
// machine's caches and the sizes of the call, so the bits of the result do not depend on the number
// of threads, nor on what is packed.
//
// Where B fits the second-level cache k is left whole up to 512, so that C is written once (float
// and double 511³: 3 and 7 percent faster on an Emerald Rapids Xeon). A thread that packs B alone
// does so into one buffer, whose lines are still in that cache when they are written again (2
// percent).
//
// Where the second-level cache is small a panel of B stays in the first level and packed rows of A
// pass by. Elsewhere that is slower, also with pages of 4 KiB (an Emerald Rapids Xeon by AVX-512:
// float 1024³ takes 1.06 to 1.27 times as long, 511³ 1.0 to 1.16, double 1024³ 1.1 to 1.18; by AVX2
// 1.01 to 1.05; a Zen 3, with 512 KiB, float 1023³ 1.08 to 1.11, double 511³ 1.0 to 1.14, 1023³ and
// 1025×1027×1029 1.04 to 1.2, either 128³ 1.09).
//
// Slices of A that are copied as they meet the first block of B are kept for the others: of float
// 4096³, whose B is cut into eight, copying took 5 to 7 percent, of 2048³ 1 to 4.
#include "cpu/gemm/packed.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "cpu/cache.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"

namespace mblas::cpu {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr int kMostGroups = 64;                 // columns of the grid
constexpr std::int64_t kMostRows = 4096;        // of A that a thread packs at a time
constexpr std::int64_t kLargeSecond = 1 << 19;  // bytes of a second-level cache that feeds panels
constexpr std::int64_t kMostDepth = 512;        // of a block of B
constexpr std::int64_t kRoom = 40 << 20, kThreadRoom = 4 << 20;  // of workspace, to keep copies in
constexpr std::int64_t kSlicesByPanel = 6;  // of A, for which a panel of B is packed by itself
constexpr std::int64_t kShallow = 64;       // k up to which all of B may stay in the caches

/// Is the second level, of those that feed panels, a small one?
bool has_small_second() { return cache_sizes().second <= kLargeSecond; }

/// The largest size of at most `most` that cuts `whole` into equal parts, in multiples of `unit`.
std::int64_t part_of(std::int64_t whole, std::int64_t most, std::int64_t unit) {
  return round_up(divide_up(whole, divide_up(whole, most)), unit);
}

struct Plan {
  int threads;
  bool whole_problems;  // of a batch, a thread each
  bool by_rows;         // panels of B pass by each slice of A; else slices by each panel
  bool pack_a, pack_b;  // A: slice after slice as they are used, if by_rows; else all rows at once
  bool shallow;         // nothing is packed, and C written row by row
  bool keep_a;          // by_rows: slices are copied for the first block of B only
  std::int64_t kc, nc;  // a block of B
  std::int64_t rows;    // of A that are packed at a time
  std::int64_t mc;      // of those, what one pass over a block of B takes
  std::int64_t packed_row;        // elements between packed rows of A
  std::int64_t a_bytes, b_bytes;  // of a thread; of a buffer for B of one column of the grid
  int b_buffers;                  // of a column of the grid
  std::int64_t b_slices;          // of A from which on it pays to pack B
};

/// Threads over C. `shares_b`: those of a column of the grid pack its part of B together.
struct Grid {
  int rows, cols;
  bool shares_b;
};

/// The grid with the least work for its busiest thread, in multiply-adds for a step of k.
Grid grid_of(const GemmArgs& args, const GemmPanels& panels, const Plan& p, int threads) {
  // Packing an element costs about this many multiply-adds, and reading it where it lies.
  constexpr double kPack = 16, kRead = 12;
  // So many reading one that another thread has packed. Where panels stay it is not counted: every
  // column of the grid has its own packed A there, and many of them would take too much memory.
  const double others = p.by_rows ? 64 : 0;
  const std::int64_t vectors = round_up(args.n, panels.nr / 2);  // of columns
  const bool small_b = args.k * args.n * panels.size <= cache_sizes().second / 4;
  Grid best{1, 1, true};
  double least = 1e300;
  for (int cols = 1; cols <= std::min(threads, kMostGroups); ++cols) {
    const int rows = threads / cols;
    const std::int64_t height = divide_up(args.m, rows);
    const double tall = double(std::max<std::int64_t>(height, panels.mr / 2));
    const double wide =
        double(std::min(divide_up(divide_up(args.n, panels.nr), cols) * panels.nr, vectors));
    const bool reads = divide_up(height, panels.mr) < p.b_slices;
    const bool shares = rows > 1 && !((reads || small_b) && threads <= kMostGroups);
    const double packs = shares ? wide / rows : wide;
    const double cost = tall * wide + kRead * tall + (reads ? kRead * wide : kPack * packs) +
                        others * (wide - packs);
    if (cost < least) {
      least = cost;
      best = {rows, cols, shares};
    }
  }
  return best;
}

/// Do the rows of a slice fall into the same sets of a first-level cache whose ways span 4 KiB?
bool collide(std::int64_t pitch, int rows) {
  constexpr std::int64_t way = 4096;
  const std::int64_t off = pitch % way, distance = std::min(off, way - off);
  return distance * rows < way / 2;
}

/// Slices of A from which on it pays to pack B. Of rows that do not begin at lines of the cache
/// every load takes two.
std::int64_t slices_worth_packing(const GemmArgs& args, const GemmPanels& panels, const Plan& p) {
  const int size = panels.size;
  if (args.k == 0) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t second = cache_sizes().second;
  const std::int64_t most = has_small_second() ? second / 2 : second / 8 * 5;
  if (is_transposed(args.transB) || args.k * args.n * size > most) return 0;
  const std::int64_t pitch = args.B.ld * size;
  const bool far = pitch >= 4096;
  if (!p.by_rows) return far ? 3 : 6;
  const auto bits = reinterpret_cast<std::uintptr_t>(args.B.at(0, size)) | std::uintptr_t(pitch);
  if (bits % kAlignment == 0) return p.threads == 1 || p.whole_problems ? 40 : 32;
  return far ? 3 : 16;
}

/// Does it pay to pack one panel of B at a time, all rows of A passing by from the second-level
/// cache? The panel stays in the first level, and B's rows, whose lines may fall into few of its
/// sets, are read once. Steps of k must be the faster through packed panels (128³ on a Zen 4 by
/// AVX2: while the core is quiet float is even and double 1.08 times as fast, while it is shared
/// 1.17 and 1.2). k is cut likewise if it does not pay, as that depends on the number of threads.
bool packs_panel_by_panel(const GemmArgs& args, const GemmPanels& panels, const Plan& p) {
  if (!panels.constant_steps || !p.by_rows || args.k <= kShallow) return false;
  const CacheSizes& cache = cache_sizes();
  const bool alone = p.threads == 1 || p.whole_problems;
  return divide_up(args.m, panels.mr) >= kSlicesByPanel &&
         args.k <= std::min(cache.first * 2 / 3 / (panels.nr * panels.size), kMostDepth) &&
         args.m * args.k * panels.size <= cache.second / 2 &&
         args.k * args.n * panels.size <= (alone ? cache.second / 8 * 5 : cache.second / 4);
}

/// Is C written row by row? Larger ones from memory want the streams of more rows, unless each row
/// goes on where the one before it ends: by AVX2 on a Zen 4 float 1000×1000 with k from 1 to 6 is
/// 1.7 to 1.2 times as fast so, 100000×64×6 1.2 times, 4096×4096×6 takes 1.9 times as long.
bool is_shallow(const GemmArgs& args, const GemmPanels& panels) {
  constexpr std::int64_t kLeastColumns = 64, kMostBytes = 16 << 20, kShortRow = 1024;
  const std::int64_t row = args.n * panels.size;
  return args.k > 0 && args.k <= panels.most_shallow && !is_transposed(args.transB) &&
         args.n >= kLeastColumns && (args.m * row <= kMostBytes || row <= kShortRow);
}

/// Does a microkernel take n columns that are more than a panel?
bool is_wide(std::int64_t n, const GemmPanels& panels) { return n > panels.nr && n <= panels.wide; }

/// Does a microkernel take all columns of a shallow B, where it lies? (By AVX2 on a Zen 4 float
/// 100000×20×20 1.47 times as fast so, TN 1.75 times, double 100000×12×12 1.46, 1000×24×64 1.19; by
/// AVX-512 on an Emerald Rapids Xeon float 20000×48×32 1.06, TN 1.2, double 100000×20×20 1.2.)
bool is_narrow(const GemmArgs& args, const GemmPanels& panels) {
  return args.k > 0 && args.k <= kShallow && is_wide(args.n, panels) && !is_transposed(args.transB);
}

/// Are columns of a shallow A read where they lie by all panels of B? Each of them is a stream (by
/// AVX2 on a Zen 4 double 100000×16×16 TN 1.35 times as fast, ×32×16 1.27, ×64×16 0.97).
bool streams_columns(const GemmArgs& args, const GemmPanels& panels, std::int64_t across) {
  constexpr std::int64_t kMostStreams = 32, kMostPanels = 4;
  return panels.constant_steps && !is_complex(args.in) && is_transposed(args.transA) &&
         args.k <= kMostStreams && across <= kMostPanels &&
         !collide(args.A.ld * panels.size, int(args.k));
}

/// Panels of B from which on it pays to copy each slice of an A of so many bytes. Where its columns
/// are contiguous a slice is a part of each of many lines, of which the caches keep the less the
/// larger A is and the fewer sets they fall into (TN on an Emerald Rapids Xeon: float 20000×64×300
/// 1.12 times as fast, 1024×128×1024 1.06, 400×400×400 1.05, but 1000×64×1000 0.91; double
/// 1000×512×1000 1.12, 500×64×500 0.89). Rows whose copies take fewer instructions pay early (float
/// 256³, of eight panels, on that Xeon is 4 to 13 percent faster while the core is shared and takes
/// 2 to 4 percent longer while it is not; 128³, of four, 7 to 10 and 5; by a Zen 5, which has no
/// loads to spare, 2 to 3 percent longer), others where B is packed as well.
std::int64_t panels_worth_copying(const GemmArgs& args, const GemmPanels& panels,
                                  std::int64_t a_bytes, bool packed_b) {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  const std::int64_t second = cache_sizes().second;
  const bool trans_a = is_transposed(args.transA);
  if (panels.copied_slices) {
    // In panels, by what a panel takes for an element: two vectors for each of its parts.
    const int unit = panels.size / (is_complex(panels.type) ? 8 : 4);
    if (trans_a && a_bytes >= 8 * second) return 2 * unit;
    if (trans_a && args.A.ld * panels.size % 2048 == 0) return 4 * unit;
    return (spares_loads() ? 8 : 12) * unit;
  }
  if (!trans_a) return packed_b ? 12 : never;
  return a_bytes <= second / 4 ? 12 : a_bytes <= second / 8 * 5 ? 4 : 2;
}

std::int64_t columns_of(const Plan& p) {
  return p.whole_problems ? p.threads : std::min(p.threads, kMostGroups);
}
std::int64_t all_b_bytes(const Plan& p) { return p.b_buffers * columns_of(p) * p.b_bytes; }

Plan plan(const GemmArgs& args, const GemmPanels& panels, int num_threads) {
  const CacheSizes& cache = cache_sizes();
  const int size = panels.size, lanes = panels.nr / 2;
  const double fmas =
      double(args.m) * double(args.n) * double(args.k) / lanes * (is_complex(args.in) ? 2 : 1);
  Plan p;
  p.threads = threads_for(fmas * double(args.batch), kGemmGrain, num_threads);
  p.whole_problems = args.batch > 1 && (args.batch >= 4 * p.threads || fmas < 4 * kGemmGrain);
  if (p.whole_problems) p.threads = int(std::min<std::int64_t>(p.threads, args.batch));
  // A single shallow panel of B stays in the first level for all rows of A.
  const bool narrow = is_narrow(args, panels);
  p.by_rows = args.k <= kShallow ? args.n > panels.nr && !narrow : cache.second >= kLargeSecond;
  p.shallow = is_shallow(args, panels);
  p.b_slices = p.shallow || narrow ? std::numeric_limits<std::int64_t>::max()
                                   : slices_worth_packing(args, panels, p);
  const bool by_panel = packs_panel_by_panel(args, panels, p);
  if (by_panel) {
    p.by_rows = false;
    p.b_slices = std::min(p.b_slices, kSlicesByPanel);
  }
  const Grid grid = p.whole_problems ? Grid{1, 1, false} : grid_of(args, panels, p, p.threads);
  const std::int64_t own_rows = divide_up(args.m, grid.rows);
  const std::int64_t own_cols = divide_up(args.n, grid.cols);

  const std::int64_t k = std::max<std::int64_t>(args.k, 1);
  // What stays in the first-level cache, a slice of A or a panel of B, takes two thirds of it at
  // most. What passes by need not fit.
  const std::int64_t stays = (p.by_rows ? panels.mr : panels.nr) * size;
  const std::int64_t most_k =
      std::clamp<std::int64_t>(cache.first * 2 / 3 / stays / 16 * 16, 64, kMostDepth);
  const bool trans_a = is_transposed(args.transA);
  // Where all of B fits the second level, a block of it is as deep as k, and C is written once.
  const bool whole_k =
      by_panel || (p.by_rows && !trans_a && k <= kMostDepth && k * args.n * size <= cache.second);
  p.kc = whole_k ? k : std::min(part_of(k, most_k, 8), k);

  // A block of B has half of the second-level cache, three quarters of one that is small (a Zen 3:
  // float 2048³ 0.96 of the time, double 1024³ 0.95, complex 512³ 0.94), or the rows of A that pass
  // by have half.
  const std::int64_t b_room = has_small_second() ? cache.second / 4 * 3 : cache.second / 2;
  const std::int64_t most_n = (p.by_rows ? b_room : std::int64_t{4} << 20) / (p.kc * size);
  p.nc = part_of(own_cols, std::max<std::int64_t>(most_n / panels.nr, 1) * panels.nr, panels.nr);
  if (by_panel) p.nc = panels.nr;
  if (narrow) p.nc = std::max(p.nc, own_cols);
  p.rows = part_of(own_rows, kMostRows, panels.mr);
  const std::int64_t most_m = cache.second / 2 / (p.kc * size);
  p.mc = p.by_rows ? p.rows
                   : std::min(p.rows, part_of(own_rows, std::max<std::int64_t>(most_m, panels.mr),
                                              panels.mr));

  const std::int64_t across = is_wide(own_cols, panels) ? 1 : divide_up(own_cols, panels.nr);
  const std::int64_t slices = divide_up(own_rows, panels.mr);
  const bool a_far = args.A.ld * size >= (trans_a ? 1024 : 4096);
  p.pack_b = slices >= p.b_slices;
  // Copying a slice of A takes as long as several panels take to read it where it lies.
  if (!p.by_rows)
    p.pack_a = across >= (a_far ? 3 : 12) && (!by_panel || a_far || trans_a);
  else if (!trans_a && collide(args.A.ld * size, panels.mr))
    p.pack_a = across >= 4;
  else
    p.pack_a = across >= panels_worth_copying(args, panels, own_rows * k * size, p.pack_b);
  p.pack_a = p.pack_a && args.k > 0 && !p.shallow && !streams_columns(args, panels, across);
  // Nothing is kept between panels of B where there is one.
  if (!p.by_rows && !p.pack_a && across == 1 && args.epilogue.is_none()) p.mc = p.rows = own_rows;
  p.packed_row = p.kc + kSlicePad / size;
  p.b_bytes = p.pack_b ? p.kc * p.nc * size : 0;
  p.b_buffers = p.whole_problems || p.threads == 1 ? 1 : 2;
  const auto bytes_of = [&](std::int64_t rows) {
    return round_up(rows * p.packed_row * size, kAlignment);
  };
  p.keep_a = p.pack_a && p.by_rows && p.nc < own_cols &&
             p.threads * bytes_of(p.rows) + all_b_bytes(p) <= kRoom + p.threads * kThreadRoom;
  std::int64_t copied_rows = p.rows;
  if (p.by_rows && !p.keep_a)
    copied_rows = trans_a ? std::max<std::int64_t>(kCopiedColumn / size, panels.mr) : panels.mr;
  p.a_bytes = p.pack_a ? bytes_of(copied_rows) : 0;
  return p;
}

/// One thread of the `members` that compute columns [0, tile.n) of a product together.
struct Member {
  int index, members;
  int packers;  // of them pack B together: all or each for itself
  TeamBarrier* barrier;
  std::byte* packed_a;
  std::byte* packed_b[2];
  const GemmArgs* args;             // of the call
  std::int64_t batch = 0, col = 0;  // of C, where the product's columns begin
};

/// One pass over a block of B, which t holds, with the member's rows; they are packed as they first
/// come.
void multiply_block(GemmTile t, std::int64_t b_panel, const GemmTile& whole,
                    const GemmPanels& panels, const Plan& p, const Member& self, const Range& rows,
                    std::int64_t k0, std::int64_t j) {
  const int size = panels.size;
  for (std::int64_t i = rows.begin; i < rows.end; i += p.mc) {
    t.m = std::min(p.mc, rows.end - i);
    t.C = advance(whole.C, i * whole.ldc + j, size);
    if (p.by_rows || !p.pack_a) {
      t.A = advance(whole.A, i * whole.a_row + k0 * whole.a_col, size);
      t.a_row = whole.a_row;
      t.a_col = whole.a_col;
    } else {
      std::byte* const packed = self.packed_a + (i - rows.begin) * p.packed_row * size;
      if (j == 0)
        panels.pack_a(packed, advance(whole.A, i * whole.a_row + k0 * whole.a_col, size),
                      whole.a_row, whole.a_col, t.m, t.k, p.packed_row);
      t.A = packed;
      t.a_row = p.packed_row;
      t.a_col = 1;
    }
    if (p.shallow)
      panels.shallow(t);
    else if (p.by_rows)
      panels.block_rows(t, b_panel, p.pack_a ? self.packed_a : nullptr,
                        !p.keep_a ? SliceCopies::InTurn
                        : j == 0  ? SliceCopies::Kept
                                  : SliceCopies::There);
    else
      panels.block_panels(t, b_panel, p.pack_a && whole.a_col != 1);
    if (!self.args->epilogue.is_none() && k0 + t.k == whole.k)
      gemm_finish_block(*self.args, self.batch, i, self.col + j, t.m, t.n);
  }
}

void multiply(const GemmTile& whole, const GemmPanels& panels, const Plan& p, const Member& self,
              int& turn) {
  const int size = panels.size;
  const Range own = share_of(whole.m, self.index, self.members);
  // Every member goes as often through the blocks of B as the one with the most rows.
  const std::int64_t most_rows = divide_up(whole.m, self.members);
  std::int64_t k0 = 0;
  do {  // once for k == 0 too: C = beta C
    const std::int64_t depth = std::min(p.kc, whole.k - k0);
    for (std::int64_t done = 0; done < most_rows; done += p.rows) {
      const Range rows{std::min(own.begin + done, own.end),
                       std::min(own.begin + done + p.rows, own.end)};
      for (std::int64_t j = 0; j < whole.n; j += p.nc) {
        GemmTile t = whole;
        t.k = depth;
        t.n = std::min(p.nc, whole.n - j);
        t.B = advance(whole.B, k0 * whole.b_row + j * whole.b_col, size);
        if (k0 > 0) t.beta = {1, 0};
        std::int64_t b_panel = 1;
        if (p.pack_b) {
          if (self.packers > 1) turn ^= 1;
          std::byte* const to = self.packed_b[turn];
          const int nr = p.by_rows && is_wide(t.n, panels) ? panels.wide : panels.nr;
          const Range share = share_of(t.n, self.index % self.packers, self.packers, nr);
          panels.pack_b(to + share.begin * depth * size,
                        advance(t.B, share.begin * whole.b_col, size), whole.b_row, whole.b_col,
                        depth, share.end - share.begin, nr);
          self.barrier->wait(self.packers);
          t.B = to;
          t.b_row = nr;
          t.b_col = 1;
          b_panel = depth;
        }
        multiply_block(t, b_panel, whole, panels, p, self, rows, k0, j);
      }
    }
    k0 += depth;
  } while (k0 < whole.k);
}

}  // namespace

std::size_t gemm_packed_workspace(const GemmArgs& args, const DeviceInfo& device) {
  const Plan p = plan(args, panels_of(args), device.num_threads);
  return std::size_t(p.threads * p.a_bytes + all_b_bytes(p));
}

const char* gemm_packed_declines(const GemmArgs& args, const DeviceInfo&) {
  return unless_panels(args);
}

void gemm_packed(const GemmArgs& args, Queue& queue) {
  const GemmPanels& panels = panels_of(args);
  const Plan p = plan(args, panels, queue.device().num_threads);
  std::byte* const workspace = queue.workspace.data();
  const auto member = [&](int thread, int group) {
    Member self{0, 1, 1, nullptr, workspace + thread * p.a_bytes, {}, &args};
    for (int i = 0; i < p.b_buffers; ++i)
      self.packed_b[i] = workspace + p.threads * p.a_bytes + (p.b_buffers * group + i) * p.b_bytes;
    return self;
  };
  if (p.whole_problems) {
    parallel(p.threads, [&](int thread, int granted) {
      Member self = member(thread, thread);
      TeamBarrier alone;
      self.barrier = &alone;
      const Range problems = share_of(args.batch, thread, granted);
      for (std::int64_t b = problems.begin; b < problems.end; ++b) {
        int turn = 0;
        self.batch = b;
        multiply(tile_of(args, b), panels, p, self, turn);
      }
    });
    return;
  }
  std::array<TeamBarrier, kMostGroups> barriers;
  parallel(p.threads, [&](int thread, int granted) {
    const Grid grid = grid_of(args, panels, p, granted);
    const int column = thread / grid.rows;
    if (column >= grid.cols) return;
    Member self = member(thread, grid.shares_b ? column : thread);
    self.index = thread % grid.rows;
    self.members = grid.rows;
    self.packers = grid.shares_b ? grid.rows : 1;
    self.barrier = &barriers[std::size_t(column)];
    const Range cols = share_of(args.n, column, grid.cols, panels.nr);
    self.col = cols.begin;
    int turn = 0;
    for (std::int64_t b = 0; b < args.batch; ++b) {
      GemmTile t = tile_of(args, b);
      t.n = cols.end - cols.begin;
      t.B = advance(t.B, cols.begin * t.b_col, panels.size);
      t.C = advance(t.C, cols.begin, panels.size);
      self.batch = b;
      if (t.n > 0) multiply(t, panels, p, self, turn);
    }
  });
}

}  // namespace mblas::cpu
