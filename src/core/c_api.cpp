// The C API: erases what C++ knows as types, and keeps exceptions on this side.
#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <span>
#include <string>

#include "mblas/mblas.h"
#include "mblas/mblas.hpp"

using mblas::Compute;
using mblas::DType;
using mblas::Epilogue;
using mblas::Error;
using mblas::GeamArgs;
using mblas::GemmArgs;
using mblas::Layout;
using mblas::Op;
using mblas::Scalar;
using mblas::Status;

struct mblas_context {
  mblas::Context context;
};
struct mblas_gemm_plan {
  mblas::GemmPlan plan;
};

struct mblas_reed_solomon {
  mblas::gf256::ReedSolomon code;
};

namespace {

constexpr int index(auto enumerator) { return static_cast<int>(enumerator); }

static_assert(MBLAS_OK == index(Status::Ok) &&
              MBLAS_INVALID_ARGUMENT == index(Status::InvalidArgument) &&
              MBLAS_NULL_POINTER == index(Status::NullPointer) &&
              MBLAS_SIZE_OVERFLOW == index(Status::SizeOverflow) &&
              MBLAS_OVERLAP == index(Status::Overlap) &&
              MBLAS_WRONG_MEMORY == index(Status::WrongMemory) &&
              MBLAS_UNKNOWN_NAME == index(Status::UnknownName) &&
              MBLAS_BACKEND_UNAVAILABLE == index(Status::BackendUnavailable) &&
              MBLAS_NOT_SUPPORTED == index(Status::NotSupported) &&
              MBLAS_OUT_OF_MEMORY == index(Status::OutOfMemory) &&
              MBLAS_DEVICE_ERROR == index(Status::DeviceError) &&
              MBLAS_SINGULAR == index(Status::Singular) &&
              MBLAS_VERIFY_FAILED == index(Status::VerifyFailed) &&
              MBLAS_INTERNAL == index(Status::Internal));
static_assert(MBLAS_COMPUTE_DEFAULT == index(Compute::Default) &&
              MBLAS_COMPUTE_PEDANTIC == index(Compute::Pedantic) &&
              MBLAS_COMPUTE_TF32 == index(Compute::TF32) &&
              MBLAS_COMPUTE_BF16X6 == index(Compute::BF16x6) &&
              MBLAS_COMPUTE_FP16X3 == index(Compute::FP16x3) &&
              MBLAS_COMPUTE_OZAKI_FP64 == index(Compute::OzakiFP64));
static_assert(MBLAS_ACTIVATION_NONE == index(mblas::Activation::None) &&
              MBLAS_ACTIVATION_RELU == index(mblas::Activation::Relu) &&
              MBLAS_ACTIVATION_GELU == index(mblas::Activation::Gelu) &&
              MBLAS_BIAS_NONE == index(mblas::BiasPer::None) &&
              MBLAS_BIAS_PER_ROW == index(mblas::BiasPer::Row) &&
              MBLAS_BIAS_PER_COLUMN == index(mblas::BiasPer::Column));
static_assert(MBLAS_F32 == index(DType::f32) && MBLAS_F64 == index(DType::f64) &&
              MBLAS_CF32 == index(DType::cf32) && MBLAS_CF64 == index(DType::cf64) &&
              MBLAS_F16 == index(DType::f16) && MBLAS_BF16 == index(DType::bf16) &&
              MBLAS_I8 == index(DType::i8) && MBLAS_I32 == index(DType::i32));

[[noreturn]] void invalid(const std::string& what) { throw Error(Status::InvalidArgument, what); }

/// Runs f(context) and returns what became of it.
template <class F>
mblas_status guarded(mblas_context* handle, F&& f) noexcept {
  mblas::Context* const context = handle ? &handle->context : nullptr;
  return static_cast<mblas_status>(
      mblas::detail::to_status(context, [&] { f(context ? *context : mblas::default_context()); }));
}

/// A C string, in `slot`, of what get(context) views; where there is no context to ask, because the
/// environment is wrong, of what is wrong.
template <class F>
const char* c_string(std::string& slot, mblas_context* handle, F&& get) noexcept {
  try {
    try {
      slot = get(handle ? handle->context : mblas::default_context());
    } catch (const Error& error) {
      slot = error.what();
    }
    return slot.c_str();
  } catch (...) {  // no memory for the string
    return "";
  }
}

// C's enumerations hold any integer. What is none of the enumerators reaches the core, which
// refuses it, as a value that is none either.
constexpr char to_char(int value) { return value > 0 && value < 128 ? char(value) : '\0'; }
constexpr Layout to_layout(mblas_layout layout) { return Layout{to_char(index(layout))}; }
constexpr Op to_op(mblas_op op) { return Op{to_char(index(op))}; }

/// The number in an enumeration from C, which C++ may not load as one that is none of it.
int number_in(const auto& enumeration) {
  int value;
  static_assert(sizeof value == sizeof enumeration);
  std::memcpy(&value, &enumeration, sizeof value);
  return value;
}

Compute to_compute(const mblas_compute& compute) {
  const int value = number_in(compute);
  if (value < MBLAS_COMPUTE_DEFAULT || value > MBLAS_COMPUTE_OZAKI_FP64)
    invalid("compute is " + std::to_string(value) + ", which is no mblas_compute");
  return Compute(value);
}

DType to_dtype(const char* argument, mblas_dtype type) {
  if (index(type) < MBLAS_F32 || index(type) > MBLAS_I32)
    invalid(std::string(argument) + " is " + std::to_string(index(type)) +
            ", which is no mblas_dtype");
  return static_cast<DType>(type);
}

std::string_view check_string(const char* argument, const char* text) {
  if (!text) throw Error(Status::NullPointer, std::string(argument) + " is null");
  return text;
}

/// `count` elements at p, of which there may be none.
template <class T>
std::span<T> check_array(const char* argument, T* p, std::int64_t count) {
  if (count > 0 && !p) throw Error(Status::NullPointer, std::string(argument) + " is null");
  return {p, count > 0 ? std::size_t(count) : 0};
}

const mblas::gf256::ReedSolomon& check_code(const mblas_reed_solomon* handle) {
  if (!handle) throw Error(Status::NullPointer, "code is null");
  return handle->code;
}

DType element_of(std::size_t size) {
  if (size != 1 && size != 2 && size != 4 && size != 8 && size != 16)
    invalid("element_size is " + std::to_string(size) + ", must be 1, 2, 4, 8 or 16");
  return mblas::untyped(int(size));
}

template <class S>
Scalar read_scalar(const void* p) {
  return mblas::detail::widen(*static_cast<const S*>(p));
}

/// The scalar at `p`.
Scalar scalar_at(const char* argument, DType type, const void* p) {
  if (!p) throw Error(Status::NullPointer, std::string(argument) + " is null");
  switch (type) {
    case DType::f64:
      return read_scalar<double>(p);
    case DType::cf32:
      return read_scalar<std::complex<float>>(p);
    case DType::cf64:
      return read_scalar<std::complex<double>>(p);
    case DType::i32:
      return read_scalar<std::int32_t>(p);
    default:
      return read_scalar<float>(p);
  }
}

void check_size(const char* field, std::size_t size, std::size_t own) {
  if (size != own)
    invalid(std::string(field) + " is " + std::to_string(size) + ", this library's is " +
            std::to_string(own));
}

/// `out` is the type of C and of the bias.
Epilogue to_epilogue(const mblas_epilogue& given, DType out) {
  Epilogue e;
  check_size("epilogue.size", given.size, sizeof given);
  // The core refuses what is none of the enumerators as a value that is none either.
  const auto to_byte = [](const auto& enumerator) {
    const int value = number_in(enumerator);
    return std::uint8_t(value < 0 || value > 255 ? 255 : value);
  };
  e.bias = {mblas::BiasPer{to_byte(given.bias_per)}, out, given.bias};
  e.activation = mblas::Activation{to_byte(given.activation)};
  e.scale = given.scale;
  return e;
}

/// What the functions of one operation have in common.
struct Problem {
  mblas_layout layout;
  mblas_op transA, transB;
  std::int64_t m, n, k;
  const void *alpha, *beta;
};

/// The call without operands, batch and options.
GemmArgs plain_args(const Problem& problem, DType in, DType out) {
  GemmArgs args;
  args.in = in;
  args.out = out;
  args.transA = to_op(problem.transA);
  args.transB = to_op(problem.transB);
  args.m = problem.m;
  args.n = problem.n;
  args.k = problem.k;
  const DType scalar = mblas::scalar_type(in, out);
  args.alpha = scalar_at("alpha", scalar, problem.alpha);
  args.beta = scalar_at("beta", scalar, problem.beta);
  return args;
}

GemmArgs gemm_args(const Problem& problem, mblas_dtype in, mblas_dtype out,
                   const mblas_gemm_options* given) {
  const mblas_gemm_options defaults = MBLAS_GEMM_OPTIONS_DEFAULT;
  const mblas_gemm_options& options = given ? *given : defaults;
  check_size("options.size", options.size, sizeof options);
  const DType in_type = to_dtype("in", in), out_type = to_dtype("out", out);
  if (!mblas::is_gemm_pair(in_type, out_type))
    invalid("gemm does not multiply " + std::string(name_of(in_type)) + " into " +
            std::string(name_of(out_type)));
  const Compute compute = to_compute(options.compute);
  GemmArgs args = plain_args(problem, in_type, out_type);
  args.compute = compute;
  args.epilogue = to_epilogue(options.epilogue, out_type);
  args.tolerance = options.tolerance;
  if (options.plan) {
    args.keeper = options.plan->plan.keeper();
    args.keeps_b = options.plan->plan.operand() == mblas::GemmPlan::Operand::B;
  }
  return args;
}

mblas_gemm_options with(mblas_compute compute) {
  mblas_gemm_options options = MBLAS_GEMM_OPTIONS_DEFAULT;
  options.compute = compute;
  return options;
}

template <class Element>
auto erase(Element* const* pointers) {
  using Void = std::conditional_t<std::is_const_v<Element>, const void, void>;
  return reinterpret_cast<Void* const*>(pointers);
}

const void* address(const float& scalar) { return &scalar; }
const void* address(const double& scalar) { return &scalar; }
const void* address(const void* scalar) { return scalar; }

}  // namespace

const char* mblas_version() {
  static const std::string text(mblas::version());
  return text.c_str();
}

const char* mblas_status_name(mblas_status status) {
  if (index(status) < MBLAS_OK || index(status) > MBLAS_INTERNAL) return "?";
  return name_of(static_cast<Status>(status)).data();  // views of literals
}

mblas_status mblas_context_create(mblas_context** context) {
  if (context) *context = nullptr;
  return static_cast<mblas_status>(mblas::detail::to_status(nullptr, [&] {
    if (!context) throw Error(Status::NullPointer, "mblas_context_create: context is null");
    *context = new mblas_context;
  }));
}

void mblas_context_destroy(mblas_context* context) { delete context; }

mblas_status mblas_set_backend(mblas_context* context, const char* names) {
  return guarded(context, [&](auto& c) { c.set_backend(check_string("names", names)); });
}
mblas_status mblas_set_device(mblas_context* context, int ordinal) {
  return guarded(context, [&](auto& c) { c.set_device(ordinal); });
}
mblas_status mblas_set_stream(mblas_context* context, void* stream) {
  return guarded(context, [&](auto& c) { c.set_stream(stream); });
}
mblas_status mblas_set_num_threads(mblas_context* context, int threads) {
  return guarded(context, [&](auto& c) { c.set_num_threads(threads); });
}
mblas_status mblas_set_kernel(mblas_context* context, const char* spec) {
  return guarded(context, [&](auto& c) { c.set_kernel(check_string("spec", spec)); });
}
mblas_status mblas_set_compute(mblas_context* context, mblas_compute compute) {
  return guarded(context, [&](auto& c) { c.set_compute(to_compute(compute)); });
}
mblas_status mblas_set_workspace_limit(mblas_context* context, size_t bytes) {
  return guarded(context, [&](auto& c) { c.set_workspace_limit(bytes); });
}
mblas_status mblas_set_workspace(mblas_context* context, void* p, size_t bytes) {
  return guarded(context, [&](auto& c) { c.set_workspace(p, bytes); });
}
mblas_status mblas_set_verify(mblas_context* context, const char* spec) {
  return guarded(context, [&](auto& c) { c.set_verify(check_string("spec", spec)); });
}
mblas_status mblas_set_verbose(mblas_context* context, int level) {
  return guarded(context, [&](auto& c) { c.set_verbose(level); });
}
mblas_status mblas_synchronize(mblas_context* context) {
  return guarded(context, [](auto& c) { c.synchronize(); });
}

const char* mblas_last_error(mblas_context* context) {
  thread_local std::string text;
  return c_string(text, context, [](auto& c) { return c.last_error(); });
}
const char* mblas_last_backend(mblas_context* context) {
  thread_local std::string text;
  return c_string(text, context, [](auto& c) { return c.last_dispatch().backend; });
}
const char* mblas_last_kernel(mblas_context* context) {
  thread_local std::string text;
  return c_string(text, context, [](auto& c) { return c.last_dispatch().kernel; });
}

mblas_status mblas_gemm_ex(mblas_context* context, mblas_dtype in, mblas_dtype out,
                           mblas_compute compute, mblas_layout layout, mblas_op transA,
                           mblas_op transB, int64_t m, int64_t n, int64_t k, const void* alpha,
                           const void* A, int64_t lda, const void* B, int64_t ldb, const void* beta,
                           void* C, int64_t ldc) {
  return mblas_gemm_strided_batched_ex(context, in, out, compute, layout, transA, transB, m, n, k,
                                       alpha, A, lda, 0, B, ldb, 0, beta, C, ldc, 0, 1);
}

mblas_status mblas_gemm_strided_batched_ex(mblas_context* context, mblas_dtype in, mblas_dtype out,
                                           mblas_compute compute, mblas_layout layout,
                                           mblas_op transA, mblas_op transB, int64_t m, int64_t n,
                                           int64_t k, const void* alpha, const void* A, int64_t lda,
                                           int64_t strideA, const void* B, int64_t ldb,
                                           int64_t strideB, const void* beta, void* C, int64_t ldc,
                                           int64_t strideC, int64_t batch_count) {
  const mblas_gemm_options options = with(compute);
  return mblas_gemm_strided_batched_options(context, in, out, layout, transA, transB, m, n, k,
                                            alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc,
                                            strideC, batch_count, &options);
}

mblas_status mblas_gemm_strided_batched_options(
    mblas_context* context, mblas_dtype in, mblas_dtype out, mblas_layout layout, mblas_op transA,
    mblas_op transB, int64_t m, int64_t n, int64_t k, const void* alpha, const void* A, int64_t lda,
    int64_t strideA, const void* B, int64_t ldb, int64_t strideB, const void* beta, void* C,
    int64_t ldc, int64_t strideC, int64_t batch_count, const mblas_gemm_options* options) {
  return guarded(context, [&](auto& c) {
    GemmArgs args = gemm_args({layout, transA, transB, m, n, k, alpha, beta}, in, out, options);
    args.A = {A, lda, strideA};
    args.B = {B, ldb, strideB};
    args.C = {C, ldc, strideC};
    args.batch = batch_count;
    mblas::detail::gemm(c, to_layout(layout), args);
  });
}

mblas_status mblas_gemm_batched_ex(mblas_context* context, mblas_dtype in, mblas_dtype out,
                                   mblas_compute compute, mblas_layout layout, mblas_op transA,
                                   mblas_op transB, int64_t m, int64_t n, int64_t k,
                                   const void* alpha, const void* const* A, int64_t lda,
                                   const void* const* B, int64_t ldb, const void* beta,
                                   void* const* C, int64_t ldc, int64_t batch_count) {
  const mblas_gemm_options options = with(compute);
  return mblas_gemm_batched_options(context, in, out, layout, transA, transB, m, n, k, alpha, A,
                                    lda, B, ldb, beta, C, ldc, batch_count, &options);
}

mblas_status mblas_gemm_batched_options(mblas_context* context, mblas_dtype in, mblas_dtype out,
                                        mblas_layout layout, mblas_op transA, mblas_op transB,
                                        int64_t m, int64_t n, int64_t k, const void* alpha,
                                        const void* const* A, int64_t lda, const void* const* B,
                                        int64_t ldb, const void* beta, void* const* C, int64_t ldc,
                                        int64_t batch_count, const mblas_gemm_options* options) {
  return guarded(context, [&](auto& c) {
    GemmArgs args = gemm_args({layout, transA, transB, m, n, k, alpha, beta}, in, out, options);
    if (batch_count > 0 && !(A && B && C))
      throw Error(Status::NullPointer, "gemm_batched: an array of pointers is null");
    args.A = {nullptr, lda, 0, A};
    args.B = {nullptr, ldb, 0, B};
    args.C = {nullptr, ldc, 0, C};
    args.batch = batch_count;
    mblas::detail::gemm(c, to_layout(layout), args);
  });
}

mblas_status mblas_gemm_plan_create(mblas_plan_operand operand, mblas_gemm_plan** plan) {
  if (plan) *plan = nullptr;
  return static_cast<mblas_status>(mblas::detail::to_status(nullptr, [&] {
    if (!plan) throw Error(Status::NullPointer, "mblas_gemm_plan_create: plan is null");
    const int value = number_in(operand);
    if (value != MBLAS_PLAN_A && value != MBLAS_PLAN_B)
      invalid("operand is " + std::to_string(value) + ", which is no mblas_plan_operand");
    using Operand = mblas::GemmPlan::Operand;
    *plan = new mblas_gemm_plan{mblas::GemmPlan(value == MBLAS_PLAN_A ? Operand::A : Operand::B)};
  }));
}
void mblas_gemm_plan_destroy(mblas_gemm_plan* plan) { delete plan; }
void mblas_gemm_plan_clear(mblas_gemm_plan* plan) {
  if (plan) plan->plan.clear();
}
size_t mblas_gemm_plan_bytes(const mblas_gemm_plan* plan) { return plan ? plan->plan.bytes() : 0; }

mblas_status mblas_geam_strided_batched_ex(mblas_context* context, mblas_dtype type,
                                           mblas_layout layout, mblas_op transA, mblas_op transB,
                                           int64_t m, int64_t n, const void* alpha, const void* A,
                                           int64_t lda, int64_t strideA, const void* beta,
                                           const void* B, int64_t ldb, int64_t strideB, void* C,
                                           int64_t ldc, int64_t strideC, int64_t batch_count) {
  return guarded(context, [&](auto& c) {
    GeamArgs args;
    args.type = to_dtype("type", type);
    if (!mblas::is_geam_type(args.type))
      invalid("geam does not add " + std::string(name_of(args.type)));
    args.transA = to_op(transA);
    args.transB = to_op(transB);
    args.m = m;
    args.n = n;
    args.alpha = scalar_at("alpha", args.type, alpha);
    args.beta = scalar_at("beta", args.type, beta);
    args.A = {A, lda, strideA};
    args.B = {B, ldb, strideB};
    args.C = {C, ldc, strideC};
    args.batch = batch_count;
    mblas::detail::geam(c, to_layout(layout), args);
  });
}

// The classical names: `prefix` s, d, c, z; `Element` and `ScalarArgument` as in the header.
#define MBLAS_TYPED(prefix, dtype, Element, ScalarArgument)                                        \
  mblas_status mblas_##prefix##gemm(                                                               \
      mblas_context* context, mblas_layout layout, mblas_op transA, mblas_op transB, int64_t m,    \
      int64_t n, int64_t k, ScalarArgument alpha, const Element* A, int64_t lda, const Element* B, \
      int64_t ldb, ScalarArgument beta, Element* C, int64_t ldc) {                                 \
    return guarded(context, [&](auto& c) {                                                         \
      constexpr DType type{dtype};                                                                 \
      GemmArgs args = plain_args({layout, transA, transB, m, n, k, address(alpha), address(beta)}, \
                                 type, type);                                                      \
      args.A = {A, lda};                                                                           \
      args.B = {B, ldb};                                                                           \
      args.C = {C, ldc};                                                                           \
      mblas::detail::gemm(c, to_layout(layout), args);                                             \
    });                                                                                            \
  }                                                                                                \
  mblas_status mblas_##prefix##gemm_strided_batched(                                               \
      mblas_context* context, mblas_layout layout, mblas_op transA, mblas_op transB, int64_t m,    \
      int64_t n, int64_t k, ScalarArgument alpha, const Element* A, int64_t lda, int64_t strideA,  \
      const Element* B, int64_t ldb, int64_t strideB, ScalarArgument beta, Element* C,             \
      int64_t ldc, int64_t strideC, int64_t batch_count) {                                         \
    return mblas_gemm_strided_batched_ex(context, dtype, dtype, MBLAS_COMPUTE_DEFAULT, layout,     \
                                         transA, transB, m, n, k, address(alpha), A, lda, strideA, \
                                         B, ldb, strideB, address(beta), C, ldc, strideC,          \
                                         batch_count);                                             \
  }                                                                                                \
  mblas_status mblas_##prefix##gemm_batched(                                                       \
      mblas_context* context, mblas_layout layout, mblas_op transA, mblas_op transB, int64_t m,    \
      int64_t n, int64_t k, ScalarArgument alpha, const Element* const* A, int64_t lda,            \
      const Element* const* B, int64_t ldb, ScalarArgument beta, Element* const* C, int64_t ldc,   \
      int64_t batch_count) {                                                                       \
    return mblas_gemm_batched_ex(context, dtype, dtype, MBLAS_COMPUTE_DEFAULT, layout, transA,     \
                                 transB, m, n, k, address(alpha), erase(A), lda, erase(B), ldb,    \
                                 address(beta), erase(C), ldc, batch_count);                       \
  }                                                                                                \
  mblas_status mblas_##prefix##geam(mblas_context* context, mblas_layout layout, mblas_op transA,  \
                                    mblas_op transB, int64_t m, int64_t n, ScalarArgument alpha,   \
                                    const Element* A, int64_t lda, ScalarArgument beta,            \
                                    const Element* B, int64_t ldb, Element* C, int64_t ldc) {      \
    return mblas_geam_strided_batched_ex(context, dtype, layout, transA, transB, m, n,             \
                                         address(alpha), A, lda, 0, address(beta), B, ldb, 0, C,   \
                                         ldc, 0, 1);                                               \
  }

MBLAS_TYPED(s, MBLAS_F32, float, float)
MBLAS_TYPED(d, MBLAS_F64, double, double)
MBLAS_TYPED(c, MBLAS_CF32, void, const void*)
MBLAS_TYPED(z, MBLAS_CF64, void, const void*)

mblas_status mblas_transpose(mblas_context* context, mblas_layout layout, size_t element_size,
                             int64_t m, int64_t n, const void* A, int64_t lda, void* B,
                             int64_t ldb) {
  return mblas_transpose_strided_batched(context, layout, element_size, m, n, A, lda, 0, B, ldb, 0,
                                         1);
}

mblas_status mblas_transpose_strided_batched(mblas_context* context, mblas_layout layout,
                                             size_t element_size, int64_t m, int64_t n,
                                             const void* A, int64_t lda, int64_t strideA, void* B,
                                             int64_t ldb, int64_t strideB, int64_t batch_count) {
  return guarded(context, [&](auto& c) {
    mblas::TransposeArgs args;
    args.type = element_of(element_size);
    args.m = m;
    args.n = n;
    args.A = {A, lda, strideA};
    args.B = {B, ldb, strideB};
    args.batch = batch_count;
    mblas::detail::transpose(c, to_layout(layout), args);
  });
}

mblas_status mblas_transpose_inplace(mblas_context* context, mblas_layout layout,
                                     size_t element_size, int64_t m, int64_t n, void* A,
                                     int64_t lda, int64_t ldb) {
  return mblas_transpose_inplace_strided_batched(context, layout, element_size, m, n, A, lda, ldb,
                                                 0, 1);
}

mblas_status mblas_transpose_inplace_strided_batched(mblas_context* context, mblas_layout layout,
                                                     size_t element_size, int64_t m, int64_t n,
                                                     void* A, int64_t lda, int64_t ldb,
                                                     int64_t strideA, int64_t batch_count) {
  return guarded(context, [&](auto& c) {
    mblas::TransposeInplaceArgs args;
    args.type = element_of(element_size);
    args.m = m;
    args.n = n;
    args.A = {A, lda, strideA};
    args.ldb = ldb;
    args.batch = batch_count;
    mblas::detail::transpose_inplace(c, to_layout(layout), args);
  });
}

mblas_status mblas_gf256_gemm(mblas_context* context, int64_t m, int64_t n, int64_t k,
                              const uint8_t* A, int64_t lda, const uint8_t* B, int64_t ldb,
                              uint8_t* C, int64_t ldc, int accumulate, unsigned poly) {
  return guarded(context, [&](auto& c) {
    mblas::gf256::gemm(c, m, n, k, A, lda, B, ldb, C, ldc, {accumulate != 0, poly});
  });
}

mblas_status mblas_gf256_cauchy_matrix(mblas_context* context, int m, int k, uint8_t* matrix,
                                       unsigned poly) {
  return guarded(context, [&](auto&) {
    const auto made = mblas::gf256::cauchy_matrix(m, k, poly);
    std::ranges::copy(made, check_array("matrix", matrix, std::ssize(made)).begin());
  });
}

mblas_status mblas_gf256_vandermonde_matrix(mblas_context* context, int m, int k, uint8_t* matrix,
                                            unsigned poly) {
  return guarded(context, [&](auto&) {
    const auto made = mblas::gf256::vandermonde_matrix(m, k, poly);
    std::ranges::copy(made, check_array("matrix", matrix, std::ssize(made)).begin());
  });
}

mblas_status mblas_gf256_invert(mblas_context* context, int n, const uint8_t* A, uint8_t* inverse,
                                unsigned poly) {
  return guarded(context, [&](auto&) {
    const std::int64_t size = n > 0 ? std::int64_t{n} * n : 0;
    const auto to = check_array("inverse", inverse, size);
    std::ranges::copy(mblas::gf256::invert(n, check_array("A", A, size), poly), to.begin());
  });
}

mblas_status mblas_reed_solomon_create(mblas_context* context, int k, int m, unsigned poly,
                                       mblas_reed_solomon** code) {
  if (code) *code = nullptr;
  return guarded(context, [&](auto&) {
    if (!code) throw Error(Status::NullPointer, "code is null");
    *code = new mblas_reed_solomon{mblas::gf256::ReedSolomon(k, m, poly)};
  });
}

void mblas_reed_solomon_destroy(mblas_reed_solomon* code) { delete code; }

const uint8_t* mblas_reed_solomon_matrix(const mblas_reed_solomon* code) {
  return code ? code->code.matrix().data() : nullptr;
}

mblas_status mblas_reed_solomon_encode(mblas_context* context, const mblas_reed_solomon* code,
                                       const uint8_t* const* data, uint8_t* const* parity,
                                       int64_t length) {
  return guarded(context, [&](auto& c) {
    const auto& rs = check_code(code);
    rs.encode(c, check_array("data", data, rs.data_shards()),
              check_array("parity", parity, rs.parity_shards()), length);
  });
}

mblas_status mblas_reed_solomon_update(mblas_context* context, const mblas_reed_solomon* code,
                                       int index, const uint8_t* delta, uint8_t* const* parity,
                                       int64_t length) {
  return guarded(context, [&](auto& c) {
    const auto& rs = check_code(code);
    rs.update(c, index, delta, check_array("parity", parity, rs.parity_shards()), length);
  });
}

mblas_status mblas_reed_solomon_reconstruct(mblas_context* context, const mblas_reed_solomon* code,
                                            uint8_t* const* shards, const uint8_t* present,
                                            int64_t length) {
  return guarded(context, [&](auto& c) {
    const auto& rs = check_code(code);
    const int count = rs.data_shards() + rs.parity_shards();
    std::array<bool, 256> is_present;
    std::ranges::transform(check_array("present", present, count), is_present.begin(),
                           [](uint8_t byte) { return byte != 0; });
    rs.reconstruct(c, check_array("shards", shards, count),
                   std::span<const bool>(is_present).first(std::size_t(count)), length);
  });
}
