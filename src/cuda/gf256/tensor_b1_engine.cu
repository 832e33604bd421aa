// The binary products of tensor_b1.cu, by wgmma.and.popc: blocks that stay, one warp that copies,
// two warpgroups that multiply.
//
// For each of a tile's 24 products in turn, each warpgroup adds up the popcounts of 64×256 elements
// over all of k, and then xors the product's constant into the bytes of C, kept in registers, whose
// popcount is odd: one warpgroup does so while the other one multiplies. The blocks of a cluster
// compute tiles one below the other and copy half of B's tile each, for both.
//
// Limit: the tensor cores, 64×256×256 bits in 128 clocks of a multiprocessor, and 24 times that for
// as many products of bytes. They are busy for 90% of the time at 4096^3.
#include "cuda/gemm/hopper/copy.cuh"
#include "cuda/gemm/hopper/product.cuh"
#include "cuda/gf256/tensor_b1.cuh"

namespace mblas::cuda::gf256::b1 {
namespace {

using namespace gemm::hopper;

constexpr int kWarpgroup = 128, kConsumers = 2;
constexpr int kThreads = kWarpgroup * (1 + kConsumers);
constexpr int kBytesA = kTileRows * kStageDepth;
constexpr int kSteps = kStageDepth / kGranule;  // of a stage
constexpr int kSums = kTileCols / 2;            // of a thread

struct Ring {
  unsigned stage = 0, parity = 0;

  __device__ void advance() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

struct Barriers {
  unsigned base;

  __device__ Barrier full(unsigned stage) const { return {base + stage * 8}; }
  __device__ Barrier empty(unsigned stage) const { return {base + (kStages + stage) * 8}; }
};

// clang-format off
#define MBLAS_8(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3]), \
  "+r"(d[i + 4]), "+r"(d[i + 5]), "+r"(d[i + 6]), "+r"(d[i + 7])
#define MBLAS_32(i) MBLAS_8(i), MBLAS_8(i + 8), MBLAS_8(i + 16), MBLAS_8(i + 24)
/// d = popcounts of a & b, added to d where `add`: 64 rows, 256 columns, 256 bits of k.
__device__ void multiply(unsigned (&d)[kSums], std::uint64_t a, std::uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, add;\n}"
      : MBLAS_32(0), MBLAS_32(32), MBLAS_32(64), MBLAS_32(96)
      : "l"(a), "l"(b), "r"(add));
}
#undef MBLAS_8
#undef MBLAS_32
// clang-format on

__device__ void produce(const Problem& p, unsigned stages, Barriers barriers, unsigned rank) {
  Ring ring;
  const unsigned items = p.rows * p.cols;
  for (unsigned index = blockIdx.x / p.cluster; index < items; index += gridDim.x / p.cluster) {
    const int row = int(index % p.rows * p.cluster + rank) * kTileRows;
    const int col = int(index / p.rows) * kTileCols;
#pragma unroll 1
    for (int product = 0; product < kProducts; ++product) {
#pragma unroll 1
      for (int g = 0; g < p.granules; g += kSteps, ring.advance()) {
        const unsigned a = stages + ring.stage * kStageBytes, b = a + kBytesA;
        const Barrier full = barriers.full(ring.stage);
        barriers.empty(ring.stage).wait(ring.parity ^ 1);
        full.arrive_expecting(kStageBytes);
        load_box(a, p.a, g * kGranule, row, product, full);
        // Of B, each block of a pair copies half, to both.
        constexpr int kHalf = kTileCols / 2;
        if (p.cluster == 2) {
          load_box_to(3, b + rank * (kHalf * kStageDepth), p.b, g * kGranule,
                      col + int(rank) * kHalf, product, full);
        } else {
#pragma unroll
          for (int half = 0; half < 2; ++half)
            load_box(b + unsigned(half) * (kHalf * kStageDepth), p.b, g * kGranule,
                     col + half * kHalf, product, full);
        }
      }
    }
  }
}

/// Xors `constant` into the bytes of C whose sum is odd.
__device__ void fold(unsigned (&bytes)[kSums / 4], const unsigned (&d)[kSums], unsigned constant) {
#pragma unroll
  for (int half = 0; half < 2; ++half)  // rows 8 apart
#pragma unroll
    for (int i = 0; i < kSums / 8; ++i) {
      const unsigned* const sums = &d[i * 8 + half * 2];
      const unsigned low = __byte_perm(sums[0], sums[1], 0x0040);
      const unsigned high = __byte_perm(sums[4], sums[5], 0x4000);
      bytes[half * (kSums / 8) + i] ^= (__byte_perm(low, high, 0x7610) & 0x01010101) * constant;
    }
}

/// 16 bytes of a row of C, of which `count` are inside.
__device__ void store(std::uint8_t* c, std::int64_t count, uint4 x, bool accumulate) {
  __builtin_assume(__isGlobal(c));
  if (count >= 16 && reinterpret_cast<std::uintptr_t>(c) % 16 == 0) {
    auto& to = *reinterpret_cast<uint4*>(c);
    if (accumulate) {
      const uint4 old = to;
      x = {x.x ^ old.x, x.y ^ old.y, x.z ^ old.z, x.w ^ old.w};
    }
    to = x;
    return;
  }
#pragma unroll 1
  for (int i = 0; i < 16 && i < count; ++i) {
    c[i] = std::uint8_t(accumulate ? c[i] ^ x.x : x.x);
    x.x = __funnelshift_r(x.x, x.y, 8);
    x.y = __funnelshift_r(x.y, x.z, 8);
    x.z = __funnelshift_r(x.z, x.w, 8);
    x.w >>= 8;
  }
}

__device__ void consume(const Problem& p, unsigned stages, Barriers barriers, unsigned rank) {
  const int consumer = warpgroup() - 1, thread = int(threadIdx.x) % kWarpgroup;
  const int lane = thread % 32;
  const auto release = [&](unsigned stage) {
    if (lane < int(p.cluster)) barriers.empty(stage).arrive_at(unsigned(lane));
  };
  const Descriptor first_a(stages + unsigned(consumer) * (kBytesA / 2), 0);
  const Descriptor first_b(stages + kBytesA, 0);
  Ring ring;
  unsigned d[kSums] = {};
  const unsigned items = p.rows * p.cols;
  for (unsigned index = blockIdx.x / p.cluster; index < items; index += gridDim.x / p.cluster) {
    unsigned bytes[kSums / 4] = {};
#pragma unroll 1
    for (int product = 0; product < kProducts; ++product) {
      unsigned before = 0;
#pragma unroll 1
      for (int g = 0; g < p.granules; g += kSteps, ring.advance()) {
        const Descriptor a = first_a + ring.stage * kStageBytes;
        const Descriptor b = first_b + ring.stage * kStageBytes;
        barriers.full(ring.stage).wait(ring.parity);
        begin_products();
#pragma unroll
        for (int step = 0; step < kSteps; ++step)
          multiply(d, a + unsigned(step) * kGranule, b + unsigned(step) * kGranule, g + step);
        commit_products();
        wait_products<1>();
        if (g > 0) release(before);
        before = ring.stage;
      }
      wait_products<0>();
      pin(d);
      release(before);
      fold(bytes, d, p.constant[product]);
    }
    const std::int64_t row0 = std::int64_t(index % p.rows * p.cluster + rank) * kTileRows +
                              consumer * (kTileRows / 2) + thread / 32 * 16 + lane / 4;
    const std::int64_t col0 = std::int64_t(index / p.rows) * kTileCols + lane % 4 * 16;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row = row0 + half * 8;
      if (row >= p.m) continue;
      std::uint8_t* const c = static_cast<std::uint8_t*>(p.C.at(row)) + p.first_col;
#pragma unroll
      for (int i = 0; i < kSums / 8; i += 4) {
        const unsigned* const x = &bytes[half * (kSums / 8) + i];
        const std::int64_t col = col0 + i / 4 * kColumnGroup;
        store(c + col, p.n - col, {x[0], x[1], x[2], x[3]}, p.accumulate);
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads, 1) engine_kernel(const __grid_constant__ Problem p) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  const unsigned stages = (shared_address(shared) + 1023) / 1024 * 1024;
  const Barriers barriers{stages + kStages * kStageBytes};
  const unsigned rank = p.cluster > 1 ? rank_in_cluster() : 0;
  if (threadIdx.x == 0) {
    prefetch_map(p.a);
    prefetch_map(p.b);
    for (unsigned stage = 0; stage < kStages; ++stage) {
      barriers.full(stage).init(1);
      barriers.empty(stage).init(4 * kConsumers * int(p.cluster));
    }
    fence_barriers();
  }
  meet_cluster();
  if (threadIdx.x < kWarpgroup) {
    leave_registers<40>();
    if (threadIdx.x == 0) produce(p, stages, barriers, rank);
  } else {
    take_registers<232>();
    consume(p, stages, barriers, rank);
  }
  if (p.cluster > 1) sync_cluster();  // nobody leaves whose memory the other block may still use
#endif
}

}  // namespace

void run_engine(const Problem& p, const CudaQueue& queue) {
  const DeviceGuard guard(queue.device().ordinal);
  allow_shared(reinterpret_cast<const void*>(engine_kernel), kShared, queue.device().ordinal);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {p.cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  const unsigned units = unsigned(std::max(queue.device().compute_units, 2));
  config.gridDim = std::min(p.rows * p.cols, units / p.cluster) * p.cluster;
  config.blockDim = kThreads;
  config.dynamicSmemBytes = kShared;
  config.stream = queue.stream();
  config.attrs = &attribute;
  config.numAttrs = 1;
  cuda_check(cudaLaunchKernelEx(&config, engine_kernel, p), "kernel launch");
}

}  // namespace mblas::cuda::gf256::b1
