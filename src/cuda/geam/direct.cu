// Memory-bound: without a transposed operand every thread computes the elements that it reads, four
// accesses of each operand on their way at a time. Matrices without gaps are one long row.
#include "cuda/geam/turned.cuh"
#include "cuda/kernels.hpp"

namespace mblas::cuda::geam {
namespace direct_file {

constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kAtOnce = 4;

/// A block takes kAtOnce pieces of rows below one another, of 2^log_width accesses each and as many
/// rows a piece as there are threads for: few idle ones where rows are short. Pieces are numbered
/// along the rows. `count`: elements of a matrix that is cut into rows of which the last is
/// shorter.
template <class T, bool kBoth, bool kVectors>
__global__ void __launch_bounds__(kThreads)
    direct_kernel(const __grid_constant__ GeamProblem<Accumulator<T>> p,
                  const __grid_constant__ turn::Part part, std::int64_t count, unsigned pieces,
                  int log_width) {
  begin_early();
  constexpr int kElements = kVectors ? 16 / int(sizeof(T)) : 1;
  using Raw = RawElement<T>;
  using Unit = std::conditional_t<kVectors, uint4, Raw>;
  const std::int64_t batch = part.batch + blockIdx.z;
  const auto& term = p.a.present ? p.a : p.b;  // the only one, unless there are both or none
  const bool reads = kBoth || term.present;
  const auto* a = static_cast<const Raw*>(term.X.at(batch));
  const auto* b = kBoth ? static_cast<const Raw*>(p.b.X.at(batch)) : nullptr;
  auto* c = static_cast<Raw*>(p.C.at(batch));
  const unsigned rows = kThreads >> log_width, row = threadIdx.x >> log_width;
  const unsigned col = threadIdx.x & ((1u << log_width) - 1);
  const std::int64_t j =
      ((std::int64_t(blockIdx.x % pieces) << log_width) + col) * std::int64_t(kElements);
  const std::int64_t i0 = std::int64_t(blockIdx.x / pieces) * rows * kAtOnce + row;

  const auto end_of = [&](std::int64_t i) { return min(p.n, count - i * p.n); };
  Unit x[kAtOnce] = {}, y[kAtOnce] = {};
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const std::int64_t i = i0 + k * std::int64_t(rows);
    if (!reads || i >= p.m || j + kElements > end_of(i)) continue;
    x[k] = *reinterpret_cast<const Unit*>(a + i * term.ld + j);
    if constexpr (kBoth) y[k] = *reinterpret_cast<const Unit*>(b + i * p.b.ld + j);
  }
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const std::int64_t i = i0 + k * std::int64_t(rows);
    if (i >= p.m) continue;
    const std::int64_t end = end_of(i);
    if (j + kElements <= end) {
      Unit result;
      if constexpr (kVectors && kBoth)
        result = sum_vectors<T>(p, x[k], y[k]);
      else if constexpr (kVectors)
        result = scale_vectors<T>(term, x[k]);
      else if constexpr (kBoth)
        result = sum_raw<T>(p, x[k], y[k]);
      else
        result = scale_raw<T>(term, x[k]);
      turn::store_whole(c + i * p.ldc + j, result);
    } else {
      for (std::int64_t e = j; e < end; ++e) {
        const Raw value = reads ? a[i * term.ld + e] : Raw{};
        if constexpr (kBoth)
          c[i * p.ldc + e] = sum_raw<T>(p, value, b[i * p.b.ld + e]);
        else
          c[i * p.ldc + e] = scale_raw<T>(term, value);
      }
    }
  }
}

const char* declines(const GeamArgs& args, const DeviceInfo&) {
  if (turns(args)) return "for sums without a transposed operand";
  if (operand_bits(args, false) % std::uintptr_t(size_of(args.type)) != 0)
    return "elements must be aligned to their size";
  return nullptr;
}

template <class T>
void run_typed(const GeamArgs& args, const CudaQueue& queue) {
  constexpr auto kSize = std::int64_t(sizeof(T));
  auto p = geam_problem<T>(args, queue, 1, 1);
  std::int64_t count = args.m * args.n;
  auto bits = operand_bits(args, true);
  const bool packed = p.ldc == p.n && (!p.a.present || p.a.ld == p.n) &&
                      (!p.b.present || p.b.ld == p.n) && (args.batch == 1 || bits % 16 == 0);
  if (packed) {  // cut into rows that a block takes at once
    p.n = p.ldc = p.a.ld = p.b.ld = kThreads * 16 / kSize;
    p.m = ceil_div(count, p.n);
    if (args.batch == 1) bits = operand_bits(args, false);
  }
  const bool vectors = bits % 16 == 0;
  const std::int64_t accesses = ceil_div(p.n, vectors ? 16 / kSize : 1);
  int log_width = 0;
  while ((1 << log_width) < kThreads && (std::int64_t(1) << log_width) < accesses) ++log_width;
  const std::int64_t rows = std::int64_t(kThreads >> log_width) * kAtOnce;
  const std::int64_t pieces = ceil_div(accesses, std::int64_t(1) << log_width);
  const auto launch_kernel = [&](auto kernel) {
    turn::for_each_part(1, args.batch, [&](const turn::Part& part, unsigned, unsigned z) {
      launch_early(queue, kernel, dim3(unsigned(pieces * ceil_div(p.m, rows)), 1, z), kThreads, 0,
                   p, part, count, unsigned(pieces), log_width);
    });
  };
  const bool both = p.a.present && p.b.present;
  if (both && vectors)
    launch_kernel(direct_kernel<T, true, true>);
  else if (both)
    launch_kernel(direct_kernel<T, true, false>);
  else if (vectors)
    launch_kernel(direct_kernel<T, false, true>);
  else
    launch_kernel(direct_kernel<T, false, false>);
}

void run(const GeamArgs& args, Queue& base) {
  const auto& queue = static_cast<const CudaQueue&>(base);
  with_geam_type(args.type, [&]<class T>() { run_typed<T>(args, queue); });
}

}  // namespace direct_file

Kernel<GeamArgs> direct() {
  using namespace direct_file;
  return {"direct", "no operand transposed: 16-byte vectors where rows are aligned", declines,
          geam_pointer_bytes, run};
}

}  // namespace mblas::cuda::geam
