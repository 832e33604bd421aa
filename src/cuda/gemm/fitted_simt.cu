// `fitted` on the ordinary cores: a thread has 4×8 floats of C, or 8×4 complex ones. With 8×8
// floats there are too few threads to hide each other's waiting: 65³ 22.5 us of 300, and 20.7.
#include "cuda/gemm/fitted.cuh"
#include "cuda/gemm/pairs.cuh"
#include "cuda/gemm/products.cuh"

namespace mblas::cuda::fitted {
namespace {

/// kCount elements of an operand's outer dimension, thread `at` of `of`, from a panel: neighbours
/// where it runs along k, else vectors of neighbours dealt out in turn. Either way threads that are
/// served together read different banks.
template <class T, class Panel, int kCount, bool kAlongK>
struct Side {
  static constexpr int kVec = kVector<T>;

  int from;
  __device__ explicit Side(int at) : from(kAlongK ? Panel::at(at * kCount, 0, 0) : at * kVec) {}

  /// Elements l to l + kSteps of k of each, where it runs along k.
  template <int kSteps>
  __device__ void read(T (&to)[kCount][kSteps], const T* panel, int l, bool conjugate) const {
#pragma unroll
    for (int o = 0; o < kCount; ++o) {
      const auto v = *reinterpret_cast<const Vector<T, kSteps>*>(panel + from + Panel::at(o, l, 0));
#pragma unroll
      for (int e = 0; e < kSteps; ++e) to[o][e] = widen(v.e[e], conjugate);
    }
  }
  /// Element l of k of each, where it does not.
  __device__ void read(T (&to)[kCount], const T* panel, int pitch, int l, int of,
                       bool conjugate) const {
#pragma unroll
    for (int o = 0; o < kCount; o += kVec) {
      const auto v =
          *reinterpret_cast<const Vector<T>*>(panel + from + o * of + Panel::at(0, l, pitch));
#pragma unroll
      for (int i = 0; i < kVec; ++i) to[o + i] = widen(v.e[i], conjugate);
    }
  }
  /// Where element o is in the tile.
  __device__ static int index(int at, int of, int o) {
    return kAlongK ? at * kCount + o : at * kVec + o / kVec * kVec * of + o % kVec;
  }
};

template <class T, bool kAAlongK_, bool kBAlongK_>
struct SimtMultiply {
  using Element = T;
  static constexpr bool kAAlongK = kAAlongK_, kBAlongK = kBAlongK_;
  static constexpr Unit kUnit = is_complex_v<T> ? kComplexFloat : kFloat;
  static constexpr int kRows = kUnit.rows, kCols = kUnit.cols;
  using PanelA = Panel<kUnit.a, kAAlongK>;
  using PanelB = Panel<kUnit.b, kBAlongK>;
  using A = Side<T, PanelA, kRows, kAAlongK>;
  using B = Side<T, PanelB, kCols, kBAlongK>;
  // Of k at a time: what runs along k is read by vectors of so many, and takes registers.
  static constexpr int kSteps = sizeof(T) == 4 ? 2 : 1;

  A left;
  B right;
  T sum[kRows][kCols] = {};

  /// Which share of the tile the thread has; those beyond the last one have none. Threads lie in
  /// pairs, but for an odd last row.
  struct Place {
    int down, across;
    __device__ explicit Place(const Problem<T>& p) {
      const int thread = thread_now(), even = p.down / 2 * 2, single = thread - even * p.across;
      down = single < 0 ? pairs::row(thread, p.across) : even + single / p.across;
      across = single < 0 ? pairs::col(thread, p.across) : single % p.across;
    }
  };

  __device__ SimtMultiply(const Problem<T>& p, int /*rows*/, int /*cols*/)
      : SimtMultiply(p, Place(p)) {}
  __device__ SimtMultiply(const Problem<T>& p, const Place& at)
      : left(min(at.down, p.down - 1)), right(at.across) {}

  __device__ void add(const Problem<T>& p, const T* a, const T* b, int depth) {
#pragma unroll 1
    for (int l = 0; l < depth; l += kSteps) {
      // What runs along k is read for some steps at once, the rest step by step.
      T x[kRows][kSteps], y[kCols][kSteps];
      if constexpr (kAAlongK) left.read(x, a, l, p.conjugate_a);
      if constexpr (kBAlongK) right.read(y, b, l, p.conjugate_b);
#pragma unroll
      for (int e = 0; e < kSteps; ++e) {
        T x_now[kRows] = {}, y_now[kCols] = {};
        if constexpr (!kAAlongK) left.read(x_now, a, p.pitch_a, l + e, p.down, p.conjugate_a);
        if constexpr (!kBAlongK) right.read(y_now, b, p.pitch_b, l + e, p.across, p.conjugate_b);
        add_products<Reuse::A>([&](int i) { return kAAlongK ? x[i][e] : x_now[i]; },
                               [&](int j) { return kBAlongK ? y[j][e] : y_now[j]; }, sum);
      }
    }
  }

  /// f(row, column, vector) with all sums.
  template <class F>
  __device__ void for_each(const Problem<T>& p, F&& f) const {
    constexpr int kVec = kVector<T>;
    const Place at(p);
    if (at.down >= p.down) return;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kCols; j += kVec) {
        Vector<T> v;
#pragma unroll
        for (int e = 0; e < kVec; ++e) v.e[e] = sum[i][j + e];
        f(A::index(at.down, p.down, i), B::index(at.across, p.across, j), v);
      }
  }
};

}  // namespace

void run_simt(const GemmArgs& args, const Shape& shape, const Tiling& tiling,
              const CudaQueue& queue) {
  with_majors(args, [&]<bool kA, bool kB>() {
    if (args.in == DType::f32)
      launch_fitted<SimtMultiply<float, kA, kB>>(args, shape, tiling, queue);
    else
      launch_fitted<SimtMultiply<Complex<float>, kA, kB>>(args, shape, tiling, queue);
  });
}

}  // namespace mblas::cuda::fitted
