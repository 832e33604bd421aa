// gemm on Hopper's tensor cores: blocks that stay, one warpgroup that copies, others that multiply.
//
// The producer's one thread keeps a ring of stages in shared memory full, each 128 bytes of k of a
// tile of A and of B, by the copy engine; two warpgroups of consumers multiply out of it by wgmma
// and keep their sums in registers. Barriers say which stages are full and which are empty. In
// cooperation the consumers each have half of a tile's rows; alternating, each has tiles of its
// own, and one multiplies while the other one stores. The two blocks of a cluster compute tiles one
// below the other and copy half of the columns' panel each, for both. Tiles that would leave a
// round incomplete are cut along k; their sums go to the workspace and are added up by a second
// kernel in a fixed order.
//
// Limit: the tensor cores, 2,048 multiply-adds of 16 bits a clock and multiprocessor, and the power
// that they draw: 128 bytes of k of a tile of 128×256 take 1,024 clocks, for which 48 KiB come from
// the second-level cache, 32 in a cluster. docs/BENCHMARKING.md has what is reached.
#pragma once

#include "cuda/gemm/hopper/results.cuh"

namespace mblas::cuda::gemm::hopper {

/// A place in the ring of stages.
template <int kStages>
struct Ring {
  unsigned stage = 0, parity = 0;

  __device__ void advance(unsigned steps = 1) {
    stage += steps;
    parity ^= stage / kStages & 1;
    stage %= kStages;
  }
};

template <int kStages>
struct Barriers {
  unsigned base;

  __device__ Barrier full(unsigned stage) const { return {base + stage * 8}; }
  __device__ Barrier empty(unsigned stage) const { return {base + (kStages + stage) * 8}; }
};

template <class T, class In, bool kAAlongK, bool kBAlongK>
__device__ void produce(const Problem<Sum<In>>& p, unsigned stages, Barriers<T::kStages> barriers,
                        unsigned rank) {
  constexpr int kElements = kDepthBytes / kBytesOf<In>;
  const Schedule& s = p.schedule;
  const bool pair = s.cluster == 2;
  Ring<T::kStages> ring;
  for (unsigned index = blockIdx.x / s.cluster; index < s.items; index += gridDim.x / s.cluster) {
    const Schedule::Item item = s[index];
    const int row0 = (item.row * int(s.cluster) + int(rank)) * T::kRows, col0 = item.col * T::kCols;
    const int batch_a = p.shared_a ? 0 : item.batch, batch_b = p.shared_b ? 0 : item.batch;
#pragma unroll 1
    for (int step = item.begin; step < item.end; ++step, ring.advance()) {
      const unsigned a = stages + ring.stage * T::kStageBytes, b = a + T::kBytesA;
      const Barrier full = barriers.full(ring.stage);
      const int k = step * kElements;
      barriers.empty(ring.stage).wait(ring.parity ^ 1);
      full.arrive_expecting(T::kStageBytes);
      if constexpr (kAAlongK) {
        load_box(a, p.map_a, k, row0, batch_a, full);
      } else {
#pragma unroll
        for (int c = 0; c < T::kRows / kElements; ++c)
          load_box(a + c * kBoxBytes, p.map_a, row0 + c * kElements, k, batch_a, full);
      }
      // Of B, each block of a pair copies half, to both.
      if constexpr (kBAlongK) {
        if (pair)
          load_box_to(3, b + rank * (T::kBytesB / 2), p.map_b, k, col0 + int(rank) * T::kCols / 2,
                      batch_b, full);
        else
          load_box(b, p.map_b, k, col0, batch_b, full);
      } else {
        constexpr int kChunks = T::kCols / kElements;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
          if (!pair)
            load_box(b + c * kBoxBytes, p.map_b, col0 + c * kElements, k, batch_b, full);
          else if (c / ((kChunks + 1) / 2) == int(rank))
            load_box_to(3, b + c * kBoxBytes, p.map_b, col0 + c * kElements, k, batch_b, full);
        }
      }
    }
  }
}

template <class T, class In, bool kAAlongK, bool kBAlongK>
__device__ void consume(const Problem<Sum<In>>& p, unsigned stages, Barriers<T::kStages> barriers,
                        unsigned rank, const Consumer& self) {
  constexpr int kPerRound = T::kAlternating ? kConsumers : 1;
  // Steps of 32 bytes along k: within the rows of 128 bytes, or 16 rows on.
  constexpr unsigned kStepA = kAAlongK ? 32 : 16 * 128, kStepB = kBAlongK ? 32 : 16 * 128;
  const Schedule& s = p.schedule;
  const unsigned clusters = gridDim.x / s.cluster, first = blockIdx.x / s.cluster;
  const int lane = self.thread % 32, share = T::kAlternating ? 0 : self.number;
  Ring<T::kStages> ring;
  const auto release = [&](unsigned stage) {
    if (lane < int(s.cluster)) barriers.empty(stage).arrive_at(unsigned(lane));
  };
  // Consumers that alternate go through the tiles in step, so that each passes the turn on as often
  // as the other one waits for it.
  const unsigned mine = s.items > first ? (s.items - first - 1) / clusters + 1 : 0;
  const unsigned rounds = (mine + kPerRound - 1) / kPerRound;
  const auto index = [&](unsigned round, int consumer) {
    return first + (round * kPerRound + unsigned(consumer)) * clusters;
  };
  const int which = kPerRound == 1 ? 0 : self.number;
  Schedule::Item item = s[index(0, which)];
  for (unsigned round = 0; round < rounds; ++round) {
    const bool has = index(round, which) < s.items;
    if constexpr (T::kAlternating) {
      if (self.number == 1) ring.advance(unsigned(s.steps_of(index(round, 0))));
      if (round > 0 || self.number > 0) sync_named(kTurn + self.number, 2 * kWarpgroup);
    }
    Sum<In> d[T::kBlocks][T::kCols / 2] = {};
    unsigned before = 0;
    const int steps = has ? item.end - item.begin : 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step, ring.advance()) {
      barriers.full(ring.stage).wait(ring.parity);
      // A consumer's rows: along k, rows of 128 bytes; else boxes of 64.
      const unsigned b = stages + ring.stage * T::kStageBytes + T::kBytesA;
      const unsigned a = b - T::kBytesA + unsigned(share) * T::kRowsEach * kDepthBytes;
      begin_products();
#pragma unroll
      for (int l = 0; l < 4; ++l)
#pragma unroll
        for (int i = 0; i < T::kBlocks; ++i)
          multiply<In, kAAlongK, kBAlongK, T::kCols>(
              d[i], descriptor(a + unsigned(i) * kBoxBytes + unsigned(l) * kStepA, kBoxBytes),
              descriptor(b + unsigned(l) * kStepB, kBoxBytes));
      commit_products();
      wait_products<1>();
      if (step > 0) release(before);
      before = ring.stage;
    }
    if constexpr (T::kAlternating) {
      if (self.number == 0 || round + 1 < rounds)
        arrive_named(kTurn + 1 - self.number, 2 * kWarpgroup);
    }
    // While the last products are in work, as divisions take their time.
    const Schedule::Item next = s[index(round + 1, which)];
    wait_products<0>();
#pragma unroll
    for (int i = 0; i < T::kBlocks; ++i) pin(d[i]);
    if (steps > 0) release(before);
    if constexpr (T::kAlternating) {
      if (self.number == 0 && index(round, 1) < s.items)
        ring.advance(unsigned(s.steps_of(index(round, 1))));
    }
    if (has) finish<In, T>(p, self, item, rank, d);
    item = next;
  }
  if (self.thread == 0) wait_stores_read<0>();  // before shared memory is somebody else's
}

template <class T, class In, bool kAAlongK, bool kBAlongK>
__global__ void __launch_bounds__(kThreads, 1)
    engine_kernel(const __grid_constant__ Problem<Sum<In>> p) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  const unsigned stages =
      (shared_address(shared) + T::kAlignment - 1) / T::kAlignment * T::kAlignment;
  const unsigned out = stages + T::kStages * T::kStageBytes;
  const Barriers<T::kStages> barriers{out + T::kOutBytes};
  const unsigned rank = p.schedule.cluster > 1 ? rank_in_cluster() : 0;
  if (threadIdx.x == 0) {
    prefetch_map(p.map_a);
    prefetch_map(p.map_b);
    if (p.way == Way::Boxes) prefetch_map(p.map_c);
    constexpr int kWarps = 4 * (T::kAlternating ? 1 : kConsumers);  // that empty a stage
    for (unsigned stage = 0; stage < T::kStages; ++stage) {
      barriers.full(stage).init(1);
      barriers.empty(stage).init(kWarps * int(p.schedule.cluster));
    }
    fence_barriers();
  }
  sync_cluster();
  let_next_kernel_begin();
  wait_for_earlier_kernels();
  if (threadIdx.x < kWarpgroup) {
    leave_registers<40>();
    if (threadIdx.x == 0) produce<T, In, kAAlongK, kBAlongK>(p, stages, barriers, rank);
  } else {
    take_registers<232>();
    const int number = int(threadIdx.x) / kWarpgroup - 1;
    const Consumer self = {number, int(threadIdx.x) % kWarpgroup,
                           out + unsigned(number) * T::kBoxes * kBoxBytes};
    consume<T, In, kAAlongK, kBAlongK>(p, stages, barriers, rank, self);
  }
  sync_cluster();  // nobody leaves whose shared memory the other block may still use
#endif
}

}  // namespace mblas::cuda::gemm::hopper
