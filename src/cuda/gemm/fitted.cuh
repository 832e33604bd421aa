// The machinery behind `fitted`: a block computes a tile of C that is as large as the matrix, or as
// an even share of it, to a multiple of a few rows and columns.
//
// Panels of op(A) and op(B), kDepth of k each, come by asynchronous copies, kStages - 1 of them
// ahead, and keep their own majors in shared memory: reading them both ways costs less than turning
// them. What multiplies them, on ordinary or tensor cores, has the sums in registers. Where rows of
// C begin anywhere, they go through shared memory in the end, so that neighbours are written
// together.
#pragma once

#include "cuda/early.cuh"
#include "cuda/gemm/fitted_plan.hpp"
#include "cuda/gemm/gemm.cuh"
#include "cuda/gemm/instructions.cuh"
#include "cuda/gemm/majors.cuh"

namespace mblas::cuda::fitted {

template <class T>
struct Problem : GemmProblem<T> {
  std::int64_t lda = 0, ldb = 0;
  int rows = 0, cols = 0;        ///< of a tile
  int down = 0, across = 0;      ///< how many share it: threads, or warps
  int pitch_a = 0, pitch_b = 0;  ///< of panels that do not run along k
  int panel_a = 0, panel_b = 0;  ///< elements
  bool vectors_c = false;        ///< C is written 16 bytes at a time
  int pitch_c = 0;               ///< elements from row to row of the tile's results
};

/// Where elements of a panel are.
template <Layout kLayout, bool kAlongK>
struct Panel {
  __device__ static constexpr int at(int outer, int l, int pitch) {
    constexpr int kGroup = kLayout.group, kPad = kLayout.pad;
    return kAlongK ? outer * kDepth + outer / kGroup * kPad + l : l * pitch + outer;
  }
};

/// Copies an operand's panels one after another, kCopied elements at a time.
template <class T, class Panel, bool kAlongK, int kCopied>
struct Loader {
  static constexpr int kSize = int(sizeof(T));

  const T* from;

  /// `outer`: how many there are; `left`: of k.
  __device__ void next(T* panel, int pitch, std::int64_t ld, int outer, int left) {
    if constexpr (kAlongK) {
      constexpr int kLanes = kDepth / kCopied;  // of a row
      const int l = int(threadIdx.x) % kLanes * kCopied, row = int(threadIdx.x) / kLanes;
      const int hop = int(blockDim.x) / kLanes;
      const int bytes = max(min(left - l, kCopied), 0) * kSize;
      const T* x = bytes > 0 ? from + row * ld + l : from;
      const std::int64_t step = bytes > 0 ? hop * ld : 0;
#pragma unroll 1
      for (int r = row; r < outer; r += hop, x += step)
        copy_async<kCopied * kSize>(shared_address(panel + Panel::at(r, l, pitch)), x, bytes);
      from += kDepth;
    } else {
      // To whole steps of 4 along k, with zeros.
      const int depth = min((left + 3) / 4 * 4, kDepth), hop = int(blockDim.x) / 32;
      const int lane = int(threadIdx.x) % 32, first = int(threadIdx.x) / 32;
#pragma unroll 1
      for (int o = lane * kCopied; o < outer; o += 32 * kCopied) {
        const int inside = min(outer - o, kCopied) * kSize;
        const T* x = from + first * ld + o;
        unsigned to = shared_address(panel + Panel::at(o, first, pitch));
#pragma unroll 1
        for (int l = first; l < depth; l += hop, x += hop * ld, to += hop * pitch * kSize)
          copy_async<kCopied * kSize>(to, l < left ? x : from, l < left ? inside : 0);
      }
      from += kDepth * ld;
    }
  }
};

/// `Multiply` computes a tile; kUnit is its row of fitted_plan.hpp.
template <class Multiply, int kCopied>
__global__ void __launch_bounds__(Multiply::kUnit.most* Multiply::kUnit.lanes, 2)
    fitted_kernel(const __grid_constant__ Problem<typename Multiply::Element> p) {
  using T = typename Multiply::Element;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const shared = reinterpret_cast<T*>(memory);
  const int panels = p.panel_a + p.panel_b;
  begin_early();

  // Where the tile is in its matrix; found anew for its results, as sums need the registers before.
  struct Place {
    int row, col, rows, cols;
  };
  const auto place = [&] {
    const int tile = late(int(blockIdx.x)), across = int(p.tiles.cols);
    const int row = tile / across * p.rows, col = tile % across * p.cols;
    return Place{row, col, min(int(p.m) - row, p.rows), min(int(p.n) - col, p.cols)};
  };
  for (std::int64_t batch = blockIdx.y; batch < p.tiles.batch; batch += gridDim.y) {
    const Place at = place();
    Loader<T, typename Multiply::PanelA, Multiply::kAAlongK, kCopied> load_a{
        static_cast<const T*>(p.A.at(batch)) + at.row * p.a.row};
    Loader<T, typename Multiply::PanelB, Multiply::kBAlongK, kCopied> load_b{
        static_cast<const T*>(p.B.at(batch)) + at.col * p.b.col};
    const auto load = [&](int stage, int left) {
      if (left > 0) {
        load_a.next(shared + stage * panels, p.pitch_a, p.lda, at.rows, left);
        load_b.next(shared + stage * panels + p.panel_a, p.pitch_b, p.ldb, at.cols, left);
      }
      commit_copies();
    };
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) load(stage, int(p.k) - stage * kDepth);

    Multiply multiply(p, at.rows, at.cols);
    int stage = 0;
#pragma unroll 1
    for (int left = int(p.k); left > 0; left -= kDepth) {
      wait_copies<kStages - 2>();
      __syncthreads();
      load(stage == 0 ? kStages - 1 : stage - 1, left - (kStages - 1) * kDepth);
      multiply.add(p, shared + stage * panels, shared + stage * panels + p.panel_a,
                   min(left, kDepth));
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }

    const Place to = place();
    T* const c = static_cast<T*>(p.C.at(batch)) + to.row * p.ldc + to.col;
    using V = Vector<T>;
    const auto finish = [&](T sum, T old) {
      const T product = p.alpha * sum;
      return p.read_c ? multiply_add(p.beta, old, product) : product;
    };
    if (p.vectors_c) {
      multiply.for_each(p, [&](int row, int col, V v) {
        if (row >= to.rows || col >= to.cols) return;
        V& place = *reinterpret_cast<V*>(c + row * p.ldc + col);
        V old = {};
        if (p.read_c) old = place;
#pragma unroll
        for (int e = 0; e < kVector<T>; ++e) v.e[e] = finish(v.e[e], old.e[e]);
        place = v;
      });
      __syncthreads();  // before the next tile's copies
      continue;
    }
    __syncthreads();
    multiply.for_each(p, [&](int row, int col, const V& v) {
      *reinterpret_cast<V*>(shared + row * p.pitch_c + col) = v;
    });
    __syncthreads();
    constexpr int kAtOnce = 4, kRun = kAtOnce * 32;
    const int lane = thread_now() % 32;
    for (int row = thread_now() / 32; row < to.rows; row += int(blockDim.x) / 32)
      for (int first = lane; first < to.cols; first += kRun) {
        T* const line = c + row * p.ldc + first;
        T old[kAtOnce] = {};  // read together
        if (p.read_c)
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i)
            if (first + i * 32 < to.cols) old[i] = line[i * 32];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (first + i * 32 < to.cols)
            line[i * 32] = finish(shared[row * p.pitch_c + first + i * 32], old[i]);
      }
    __syncthreads();
  }
}

/// By ordinary and by tensor cores.
void run_simt(const GemmArgs& args, const Shape& shape, const Tiling& tiling,
              const CudaQueue& queue);
void run_f64(const GemmArgs& args, const Shape& shape, const Tiling& tiling,
             const CudaQueue& queue);

template <class Multiply>
void launch_fitted(const GemmArgs& args, const Shape& shape, const Tiling& tiling,
                   const CudaQueue& queue) {
  using T = typename Multiply::Element;
  constexpr const Unit& kUnit = Multiply::kUnit;
  constexpr int kVec = kVector<T>;
  Problem<T> p{gemm_problem<T, T>(args, queue, tiling.rows, tiling.cols)};
  p.lda = args.A.ld;
  p.ldb = args.B.ld;
  p.rows = tiling.rows;
  p.cols = tiling.cols;
  p.down = int(ceil_div(tiling.rows, kUnit.rows));
  p.across = int(ceil_div(tiling.cols, kUnit.cols));
  p.pitch_a = kUnit.a.pitch(tiling.rows);
  p.pitch_b = kUnit.b.pitch(tiling.cols);
  p.panel_a = tiling.panel_a(shape, kUnit);
  p.panel_b = tiling.panel_b(shape, kUnit);
  p.pitch_c = tiling.pitch_c(kUnit);
  p.vectors_c = !shape.loose_c;
  constexpr std::int64_t kMostBlocks = 65535;  // along y
  const dim3 blocks(unsigned(p.tiles.rows * p.tiles.cols),
                    unsigned(std::min(p.tiles.batch, kMostBlocks)));
  const auto launch = [&]<int kCopied>() {
    launch_evenly(queue, fitted_kernel<Multiply, kCopied>, blocks, unsigned(tiling.threads(kUnit)),
                  std::size_t(tiling.shared_bytes(shape, kUnit)), p);
  };
  if (shape.loose)
    launch.template operator()<1>();
  else
    launch.template operator()<kVec>();
}

}  // namespace mblas::cuda::fitted
