// Products of `half` and `bfloat16` of which one side is long and the others are short: the long
// operand goes straight from memory to the tensor cores. Limited by memory, which reads it once and
// writes C.
//
// Which element of k, which row and which column of C a place of a fragment stands for is free, as
// long as both operands agree. So lanes take neighbours: a lane's elements of a fragment lie side
// by side in memory, its results too, whichever way the operands and C run. Only the short
// operand's fragments stay in shared memory, and results pass through it whose rows begin anywhere.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cuda/early.cuh"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/tensor_cores.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace tall_mma_file {

constexpr int kMostWarps = 8, kBlocks = 2;  // of a block; that share a multiprocessor
constexpr int kGroup = 32;                  // of the short side, what a block has at most
constexpr int kMostCount = 96, kMostDepth = 256;
constexpr int kTiles = 2;             // of 16 of the long side that a warp multiplies together,
constexpr int kEach = 2 * kTiles;     // of which a lane has neighbours,
constexpr int kLines = 8 * kEach;     // and all lanes
constexpr int kSize = 2, kStep = 16;  // bytes of an element; of k, of an instruction
constexpr int kLeastWidth = 4;        // of results that go out from registers

/// X is the long operand, Y the short one. Distances in elements.
struct Problem : GemmProblem<float> {
  DeviceInput X{}, Y{};
  std::int64_t length = 0;  ///< of the long side
  int count = 0;            ///< of the short one
  Strides x{}, y{}, c{};    ///< row: from one of the side to the next; col: along k, of C along
                            ///< the short side
  int x_width = 1, c_width = 1;  ///< elements that are read, or written, at once
  int steps = 0;                 ///< along k
  bool y_vectors = false;        ///< four of k
  bool floats = false;           ///< C is of float
};

/// The first of the four neighbours along k that a lane has of a step. Where there are several, it
/// has eight of two.
template <int kSteps>
__device__ int first_of(int step, int t) {
  return kSteps == 1 ? 4 * t : step / 2 * 32 + 8 * t + step % 2 * 4;
}

template <int kWords>
struct alignas(4 * kWords) Raw {
  unsigned word[kWords];
};

/// kCount elements from `from` on, those from `left` on zeros. `kWidth` of them are read at once,
/// and are all inside or all outside.
template <int kCount, int kWidth>
__device__ Raw<kCount / 2> read(const unsigned short* from, int left) {
  Raw<kCount / 2> x = {};
  constexpr int kAtOnce = kWidth < kCount ? kWidth : kCount;
  if constexpr (kAtOnce == 1) {
#pragma unroll
    for (int e = 0; e < kCount; e += 2) {
      const unsigned short low = e < left ? from[e] : static_cast<unsigned short>(0);
      const unsigned short high = e + 1 < left ? from[e + 1] : static_cast<unsigned short>(0);
      x.word[e / 2] = __byte_perm(low, high, 0x5410);
    }
  } else {
    using Part = Raw<kAtOnce / 2>;
#pragma unroll
    for (int e = 0; e < kCount; e += kAtOnce)
      if (e < left) {
        const Part part = *reinterpret_cast<const Part*>(from + e);
#pragma unroll
        for (int w = 0; w < kAtOnce / 2; ++w) x.word[e / 2 + w] = part.word[w];
      }
  }
  return x;
}

/// f<width>() of the widths there are.
template <class F>
__device__ void with_width(int width, F&& f) {
  if (width == 8)
    f.template operator()<8>();
  else if (width == 4)
    f.template operator()<4>();
  else if (width == 2)
    f.template operator()<2>();
  else
    f.template operator()<1>();
}

/// A warp's part of X, as fragments.
template <int kSteps>
struct Part {
  unsigned x[kSteps][kTiles][4];

  /// Of lines that memory follows along k, of which there are `k`. `left`: lines from this lane's
  /// first one on.
  template <int kWidth>
  __device__ void read_along(const unsigned short* from, std::int64_t line, int k, int left) {
    constexpr int kRun = kSteps == 1 ? 4 : 8;  // of k that a lane has as neighbours
    const int t = int(threadIdx.x) % 4;
    from += kRun * t;
    k -= kRun * t;
#pragma unroll
    for (int r = 0; r < kEach; ++r, from += line)
#pragma unroll
      for (int s = 0; s < kSteps; s += 2) {
        const auto run = read<kRun, kWidth>(from + s * kStep, r < left ? k - s * kStep : 0);
#pragma unroll
        for (int w = 0; w < kRun / 2; ++w) x[s + w / 2][r / 2][r % 2 + w % 2 * 2] = run.word[w];
      }
  }
  /// Of lines of neighbours along the long side. `line`: to the next one of k.
  template <int kWidth>
  __device__ void read_across(const unsigned short* from, std::int64_t line, int k, int left) {
    const int t = int(threadIdx.x) % 4;
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int first = first_of<kSteps>(s, t) + 2 * half;
        const unsigned short* const at = from + first * line;
        const auto even = read<kEach, kWidth>(at, first < k ? left : 0);
        const auto odd = read<kEach, kWidth>(at + line, first + 1 < k ? left : 0);
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
          x[s][i][2 * half] = __byte_perm(even.word[i], odd.word[i], 0x5410);
          x[s][i][2 * half + 1] = __byte_perm(even.word[i], odd.word[i], 0x7632);
        }
      }
  }
};

/// The short operand's column that a lane has in place `g` of the j-th of kColumns fragments; those
/// of a lane's results are neighbours.
template <int kColumns>
__device__ int column_of(int j, int g) {
  return g / 2 * 2 * kColumns + j * 2 + g % 2;
}

/// Copies Y's fragments to shared memory: of a step and eight columns after another, two words a
/// lane.
template <int kSteps, int kColumns>
__device__ void copy_short(const Problem& p, const unsigned short* y, int count, Raw<2>* to) {
  const int lane = int(threadIdx.x) % 32, all = p.steps * kColumns;
#pragma unroll 4
  for (int i = int(threadIdx.x) / 32; i < all; i += int(blockDim.x) / 32) {
    const int k = first_of<kSteps>(i / kColumns, lane % 4);
    const int column = column_of<kColumns>(i % kColumns, lane / 4);
    const int left = column < count ? int(p.k) - k : 0;
    const unsigned short* const from = y + column * p.y.row + k * p.y.col;
    if (p.y_vectors) {
      to[i * 32 + lane] = read<4, 4>(from, left);
    } else {
      unsigned short e[4];
#pragma unroll
      for (int l = 0; l < 4; ++l)
        e[l] = l < left ? from[l * p.y.col] : static_cast<unsigned short>(0);
      to[i * 32 + lane] = {{__byte_perm(e[0], e[1], 0x5410), __byte_perm(e[2], e[3], 0x5410)}};
    }
  }
}

/// Writes alpha times kCount neighbours of the results, with what is there.
template <bool kRead, class Out, int kCount>
__device__ void put(const Problem& p, const float (&sum)[kCount], Out* c) {
  using Unit = Vector<Out, kCount>;
  Unit unit;
  if constexpr (kRead) unit = *reinterpret_cast<const Unit*>(c);
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    float x[2] = {p.alpha * sum[i], p.alpha * sum[i + 1]};
    if constexpr (kRead)
#pragma unroll
      for (int e = 0; e < 2; ++e) x[e] = multiply_add(p.beta, widen(unit.e[i + e]), x[e]);
    const auto pair = narrow_pair<Out>(x[0], x[1]);
    unit.e[i] = pair.e[0];
    unit.e[i + 1] = pair.e[1];
  }
  *reinterpret_cast<Unit*>(c) = unit;
}

template <int kColumns>
using Sums = float[kColumns][kTiles][4];

/// Writes a lane's results, which are whole vectors of kWidth. `c`: of its first line; `left`:
/// lines from there on.
template <bool kRead, int kWidth, class Out, int kColumns>
__device__ void write_vectors(const Problem& p, const Sums<kColumns>& sum, Out* c, int left,
                              int count) {
  const int first = int(threadIdx.x) % 4 * 2 * kColumns;
  c += first * p.c.col;
  if (p.c.col == 1) {
#pragma unroll
    for (int r = 0; r < kEach; ++r, c += p.c.row)
#pragma unroll
      for (int at = 0; at < 2 * kColumns; at += kWidth) {
        float run[kWidth];
#pragma unroll
        for (int e = 0; e < kWidth; ++e) run[e] = sum[(at + e) / 2][r / 2][r % 2 * 2 + e % 2];
        if (r < left && first + at < count) put<kRead>(p, run, c + at);
      }
    return;
  }
  if constexpr (kWidth == kEach)
#pragma unroll
    for (int e = 0; e < 2 * kColumns; ++e, c += p.c.col) {
      float run[kEach];
#pragma unroll
      for (int r = 0; r < kEach; ++r) run[r] = sum[e / 2][r / 2][r % 2 * 2 + e % 2];
      if (left > 0 && first + e < count) put<kRead>(p, run, c);
    }
}

/// The same of results whose lines begin anywhere: by way of shared memory, so that lanes write
/// neighbours. `c`: of the warp's first line.
template <class Out, int kColumns>
__device__ void write_staged(const Problem& p, const Sums<kColumns>& sum, Out* c, int lines,
                             int count, float* stage) {
  const int lane = int(threadIdx.x) % 32, first = lane % 4 * 2 * kColumns;
  const bool tall = p.c.col == 1;
  const int line = tall ? count : 1, column = tall ? 1 : kLines;
  float* const to = stage + lane / 4 * kEach * line + first * column;
#pragma unroll
  for (int e = 0; e < 2 * kColumns; ++e)
#pragma unroll
    for (int r = 0; r < kEach; ++r)
      if (first + e < count)
        to[r * line + e * column] = p.alpha * sum[e / 2][r / 2][r % 2 * 2 + e % 2];
  __syncwarp();
  const int rows = tall ? lines : count, length = tall ? count : lines;
  const std::int64_t hop = tall ? p.c.row : p.c.col;
  const float* from = stage + lane;
  c += lane;
#pragma unroll 4
  for (int row = 0; row < rows; ++row, c += hop, from += tall ? count : kLines)
    if (lane < length) *c = narrow<Out>(p.read_c ? multiply_add(p.beta, widen(*c), *from) : *from);
  __syncwarp();
}

/// Results of a warp's lines from `line` on and `count` of the short side from `column` on.
template <class Out, int kColumns>
__device__ void write(const Problem& p, const Sums<kColumns>& sum, std::int64_t line, int column,
                      int count, float* stage) {
  const int mine = int(threadIdx.x) % 32 / 4 * kEach;
  const auto lines = int(min(p.length - line, std::int64_t(kLines)));
  Out* const c = static_cast<Out*>(p.C.at(blockIdx.y)) + line * p.c.row + column * p.c.col;
  if (p.c_width < kLeastWidth) return write_staged<Out, kColumns>(p, sum, c, lines, count, stage);
  const auto with_read = [&]<int kWidth>() {
    if (p.read_c)
      write_vectors<true, kWidth, Out, kColumns>(p, sum, c + mine * p.c.row, lines - mine, count);
    else
      write_vectors<false, kWidth, Out, kColumns>(p, sum, c + mine * p.c.row, lines - mine, count);
  };
  if constexpr (sizeof(Out) == 2 && kColumns == 4)
    if (p.c_width == 8 && p.c.col == 1) return with_read.template operator()<8>();
  with_read.template operator()<kLeastWidth>();
}

template <class T, int kSteps, int kColumns, bool kAlongK>
__global__ void __launch_bounds__(32 * kMostWarps, kBlocks)
    tall_mma_kernel(const __grid_constant__ Problem p) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto* const shared = reinterpret_cast<Raw<2>*>(memory);
  const int column = int(blockIdx.z) * kGroup, count = min(p.count - column, kGroup);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32,
            warps = int(blockDim.x) / 32;
  float* const stage =
      reinterpret_cast<float*>(shared + p.steps * kColumns * 32) + warp * kLines * count;
  const std::int64_t hop = std::int64_t(gridDim.x) * warps * kLines;
  std::int64_t line = (std::int64_t(warp) * gridDim.x + blockIdx.x) * kLines;
  begin_early();

  const auto* const x = static_cast<const unsigned short*>(p.X.at(blockIdx.y));
  Part<kSteps> part;
  const auto ask = [&](int k0) {
    const int mine = lane / 4 * kEach;
    const int left = int(min(p.length - line, std::int64_t(kLines))) - mine;
    const unsigned short* const from = x + (line + mine) * p.x.row + k0 * p.x.col;
    with_width(p.x_width, [&]<int kWidth>() {
      if constexpr (kAlongK)
        part.template read_along<kWidth>(from, p.x.row, late(int(p.k)) - k0, left);
      else
        part.template read_across<kWidth>(from, p.x.col, late(int(p.k)) - k0, left);
    });
  };
  // Lanes whose lines are beyond the end multiply zeros, as all of a warp have to take part.
  Sums<kColumns> sum = {};
  const Raw<2>* y = shared + lane;
  int k0 = 0;
  for (bool has_short = false;;) {
    if (line < p.length) ask(k0);
    if (!has_short) {
      copy_short<kSteps, kColumns>(
          p, static_cast<const unsigned short*>(p.Y.at(blockIdx.y)) + column * p.y.row, count,
          shared);
      __syncthreads();
      has_short = true;
    }
    if (line >= p.length) break;
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const Raw<2> b = y[(s * kColumns + j) * 32];
#pragma unroll
        for (int i = 0; i < kTiles; ++i)
          multiply_tile<T>(sum[j][i], part.x[s][i], b.word[0], b.word[1]);
      }
    k0 += kSteps * kStep;
    y += kSteps * kColumns * 32;
    if (k0 < p.k) continue;
    if (p.floats)
      write<float, kColumns>(p, sum, line, column, count, stage);
    else
      write<T, kColumns>(p, sum, line, column, count, stage);
#pragma unroll
    for (auto& of_column : sum)
#pragma unroll
      for (auto& of_tile : of_column)
#pragma unroll
        for (float& x : of_tile) x = 0;
    line += hop;
    y = shared + lane;
    k0 = 0;
  }
}

/// A call as kernels see it: which operand is the long one, how wide it and C are accessed, and how
/// the long side is shared out.
struct Call {
  bool is_b;                ///< the long operand
  bool along_k, y_along_k;  ///< that memory follows
  std::int64_t length, count;
  int x_width, c_width;
  bool y_vectors;
  int steps, all_steps;  ///< of k that a warp has at a time, and in all
  int groups;            ///< of the short side
  int columns, warps;    ///< of eight; of a block
  std::int64_t blocks;   ///< of a matrix and group

  Call(const GemmArgs& args, const DeviceInfo& device)
      : is_b(args.m < args.n),
        along_k(is_b ? is_transposed(args.transB) : !is_transposed(args.transA)),
        y_along_k(is_b ? !is_transposed(args.transA) : is_transposed(args.transB)),
        length(std::max(args.m, args.n)),
        count(std::min(args.m, args.n)) {
    const Input &x = is_b ? args.B : args.A, &y = is_b ? args.A : args.B;
    const int size = size_of(args.out);
    x_width = width_of(access_bits(x, args.batch, kSize), along_k ? args.k : length, kSize);
    // Vectors are of 16 bytes at most.
    c_width = std::min(width_of(access_bits(args.C, args.batch, size), is_b ? length : count, size),
                       16 / size);
    y_vectors = y_along_k && width_of(access_bits(y, args.batch, kSize), args.k, kSize) >= 4;
    steps = args.k <= kStep ? 1 : args.k <= 2 * kStep ? 2 : 4;
    all_steps = int(ceil_div(std::max<std::int64_t>(args.k, 1), steps * kStep)) * steps;
    groups = int(ceil_div(count, kGroup));
    columns = count <= 16 ? 2 : 4;
    const auto units = std::int64_t(std::max(device.compute_units, 1));
    const std::int64_t chunks = ceil_div(length, kLines);
    const bool fills = chunks * args.batch * groups >= units * kMostWarps;
    warps = fills ? kMostWarps : kMostWarps / 2;
    const std::int64_t room = units * kBlocks * kMostWarps / warps;
    blocks =
        std::min(ceil_div(chunks, warps),
                 std::max(room / std::max<std::int64_t>(args.batch * groups, 1), std::int64_t(1)));
  }

  bool staged() const { return c_width < kLeastWidth; }

 private:
  /// How many of `size` bytes can be accessed at once where addresses have the bits `bits`, and
  /// runs of so many begin there.
  static int width_of(std::uintptr_t bits, std::int64_t run, int size) {
    bits |= std::uintptr_t(run * size);
    for (int width = 8; width > 1; width /= 2)
      if (bits % std::uintptr_t(width * size) == 0) return width;
    return 1;
  }
};

/// What a call takes by a model in microseconds, fitted to 350 products of bf16 within graphs on an
/// H200, 17 % off: each warp waits for its loads turn after turn, and those of a multiprocessor
/// share its instructions.
double estimate(const GemmArgs& args, const Call& call, const DeviceInfo& device) {
  constexpr double kStart = 1.18, kFragments = 0.042, kTurn = 0.69, kLoad = 6.8e-3, kStaged = 0.056;
  constexpr double kInstruction = 3.6e-4, kWritten = 2.6e-4, kMemory = 1.13;
  const double turns =
      std::ceil(double(ceil_div(call.length, kLines)) / double(call.blocks * call.warps));
  const double pieces = call.all_steps / call.steps;
  const int run = call.along_k ? (call.steps == 1 ? 4 : 8) : kEach;
  const int runs = call.along_k ? kEach * std::max(call.steps / 2, 1) : 4 * call.steps;
  const double loads = pieces * runs * (run / std::min(call.x_width, run));
  const double fragments =
      double(call.all_steps * call.columns) / call.warps * (call.y_vectors ? 1 : 4);
  const double instructions = pieces * (20 + call.steps * call.columns * 3) + loads * 3;
  const double each = double(call.count) / call.groups;
  const double written = call.staged() ? each * 4 + 30 : call.columns * 16 + 20;
  const double units = std::max(device.compute_units, 1);
  const double warps =
      std::ceil(double(call.blocks * call.groups * args.batch) / units) * call.warps;
  const double bytes =
      double(args.batch) * (double(call.length + call.count) * double(args.k) * kSize +
                            double(call.length) * double(call.count) * size_of(args.out));
  return kStart + kFragments * fragments +
         turns * (kTurn * pieces + kLoad * loads + (call.staged() ? kStaged * each : 0) +
                  warps * (kInstruction * instructions + kWritten * written)) +
         kMemory * bytes * 1e6 / memory_rate_of(device);
}

/// Why it leaves a call to others, as measured with those 350 products and 260 of several groups:
/// few rows begin sooner there, and of many that are no vectors the estimates of the others are too
/// low.
const char* declines_slower(const GemmArgs& args, const Call& call, const DeviceInfo& device) {
  constexpr std::int64_t kLeast = 8192, kLeastOfOne = 1024, kMostOfGroups = 64;
  constexpr double kTooLow = 1.6, kTooLowOfGroups = 2.2;
  if (args.keeper) return "for calls without a plan";
  if (call.count == 1) return "slower than gemv and few_vectors for one vector";
  if (call.length < kLeastOfOne || call.length * args.batch < kLeast)
    return "slower than tiles for few rows and columns";
  if (call.groups > 1 && args.k > kMostOfGroups) return "slower than tiles for so long sums";
  const bool in_line = operand_bits(args) % 16 == 0;
  const double too_low = call.groups == 1 ? kTooLow : in_line ? 1 : kTooLowOfGroups;
  return estimate(args, call, device) < too_low * tensor_cores_microseconds(args, device)
             ? nullptr
             : "estimated to be slower than tiles";
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in != DType::f16 && args.in != DType::bf16) return "for f16 and bf16";
  if (device.capability < 80) return "needs compute capability 8.0";
  if (std::min(args.m, args.n) > kMostCount || args.k > kMostDepth)
    return "for m or n of up to 96 and k of up to 256";
  constexpr std::int64_t kMostBatch = 65535;
  if (args.batch > kMostBatch) return "for fewer matrices";
  if (args.config == kOwnChoice)
    if (const char* reason = declines_slower(args, Call(args, device), device)) return reason;
  return declines_emulation(args, device);
}

template <class T, int kSteps, int kColumns>
void launch(const Problem& p, const Call& call, std::int64_t batch, const CudaQueue& queue) {
  const std::int64_t stage =
      call.staged() ? call.warps * kLines * std::min<std::int64_t>(call.count, kGroup) : 0;
  const std::size_t shared = std::size_t(call.all_steps * kColumns * 32) * sizeof(Raw<2>) +
                             std::size_t(stage) * sizeof(float);
  constexpr auto kAlong = tall_mma_kernel<T, kSteps, kColumns, true>;
  constexpr auto kAcross = tall_mma_kernel<T, kSteps, kColumns, false>;
  launch_early(queue, call.along_k ? kAlong : kAcross,
               dim3{unsigned(call.blocks), unsigned(batch), unsigned(call.groups)},
               unsigned(32 * call.warps), shared, p);
}

template <class T>
void run_typed(const GemmArgs& args, const CudaQueue& queue) {
  const Call call(args, queue.device());
  Problem p;
  p.floats = args.out == DType::f32;
  static_cast<GemmProblem<float>&>(p) =
      p.floats ? gemm_problem<T, float>(args, queue, 1, 1) : gemm_problem<T, T>(args, queue, 1, 1);
  const Strides a = p.a, b = {p.b.col, p.b.row};
  p.X = call.is_b ? p.B : p.A;
  p.Y = call.is_b ? p.A : p.B;
  p.x = call.is_b ? b : a;
  p.y = call.is_b ? a : b;
  p.c = call.is_b ? Strides{1, p.ldc} : Strides{p.ldc, 1};
  p.length = call.length;
  p.count = int(call.count);
  p.x_width = call.x_width;
  p.c_width = call.c_width;
  p.steps = call.all_steps;
  p.y_vectors = call.y_vectors;
  const auto with_steps = [&]<int kSteps>() {
    if (call.columns == 2)
      launch<T, kSteps, 2>(p, call, args.batch, queue);
    else
      launch<T, kSteps, 4>(p, call, args.batch, queue);
  };
  if (call.steps == 1) return with_steps.template operator()<1>();
  if (call.steps == 2) return with_steps.template operator()<2>();
  with_steps.template operator()<4>();
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (args.in == DType::f16)
    run_typed<__half>(args, queue);
  else
    run_typed<__nv_bfloat16>(args, queue);
}

}  // namespace tall_mma_file

Kernel<GemmArgs> tall_mma() {
  using namespace tall_mma_file;
  return {"tall_mma",
          "f16 and bf16, m or n up to 96: the other one straight from memory to the tensor cores",
          declines, gemm_pointer_bytes, run};
}

}  // namespace mblas::cuda::gemm
