// Which tile, cluster and slices of k a product gets: an estimate of its time, of which
// the least is taken.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "cuda/gemm/clusters.hpp"
#include "cuda/gemm/estimates.hpp"
#include "cuda/gemm/hopper/boxes.hpp"

namespace mblas::cuda::gemm::hopper {

struct TileInfo {
  int rows, cols;
  bool alternating;
  double step, alone;    ///< microseconds of a stage, all blocks busy, and by itself
  double finish;         ///< of writing a tile's results
  bool plain = false;    ///< see Tile::kPlain
  bool turned = false;   ///< always of C^T
  double finishing = 1;  ///< a step with an epilogue, for which consumers wait, by one without
  constexpr bool joins() const { return has_joined(rows, cols); }
  /// Whether it is one of C^T; `turns`: Shape::turns.
  constexpr bool is_turned(bool turns) const {
    return turned || (plain && cols % 64 != 0 && turns);
  }
};

/// By number; figures of an H200.
inline constexpr TileInfo kTiles[] = {
    {128, 256, false, 0.732, 0.667, 1.7},
    {128, 192, false, 0.561, 0.561, 1.24},
    {128, 128, true, 0.388, 0.333, 0.9},
    {64, 128, true, 0.224, 0.151, 0.868},
};
/// Of bytes, whose results are of 32 bits. By power 16384×16384 is as fast by 128×128 as by 128×256
/// after other large products, but 20 % slower after a rest.
inline constexpr TileInfo kByteTiles[] = {
    {128, 256, false, 0.68, 0.65, 3.6},   {128, 192, false, 0.53, 0.5, 2.8},
    {128, 128, true, 0.36, 0.36, 1.28},   {64, 128, true, 0.228, 0.189, 0.97},
    {64, 64, true, 0.139, 0.0724, 0.897},
};

/// Those of 16-bit elements that C^T has as well, with the same figures.
inline constexpr TileInfo kOf240 = {128, 240, false, 0.637, 0.576, 1.73, true};
inline constexpr TileInfo kOf224 = {128, 224, false, 0.596, 0.557, 1.65, true};
inline constexpr TileInfo kOf208 = {128, 208, false, 0.555, 0.538, 1.57, true};
inline constexpr TileInfo kOf160 = {128, 160, true, 0.444, 0.337, 1.4, true};
inline constexpr TileInfo kOf112 = {128, 112, true, 0.338, 0.304, 0.796, true};
inline constexpr TileInfo kOf96 = {128, 96, true, 0.308, 0.278, 0.7, true};
inline constexpr TileInfo kOf80 = {128, 80, true, 0.271, 0.213, 0.837, true};
constexpr TileInfo of_transpose(TileInfo tile) {
  tile.turned = true;
  return tile;
}

/// Of 16-bit elements also those that leave less of a round empty: 1536×1536 is 132 tiles of
/// 128×144, as many as an H200 has multiprocessors.
inline constexpr TileInfo kHalfTiles[] = {
    {128, 256, false, 0.679, 0.593, 1.81},
    {128, 192, false, 0.542, 0.511, 1.48},
    {128, 128, true, 0.37, 0.271, 1, false, false, 0.96},
    {64, 128, true, 0.25, 0.142, 0.688},
    {64, 64, true, 0.156, 0.0998, 0.289, true},
    {128, 176, true, 0.483, 0.278, 1.83, true},
    {128, 144, true, 0.408, 0.393, 0.985, true},
    kOf112,
    kOf96,
    kOf80,
    {64, 128, true, 0.218, 0.192, 0.429, true, true},
    {64, 48, true, 0.151, 0.093, 0.265, true},
    {64, 80, true, 0.157, 0.114, 0.32, true},
    {64, 96, true, 0.174, 0.112, 0.36, true},
    {64, 112, true, 0.218, 0.134, 0.39, true},
    {64, 32, true, 0.12, 0.0739, 0.24, true},
    {64, 192, true, 0.285, 0.218, 0.644, true},
    {64, 192, true, 0.291, 0.224, 0.642, true, true},
    {128, 176, true, 0.485, 0.339, 1.54, true, true},
    of_transpose(kOf112),
    of_transpose(kOf96),
    of_transpose(kOf80),
    kOf240,
    kOf224,
    kOf208,
    kOf160,
    of_transpose(kOf240),
    of_transpose(kOf224),
    of_transpose(kOf208),
    of_transpose(kOf160),
};

/// Those whose rows' operand goes through registers: consumers that multiply alone lose the time in
/// which they start on a group of products.
inline constexpr TileInfo kRegisterTiles[] = {
    {128, 256, false, 0.721, 0.631, 1.46},
    {128, 192, false, 0.582, 0.489, 1.23},
    {128, 128, true, 0.465, 0.338, 0.741},
    {64, 128, true, 0.231, 0.23, 0.386},
};

/// For floats in planes: a step along k is all their products. (Of 128×192, two sets of sums leave
/// too few registers and stages: 1.2 times as long at 4096³.)
inline constexpr TileInfo kBf16x3Tiles[] = {
    {128, 128, false, 1.82, 1.82, 0.763},
    {64, 128, true, 1.12, 0.912, 0.435},
};
inline constexpr TileInfo kF16x2Tiles[] = {
    {128, 128, false, 1.17, 0.95, 1.4},
    {64, 128, true, 0.65, 0.55, 0.7},
};

/// For residues: bytes of a row are stored 128 at a time.
inline constexpr TileInfo kResidueTiles[] = {
    {128, 256, false, 0.70, 0.65, 1.5},
    {128, 128, true, 0.40, 0.31, 0.7},
    {64, 128, true, 0.28, 0.20, 0.4},
};

/// What can be chosen freely.
struct Config {
  int tile, cluster, slices;
  bool joined = false;  ///< see Schedule::joined
};

struct Shape {
  const TileInfo* tiles;
  int tile_count;
  std::int64_t m, n, batch;
  std::int64_t steps;  ///< of 128 bytes along k
  int processors;
  double workspace_bytes;   ///< that slices may take
  bool boxes;               ///< that results go out as, while the next tile is computed
  bool joins;               ///< and slices may be joined
  double lines_a, lines_b;  ///< of the cache that count for 128 bytes of a row: lines_of_row()
  bool plain = false;       ///< tiles may be plain
  bool turns = false;       ///< those of no whole boxes of columns are of C^T: only B runs across k
  bool across = false;      ///< clusters may go across: Schedule::across
  bool filled = false;      ///< k is less than a step, which the copy engine fills up
  int box_a = 0, box_b = 0;  ///< elements of an operand's box, where it does not run along k
  double memory = 4.9e6;     ///< bytes a microsecond that it can deliver: an H200's
  int result_bytes = 2;      ///< of an element of C
  double epilogue = 0;       ///< microseconds of an element of C, of a consumer
  double two_launches = 0;   ///< microseconds that a call of two kernels takes at least
  bool operator==(const Shape&) const = default;
};

/// Of the cache, that count for 128 bytes of a row of an operand whose rows start at addresses with
/// these bits. What does not start at a line is in two; but of whole sectors, 32 bytes, each comes
/// once, and along k the next step is in the second one. An H200, bf16 NT by 128x208, k 3536, with
/// leading dimensions of as many and of 3584 113.4 and 113.1 us; 2016x1272 by 128x160, k 1496, with
/// as many and 1536 19.5 and 13.6.
constexpr double lines_of_row(std::uintptr_t bits, bool along_k) {
  if (bits % 128 == 0) return 1;
  if (bits % 64 == 0) return along_k ? 1.05 : 1.45;
  if (bits % 32 == 0) return along_k ? 1.4 : 1.6;
  return 2;
}

struct Plan {
  int tile = 0, cluster = 1;
  bool across = false;              ///< see Schedule::across
  std::int64_t rows = 0, cols = 0;  ///< clusters of a matrix
  std::int64_t whole = 0;           ///< clusters that are not cut
  int slices = 1, slice_steps = 0;
  bool joined = false;
  double sum_bytes = 0;  ///< of slices, in the workspace
  double microseconds = std::numeric_limits<double>::infinity();

  std::int64_t clusters(std::int64_t batch) const { return rows * cols * batch; }
  std::int64_t items(std::int64_t batch) const {
    return whole + (clusters(batch) - whole) * slices;
  }
};

/// Estimates, in microseconds, fitted, with the tiles' figures, to times on an H200 in graphs,
/// where a kernel starts over the end of the one before.
struct Cost {
  static constexpr double kStart = 1.46;         // of a launch, until the first products
  static constexpr double kBeside = 0.253;       // more, where the launch before leaves no room
  static constexpr double kSecondKernel = 1.35;  // that adds up slices
  static constexpr double kSlice = 0.0365;       // of them, each
  static constexpr double kJoin = 0.391;         // of slices that are joined
  static constexpr double kJoinedSum = 1.15e-4;  // of each sum of theirs after the first
  static constexpr double kBytes = 4.93e6;       // of sums a microsecond, written and read
  static constexpr double kStepBytes = 1.08e5;   // of lines that all blocks fetch, each
  // Of what takes less time, products or memory, times its share of the other; of batches all of
  // it.
  static constexpr double kHidden = 0.1, kHiddenOfBatches = 0.041;
  static constexpr double kRagged = 1.22;  // of narrow boxes whose rows end inside of a sector
  // Lines of boxes that begin at 32 columns of 64, and at 16, on the average of all tiles.
  static constexpr double kFromHalfBoxes = 1.22, kFromQuarters = 1.41;
  static constexpr double kWholeBoxes = 1.05;  // of a step of such tiles
  static constexpr double kLine = 4.44e-4;     // that a block for itself fetches
  // Of a line that blocks of several tiles ask for at a time, by a request for each row of a box
  // that has a part of it: they wait for each other at the second-level cache.
  static constexpr double kRequest = 7.54e-4;
  // A row of a narrow box counts as so many lines, and its requests for so much less.
  static constexpr double kNarrowLines = 1.69, kNarrowRequests = 0.228;
  static constexpr double kMemoryBytes = 6.95e6;  // of A, B and C a microsecond, all blocks busy
  static constexpr double kFewBlocks = 0.432;     // power of their share by which fewer are slower
  // Of the memory's rate, for more bytes than the second-level cache holds; of rows that slices
  // read a part of, longer.
  static constexpr double kMemoryShare = 0.906, kSlicedRows = 1.03, kCacheBytes = 48e6;
  // Of clusters across, and of a step and what it takes alone, of those of 128 rows a tile, which
  // ask the second-level cache for less: in few rounds.
  static constexpr double kAcross = 0.1, kAcrossStep = 0.9;
  // Of those of 64 rows a tile, where several rows of tiles share what they do not: in one cluster
  // a row, which so is fetched once, and in several.
  static constexpr double kAcrossRow = 0.9, kAcrossRows = 1.1;
  // Where tiles are cut after full rounds: what that fills of large products is lost to the clock.
  static constexpr double kCut = 1.003;
  // Of a batch that memory limits, each byte that its blocks fetch, most of it from the cache.
  static constexpr double kFetched = 5e-8;
  // What a tile takes at least of consumers that alternate, of which two have one each, and each
  // element of it, however short k is: until the last of its results is on its way.
  static constexpr double kTurn = 0.522, kTurnElement = 3.59e-5;
  // An element of results that are not boxes, more than in boxes, also while others multiply; of
  // the last tile, which nothing hides, of a consumer.
  static constexpr double kByThreads = 1e-4, kLastByThreads = 1.85e-4;
  // Steps of blocks that fetch all for themselves (the clock is lower where more power is drawn;
  // but with GELU 128×128 takes 205 us at 4096³, and 224 in clusters of two), of clusters of two
  // that have one tile, of those with 64 rows a tile, also where what is shared is of the shorter
  // operand, which the second-level cache has anyway, and of clusters of four.
  static constexpr double kApart = 1.02, kPair = 1.03, kSmallPair = 1.06, kIdlePair = 1.12,
                          kFour = 0.947;
  // Of what a step takes longer while all blocks are busy: where two neighbouring multiprocessors
  // are, which share a way to the second-level cache.
  static constexpr double kNeighbours = 0.167;
};

constexpr int kHeight = 2048;  // rows of C that are gone through together, for the L2 cache
/// How many slices can be joined.
inline constexpr int kJoined[] = {2, 3, 4, 6};
/// Of how many tiles at most: each block of their clusters has a multiprocessor, and of two slices
/// a part of the device is free, as else tiles that are not cut take less time than estimated.
constexpr double most_joined(int slices, bool shares, int processors) {
  return clusters_at_once(slices, processors) * (slices == 2 && shares ? 0.85 : 1);
}

/// How a configuration's clusters go: with tiles one below the other or side by side.
enum class Direction { Down, Across };

/// With clusters in one direction, for `x` of C^T if the tile is; with no rows where there is none.
inline Plan plan_of(const Shape& x, const Config& c, Direction direction) {
  const TileInfo& t = x.tiles[c.tile];
  // Columns that are no whole boxes run along k, or of some tiles neither operand does. Slices have
  // to be long enough.
  const bool whole_boxes = x.box_b > 0 && t.cols % 64 != 0;
  if ((t.plain &&
       (!x.plain || (whole_boxes && !(x.box_a > 0 && has_whole_boxes(t.rows, t.cols))))) ||
      (c.slices > 1 && x.steps < 2 * c.slices))
    return {};
  Plan p;
  p.tile = c.tile;
  p.cluster = c.cluster;
  p.across = direction == Direction::Across;
  const int below = p.across ? 1 : c.cluster, aside = p.across ? c.cluster : 1;
  // The blocks of a cluster bring eight columns or rows each, of which some may come twice: four
  // blocks, 24. Of few rows of C slices are faster without clusters.
  const std::int64_t shared_units = p.across
                                        ? x.box_a > 0 ? t.rows : std::min<std::int64_t>(x.m, t.rows)
                                        : std::min<std::int64_t>(x.n, t.cols);
  if (c.cluster > divide_up(shared_units, 8) * 8 / 6 || (t.turned && c.cluster > 1 && c.slices > 1))
    return {};
  p.rows = divide_up(x.m, std::int64_t(t.rows) * below);
  p.cols = divide_up(x.n, std::int64_t(t.cols) * aside);
  const std::int64_t all = p.clusters(x.batch),
                     at_once = whole_clusters_at_once(c.cluster, x.processors);
  // By clusters of four several tiles a block take much longer (bf16 4096³ 241 us for 174), and
  // one of 64×64 takes 0.6 us, however short k is (8192×8192×64 77 us, by 128×256 54).
  if ((c.cluster == 4 || t.rows * t.cols <= 64 * 64) && all > at_once) return {};
  p.slice_steps = int(divide_up(x.steps, c.slices));
  p.slices = x.steps == 0 ? 1 : int(divide_up(x.steps, p.slice_steps));
  p.joined = c.joined;
  p.whole = p.slices == 1 ? all : p.joined ? 0 : all / at_once * at_once;
  if (p.slices == 1) p.slice_steps = int(x.steps);
  const double cut = double(all - p.whole);
  const bool shares = std::min(p.rows, p.cols) > 1;
  if (!p.joined) p.sum_bytes = cut * p.slices * c.cluster * t.rows * t.cols * 4;
  if (p.slices != c.slices || p.sum_bytes > x.workspace_bytes ||
      double(p.items(x.batch)) >= double(std::numeric_limits<int>::max()) / 2)
    return {};
  if (p.joined) {
    if (!x.joins || !t.joins() || double(all) > most_joined(c.slices, shares, x.processors))
      return {};
  }

  // The blocks of a cluster share what they fetch of B, or side by side of A. Of few rows or
  // columns no more is fetched. Narrow boxes that do not run along k are as many rows as a step is
  // long.
  constexpr std::int64_t kManySteps = 16, kNarrow = 64, kFewRounds = 2;
  const bool many = x.steps >= kManySteps && (c.slices == 1 || c.joined);
  const auto lines_of = [&](int most, std::int64_t size, double of_row, int box) {
    std::int64_t lines = std::min<std::int64_t>(most, size);
    if (box > 0 && most % box != 0) {  // tiles begin between boxes, and bring the next one's too
      lines = divide_up(lines, box) * box;
      of_row = std::max(of_row, most % 32 == 0 ? Cost::kFromHalfBoxes : Cost::kFromQuarters);
    }
    const bool ragged = box > 0 && size < box && size % (box / 4) != 0;
    return double(std::max<std::int64_t>(lines, box)) * of_row * (x.filled ? 2 : 1) *
           (ragged ? Cost::kRagged : 1);
  };
  const bool narrow =
      has_narrow_boxes(t.rows) && x.box_a == kBoxOf16Bits && box_bytes_of(x.m) < 128;
  const double lines =
      (narrow ? Cost::kNarrowLines * x.box_a : lines_of(t.rows, x.m, x.lines_a, x.box_a)) / aside +
      lines_of(t.cols, x.n, x.lines_b, x.box_b) / below;
  const auto requests_of = [&](std::int64_t size, int box, std::int64_t tiles) {
    return box > size ? double(std::min(tiles, at_once)) * box / double(size) : 0;
  };
  const double requests =
      std::max((narrow ? Cost::kNarrowRequests : 1) * requests_of(x.m, x.box_a, p.cols),
               requests_of(x.n, x.box_b, p.rows));
  const double shared = requests * Cost::kRequest;
  const auto less_across = [&] {
    if (t.rows > 64) return all <= kFewRounds * at_once ? Cost::kAcrossStep : 1;
    return p.rows == 1 ? 1 : p.cols == 1 ? Cost::kAcrossRow : Cost::kAcrossRows;
  };
  const double less = (p.across ? less_across() : 1) * (whole_boxes ? Cost::kWholeBoxes : 1);
  const double products = less * t.step * (x.epilogue > 0 ? t.finishing : 1);
  const double step = std::max({products, lines * 128 / Cost::kStepBytes, shared});
  const bool once = all <= at_once;
  const double together = c.cluster == 1            ? once || x.epilogue > 0 ? 1 : Cost::kApart
                          : c.cluster == 4          ? Cost::kFour
                          : t.rows > 64             ? once ? Cost::kPair : 1
                          : !p.across && x.n <= x.m ? Cost::kIdlePair
                                                    : Cost::kSmallPair;
  // A block for itself waits for its lines, unless it takes few steps, whose boxes run along k or
  // are narrow.
  const bool waits = many || (std::min(x.m, x.n) > kNarrow && x.box_a + x.box_b > 0);
  const double alone =
      std::max({less * t.alone, shared, waits ? std::min(lines * Cost::kLine, step) : 0});
  const auto round = [&](double blocks, double steps) {
    const double busy = std::min(blocks / double(at_once), 1.0);
    const double half = x.processors / 2;
    const double neighbours =
        c.cluster > 1 || c.joined ? 1 : std::clamp((blocks - half) / (half / 4), 0.0, 1.0);
    const double share = Cost::kNeighbours * neighbours + (1 - Cost::kNeighbours) * busy;
    return steps * together * (alone + (step - alone) * share);
  };
  const double whole = double(p.whole), items = cut * p.slices;
  const double rounds = std::ceil(whole / double(at_once));
  const double rounds_cut = std::ceil(items / double(at_once));
  const double steps = double(x.steps);
  const double elements = double(t.rows) * t.cols / (t.alternating ? 1 : 2);  // of a consumer
  const double turn =
      t.alternating ? Cost::kTurn + elements * (Cost::kTurnElement + x.epilogue) : 0;
  const bool writes = p.whole > 0 || p.slices == 1 || p.joined;
  const double finish =
      t.finish + (writes ? elements * (x.epilogue + (x.boxes ? 0 : Cost::kLastByThreads)) : 0);
  const auto in_turn = [&](double count, double time) {
    return count > 1 ? time + (count - 1) * std::max(time, turn) : count * time;
  };
  const double loops =
      in_turn(rounds, round(whole, steps)) + in_turn(rounds_cut, round(items, p.slice_steps));
  // Fewer blocks read memory more slowly: 112 of 132 at 3.8 TB/s.
  const double all_steps = whole * steps + items * p.slice_steps;  // of clusters
  const double busy = all_steps / (double(at_once) * (rounds * steps + rounds_cut * p.slice_steps));
  const double bytes =
      double(x.batch) * (double(x.m + x.n) * steps * 128 + double(x.m * x.n) * x.result_bytes);
  const double from_memory = bytes > Cost::kCacheBytes
                                 ? (p.slices > 1 ? Cost::kSlicedRows : 1) * bytes /
                                       (Cost::kMemoryShare * x.memory * std::sqrt(busy))
                                 : 0;
  const double from_cache = bytes / (Cost::kMemoryBytes * std::pow(busy, Cost::kFewBlocks));
  const double memory = steps > 0 ? std::max(from_memory, from_cache) : 0;
  const double fetched = x.batch == 1 || !x.boxes || loops == 0
                             ? 0
                             : all_steps * c.cluster * 128 *
                                   (double(t.rows) / aside + double(t.cols) / below) *
                                   std::min(memory / loops, 1.0);
  // The kernel before leaves room for blocks of this one where those are at most half of what the
  // device holds. Consumers that alternate hide the writing of all results but the last.
  const bool beside =
      std::min(double(p.items(x.batch)), double(at_once)) * c.cluster * 2 <= x.processors;
  const auto [least, most] = std::minmax(loops, memory);
  const double hidden = x.batch > 1 ? Cost::kHiddenOfBatches * least
                                    : Cost::kHidden * least * (least / std::max(most, 1e-9));
  p.microseconds =
      Cost::kStart + (beside ? 0 : Cost::kBeside) + finish + most + hidden +
      Cost::kFetched * fetched +
      (t.alternating ? x.boxes ? 0 : Cost::kByThreads * elements * std::max(rounds - 1, 0.0)
                     : (rounds + rounds_cut - 1) * finish);
  if (p.joined) {
    p.microseconds += Cost::kJoin + Cost::kJoinedSum * (c.slices - 1) * t.rows * t.cols;
  } else if (p.slices > 1) {
    // Of tiles that C ends in only what is inside is written. Those of the last band are the last.
    const std::int64_t height = std::max(kHeight / (t.rows * c.cluster), 1);
    const bool at_end = x.batch == 1 && cut <= double(p.rows - (p.rows - 1) / height * height);
    const double inside = (at_end ? double(x.n - (p.cols - 1) * t.cols) / t.cols : 1) *
                          std::min(double(x.m) / (t.rows * c.cluster), 1.0);
    p.microseconds +=
        Cost::kSecondKernel + Cost::kSlice * p.slices + 2 * p.sum_bytes * inside / Cost::kBytes;
  }
  if (p.slices > 1 && p.whole > 0) p.microseconds *= Cost::kCut;
  if (p.slices > 1 && !p.joined) p.microseconds = std::max(p.microseconds, x.two_launches);
  if (p.across) p.microseconds += Cost::kAcross;
  return p;
}

/// With no rows where the configuration is not for the shape.
inline Plan plan_of(Shape x, const Config& c) {
  if (c.tile >= x.tile_count) return {};
  const TileInfo& t = x.tiles[c.tile];
  if (t.turned && t.cols % 64 != 0 && x.turns) return {};  // as the one that is not always turned
  if (t.is_turned(x.turns)) {
    std::swap(x.m, x.n);
    std::swap(x.lines_a, x.lines_b);
    std::swap(x.box_a, x.box_b);
  }
  // Clusters across have no block without columns. Of one row of tiles, of 64 rows each, they have
  // none without rows either; of several, whichever is faster.
  const bool one_row = t.rows == 64 && x.m <= t.rows;
  if (!x.across || c.cluster == 1 || c.slices > 1 || !has_across(t.rows, t.cols) ||
      !(one_row || divide_up(x.n, t.cols) % c.cluster == 0))
    return plan_of(x, c, Direction::Down);
  const Plan across = plan_of(x, c, Direction::Across);
  if (one_row || t.rows > 64) return across;
  const Plan down = plan_of(x, c, Direction::Down);
  return down.microseconds < across.microseconds ? down : across;
}

/// f(config) for every one, in the order of their numbers.
template <class F>
constexpr void for_each_config(std::span<const TileInfo> tiles, F&& f) {
  const int count = int(tiles.size());
  for (int tile = 0; tile < count; ++tile)
    for (const int cluster : {1, 2, 4})
      for (const int slices : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64})
        if (cluster < 4 || slices == 1) f(Config{tile, cluster, slices});
  for (int tile = 0; tile < count; ++tile)
    if (tiles[std::size_t(tile)].joins())
      for (const int slices : kJoined) f(Config{tile, 1, slices, true});
}

/// The fastest plan by the estimate; with no rows where there is none.
inline Plan choose(const Shape& x) {
  Plan best;
  for_each_config({x.tiles, std::size_t(x.tile_count)}, [&](const Config& c) {
    const Plan p = plan_of(x, c);
    if (p.microseconds < best.microseconds) best = p;
  });
  return best;
}

}  // namespace mblas::cuda::gemm::hopper
