// gemm on Hopper's tensor cores: blocks that stay, one warpgroup that copies, others that multiply.
//
// The producer's one thread, or two, keeps a ring of stages in shared memory full, each 128 bytes
// of k of a tile of A and of B, by the copy engine; two warpgroups of consumers multiply out of it
// by wgmma and keep their sums in registers. Barriers say which stages are full and which are
// empty. In cooperation the consumers each have half of a tile's rows; alternating, each has tiles
// of its own, and one multiplies while the other one stores. Of operands in planes, a step along k
// takes several stages, out of which slots.cuh makes its products; floats whose rows do not run
// along k go through registers, by fragments.cuh. The blocks of a cluster compute tiles one below
// the other and copy a share of the columns' panel each, for all of them; or side by side, of the
// rows' panel, where that saves more. Tiles that would leave a round incomplete are cut
// along k; their sums go to the workspace and are added up by a second kernel in a fixed order.
// Where all tiles are cut and a block has one slice, those of a tile can be a cluster that adds
// them up, in the same order, out of each other's shared memory.
//
// Limit: the tensor cores, 2,048 multiply-adds of 16 bits a clock and multiprocessor, and the power
// that they draw: 128 bytes of k of a tile of 128×256 take 1,024 clocks, for which 48 KiB come from
// the second-level cache, 32 in a cluster. docs/BENCHMARKING.md has what is reached.
#pragma once

#include <utility>

#include "cuda/gemm/hopper/fragments.cuh"
#include "cuda/gemm/hopper/results.cuh"
#include "cuda/gemm/hopper/slots.cuh"

namespace mblas::cuda::gemm::hopper {

/// f<0>() … f<kCount - 1>().
template <int kCount, class F>
__device__ void for_each_number(F&& f) {
  [&]<int... kNumbers>(std::integer_sequence<int, kNumbers...>) {
    (f.template operator()<kNumbers>(), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

/// A tile of C comes to the next stages.
template <class T, class Acc>
__device__ void bring_results(const Problem<Acc>& p, Ring<T::kStages>& ring, unsigned stages,
                              Barriers<T::kStages> barriers, int row0, int col0, int batch) {
  using Old = OldResults<T>;
#pragma unroll 1
  for (int share = 0; share < Old::kStages; ++share, ring.advance()) {
    const Barrier full = barriers.full(ring.stage);
    barriers.empty(ring.stage).wait(ring.parity ^ 1);
    full.arrive_expecting(Old::kBoxes * kBoxBytes);
#pragma unroll 1
    for (int box = 0; box < Old::kBoxes; ++box)
      load_box(stages + ring.stage * T::kStageBytes + unsigned(box * kBoxBytes), p.map_c,
               col0 + box % Old::kAcross * 64,
               row0 + share * T::kRowsEach + box / Old::kAcross * 64, batch, full);
  }
}

/// What is asked for of a tile's rows of A or columns of B, from `begin` on, by block `rank` of
/// `cluster` that share it. Of an operand that is not along k these are boxes of kElements rows or
/// columns each.
template <class In, bool kAlongK, int kSize>
struct Piece {
  static constexpr int kElements = kDepthBytes / kBytesOf<In>;
  static constexpr unsigned kBoxBytes = kElements * kDepthBytes;
  static constexpr int kBoxes = (kSize + kElements - 1) / kElements;

  const Panels& panels;
  const CUtensorMap& map;  // along k
  int begin;
  int at;          // along k: where the block's share begins
  int boxes;       // else: that there are
  unsigned bytes;  // of a stage, by all blocks

  __device__ Piece(const Panels& p, int begin, unsigned rank = 0, unsigned cluster = 1)
      : panels(p), map(kAlongK ? p.map_at(begin) : p.map), begin(begin) {
    if constexpr (kAlongK) {
      const int units = p.units_at(begin), share = p.share_at(begin);
      at = min(int(rank) * share, units - share);
      bytes = units == 0 ? 0 : cluster * unsigned(share) * kDepthBytes;
    } else {
      boxes = min(max((p.size - begin + kElements - 1) / kElements, 0), kBoxes);
      bytes = unsigned(boxes) * kElements * unsigned(p.box_bytes);
    }
  }

  __device__ void load(unsigned to, int k, int matrix, Barrier full) const {
    if constexpr (kAlongK) {
      if (bytes > 0) load_box(to, map, k, begin, matrix, full);
    } else {
#pragma unroll
      for (int c = 0; c < kBoxes; ++c)
        if (c < boxes)
          load_box(to + unsigned(c) * kBoxBytes, panels.map_of_step(k), begin + c * kElements, k,
                   matrix, full);
    }
  }
  /// The block's share, to all blocks.
  __device__ void load_share(unsigned rank, unsigned cluster, unsigned to, int k, int matrix,
                             Barrier full) const {
    const auto all = static_cast<unsigned short>((1u << cluster) - 1);
    if constexpr (kAlongK) {
      load_box_to(all, to + unsigned(at * kDepthBytes), map, k, begin + at, matrix, full);
    } else {
      const bool by_rows = panels.box_rows < kElements;
      const unsigned first = by_rows ? rank * unsigned(panels.box_rows) : 0;
#pragma unroll
      for (int c = 0; c < kBoxes; ++c)
        if (c < boxes && (by_rows || (unsigned(c) & (cluster - 1)) == rank))
          load_box_to(all, to + unsigned(c) * kBoxBytes + first * unsigned(panels.box_bytes),
                      panels.map_of_step(k), begin + c * kElements, k + int(first), matrix, full);
    }
  }
};

/// By thread `producer` of T::kProducers, which bring one step after another in turn.
template <class T, class In, bool kAAlongK, bool kBAlongK>
__device__ void produce(const Problem<Sum<In>>& p, unsigned stages, Barriers<T::kStages> barriers,
                        int producer) {
  constexpr int kElements = kDepthBytes / kBytesOf<In>, kPlanes = kPlanesOf<In>;
  constexpr int kProducers = T::kProducers;
  static_assert(kProducers == 1 || (kPlanes == 1 && !kReads<T, In>));
  const Schedule& s = p.schedule;
  const InCluster in = place_in_cluster<T>(s);
  Ring<T::kStages> ring;
  ring.advance(unsigned(producer));
  int ahead = producer;  // so many steps is the next one that is this thread's
  for (unsigned index = blockIdx.x / s.cluster; index < s.items; index += gridDim.x / s.cluster) {
    const Schedule::Item item = s[index];
    const int row0 = in.first_row<T>(item), col0 = in.first_col<T>(item);
    const int batch_a = p.shared_a ? 0 : item.batch * kPlanes;
    const int batch_b = p.shared_b ? 0 : item.batch * kPlanes;
    const Piece<In, kAAlongK, T::kRows> piece_a(p.panels_a, row0, in.col, in.cols);
    const Piece<In, kBAlongK, T::kCols> piece_b(p.panels_b, col0, in.row, in.rows);
    const unsigned bytes = piece_a.bytes + piece_b.bytes;
    wait_for_earlier_kernels();
    int step = item.begin + ahead;
#pragma unroll 1
    for (; step < item.end; step += kProducers) {
      const int k = step * kElements;
#pragma unroll 1
      for (int slot = 0; slot < kPlanes; ++slot, ring.template advance_by<kProducers>()) {
        const unsigned a = stages + ring.stage * T::kStageBytes, b = a + T::kBytesA;
        const Barrier full = barriers.full(ring.stage);
        const int matrix_a = batch_a + plane_of_a<kPlanes>(slot);
        const int matrix_b = batch_b + plane_of_b<kPlanes>(slot);
        barriers.empty(ring.stage).wait(ring.parity ^ 1);
        full.arrive_expecting(bytes);
        if constexpr (T::kAcross)
          piece_a.load_share(in.col, in.cols, a, k, matrix_a, full);
        else
          piece_a.load(a, k, matrix_a, full);
        if (in.rows > 1)
          piece_b.load_share(in.row, in.rows, b, k, matrix_b, full);
        else
          piece_b.load(b, k, matrix_b, full);
      }
    }
    if constexpr (kProducers > 1) ahead = step - item.end;
    if constexpr (kReads<T, In>)
      if (p.brings_c && !item.cut)
        bring_results<T>(p, ring, stages, barriers, row0, col0, item.batch);
  }
  // Nobody leaves whom another block may still tell that a stage is empty. (A barrier of the
  // cluster that says so waits until the whole device sees what was stored.)
  if (s.cluster > 1)
    for (int i = 0; i < T::kStages; i += kProducers, ring.template advance_by<kProducers>())
      barriers.empty(ring.stage).wait(ring.parity ^ 1);
}

/// Whether what of a tile lies beyond C is not multiplied, in units of 64 rows or columns: of large
/// ones, for whose edges slices along k, and power, would be spent. (Of alternating consumers with
/// fragments there are no registers for it.)
template <class T>
inline constexpr bool kTrims = T::kRows == 128 && !(T::kByRegisters && T::kAlternating);

/// The first kFew of the sums `d`.
template <int kFew, class Acc, int kCount>
__device__ Acc (&first_of(Acc (&d)[kCount]))[kFew] {
  static_assert(kFew <= kCount);
  return reinterpret_cast<Acc(&)[kFew]>(d);
}

/// The products of a consumer's rows of a panel of A with one of B: added to d or, unless kAdd, in
/// place of it. `step_a`: to the next 32 bytes along k, within A's rows or 16 of them on. Only of
/// the first kBlocks blocks of 64 rows and kCols columns.
template <class T, class In, bool kAAlongK, bool kBAlongK, bool kAdd, int kCols = T::kCols,
          int kBlocks = T::kBlocks, class DescriptorA>
__device__ void multiply_panels(Sums<T, Sum<In>>& d, const DescriptorA& a, const Descriptor& b,
                                unsigned step_a) {
  constexpr unsigned kStepB = kBAlongK ? 32 : 16 * kDepthBytes;
  for_each_number<kDepthProducts * kBlocks>([&]<int kNumber>() {
    constexpr int l = kNumber / kBlocks, i = kNumber % kBlocks;
    multiply<Element<In>, kAAlongK, kBAlongK, kCols, kAdd || (l > 0)>(
        first_of<kCols / 2>(d[i]), a + (unsigned(i) * kBoxBytes + unsigned(l) * step_a),
        b + unsigned(l) * kStepB);
  });
}

/// The same of half a stage, the rows of A in registers; `b`: that half of the panel of B.
template <class T, int kCols = T::kCols>
__device__ void multiply_fragments(Sums<T, float>& d, const Fragments<T>& a, const Descriptor& b) {
#pragma unroll
  for (int l = 0; l < kDepthProducts / 2; ++l)
#pragma unroll
    for (int i = 0; i < T::kBlocks; ++i)
      multiply<Tf32, kCols>(first_of<kCols / 2>(d[i]), a[l][i], b + unsigned(l) * 32);
}

template <class T, class In, bool kAAlongK, bool kBAlongK>
__device__ void consume(const Problem<Sum<In>>& p, unsigned stages, Barriers<T::kStages> barriers,
                        const Consumer& self) {
  constexpr int kPerRound = T::kAlternating ? kConsumers : 1;
  constexpr int kSlots = kPlanesOf<In>;  // stages of a step along k
  static_assert(kSlots <= T::kStages);
  const Schedule& s = p.schedule;
  const unsigned clusters = gridDim.x / s.cluster, first = blockIdx.x / s.cluster;
  const InCluster in = place_in_cluster<T>(s);
  const int share = T::kAlternating ? 0 : self.number;
  Ring<T::kStages> ring;
  [[maybe_unused]] const FragmentPlaces places(self.thread);
  // Of the consumer's rows: along k, rows of 128 bytes; else boxes of 64.
  const unsigned rows_a = stages + unsigned(share) * T::kRowsEach * kDepthBytes;
  const auto first_a = [&] {
    if constexpr (kNarrowBoxes<T, In, kAAlongK>)
      return NarrowDescriptor(rows_a, unsigned(p.panels_a.box_bytes));
    else
      return Descriptor(rows_a, kBoxBytes);
  }();
  const unsigned step_a = kAAlongK                        ? 32
                          : kNarrowBoxes<T, In, kAAlongK> ? 16 * unsigned(p.panels_a.box_bytes)
                                                          : 16 * kDepthBytes;
  const Descriptor first_b(stages + T::kBytesA, kBoxBytes);
  const auto panel_a = [&](unsigned stage) { return first_a + stage * T::kStageBytes; };
  const auto panel_b = [&](unsigned stage) { return first_b + stage * T::kStageBytes; };
  const int lane = self.thread % 32;
  const unsigned told = T::kJoins ? rank_in_cluster() : unsigned(lane);
  const auto release = [&](unsigned stage) {
    if (lane < int(s.cluster)) barriers.empty(stage).arrive_at(told);
  };
  // Consumers that alternate go through the tiles in step, so that each passes the turn on as often
  // as the other one waits for it.
  const unsigned mine = s.items > first ? (s.items - first - 1) / clusters + 1 : 0;
  const unsigned rounds = (mine + kPerRound - 1) / kPerRound;
  const auto index = [&](unsigned round, int consumer) {
    return first + (round * kPerRound + unsigned(consumer)) * clusters;
  };
  const int which = kPerRound == 1 ? 0 : self.number;
  const auto stages_of = [&](unsigned item) {
    return unsigned(s.steps_of(item) * kSlots +
                    (kReads<T, In> && p.brings_c && item < s.whole ? OldResults<T>::kStages : 0));
  };
  Schedule::Item item = s[index(0, which)];
  wait_for_earlier_kernels();
  for (unsigned round = 0; round < rounds; ++round) {
    const bool has = index(round, which) < s.items;
    if constexpr (T::kAlternating) {
      if (self.number == 1) ring.advance(stages_of(index(round, 0)));
      if (round > 0 || self.number > 0) sync_named(kTurn + self.number, 2 * kWarpgroup);
    }
    Sums<T, Sum<In>> sums = {};
    const int steps = !has          ? 0
                      : kSlots == 1 ? item.end - item.begin
                                    : s.steps_of(index(round, which));
    unsigned before = 0;
    // Of the tile's first kCols columns, and kBlocks blocks of 64 of the consumer's rows.
    const auto multiply_steps = [&]<int kCols, int kBlocks = T::kBlocks>() {
      if constexpr (T::kByRegisters && kBlocks > 0) {
        // The fragments of one half of a stage are loaded while the products of the other are in
        // work. More groups, of fewer products, are slower.
        Fragments<T> fragments[2];
#pragma unroll 1
        for (int step = 0; step < steps; ++step, ring.advance()) {
          barriers.full(ring.stage).wait(ring.parity);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            places.template load<T>(fragments[half], rows_a + ring.stage * T::kStageBytes, half);
            begin_products();
            multiply_fragments<T, kCols>(sums, fragments[half],
                                         panel_b(ring.stage) + unsigned(half * kDepthBytes / 2));
            commit_products();
            wait_products<1>();
            if (half == 0 && step > 0) release(before);
          }
          before = ring.stage;
        }
      } else {
#pragma unroll 1
        for (int step = 0; step < steps; ++step, ring.advance()) {
          barriers.full(ring.stage).wait(ring.parity);
          if constexpr (kBlocks > 0) {
            begin_products();
            multiply_panels<T, In, kAAlongK, kBAlongK, true, kCols, kBlocks>(
                sums, panel_a(ring.stage), panel_b(ring.stage), step_a);
            commit_products();
            wait_products<1>();
          }
          if (step > 0) release(before);
          before = ring.stage;
        }
      }
    };
    if constexpr (kSlots == 1 && kTrims<T>) {
      const int rows = p.panels_a.size - in.first_row<T>(item) - share * T::kRowsEach;
      const int cols = p.panels_b.size - in.first_col<T>(item);
      // Zero before the branches: within one, products of bytes would be serialized for it.
#pragma unroll
      for (int i = 0; i < T::kBlocks; ++i) pin(sums[i]);
      if (rows <= (T::kBlocks - 1) * 64)
        multiply_steps.template operator()<T::kCols, T::kBlocks - 1>();
      else if (T::kCols > 64 && cols <= 64)
        multiply_steps.template operator()<std::min(64, T::kCols)>();
      else if (T::kCols > 128 && cols <= 128)
        multiply_steps.template operator()<std::min(128, T::kCols)>();
      else if (T::kCols > 192 && cols <= 192)
        multiply_steps.template operator()<std::min(192, T::kCols)>();
      else
        multiply_steps.template operator()<T::kCols>();
    } else if constexpr (kSlots == 1) {
      multiply_steps.template operator()<T::kCols>();
    } else {
      // The tensor cores add with truncation: what they add up in a few steps goes to sums that are
      // rounded.
      Sums<T, Sum<In>> d = {};
      constexpr int kProducts = int(sizeof(kProductsOf<kSlots>) / sizeof(SlotProduct));
      constexpr SlotProduct kLast = kProductsOf<kSlots>[kProducts - 1];
      constexpr int kSteps = kStepsOfSlots<kSlots>;
      static_assert(kSteps * kSlots <= T::kStages);
      const auto some_steps = [&]<int kCount>() {
        unsigned stage[kCount][kSlots];
        for_each_number<kCount>([&]<int kStep>() {
          for_each_number<kProducts>([&]<int kNumber>() {
            constexpr SlotProduct product = kProductsOf<kSlots>[kNumber];
            static_assert(kNumber >= kSlots || (product.a == kNumber && product.b == kNumber));
            if constexpr (kNumber < kSlots) {
              barriers.full(ring.stage).wait(ring.parity);
              stage[kStep][kNumber] = ring.stage;
              ring.advance();
              begin_products();
            }
            if constexpr (kNumber == kProducts - 1 && kStep == kCount - 1) commit_products();
            multiply_panels<T, In, kAAlongK, kBAlongK, (kStep + kNumber > 0)>(
                d, panel_a(stage[kStep][product.a]), panel_b(stage[kStep][product.b]), step_a);
          });
          commit_products();
        });
        // Groups: those of the steps before the last, all of the last one's but the last, that.
        for_each_number<kCount>([&]<int kStep>() {
          wait_products<kCount - kStep>();
          for_each_number<kSlots>([&]<int kSlot>() {
            if (kStep < kCount - 1 || (kSlot != kLast.a && kSlot != kLast.b))
              release(stage[kStep][kSlot]);
          });
        });
        wait_products<0>();
        release(stage[kCount - 1][kLast.a]);
        release(stage[kCount - 1][kLast.b]);
#pragma unroll
        for (int i = 0; i < T::kBlocks; ++i) {
          pin(d[i]);
#pragma unroll
          for (int e = 0; e < T::kCols / 2; ++e) sums[i][e] += d[i][e];
        }
      };
      int left = steps;
#pragma unroll 1
      for (; left >= kSteps; left -= kSteps) some_steps.template operator()<kSteps>();
      if constexpr (kSteps > 1)
        if (left > 0) some_steps.template operator()<1>();
    }
    if constexpr (T::kAlternating) {
      if (self.number == 0 || round + 1 < rounds)
        arrive_named(kTurn + 1 - self.number, 2 * kWarpgroup);
    }
    // While the last products are in work, as divisions take their time: after the last round they
    // would be waited for. Two sets of sums leave no registers to keep an item in.
    const Schedule::Item next =
        kSlots == 1 && round + 1 < rounds ? s[index(round + 1, which)] : item;
    if constexpr (kSlots == 1) {
      wait_products<0>();
#pragma unroll
      for (int i = 0; i < T::kBlocks; ++i) pin(sums[i]);
      if (steps > 0) release(before);
    }
    // The ring is at C as it was, or at the next tile.
    const OldResults<T> old = {stages, barriers, ring, share};
    if (has)
      finish<In, T>(p, self, kSlots == 1 ? item : s[index(round, which)], in, sums, old);
    else if (T::kJoins)
      sync_cluster();  // as in finish()
    if constexpr (kReads<T, In>)
      if (has && p.brings_c && index(round, which) < s.whole)
#pragma unroll 1
        for (int i = 0; i < OldResults<T>::kStages; ++i, ring.advance()) {
          barriers.full(ring.stage).wait(ring.parity);  // who has no rows in C has not
          release(ring.stage);
        }
    if constexpr (T::kAlternating) {
      if (self.number == 0 && index(round, 1) < s.items) ring.advance(stages_of(index(round, 1)));
    }
    item = next;
  }
  if (self.thread == 0) wait_stores_read<0>();  // before shared memory is somebody else's
}

/// Of planes, as those found that made them: on all threads.
template <class Acc>
__device__ Ranges ranges_of_operands(const Problem<Acc>& p) {
  __shared__ Ranges shared[kThreads / 32];
  Ranges all;
  const auto add = [&](const Ranges* ranges) {
    for (int i = int(threadIdx.x); i < p.range_count; i += kThreads) {
      const Ranges x = ranges[i];
      all.a.add(x.a);
      all.b.add(x.b);
    }
  };
  add(p.ranges);
  if (p.kept_ranges) add(p.kept_ranges);
  return reduce<kThreads>(all, shared);
}

template <class T, class In, bool kAAlongK, bool kBAlongK>
__global__ void __launch_bounds__(kThreads, 1)
    engine_kernel(const __grid_constant__ Problem<Sum<In>> p) {
  static_assert(T::kByRegisters == (std::is_same_v<In, Tf32> && !kAAlongK));
  static_assert(kBAlongK || T::kBytesB % kBoxBytes == 0);
#if __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  const unsigned stages = (shared_address(shared) + kAlignment - 1) / kAlignment * kAlignment;
  const unsigned out = stages + T::kStages * T::kStageBytes;
  const Barriers<T::kStages> barriers{out + T::kOutBytes};
  if (threadIdx.x == 0) {
    prefetch_map(p.panels_a.map);
    prefetch_map(p.panels_b.map);
    if (p.boxes) prefetch_map(p.map_c);
    if constexpr (T::kPlain) prefetch_map(p.map_narrow);
    constexpr int kWarps = 4 * (T::kAlternating ? 1 : kConsumers);  // that empty a stage
    for (unsigned stage = 0; stage < T::kStages; ++stage) {
      barriers.full(stage).init(1);
      barriers.empty(stage).init(kWarps * int(p.schedule.cluster));
    }
    fence_barriers();
  }
  if (T::kJoins || p.schedule.cluster > 1)
    meet_cluster();
  else
    __syncthreads();
  // The earlier kernels are waited for where their results are needed, behind what can be found out
  // before: 1,100 cycles from here to the first box.
  let_next_kernel_begin();
  if constexpr (kPlanesOf < In >> 1) {
    wait_for_earlier_kernels();
    const bool serves = suits_planes<In>(ranges_of_operands(p), p.k);
    if (blockIdx.x == 0 && threadIdx.x == 0) *p.left = !serves;
    if (!serves) return;
  }
  if (threadIdx.x < kWarpgroup) {
    leave_registers<40>();
    if (threadIdx.x % 32 == 0 && threadIdx.x < 32 * T::kProducers)
      produce<T, In, kAAlongK, kBAlongK>(p, stages, barriers, int(threadIdx.x) / 32);
    if (T::kJoins) sync_cluster();  // as in finish()
  } else {
    take_registers<232>();
    const int number = warpgroup() - 1;
    const Consumer self = {number, int(threadIdx.x) % kWarpgroup,
                           out + unsigned(number) * T::kBoxes * kBoxBytes};
    consume<T, In, kAAlongK, kBAlongK>(p, stages, barriers, self);
  }
  if (T::kJoins) meet_cluster();  // nobody leaves whose shared memory another block may still read
#endif
}

}  // namespace mblas::cuda::gemm::hopper
