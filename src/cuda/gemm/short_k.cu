// Sums so short that C is most of what moves: k up to 32. Limited by writing C, and by 128
// multiply-adds a clock and multiprocessor where C is narrow or k near 32.
//
// Kernels that walk along k have nothing to hide their beginnings and ends behind here. So B stays:
// each lane keeps all k of some columns in registers, one in 32 of a warp's, and the warp walks
// down the rows of C. What it needs of A's row is the same for all lanes, a broadcast from shared
// memory; what it has computed it stores at once, 32 neighbours at a time, wherever C's rows start.
// There is no tile of sums to be written in the end: loads, multiply-adds and stores of different
// rows overlap.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "core/config_list.hpp"
#include "cuda/early.cuh"
#include "cuda/gemm/fitted.hpp"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/products.cuh"
#include "cuda/gemm/short_k.hpp"
#include "cuda/gemm/simt.hpp"
#include "cuda/gemm/tensor_cores.hpp"
#include "cuda/gemm/tensor_f64.hpp"
#include "cuda/kernels.hpp"
#include "cuda/memo.hpp"

namespace mblas::cuda::gemm {
namespace short_k_file {

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kMostDepth = 32, kDepthStep = 8;
constexpr int kCols[] = {1, 2, 4, 8};  // of a lane
constexpr int kLeastRows = 8;          // of a block, for which B is worth fetching,
constexpr int kLeastRowsToTurn = 16;   // and where it lies along k

constexpr int kSide = 8;  // of what is read across lines
constexpr int lines_of(int rows) { return (rows + kSide - 1) / kSide * kSide; }

/// `k` as kernels have it.
constexpr int depth_of(std::int64_t k) {
  return int((std::max<std::int64_t>(k, 1) + kDepthStep - 1) / kDepthStep) * kDepthStep;
}

/// What there is room for, of elements of `size` bytes.
struct Limits {
  int depth, cols, size;

  constexpr int words() const { return depth * cols * size / 4; }  // registers for B
  constexpr bool fits() const { return words() <= 192; }
  /// That a warp has in work: with two there are more sums that do not wait for each other.
  constexpr int rows() const { return words() > 160 ? 1 : 2; }
  constexpr int pitch() const { return depth + 16 / size; }  // of lines in shared memory
  constexpr int most_rows() const { return 512 / size; }     // of a block
  constexpr int blocks() const {                             // on a multiprocessor
    return std::clamp(65536 / (kThreads * (words() + 40 + 4 * size)), 1, 8);
  }
};

template <class T>
struct ShortProblem : GemmProblem<T> {
  int across = 1;  ///< warps of a block side by side; the others have other rows
  int rows = 0;    ///< of a block
  std::int64_t strips = 0, chunks = 0;
  bool vectors_a = false, vectors_b = false;  ///< lines can be read 16 bytes at a time
};

template <class T, int kDepth_, int kCols_>
struct Variant {
  using Element = T;
  static constexpr int kDepth = kDepth_, kCols = kCols_;
  static constexpr Limits kLimits = {kDepth, kCols, int(sizeof(T))};
  static constexpr int kPitch = kLimits.pitch();
};

/// Starts to copy `count` lines along k, the first `k` elements of each and then zeros. B's are the
/// same for many blocks at a time, which would wait for each other at the second-level cache.
template <class V, int kEach, class T>
__device__ void copy_lines(T* to, const T* from, std::int64_t ld, int count, int k) {
  constexpr int kAcross = V::kDepth / kEach, kAtOnce = kThreads / kAcross;
  const int l = int(threadIdx.x) % kAcross * kEach;
  int line = int(threadIdx.x) / kAcross;
  if (line >= kAtOnce) return;
  const int bytes = min(max(k - l, 0), kEach) * int(sizeof(T));
  from += bytes > 0 ? line * ld + l : 0;
  const std::int64_t hop = bytes > 0 ? kAtOnce * ld : 0;
  unsigned at = shared_address(to + line * V::kPitch + l);
#pragma unroll 4
  for (; line < count; line += kAtOnce, from += hop, at += kAtOnce * V::kPitch * sizeof(T))
    cuda::copy_async<kEach* int(sizeof(T)), true>(at, from, bytes);
}
template <class V, class T>
__device__ void copy_lines(T* to, const T* from, std::int64_t ld, int count, int k, bool vectors) {
  if (vectors)
    copy_lines<V, kVector<T>>(to, from, ld, count, k);
  else
    copy_lines<V, 1>(to, from, ld, count, k);
}

/// The same for lines that memory does not run along: eight of one step of k after another.
template <class V, class T>
__device__ void copy_across(T* to, const T* from, std::int64_t ld, int count, int k) {
  constexpr int kBlock = kSide * V::kDepth;
#pragma unroll 4
  for (int i = int(threadIdx.x); i < lines_of(count) * V::kDepth; i += kThreads) {
    const int line = i / kBlock * kSide + i % kSide, l = i / kSide % V::kDepth;
    const bool there = l < k && line < count;
    cuda::copy_async<int(sizeof(T))>(shared_address(to + line * V::kPitch + l),
                                     there ? from + l * ld + line : from,
                                     there ? int(sizeof(T)) : 0);
  }
}

template <class V>
__global__ void __launch_bounds__(kThreads, V::kLimits.blocks())
    short_k_kernel(const __grid_constant__ ShortProblem<typename V::Element> p) {
  using T = typename V::Element;
  using Unit = Vector<T>;
  constexpr int kDepth = V::kDepth, kCols = V::kCols, kRows = V::kLimits.rows(), kPitch = V::kPitch;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const shared_a = reinterpret_cast<T*>(memory);
  T* const shared_b = shared_a + lines_of(p.rows) * kPitch;
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int group = warp / p.across, groups = kWarps / p.across;
  const std::int64_t strip = blockIdx.x % p.strips, above = blockIdx.x / p.strips;
  const std::int64_t batch = above / p.chunks, i0 = above % p.chunks * p.rows;
  const std::int64_t j0 = strip * (p.across * 32 * kCols);
  const int rows = int(min(p.m - i0, std::int64_t(p.rows))), k = int(p.k);
  const int in_block = warp % p.across * (32 * kCols) + lane;  // this lane's first column
  begin_early();

  const T* const b = static_cast<const T*>(p.B.at(batch)) + j0 * p.b.col;
  const int cols = int(min(p.n - j0, std::int64_t(p.across * 32 * kCols)));
  const T* const a = static_cast<const T*>(p.A.at(batch)) + i0 * p.a.row;
  const bool b_along_k = p.b.col != 1;
  if (b_along_k) copy_lines<V>(shared_b, b, p.b.col, cols, k, p.vectors_b);
  if (p.a.col == 1)
    copy_lines<V>(shared_a, a, p.a.row, rows, k, p.vectors_a);
  else
    copy_across<V>(shared_a, a, p.a.col, rows, k);
  commit_copies();

  T y[kDepth][kCols];
  if (!b_along_k)
#pragma unroll
    for (int l = 0; l < kDepth; ++l)
#pragma unroll
      for (int c = 0; c < kCols; ++c)
        y[l][c] = l < k && in_block + 32 * c < cols ? b[l * p.b.row + in_block + 32 * c] : T{};
  wait_copies<0>();
  __syncthreads();
  if (b_along_k) {
#pragma unroll
    for (int c = 0; c < kCols; ++c)
#pragma unroll
      for (int l = 0; l < kDepth; l += kVector<T>) {
        // Columns beyond are not stored, so that what they hold is of no matter.
        const Unit x = *reinterpret_cast<const Unit*>(shared_b + (in_block + 32 * c) * kPitch + l);
#pragma unroll
        for (int e = 0; e < kVector<T>; ++e) y[l + e][c] = x.e[e];
      }
  }
  // conj(a) b is conj(a conj(b)): only B and the sums have to be conjugated.
#pragma unroll
  for (int l = 0; l < kDepth; ++l)
#pragma unroll
    for (int c = 0; c < kCols; ++c) y[l][c] = widen(y[l][c], p.conjugate_a != p.conjugate_b);

  T* const to = static_cast<T*>(p.C.at(batch)) + j0 + in_block;
  std::int64_t at = (i0 + group * kRows) * p.ldc;
  const T* x = shared_a + group * kRows * kPitch;
  for (int row = group * kRows; row < rows; row += groups * kRows) {
    T sum[kRows][kCols] = {};
#pragma unroll
    for (int l = 0; l < kDepth; l += kVector<T>) {
      Unit unit[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) unit[r] = *reinterpret_cast<const Unit*>(x + r * kPitch + l);
#pragma unroll
      for (int e = 0; e < kVector<T>; ++e)
        add_products<Reuse::B>([&](int r) { return unit[r].e[e]; },
                               [&](int c) { return y[l + e][c]; }, sum);
    }
    const auto for_each_inside = [&](const auto& f) {
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int c = 0; c < kCols; ++c)
          if (row + r < rows && in_block + 32 * c < cols) f(sum[r][c], to[at + r * p.ldc + 32 * c]);
    };
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < kCols; ++c) sum[r][c] = p.alpha * widen(sum[r][c], p.conjugate_a);
    if (p.read_c) for_each_inside([&](T& x, T c) { x = multiply_add(p.beta, c, x); });
    for_each_inside([](T x, T& c) { c = x; });
    at += groups * kRows * p.ldc;
    x += groups * kRows * kPitch;
  }
}

/// How C is cut for so many columns a lane.
struct Plan {
  int cols = 0, across = kWarps, rows = 0;
  std::int64_t strips = 0, chunks = 0;
  std::size_t shared = 0;  // bytes of a block
  bool fits = false;
  double microseconds = 0;
};

/// What a plan's time is by a model, fitted to 1,000 products of the four types, batches among
/// them, by each number of columns and five numbers of blocks, within graphs on an H200, and within
/// a tenth of them. Microseconds: blocks wait for B's elements, and those that there was no room
/// for begin later; together they wait for multiply-adds, for A and for memory.
double estimate(const Plan& plan, const GemmArgs& args, const DeviceInfo& device) {
  // Less where blocks of the kernel before leave half of all places, so that these can follow.
  constexpr double kStart = 1.5, kAlone = 0.34, kNext = 1.32;
  // Of an element of B, of up to 8 bytes: from memory, or after it was copied.
  constexpr double kLoaded = 8.1e-3, kTurned = 3.6e-3;
  // Of the four warps that a multiprocessor has at a time: a block, a product each, a byte of A
  // read, and what all threads copy of A across its lines.
  constexpr double kBlock = 0.107, kProduct = 0.865e-3, kByte = 0.16e-3, kCrossing = 0.0169;
  constexpr double kDouble = 1.5;  // of a product

  const int depth = depth_of(args.k);
  const Limits limits = {depth, plan.cols, size_of(args.in)};
  const double units = std::max(device.compute_units, 1);
  const double blocks = double(plan.strips * plan.chunks * args.batch);
  const double each = std::ceil(blocks / units);
  const double room =
      std::clamp(std::floor(double(device.shared_memory) / double(plan.shared + 1024)), 1.0,
                 double(limits.blocks()));
  const double elements_b = depth * plan.cols * (limits.size > 8 ? 2 : 1);
  const double wait = elements_b * (is_transposed(args.transB) ? kTurned : kLoaded);
  const double rounds = std::max(each / room, 1.0);
  const double waits = rounds * wait + (rounds - 1) * kNext;

  const std::int64_t rows = std::min<std::int64_t>(plan.rows, args.m);
  const int at_once = kWarps / plan.across * limits.rows();
  const double turns = double(ceil_div(rows, at_once));
  const bool wide = args.in == DType::f64 || args.in == DType::cf64;
  const double cost = (is_complex(args.in) ? 4 : 1) * (wide ? kDouble : 1);
  const double products =
      turns * limits.rows() * depth * (plan.cols * cost * kProduct + limits.size * kByte);
  const double crossing =
      is_transposed(args.transA) ? lines_of(int(rows)) * depth / double(kThreads) : 0;
  const double work = each * (products + crossing * kCrossing + kBlock);

  const double elements =
      double(args.m) * double(args.n) + (double(args.m) + double(args.n)) * double(args.k);
  const double memory = elements * double(args.batch) * limits.size * 1e6 / memory_rate_of(device);
  return kStart + (2 * blocks > units * room ? kAlone : 0) +
         std::sqrt(waits * waits + work * work + memory * memory);
}

/// Of the blocks that the device has room for, a plan has one in so many: those of a kernel begin
/// while the one before ends only where there is room for both, and fewer fetch less of B.
constexpr int kShares[] = {1, 2, 3, 4, 5};

Plan plan_of(const GemmArgs& args, const DeviceInfo& device, int cols, int share) {
  const std::int64_t warps = ceil_div(args.n, 32 * cols);
  Plan plan;
  plan.cols = cols;
  // Fewer side by side where fewer would then have nothing.
  for (int across = kWarps / 2; across > 0; across /= 2)
    if (ceil_div(warps, across) * across < ceil_div(warps, plan.across) * plan.across)
      plan.across = across;
  plan.strips = ceil_div(warps, plan.across);

  const Limits limits = {depth_of(args.k), cols, size_of(args.in)};
  const std::int64_t slots = std::int64_t(std::max(device.compute_units, 1)) * limits.blocks();
  const std::int64_t wanted = std::max<std::int64_t>(slots / share / (plan.strips * args.batch), 1);
  const std::int64_t rounds = ceil_div(ceil_div(args.m, wanted), limits.most_rows());
  const bool turns = is_transposed(args.transB);
  const std::int64_t least = turns ? kLeastRowsToTurn : kLeastRows;
  const int unit = kWarps / plan.across * limits.rows();
  plan.rows = int(ceil_div(std::max(ceil_div(args.m, wanted * rounds), least), unit)) * unit;
  plan.chunks = ceil_div(args.m, plan.rows);

  const int lines = lines_of(plan.rows) + (turns ? plan.across * 32 * cols : 0);
  plan.shared = std::size_t(lines * limits.pitch() * limits.size);
  // Not more than launches by other threads let the kernel have meanwhile.
  plan.fits = limits.fits() && plan.shared <= device.shared_memory / 2;
  plan.microseconds = estimate(plan, args, device);
  return plan;
}

/// A configuration: the columns of a lane.
const ConfigList<int>& configs() {
  static const auto list = [] {
    ConfigList<int> all;
    for (const int cols : kCols) all.add(cols, "columns" + std::to_string(cols));
    return all;
  }();
  return list;
}

/// What is estimated to be fastest, by the configuration's columns if there is one.
Plan plan_of(const GemmArgs& args, const DeviceInfo& device) {
  const std::tuple key(args.in, args.config, args.m, args.n, args.k, args.batch,
                       is_transposed(args.transA), is_transposed(args.transB), device.compute_units,
                       device.shared_memory, device.memory_rate);
  thread_local Memo<std::remove_const_t<decltype(key)>, Plan> memo;
  return memo(key, [&] {
    Plan best;
    for (const int cols : kCols) {
      if (args.config >= 0 && cols != configs()[args.config]) continue;
      for (const int share : kShares) {
        const Plan plan = plan_of(args, device, cols, share);
        const bool better = plan.fits && (!best.fits || plan.microseconds < best.microseconds);
        if (best.cols == 0 || better) best = plan;
      }
    }
    return best;
  });
}

/// Whether an operand's lines can be read 16 bytes at a time.
bool has_vectors(const Input& x, const GemmArgs& args) {
  return access_bits(x, args.batch, size_of(args.in)) % 16 == 0;
}

/// Whether tensor_bf16x6 is faster for complex numbers: what tensor cores save grows with the
/// multiply-adds; what they cost does not.
bool is_slower_than_planes(const GemmArgs& args, const DeviceInfo& device) {
  const double products = double(args.m) * double(args.n) * double(args.k) * double(args.batch);
  return args.compute == Compute::Default && runs_hopper(device) && args.k > 8 &&
         products > (args.k > 16 ? 1 << 26 : 1 << 28) && has_vectors(args.A, args) &&
         has_vectors(args.B, args);
}

/// Microseconds that other rows are estimated to take, with what their estimates were out by for
/// 1,170 products with k up to 32, within graphs on an H200.
double others(const GemmArgs& args, const DeviceInfo& device) {
  constexpr double kFittedOverlap = 1.3, kFitted = 1.17, kBatchOfDoubles = 1.1;
  const bool doubles = args.in == DType::f64 || args.in == DType::cf64;
  const bool batch = args.batch > 1;
  double least = doubles ? (batch ? kBatchOfDoubles : 1) * tensor_f64_cycles(args, device) /
                               kTensorF64CyclesPerMicrosecond
                         : simt_microseconds_of_many(args.in, simt_microseconds(args, device));
#ifdef MBLAS_HAVE_HOPPER
  if (doubles)
    least = std::min(least, tensor_f64_tma_cycles(args, device) / kTensorF64CyclesPerMicrosecond);
#endif
  if (!batch || args.in == DType::cf64) return least;
  double fitted = fitted_cycles(args, device) / kFittedCyclesPerMicrosecond;
  if (!doubles) fitted -= kFittedOverlap;
  return std::min(least, (args.in == DType::f32 ? kFitted : 1) * fitted);
}

/// Why other rows are faster; null: they are not.
const char* is_slower(const GemmArgs& args, const DeviceInfo& device) {
  if (args.batch == 1 && args.m < kLeastRows) return "for C of at least 8 rows";
  if (args.in == DType::cf32 && is_slower_than_planes(args, device))
    return "tensor_bf16x6 is faster";
  constexpr double kTf32 = 1.2;
  if (is_tf32(args) && args.keeper) return "for calls of TF32 without a plan";
  double least = others(args, device);
  if (is_tf32(args)) least = std::min(least, kTf32 * tf32_microseconds(args, device));
  return plan_of(args, device).microseconds < least ? nullptr
                                                    : "estimated to be slower than other rows";
}

const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (size_of(args.in) < 4) return "for types of 4 bytes and more";
  if (args.k > kMostDepth) return "for k of at most 32";
  if (args.config == kOwnChoice)
    if (const char* reason = is_slower(args, device)) return reason;
  const Plan plan = plan_of(args, device);
  if (!plan.fits) return "has no room for so many columns";
  if (plan.strips * plan.chunks > std::numeric_limits<int>::max() / args.batch)
    return "for fewer matrices";
  if (const char* reason = declines_halfway(args)) return reason;
  return declines_emulation_but_tf32(args, device);
}

template <class V>
void run_as(const GemmArgs& args, const Plan& plan, const CudaQueue& queue) {
  using T = typename V::Element;
  ShortProblem<T> p{gemm_problem<T, T>(args, queue, 1, 1)};
  p.across = plan.across;
  p.rows = plan.rows;
  p.strips = plan.strips;
  p.chunks = plan.chunks;
  p.vectors_a = has_vectors(args.A, args);
  p.vectors_b = has_vectors(args.B, args);
  launch_early(queue, short_k_kernel<V>, unsigned(p.strips * p.chunks * args.batch), kThreads,
               plan.shared, p);
}

template <class T, int kDepth>
void run_depth(const GemmArgs& args, const Plan& plan, const CudaQueue& queue) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto run_cols = [&]<int kCols>() {
      if constexpr (Limits{kDepth, kCols, int(sizeof(T))}.fits())
        if (plan.cols == kCols) run_as<Variant<T, kDepth, kCols>>(args, plan, queue);
    };
    (run_cols.template operator()<kCols[i]>(), ...);
  }
  (std::make_index_sequence<std::size(kCols)>());
}

template <class T>
void run_type(const GemmArgs& args, const CudaQueue& queue) {
  const Plan plan = plan_of(args, queue.device());
  [&]<int... i>(std::integer_sequence<int, i...>) {
    const int depth = depth_of(args.k);
    ((depth == (i + 1) * kDepthStep ? run_depth<T, (i + 1) * kDepthStep>(args, plan, queue)
                                    : void()),
     ...);
  }
  (std::make_integer_sequence<int, kMostDepth / kDepthStep>());
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  if (args.in == DType::f32)
    run_type<float>(args, queue);
  else if (args.in == DType::f64)
    run_type<double>(args, queue);
  else if (args.in == DType::cf32)
    run_type<Complex<float>>(args, queue);
  else
    run_type<Complex<double>>(args, queue);
}

}  // namespace short_k_file

double short_k_microseconds(const GemmArgs& call, const DeviceInfo& device) {
  using namespace short_k_file;
  GemmArgs args = call;
  args.config = kOwnChoice;  // else another kernel's
  const double none = std::numeric_limits<double>::infinity();
  if (args.k > kMostDepth) return none;
  const Plan plan = plan_of(args, device);
  return plan.fits ? plan.microseconds : none;
}

Kernel<GemmArgs> short_k() {
  using namespace short_k_file;
  return {"short_k",
          "short sums: k up to 32, B's columns in registers, C row by row",
          declines,
          gemm_pointer_bytes,
          run,
          nullptr,
          configs().names()};
}

}  // namespace mblas::cuda::gemm
