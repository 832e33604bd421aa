// The forms of every function: with and without a context, throwing and returning a status, over
// views, and from C.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "mblas/mblas.h"
#include "support.hpp"

namespace mblas::testing {
namespace {

struct Forms : ::testing::Test {
  std::vector<float> A{1, 2, 3, 4}, B{5, 6, 7, 8}, C{0, 0, 0, 0};
  const std::vector<float> product{19, 22, 43, 50}, sum{6, 8, 10, 12}, transposed{1, 3, 2, 4};
  Context context{"openmp"};
  void expect(const std::vector<float>& want) {
    EXPECT_EQ(C, want);
    C.assign(4, 0);
  }
};

TEST_F(Forms, Gemm) {
  const float *a = A.data(), *b = B.data();
  float* c = C.data();
  gemm(context, R, N, N, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2);
  expect(product);
  gemm(R, N, N, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2);
  expect(product);
  EXPECT_EQ(try_gemm(context, R, N, N, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2), Status::Ok);
  expect(product);
  EXPECT_EQ(try_gemm(R, N, N, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2), Status::Ok);
  expect(product);
  gemm(context, R, N, N, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2, {Compute::Pedantic});
  EXPECT_EQ(context.last_dispatch().compute, Compute::Pedantic);
  expect(product);
  EXPECT_EQ(try_gemm(R, N, N, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2, GemmOptions{Compute::Pedantic}),
            Status::Ok);
  expect(product);
}

TEST_F(Forms, GemmOfBatches) {
  const float *a = A.data(), *b = B.data();
  float* c = C.data();
  gemm_strided_batched(context, R, N, N, 1, 2, 2, 1, a, 2, 2, b, 2, 0, 0, c, 2, 2, 2);
  expect(product);
  gemm_strided_batched(R, N, N, 1, 2, 2, 1, a, 2, 2, b, 2, 0, 0, c, 2, 2, 2);
  expect(product);
  EXPECT_EQ(try_gemm_strided_batched(R, N, N, 1, 2, 2, 1, a, 2, 2, b, 2, 0, 0, c, 2, 2, 2),
            Status::Ok);
  expect(product);
  const std::array<const float*, 2> as{a, a + 2}, bs{b, b};
  const std::array<float*, 2> cs{c, c + 2};
  gemm_batched(context, R, N, N, 1, 2, 2, 1, as, 2, bs, 2, 0, cs, 2);
  expect(product);
  gemm_batched(R, N, N, 1, 2, 2, 1, std::span(as), 2, std::span(bs), 2, 0, std::span(cs), 2);
  expect(product);
  EXPECT_EQ(try_gemm_batched(R, N, N, 1, 2, 2, 1, as, 2, bs, 2, 0, cs, 2), Status::Ok);
  expect(product);
  const std::array<float*, 2> inputs{A.data(), A.data() + 2};  // of a mutable type
  EXPECT_EQ(try_gemm_batched(context, R, N, N, 1, 2, 2, 1, inputs, 2, bs, 2, 0, cs, 2), Status::Ok);
  expect(product);

  GemmGroup<float> g;
  g.m = 1, g.n = g.k = g.lda = g.ldb = g.ldc = 2;
  g.A = a, g.B = b, g.C = c;
  std::vector<GemmGroup<float>> groups{g, g};
  groups[1].A = a + 2, groups[1].C = c + 2;
  gemm_grouped(context, groups);
  expect(product);
  gemm_grouped(groups);
  expect(product);
  EXPECT_EQ(try_gemm_grouped(std::span<const GemmGroup<float>>(groups)), Status::Ok);
  expect(product);
}

TEST_F(Forms, GeamAndTransposes) {
  const float *a = A.data(), *b = B.data();
  float* c = C.data();
  geam(context, R, N, N, 2, 2, 1, a, 2, 1, b, 2, c, 2);
  expect(sum);
  geam(R, N, N, 2, 2, 1, a, 2, 1, b, 2, c, 2);
  expect(sum);
  EXPECT_EQ(try_geam(R, N, N, 2, 2, 1, a, 2, 1, b, 2, c, 2), Status::Ok);
  expect(sum);
  EXPECT_EQ(try_geam_strided_batched(R, N, N, 1, 2, 1, a, 2, 2, 1, b, 2, 2, c, 2, 2, 2),
            Status::Ok);
  expect(sum);
  transpose(context, R, 2, 2, a, 2, c, 2);
  expect(transposed);
  transpose(R, 2, 2, a, 2, c, 2);
  expect(transposed);
  EXPECT_EQ(try_transpose(R, 2, 2, a, 2, c, 2), Status::Ok);
  expect(transposed);
  EXPECT_EQ(try_transpose_strided_batched(R, 2, 2, a, 2, 0, c, 2, 4, 1), Status::Ok);
  expect(transposed);
  C = A;
  transpose_inplace(R, 2, 2, c, 2, 2);
  expect(transposed);
  C = A;
  EXPECT_EQ(try_transpose_inplace(context, R, 2, 2, c, 2, 2), Status::Ok);
  expect(transposed);
  C = A;
  EXPECT_EQ(try_transpose_inplace_strided_batched(R, 2, 2, c, 2, 2, 4, 1), Status::Ok);
  expect(transposed);
}

TEST_F(Forms, ATryFormKeepsTheMessageWhereItWasCalled) {
  EXPECT_EQ(context.last_error(), "");
  const std::string before(default_context().last_error());
  EXPECT_EQ(try_transpose(context, R, -3, 2, A.data(), 2, C.data(), 2), Status::InvalidArgument);
  EXPECT_NE(context.last_error().find("m is -3"), std::string_view::npos);
  EXPECT_EQ(default_context().last_error(), before);
  EXPECT_EQ(try_transpose(R, -4, 2, A.data(), 2, C.data(), 2), Status::InvalidArgument);
  EXPECT_NE(default_context().last_error().find("m is -4"), std::string_view::npos);
  EXPECT_NE(context.last_error().find("m is -3"), std::string_view::npos);
  EXPECT_THROW(transpose(context, R, -5, 2, A.data(), 2, C.data(), 2), Error);
  EXPECT_NE(context.last_error().find("m is -5"), std::string_view::npos);
}

TEST_F(Forms, TheReceiptOfACall) {
  gemm(context, R, N, N, 2, 2, 2, 1, A.data(), 2, B.data(), 2, 0, C.data(), 2);
  const Dispatch& receipt = context.last_dispatch();
  EXPECT_EQ(receipt.operation, "gemm");
  EXPECT_EQ(receipt.backend, "openmp");
  EXPECT_FALSE(receipt.kernel.empty());
  EXPECT_EQ(receipt.staged_blocks, 0);
  transpose(context, R, 0, 2, A.data(), 2, C.data(), 2);
  EXPECT_EQ(context.last_dispatch().operation, "transpose");
  EXPECT_EQ(context.last_dispatch().backend, "");
  EXPECT_EQ(context.last_dispatch().kernel, "");
}

TEST_F(Forms, TheContextsModeIsTheDefaultOfCallsThatHaveIt) {
  context.set_compute(Compute::Pedantic);
  gemm(context, R, N, N, 2, 2, 2, 1, A.data(), 2, B.data(), 2, 0, C.data(), 2);
  EXPECT_EQ(context.last_dispatch().compute, Compute::Pedantic);
  // A mode that a type lacks is the caller's mistake in a call, but not as a context's default.
  context.set_compute(Compute::OzakiFP64);
  EXPECT_EQ(try_gemm(context, R, N, N, 2, 2, 2, 1, A.data(), 2, B.data(), 2, 0, C.data(), 2),
            Status::Ok);
  EXPECT_EQ(context.last_dispatch().compute, Compute::Default);
  context.set_compute(Compute::TF32);
  EXPECT_EQ(try_gemm(context, R, N, N, 2, 2, 2, 1, A.data(), 2, B.data(), 2, 0, C.data(), 2),
            Status::NotSupported);
  const std::vector<double> a(4, 1), b(4, 1);
  std::vector<double> c(4);
  EXPECT_EQ(try_gemm(context, R, N, N, 2, 2, 2, 1, a.data(), 2, b.data(), 2, 0, c.data(), 2),
            Status::Ok);
  EXPECT_EQ(try_gemm(context, R, N, N, 2, 2, 2, 1, a.data(), 2, b.data(), 2, 0, c.data(), 2,
                     GemmOptions{Compute::TF32}),
            Status::InvalidArgument);
}

TEST_F(Forms, ContextsMove) {
  context.set_num_threads(1);
  Context other = std::move(context);
  gemm(other, R, N, N, 2, 2, 2, 1, A.data(), 2, B.data(), 2, 0, C.data(), 2);
  expect(product);
  context = std::move(other);
  gemm(context, R, N, N, 2, 2, 2, 1, A.data(), 2, B.data(), 2, 0, C.data(), 2);
  expect(product);
}

TEST_F(Forms, TheVersionIsThatOfTheHeaders) {
  EXPECT_EQ(version(), std::to_string(MBLAS_VERSION_MAJOR) + "." +
                           std::to_string(MBLAS_VERSION_MINOR) + "." +
                           std::to_string(MBLAS_VERSION_PATCH));
  EXPECT_EQ(version(), mblas_version());
}

TEST_F(Forms, PlansDoNotChangeResults) {
  for (const auto operand : {GemmPlan::Operand::A, GemmPlan::Operand::B}) {
    GemmPlan plan(operand);
    const GemmOptions options{.plan = &plan};
    for (const Layout layout : {R, R, Layout::ColMajor, Layout::ColMajor}) {
      const bool rows = layout == R;
      gemm(context, layout, N, N, 2, 2, 2, 1, (rows ? A : B).data(), 2, (rows ? B : A).data(), 2, 0,
           C.data(), 2, options);
      expect(product);
    }
  }
}

TEST_F(Forms, Epilogues) {
  const float per[] = {-20, 1};
  GemmOptions options;
  const auto multiply = [&] {
    gemm(context, R, N, N, 2, 2, 2, 1, A.data(), 2, B.data(), 2, 0, C.data(), 2, options);
  };
  options.epilogue = {bias_per_row(per), Activation::Relu, 2};
  multiply();
  expect({0, 4, 88, 102});
  EXPECT_EQ(context.last_dispatch().epilogue, "fused");
  options.epilogue = {bias_per_column(per), Activation::Relu, 1};
  multiply();
  expect({0, 23, 23, 51});
  options.epilogue = {};
  multiply();
  expect(product);
  EXPECT_EQ(context.last_dispatch().epilogue, "");

  const std::int8_t a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  context.set_kernel("gemm=naive");
  gemm(context, R, N, N, 2, 2, 2, 0.5f, a, 2, b, 2, 0.0f, C.data(), 2);
  expect({9.5, 11, 21.5, 25});
  EXPECT_EQ(context.last_dispatch().epilogue, "pass");
  context.set_kernel("");

  // What is not a number or infinite, and where nothing is multiplied.
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = -std::log(0.0f);
  const std::vector<float> before{nan, -inf, inf, -2};
  options.epilogue.activation = Activation::Relu;
  C = before;
  gemm(context, R, N, N, 2, 2, 0, 1, A.data(), 2, B.data(), 2, 1, C.data(), 2, options);
  EXPECT_TRUE(std::isnan(C[0]));
  EXPECT_EQ(std::vector(C.begin() + 1, C.end()), (std::vector<float>{0, inf, 0}));
  options.epilogue.activation = Activation::Gelu;
  C = before;
  gemm(context, R, N, N, 2, 2, 0, 1, A.data(), 2, B.data(), 2, 1, C.data(), 2, options);
  EXPECT_TRUE(std::isnan(C[0]) && std::isnan(C[1]));
  EXPECT_EQ(C[2], inf);
  EXPECT_NEAR(C[3], -0.0454023, 1e-7);

  GemmGroup<float> group{.m = 2,
                         .n = 2,
                         .k = 2,
                         .A = A.data(),
                         .lda = 2,
                         .B = B.data(),
                         .ldb = 2,
                         .C = C.data(),
                         .ldc = 2};
  group.epilogue.bias = bias_per_row(per);
  gemm_grouped(context, std::vector{group});
  expect({-1, 2, 44, 51});
}

TEST_F(Forms, OptionsFromC) {
  mblas_context* handle = nullptr;
  ASSERT_EQ(mblas_context_create(&handle), MBLAS_OK);
  ASSERT_EQ(mblas_set_backend(handle, "openmp"), MBLAS_OK);
  const float one = 1, zero = 0, per[] = {-20, 1};
  mblas_gemm_options options = MBLAS_GEMM_OPTIONS_DEFAULT;
  const auto multiply = [&](const mblas_gemm_options* o) {
    return mblas_gemm_strided_batched_options(
        handle, MBLAS_F32, MBLAS_F32, MBLAS_ROW_MAJOR, MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 2,
        &one, A.data(), 2, 0, B.data(), 2, 0, &zero, C.data(), 2, 0, 1, o);
  };
  EXPECT_EQ(multiply(&options), MBLAS_OK);
  expect(product);
  EXPECT_EQ(multiply(nullptr), MBLAS_OK);
  expect(product);
  options.epilogue.bias_per = MBLAS_BIAS_PER_ROW;
  options.epilogue.activation = MBLAS_ACTIVATION_RELU;
  options.epilogue.bias = per;
  options.epilogue.scale = 2;
  EXPECT_EQ(multiply(&options), MBLAS_OK);
  expect({0, 4, 88, 102});
  const void *a = A.data(), *b = B.data();
  void* c = C.data();
  EXPECT_EQ(mblas_gemm_batched_options(handle, MBLAS_F32, MBLAS_F32, MBLAS_ROW_MAJOR,
                                       MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 2, &one, &a, 2, &b, 2,
                                       &zero, &c, 2, 1, &options),
            MBLAS_OK);
  expect({0, 4, 88, 102});

  const mblas_gemm_options good = options;
  const auto refuses = [&](mblas_status status, const char* why) {
    EXPECT_EQ(multiply(&options), status) << why;
    EXPECT_NE(std::string(mblas_last_error(handle)).find(why), std::string::npos)
        << mblas_last_error(handle);
    options = good;
  };
  const auto put = [](auto& enumerator, int value) {  // as C may
    std::memcpy(&enumerator, &value, sizeof enumerator);
  };
  put(options.epilogue.activation, 258);
  refuses(MBLAS_INVALID_ARGUMENT, "activation");
  put(options.epilogue.bias_per, -254);
  refuses(MBLAS_INVALID_ARGUMENT, "bias");
  options.epilogue.size = 8;
  refuses(MBLAS_INVALID_ARGUMENT, "epilogue.size is 8");
  options.size = 9;
  refuses(MBLAS_INVALID_ARGUMENT, "options.size is 9");
  options.tolerance = 1e-6;
  refuses(MBLAS_INVALID_ARGUMENT, "tolerance");
  put(options.compute, 77);
  refuses(MBLAS_INVALID_ARGUMENT, "compute is 77");
  options.compute = MBLAS_COMPUTE_FP16X3;
  refuses(MBLAS_NOT_SUPPORTED, "no kernel takes this call");
  expect({0, 0, 0, 0});

  mblas_gemm_plan* plan = nullptr;
  ASSERT_EQ(mblas_gemm_plan_create(MBLAS_PLAN_B, &plan), MBLAS_OK);
  options.plan = plan;
  EXPECT_EQ(multiply(&options), MBLAS_OK);
  expect({0, 4, 88, 102});
  EXPECT_EQ(mblas_gemm_plan_bytes(plan), 0u);  // no kernel there keeps anything
  mblas_gemm_plan_clear(plan);
  mblas_gemm_plan_destroy(plan);
  EXPECT_EQ(mblas_gemm_plan_create(MBLAS_PLAN_A, nullptr), MBLAS_NULL_POINTER);
  mblas_gemm_plan_clear(nullptr);
  mblas_gemm_plan_destroy(nullptr);
  EXPECT_EQ(mblas_gemm_plan_bytes(nullptr), 0u);
  mblas_context_destroy(handle);
}

TEST_F(Forms, FromC) {
  mblas_context* handle = nullptr;
  ASSERT_EQ(mblas_context_create(&handle), MBLAS_OK);
  ASSERT_EQ(mblas_set_backend(handle, "openmp"), MBLAS_OK);
  for (mblas_context* h : {handle, static_cast<mblas_context*>(nullptr)}) {
    EXPECT_EQ(mblas_sgemm(h, MBLAS_ROW_MAJOR, MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 2, 1, A.data(),
                          2, B.data(), 2, 0, C.data(), 2),
              MBLAS_OK);
    expect(product);
    EXPECT_EQ(mblas_sgeam(h, MBLAS_ROW_MAJOR, MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 1, A.data(), 2,
                          1, B.data(), 2, C.data(), 2),
              MBLAS_OK);
    expect(sum);
    EXPECT_EQ(mblas_transpose(h, MBLAS_ROW_MAJOR, 4, 2, 2, A.data(), 2, C.data(), 2), MBLAS_OK);
    expect(transposed);
    C = A;
    EXPECT_EQ(mblas_transpose_inplace(h, MBLAS_ROW_MAJOR, 4, 2, 2, C.data(), 2, 2), MBLAS_OK);
    expect(transposed);
    const float one = 1, zero = 0;
    EXPECT_EQ(mblas_gemm_ex(h, MBLAS_F32, MBLAS_F32, MBLAS_COMPUTE_DEFAULT, MBLAS_ROW_MAJOR,
                            MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 2, &one, A.data(), 2, B.data(), 2,
                            &zero, C.data(), 2),
              MBLAS_OK);
    expect(product);
    EXPECT_EQ(mblas_gemm_ex(h, MBLAS_F32, MBLAS_F64, MBLAS_COMPUTE_DEFAULT, MBLAS_ROW_MAJOR,
                            MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 2, &one, A.data(), 2, B.data(), 2,
                            &zero, C.data(), 2),
              MBLAS_INVALID_ARGUMENT);
    EXPECT_EQ(mblas_transpose(h, MBLAS_ROW_MAJOR, 3, 2, 2, A.data(), 2, C.data(), 2),
              MBLAS_INVALID_ARGUMENT);
    EXPECT_EQ(mblas_transpose(h, static_cast<mblas_layout>('X'), 4, 2, 2, A.data(), 2, C.data(), 2),
              MBLAS_INVALID_ARGUMENT);
    EXPECT_NE(std::string(mblas_last_error(h)).find("layout"), std::string::npos);
    EXPECT_EQ(mblas_sgemm(h, MBLAS_ROW_MAJOR, MBLAS_NO_TRANS, MBLAS_NO_TRANS, 2, 2, 2, 1, nullptr,
                          2, B.data(), 2, 0, C.data(), 2),
              MBLAS_NULL_POINTER);
    EXPECT_NE(std::string(mblas_last_error(h)).find("A is null"), std::string::npos);
  }
  EXPECT_STREQ(mblas_last_backend(handle), "");
  EXPECT_EQ(mblas_set_backend(handle, nullptr), MBLAS_NULL_POINTER);
  EXPECT_EQ(mblas_set_backend(handle, "nonsense"), MBLAS_UNKNOWN_NAME);
  EXPECT_EQ(mblas_context_create(nullptr), MBLAS_NULL_POINTER);
  EXPECT_STREQ(mblas_status_name(MBLAS_SIZE_OVERFLOW), "SizeOverflow");
  EXPECT_STREQ(mblas_status_name(static_cast<mblas_status>(77)), "?");
  const std::uint8_t a[] = {2}, b[] = {0x80};
  std::uint8_t c[] = {0};
  EXPECT_EQ(mblas_gf256_gemm(handle, 1, 1, 1, a, 1, b, 1, c, 1, 0, 0x11D), MBLAS_OK);
  EXPECT_EQ(c[0], 0x1d);
  mblas_context_destroy(handle);
  mblas_context_destroy(nullptr);
}

TEST_F(Forms, MatricesOfBytesFromC) {
  mblas_context* handle = nullptr;
  ASSERT_EQ(mblas_context_create(&handle), MBLAS_OK);
  using Bytes = std::vector<std::uint8_t>;
  Bytes matrix(12), inverse(4), identity(4);
  EXPECT_EQ(mblas_gf256_cauchy_matrix(handle, 3, 4, matrix.data(), 0x11D), MBLAS_OK);
  EXPECT_EQ(matrix, gf256::cauchy_matrix(3, 4));
  EXPECT_EQ(mblas_gf256_vandermonde_matrix(nullptr, 3, 4, matrix.data(), 0x11B), MBLAS_OK);
  EXPECT_EQ(matrix, gf256::vandermonde_matrix(3, 4, 0x11B));
  const Bytes regular{0x53, 1, 0xca, 7}, singular{2, 4, 2, 4};
  EXPECT_EQ(mblas_gf256_invert(handle, 2, regular.data(), inverse.data(), 0x11D), MBLAS_OK);
  EXPECT_EQ(mblas_gf256_gemm(handle, 2, 2, 2, regular.data(), 2, inverse.data(), 2, identity.data(),
                             2, 0, 0x11D),
            MBLAS_OK);
  EXPECT_EQ(identity, (Bytes{1, 0, 0, 1}));
  EXPECT_EQ(mblas_gf256_invert(handle, 2, inverse.data(), inverse.data(), 0x11D), MBLAS_OK);
  EXPECT_EQ(inverse, regular);
  EXPECT_EQ(mblas_gf256_invert(handle, 0, nullptr, nullptr, 0x11D), MBLAS_OK);
  EXPECT_EQ(mblas_gf256_cauchy_matrix(handle, 0, 4, nullptr, 0x11D), MBLAS_OK);

  EXPECT_EQ(mblas_gf256_invert(handle, 2, singular.data(), inverse.data(), 0x11D), MBLAS_SINGULAR);
  EXPECT_NE(std::string(mblas_last_error(handle)).find("singular"), std::string::npos);
  EXPECT_EQ(inverse, regular);
  EXPECT_EQ(mblas_gf256_invert(handle, -1, nullptr, nullptr, 0x11D), MBLAS_INVALID_ARGUMENT);
  EXPECT_EQ(mblas_gf256_invert(handle, 2, nullptr, inverse.data(), 0x11D), MBLAS_NULL_POINTER);
  EXPECT_NE(std::string(mblas_last_error(handle)).find("A is null"), std::string::npos);
  EXPECT_EQ(mblas_gf256_invert(handle, 2, regular.data(), nullptr, 0x11D), MBLAS_NULL_POINTER);
  EXPECT_NE(std::string(mblas_last_error(handle)).find("inverse is null"), std::string::npos);
  EXPECT_EQ(mblas_gf256_cauchy_matrix(handle, 200, 57, matrix.data(), 0x11D),
            MBLAS_INVALID_ARGUMENT);
  EXPECT_EQ(mblas_gf256_cauchy_matrix(handle, 3, 4, nullptr, 0x11D), MBLAS_NULL_POINTER);
  EXPECT_EQ(mblas_gf256_cauchy_matrix(handle, 3, 4, matrix.data(), 0x100), MBLAS_INVALID_ARGUMENT);
  EXPECT_EQ(mblas_gf256_vandermonde_matrix(handle, -1, 4, matrix.data(), 0x11D),
            MBLAS_INVALID_ARGUMENT);
  EXPECT_EQ(mblas_gf256_vandermonde_matrix(handle, 3, 4, nullptr, 0x11D), MBLAS_NULL_POINTER);
  mblas_context_destroy(handle);
}

/// Shards of a code with 4 data and 2 parity shards, their pointers, and the code.
struct CodeFromC : ::testing::Test {
  static constexpr int k = 4, m = 2;
  static constexpr std::int64_t length = 77;

  CodeFromC() {
    for (int i = 0; i < k + m; ++i) {
      for (std::int64_t j = 0; j < length; ++j) shards[i][j] = std::uint8_t(i * 91 + j * j);
      pointers[i] = shards[i].data();
    }
    EXPECT_EQ(mblas_context_create(&handle), MBLAS_OK);
    EXPECT_EQ(mblas_set_backend(handle, "openmp"), MBLAS_OK);
    EXPECT_EQ(mblas_reed_solomon_create(handle, k, m, 0x11D, &code), MBLAS_OK);
  }
  ~CodeFromC() override {
    mblas_reed_solomon_destroy(code);
    mblas_context_destroy(handle);
  }
  mblas_status encode() {
    return mblas_reed_solomon_encode(handle, code, pointers, pointers + k, length);
  }
  mblas_status reconstruct(unsigned lost) {
    std::uint8_t present[k + m];
    for (int i = 0; i < k + m; ++i) present[i] = lost >> i & 1 ? 0 : 255;
    return mblas_reed_solomon_reconstruct(handle, code, pointers, present, length);
  }
  void expect_error(mblas_status got, mblas_status want, const char* what) const {
    EXPECT_EQ(got, want);
    EXPECT_NE(std::string(mblas_last_error(handle)).find(what), std::string::npos)
        << mblas_last_error(handle);
  }

  std::array<std::array<std::uint8_t, length>, k + m> shards;
  std::uint8_t* pointers[k + m];
  mblas_context* handle = nullptr;
  mblas_reed_solomon* code = nullptr;
};

TEST_F(CodeFromC, EveryPatternOfErasures) {
  ASSERT_EQ(encode(), MBLAS_OK);
  const auto whole = shards;
  const gf256::ReedSolomon same(k, m);
  EXPECT_TRUE(std::ranges::equal(same.matrix(),
                                 std::span(mblas_reed_solomon_matrix(code), std::size_t(k * m))));
  int rebuilt = 0;
  for (unsigned lost = 0; lost < 1u << (k + m); ++lost) {
    for (int i = 0; i < k + m; ++i)
      if (lost >> i & 1) shards[i].fill(0xee);
    if (std::popcount(lost) <= m) {
      ++rebuilt;
      EXPECT_EQ(reconstruct(lost), MBLAS_OK);
      EXPECT_EQ(shards, whole) << lost;
    } else {
      const auto before = shards;
      expect_error(reconstruct(lost), MBLAS_INVALID_ARGUMENT, "shards are missing");
      EXPECT_EQ(shards, before);
      shards = whole;
    }
  }
  EXPECT_EQ(rebuilt, 1 + 6 + 15);
}

TEST_F(CodeFromC, AnUpdateIsAnEncodingAnew) {
  ASSERT_EQ(encode(), MBLAS_OK);
  std::array<std::uint8_t, length> delta;
  for (std::int64_t j = 0; j < length; ++j) {
    delta[j] = std::uint8_t(3 * j);
    shards[2][j] ^= delta[j];
  }
  EXPECT_EQ(mblas_reed_solomon_update(handle, code, 2, delta.data(), pointers + k, length),
            MBLAS_OK);
  const auto updated = shards;
  ASSERT_EQ(encode(), MBLAS_OK);
  EXPECT_EQ(shards, updated);
}

TEST_F(CodeFromC, Errors) {
  const auto before = shards;
  std::uint8_t* const parity[] = {pointers[k], nullptr};
  std::uint8_t* const shared[] = {pointers[k], pointers[0]};
  const std::uint8_t present[k + m] = {1, 1, 1, 1};
  const auto encode_with = [&](auto data, auto to, std::int64_t bytes = length) {
    return mblas_reed_solomon_encode(handle, code, data, to, bytes);
  };
  const auto null_array = static_cast<std::uint8_t* const*>(nullptr);
  expect_error(mblas_reed_solomon_encode(handle, nullptr, pointers, pointers + k, length),
               MBLAS_NULL_POINTER, "code is null");
  expect_error(encode_with(null_array, parity), MBLAS_NULL_POINTER, "data is null");
  expect_error(encode_with(pointers, null_array), MBLAS_NULL_POINTER, "parity is null");
  expect_error(encode_with(pointers, parity), MBLAS_NULL_POINTER, "parity[1] is null");
  expect_error(encode_with(pointers, shared), MBLAS_OVERLAP, "shares bytes");
  expect_error(encode_with(pointers, pointers + k, -1), MBLAS_INVALID_ARGUMENT, "length is -1");
  EXPECT_EQ(encode_with(pointers, pointers + k, 0), MBLAS_OK);

  const auto update = [&](const mblas_reed_solomon* c, int index, const std::uint8_t* delta,
                          auto to) {
    return mblas_reed_solomon_update(handle, c, index, delta, to, length);
  };
  expect_error(update(nullptr, 0, pointers[0], pointers + k), MBLAS_NULL_POINTER, "code is null");
  expect_error(update(code, k, pointers[0], pointers + k), MBLAS_INVALID_ARGUMENT, "index is 4");
  expect_error(update(code, 0, nullptr, pointers + k), MBLAS_NULL_POINTER, "delta is null");
  expect_error(update(code, 0, pointers[0], null_array), MBLAS_NULL_POINTER, "parity is null");

  const auto reconstruct_with = [&](const mblas_reed_solomon* c, auto all, const std::uint8_t* is) {
    return mblas_reed_solomon_reconstruct(handle, c, all, is, length);
  };
  expect_error(reconstruct_with(nullptr, pointers, present), MBLAS_NULL_POINTER, "code is null");
  expect_error(reconstruct_with(code, null_array, present), MBLAS_NULL_POINTER, "shards is null");
  expect_error(reconstruct_with(code, pointers, nullptr), MBLAS_NULL_POINTER, "present is null");
  EXPECT_EQ(shards, before);

  mblas_reed_solomon* other = code;
  expect_error(mblas_reed_solomon_create(handle, 0, 2, 0x11D, &other), MBLAS_INVALID_ARGUMENT,
               "k = 0");
  EXPECT_EQ(other, nullptr);
  expect_error(mblas_reed_solomon_create(handle, 255, 2, 0x11D, &other), MBLAS_INVALID_ARGUMENT,
               "at most 256");
  expect_error(mblas_reed_solomon_create(handle, 4, 2, 0x101, &other), MBLAS_INVALID_ARGUMENT,
               "not irreducible");
  expect_error(mblas_reed_solomon_create(handle, 4, 2, 0x11D, nullptr), MBLAS_NULL_POINTER,
               "code is null");
  EXPECT_EQ(mblas_reed_solomon_create(nullptr, 4, 0, 0x11D, &other), MBLAS_OK);
  EXPECT_EQ(mblas_reed_solomon_encode(nullptr, other, pointers, nullptr, length), MBLAS_OK);
  mblas_reed_solomon_destroy(other);
  mblas_reed_solomon_destroy(nullptr);
  EXPECT_EQ(mblas_reed_solomon_matrix(nullptr), nullptr);
}

TEST_F(Forms, ComplexFromC) {
  const std::vector<std::complex<float>> a{{1, 2}}, b{{3, 4}};
  std::vector<std::complex<float>> c(1);
  const std::complex<float> one(1, 0), zero(0, 0);
  EXPECT_EQ(mblas_cgemm(nullptr, MBLAS_COL_MAJOR, MBLAS_CONJ_TRANS, MBLAS_NO_TRANS, 1, 1, 1, &one,
                        a.data(), 1, b.data(), 1, &zero, c.data(), 1),
            MBLAS_OK);
  EXPECT_EQ(c[0], std::conj(a[0]) * b[0]);
}

}  // namespace
}  // namespace mblas::testing
