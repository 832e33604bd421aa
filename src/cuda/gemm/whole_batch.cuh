// The machinery behind `whole_batch`: a block has one product or a few, whose operands come whole
// to shared memory, and a thread rows and columns of one of them. Results go back by way of the
// same shared memory, or in vectors straight from registers.
//
// Operands stay as they lie, and are read along k or across it. C's sides are X's lines and Y's, X
// being op(A) or, turned, op(B): of four pairs of majors three are left.
#pragma once

#include "cuda/gemm/products.cuh"
#include "cuda/gemm/whole.cuh"
#include "cuda/gemm/whole_batch_plan.hpp"

namespace mblas::cuda::whole_batch {

template <class T>
struct Problem : GemmProblem<T> {
  DeviceInput X = {}, Y = {};
  whole::Image x = {}, y = {}, c = {};
  int length = 0, count = 0;     // of C's sides
  int x_pitch = 0, y_pitch = 0;  // elements from line to line of X, of Y, or from step to step of k
  int c_x = 0, c_y = 0;          // bytes from one to the next of C's sides
  bool turned = false;
  bool conjugate_y = false, conjugate_sums = false;
  bool direct = false;                      // C is written in vectors from registers
  int group = 0;                            // products of a block
  int down = 0, across = 0;                 // threads of a product
  turn::Divisor by_matrix{1}, by_minor{1};  // of all its threads, of those along C's rows
};

/// kCount lines of an operand, thread `at` of `of` in turn: lines lie `pitch` apart and run along
/// k, or are neighbours, in vectors where it says so.
template <class T, int kCount, bool kAlongK, bool kVectors>
struct Side {
  static constexpr int kVec = kVector<T>;

  const T* from[kAlongK ? kCount : 1];
  int pitch, of;

  __device__ Side(const char* matrix, int pitch, int at, int of, int most) : pitch(pitch), of(of) {
    const T* const x = reinterpret_cast<const T*>(matrix);
    if constexpr (kAlongK) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) from[i] = x + min(at + i * of, most - 1) * pitch;
    } else {
      from[0] = x + (kVectors ? at * kVec : at);
    }
  }

  /// The next kSteps of k of each.
  template <int kSteps>
  __device__ void read(T (&to)[kCount][kSteps], bool conjugate) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const auto v = *reinterpret_cast<const Vector<T, kSteps>*>(from[i]);
#pragma unroll
      for (int e = 0; e < kSteps; ++e) to[i][e] = widen(v.e[e], conjugate);
    }
  }
  /// Element `l` of k of each.
  __device__ void read(T (&to)[kCount], int l, bool conjugate) const {
    if constexpr (kAlongK) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) to[i] = widen(from[i][l], conjugate);
    } else if constexpr (kVectors) {
#pragma unroll
      for (int i = 0; i < kCount; i += kVec) {
        const auto v = *reinterpret_cast<const Vector<T>*>(from[0] + l * pitch + i * of);
#pragma unroll
        for (int e = 0; e < kVec; ++e) to[i + e] = widen(v.e[e], conjugate);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) to[i] = widen(from[0][l * pitch + i * of], conjugate);
    }
  }
  /// On by `steps` of k.
  __device__ void advance(int steps) {
    if constexpr (kAlongK) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) from[i] += steps;
    } else {
      from[0] += steps * pitch;
    }
  }
  /// Which line `i` is.
  __device__ static int line(int at, int of, int i) {
    return kVectors && !kAlongK ? (at + i / kVec * of) * kVec + i % kVec : at + i * of;
  }
};

template <class T, int kRows_, int kCols_, bool kXAlongK_, bool kYAlongK_, bool kVectors_>
struct Variant {
  using Element = T;
  static constexpr int kRows = kRows_, kCols = kCols_;
  static constexpr bool kXAlongK = kXAlongK_, kYAlongK = kYAlongK_, kVectors = kVectors_;
  // Of k at a time: what runs along k is read by vectors of so many, and takes registers.
  static constexpr int kSteps = kVector<T> / (kVectors && kXAlongK == kYAlongK ? 2 : 1);
  static constexpr Share kShare = share_of(kRows * kCols * int(sizeof(T)) / 4);
  using X = Side<T, kRows, kXAlongK, kVectors>;
  using Y = Side<T, kCols, kYAlongK, kVectors>;
};

/// sum += X Y.
template <class V, class T>
__device__ void multiply(const Problem<T>& p, typename V::X x, typename V::Y y,
                         T (&sum)[V::kRows][V::kCols]) {
  constexpr int kSteps = V::kSteps;
  constexpr bool kXVectors = V::kVectors && V::kXAlongK, kYVectors = V::kVectors && V::kYAlongK;
  const bool conjugate = is_complex_v<T> && p.conjugate_y;
  int left = int(p.k);
#pragma unroll 1
  for (; left >= kSteps; left -= kSteps) {
    T xs[V::kRows][kSteps] = {}, ys[V::kCols][kSteps] = {};
    if constexpr (kXVectors) x.read(xs, false);
    if constexpr (kYVectors) y.read(ys, conjugate);
#pragma unroll
    for (int e = 0; e < kSteps; ++e) {
      T a[V::kRows] = {}, b[V::kCols] = {};
      if constexpr (!kXVectors) x.read(a, e, false);
      if constexpr (!kYVectors) y.read(b, e, conjugate);
      add_products<Reuse::A>([&](int i) { return kXVectors ? xs[i][e] : a[i]; },
                             [&](int j) { return kYVectors ? ys[j][e] : b[j]; }, sum);
    }
    x.advance(kSteps);
    y.advance(kSteps);
  }
#pragma unroll 1
  for (; left > 0; --left) {
    T a[V::kRows], b[V::kCols];
    x.read(a, 0, false);
    y.read(b, 0, conjugate);
    add_products<Reuse::A>([&](int i) { return a[i]; }, [&](int j) { return b[j]; }, sum);
    x.advance(1);
    y.advance(1);
  }
}

/// Which lines of which of a block's products a thread has; found anew for its results, as sums
/// need the registers before. Neighbours are neighbours in C's rows.
struct Place {
  int matrix, row, col;  // of threads

  template <class T>
  __device__ explicit Place(const Problem<T>& p) {
    const int thread = thread_now();
    matrix = p.by_matrix.quotient(thread);
    const int tile = thread - matrix * int(p.by_matrix.d);
    const int major = p.by_minor.quotient(tile), minor = tile - major * int(p.by_minor.d);
    row = p.turned ? minor : major;
    col = p.turned ? major : minor;
  }
};

template <class V>
__global__ void __launch_bounds__(V::kShare.threads, V::kShare.blocks)
    whole_batch_kernel(const __grid_constant__ Problem<typename V::Element> p) {
  using T = typename V::Element;
  constexpr int kAny = 0;  // threads
  extern __shared__ __align__(128) char shared[];
  const auto begin = [&] { return late(int(blockIdx.x)) * std::int64_t(p.group); };
  const auto size = [&](std::int64_t first) {
    return int(min(std::int64_t(p.group), p.tiles.batch - first));
  };
  T sum[V::kRows][V::kCols] = {};
  begin_early();
  {
    const std::int64_t first = begin();
    const int count = size(first);
    const char* x = whole::bring<kAny, T>(shared, p.x, p.X, first, count, p.k > 0);
    const char* y = whole::bring<kAny, T>(shared, p.y, p.Y, first, count, p.k > 0);
    __pipeline_commit();
    const Place at(p);
    const int matrix = at.matrix < count ? at.matrix : 0;
    x += matrix * p.x.matrix;
    y += matrix * p.y.matrix;
    const typename V::X left(x, p.x_pitch, at.row, p.down, p.length);
    const typename V::Y right(y, p.y_pitch, at.col, p.across, p.count);
    __pipeline_wait_prior(0);
    __syncthreads();
    multiply<V>(p, left, right, sum);
  }

  const std::int64_t first = begin();
  const int count = size(first);
  const Place at(p);
  const auto finish = [&](T product, const T& old) {
    product = p.alpha * widen(product, p.conjugate_sums);
    return p.read_c ? multiply_add(p.beta, old, product) : product;
  };
  if constexpr (V::kVectors && !V::kYAlongK) {
    if (p.direct) {
      using Unit = Vector<T>;
      if (at.matrix >= count) return;
      T* const c = static_cast<T*>(p.C.at(first + at.matrix));
#pragma unroll
      for (int i = 0; i < V::kRows; ++i) {
        const int r = V::X::line(at.row, p.down, i);
        if (r >= p.length) continue;
#pragma unroll
        for (int j = 0; j < V::kCols; j += kVector<T>) {
          const int s = V::Y::line(at.col, p.across, j);
          if (s >= p.count) continue;
          Unit& place = *reinterpret_cast<Unit*>(c + r * p.ldc + s);
          Unit v = {};
          if (p.read_c) v = place;
#pragma unroll
          for (int e = 0; e < kVector<T>; ++e) v.e[e] = finish(sum[i][j + e], v.e[e]);
          place = v;
        }
      }
      return;
    }
  }
  __syncthreads();
  char* const results = whole::bring<kAny, T>(shared, p.c, {p.C.data, p.C.stride, p.C.pointers},
                                              first, count, p.read_c);
  if (p.read_c) {
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
  }
  if (at.matrix < count) {
    char* const c = results + at.matrix * p.c.matrix;
#pragma unroll
    for (int i = 0; i < V::kRows; ++i) {
      const int r = V::X::line(at.row, p.down, i);
      if (r >= p.length) continue;
#pragma unroll
      for (int j = 0; j < V::kCols; ++j) {
        const int s = V::Y::line(at.col, p.across, j);
        if (s >= p.count) continue;
        T& place = *reinterpret_cast<T*>(c + r * p.c_x + s * p.c_y);
        T old = {};
        if (p.read_c) old = place;
        place = finish(sum[i][j], old);
      }
    }
  }
  __syncthreads();
  whole::send<kAny, T>(shared, p.c, p.C, first, count);
}

/// How a call's operands lie in shared memory, and what its estimate needs.
struct Plan {
  whole::Image x, y, c;
  bool turned = false;  // X is op(B)
  Shape shape;

  Plan(const GemmArgs& args, const DeviceInfo& device) {
    const int size = size_of(args.in);
    const std::int64_t k = args.alpha == Scalar{} ? 0 : args.k;
    const bool a = !is_transposed(args.transA), b = is_transposed(args.transB);
    turned = !a && b;
    shape.majors = a && b ? Majors::Along : a || b ? Majors::XAlong : Majors::Across;
    // Of lines along k that neighbours have, vectors would be in few banks.
    x = whole::image_of(args.A, args.batch, a ? args.m : k, a ? k : args.m, size, false);
    y = whole::image_of(args.B, args.batch, b ? args.n : k, b ? k : args.n, size, b);
    c = whole::image_of(args.C, args.batch, args.m, args.n, size, false);
    const auto in_vectors = [&](const whole::Image& image, const Input& operand) {
      return !image.packed ||
             (access_bits(operand, args.batch, size) % 16 == 0 && image.pitch % 16 == 0);
    };
    shape.vectors = in_vectors(x, args.A) && in_vectors(y, args.B);
    shape.direct = shape.vectors && !turned && shape.majors != Majors::Along &&
                   args.n * size % 16 == 0 && access_bits(args.C, args.batch, size) % 16 == 0;
    shape.length = args.m;
    shape.count = args.n;
    if (turned) {
      std::swap(x, y);
      std::swap(shape.length, shape.count);
    }
    shape.k = k;
    shape.batch = args.batch;
    shape.element_bytes = size;
    shape.products = is_complex(args.in) ? 4 : 1;
    const auto copies_of = [](const whole::Image& image) {
      return image.packed ? 0 : std::int64_t(image.rows) * image.units;
    };
    shape.copies_in = copies_of(x) + copies_of(y);
    shape.copies_out = shape.direct ? 0 : c.packed ? whole::bytes_of(c) / 16 : copies_of(c);
    shape.x_bytes = whole::bytes_of(x);
    shape.y_bytes = whole::bytes_of(y);
    shape.c_bytes = whole::bytes_of(c);
    shape.shared_bytes = std::int64_t(device.shared_memory);
    shape.processors = std::max(device.compute_units, 1);
  }
};

void run_f32(const GemmArgs& args, const Plan& plan, const Config& config, const CudaQueue& queue);
void run_cf32(const GemmArgs& args, const Plan& plan, const Config& config, const CudaQueue& queue);

/// Computes `args` by threads of V's size.
template <class V>
void launch(const GemmArgs& args, const Plan& plan, const Config& config, const CudaQueue& queue) {
  using T = typename V::Element;
  constexpr int kSize = int(sizeof(T));
  Problem<T> p{gemm_problem<T, T>(args, queue, 1, 1)};
  if (args.alpha == Scalar{}) p.k = 0;
  p.x = plan.x;
  p.y = plan.y;
  p.c = plan.c;
  p.X = p.A;
  p.Y = p.B;
  p.c_x = p.c.pitch;
  p.c_y = kSize;
  p.turned = plan.turned;
  if (plan.turned) {
    std::swap(p.X, p.Y);
    std::swap(p.c_x, p.c_y);
  }
  p.length = plan.shape.length;
  p.count = plan.shape.count;
  p.x_pitch = p.x.pitch / kSize;
  p.y_pitch = p.y.pitch / kSize;
  // conj(x) y is conj(x conj(y)): only Y and the sums have to be conjugated.
  const bool x_conjugated = plan.turned ? p.conjugate_b : p.conjugate_a;
  const bool y_conjugated = plan.turned ? p.conjugate_a : p.conjugate_b;
  p.conjugate_sums = x_conjugated;
  p.conjugate_y = x_conjugated != y_conjugated;
  p.direct = plan.shape.direct;
  p.group = config.group;
  p.down = plan.shape.down(config);
  p.across = plan.shape.across(config);
  p.by_matrix = turn::Divisor(p.down * p.across);
  p.by_minor = turn::Divisor(plan.turned ? p.down : p.across);
  p.x.begin = p.x.packed_begin = 0;
  p.y.begin = p.y.packed_begin = int(plan.shape.y_begin(config));
  p.c.begin = p.c.packed_begin = 0;
  const std::int64_t blocks = ceil_div(args.batch, p.group);
  launch_early(queue, whole_batch_kernel<V>, unsigned(blocks), unsigned(plan.shape.threads(config)),
               std::size_t(plan.shape.bytes(config)), p);
}

/// launch() of the variant of kRows×kCols for the call's majors.
template <class T, int kRows, int kCols, bool kVectors>
void launch_majors(const GemmArgs& args, const Plan& plan, const Config& config,
                   const CudaQueue& queue) {
  if (plan.shape.majors == Majors::Across)
    launch<Variant<T, kRows, kCols, false, false, kVectors>>(args, plan, config, queue);
  else if (plan.shape.majors == Majors::Along)
    launch<Variant<T, kRows, kCols, true, true, kVectors>>(args, plan, config, queue);
  else
    launch<Variant<T, kRows, kCols, true, false, kVectors>>(args, plan, config, queue);
}

/// launch_majors() of the configuration's size, one of `kSizes`.
template <class T, bool kVectors, const auto& kSizes>
void launch_size(const GemmArgs& args, const Plan& plan, const Config& config,
                 const CudaQueue& queue) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((kSizes[i].rows == config.rows && kSizes[i].cols == config.cols
          ? launch_majors<T, kSizes[i].rows, kSizes[i].cols, kVectors>(args, plan, config, queue)
          : void()),
     ...);
  }
  (std::make_index_sequence<std::size(kSizes)>());
}

}  // namespace mblas::cuda::whole_batch
