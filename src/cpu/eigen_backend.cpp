// The eigen backend: the same operations as expressions on Eigen::Map, which the hand-written
// kernels are checked and raced against. Operands are never copied.
#include <Eigen/Core>
#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#ifdef MBLAS_HAVE_OPENMP
#include <omp.h>
#endif

#include "core/builtin.hpp"
#include "cpu/declines.hpp"
#include "cpu/parallel.hpp"
#include "cpu/visit.hpp"

namespace mblas {
namespace {

using cpu::Type;

/// Row-major matrices with padded rows.
template <class T>
using Matrix =
    Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Map = Eigen::Map<std::conditional_t<std::is_const_v<T>, const Matrix<T>, Matrix<T>>,
                       Eigen::Unaligned, Eigen::OuterStride<>>;

/// Matrix `b` of an operand, as stored.
template <class T>
Map<const T> stored(const Input& X, std::int64_t b, std::int64_t rows, std::int64_t cols) {
  return {static_cast<const T*>(X.at(b, sizeof(T))), rows, cols, Eigen::OuterStride<>(X.ld)};
}
template <class T>
Map<T> stored(const Output& X, std::int64_t b, std::int64_t rows, std::int64_t cols) {
  return {static_cast<T*>(X.at(b, sizeof(T))), rows, cols, Eigen::OuterStride<>(X.ld)};
}

/// op with conjugation added or taken away.
constexpr Op conjugate(Op op) {
  switch (op) {
    case Op::NoTrans:
      return Op::ConjNoTrans;
    case Op::Trans:
      return Op::ConjTrans;
    case Op::ConjTrans:
      return Op::Trans;
    default:
      return Op::NoTrans;
  }
}

template <Op kOp>
using OpConstant = std::integral_constant<Op, kOp>;

/// Calls f(op(X), op) for the rows×cols matrix op(X).
template <class T, class F>
void with_op(const Input& X, Op op, std::int64_t b, std::int64_t rows, std::int64_t cols, F&& f) {
  const auto x = is_transposed(op) ? stored<T>(X, b, cols, rows) : stored<T>(X, b, rows, cols);
  if constexpr (Eigen::NumTraits<T>::IsComplex) {
    if (op == Op::ConjTrans) return f(x.adjoint(), OpConstant<Op::ConjTrans>());
    if (op == Op::ConjNoTrans) return f(x.conjugate(), OpConstant<Op::ConjNoTrans>());
  }
  if (is_transposed(op)) return f(x.transpose(), OpConstant<Op::Trans>());
  f(x, OpConstant<Op::NoTrans>());
}

/// Eigen's products take their thread count from OpenMP.
class ThreadCount {
 public:
#ifdef MBLAS_HAVE_OPENMP
  explicit ThreadCount(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(cpu::in_forked_child() ? 1 : threads);
  }
  ~ThreadCount() { omp_set_num_threads(before_); }

 private:
  int before_;
#else
  explicit ThreadCount(int /*threads*/) {}
#endif
};

/// C = alpha op(A) op(B) + beta C, A not conjugated.
template <class T>
void multiply(const GemmArgs& args, std::int64_t b, const T& alpha, const T& beta, Op op_b,
              Map<T> C) {
  if (beta == T(0))
    C.setZero();
  else if (beta != T(1))
    C *= beta;
  if (args.k == 0) return;
  with_op<T>(args.B, op_b, b, args.k, args.n, [&](const auto& B, auto) {
    if (is_transposed(args.transA))
      C.noalias() += alpha * (stored<T>(args.A, b, args.k, args.m).transpose() * B);
    else
      C.noalias() += alpha * (stored<T>(args.A, b, args.m, args.k) * B);
  });
}

template <class T>
void gemm_batch(const GemmArgs& args) {
  const T alpha = cpu::scalar<T>(args.alpha), beta = cpu::scalar<T>(args.beta);
  for (std::int64_t b = 0; b < args.batch; ++b) {
    auto C = stored<T>(args.C, b, args.m, args.n);
    if constexpr (Eigen::NumTraits<T>::IsComplex) {
      if (is_conjugated(args.transA)) {
        // The conjugate of the whole equation has a plain A: half as many products to compile.
        if (beta != T(0)) C = C.conjugate();
        multiply<T>(args, b, std::conj(alpha), std::conj(beta), conjugate(args.transB), C);
        C = C.conjugate();
        continue;
      }
    }
    multiply<T>(args, b, alpha, beta, args.transB, C);
  }
}

void gemm(const GemmArgs& args, Queue& queue) {
  const ThreadCount threads(queue.device().num_threads);
  switch (args.in) {
    case DType::f32:
      return gemm_batch<float>(args);
    case DType::f64:
      return gemm_batch<double>(args);
    case DType::cf32:
      return gemm_batch<std::complex<float>>(args);
    default:
      return gemm_batch<std::complex<double>>(args);
  }
}

const char* declines_gemm(const GemmArgs& args, const DeviceInfo& device) {
  if (args.in == DType::f16 || args.in == DType::bf16 || args.in == DType::i8)
    return "Eigen accumulates in the operands' type";
  return cpu::unless_native(args, device);
}

/// with_op() whose expressions are of the type that geam computes in.
template <class T, class F>
void with_wide_op(const Input& X, Op op, std::int64_t b, std::int64_t rows, std::int64_t cols,
                  F&& f) {
  if constexpr (sizeof(T) == 2) {
    const auto x = is_transposed(op) ? stored<T>(X, b, cols, rows) : stored<T>(X, b, rows, cols);
    const auto wide = x.unaryExpr([](const T& e) { return static_cast<float>(e); });
    if (is_transposed(op)) return f(wide.transpose(), OpConstant<Op::Trans>());
    f(wide, OpConstant<Op::NoTrans>());
  } else {
    with_op<T>(X, op, b, rows, cols, f);
  }
}

/// The same sum with a lone term first, else with its operations in order: of complex matrices 14
/// expressions to compile in place of 24.
template <class T>
GeamArgs in_order(GeamArgs args) {
  if constexpr (!Eigen::NumTraits<T>::IsComplex)
    for (Op* op : {&args.transA, &args.transB}) *op = is_transposed(*op) ? Op::Trans : Op::NoTrans;
  if (args.beta != Scalar{} && (args.alpha == Scalar{} || args.transA > args.transB)) {
    std::swap(args.A, args.B);
    std::swap(args.transA, args.transB);
    std::swap(args.alpha, args.beta);
  }
  return args;
}

template <class T>
void geam_batch(const GeamArgs& args) {
  using Wide = cpu::wide_t<T>;
  const Wide alpha = cpu::scalar<Wide>(args.alpha), beta = cpu::scalar<Wide>(args.beta);
  for (std::int64_t b = 0; b < args.batch; ++b) {
    auto C = stored<T>(args.C, b, args.m, args.n);
    if (args.alpha == Scalar{}) {
      C.setConstant(T());
      continue;
    }
    // Each coefficient of C is written after those of A and B at its place are read, so C may be
    // one of them; Eigen evaluates these expressions without a temporary.
    const auto assign = [&](const auto& sum) {
      if constexpr (sizeof(T) == 2)
        C = sum.unaryExpr([](float e) { return static_cast<T>(e); });
      else
        C = sum;
    };
    with_wide_op<T>(args.A, args.transA, b, args.m, args.n, [&](const auto& A, auto op_a) {
      if (args.beta == Scalar{}) return assign(alpha * A);
      with_wide_op<T>(args.B, args.transB, b, args.m, args.n, [&](const auto& B, auto op_b) {
        if constexpr (op_a <= op_b) assign(alpha * A + beta * B);
      });
    });
  }
}

void geam(const GeamArgs& args, Queue& /*queue*/) {
  cpu::visit_geam_type(args.type, [&]<class T>(Type<T>) { geam_batch<T>(in_order<T>(args)); });
}

/// What a transpose moves: bytes at any address. Eigen asks a scalar type for a value of 0.
template <class Bytes>
struct Untyped {
  Bytes bytes;
  Untyped() = default;
  explicit Untyped(int /*zero*/) : bytes{} {}
};

void transpose(const TransposeArgs& args, Queue& /*queue*/) {
  cpu::visit_untyped(args.type, [&]<class Bytes>(Type<Bytes>) {
    using T = Untyped<Bytes>;
    for (std::int64_t b = 0; b < args.batch; ++b)
      stored<T>(args.B, b, args.n, args.m) = stored<T>(args.A, b, args.m, args.n).transpose();
  });
}

void transpose_inplace(const TransposeInplaceArgs& args, Queue& /*queue*/) {
  cpu::visit_untyped(args.type, [&]<class Bytes>(Type<Bytes>) {
    using T = Untyped<Bytes>;
    for (std::int64_t b = 0; b < args.batch; ++b)
      stored<T>(args.A, b, args.m, args.m).transposeInPlace();
  });
}

constexpr Kernel<GemmArgs> kGemm[] = {
    {"map", "C.noalias() += alpha * op(A) * op(B)", declines_gemm, nullptr, gemm}};
constexpr Kernel<GeamArgs> kGeam[] = {
    {"map", "C = alpha * op(A) + beta * op(B), one thread", cpu::never, nullptr, geam}};
constexpr Kernel<TransposeArgs> kTranspose[] = {
    {"map", "B = A.transpose(), one thread", cpu::never, nullptr, transpose}};
constexpr Kernel<TransposeInplaceArgs> kTransposeInplace[] = {
    {"map", "A.transposeInPlace(), one thread", cpu::unless_square, nullptr, transpose_inplace}};

class EigenBackend final : public Backend {
 public:
  std::string_view name() const override { return "eigen"; }
  std::string describe() override {
    return "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." +
           std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION) + ", " +
           Eigen::SimdInstructionSetsInUse();
  }

  std::span<const Kernel<GemmArgs>> gemm_kernels() const override { return kGemm; }
  std::span<const Kernel<GeamArgs>> geam_kernels() const override { return kGeam; }
  std::span<const Kernel<TransposeArgs>> transpose_kernels() const override { return kTranspose; }
  std::span<const Kernel<TransposeInplaceArgs>> transpose_inplace_kernels() const override {
    return kTransposeInplace;
  }
};

}  // namespace

std::unique_ptr<Backend> make_eigen_backend() { return std::make_unique<EigenBackend>(); }

}  // namespace mblas
