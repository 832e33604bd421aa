// Products by dot-product instructions: bfloat16 and int8 as they are, by AMX tiles (`amx`) or
// vectors (`dot`); on tiles also half and float as sums of bfloat16 planes.
//
// Limited by how fast operands reach the tiles (amx_tiles.cpp), or by the instructions of vectors
// (dot_vectors.cpp). So both operands are packed into the order in which they are read: B by all
// threads together, A by strips of rows, which go to threads. A strip, its share of B and the sums
// fit the second-level cache a part of the depth at a time. Where that cache holds all of B, strips
// are one panel high: a panel of A is used while the first-level cache still has it as it was
// packed (7 to 10 percent at 256³ and 512³). Where operands are small, threads share nothing: each
// packs what its part of C needs, since handing packed panels from core to core costs more (two
// threads at 256³: 34 µs shared, 17 µs apart). So they do where op(A) has few rows: it is packed
// whole, and of B, most of the work, only what the second-level cache keeps until it is used (with
// 16 rows of 4096×4096 1.6 times as fast as all of B at once).
//
// An operand that a GemmPlan keeps is packed once, for the whole depth and by all threads together,
// with the ranges of its magnitudes.
//
// The instructions take subnormal numbers for zero and flush subnormal results, and planes of
// numbers near the largest overflow. Packing therefore notes the least and the largest magnitude of
// every 32 rows of op(A) and columns of op(B); a square of C where they do not rule that out is
// computed by the kernel in native arithmetic. Which squares those are depends on the operands
// alone, and an element's sum on k alone: the bits do not depend on the number of threads.
//
// With an epilogue the sums of a block, of both kinds, go to memory of the thread's own, and from
// the second-level cache to C.
#include "cpu/gemm/dot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "core/finish.hpp"
#include "cpu/gemm/dot_limits.hpp"
#include "cpu/isa.hpp"
#include "cpu/kept.hpp"
#include "cpu/kernels.hpp"
#include "cpu/parallel.hpp"
#include "cpu/tiles.hpp"

namespace mblas::cpu {
namespace {

constexpr std::int64_t kBudget = 40 << 20;      // bytes that the threads share
constexpr std::int64_t kStripBytes = 3 << 20;   // of packed rows of A that a thread has at a time
constexpr std::int64_t kCached = 1 << 20;       // of panels that stay in the second-level cache
constexpr std::int64_t kThreadEntry = 3 << 20;  // of a problem that one thread computes
constexpr std::int64_t kDeepest = 4096;         // elements of depth that are packed at a time
constexpr double kGrain = 1 << 21;              // bfloat16 multiply-adds that a thread should get
constexpr std::int64_t kNativeTile = 128;       // largest tile given to the native kernel
constexpr std::int64_t kLine = 64;
// In panels. What a strip needs of both operands for kBlockN panels, and the sums, stays in the
// second-level cache.
constexpr std::int64_t kMostStrip = 8, kBlockN = 16;
constexpr std::int64_t kLeastKept = 4;  // panels of B that one of A must meet to be a strip alone
// Where few rows meet a B that the second-level cache does not hold, it is packed by so many steps
// at a time and so many bytes, which stay there: in all where its depth lies along the rows of
// memory, else of a row. And most bytes of A, which stays packed.
constexpr std::int64_t kNarrowLong = 32, kNarrowBytes = 256 << 10;
constexpr std::int64_t kNarrowWide = 8, kNarrowRow = 1 << 10;
constexpr std::int64_t kNarrowA = 2 << 20;
// Where planes of float, by default, beat native arithmetic; from k = 6 on they keep its bound.
constexpr std::int64_t kLeastSize = 128;
constexpr double kLeastWork = 192.0 * 192 * 192;
// From here on the four products of half planes keep the bound of native arithmetic.
constexpr std::int64_t kLeastHalfDepth = 4;

/// What the instructions compute of a call: sums only, where something is done to them on their way
/// to C.
GemmArgs sums_of(const GemmArgs& args) {
  GemmArgs sums = args;
  if (!needs_finish(args)) return sums;
  sums.epilogue = {};
  sums.out = accumulator_of(args.in);
  if (args.in == DType::i8) sums.alpha = {1, 0};
  sums.beta = {};
  return sums;
}
DType sum_type(const GemmArgs& args) {
  return needs_finish(args) ? accumulator_of(args.in) : args.out;
}

const DotKernel* kernel_for(const GemmArgs& args, std::span<const DotKernel> kernels) {
  for (const DotKernel& kernel : kernels)
    if (kernel.in == args.in && kernel.out == sum_type(args)) return &kernel;
  return nullptr;
}

const GemmTileKernel& native_for(const GemmArgs& args) {
  return *std::find_if(isa().gemm.begin(), isa().gemm.end(), [&](const GemmTileKernel& kernel) {
    return kernel.in == args.in && kernel.out == sum_type(args);
  });
}

/// Products of planes that make up one product of elements.
constexpr int products(int planes) { return planes == 1 ? 1 : planes == 2 ? 4 : 6; }

/// How a call is cut up: parts of C of part_m×part_n for which B is packed, part_k deep, by all
/// threads; tasks of strip×chunk, each of which one thread computes with A packed on its own,
/// multiplying block_n columns and block_k of the depth at a time. Sizes in panels and in steps.
struct Plan {
  std::int64_t m, n, k;  // of the whole
  std::int64_t part_m, part_n, part_k;
  std::int64_t strip, chunk, block_n, block_k;
  int threads;
  bool by_entry;                  // threads take whole problems of a batch
  bool keep_a;                    // strips of one panel, which stays in the first-level cache
  bool whole_a;                   // one strip, packed once and for the whole depth
  bool prepacked_a, prepacked_b;  // in a GemmPlan, for the whole depth
  std::int64_t step_bytes;
  // Workspace: what the threads of a problem share, then that of each thread.
  std::int64_t packed_b, sums, ranges, shared_bytes;
  std::int64_t packed_a, block_sums, finish_bytes, thread_bytes;

  std::int64_t whole_panel_bytes() const { return k * step_bytes; }
  std::int64_t panel_bytes() const { return part_k * step_bytes; }
  std::int64_t b_panel_bytes() const { return panel_bytes() + kDotTail; }
  std::int64_t a_panel_bytes() const { return whole_a ? whole_panel_bytes() : panel_bytes(); }
  /// More than one part of the depth: their sums are those of the whole part of C.
  bool deep() const { return part_k < k; }
  /// Tasks of a part.
  Tiling tasks(std::int64_t rows, std::int64_t cols) const { return {rows, cols, 1, strip, chunk}; }
};

/// Bytes for a tile of the native kernel of up to kNativeTile rows and columns.
std::int64_t native_bytes(const GemmTileKernel& kernel) {
  const std::int64_t m = round_up(kNativeTile, kernel.mr), n = round_up(kNativeTile, kernel.nr);
  return round_up((m * kernel.kc + kernel.kc * n + m * n) * kernel.packed_size, kLine);
}

void fill_sizes(Plan& p, const GemmArgs& args, const DotKernel& kernel) {
  // With few columns packing A is most of the work. Narrow strips are for rows that lie along k.
  const bool few = p.n <= kMostStrip && !p.whole_a && !is_transposed(args.transA);
  const std::int64_t strip_bytes = few ? kCached / 2 : kStripBytes;
  p.strip = std::min({p.part_m, p.whole_a ? kMostStrip : kernel.strip,
                      std::max<std::int64_t>(1, strip_bytes / p.a_panel_bytes())});
  // Where the second-level cache holds B, a panel of A meets all of it as soon as it is packed.
  p.keep_a = !p.whole_a && p.step_bytes == kDotPlaneStep && !p.deep() && p.part_k <= kernel.block &&
             p.part_n >= kLeastKept && p.part_n * p.panel_bytes() <= kCached;
  if (p.keep_a) p.strip = 1;
  p.chunk = p.part_n;
  const std::int64_t wanted = p.threads == 1 ? 1 : 2 * p.threads;
  while (p.tasks(p.part_m, p.part_n).count() < wanted && (p.strip > 2 || p.chunk > 4)) {
    std::int64_t& longer = p.strip > 2 ? p.strip : p.chunk;
    longer = divide_up(longer, 2);
  }
  p.block_k = std::min(p.part_k, kernel.block);
  const bool cut = !p.deep() && p.block_k < p.part_k;
  // A strip that stays in the cache whole passes by every panel of B: few sums at a time.
  const bool cached = p.strip * p.panel_bytes() <= kCached;
  p.block_n = !cut ? p.chunk : cached ? 1 : std::min<std::int64_t>(p.chunk, kBlockN);
  p.packed_b = p.prepacked_b ? 0 : p.part_n * p.b_panel_bytes();
  p.sums = p.deep() ? p.part_m * p.part_n * kDotSums : 0;
  const std::int64_t count = p.part_n + p.tasks(p.part_m, p.part_n).count() * p.strip;
  p.ranges = round_up(count * std::int64_t(sizeof(DotRange)), kLine);
  p.shared_bytes = p.packed_b + p.sums + p.ranges;
  p.packed_a = p.prepacked_a ? 0 : p.strip * p.a_panel_bytes();
  if (needs_finish(args)) p.block_n = std::min(p.block_n, kBlockN);
  const std::int64_t pairs = p.strip * p.block_n;
  p.finish_bytes = needs_finish(args) ? pairs * kDotSums : 0;
  p.block_sums = cut ? pairs * kDotSums : 0;
  p.thread_bytes = kDotSums + p.packed_a + p.finish_bytes + round_up(pairs, kLine) +
                   std::max(p.block_sums, native_bytes(native_for(args)));
}

GemmArgs without_plan(GemmArgs args) {
  args.keeper = nullptr;
  return args;
}

Plan plan(const GemmArgs& args, const DotKernel& kernel, int num_threads) {
  Plan p{};
  p.prepacked_a = is_kept(args, false);
  p.prepacked_b = is_kept(args, true);
  p.m = divide_up(args.m, kDotPanel);
  p.n = divide_up(args.n, kDotPanel);
  p.k = divide_up(args.k, kernel.step);
  p.step_bytes = std::int64_t(kernel.planes) * kDotPlaneStep;
  const double work = double(args.m) * double(args.n) * double(args.k) * products(kernel.planes);
  const auto cut_for = [&](int threads) {
    p.threads = threads;
    p.part_m = p.m;
    p.part_n = p.n;
    p.part_k = divide_up(p.k, std::max<std::int64_t>(1, divide_up(args.k, kDeepest)));
    const std::int64_t panel = p.whole_panel_bytes();
    p.whole_a = threads == 1 && !p.prepacked_a && p.m <= kMostStrip && p.m * panel <= kNarrowA &&
                (p.prepacked_b || p.n * panel > kCached);
    if (p.whole_a && p.prepacked_b) {
      p.part_k = p.k;
    } else if (p.whole_a) {
      const bool along = is_transposed(args.transB);
      p.part_k = divide_up(p.k, divide_up(p.k, along ? kNarrowLong : kNarrowWide));
      p.part_n = std::min(p.n, along ? std::max<std::int64_t>(1, kNarrowBytes / p.panel_bytes())
                                     : kNarrowRow / (kDotPanel * size_of(args.in)));
    }
    fill_sizes(p, args, kernel);
  };
  if (args.batch > 1) {
    cut_for(1);
    p.by_entry = p.shared_bytes + p.thread_bytes <= kThreadEntry;
    if (p.by_entry) {
      p.threads = int(std::min<std::int64_t>(
          args.batch, threads_for(double(args.batch) * work, kGrain, num_threads)));
      return p;
    }
  }
  cut_for(threads_for(work, kGrain, num_threads));
  std::int64_t cut_m = 1, cut_n = 1;
  for (; p.shared_bytes > kBudget; fill_sizes(p, args, kernel)) {
    if (p.deep() && p.part_m > p.part_n)
      p.part_m = divide_up(p.m, ++cut_m);
    else
      p.part_n = divide_up(p.n, ++cut_n);
  }
  return p;
}

/// Rows and columns of C, in panels, as a product of its own.
GemmArgs part_of(const GemmArgs& args, Range rows, Range cols) {
  const std::int64_t i = rows.begin * kDotPanel, j = cols.begin * kDotPanel;
  const auto at = [](const auto& operand, std::int64_t element, DType type) {
    using Byte = typename std::remove_reference_t<decltype(operand)>::Byte;
    return static_cast<Byte*>(operand.at(0, 0)) + element * size_of(type);
  };
  GemmArgs part = args;
  part.A.data = at(args.A, i * strides_of(args.transA, args.A.ld).row, args.in);
  part.B.data = at(args.B, j * strides_of(args.transB, args.B.ld).col, args.in);
  part.C.data = at(args.C, i * args.C.ld + j, args.out);
  if (Bias& bias = part.epilogue.bias; bias.per != BiasPer::None)
    bias.data = at(Input{bias.data}, bias.per == BiasPer::Row ? i : j, args.out);
  part.A.pointers = part.B.pointers = nullptr;
  part.C.pointers = nullptr;
  part.m = std::min(rows.end * kDotPanel, args.m) - i;
  part.n = std::min(cols.end * kDotPanel, args.n) - j;
  return part;
}

/// A product cut into rows×cols parts for as many threads, which share nothing: where operands are
/// small, packing them again costs less than waiting for others and fetching what they packed.
struct Parts {
  int rows = 1, cols = 1;
  std::int64_t bytes = 0;  // of workspace for each

  int count() const { return rows * cols; }
  Range rows_of(const Plan& p, int part) const { return share_of(p.m, part / cols, rows); }
  Range cols_of(const Plan& p, int part) const { return share_of(p.n, part % cols, cols); }
};

/// One part, where threads had better share what they pack.
Parts parts_of(const GemmArgs& args, const DotKernel& kernel, const Plan& p) {
  if (p.threads == 1 || args.batch > 1) return {};
  Parts best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int rows = 1; rows <= std::min<std::int64_t>(p.threads, p.m); ++rows) {
    const Parts parts{rows, int(std::min<std::int64_t>(p.threads / rows, p.n))};
    const std::int64_t m = divide_up(p.m, rows), n = divide_up(p.n, parts.cols);
    const std::int64_t cost = 4 * m * n + m + n;  // of multiplying a pair of panels; of packing
    if (cost < least) {
      least = cost;
      best = parts;
    }
  }
  const Plan part = plan(part_of(args, best.rows_of(p, 0), best.cols_of(p, 0)), kernel, 1);
  best.bytes = part.shared_bytes + part.thread_bytes;
  return best.bytes <= kThreadEntry ? best : Parts{};
}

DotRange join(const DotRange* ranges, std::int64_t count) {
  DotRange all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.least = std::min(all.least, ranges[i].least);
    all.most = std::max(all.most, ranges[i].most);
  }
  return all;
}

/// Packed panels and the ranges of their magnitudes.
struct Panels {
  const std::byte* data = nullptr;
  const DotRange* ranges = nullptr;
  std::int64_t bytes = 0;  ///< of a panel

  /// From a panel and from a place in each on.
  Panels from(std::int64_t panel, std::int64_t inside) const {
    return {data + panel * bytes + inside, ranges + panel, bytes};
  }
};

/// What an operand that a plan keeps is known by.
struct KeptPanels {
  void (*pack)(const DotPack&);
  const void* from;
  std::int64_t member, depth, members, k;
  bool operator==(const KeptPanels&) const = default;
};

/// The operand that the plan of the call keeps, packed for the whole depth; null where there is
/// none.
Panels keep(const GemmArgs& args, const DotKernel& kernel, const Plan& p, int threads) {
  if (!p.prepacked_a && !p.prepacked_b) return {};
  const Strides a = strides_of(args.transA, args.A.ld), b = strides_of(args.transB, args.B.ld);
  const KeptPanels of =
      p.prepacked_b ? KeptPanels{kernel.pack_b, args.B.at(0, 0), b.col, b.row, args.n, args.k}
                    : KeptPanels{kernel.pack_a, args.A.at(0, 0), a.row, a.col, args.m, args.k};
  const std::int64_t panels = p.prepacked_b ? p.n : p.m;
  const std::int64_t bytes = p.whole_panel_bytes() + (p.prepacked_b ? kDotTail : 0);
  const std::int64_t packed = panels * bytes;  // before the ranges
  const auto fill = [&](std::byte* to) {
    auto* const ranges = reinterpret_cast<DotRange*>(to + packed);
    std::uninitialized_fill(ranges, ranges + panels, DotRange{});
    parallel(int(std::min<std::int64_t>(threads, panels)), [&](int thread, int granted) {
      const Range mine = share_of(panels, thread, granted);
      if (mine.begin == mine.end) return;
      const std::int64_t first = mine.begin * kDotPanel;
      const auto* from = static_cast<const std::byte*>(of.from);
      of.pack({from + first * of.member * size_of(args.in), of.member, of.depth,
               std::min(mine.end * kDotPanel, of.members) - first, of.k, to + mine.begin * bytes,
               bytes, ranges + mine.begin});
    });
  };
  const std::byte* const at =
      kept(*args.keeper, of, std::size_t(packed) + std::size_t(panels) * sizeof(DotRange), fill);
  return at ? Panels{at, reinterpret_cast<const DotRange*>(at + packed), bytes} : Panels{};
}

/// One problem on the `members` threads of a team, of which this is number `index`.
class Product {
 public:
  Product(const GemmArgs& args, const DotKernel& kernel, const Plan& plan, const Panels& kept,
          std::int64_t entry, std::byte* shared, std::byte* own, int index, int members,
          TeamBarrier* barrier)
      : call_(args),
        args_(sums_of(args)),
        finishes_(needs_finish(args)),
        entry_(entry),
        kernel_(kernel),
        plan_(plan),
        kept_(kept),
        limits_(limits_of(kernel.planes, args.k)),
        a_(strides_of(args.transA, args.A.ld)),
        b_(strides_of(args.transB, args.B.ld)),
        A_(static_cast<const std::byte*>(args.A.at(entry, in_size()))),
        B_(static_cast<const std::byte*>(args.B.at(entry, in_size()))),
        C_(static_cast<std::byte*>(args.C.at(entry, out_size()))),
        packed_b_(shared),
        sums_(packed_b_ + plan.packed_b),
        ranges_b_(reinterpret_cast<DotRange*>(sums_ + plan.sums)),
        ranges_a_(ranges_b_ + plan.part_n),
        buffer_(own),
        packed_a_(buffer_ + kDotSums),
        block_(packed_a_ + plan.packed_a),
        skip_(reinterpret_cast<bool*>(block_ + plan.finish_bytes)),
        work_(block_ + plan.finish_bytes + round_up(plan.strip * plan.block_n, kLine)),
        index_(index),
        members_(members),
        barrier_(barrier) {}

  void run() {
    for (std::int64_t i = 0; i < plan_.m; i += plan_.part_m) {
      for (std::int64_t j = 0; j < plan_.n; j += plan_.part_n) {
        for (std::int64_t p = 0; p < plan_.k; p += plan_.part_k) {
          if (i > 0 || j > 0 || p > 0) wait();  // for those that still read what is packed
          multiply(i, j, p);
        }
      }
    }
  }

 private:
  int in_size() const { return size_of(args_.in); }
  int out_size() const { return size_of(args_.out); }
  void wait() const {
    if (members_ > 1) barrier_->wait(members_);
  }
  /// Elements of depth from step p to the end of its part.
  std::int64_t depth_from(std::int64_t p) const {
    return std::min(plan_.part_k * kernel_.step, args_.k - p * kernel_.step);
  }
  const std::byte* a_at(std::int64_t panel, std::int64_t p) const {
    return A_ + (panel * kDotPanel * a_.row + p * kernel_.step * a_.col) * in_size();
  }
  const std::byte* b_at(std::int64_t panel, std::int64_t p) const {
    return B_ + (panel * kDotPanel * b_.col + p * kernel_.step * b_.row) * in_size();
  }
  std::int64_t rows_of(std::int64_t panel, std::int64_t panels) const {
    return std::min(panels * kDotPanel, args_.m - panel * kDotPanel);
  }
  std::int64_t cols_of(std::int64_t panel, std::int64_t panels) const {
    return std::min(panels * kDotPanel, args_.n - panel * kDotPanel);
  }

  /// The part of C from panels i0, j0 on, and of the depth from step p on.
  void multiply(std::int64_t i0, std::int64_t j0, std::int64_t p) {
    const std::int64_t rows = std::min(plan_.part_m, plan_.m - i0);
    const std::int64_t cols = std::min(plan_.part_n, plan_.n - j0);
    const Range mine = plan_.prepacked_b ? Range{} : share_of(cols, index_, members_);
    if (mine.begin < mine.end) {
      if (p == 0) std::fill(ranges_b_ + mine.begin, ranges_b_ + mine.end, DotRange{});
      kernel_.pack_b({b_at(j0 + mine.begin, p), b_.col, b_.row,
                      cols_of(j0 + mine.begin, mine.end - mine.begin), depth_from(p),
                      packed_b_ + mine.begin * plan_.b_panel_bytes(), plan_.b_panel_bytes(),
                      ranges_b_ + mine.begin});
    }
    wait();
    const Panels b = plan_.prepacked_b ? kept_.from(j0, p * plan_.step_bytes)
                                       : Panels{packed_b_, ranges_b_, plan_.b_panel_bytes()};
    const DotRange all_b = join(b.ranges, cols);
    const Tiling tasks = plan_.tasks(rows, cols);
    const Range share = share_of(tasks.count(), index_, members_);
    std::int64_t packed = -1;
    for (std::int64_t t = share.begin; t < share.end; ++t) {
      const Tile task = tasks[t];
      const Panels a = plan_.prepacked_a ? kept_.from(i0 + task.i, p * plan_.step_bytes)
                       : plan_.whole_a
                           ? whole_strip(task, i0, j0, p)
                           : packed_strip(task, i0, p, ranges_a_ + t * plan_.strip, packed);
      const bool native =
          args_.in != DType::i8 && native_needed(join(a.ranges, task.rows), all_b, limits_);
      for (std::int64_t j = 0; j < task.cols; j += plan_.block_n)
        multiply_block(i0, j0, p,
                       {0, task.i, task.j + j, task.rows, std::min(plan_.block_n, task.cols - j)},
                       a, b, native);
    }
  }

  /// The strip of all rows, packed where it is first asked for; from step p on.
  Panels whole_strip(const Tile& task, std::int64_t i0, std::int64_t j0, std::int64_t p) const {
    if (j0 == 0 && p == 0) pack_a(task, i0, 0, args_.k, ranges_a_);
    return Panels{packed_a_, ranges_a_, plan_.a_panel_bytes()}.from(0, p * plan_.step_bytes);
  }

  /// A strip's part from step p on; `packed`: rows whose part is packed, as the task before left
  /// it.
  Panels packed_strip(const Tile& task, std::int64_t i0, std::int64_t p, DotRange* ranges,
                      std::int64_t& packed) const {
    if (packed != task.i || plan_.deep()) {
      pack_a(task, i0, p, depth_from(p), ranges);
      packed = task.i;
    } else {
      std::copy(ranges - plan_.strip, ranges, ranges);
    }
    return {packed_a_, ranges, plan_.a_panel_bytes()};
  }

  /// A strip from step p on.
  void pack_a(const Tile& task, std::int64_t i0, std::int64_t p, std::int64_t depth,
              DotRange* ranges) const {
    if (p == 0) std::fill(ranges, ranges + plan_.strip, DotRange{});
    kernel_.pack_a({a_at(i0 + task.i, p), a_.row, a_.col, rows_of(i0 + task.i, task.rows), depth,
                    packed_a_, plan_.a_panel_bytes(), ranges});
  }

  /// `block`: of the part, whose panels of B these are, and of A those of the block's rows.
  /// `native`: some squares may need native arithmetic.
  void multiply_block(std::int64_t i0, std::int64_t j0, std::int64_t p, const Tile& block,
                      const Panels& a, const Panels& b, bool native) {
    const std::int64_t i = i0 + block.i, j = j0 + block.j;
    bool some = false;
    if (native) {
      for (std::int64_t x = 0; x < block.rows; ++x) {
        for (std::int64_t y = 0; y < block.cols; ++y) {
          bool& here = skip_[x * block.cols + y];
          here = native_needed(a.ranges[x], b.ranges[block.j + y], limits_);
          some |= here;
        }
      }
    }
    DotBlock x{};
    x.A = a.data;
    x.B = b.data + block.j * b.bytes;
    x.a_panel_bytes = a.bytes;
    x.b_panel_bytes = b.bytes;
    x.tail = plan_.prepacked_b && p > 0 ? nullptr : x.B + b.bytes - kDotTail;
    x.m = rows_of(i, block.rows);
    x.n = cols_of(j, block.cols);
    x.steps = std::min(plan_.part_k, plan_.k - p);
    x.steps_at_once = int(plan_.block_k);
    x.keep_a = plan_.keep_a;
    x.fetch_b = plan_.prepacked_b && !plan_.keep_a;
    x.first = p == 0;
    x.last = p + x.steps == plan_.k;
    x.sums = plan_.deep() ? sums_ + (block.i * plan_.part_n + block.j) * kDotSums : work_;
    x.sums_row = plan_.deep() ? plan_.part_n : block.cols;
    x.skip = some ? skip_ : nullptr;
    x.buffer = buffer_;
    const Place to = place(i, j);
    x.C = to.C;
    x.ldc = to.ld;
    x.alpha = args_.alpha.re;
    x.beta = args_.beta.re;
    kernel_.multiply(x);
    if (some && x.last) finish_natively(i, j, block, to);
    if (finishes_ && x.last)
      gemm_finish_block(call_, args_.out, to.C, to.ld, entry_, i * kDotPanel, j * kDotPanel, x.m,
                        x.n);
  }

  /// Where the sums of the block at panels (i, j) go.
  struct Place {
    std::byte* C;
    std::int64_t ld;
  };
  Place place(std::int64_t i, std::int64_t j) const {
    if (finishes_) return {block_, plan_.block_n * kDotPanel};
    return {C_ + (i * args_.C.ld + j) * kDotPanel * out_size(), args_.C.ld};
  }

  /// The skipped pairs of a block, in squares of kNativeTile where they are whole, else by rows of
  /// panels.
  void finish_natively(std::int64_t i, std::int64_t j, const Tile& block, const Place& to) const {
    const auto native = [&](std::int64_t x, std::int64_t y, std::int64_t rows, std::int64_t cols) {
      multiply_natively(i + x, j + y, rows, cols,
                        {to.C + (x * to.ld + y) * kDotPanel * out_size(), to.ld});
    };
    constexpr std::int64_t kSide = kNativeTile / kDotPanel;
    for (std::int64_t x0 = 0; x0 < block.rows; x0 += kSide) {
      const std::int64_t x1 = std::min(x0 + kSide, block.rows);
      for (std::int64_t y0 = 0; y0 < block.cols; y0 += kSide) {
        const std::int64_t y1 = std::min(y0 + kSide, block.cols);
        bool all = true;
        for (std::int64_t x = x0; x < x1; ++x)
          for (std::int64_t y = y0; y < y1; ++y) all &= skip_[x * block.cols + y];
        if (all) {
          native(x0, y0, x1 - x0, y1 - y0);
          continue;
        }
        for (std::int64_t x = x0; x < x1; ++x) {
          for (std::int64_t y = y0, end = y0; y < y1; y = end + 1) {
            for (end = y; end < y1 && skip_[x * block.cols + end];) ++end;
            if (end > y) native(x, y, 1, end - y);
          }
        }
      }
    }
  }

  void multiply_natively(std::int64_t i, std::int64_t j, std::int64_t panels_m,
                         std::int64_t panels_n, const Place& to) const {
    GemmTile t{};
    t.A = a_at(i, 0);
    t.a_row = a_.row;
    t.a_col = a_.col;
    t.B = b_at(j, 0);
    t.b_row = b_.row;
    t.b_col = b_.col;
    t.C = to.C;
    t.ldc = to.ld;
    t.m = rows_of(i, panels_m);
    t.n = cols_of(j, panels_n);
    t.k = args_.k;
    t.alpha = args_.alpha;
    t.beta = args_.beta;
    native_for(args_).run(t, work_);
  }

  const GemmArgs& call_;
  const GemmArgs args_;  // of the sums
  const bool finishes_;
  const std::int64_t entry_;
  const DotKernel& kernel_;
  const Plan& plan_;
  const Panels kept_;
  const Limits limits_;
  const Strides a_, b_;
  const std::byte *const A_, *const B_;
  std::byte* const C_;
  std::byte *const packed_b_, *const sums_;
  DotRange *const ranges_b_, *const ranges_a_;
  std::byte *const buffer_, *const packed_a_, *const block_;
  bool* const skip_;
  std::byte* const work_;
  const int index_, members_;
  TeamBarrier* const barrier_;
};

std::size_t workspace(const GemmArgs& args, const DotKernel& kernel, const DeviceInfo& device) {
  const Plan p = plan(args, kernel, device.num_threads);
  const Parts parts = parts_of(args, kernel, p);
  const auto bytes = std::size_t(parts.count() > 1 ? parts.count() * parts.bytes
                                                   : (p.by_entry ? p.threads : 1) * p.shared_bytes +
                                                         p.threads * p.thread_bytes);
  if (!p.prepacked_a && !p.prepacked_b) return bytes;
  return std::max(bytes, workspace(without_plan(args), kernel, device));
}

void run(const GemmArgs& args, const DotKernel& kernel, Queue& queue) {
  const int threads = queue.device().num_threads;
  const Plan p = plan(args, kernel, threads);
  const Panels kept = keep(args, kernel, p, threads);
  if (!kept.data && (p.prepacked_a || p.prepacked_b)) return run(without_plan(args), kernel, queue);
  const Parts parts = parts_of(args, kernel, p);
  std::byte* const memory = queue.workspace.data();
  const auto alone = [&](const GemmArgs& problem, const Plan& whole, const Panels& its_kept,
                         std::int64_t entry, std::byte* mine) {
    Product(problem, kernel, whole, its_kept, entry, mine, mine + whole.shared_bytes, 0, 1, nullptr)
        .run();
  };
  TeamBarrier barrier;
  parallel(parts.count() > 1 ? parts.count() : p.threads, [&](int thread, int granted) {
    kernel.begin();
    if (parts.count() > 1) {
      for (int i = thread; i < parts.count(); i += granted) {
        const Range rows = parts.rows_of(p, i), cols = parts.cols_of(p, i);
        const GemmArgs part = part_of(args, rows, cols);
        const std::int64_t first = p.prepacked_b ? cols.begin : p.prepacked_a ? rows.begin : 0;
        alone(part, plan(part, kernel, 1), kept.from(first, 0), 0, memory + thread * parts.bytes);
      }
    } else if (p.by_entry) {
      const Range range = share_of(args.batch, thread, granted);
      for (std::int64_t entry = range.begin; entry < range.end; ++entry)
        alone(args, p, kept, entry, memory + thread * (p.shared_bytes + p.thread_bytes));
    } else {
      std::byte* const own = memory + p.shared_bytes + thread * p.thread_bytes;
      for (std::int64_t entry = 0; entry < args.batch; ++entry) {
        if (entry > 0 && granted > 1) barrier.wait(granted);
        Product(args, kernel, p, kept, entry, memory, own, thread, granted, &barrier).run();
      }
    }
    kernel.end();
  });
}

}  // namespace

const char* gemm_amx_declines(const GemmArgs& args, const DeviceInfo& /*device*/) {
  if (isa().amx.empty()) return "this CPU has no AMX, or it is not to be used";
  if (!kernel_for(args, isa().amx) || args.in == DType::f32)
    return "bfloat16, half and int8 products only";
  if (args.k == 0) return "there is nothing to multiply";
  if (args.in == DType::f16 && args.k < kLeastHalfDepth)
    return "too few products: adding up the planes' would count";
  return nullptr;
}

const char* gemm_bf16x6_declines(const GemmArgs& args, const DeviceInfo& /*device*/) {
  if (isa().amx.empty()) return "this CPU has no AMX, or it is not to be used";
  if (args.in != DType::f32) return "float products only";
  if (args.compute != Compute::Default && args.compute != Compute::BF16x6)
    return "computes in planes of bfloat16";
  if (args.k == 0) return "there is nothing to multiply";
  if (args.compute == Compute::Default &&
      (std::min({args.m, args.n, args.k}) < kLeastSize ||
       double(args.m) * double(args.n) * double(args.k) < kLeastWork))
    return "too small: native arithmetic is as fast";
  return nullptr;
}

const char* gemm_dot_declines(const GemmArgs& args, const DeviceInfo& /*device*/) {
  constexpr const char* kLacking = "this CPU has no such dot products, or they are not to be used";
  if (isa().dot.empty()) return kLacking;
  if (args.in != DType::bf16 && args.in != DType::i8) return "bfloat16 and int8 products only";
  if (!kernel_for(args, isa().dot)) return kLacking;
  if (args.k == 0) return "there is nothing to multiply";
  return nullptr;
}

std::size_t gemm_amx_workspace(const GemmArgs& args, const DeviceInfo& device) {
  return workspace(args, *kernel_for(args, isa().amx), device);
}
std::size_t gemm_dot_workspace(const GemmArgs& args, const DeviceInfo& device) {
  return workspace(args, *kernel_for(args, isa().dot), device);
}

void gemm_amx(const GemmArgs& args, Queue& queue) {
  run(args, *kernel_for(args, isa().amx), queue);
}
void gemm_dot(const GemmArgs& args, Queue& queue) {
  run(args, *kernel_for(args, isa().dot), queue);
}

}  // namespace mblas::cpu
