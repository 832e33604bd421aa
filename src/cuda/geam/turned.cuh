// geam by the tile machinery of the transpose. C = alpha op(A) + beta op(B) with at least one
// operand transposed is a transpose on whose way something is computed: where both are, their sum
// is turned; where one is, the other one is added when C is written, by the thread that writes it,
// so that it may be C itself.
#pragma once

#include <bit>

#include "cuda/geam/geam.cuh"
#include "cuda/transpose/turn.cuh"

namespace mblas::cuda::geam {

/// Which operands are turned: the only one there is, one of two, or both.
enum class Turned { Only, One, Both };

template <class T>
using RawElement = turn::Raw<int(sizeof(T))>;

/// A vector and its elements.
template <class T, class V>
union Lanes {
  static constexpr int kCount = int(sizeof(V) / sizeof(T));
  V vector;
  RawElement<T> raw[kCount];
};

/// alpha a + beta b of operands that are both read, as bits.
template <class T, class Acc>
__device__ RawElement<T> sum_raw(const GeamProblem<Acc>& p, RawElement<T> a, RawElement<T> b) {
  const Acc first = p.a.scalar * widen(std::bit_cast<T>(a), p.a.conjugate);
  const Acc second = widen(std::bit_cast<T>(b), p.b.conjugate);
  return std::bit_cast<RawElement<T>>(narrow<T>(multiply_add(p.b.scalar, second, first)));
}
template <class T, class V, class Acc>
__device__ V sum_vectors(const GeamProblem<Acc>& p, V a, V b) {
  const Lanes<T, V> x = {a}, y = {b};
  Lanes<T, V> result;
#pragma unroll
  for (int k = 0; k < result.kCount; ++k) result.raw[k] = sum_raw<T>(p, x.raw[k], y.raw[k]);
  return result.vector;
}

/// The same of the only operand that is read.
template <class T, class Acc>
__device__ RawElement<T> scale_raw(const GeamTerm<Acc>& term, RawElement<T> x) {
  return std::bit_cast<RawElement<T>>(
      narrow<T>(term.scalar * widen(std::bit_cast<T>(x), term.conjugate)));
}
template <class T, class V, class Acc>
__device__ V scale_vectors(const GeamTerm<Acc>& term, V x) {
  Lanes<T, V> result = {x};
#pragma unroll
  for (int k = 0; k < result.kCount; ++k) result.raw[k] = scale_raw<T>(term, result.raw[k]);
  return result.vector;
}

/// The sum of two transposed operands, as they are stored.
template <class T, class Acc, class Mark>
struct SumSource {
  static constexpr int S = int(sizeof(T));
  const GeamProblem<Acc>& p;
  turn::Source<S, Mark> a, b;

  __device__ uint4 vector(std::int64_t i, std::int64_t j) const {
    return sum_vectors<T>(p, a.vector(i, j), b.vector(i, j));
  }
  __device__ uint4 part(std::int64_t i, std::int64_t j, int count) const {
    return sum_vectors<T>(p, a.part(i, j, count), b.part(i, j, count));
  }
  struct Cursor {
    const GeamProblem<Acc>& p;
    typename turn::Source<S, Mark>::Cursor a, b;

    __device__ void skip(int rows) { a.skip(rows), b.skip(rows); }
    __device__ uint4 vector() const { return sum_vectors<T>(p, a.vector(), b.vector()); }
    __device__ uint4 part(int count) const {
      return sum_vectors<T>(p, a.part(count), b.part(count));
    }
    __device__ turn::Raw<S> element() const { return sum_raw<T>(p, a.element(), b.element()); }
  };
  __device__ Cursor at(std::int64_t i, std::int64_t j) const { return {p, a.at(i, j), b.at(i, j)}; }
  template <int kThreads>
  __device__ void take_marks_back(std::int64_t i0, std::int64_t j0, int rows, int cols) const {
    a.template take_marks_back<kThreads>(i0, j0, rows, cols);
    b.template take_marks_back<kThreads>(i0, j0, rows, cols);
  }
};

/// Writes C of the turned operand and, where there is another one, of that.
template <class T, Turned kTurned, class Acc>
struct SumSink {
  static constexpr int S = int(sizeof(T));
  static constexpr bool kOther = kTurned == Turned::One;
  using Raw = turn::Raw<S>;
  /// What is added to a vector.
  template <class V>
  struct Other {
    V v;
  };
  template <class V>
  using Ahead = std::conditional_t<kOther, Other<V>, turn::Nothing>;

  const GeamProblem<Acc>& p;
  turn::Sink<S> c;
  const Raw* other;
  std::int64_t ld;
  GeamTerm<Acc> turned;
  bool other_is_a;

  template <class V>
  __device__ V combine(V x, Ahead<V> ahead) const {
    if constexpr (!kOther)
      return scale_vectors<T>(turned, x);
    else
      return other_is_a ? sum_vectors<T>(p, ahead.v, x) : sum_vectors<T>(p, x, ahead.v);
  }
  __device__ Raw combine_at(Raw x, const Raw* place) const {
    if constexpr (kOther)
      return combine<Raw>(x, {*place});
    else
      return combine<Raw>(x, {});
  }
  __device__ Ahead<uint4> look_ahead(std::int64_t i, std::int64_t j) const {
    if constexpr (kOther)
      return {*reinterpret_cast<const uint4*>(other + i * ld + j)};
    else
      return {};
  }
  __device__ void vector(std::int64_t i, std::int64_t j, uint4 v, Ahead<uint4> ahead) const {
    c.vector(i, j, combine(v, ahead), {});
  }
  __device__ void part(std::int64_t i, std::int64_t j, int count, uint4 v) const {
    Lanes<T, uint4> x = {v};
#pragma unroll
    for (int k = 0; k < x.kCount; ++k)
      if (k < count) x.raw[k] = combine_at(x.raw[k], other + i * ld + j + k);
    c.part(i, j, count, x.vector);
  }
  struct Cursor {
    const SumSink& sink;
    typename turn::Sink<S>::Cursor c;
    const Raw* other;

    __device__ void skip(int rows) {
      c.skip(rows);
      if constexpr (kOther) other += rows * sink.ld;
    }
    __device__ Cursor back(int x) const { return {sink, c.back(x), other - x}; }
    __device__ std::uintptr_t address() const { return c.address(); }
    /// All of the aligned vectors must be readable that hold those of several elements.
    template <class V>
    __device__ Ahead<V> look_ahead() const {
      if constexpr (!kOther)
        return {};
      else if constexpr (sizeof(V) > S)
        return {turn::load_unaligned<V>(other)};
      else
        return {*other};
    }
    template <class V>
    __device__ void piece(V v, Ahead<V> ahead) const {
      c.piece(sink.combine(v, ahead), {});
    }
    __device__ void element(int x, Raw value) const {
      c.element(x, sink.combine_at(value, other + x));
    }
  };
  __device__ Cursor at(std::int64_t i, std::int64_t j) const {
    return {*this, c.at(i, j), other + i * ld + j};
  }
};

/// As the tile kernels want it: the transpose of C, n×m, is turned.
template <class T, Turned kTurned>
struct TurnedSum {
  using Acc = Accumulator<T>;
  static constexpr int S = int(sizeof(T));
  std::int64_t m, n, batch;
  GeamProblem<Acc> g;
  // Where not both are turned: the one that is, and the other one.
  GeamTerm<Acc> turned, other;
  bool other_is_a;

  std::int64_t pitch() const { return turned.ld * S; }
  std::int64_t bytes() const { return m * n * S * (kTurned == Turned::Both ? 2 : 1); }
  template <class Mark>
  __device__ static turn::Source<S, Mark> plain(const GeamTerm<Acc>& x, std::int64_t b, Mark mark) {
    return {static_cast<const turn::Raw<S>*>(x.X.at(b)), x.ld, mark};
  }
  template <class Mark>
  __device__ auto source(std::int64_t b, Mark mark) const {
    if constexpr (kTurned == Turned::Both)
      return SumSource<T, Acc, Mark>{g, plain(g.a, b, mark), plain(g.b, b, mark)};
    else
      return plain(turned, b, mark);
  }
  __device__ auto sink(std::int64_t b) const {
    const turn::Sink<S> c = {static_cast<turn::Raw<S>*>(g.C.at(b)), g.ldc};
    if constexpr (kTurned == Turned::Both) {
      return c;
    } else {
      const RawElement<T>* x = nullptr;
      if constexpr (kTurned == Turned::One) x = static_cast<const RawElement<T>*>(other.X.at(b));
      return SumSink<T, kTurned, Acc>{g, c, x, other.ld, turned, other_is_a};
    }
  }
};

/// f(problem) as a TurnedSum of the kind that the arguments are.
template <class T, class F>
void with_turned_sum(const GeamArgs& args, const CudaQueue& queue, F&& f) {
  const auto g = geam_problem<T>(args, queue, 1, 1);
  const bool turns_a = g.a.present && g.a.transposed;
  const auto call = [&]<Turned kTurned>() {
    f(TurnedSum<T, kTurned>{args.n, args.m, args.batch, g, turns_a ? g.a : g.b, turns_a ? g.b : g.a,
                            !turns_a});
  };
  if (!g.a.present || !g.b.present)
    call.template operator()<Turned::Only>();
  else if (g.a.transposed && g.b.transposed)
    call.template operator()<Turned::Both>();
  else
    call.template operator()<Turned::One>();
}

/// Is an operand transposed that is read at all?
inline bool turns(const GeamArgs& args) {
  return (args.alpha != Scalar{} && is_transposed(args.transA)) ||
         (args.beta != Scalar{} && is_transposed(args.transB));
}

/// The bits that must be clear for vectors, of all operands that are used; those of their elements
/// only, where `rows` is false.
inline std::uintptr_t operand_bits(const GeamArgs& args, bool rows) {
  const int size = size_of(args.type);
  const auto of = [&](const auto& x) {
    return rows ? access_bits(x, args.batch, size) : address_bits(x, args.batch);
  };
  return of(args.C) | (args.alpha != Scalar{} ? of(args.A) : 0) |
         (args.beta != Scalar{} ? of(args.B) : 0);
}

}  // namespace mblas::cuda::geam
