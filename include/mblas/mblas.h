/* mblas for C and for everything that calls C: the functions of the C++ headers, flat.
 *
 * Every function returns a status and leaves a message for mblas_last_error(). A null context means
 * the calling thread's default one. What a function computes, its argument rules and its errors are
 * those of the C++ header of its name (gemm.hpp, geam.hpp, transpose.hpp, gf256.hpp, context.hpp);
 * sizes count elements.
 *
 * Complex numbers are two adjacent reals, the real part first: float complex, double complex,
 * std::complex, cuComplex. Arrays of them, and of the types that C lacks, are passed as void*.
 * Scalars (alpha, beta) of real functions are passed by value, those of complex and generic
 * functions by a pointer to host memory.
 */
#ifndef MBLAS_MBLAS_H_
#define MBLAS_MBLAS_H_

#include <stddef.h>
#include <stdint.h>

#include "mblas/export.hpp"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status, settings and receipts --------------------------------------------------------------
 */

/* mblas::Status; error.hpp says what each means. */
typedef enum mblas_status {
  MBLAS_OK,
  MBLAS_INVALID_ARGUMENT,
  MBLAS_NULL_POINTER,
  MBLAS_SIZE_OVERFLOW,
  MBLAS_OVERLAP,
  MBLAS_WRONG_MEMORY,
  MBLAS_UNKNOWN_NAME,
  MBLAS_BACKEND_UNAVAILABLE,
  MBLAS_NOT_SUPPORTED,
  MBLAS_OUT_OF_MEMORY,
  MBLAS_DEVICE_ERROR,
  MBLAS_SINGULAR,
  MBLAS_VERIFY_FAILED,
  MBLAS_INTERNAL
} mblas_status;

typedef enum mblas_layout { MBLAS_COL_MAJOR = 'C', MBLAS_ROW_MAJOR = 'R' } mblas_layout;

typedef enum mblas_op {
  MBLAS_NO_TRANS = 'N',
  MBLAS_TRANS = 'T',
  MBLAS_CONJ_TRANS = 'C',
  MBLAS_CONJ_NO_TRANS = 'J'
} mblas_op;

/* mblas::Compute */
typedef enum mblas_compute {
  MBLAS_COMPUTE_DEFAULT,
  MBLAS_COMPUTE_PEDANTIC,
  MBLAS_COMPUTE_TF32,
  MBLAS_COMPUTE_BF16X6,
  MBLAS_COMPUTE_FP16X3,
  MBLAS_COMPUTE_OZAKI_FP64
} mblas_compute;

/* The types of the generic functions. */
typedef enum mblas_dtype {
  MBLAS_F32,
  MBLAS_F64,
  MBLAS_CF32, /* complex, two floats */
  MBLAS_CF64, /* complex, two doubles */
  MBLAS_F16,  /* IEEE binary16 */
  MBLAS_BF16, /* bfloat16 */
  MBLAS_I8,
  MBLAS_I32
} mblas_dtype;

/* mblas::Activation and mblas::BiasPer */
typedef enum mblas_activation {
  MBLAS_ACTIVATION_NONE,
  MBLAS_ACTIVATION_RELU,
  MBLAS_ACTIVATION_GELU
} mblas_activation;
typedef enum mblas_bias_per {
  MBLAS_BIAS_NONE,
  MBLAS_BIAS_PER_ROW,
  MBLAS_BIAS_PER_COLUMN
} mblas_bias_per;

/* mblas::Epilogue, see epilogue.hpp. To be initialised with MBLAS_EPILOGUE_NONE: fields that later
 * versions add are then as if they were not there. The bias is of C's type, in its memory. */
typedef struct mblas_epilogue {
  size_t size; /* of the struct as the program was compiled with it */
  mblas_bias_per bias_per;
  mblas_activation activation;
  const void* bias;
  double scale;
} mblas_epilogue;
#define MBLAS_EPILOGUE_NONE \
  { sizeof(mblas_epilogue), MBLAS_BIAS_NONE, MBLAS_ACTIVATION_NONE, NULL, 1.0 }

/* mblas::GemmPlan, see plan.hpp. */
typedef struct mblas_gemm_plan mblas_gemm_plan;
typedef enum mblas_plan_operand { MBLAS_PLAN_A, MBLAS_PLAN_B } mblas_plan_operand;

/* mblas::GemmOptions, see gemm.hpp. To be initialised with MBLAS_GEMM_OPTIONS_DEFAULT, as above. */
typedef struct mblas_gemm_options {
  size_t size;
  mblas_compute compute;
  mblas_epilogue epilogue;
  mblas_gemm_plan* plan; /* or null */
  double tolerance;
} mblas_gemm_options;
#define MBLAS_GEMM_OPTIONS_DEFAULT \
  { sizeof(mblas_gemm_options), MBLAS_COMPUTE_DEFAULT, MBLAS_EPILOGUE_NONE, NULL, 0.0 }

typedef struct mblas_context mblas_context;

/* "major.minor.patch" of the library that the program runs with. */
MBLAS_EXPORT const char* mblas_version(void);
/* The name of the C++ enumerator, "Ok" …; "?" for a number that is none. */
MBLAS_EXPORT const char* mblas_status_name(mblas_status status);

/* *context receives a context with the settings of the environment, or null on an error. */
MBLAS_EXPORT mblas_status mblas_context_create(mblas_context** context);
/* Null is allowed. */
MBLAS_EXPORT void mblas_context_destroy(mblas_context* context);

MBLAS_EXPORT mblas_status mblas_set_backend(mblas_context* context, const char* names);
MBLAS_EXPORT mblas_status mblas_set_device(mblas_context* context, int ordinal);
MBLAS_EXPORT mblas_status mblas_set_stream(mblas_context* context, void* stream);
MBLAS_EXPORT mblas_status mblas_set_num_threads(mblas_context* context, int threads);
MBLAS_EXPORT mblas_status mblas_set_kernel(mblas_context* context, const char* spec);
MBLAS_EXPORT mblas_status mblas_set_compute(mblas_context* context, mblas_compute compute);
MBLAS_EXPORT mblas_status mblas_set_workspace_limit(mblas_context* context, size_t bytes);
MBLAS_EXPORT mblas_status mblas_set_workspace(mblas_context* context, void* p, size_t bytes);
MBLAS_EXPORT mblas_status mblas_set_verify(mblas_context* context, const char* spec);
MBLAS_EXPORT mblas_status mblas_set_verbose(mblas_context* context, int level);
MBLAS_EXPORT mblas_status mblas_synchronize(mblas_context* context);

/* The message of the context's last error, and the backend and kernel of its last call (empty where
 * nothing had to be computed). Each string lives until the calling thread asks the same function
 * again. */
MBLAS_EXPORT const char* mblas_last_error(mblas_context* context);
MBLAS_EXPORT const char* mblas_last_backend(mblas_context* context);
MBLAS_EXPORT const char* mblas_last_kernel(mblas_context* context);

/* ---- gemm: C = alpha op(A) op(B) + beta C
 * --------------------------------------------------------- */

MBLAS_EXPORT mblas_status mblas_sgemm(mblas_context* context, mblas_layout layout, mblas_op transA,
                                      mblas_op transB, int64_t m, int64_t n, int64_t k, float alpha,
                                      const float* A, int64_t lda, const float* B, int64_t ldb,
                                      float beta, float* C, int64_t ldc);
MBLAS_EXPORT mblas_status mblas_dgemm(mblas_context* context, mblas_layout layout, mblas_op transA,
                                      mblas_op transB, int64_t m, int64_t n, int64_t k,
                                      double alpha, const double* A, int64_t lda, const double* B,
                                      int64_t ldb, double beta, double* C, int64_t ldc);
MBLAS_EXPORT mblas_status mblas_cgemm(mblas_context* context, mblas_layout layout, mblas_op transA,
                                      mblas_op transB, int64_t m, int64_t n, int64_t k,
                                      const void* alpha, const void* A, int64_t lda, const void* B,
                                      int64_t ldb, const void* beta, void* C, int64_t ldc);
MBLAS_EXPORT mblas_status mblas_zgemm(mblas_context* context, mblas_layout layout, mblas_op transA,
                                      mblas_op transB, int64_t m, int64_t n, int64_t k,
                                      const void* alpha, const void* A, int64_t lda, const void* B,
                                      int64_t ldb, const void* beta, void* C, int64_t ldc);

MBLAS_EXPORT mblas_status mblas_sgemm_strided_batched(mblas_context* context, mblas_layout layout,
                                                      mblas_op transA, mblas_op transB, int64_t m,
                                                      int64_t n, int64_t k, float alpha,
                                                      const float* A, int64_t lda, int64_t strideA,
                                                      const float* B, int64_t ldb, int64_t strideB,
                                                      float beta, float* C, int64_t ldc,
                                                      int64_t strideC, int64_t batch_count);
MBLAS_EXPORT mblas_status mblas_dgemm_strided_batched(mblas_context* context, mblas_layout layout,
                                                      mblas_op transA, mblas_op transB, int64_t m,
                                                      int64_t n, int64_t k, double alpha,
                                                      const double* A, int64_t lda, int64_t strideA,
                                                      const double* B, int64_t ldb, int64_t strideB,
                                                      double beta, double* C, int64_t ldc,
                                                      int64_t strideC, int64_t batch_count);
MBLAS_EXPORT mblas_status mblas_cgemm_strided_batched(mblas_context* context, mblas_layout layout,
                                                      mblas_op transA, mblas_op transB, int64_t m,
                                                      int64_t n, int64_t k, const void* alpha,
                                                      const void* A, int64_t lda, int64_t strideA,
                                                      const void* B, int64_t ldb, int64_t strideB,
                                                      const void* beta, void* C, int64_t ldc,
                                                      int64_t strideC, int64_t batch_count);
MBLAS_EXPORT mblas_status mblas_zgemm_strided_batched(mblas_context* context, mblas_layout layout,
                                                      mblas_op transA, mblas_op transB, int64_t m,
                                                      int64_t n, int64_t k, const void* alpha,
                                                      const void* A, int64_t lda, int64_t strideA,
                                                      const void* B, int64_t ldb, int64_t strideB,
                                                      const void* beta, void* C, int64_t ldc,
                                                      int64_t strideC, int64_t batch_count);

/* Arrays of batch_count pointers, in host memory. */
MBLAS_EXPORT mblas_status mblas_sgemm_batched(mblas_context* context, mblas_layout layout,
                                              mblas_op transA, mblas_op transB, int64_t m,
                                              int64_t n, int64_t k, float alpha,
                                              const float* const* A, int64_t lda,
                                              const float* const* B, int64_t ldb, float beta,
                                              float* const* C, int64_t ldc, int64_t batch_count);
MBLAS_EXPORT mblas_status mblas_dgemm_batched(mblas_context* context, mblas_layout layout,
                                              mblas_op transA, mblas_op transB, int64_t m,
                                              int64_t n, int64_t k, double alpha,
                                              const double* const* A, int64_t lda,
                                              const double* const* B, int64_t ldb, double beta,
                                              double* const* C, int64_t ldc, int64_t batch_count);
MBLAS_EXPORT mblas_status mblas_cgemm_batched(mblas_context* context, mblas_layout layout,
                                              mblas_op transA, mblas_op transB, int64_t m,
                                              int64_t n, int64_t k, const void* alpha,
                                              const void* const* A, int64_t lda,
                                              const void* const* B, int64_t ldb, const void* beta,
                                              void* const* C, int64_t ldc, int64_t batch_count);
MBLAS_EXPORT mblas_status mblas_zgemm_batched(mblas_context* context, mblas_layout layout,
                                              mblas_op transA, mblas_op transB, int64_t m,
                                              int64_t n, int64_t k, const void* alpha,
                                              const void* const* A, int64_t lda,
                                              const void* const* B, int64_t ldb, const void* beta,
                                              void* const* C, int64_t ldc, int64_t batch_count);

/* All types. alpha and beta point to scalars of the accumulating type: int32_t for MBLAS_I8 with
 * MBLAS_I32 out, float for MBLAS_F16, MBLAS_BF16 and MBLAS_I8 with MBLAS_F32 out, else `in` itself.
 * A pair of types that gemm does not multiply is MBLAS_INVALID_ARGUMENT. */
MBLAS_EXPORT mblas_status mblas_gemm_ex(mblas_context* context, mblas_dtype in, mblas_dtype out,
                                        mblas_compute compute, mblas_layout layout, mblas_op transA,
                                        mblas_op transB, int64_t m, int64_t n, int64_t k,
                                        const void* alpha, const void* A, int64_t lda,
                                        const void* B, int64_t ldb, const void* beta, void* C,
                                        int64_t ldc);
MBLAS_EXPORT mblas_status mblas_gemm_strided_batched_ex(
    mblas_context* context, mblas_dtype in, mblas_dtype out, mblas_compute compute,
    mblas_layout layout, mblas_op transA, mblas_op transB, int64_t m, int64_t n, int64_t k,
    const void* alpha, const void* A, int64_t lda, int64_t strideA, const void* B, int64_t ldb,
    int64_t strideB, const void* beta, void* C, int64_t ldc, int64_t strideC, int64_t batch_count);
MBLAS_EXPORT mblas_status mblas_gemm_batched_ex(
    mblas_context* context, mblas_dtype in, mblas_dtype out, mblas_compute compute,
    mblas_layout layout, mblas_op transA, mblas_op transB, int64_t m, int64_t n, int64_t k,
    const void* alpha, const void* const* A, int64_t lda, const void* const* B, int64_t ldb,
    const void* beta, void* const* C, int64_t ldc, int64_t batch_count);

/* The same with options; null: MBLAS_GEMM_OPTIONS_DEFAULT. */
MBLAS_EXPORT mblas_status mblas_gemm_strided_batched_options(
    mblas_context* context, mblas_dtype in, mblas_dtype out, mblas_layout layout, mblas_op transA,
    mblas_op transB, int64_t m, int64_t n, int64_t k, const void* alpha, const void* A, int64_t lda,
    int64_t strideA, const void* B, int64_t ldb, int64_t strideB, const void* beta, void* C,
    int64_t ldc, int64_t strideC, int64_t batch_count, const mblas_gemm_options* options);
MBLAS_EXPORT mblas_status mblas_gemm_batched_options(
    mblas_context* context, mblas_dtype in, mblas_dtype out, mblas_layout layout, mblas_op transA,
    mblas_op transB, int64_t m, int64_t n, int64_t k, const void* alpha, const void* const* A,
    int64_t lda, const void* const* B, int64_t ldb, const void* beta, void* const* C, int64_t ldc,
    int64_t batch_count, const mblas_gemm_options* options);

/* *plan receives a plan that keeps nothing yet, or null on an error. */
MBLAS_EXPORT mblas_status mblas_gemm_plan_create(mblas_plan_operand operand,
                                                 mblas_gemm_plan** plan);
/* Null: nothing happens, or 0. */
MBLAS_EXPORT void mblas_gemm_plan_destroy(mblas_gemm_plan* plan);
MBLAS_EXPORT void mblas_gemm_plan_clear(mblas_gemm_plan* plan);
MBLAS_EXPORT size_t mblas_gemm_plan_bytes(const mblas_gemm_plan* plan);

/* ---- geam: C = alpha op(A) + beta op(B)
 * ------------------------------------------------------------ */

MBLAS_EXPORT mblas_status mblas_sgeam(mblas_context* context, mblas_layout layout, mblas_op transA,
                                      mblas_op transB, int64_t m, int64_t n, float alpha,
                                      const float* A, int64_t lda, float beta, const float* B,
                                      int64_t ldb, float* C, int64_t ldc);
MBLAS_EXPORT mblas_status mblas_dgeam(mblas_context* context, mblas_layout layout, mblas_op transA,
                                      mblas_op transB, int64_t m, int64_t n, double alpha,
                                      const double* A, int64_t lda, double beta, const double* B,
                                      int64_t ldb, double* C, int64_t ldc);
MBLAS_EXPORT mblas_status mblas_cgeam(mblas_context* context, mblas_layout layout, mblas_op transA,
                                      mblas_op transB, int64_t m, int64_t n, const void* alpha,
                                      const void* A, int64_t lda, const void* beta, const void* B,
                                      int64_t ldb, void* C, int64_t ldc);
MBLAS_EXPORT mblas_status mblas_zgeam(mblas_context* context, mblas_layout layout, mblas_op transA,
                                      mblas_op transB, int64_t m, int64_t n, const void* alpha,
                                      const void* A, int64_t lda, const void* beta, const void* B,
                                      int64_t ldb, void* C, int64_t ldc);

/* All floating-point types; scalars as for mblas_gemm_ex. */
MBLAS_EXPORT mblas_status mblas_geam_strided_batched_ex(
    mblas_context* context, mblas_dtype type, mblas_layout layout, mblas_op transA, mblas_op transB,
    int64_t m, int64_t n, const void* alpha, const void* A, int64_t lda, int64_t strideA,
    const void* beta, const void* B, int64_t ldb, int64_t strideB, void* C, int64_t ldc,
    int64_t strideC, int64_t batch_count);

/* ---- Transposes of elements of 1, 2, 4, 8 or 16 bytes
 * ---------------------------------------------- */

MBLAS_EXPORT mblas_status mblas_transpose(mblas_context* context, mblas_layout layout,
                                          size_t element_size, int64_t m, int64_t n, const void* A,
                                          int64_t lda, void* B, int64_t ldb);
MBLAS_EXPORT mblas_status mblas_transpose_strided_batched(mblas_context* context,
                                                          mblas_layout layout, size_t element_size,
                                                          int64_t m, int64_t n, const void* A,
                                                          int64_t lda, int64_t strideA, void* B,
                                                          int64_t ldb, int64_t strideB,
                                                          int64_t batch_count);
MBLAS_EXPORT mblas_status mblas_transpose_inplace(mblas_context* context, mblas_layout layout,
                                                  size_t element_size, int64_t m, int64_t n,
                                                  void* A, int64_t lda, int64_t ldb);
MBLAS_EXPORT mblas_status mblas_transpose_inplace_strided_batched(
    mblas_context* context, mblas_layout layout, size_t element_size, int64_t m, int64_t n, void* A,
    int64_t lda, int64_t ldb, int64_t strideA, int64_t batch_count);

/* ---- GF(2^8): products, matrices, Reed-Solomon codes
 * ----------------------------------------------- */

/* C = A B, or C + A B where `accumulate` is not 0; poly: 0x11D is customary. */
MBLAS_EXPORT mblas_status mblas_gf256_gemm(mblas_context* context, int64_t m, int64_t n, int64_t k,
                                           const uint8_t* A, int64_t lda, const uint8_t* B,
                                           int64_t ldb, uint8_t* C, int64_t ldc, int accumulate,
                                           unsigned poly);

/* m x k, and the inverse of the n x n matrix A, which may be A's own place; rows without padding,
 * in host memory. */
MBLAS_EXPORT mblas_status mblas_gf256_cauchy_matrix(mblas_context* context, int m, int k,
                                                    uint8_t* matrix, unsigned poly);
MBLAS_EXPORT mblas_status mblas_gf256_vandermonde_matrix(mblas_context* context, int m, int k,
                                                         uint8_t* matrix, unsigned poly);
MBLAS_EXPORT mblas_status mblas_gf256_invert(mblas_context* context, int n, const uint8_t* A,
                                             uint8_t* inverse, unsigned poly);

/* mblas::gf256::ReedSolomon: k data and m parity shards. Any thread may use a code, several at a
 * time too, each with a context of its own. */
typedef struct mblas_reed_solomon mblas_reed_solomon;

/* *code receives the code, or null on an error. */
MBLAS_EXPORT mblas_status mblas_reed_solomon_create(mblas_context* context, int k, int m,
                                                    unsigned poly, mblas_reed_solomon** code);
/* Null is allowed. */
MBLAS_EXPORT void mblas_reed_solomon_destroy(mblas_reed_solomon* code);
/* The m x k coefficients of the parity shards, for as long as the code lives; null for null. */
MBLAS_EXPORT const uint8_t* mblas_reed_solomon_matrix(const mblas_reed_solomon* code);

/* Arrays of k data, m parity and, data first, all k + m shards of `length` bytes. */
MBLAS_EXPORT mblas_status mblas_reed_solomon_encode(mblas_context* context,
                                                    const mblas_reed_solomon* code,
                                                    const uint8_t* const* data,
                                                    uint8_t* const* parity, int64_t length);
/* After data shard `index` changed by `delta` = old xor new. */
MBLAS_EXPORT mblas_status mblas_reed_solomon_update(mblas_context* context,
                                                    const mblas_reed_solomon* code, int index,
                                                    const uint8_t* delta, uint8_t* const* parity,
                                                    int64_t length);
/* present: k + m bytes, 0 for a shard that is to be rebuilt. */
MBLAS_EXPORT mblas_status mblas_reed_solomon_reconstruct(mblas_context* context,
                                                         const mblas_reed_solomon* code,
                                                         uint8_t* const* shards,
                                                         const uint8_t* present, int64_t length);

#ifdef __cplusplus
}
#endif

#endif /* MBLAS_MBLAS_H_ */
