// Doubles, real or complex, of which one of m and n is at most 16 and the other long: limited by
// reading the long operand once. The fp64 tensor cores multiply 16 rows by 8 columns: the short
// operand is the rows, as it is or, of complex elements, its real and imaginary parts; the long one
// is the columns. It goes straight to registers, 16 bytes at a time and 128 of a thread under way:
// which columns and which k an instruction gets is free as long as both operands agree, so a lane's
// vector may belong to two instructions. The short operand comes through shared memory, a chunk of
// k at a time. k is cut into parts (parts.cuh).
//
// On an H200 with 4096x4096, ratios to cuBLAS's gemmEx: f64 along k 0.99 with 2 rows and 0.92 with
// 16, otherwise 1.04 and 0.93; cf64 with 8 rows 0.95 and 0.93. With clusters in place of a second
// kernel it was 0.75.
#include <algorithm>
#include <string>

#include "core/config_list.hpp"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/parts.cuh"
#include "cuda/gemm/tensor_f64.hpp"
#include "cuda/kernels.hpp"

namespace mblas::cuda::gemm {
namespace thin_f64_file {

constexpr int kWarps = 4, kThreads = kWarps * 32;
constexpr int kWarpLines = 16, kLines = kWarps * kWarpLines;  // of the long operand
constexpr int kBlocks = 4;                                    // that share a multiprocessor
constexpr int kStages = 3;
constexpr int kSteps = 4;  // of k, whose loads are under way together
constexpr int kMostShort = 16;
constexpr int kLeastLong = 128;

template <class T>
struct ThinProblem : parts::Problem<T> {
  DeviceInput Long{}, Short{};
  std::int64_t line = 0;  ///< elements between the lines of the long operand in memory
  Strides small{};        ///< of the short operand: along its short side, along k
  bool conjugate_small = false;
};

template <class T>
struct Sides {
  static constexpr bool kComplex = is_complex_v<T>;
  static constexpr int kShort = kComplex ? 8 : 16;
  static constexpr int kStep = kComplex ? 4 : 8;  // of k, for two loads of a lane
  static constexpr int kChunk = 512 / int(sizeof(T));
  static constexpr int kPitch = kChunk + 64 / int(sizeof(T));  // rows begin in other banks
  static constexpr int kStage = kPitch * kShort;
  static constexpr int kSharedBytes = kStages * kStage * int(sizeof(T));
};

template <class T, bool kAlongK, bool kVectors>
__global__ void __launch_bounds__(kThreads, kBlocks)
    thin_f64_kernel(const __grid_constant__ ThinProblem<T> p) {
  using S = Sides<T>;
  constexpr bool kComplex = S::kComplex;
  extern __shared__ __align__(16) unsigned char memory[];
  auto* const shared = reinterpret_cast<T*>(memory);
  begin_early();

  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int g = lane / 4, t = lane % 4;
  const parts::Work w = parts::work_of(p);
  const std::int64_t l0 = w.block * kLines, k0 = w.k0, k1 = w.k1;
  const auto* const x = static_cast<const T*>(p.Long.at(w.batch));
  const auto* const y = static_cast<const T*>(p.Short.at(w.batch));

  // The two loads of a step: of lines that are neighbours, or of two rows along them. Lines beyond
  // the operand are read inside of it; their sums go nowhere.
  const int kl = kComplex ? t : 2 * t;  // of the first load in a step
  const bool by_rows = !kComplex && !kAlongK;
  const T* from[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::int64_t l = l0 + warp * kWarpLines + (by_rows ? 2 * g : 8 * i + g);
    const std::int64_t inside = l < p.length ? l : 0, k = k0 + kl + (by_rows ? i : 0);
    from[i] = x + (kAlongK ? inside * p.line + k : inside + k * p.line);
  }
  const std::int64_t hop = S::kStep * (kAlongK ? 1 : p.line);
  const bool pair = kAlongK || l0 + warp * kWarpLines + 2 * g + 1 < p.length;
  Vector<T> v[kSteps][2];
  const auto load = [&](Vector<T>(&to)[2], int left) {  // of k, from this step on
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      to[i] = {};
      const int k = kl + (by_rows ? i : 0);
      if constexpr (kVectors || kComplex) {
        if (k < left) to[i] = *reinterpret_cast<const Vector<T>*>(from[i]);
      } else {
        if (k < left) to[i].e[0] = from[i][0];
        if (kAlongK ? k + 1 < left : k < left && pair) to[i].e[1] = from[i][1];
      }
      from[i] += hop;
    }
  };
  const auto left_after = [&](std::int64_t k) { return int(min(k1 - k, std::int64_t(S::kStep))); };

  // The short operand's next chunk, with zeros around it.
  std::int64_t fetched = k0;
  int slot = 0;
  const auto fetch = [&] {
    if (fetched < k1) {
#pragma unroll
      for (int i = thread; i < S::kShort * S::kChunk; i += kThreads) {
        const bool by_k = p.small.col == 1;
        const int s = by_k ? i / S::kChunk : i % S::kShort;
        const int k = by_k ? i % S::kChunk : i / S::kShort;
        const bool inside = s < p.count && fetched + k < k1;
        const T* const e = inside ? y + s * p.small.row + (fetched + k) * p.small.col : y;
        copy_async<sizeof(T)>(shared_address(shared + slot * S::kStage + s * S::kPitch + k), e,
                              inside ? int(sizeof(T)) : 0);
      }
      fetched += S::kChunk;
      slot = slot + 1 == kStages ? 0 : slot + 1;
    }
    commit_copies();
  };

  double sums[2][4] = {};
#pragma unroll
  for (int u = 0; u < kSteps; ++u) load(v[u], left_after(k0 + u * S::kStep));
#pragma unroll
  for (int i = 0; i + 1 < kStages; ++i) fetch();
  int stage = 0;
#pragma unroll 1
  for (std::int64_t chunk = k0; chunk < k1; chunk += S::kChunk) {
    wait_copies<kStages - 2>();
    __syncthreads();
    fetch();
    const T* const small = shared + stage * S::kStage + g * S::kPitch + kl;
    stage = stage + 1 == kStages ? 0 : stage + 1;
#pragma unroll 1
    for (int k = 0; k < S::kChunk; k += kSteps * S::kStep) {
#pragma unroll
      for (int u = 0; u < kSteps; ++u) {
        const T* const at = small + k + u * S::kStep;
        if constexpr (kComplex) {
          const double re = at->re, im = p.conjugate_small ? -at->im : at->im;
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            multiply_tile(sums[i], {re, im}, v[u][i].e[0].re);
            multiply_tile(sums[i], {-im, re}, v[u][i].e[0].im);
          }
        } else {
          const auto upper = *reinterpret_cast<const Vector<T>*>(at);
          const auto lower = *reinterpret_cast<const Vector<T>*>(at + 8 * S::kPitch);
#pragma unroll
          for (int r = 0; r < 2; ++r)
#pragma unroll
            for (int i = 0; i < 2; ++i)
              multiply_tile(sums[i], {upper.e[r], lower.e[r]},
                            kAlongK ? v[u][i].e[r] : v[u][r].e[i]);
        }
        asm volatile("" ::: "memory");  // loads earlier would want more registers
        load(v[u], left_after(chunk + k + (u + kSteps) * S::kStep));
      }
    }
  }

  // Sums in shared memory, by row of the short operand, then along L.
  wait_copies<0>();
  __syncthreads();
  constexpr int kRow = kLines + 2;
  T* const found = shared;
  static_assert(S::kShort * kRow * sizeof(T) <= S::kSharedBytes);
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int l = warp * kWarpLines + (by_rows ? 2 * (2 * t + e) + i : 8 * i + 2 * t + e);
      if constexpr (kComplex) {
        found[g * kRow + l] = {sums[i][e], sums[i][2 + e]};
      } else {
        found[g * kRow + l] = sums[i][e];
        found[(g + 8) * kRow + l] = sums[i][2 + e];
      }
    }
  __syncthreads();
  const int width = int(min(p.length - l0, std::int64_t(kLines)));
  for (int i = thread; i < width * p.count; i += kThreads) {
    const int l = p.c.row == 1 ? i % width : i / p.count;
    const int s = p.c.row == 1 ? i / width : i % p.count;
    parts::leave<T>(p, w, l0 + l, s, found[s * kRow + l]);
  }
}

/// Numbers of parts of k: "parts4".
const ConfigList<int>& configs() {
  static const auto list = [] {
    ConfigList<int> all;
    for (int parts = 1; parts <= parts::kMost; parts *= 2)
      all.add(parts, "parts" + std::to_string(parts));
    return all;
  }();
  return list;
}

/// How a call is cut.
struct Cut {
  bool long_is_b, along_k, vectors;
  std::int64_t length, blocks, depth;
  int count, parts;
};

constexpr int chunk_of(DType type) { return 512 / size_of(type); }

Cut cut_of(const GemmArgs& args, const DeviceInfo& device) {
  Cut cut;
  cut.long_is_b = args.m < args.n;
  cut.along_k = cut.long_is_b ? is_transposed(args.transB) : !is_transposed(args.transA);
  cut.length = std::max(args.m, args.n);
  cut.count = int(std::min(args.m, args.n));
  const int size = size_of(args.in);
  cut.vectors = access_bits(cut.long_is_b ? args.B : args.A, args.batch, size) % 16 == 0 &&
                (cut.along_k ? args.k : cut.length) * size % 16 == 0;
  cut.blocks = ceil_div(cut.length, kLines);
  const std::int64_t units = std::max(device.compute_units, 1);
  const int chunk = chunk_of(args.in);
  // Parts of two chunks each, if there is room for all of them at once: a block waits for each
  // chunk anew.
  const std::int64_t parts =
      args.config >= 0
          ? configs()[args.config]
          : std::min(kBlocks * units / (cut.blocks * args.batch), ceil_div(args.k, 2 * chunk));
  cut.depth =
      ceil_div(ceil_div(args.k, std::clamp<std::int64_t>(parts, 1, parts::kMost)), chunk) * chunk;
  cut.parts = int(ceil_div(args.k, cut.depth));
  return cut;
}

/// Of its time, in cycles of an H200's 1.98 GHz.
double estimate(const GemmArgs& args, const DeviceInfo& device) {
  constexpr double kStart = 4500;  // and end
  constexpr double kChunk = 2800;  // until its loads are there
  constexpr double kMemoryBytes = 1600;
  constexpr double kSecondKernel = 6500, kPart = 210;  // and of each part
  const Cut cut = cut_of(args, device);
  const double blocks = double(cut.blocks) * double(args.batch) * cut.parts;
  const double rounds = std::max(blocks / (kBlocks * std::max(device.compute_units, 1)), 1.0);
  const double chunks = double(cut.depth / chunk_of(args.in));
  const double bytes =
      double(args.m + args.n) * double(args.k) * double(args.batch) * size_of(args.in);
  return kStart + std::max(rounds * chunks * kChunk, bytes / kMemoryBytes) +
         (cut.parts > 1 ? kSecondKernel + kPart * cut.parts : 0);
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f64 && args.in != DType::cf64) return "for f64 and cf64";
  if (device.capability < 80) return "needs compute capability 8.0";
  if (std::min(args.m, args.n) > kMostShort / (is_complex(args.in) ? 2 : 1))
    return "for m or n of at most 16, or 8 complex ones";
  if (std::max(args.m, args.n) < kLeastLong || args.k < kLeastLong)
    return "for k and the other one of m and n of at least 128";
  if (args.config >= 0 && args.k < std::int64_t(configs()[args.config]) * chunk_of(args.in))
    return "k is too short for the configuration's parts";
  if (args.config == kOwnChoice && tensor_f64_cycles(args, device) < estimate(args, device))
    return "estimated to be slower than tensor_f64";
  if (const char* reason = declines_halfway(args)) return reason;
  return declines_emulation(args, device);
}

std::size_t workspace(const GemmArgs& args, const DeviceInfo& device) {
  return gemm_pointer_bytes(args, device) + parts::bytes(args, cut_of(args, device).parts);
}

template <class T, bool kAlongK, bool kVectors>
void run_as(const GemmArgs& args, const Cut& cut, const CudaQueue& queue) {
  ThinProblem<T> p{{gemm_problem<T, T>(args, queue, 1, 1)}};
  const bool b = cut.long_is_b;
  p.Long = b ? p.B : p.A;
  p.Short = b ? p.A : p.B;
  p.length = cut.length;
  p.count = cut.count;
  p.line = b ? args.B.ld : args.A.ld;
  p.small = b ? p.a : Strides{p.b.col, p.b.row};
  p.c = b ? Strides{1, p.ldc} : Strides{p.ldc, 1};
  // A conjugate of the long operand is one of the other and of the sums.
  p.conjugate_sum = b ? p.conjugate_b : p.conjugate_a;
  p.conjugate_small = p.conjugate_a != p.conjugate_b;
  p.blocks = cut.blocks;
  p.depth = cut.depth;
  p.parts = cut.parts;

  parts::run<T>(queue, args, thin_f64_kernel<T, kAlongK, kVectors>, kThreads,
                Sides<T>::kSharedBytes, p);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  const Cut cut = cut_of(args, queue.device());
  const auto with_order = [&]<class T, bool kVectors>() {
    if (cut.along_k)
      run_as<T, true, kVectors>(args, cut, queue);
    else
      run_as<T, false, kVectors>(args, cut, queue);
  };
  if (args.in == DType::cf64)
    with_order.template operator()<Complex<double>, true>();
  else if (cut.vectors)
    with_order.template operator()<double, true>();
  else
    with_order.template operator()<double, false>();
}

}  // namespace thin_f64_file

Kernel<GemmArgs> thin_f64() {
  using namespace thin_f64_file;
  return {"thin_f64",
          "f64 and cf64 with m or n up to 16: the long operand straight to the tensor cores",
          declines,
          workspace,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
