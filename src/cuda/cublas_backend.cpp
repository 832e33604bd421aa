// The cublas backend: what the cuda backend is checked and raced against. cuBLAS is column-major,
// and a row-major matrix is the transpose of a column-major one: so C^T = op(B)^T op(A)^T is
// computed, with the operands exchanged and every op as it is.
#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/builtin.hpp"
#include "cuda/cublas_library.hpp"
#include "cuda/device.hpp"
#include "cuda/kernels.hpp"
#include "cuda/pointers.hpp"
#include "mblas/error.hpp"

namespace mblas {
namespace {

using cuda::cublas;
using cuda::cublas_check;
using cuda::cuda_check;

#ifdef MBLAS_HAVE_CUDA
constexpr bool kHavePointerKernel = true;
#else
constexpr bool kHavePointerKernel = false;
#endif

constexpr std::int64_t kMaxBatch =
    65535;  // in one call: cuBLAS puts the batch into grid dimensions

/// What cuBLAS recommends for each architecture, and would allocate itself.
std::size_t workspace_size(const DeviceInfo& device) {
  return std::size_t(device.capability >= 90 ? 32 : 4) << 20;
}

class CublasQueue final : public cuda::CudaQueue {
 public:
  explicit CublasQueue(const QueueOptions& options) : CudaQueue(options) {
    const cuda::DeviceGuard guard(device().ordinal);
    const cuda::RelaxedCapture relaxed;
    cublas_check(cublas().cublasCreate_v2(&handle_), "cublasCreate");
    try {
      cublas_check(cublas().cublasSetStream_v2(handle_, stream()), "cublasSetStream");
      cublas_check(cublas().cublasSetMathMode(
                       handle_, cublasMath_t(CUBLAS_DEFAULT_MATH |
                                             CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
                   "cublasSetMathMode");
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~CublasQueue() override { destroy(); }

  cublasHandle_t handle() const { return handle_; }

 private:
  void destroy() noexcept {
    const cuda::RelaxedCapture relaxed;
    if (relaxed)
      cublas().cublasDestroy_v2(handle_);  // else the driver is gone, and the handle with it
  }

  cublasHandle_t handle_ = nullptr;
};

// -------------------------------------------------------------------------------------------------
// Types, ops and scalars in cuBLAS's terms.

cudaDataType data_type(DType t) {
  switch (t) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::f64:
      return CUDA_R_64F;
    case DType::cf32:
      return CUDA_C_32F;
    case DType::cf64:
      return CUDA_C_64F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::i8:
    case DType::b1:
      return CUDA_R_8I;
    default:
      return CUDA_R_32I;
  }
}

cublasOperation_t operation(Op op, DType type) {
  if (!is_transposed(op)) return CUBLAS_OP_N;
  return is_conjugated(op) && is_complex(type) ? CUBLAS_OP_C : CUBLAS_OP_T;
}

const char* declines_op(Op op, DType type) {
  return op == Op::ConjNoTrans && is_complex(type) ? "cuBLAS cannot conjugate without transposing"
                                                   : nullptr;
}

/// A scalar in memory as cuBLAS reads it.
class ScalarValue {
 public:
  ScalarValue(const Scalar& s, DType type) {
    if (type == DType::f64)
      set(s.re);
    else if (type == DType::cf32)
      set(std::complex<float>(float(s.re), float(s.im)));
    else if (type == DType::cf64)
      set(std::complex<double>(s.re, s.im));
    else if (type == DType::i32)
      set(std::int32_t(s.re));
    else
      set(float(s.re));
  }
  operator const void*() const { return bytes_; }

 private:
  template <class T>
  void set(const T& value) {
    std::memcpy(bytes_, &value, sizeof value);
  }
  alignas(16) std::byte bytes_[16] = {};
};

// -------------------------------------------------------------------------------------------------
// geam

bool has_geam(DType t) { return t <= DType::cf64; }

/// cublas<t>geam of column-major matrices.
void geam_call(const CublasQueue& queue, DType type, cublasOperation_t op_a, cublasOperation_t op_b,
               std::int64_t m, std::int64_t n, const void* alpha, const void* A, std::int64_t lda,
               const void* beta, const void* B, std::int64_t ldb, void* C, std::int64_t ldc) {
  const auto call = [&]<class T>(auto function, T*) {
    const auto in = [](const void* p) { return static_cast<const T*>(p); };
    cublas_check(function(queue.handle(), op_a, op_b, m, n, in(alpha), in(A), lda, in(beta), in(B),
                          ldb, static_cast<T*>(C), ldc),
                 "cublas geam");
  };
  switch (type) {
    case DType::f32:
      return call(cublas().cublasSgeam_64, static_cast<float*>(nullptr));
    case DType::f64:
      return call(cublas().cublasDgeam_64, static_cast<double*>(nullptr));
    case DType::cf32:
      return call(cublas().cublasCgeam_64, static_cast<cuComplex*>(nullptr));
    default:
      return call(cublas().cublasZgeam_64, static_cast<cuDoubleComplex*>(nullptr));
  }
}

/// C = 0, m×n row-major.
void set_zero(const CublasQueue& queue, DType type, std::int64_t m, std::int64_t n, void* C,
              std::int64_t ldc) {
  const auto size = std::size_t(size_of(type));
  cuda_check(cudaMemset2DAsync(C, std::size_t(ldc) * size, 0, std::size_t(n) * size, std::size_t(m),
                               queue.stream()),
             "cudaMemset2DAsync");
}

/// One of the two terms of a geam.
struct Term {
  Op op;
  Scalar scalar;
  const Input* X;
};

/// Those of the terms that count, first; returns how many do.
int present_terms(const GeamArgs& args, Term (&terms)[2]) {
  terms[0] = {args.transA, args.alpha, &args.A};
  terms[1] = {args.transB, args.beta, &args.B};
  if (terms[0].scalar == Scalar{}) std::swap(terms[0], terms[1]);
  return int(terms[0].scalar != Scalar{}) + int(terms[1].scalar != Scalar{});
}

namespace geam {

const char* declines(const GeamArgs& args, const DeviceInfo&) {
  if (!has_geam(args.type)) return "cublas<t>geam has no 16-bit types";
  const char* reason = declines_op(args.transA, args.type);
  return reason ? reason : declines_op(args.transB, args.type);
}

void run(const GeamArgs& args, Queue& base) {
  const auto& queue = static_cast<CublasQueue&>(base);
  const cuda::DeviceGuard guard(queue.device().ordinal);
  const int size = size_of(args.type);
  Term terms[2];
  const int count = present_terms(args, terms);
  // An absent term is not read; it repeats the other one, to satisfy the argument checks.
  if (count == 1) terms[1] = {terms[0].op, Scalar{}, terms[0].X};
  const ScalarValue alpha(terms[0].scalar, args.type), beta(terms[1].scalar, args.type);
  for (std::int64_t b = 0; b < args.batch; ++b) {
    void* C = args.C.at(b, size);
    if (count == 0) {
      set_zero(queue, args.type, args.m, args.n, C, args.C.ld);
      continue;
    }
    geam_call(queue, args.type, operation(terms[0].op, args.type),
              operation(terms[1].op, args.type), args.n, args.m, alpha, terms[0].X->at(b, size),
              terms[0].X->ld, beta, terms[1].X->at(b, size), terms[1].X->ld, C, args.C.ld);
  }
}

}  // namespace geam

// -------------------------------------------------------------------------------------------------
// gemm: what the rows share.

cublasComputeType_t compute_type(const GemmArgs& args) {
  const bool pedantic = args.compute == Compute::Pedantic;
  switch (args.in) {
    case DType::f64:
    case DType::cf64:
      return pedantic ? CUBLAS_COMPUTE_64F_PEDANTIC : CUBLAS_COMPUTE_64F;
    case DType::i8:
      return pedantic ? CUBLAS_COMPUTE_32I_PEDANTIC : CUBLAS_COMPUTE_32I;
    default:
      return args.compute == Compute::TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
             : pedantic                    ? CUBLAS_COMPUTE_32F_PEDANTIC
                                           : CUBLAS_COMPUTE_32F;
  }
}

/// The addresses of an operand and the distances between them in bytes, or-ed: what all are
/// multiples of divides it.
template <class Void>
std::uintptr_t address_bits(const Operand<Void>& x, std::int64_t batch, int size) {
  std::uintptr_t bits = 0;
  if (x.pointers)
    for (std::int64_t b = 0; b < batch; ++b) bits |= std::bit_cast<std::uintptr_t>(x.pointers[b]);
  else
    bits = std::bit_cast<std::uintptr_t>(x.data) |
           (batch > 1 ? std::uintptr_t(x.stride) * std::uintptr_t(size) : 0);
  return bits;
}

const char* declines_gemm(const GemmArgs& args) {
  if (const char* reason = declines_op(args.transA, args.in)) return reason;
  if (const char* reason = declines_op(args.transB, args.in)) return reason;
  switch (args.compute) {
    case Compute::Default:
    case Compute::Pedantic:
      break;
    case Compute::TF32:
      if (args.in != DType::f32 && args.in != DType::cf32) return "TF32 is a mode of f32 and cf32";
      break;
    default:
      return "not a compute mode of cuBLAS";
  }
  if (args.in == DType::i8 && args.k > 0 &&
      ((address_bits(args.A, args.batch, 1) | address_bits(args.B, args.batch, 1) |
        std::uintptr_t(args.A.ld) | std::uintptr_t(args.B.ld)) %
       4))
    return "cuBLAS needs int8 matrices and leading dimensions that are multiples of 4 bytes";
  // Measured with 13.1 on Hopper: the product is rounded to C's type before beta C is added to it.
  if (size_of(args.out) == 2 && args.beta != Scalar{} && args.k > 0)
    return "cuBLAS rounds a 16-bit result twice where beta is not 0";
  // Its kernels read whole words along k, past the matrix, and add up what they find there.
  if (args.in == DType::i8 && args.k % 4) return "cuBLAS needs a multiple of 4 as k for int8";
  return nullptr;
}

// -------------------------------------------------------------------------------------------------
// gemm: cublasGemmEx and its batched forms.

namespace gemmex {

/// k == 0, C = beta C: cuBLAS leaves it undocumented.
void scale(const GemmArgs& args, const CublasQueue& queue) {
  if (args.beta == Scalar{1}) return;
  const ScalarValue beta(args.beta, args.out), zero(Scalar{}, args.out);
  for (std::int64_t b = 0; b < args.batch; ++b) {
    void* C = args.C.at(b, size_of(args.out));
    if (args.beta == Scalar{})
      set_zero(queue, args.out, args.m, args.n, C, args.C.ld);
    else
      geam_call(queue, args.out, CUBLAS_OP_N, CUBLAS_OP_N, args.n, args.m, beta, C, args.C.ld, zero,
                C, args.C.ld, C, args.C.ld);
  }
}

/// Pointer batches that go through cublasGemmBatchedEx: its kernels assume aligned matrices. The
/// others are computed one by one.
bool batches_pointers(const GemmArgs& args) {
  return kHavePointerKernel && args.batch > 1 && args.A.pointers && args.B.pointers &&
         args.C.pointers &&
         (address_bits(args.A, args.batch, 1) | address_bits(args.B, args.batch, 1) |
          address_bits(args.C, args.batch, 1)) %
                 16 ==
             0;
}

const char* declines(const GemmArgs& args, const DeviceInfo&) {
  if (args.k == 0 && args.beta != Scalar{} && args.beta != Scalar{1} && !has_geam(args.out))
    return "k == 0: cuBLAS cannot scale a C of this type";
  return declines_gemm(args);
}

std::size_t workspace(const GemmArgs& args, const DeviceInfo& device) {
  if (args.k == 0) return 0;
  return workspace_size(device) +
         (batches_pointers(args) ? 3 * cuda::pointer_bytes(args.batch) : 0);
}

void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<CublasQueue&>(base);
  const cuda::DeviceGuard guard(queue.device().ordinal);
  if (args.k == 0) return scale(args, queue);

  std::span<std::byte> workspace = queue.workspace;
  const auto place = [&](const auto& x) {
    auto* table = reinterpret_cast<const void**>(workspace.data());
    if constexpr (kHavePointerKernel) cuda::write_pointers(x.pointers, args.batch, table, queue);
    workspace = workspace.subspan(cuda::pointer_bytes(args.batch));
    return table;
  };
  const bool by_pointers = batches_pointers(args);
  const void** A = by_pointers ? place(args.A) : nullptr;
  const void** B = by_pointers ? place(args.B) : nullptr;
  void** C = by_pointers ? const_cast<void**>(place(args.C)) : nullptr;
  cublas_check(cublas().cublasSetWorkspace_v2(queue.handle(), workspace.data(), workspace.size()),
               "cublasSetWorkspace");

  const int in_size = size_of(args.in), out_size = size_of(args.out);
  const cudaDataType in = data_type(args.in), out = data_type(args.out);
  const DType scalar = scalar_type(args.in, args.out);
  const ScalarValue alpha(args.alpha, scalar), beta(args.beta, scalar);
  const cublasOperation_t op_a = operation(args.transA, args.in);
  const cublasOperation_t op_b = operation(args.transB, args.in);
  const cublasComputeType_t compute = compute_type(args);
  const bool one_by_one = !by_pointers && (args.A.pointers || args.B.pointers || args.C.pointers);
  const std::int64_t step = one_by_one ? 1 : kMaxBatch;

  for (std::int64_t b = 0; b < args.batch; b += step) {
    const std::int64_t batch = std::min(step, args.batch - b);
    if (by_pointers)
      cublas_check(
          cublas().cublasGemmBatchedEx_64(queue.handle(), op_b, op_a, args.n, args.m, args.k, alpha,
                                          B + b, in, args.B.ld, A + b, in, args.A.ld, beta, C + b,
                                          out, args.C.ld, batch, compute, CUBLAS_GEMM_DEFAULT),
          "cublasGemmBatchedEx");
    else if (batch == 1)
      cublas_check(cublas().cublasGemmEx_64(
                       queue.handle(), op_b, op_a, args.n, args.m, args.k, alpha,
                       args.B.at(b, in_size), in, args.B.ld, args.A.at(b, in_size), in, args.A.ld,
                       beta, args.C.at(b, out_size), out, args.C.ld, compute, CUBLAS_GEMM_DEFAULT),
                   "cublasGemmEx");
    else
      cublas_check(cublas().cublasGemmStridedBatchedEx_64(
                       queue.handle(), op_b, op_a, args.n, args.m, args.k, alpha,
                       args.B.at(b, in_size), in, args.B.ld, args.B.stride, args.A.at(b, in_size),
                       in, args.A.ld, args.A.stride, beta, args.C.at(b, out_size), out, args.C.ld,
                       args.C.stride, batch, compute, CUBLAS_GEMM_DEFAULT),
                   "cublasGemmStridedBatchedEx");
  }
}

}  // namespace gemmex

// -------------------------------------------------------------------------------------------------
// cublasLt.

template <class T, auto destroy>
struct Destroy {
  using pointer = T;
  void operator()(T p) const { (cublas().*destroy)(p); }
};
template <class T, auto destroy>
using Descriptor = std::unique_ptr<std::remove_pointer_t<T>, Destroy<T, destroy>>;

using MatrixLayout =
    Descriptor<cublasLtMatrixLayout_t, &cuda::CublasLibrary::cublasLtMatrixLayoutDestroy>;
using MatmulDesc =
    Descriptor<cublasLtMatmulDesc_t, &cuda::CublasLibrary::cublasLtMatmulDescDestroy>;
using Preference =
    Descriptor<cublasLtMatmulPreference_t, &cuda::CublasLibrary::cublasLtMatmulPreferenceDestroy>;
using TransformDesc = Descriptor<cublasLtMatrixTransformDesc_t,
                                 &cuda::CublasLibrary::cublasLtMatrixTransformDescDestroy>;

template <class D, class Create, class... Args>
D create(Create function, Args... args) {
  typename D::pointer p = nullptr;
  cublas_check(function(&p, args...), "cublasLt descriptor");
  return D(p);
}

template <class Set, class D, class Attribute, class T>
void set(Set function, const D& descriptor, Attribute attribute, const T& value) {
  cublas_check(function(descriptor.get(), attribute, &value, sizeof value),
               "cublasLt descriptor attribute");
}

/// The handle of a device, which all queues and threads share.
cublasLtHandle_t lt_handle(int device) {
  static std::mutex mutex;
  static std::vector<cublasLtHandle_t> handles(cuda::devices().infos.size());
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles.at(std::size_t(device));
  if (!handle) {
    const cuda::DeviceGuard guard(device);
    const cuda::RelaxedCapture relaxed;
    cublas_check(cublas().cublasLtCreate(&handle), "cublasLtCreate");
  }
  return handle;
}

/// Column-major.
MatrixLayout matrix_layout(cudaDataType type, std::int64_t rows, std::int64_t cols,
                           std::int64_t ld) {
  return create<MatrixLayout>(cublas().cublasLtMatrixLayoutCreate, type, std::uint64_t(rows),
                              std::uint64_t(cols), ld);
}

// -------------------------------------------------------------------------------------------------
// gemm: the i-th of cublasLt's heuristics.

namespace lt {

constexpr int kRows = 8;

/// What cublasLt's choice depends on.
struct Problem {
  int device;
  DType in, out;
  Compute compute;
  Op transA, transB;
  std::int64_t m, n, k, lda, ldb, ldc, strideA, strideB, strideC, batch;
  std::uint32_t alignA, alignB, alignC;
  cublasLtEpilogue_t epilogue;
  bool operator==(const Problem&) const = default;
};

/// Largest power of two up to 256 that divides `bits`.
std::uint32_t alignment(std::uintptr_t bits) {
  return std::uint32_t(1) << std::min(8, std::countr_zero(bits));
}

/// Its epilogues have no scale, and a bias for each row of its column-major C: column of ours. It
/// does not say that a NaN survives its ReLU, nor how exact its GELU is beyond 16 bits.
bool fuses(const GemmArgs& args) {
  const Epilogue& e = args.epilogue;
  const bool aligned = std::bit_cast<std::uintptr_t>(e.bias.data) % 16 == 0;
  return size_of(args.out) == 2 && args.beta == Scalar{} && e.scale == 1 &&
         e.bias.per != BiasPer::Row && aligned && e.activation != Activation::Relu;
}

cublasLtEpilogue_t epilogue_of(const Epilogue& e) {
  const bool bias = e.bias.per != BiasPer::None;
  if (e.activation == Activation::Gelu)
    return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

Problem problem_of(const GemmArgs& args, const DeviceInfo& device) {
  const int in_size = size_of(args.in), out_size = size_of(args.out);
  return {device.ordinal,
          args.in,
          args.out,
          args.compute,
          args.transA,
          args.transB,
          args.m,
          args.n,
          args.k,
          args.A.ld,
          args.B.ld,
          args.C.ld,
          args.A.stride,
          args.B.stride,
          args.C.stride,
          args.batch,
          alignment(address_bits(args.A, args.batch, in_size)),
          alignment(address_bits(args.B, args.batch, in_size)),
          alignment(address_bits(args.C, args.batch, out_size)),
          epilogue_of(args.epilogue)};
}

struct Plan {
  Problem problem;
  MatmulDesc desc;
  MatrixLayout A, B, C;
  std::array<cublasLtMatmulHeuristicResult_t, kRows> results{};
  int count = 0;
};

/// Columns and rows of the matrix as stored are rows and columns to cuBLAS.
MatrixLayout operand_layout(const GemmArgs& args, DType type, Op op, std::int64_t rows,
                            std::int64_t cols, std::int64_t ld, std::int64_t stride) {
  if (is_transposed(op)) std::swap(rows, cols);
  MatrixLayout layout = matrix_layout(data_type(type), cols, rows, ld);
  const auto set_layout = cublas().cublasLtMatrixLayoutSetAttribute;
  set(set_layout, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, std::int32_t(args.batch));
  set(set_layout, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  return layout;
}

/// Of one call: it has the address of the bias.
MatmulDesc matmul_desc(const GemmArgs& args) {
  MatmulDesc desc = create<MatmulDesc>(cublas().cublasLtMatmulDescCreate, compute_type(args),
                                       data_type(scalar_type(args.in, args.out)));
  const auto set_desc = cublas().cublasLtMatmulDescSetAttribute;
  set(set_desc, desc, CUBLASLT_MATMUL_DESC_TRANSA, operation(args.transB, args.in));
  set(set_desc, desc, CUBLASLT_MATMUL_DESC_TRANSB, operation(args.transA, args.in));
  if (args.epilogue.is_none()) return desc;
  set(set_desc, desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(args.epilogue));
  if (args.epilogue.bias.per != BiasPer::None) {
    set(set_desc, desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(args.out));
    set(set_desc, desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.epilogue.bias.data);
  }
  return desc;
}

std::int32_t config_of(const cublasLtMatmulAlgo_t& algorithm,
                       cublasLtMatmulAlgoConfigAttributes_t attribute) {
  std::int32_t value = 0;
  std::size_t written = 0;
  cublas_check(cublas().cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value,
                                                             sizeof(value), &written),
               "cublasLtMatmulAlgoConfigGetAttribute");
  return value;
}

/// Whether it fuses an epilogue as accurately as 16 bits want it. Those that cut k round sums to
/// C's type before the bias; and of cuBLAS 13.1's only number 66, which large products get, has a
/// GELU that is right to a unit in the last place: of the others' one result in 25 is not.
bool is_accurate(const cublasLtMatmulHeuristicResult_t& result, cublasLtEpilogue_t epilogue) {
  constexpr std::int32_t kOfExactGelu = 66;
  if (result.state != CUBLAS_STATUS_SUCCESS) return false;
  return config_of(result.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) <= 1 &&
         (epilogue == CUBLASLT_EPILOGUE_BIAS ||
          config_of(result.algo, CUBLASLT_ALGO_CONFIG_ID) == kOfExactGelu);
}

std::shared_ptr<const Plan> make_plan(const GemmArgs& args, const DeviceInfo& device) {
  const auto plan = std::make_shared<Plan>();
  plan->problem = problem_of(args, device);
  plan->desc = matmul_desc(args);
  plan->A = operand_layout(args, args.in, args.transA, args.m, args.k, args.A.ld, args.A.stride);
  plan->B = operand_layout(args, args.in, args.transB, args.k, args.n, args.B.ld, args.B.stride);
  plan->C = operand_layout(args, args.out, Op::NoTrans, args.m, args.n, args.C.ld, args.C.stride);

  const auto preference = create<Preference>(cublas().cublasLtMatmulPreferenceCreate);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    set(cublas().cublasLtMatmulPreferenceSetAttribute, preference, attribute, value);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(workspace_size(device)));
  // Partial sums in the output's type would round more than once.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         std::uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  // Complex products by three real ones are less accurate than the bound.
  prefer(CUBLASLT_MATMUL_PREF_IMPL_MASK, ~std::uint64_t{CUBLASLT_NUMERICAL_IMPL_FLAGS_GAUSSIAN});
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, plan->problem.alignB);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, plan->problem.alignA);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, plan->problem.alignC);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, plan->problem.alignC);

  const cublasStatus_t status = cublas().cublasLtMatmulAlgoGetHeuristic(
      lt_handle(device.ordinal), plan->desc.get(), plan->B.get(), plan->A.get(), plan->C.get(),
      plan->C.get(), preference.get(), kRows, plan->results.data(), &plan->count);
  if (status != CUBLAS_STATUS_SUCCESS) plan->count = 0;
  if (const cublasLtEpilogue_t epilogue = plan->problem.epilogue;
      epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    const auto first = plan->results.begin(), last = first + plan->count;
    const auto removed = std::remove_if(
        first, last, [&](const auto& result) { return !is_accurate(result, epilogue); });
    plan->count = int(removed - first);
  }
  return plan;
}

/// The plan of a problem; that of the last one is kept.
std::shared_ptr<const Plan> plan_of(const GemmArgs& args, const DeviceInfo& device) {
  static std::mutex mutex;
  static std::shared_ptr<const Plan> last;
  {
    const std::lock_guard lock(mutex);
    if (last && last->problem == problem_of(args, device)) return last;
  }
  auto plan = make_plan(args, device);
  const std::lock_guard lock(mutex);
  return last = std::move(plan);
}

template <int index>
const char* declines(const GemmArgs& args, const DeviceInfo& device) {
  if (const char* reason = declines_gemm(args)) return reason;
  if (args.k == 0) return "k == 0";
  if (args.batch > 1 && (args.A.pointers || args.B.pointers || args.C.pointers))
    return "no batches behind pointers";
  if (args.batch > kMaxBatch) return "batches of at most 65535";
  const auto plan = plan_of(args, device);
  return index < plan->count && plan->results[index].state == CUBLAS_STATUS_SUCCESS
             ? nullptr
             : "cublasLt offers fewer algorithms for this problem";
}

std::size_t workspace(const GemmArgs&, const DeviceInfo& device) { return workspace_size(device); }

template <int index>
void run(const GemmArgs& args, Queue& base) {
  const auto& queue = static_cast<CublasQueue&>(base);
  const cuda::DeviceGuard guard(queue.device().ordinal);
  const auto plan = plan_of(args, queue.device());
  if (index >= plan->count)
    throw Error(Status::NotSupported, "cublasLt no longer offers this algorithm");
  const DType scalar = scalar_type(args.in, args.out);
  const int in_size = size_of(args.in), out_size = size_of(args.out);
  const ScalarValue alpha(args.alpha, scalar), beta(args.beta, scalar);
  void* C = args.C.at(0, out_size);
  const bool has_bias = args.epilogue.bias.per != BiasPer::None;
  const MatmulDesc own = has_bias ? matmul_desc(args) : nullptr;
  cublas_check(
      cublas().cublasLtMatmul(lt_handle(queue.device().ordinal),
                              has_bias ? own.get() : plan->desc.get(), alpha, args.B.at(0, in_size),
                              plan->B.get(), args.A.at(0, in_size), plan->A.get(), beta, C,
                              plan->C.get(), C, plan->C.get(), &plan->results[index].algo,
                              queue.workspace.data(), queue.workspace.size(), queue.stream()),
      "cublasLtMatmul");
}

template <int index>
constexpr Kernel<GemmArgs> row(std::string_view name) {
  return {name,
          "an algorithm of cublasLt's heuristics, by rank",
          declines<index>,
          workspace,
          run<index>,
          nullptr,
          {},
          fuses};
}

}  // namespace lt

// -------------------------------------------------------------------------------------------------
// cublasLtMatrixTransform

namespace lt_transform {

/// Its kernels index with 32 bits.
const char* declines_size(std::int64_t rows, std::int64_t ld) {
  return ld <= std::numeric_limits<std::int32_t>::max() / rows
             ? nullptr
             : "matrices of at most 2^31 elements";
}

/// C (rows×cols, row-major) = the sum of `count` terms, of which each is rows×cols after its op.
void enqueue(const CublasQueue& queue, DType type, DType scalar, std::int64_t rows,
             std::int64_t cols, const Term* terms, int count, const Output& C, std::int64_t batch) {
  const auto desc =
      create<TransformDesc>(cublas().cublasLtMatrixTransformDescCreate, data_type(scalar));
  const auto set_desc = cublas().cublasLtMatrixTransformDescSetAttribute;
  constexpr cublasLtMatrixTransformDescAttributes_t op_attributes[] = {
      CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB};
  MatrixLayout layouts[2];
  for (int t = 0; t < count; ++t) {
    const bool transposed = is_transposed(terms[t].op);
    set(set_desc, desc, op_attributes[t], operation(terms[t].op, type));
    layouts[t] = matrix_layout(data_type(type), transposed ? rows : cols, transposed ? cols : rows,
                               terms[t].X->ld);
  }
  const MatrixLayout layout_c = matrix_layout(data_type(type), cols, rows, C.ld);
  const ScalarValue alpha(terms[0].scalar, scalar);
  const ScalarValue beta(count == 2 ? terms[1].scalar : Scalar{}, scalar);
  const int size = size_of(type);
  for (std::int64_t b = 0; b < batch; ++b)
    cublas_check(cublas().cublasLtMatrixTransform(
                     lt_handle(queue.device().ordinal), desc.get(), alpha, terms[0].X->at(b, size),
                     layouts[0].get(), beta, count == 2 ? terms[1].X->at(b, size) : nullptr,
                     layouts[1].get(), C.at(b, size), layout_c.get(), queue.stream()),
                 "cublasLtMatrixTransform");
}

const char* declines_geam(const GeamArgs& args, const DeviceInfo&) {
  if (has_geam(args.type)) return "for the types that cublas<t>geam lacks";
  if (const char* reason = declines_size(args.m, args.C.ld)) return reason;
  Term terms[2];
  const int count = present_terms(args, terms);
  const int size = size_of(args.type);
  for (int t = 0; t < count; ++t) {
    const Input& X = *terms[t].X;
    if (X.at(0, size) == args.C.at(0, size)) return "not in place";
    if (const char* reason = declines_size(is_transposed(terms[t].op) ? args.n : args.m, X.ld))
      return reason;
  }
  return nullptr;
}

void run_geam(const GeamArgs& args, Queue& base) {
  const auto& queue = static_cast<CublasQueue&>(base);
  const cuda::DeviceGuard guard(queue.device().ordinal);
  Term terms[2];
  const int count = present_terms(args, terms);
  if (count > 0)
    return enqueue(queue, args.type, DType::f32, args.m, args.n, terms, count, args.C, args.batch);
  for (std::int64_t b = 0; b < args.batch; ++b)
    set_zero(queue, args.type, args.m, args.n, args.C.at(b, size_of(args.type)), args.C.ld);
}

/// Integers only: everything else that cuBLAS transposes, here and in geam, is multiplied by alpha,
/// and so loses the bits of a NaN.
const char* declines_transpose(const TransposeArgs& args, const DeviceInfo&) {
  if (args.type != DType::b1 && args.type != DType::b4)
    return "cuBLAS moves elements of this size as numbers only, not bit by bit";
  if (const char* reason = declines_size(args.m, args.A.ld)) return reason;
  return declines_size(args.n, args.B.ld);
}

void run_transpose(const TransposeArgs& args, Queue& base) {
  const auto& queue = static_cast<CublasQueue&>(base);
  const cuda::DeviceGuard guard(queue.device().ordinal);
  const Term term = {Op::Trans, Scalar{1}, &args.A};
  enqueue(queue, args.type, DType::i32, args.n, args.m, &term, 1, args.B, args.batch);
}

}  // namespace lt_transform

// -------------------------------------------------------------------------------------------------

class CublasBackend final : public cuda::DeviceBackend {
 public:
  std::string_view name() const override { return "cublas"; }

  const std::string& unavailable() override {
    const std::string& reason = cuda::devices().unavailable;
    return reason.empty() ? cublas().unavailable : reason;
  }

  std::string describe() override {
    std::string text = cuda::describe_devices();
    if (unavailable().empty()) text += "; cuBLAS " + cublas().version + ", " + cublas().path;
    return text;
  }

  std::unique_ptr<Queue> make_queue(const QueueOptions& options) override {
    if (!unavailable().empty()) throw Error(Status::BackendUnavailable, unavailable());
    return std::make_unique<CublasQueue>(options);
  }

  std::span<const Kernel<GemmArgs>> gemm_kernels() const override {
    static constexpr Kernel<GemmArgs> table[] = {
        {"gemmex", "cublasGemmEx and its batched forms", gemmex::declines, gemmex::workspace,
         gemmex::run},
        lt::row<0>("lt0"),
        lt::row<1>("lt1"),
        lt::row<2>("lt2"),
        lt::row<3>("lt3"),
        lt::row<4>("lt4"),
        lt::row<5>("lt5"),
        lt::row<6>("lt6"),
        lt::row<7>("lt7"),
    };
    return table;
  }
#ifdef MBLAS_HAVE_CUDA
  FinishPass finish() const override { return cuda::gemm::finish; }
#endif
  std::span<const Kernel<GeamArgs>> geam_kernels() const override {
    static constexpr Kernel<GeamArgs> table[] = {
        {"geam", "cublas<t>geam", geam::declines, nullptr, geam::run},
        {"lt_transform", "cublasLtMatrixTransform of 16-bit types", lt_transform::declines_geam,
         nullptr, lt_transform::run_geam},
    };
    return table;
  }
  std::span<const Kernel<TransposeArgs>> transpose_kernels() const override {
    static constexpr Kernel<TransposeArgs> table[] = {
        {"lt_transform", "cublasLtMatrixTransform of integers", lt_transform::declines_transpose,
         nullptr, lt_transform::run_transpose},
    };
    return table;
  }
};

}  // namespace

std::unique_ptr<Backend> make_cublas_backend() { return std::make_unique<CublasBackend>(); }

}  // namespace mblas
