// The kernel behind `thin`: one of m and n is short. The other operand, the long one, is read once,
// straight into registers, 16 bytes at a time and a step ahead; the short one lies in shared
// memory, a chunk of k at a time.
//
// The long operand is L×k, L the long one of m and n. Where it is contiguous along k, eight lanes
// read a line of a row, and each thread has a few rows and all columns of the short operand. Where
// it is contiguous along L, each thread has a vector of L, and lanes and warps take rows of k in
// turn. Either way what threads, warps and the blocks that k was cut over have found is added in a
// fixed order: in shared memory, then through the shared memory of a cluster, or, for a short L
// with a long k, by a second kernel.
#pragma once

#include <cooperative_groups.h>

#include <type_traits>

#include "cuda/early.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"

namespace mblas::cuda::thin {

inline constexpr int kThreads = 128, kWarps = kThreads / 32;
inline constexpr int kLanesAlongK = 8;  // of a row, where memory runs along k
inline constexpr int kMostCluster = 8;

/// How a thread's registers are used. kVectors: the long operand is read 16 bytes at a time.
template <class In, int kShort, bool kAlongK, bool kVectors>
struct Shape {
  using Acc = Accumulator<In>;
  /// Elements of a load, and loads of a thread that are under way.
  static constexpr int kVector = cuda::kVector<In>;
  static constexpr int kLoads = 8;
  /// Blocks that share a multiprocessor's registers.
  static constexpr int kBlocks = kVector < 4 ? 2 : 3;
  /// Rows of L of a thread, and loads along each.
  static constexpr int kRows = kAlongK ? kVector : 1;
  static constexpr int kEach = kLoads / kRows;
  static constexpr int kSums = (kAlongK ? kRows : kVector) * kShort;
  static constexpr int kWarpRows = kRows * 32 / kLanesAlongK;  // where memory runs along k
  /// Of the short operand in shared memory: elements along k, and of a vector.
  static constexpr int kChunk = std::min(2048, int((32 << 10) / (kShort * sizeof(Acc))));
  static constexpr int kPack = kAlongK ? kVector : std::min(kVector, kShort);
  static constexpr int kPitch = kAlongK ? kChunk + kVector : kShort;
  static constexpr int kShortBytes = int(sizeof(Acc)) * kPitch * (kAlongK ? kShort : kChunk);
};

/// Elements between the rows of sums of a tile in shared memory, and between the tiles of slices:
/// long ones begin in other banks.
template <class Acc>
__host__ __device__ constexpr int sums_pitch(int tile) {
  return tile < 32 ? tile : tile + int(16 / sizeof(Acc));
}
template <class Acc>
__host__ __device__ constexpr int slice_pitch(int tile, int count) {
  return count * sums_pitch<Acc>(tile) + int(16 / sizeof(Acc));
}

template <class Acc>
struct Problem : GemmProblem<Acc> {
  std::int64_t length = 0;  ///< the long one of m and n
  int count = 0;            ///< the short one
  int lanes = 0;            ///< memory along k: warps along L; else lanes of a warp along L
  int tile = 0;             ///< rows of L of a block
  std::int64_t line = 0;    ///< between two lines of the long operand
  Strides small{};          ///< of the short operand: along its short side, along k
  Strides c{};              ///< of C along L and along the short side
  DeviceInput Long{}, Short{};
  std::int64_t depth = 0;  ///< of k of a part
  int parts = 0;
  bool cluster = false;  ///< the parts of a tile are a cluster
  Acc* sums = nullptr;   ///< else, for more than one part: by element of C, then by part
  std::int64_t first_block = 0;
};

/// Stores an element of C of matrix `batch`.
template <class In>
__device__ void store_sum(const Problem<Accumulator<In>>& p, Accumulator<In> sum,
                          std::int64_t batch, std::int64_t l, int s) {
  void* const c = p.C.at(batch);
  store(p, sum, static_cast<In*>(c) + l * p.c.row + s * p.c.col);
}

template <class In, int kShort, bool kAlongK, bool kVectors>
__global__ void __launch_bounds__(kThreads, Shape<In, kShort, kAlongK, kVectors>::kBlocks)
    thin_kernel(const __grid_constant__ Problem<Accumulator<In>> p) {
  using S = Shape<In, kShort, kAlongK, kVectors>;
  using Acc = typename S::Acc;
  constexpr int kV = S::kVector, kRows = S::kRows, kEach = S::kEach;
  using Piece = Vector<In, kV>;
  using Small = Vector<Acc, S::kPack>;
  extern __shared__ __align__(16) unsigned char shared[];
  auto* const small = reinterpret_cast<Acc*>(shared);

  begin_early();
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  std::int64_t t = p.first_block + blockIdx.x;
  const int part = int(t % p.parts);
  t /= p.parts;
  const std::int64_t batch = t / p.tiles.rows;
  const std::int64_t l0 = t % p.tiles.rows * p.tile;
  const std::int64_t k0 = part * p.depth, k1 = min(k0 + p.depth, p.k);
  const auto* const x0 = static_cast<const In*>(p.Long.at(batch));
  const auto* const y0 = static_cast<const In*>(p.Short.at(batch));

  // Where this thread is in a block's tile, and the first k of it in a step of its warp.
  const int warps_l = kAlongK ? p.lanes : 1, warps_k = kWarps / warps_l;
  const int lanes_l = kAlongK ? 32 / kLanesAlongK : p.lanes, lanes_k = 32 / lanes_l;
  const int along_l = kAlongK ? lane / kLanesAlongK : lane & (lanes_l - 1);
  const int along_k = kAlongK ? lane % kLanesAlongK * kV : lane / lanes_l;
  const int hop = kAlongK ? kLanesAlongK * kV : lanes_k;  // from load to load along k
  const int step = hop * kEach;
  const int row0 = kAlongK ? warp % warps_l * S::kWarpRows + along_l : along_l * kV;
  const int slice_warp = warp / warps_l;

  // Rows or columns beyond the operand are read inside of it; their sums go nowhere.
  const std::int64_t here = l0 + row0 < p.length ? l0 + row0 : 0;
  const int more = int(min(p.length - 1 - here, std::int64_t(1 << 20)));
  const int last = kAlongK ? more / lanes_l : more;
  const In* const from = x0 + (kAlongK ? here * p.line + along_k : here + along_k * p.line);
  const std::int64_t rows = lanes_l * p.line;

  Piece x[kEach][kRows];
  // A load of each row, k after `from`, or zeros.
  const auto load = [&](Piece(&to)[kRows], std::int64_t k, bool inside) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const In* const q = from + (kAlongK ? k + min(r, last) * rows : k * p.line);
      if (!inside) {
        to[r] = {};
      } else if constexpr (kVectors) {
        to[r] = *reinterpret_cast<const Piece*>(q);
      } else {
#pragma unroll
        for (int e = 0; e < kV; ++e) to[r].e[e] = q[kAlongK ? e : min(e, last)];
      }
    }
  };

  Acc sums[S::kSums] = {};
  for (std::int64_t chunk = k0; chunk < k1; chunk += S::kChunk) {
    const int length = int(min(k1 - chunk, std::int64_t(S::kChunk)));
    const int rest = kAlongK ? length % kV : 0;  // no whole vector
    const int end = length - rest - along_k;
    int l = slice_warp * step;
#pragma unroll
    for (int u = 0; u < kEach; ++u) load(x[u], chunk + l + u * hop, l + u * hop < end);

    // The short operand, with zeros around it.
    if (chunk > k0) __syncthreads();
    const int padded = min((length + step - 1) / step * step, S::kChunk);
    if constexpr (kAlongK) {
      for (int i = thread; i < padded * kShort; i += kThreads) {
        const int s = p.small.col == 1 ? i / padded : i % kShort;
        const int k = p.small.col == 1 ? i % padded : i / kShort;
        Acc y = {};
        if (s < p.count && k < length) y = widen(y0[s * p.small.row + (chunk + k) * p.small.col]);
        small[s * S::kPitch + k] = y;
      }
    } else {
      constexpr int kGroups = kShort / S::kPack;
      for (int i = thread; i < padded * kGroups; i += kThreads) {
        const int g = p.small.col == 1 ? i / padded : i % kGroups;
        const int k = p.small.col == 1 ? i % padded : i / kGroups;
        Small y;
#pragma unroll
        for (int e = 0; e < S::kPack; ++e) {
          const int s = g * S::kPack + e;
          y.e[e] = {};
          if (s < p.count && k < length)
            y.e[e] = widen(y0[s * p.small.row + (chunk + k) * p.small.col]);
        }
        reinterpret_cast<Small*>(small + k * kShort)[g] = y;
      }
    }
    __syncthreads();

    for (; l < length; l += step * warps_k) {
#pragma unroll
      for (int u = 0; u < kEach; ++u) {
        if constexpr (kAlongK) {
#pragma unroll
          for (int s = 0; s < kShort; ++s)
#pragma unroll
            for (int g = 0; g < kV / S::kPack; ++g) {
              const Small y =
                  reinterpret_cast<const Small*>(small + s * S::kPitch + l + u * hop + along_k)[g];
#pragma unroll
              for (int e = 0; e < S::kPack; ++e)
#pragma unroll
                for (int r = 0; r < kRows; ++r) {
                  Acc& sum = sums[r * kShort + s];
                  sum = multiply_add(widen(x[u][r].e[g * S::kPack + e]), y.e[e], sum);
                }
            }
        } else {
#pragma unroll
          for (int g = 0; g < kShort / S::kPack; ++g) {
            const Small y =
                reinterpret_cast<const Small*>(small + (l + u * hop + along_k) * kShort)[g];
#pragma unroll
            for (int e = 0; e < S::kPack; ++e)
#pragma unroll
              for (int v = 0; v < kV; ++v) {
                Acc& sum = sums[(g * S::kPack + e) * kV + v];
                sum = multiply_add(widen(x[u][0].e[v]), y.e[e], sum);
              }
          }
        }
        asm volatile("" ::: "memory");  // loads earlier would want more registers
        const int then = l + u * hop + step * warps_k;
        load(x[u], chunk + then, then < end);
      }
    }
    if (rest > 0 && slice_warp == 0) {
#pragma unroll 1
      for (int e = lane % kLanesAlongK; e < rest; e += kLanesAlongK)
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const Acc value = widen(from[min(r, last) * rows + chunk + length - rest + e - along_k]);
#pragma unroll
          for (int s = 0; s < kShort; ++s) {
            Acc& sum = sums[r * kShort + s];
            sum = multiply_add(value, small[s * S::kPitch + length - rest + e], sum);
          }
        }
    }
  }

  // Sums in shared memory: by slice of k, then by column of the short operand, then along L.
  __syncthreads();
  const int pitch = sums_pitch<Acc>(p.tile), slice = slice_pitch<Acc>(p.tile, kShort);
  const int slices = kAlongK ? warps_k * kLanesAlongK : kWarps * lanes_k;
  auto* const found = small;
  if constexpr (kAlongK) {
    Acc* const to = found + (slice_warp * kLanesAlongK + lane % kLanesAlongK) * slice + row0;
#pragma unroll
    for (int s = 0; s < kShort; ++s)
#pragma unroll
      for (int r = 0; r < kRows; ++r) to[s * pitch + r * lanes_l] = sums[r * kShort + s];
  } else {
    Acc* const to = found + (warp * lanes_k + along_k) * slice + row0;
#pragma unroll
    for (int s = 0; s < kShort; ++s) {
      Vector<Acc, kV> x;
#pragma unroll
      for (int e = 0; e < kV; ++e) x.e[e] = sums[s * kV + e];
      *reinterpret_cast<Vector<Acc, kV>*>(to + s * pitch) = x;
    }
  }
  __syncthreads();

  const auto total_of = [&](const Acc* at) {
    Acc total = *at;
    for (int i = 1; i < slices; ++i) total = total + at[i * slice];
    return total;
  };
  // Along C's rows, whichever way they go.
  const int width = int(min(p.length - l0, std::int64_t(p.tile)));
  const bool along = p.c.row == 1;
  const auto each = [&](int first, int hop_threads, auto&& f) {
    for (int i = first; i < width * kShort; i += hop_threads) {
      const int l = along ? i % width : i / kShort, s = along ? i / width : i % kShort;
      if (s < p.count) f(l, s, s * pitch + l);
    }
  };
  if (p.parts == 1) {
    each(thread, kThreads,
         [&](int l, int s, int at) { store_sum<In>(p, total_of(found + at), batch, l0 + l, s); });
    return;
  }
  if (!p.cluster) {
    Acc* const to = p.sums + ((batch * p.length + l0) * p.count) * p.parts + part;
    each(thread, kThreads, [&](int l, int s, int at) {
      to[(std::int64_t(l) * p.count + s) * p.parts] = total_of(found + at);
    });
    return;
  }
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  each(thread, kThreads, [&](int, int, int at) { found[at] = total_of(found + at); });
  cluster.sync();
  each(part * kThreads + thread, p.parts * kThreads, [&](int l, int s, int at) {
    Acc total = *cluster.map_shared_rank(found + at, 0);
#pragma unroll 1
    for (int i = 1; i < p.parts; ++i) total = total + *cluster.map_shared_rank(found + at, i);
    store_sum<In>(p, total, batch, l0 + l, s);
  });
  meet_cluster();
#endif
}

/// C from the parts' sums: a warp for each element.
template <class In>
__global__ void __launch_bounds__(kThreads)
    add_parts_kernel(const __grid_constant__ Problem<Accumulator<In>> p) {
  using Acc = Accumulator<In>;
  begin_early();
  const std::int64_t matrix = p.length * p.count, all = matrix * p.tiles.batch;
  for (std::int64_t e = blockIdx.x * std::int64_t(kWarps) + threadIdx.x / 32; e < all;
       e += gridDim.x * std::int64_t(kWarps)) {
    Acc sum = {};
#pragma unroll 4
    for (int i = int(threadIdx.x) % 32; i < p.parts; i += 32) sum = sum + p.sums[e * p.parts + i];
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x % 32 != 0) continue;
    const std::int64_t batch = e / matrix, l = e % matrix / p.count, s = e % matrix % p.count;
    store_sum<In>(p, sum, batch, l, int(s));
  }
}

}  // namespace mblas::cuda::thin
