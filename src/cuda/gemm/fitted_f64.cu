// `fitted` on the fp64 tensor cores: a warp has up to 32×32 of C, in tiles of 16×8 that the warps
// of a block share evenly.
#include "cuda/gemm/fitted.cuh"

namespace mblas::cuda::fitted {
namespace {

template <bool kAAlongK_, bool kBAlongK_>
struct MultiplyF64 {
  using Element = double;
  static constexpr bool kAAlongK = kAAlongK_, kBAlongK = kBAlongK_;
  static constexpr Unit kUnit = kDouble;
  static constexpr int kM = kUnit.rows / 16, kN = kUnit.cols / 8;  // tiles of the tensor cores
  using PanelA = Panel<kUnit.a, kAAlongK>;
  using PanelB = Panel<kUnit.b, kBAlongK>;

  int lane, row0, col0, tiles_m, tiles_n;
  double sum[kM][kN][4] = {};

  __device__ MultiplyF64(const Problem<double>& p, int rows, int cols)
      : lane(int(threadIdx.x) % 32) {
    const int warp = int(threadIdx.x) / 32, down = warp / p.across, across = warp % p.across;
    const auto share = [](int all, int at, int of, int& first, int& count) {
      first = at * all / of;
      count = (at + 1) * all / of - first;
    };
    share((rows + 15) / 16, down, p.down, row0, tiles_m);
    share((cols + 7) / 8, across, p.across, col0, tiles_n);
    row0 *= 16;
    col0 *= 8;
  }

  template <int kTilesM, int kTilesN>
  __device__ void add_tiles(const double* a, int pitch_a, const double* b, int pitch_b, int depth) {
    const int g = lane / 4, t = lane % 4;
    a += PanelA::at(row0 + g, t, pitch_a);
    b += PanelB::at(col0 + g, t, pitch_b);
#pragma unroll 2
    for (int l = 0; l < depth; l += 4) {
      double x[kTilesM][2], y[kTilesN];
#pragma unroll
      for (int i = 0; i < kTilesM; ++i)
#pragma unroll
        for (int r = 0; r < 2; ++r) x[i][r] = a[PanelA::at(i * 16 + r * 8, 0, 0)];
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) y[j] = b[PanelB::at(j * 8, 0, 0)];
#pragma unroll
      for (int i = 0; i < kTilesM; ++i)
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) multiply_tile(sum[i][j], x[i], y[j]);
      a += PanelA::at(0, 4, pitch_a);
      b += PanelB::at(0, 4, pitch_b);
    }
  }
  __device__ void add(const Problem<double>& p, const double* a, const double* b, int depth) {
    const auto with_rows = [&]<int kTilesM>() {
      if (tiles_n == 4)
        add_tiles<kTilesM, 4>(a, p.pitch_a, b, p.pitch_b, depth);
      else if (tiles_n == 3)
        add_tiles<kTilesM, 3>(a, p.pitch_a, b, p.pitch_b, depth);
      else if (tiles_n == 2)
        add_tiles<kTilesM, 2>(a, p.pitch_a, b, p.pitch_b, depth);
      else if (tiles_n == 1)
        add_tiles<kTilesM, 1>(a, p.pitch_a, b, p.pitch_b, depth);
    };
    if (tiles_m == 2)
      with_rows.template operator()<2>();
    else if (tiles_m == 1)
      with_rows.template operator()<1>();
  }

  /// f(row, column, vector) with all sums.
  template <class F>
  __device__ void for_each(const Problem<double>&, F&& f) const {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; ++j)
        if (i < tiles_m && j < tiles_n)
#pragma unroll
          for (int r = 0; r < 2; ++r)
            f(row0 + i * 16 + r * 8 + g, col0 + j * 8 + t * 2,
              Vector<double>{sum[i][j][2 * r], sum[i][j][2 * r + 1]});
  }
};

}  // namespace

void run_f64(const GemmArgs& args, const Shape& shape, const Tiling& tiling,
             const CudaQueue& queue) {
  with_majors(args, [&]<bool kA, bool kB>() {
    launch_fitted<MultiplyF64<kA, kB>>(args, shape, tiling, queue);
  });
}

}  // namespace mblas::cuda::fitted
