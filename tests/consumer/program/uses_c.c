/* A program of someone else's, in C99: a call of each kind that the C header has, and of each way
 * to fail. */
#include <complex.h>
#include <mblas/mblas.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void check_at(int condition, const char* what, int line) {
  if (condition) return;
  printf("line %d: not true: %s (last error: %s)\n", line, what, mblas_last_error(NULL));
  ++failures;
}
#define CHECK(condition) check_at(condition, #condition, __LINE__)

static void check_gemm(mblas_context* context) {
  const float A[] = {1, 2, 3, 4, 5, 6};    /* 2 x 3 */
  const float B[] = {7, 8, 9, 10, 11, 12}; /* 3 x 2 */
  const float expected[] = {58, 64, 139, 154};
  const float alpha = 1, beta = 0;
  float C[8] = {0};
  const float* As[2];
  const float* Bs[2];
  float* Cs[2];

  CHECK(mblas_sgemm(context, MBLAS_ROW_MAJOR, MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 3, alpha, A, 3,
                    B, 2, beta, C, 2) == MBLAS_OK);
  CHECK(memcmp(C, expected, sizeof expected) == 0);
  CHECK(strlen(mblas_last_backend(context)) > 0);
  CHECK(strlen(mblas_last_kernel(context)) > 0);

  memset(C, 0, sizeof C);
  CHECK(mblas_gemm_ex(context, MBLAS_F32, MBLAS_F32, MBLAS_COMPUTE_PEDANTIC, MBLAS_ROW_MAJOR,
                      MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 3, &alpha, A, 3, B, 2, &beta, C,
                      2) == MBLAS_OK);
  CHECK(memcmp(C, expected, sizeof expected) == 0);

  memset(C, 0, sizeof C);
  CHECK(mblas_sgemm_strided_batched(context, MBLAS_ROW_MAJOR, MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2,
                                    3, alpha, A, 3, 0, B, 2, 0, beta, C, 2, 4, 2) == MBLAS_OK);
  CHECK(memcmp(C, expected, sizeof expected) == 0);
  CHECK(memcmp(C + 4, expected, sizeof expected) == 0);

  memset(C, 0, sizeof C);
  As[0] = As[1] = A;
  Bs[0] = Bs[1] = B;
  Cs[0] = C + 4;
  Cs[1] = C;
  CHECK(mblas_sgemm_batched(context, MBLAS_ROW_MAJOR, MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 3,
                            alpha, As, 3, Bs, 2, beta, Cs, 2, 2) == MBLAS_OK);
  CHECK(memcmp(C, expected, sizeof expected) == 0);
  CHECK(memcmp(C + 4, expected, sizeof expected) == 0);
}

static void check_options(mblas_context* context) {
  const float A[] = {1, 2, 3, 4}, B[] = {5, 6, 7, 8}, expected[] = {19, 22, 43, 50};
  const float alpha = 1, beta = 0;
  float C[4] = {0};
  mblas_gemm_options options = MBLAS_GEMM_OPTIONS_DEFAULT;

  CHECK(mblas_gemm_plan_create(MBLAS_PLAN_B, &options.plan) == MBLAS_OK);
  CHECK(mblas_gemm_strided_batched_options(context, MBLAS_F32, MBLAS_F32, MBLAS_ROW_MAJOR,
                                           MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 2, &alpha, A, 2, 0,
                                           B, 2, 0, &beta, C, 2, 0, 1, &options) == MBLAS_OK);
  CHECK(memcmp(C, expected, sizeof expected) == 0);
  mblas_gemm_plan_clear(options.plan);
  mblas_gemm_plan_destroy(options.plan);
  CHECK(mblas_gemm_plan_create((mblas_plan_operand)3, &options.plan) == MBLAS_INVALID_ARGUMENT);
  CHECK(options.plan == NULL);
}

static void check_types(mblas_context* context) {
  const double complex x = 1 + 2 * I, y = 3 - 1 * I, one = 1, zero = 0;
  double complex z = 0;
  const int8_t a = -100, b = 100;
  const int32_t alpha = 2, beta = 0;
  int32_t c = 0;

  CHECK(mblas_zgemm(context, MBLAS_COL_MAJOR, MBLAS_CONJ_TRANS, MBLAS_NO_TRANS, 1, 1, 1, &one, &x,
                    1, &y, 1, &zero, &z, 1) == MBLAS_OK);
  CHECK(z == conj(x) * y);
  CHECK(mblas_gemm_ex(context, MBLAS_I8, MBLAS_I32, MBLAS_COMPUTE_DEFAULT, MBLAS_COL_MAJOR,
                      MBLAS_NO_TRANS, MBLAS_NO_TRANS, 1, 1, 1, &alpha, &a, 1, &b, 1, &beta, &c,
                      1) == MBLAS_OK);
  CHECK(c == -20000);
}

static void check_moves(mblas_context* context) {
  const double A[] = {1, 2, 3, 4, 5, 6}; /* 2 x 3 */
  const double transposed[] = {1, 4, 2, 5, 3, 6};
  const double doubled[] = {2, 8, 4, 10, 6, 12};
  double B[6] = {0};
  char bytes[] = "abcdef";

  CHECK(mblas_transpose(context, MBLAS_ROW_MAJOR, sizeof *A, 2, 3, A, 3, B, 2) == MBLAS_OK);
  CHECK(memcmp(B, transposed, sizeof B) == 0);
  CHECK(mblas_transpose_inplace(context, MBLAS_ROW_MAJOR, 1, 2, 3, bytes, 3, 2) == MBLAS_OK);
  CHECK(strcmp(bytes, "adbecf") == 0);
  CHECK(mblas_dgeam(context, MBLAS_ROW_MAJOR, MBLAS_TRANS, MBLAS_NO_TRANS, 3, 2, 1.0, A, 3, 1.0,
                    transposed, 2, B, 2) == MBLAS_OK);
  CHECK(memcmp(B, doubled, sizeof B) == 0);
}

static void check_gf256(mblas_context* context) {
  const uint8_t a = 0x53, b = 0xca;
  uint8_t c = 0;
  CHECK(mblas_gf256_gemm(context, 1, 1, 1, &a, 1, &b, 1, &c, 1, 0, 0x11D) == MBLAS_OK);
  CHECK(c == 0x8f);
}

static void check_reed_solomon(mblas_context* context) {
  uint8_t first[] = "shards ", second[] = "of data", parity[sizeof first] = "";
  uint8_t* const shards[] = {first, second, parity};
  const uint8_t* const data[] = {first, second};
  const uint8_t present[] = {0, 1, 1};
  mblas_reed_solomon* code = NULL;
  CHECK(mblas_reed_solomon_create(context, 2, 1, 0x11D, &code) == MBLAS_OK);
  CHECK(mblas_reed_solomon_encode(context, code, data, shards + 2, sizeof first) == MBLAS_OK);
  memset(first, 0, sizeof first);
  CHECK(mblas_reed_solomon_reconstruct(context, code, shards, present, sizeof first) == MBLAS_OK);
  CHECK(strcmp((const char*)first, "shards ") == 0);
  mblas_reed_solomon_destroy(code);
}

static void check_errors(mblas_context* context) {
  float x = 1, y = 7;
  CHECK(mblas_sgemm(context, MBLAS_ROW_MAJOR, MBLAS_NO_TRANS, MBLAS_NO_TRANS, -1, 1, 1, 1, &x, 1,
                    &x, 1, 0, &y, 1) == MBLAS_INVALID_ARGUMENT);
  CHECK(strlen(mblas_last_error(context)) > 0);
  CHECK(mblas_sgemm(context, MBLAS_ROW_MAJOR, MBLAS_NO_TRANS, MBLAS_NO_TRANS, 1, 1, 1, 1, NULL, 1,
                    &x, 1, 0, &y, 1) == MBLAS_NULL_POINTER);
  CHECK(mblas_sgemm(context, MBLAS_ROW_MAJOR, (mblas_op)'Q', MBLAS_NO_TRANS, 1, 1, 1, 1, &x, 1, &x,
                    1, 0, &y, 1) == MBLAS_INVALID_ARGUMENT);
  CHECK(mblas_sgemm(context, (mblas_layout)0, MBLAS_NO_TRANS, MBLAS_NO_TRANS, 1, 1, 1, 1, &x, 1, &x,
                    1, 0, &y, 1) == MBLAS_INVALID_ARGUMENT);
  CHECK(mblas_gemm_ex(context, MBLAS_F32, MBLAS_F64, MBLAS_COMPUTE_DEFAULT, MBLAS_ROW_MAJOR,
                      MBLAS_NO_TRANS, MBLAS_NO_TRANS, 1, 1, 1, &x, &x, 1, &x, 1, &x, &y,
                      1) == MBLAS_INVALID_ARGUMENT);
  CHECK(mblas_gemm_ex(context, MBLAS_F32, MBLAS_F32, MBLAS_COMPUTE_DEFAULT, MBLAS_ROW_MAJOR,
                      MBLAS_NO_TRANS, MBLAS_NO_TRANS, 1, 1, 1, NULL, &x, 1, &x, 1, &x, &y,
                      1) == MBLAS_NULL_POINTER);
  CHECK(mblas_transpose(context, MBLAS_ROW_MAJOR, 3, 1, 1, &x, 1, &y, 1) == MBLAS_INVALID_ARGUMENT);
  CHECK(mblas_set_backend(context, "no-such-backend") == MBLAS_UNKNOWN_NAME);
  CHECK(mblas_set_backend(context, NULL) == MBLAS_NULL_POINTER);
  CHECK(mblas_context_create(NULL) == MBLAS_NULL_POINTER);
  CHECK(y == 7);
  CHECK(strcmp(mblas_status_name(MBLAS_SINGULAR), "Singular") == 0);
  CHECK(strcmp(mblas_status_name((mblas_status)1000), "?") == 0);
}

int main(void) {
  mblas_context* contexts[] = {NULL, NULL}; /* the thread's own, and one that is made */
  int i;
  CHECK(mblas_context_create(&contexts[1]) == MBLAS_OK);
  CHECK(mblas_set_backend(contexts[1], "openmp") == MBLAS_OK);
  for (i = 0; i < 2; ++i) {
    check_gemm(contexts[i]);
    check_options(contexts[i]);
    check_types(contexts[i]);
    check_moves(contexts[i]);
    check_gf256(contexts[i]);
    check_reed_solomon(contexts[i]);
    CHECK(i == 0 || strcmp(mblas_last_backend(contexts[i]), "openmp") == 0);
    check_errors(contexts[i]);
  }
  mblas_context_destroy(contexts[1]);
  printf("mblas %s: %d failures\n", mblas_version(), failures);
  return failures != 0;
}
