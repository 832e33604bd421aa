// Products of `thin_batch` on the ordinary cores: a lane computes kRows×kCols of C, or a team of
// lanes does, each with its share of k.
#include <bit>
#include <cmath>

#include "cuda/gemm/parts.cuh"
#include "cuda/gemm/products.cuh"
#include "cuda/gemm/thin_batch.cuh"

namespace mblas::cuda::thin_batch {
namespace {

template <class T, int kRows_, int kCols_, int kThreads_>
struct MultiplySimt {
  static constexpr int kRows = kRows_, kCols = kCols_, kThreads = kThreads_;
  static constexpr int kSums = int(std::bit_ceil(unsigned(kRows * kCols)));  // as add_team() halves
  static constexpr int kMostTeam = 32, kAtOnce = kThreads, kDepth = 1, kSumsBytes = 0;
  static constexpr int kWords = kRows * kCols * int(sizeof(T)) / 4;  // registers for them
  static constexpr int kBlocks = (kWords >= 32   ? 4
                                  : kWords >= 20 ? 5
                                  : kWords >= 12 ? 6
                                                 : 8) *
                                 128 / kThreads;

  template <class Out, bool kReads>
  __device__ static void run(const Problem<T>& p, const Products& some) {
    const int thread = int(threadIdx.x), team = 1 << p.team, member = thread & (team - 1);
    const int all = some.count * p.per_matrix, k = int(p.k);
    const int x_hop = p.x_step << p.team, y_hop = p.y_step << p.team;
    // All lanes of a warp stay for the sums of teams.
    for (int t = thread >> p.team; t - (thread % 32 >> p.team) < all; t += kThreads >> p.team) {
      const bool there = t < all;
      const int g = there ? p.by_per_matrix.quotient(t) : 0;
      const int tile = there ? t - g * p.per_matrix : 0;
      const int col = p.by_down.quotient(tile), row = tile - col * p.down;
      const char *x[kRows], *y[kCols];
#pragma unroll
      for (int e = 0; e < kRows; ++e)
        x[e] = some.x + g * p.x.matrix + min(row + e * p.down, p.length - 1) * p.x_line +
               member * p.x_step;
#pragma unroll
      for (int e = 0; e < kCols; ++e)
        y[e] = some.y + g * p.y.matrix + min(col * kCols + e, p.count - 1) * p.y_line +
               member * p.y_step;
      T each[kRows][kCols] = {};
#pragma unroll 2
      for (int l = member; l < k; l += team) {
        T a[kRows], b[kCols];
#pragma unroll
        for (int e = 0; e < kRows; ++e) {
          a[e] = widen(*reinterpret_cast<const T*>(x[e]), p.conjugate_x);
          x[e] += x_hop;
        }
#pragma unroll
        for (int e = 0; e < kCols; ++e) {
          b[e] = widen(*reinterpret_cast<const T*>(y[e]), p.conjugate_y);
          y[e] += y_hop;
        }
        add_products<Reuse::B>([&](int i) { return a[i]; }, [&](int j) { return b[j]; }, each);
      }
      T sum[kSums] = {};
#pragma unroll
      for (int e = 0; e < kRows * kCols; ++e) sum[e] = each[e / kCols][e % kCols];
      char* const c = some.c + g * p.c.matrix + row * p.c_x + col * kCols * p.c_y;
      const int right = p.count - col * kCols, below = p.length - row;
      if (p.team == 0) {
        if (!there) continue;
        char* line = c;
#pragma unroll
        for (int i = 0; i < kRows; ++i, line += p.down * p.c_x) {
          if (i * p.down >= below) break;
          char* to = line;
#pragma unroll
          for (int j = 0; j < kCols; ++j, to += p.c_y)
            if (j < right) put<kReads, Out>(p, sum[i * kCols + j], to);
        }
        continue;
      }
      parts::add_team(sum, team, member);
      const int from = member * kSums >> p.team;
      if (!there || from << p.team != member * kSums) continue;  // others have the same
#pragma unroll
      for (int e = 0; e < kSums / 2; ++e) {
        const int i = (from + e) / kCols, j = (from + e) % kCols;
        if (e > 0 && e >= kSums >> p.team) break;
        if (i < kRows && i * p.down < below && j < right)
          put<kReads, Out>(p, sum[e], c + i * p.down * p.c_x + j * p.c_y);
      }
    }
  }
};

constexpr int kGroupBytes = 40 << 10;

/// f<Multiply>() of what is compiled for the call.
template <class T, class F>
void with_multiply(const Plan& plan, F&& f) {
  constexpr int kRows = 4, kMostCols = sizeof(T) == 4 ? 8 : 4;
  const int cols = int(ceil_div(plan.count, ceil_div(plan.count, kMostCols)));  // of equal tiles
  const bool large = plan.bytes(1) > kGroupBytes;  // few blocks of a multiprocessor
  const auto with = [&]<int kCols>() {
    if (large)
      f.template operator()<MultiplySimt<T, kRows, kCols, 256>>();
    else
      f.template operator()<MultiplySimt<T, kRows, kCols, 128>>();
  };
  if (cols <= 2) return with.template operator()<2>();
  if (cols == 3) return with.template operator()<3>();
  if (cols == 4) return with.template operator()<4>();
  if constexpr (kMostCols > 4) {
    if (cols == 5) return with.template operator()<5>();
    if (cols == 6) return with.template operator()<6>();
    with.template operator()<8>();
  }
}

template <class T>
void run_as(const GemmArgs& args, const CudaQueue& queue) {
  const Plan plan(args);
  with_multiply<T>(
      plan, [&]<class Multiply>() { launch<T, T, Multiply>(args, plan, queue, kGroupBytes); });
}

/// In cycles of 1.98 GHz: fitted to 600 batches of 10 to 30,000 on an H200.
template <class T>
double cycles_of(const GemmArgs& args, const DeviceInfo& device) {
  constexpr double kStart = 6200, kMemory = 2500;  // bytes from and to memory in a cycle
  constexpr double kRate = 55;                     // multiply-adds of a multiprocessor in a cycle
  constexpr double kCopy = 0.6;                    // of 16 bytes or less
  constexpr double kStep = 78;  // of k, for 32 multiply-adds and loads of a lane that has no others
  constexpr double kProducts = is_complex_v<T> ? 4 : 1;
  const Plan plan(args);
  double cycles = 0;
  with_multiply<T>(plan, [&]<class Multiply>() {
    constexpr int kRows = Multiply::kRows, kCols = Multiply::kCols;
    const Shares shares = shares_of<Multiply>(args, plan, device, kGroupBytes);
    const double k = double(args.k), units = std::max(device.compute_units, 1);
    const double products = double(shares.per_matrix) * kRows * kCols * k * kProducts;
    const auto copies = [](const Image& x) {
      return double(x.rows) * x.units * (x.packed ? x.unit / 16.0 : 1.0);
    };
    // Lanes that share a tile's k read one row of k after the other: a bank once in a cycle.
    constexpr int kLanes = 128 / sizeof(T);  // that read at a time
    const int team = std::min(1 << shares.team, kLanes),
              tiles = std::min(kLanes / team, shares.down);
    const auto turns_of = [&](const Image& x, int near, int far) {
      return whole::lanes_of_a_bank(sizeof(T), x.pitch, near, far);
    };
    const int turns_x =
        plan.x_along_k ? turns_of(plan.x, team, tiles) : turns_of(plan.x, tiles, team);
    const int turns_y = plan.y_along_k ? 1 : turns_of(plan.y, 1, team);
    const double reads =
        double(shares.per_matrix) * k / kLanes * (kRows * turns_x + kCols * turns_y);
    const double each = std::max(products / kRate, reads) +
                        kCopy * (copies(plan.x) + copies(plan.y) + copies(plan.c));
    const std::int64_t lanes = std::int64_t(shares.group) * shares.per_matrix << shares.team;
    const double steps = double(ceil_div(lanes, Multiply::kThreads)) * k / (1 << shares.team);
    const double step = (kRows * kCols * kProducts + 2 * (kRows + kCols)) / 32 * kStep;
    const double elements = double(args.m + args.n) * k + double(args.m) * double(args.n);
    cycles = kStart + std::hypot(double(args.batch) / units * each + steps * step,
                                 elements * sizeof(T) * double(args.batch) / kMemory);
  });
  return cycles;
}

}  // namespace

void run_simt(const GemmArgs& args, const CudaQueue& queue) {
  if (args.in == DType::f32)
    run_as<float>(args, queue);
  else
    run_as<Complex<float>>(args, queue);
}

double simt_microseconds(const GemmArgs& args, const DeviceInfo& device) {
  constexpr double kCyclesPerMicrosecond = 1980;
  return (args.in == DType::f32 ? cycles_of<float>(args, device)
                                : cycles_of<Complex<float>>(args, device)) /
         kCyclesPerMicrosecond;
}

}  // namespace mblas::cuda::thin_batch
