// Operands of gemm that a plan keeps on the device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "device_array.hpp"
#include "mblas/mblas.hpp"
#include "support.hpp"

namespace mblas::testing {
namespace {

constexpr std::int64_t kM = 201, kN = 333, kK = 517;  // rows that only copies align

using Complex = std::complex<float>;
/// What results are compared as.
template <class T>
using Result = std::conditional_t<std::is_same_v<T, Complex>, T, float>;

template <class T>
std::vector<T> numbers(std::int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<T> all(static_cast<std::size_t>(size));
  for (T& x : all) {
    if constexpr (std::is_same_v<T, Complex>)
      x = {number(random), number(random)};
    else
      x = T(number(random));
  }
  return all;
}

class Plan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_hopper(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

/// C of a product in the layout, with an operand in the plan.
template <class T>
std::vector<Result<T>> product(Context& context, Layout layout, Compute compute,
                               const DeviceArray<T>& A, const DeviceArray<T>& B, GemmPlan* plan,
                               Op op_b = Op::NoTrans) {
  DeviceArray<T> C(numbers<T>(kM * kN, 3));
  const bool rows = layout == Layout::RowMajor;
  GemmOptions options;
  options.compute = compute;
  options.plan = plan;
  gemm(context, layout, Op::NoTrans, op_b, kM, kN, kK, Result<T>(1), A.get(), rows ? kK : kM,
       B.get(), rows ? kN : kK, Result<T>(0), C.get(), rows ? kN : kM, options);
  context.synchronize();
  const std::vector<T> result = C.fetch();
  return {result.begin(), result.end()};
}

template <class T>
void keeps_its_operand(const char* kernel, Compute compute) {
  Context context("cuda");
  context.set_kernel(std::string("gemm=") + kernel);
  DeviceArray<T> A(numbers<T>(kM * kK, 1)), B(numbers<T>(kK * kN, 2));
  for (const Layout layout : {Layout::RowMajor, Layout::ColMajor})
    for (const auto operand : {GemmPlan::Operand::A, GemmPlan::Operand::B}) {
      SCOPED_TRACE(std::string(kernel) + (operand == GemmPlan::Operand::A ? " A" : " B"));
      DeviceArray<T>& kept = operand == GemmPlan::Operand::A ? A : B;
      DeviceArray<T>& other = operand == GemmPlan::Operand::A ? B : A;
      const auto call = [&](GemmPlan* plan) {
        return product(context, layout, compute, A, B, plan);
      };
      GemmPlan plan(operand);
      EXPECT_EQ(plan.bytes(), 0u);
      const std::vector<Result<T>> first = call(nullptr);
      EXPECT_EQ(call(&plan), first);
      EXPECT_GT(plan.bytes(), 0u);
      EXPECT_EQ(call(&plan), first);
      // The other operand is read each time, this one is not until it is said to have changed.
      other.set(numbers<T>(operand == GemmPlan::Operand::A ? kK * kN : kM * kK, 7));
      const std::vector<Result<T>> second = call(nullptr);
      EXPECT_NE(second, first);
      EXPECT_EQ(call(&plan), second);
      kept.set(numbers<T>(operand == GemmPlan::Operand::A ? kM * kK : kK * kN, 8));
      EXPECT_EQ(call(&plan), second);
      plan.clear();
      EXPECT_EQ(plan.bytes(), 0u);
      EXPECT_EQ(call(&plan), call(nullptr));
    }
}

TEST_F(Plan, KeepsPlanesOfBfloat16) { keeps_its_operand<float>("tensor_bf16x6", Compute::BF16x6); }
TEST_F(Plan, KeepsPlanesOfComplexNumbers) {
  keeps_its_operand<Complex>("tensor_bf16x6", Compute::BF16x6);
}
TEST_F(Plan, KeepsPlanesOfHalf) { keeps_its_operand<float>("tensor_fp16x3", Compute::FP16x3); }
TEST_F(Plan, KeepsCopies) { keeps_its_operand<bfloat16>("tensor_wgmma", Compute::Default); }

// Another matrix at another address, and another kernel, find nothing of theirs.
TEST_F(Plan, IsOfOneOperand) {
  Context context("cuda");
  DeviceArray<float> A(numbers<float>(kM * kK, 1)), B(numbers<float>(kK * kN, 2)),
      other(numbers<float>(kK * kN, 5));
  GemmPlan plan(GemmPlan::Operand::B);
  for (const Compute compute : {Compute::BF16x6, Compute::FP16x3, Compute::BF16x6}) {
    context.set_kernel(compute == Compute::BF16x6 ? "gemm=tensor_bf16x6" : "gemm=tensor_fp16x3");
    for (const DeviceArray<float>* b : {&B, &other, &B})
      EXPECT_EQ(product(context, Layout::RowMajor, compute, A, *b, &plan),
                product(context, Layout::RowMajor, compute, A, *b, nullptr));
  }
}

// Tiles that want both operands along k have the transpose of one that is not, others perhaps.
TEST_F(Plan, KeepsTransposedCopies) {
  constexpr std::int64_t kRows = 200, kCols = 336, kLda = 203, kLdb = 520;
  Context context("cuda");
  const DeviceArray<bfloat16> A(numbers<bfloat16>(kK * kLda, 1)),
      B(numbers<bfloat16>(kCols * kLdb, 2));
  GemmPlan plan(GemmPlan::Operand::A);
  for (const char* config : {"112x128", "64x128", "112x128"}) {
    context.set_kernel(std::string("gemm=tensor_wgmma:") + config);
    std::vector<bfloat16> C[2];
    for (const bool keeps : {false, true}) {
      DeviceArray<bfloat16> result(numbers<bfloat16>(kRows * kCols, 3));
      GemmOptions options;
      if (keeps) options.plan = &plan;
      gemm(context, Layout::RowMajor, Op::Trans, Op::Trans, kRows, kCols, kK, 1.f, A.get(), kLda,
           B.get(), kLdb, 0.f, result.get(), kCols, options);
      context.synchronize();
      C[keeps] = result.fetch();
    }
    EXPECT_TRUE(std::equal(C[0].begin(), C[0].end(), C[1].begin(), [](bfloat16 x, bfloat16 y) {
      return float(x) == float(y);
    })) << config;
    EXPECT_GT(plan.bytes(), 0u);
  }
}

TEST_F(Plan, KeepsConjugatesApart) {
  Context context("cuda");
  context.set_kernel("gemm=tensor_bf16x6");
  DeviceArray<Complex> A(numbers<Complex>(kM * kK, 1)), B(numbers<Complex>(kK * kN, 2));
  GemmPlan plan(GemmPlan::Operand::B);
  for (const Op op : {Op::NoTrans, Op::ConjNoTrans, Op::NoTrans})
    EXPECT_EQ(product(context, Layout::RowMajor, Compute::BF16x6, A, B, &plan, op),
              product(context, Layout::RowMajor, Compute::BF16x6, A, B, nullptr, op));
}

// NaN in an operand that is kept still leave the product to native arithmetic.
TEST_F(Plan, KeepsWhatPlanesDoNotSuit) {
  Context context("cuda");
  DeviceArray<float> A(numbers<float>(kM * kK, 1)), B(numbers<float>(kK * kN, 2));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(cudaMemcpy(B.get() + 5, &infinity, sizeof infinity, cudaMemcpyDefault), cudaSuccess);
  GemmPlan plan(GemmPlan::Operand::B);
  for (int call = 0; call < 2; ++call) {
    const std::vector<float> C = product(context, Layout::RowMajor, Compute::BF16x6, A, B, &plan);
    for (std::int64_t i = 0; i < kM; ++i)
      for (std::int64_t j = 0; j < kN; ++j)
        ASSERT_EQ(std::isinf(C[std::size_t(i * kN + j)]), j == 5) << i << " " << j;
  }
}

TEST_F(Plan, IsUsedInGraphsOnceFilled) {
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  Context context("cuda");
  context.set_stream(stream);
  DeviceArray<float> A(numbers<float>(kM * kK, 1)), B(numbers<float>(kK * kN, 2)),
      C(numbers<float>(kM * kN, 3));
  GemmPlan plan(GemmPlan::Operand::B);
  GemmOptions options;
  options.compute = Compute::FP16x3;
  options.plan = &plan;
  const auto call = [&] {
    gemm(context, Layout::RowMajor, Op::NoTrans, Op::NoTrans, kM, kN, kK, 1.f, A.get(), kK, B.get(),
         kN, 0.f, C.get(), kN, options);
  };
  const auto replay = [&](auto&& before) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    call();
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    before();
    EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return C.fetch();
  };
  const std::vector<float> want =
      product(context, Layout::RowMajor, Compute::FP16x3, A, B, nullptr);
  EXPECT_EQ(replay([] {}), want);  // not filled: without
  EXPECT_EQ(plan.bytes(), 0u);
  call();
  context.synchronize();
  EXPECT_GT(plan.bytes(), 0u);
  EXPECT_EQ(replay([&] { B.set(numbers<float>(kK * kN, 9)); }), want);
  context.set_stream(nullptr);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace mblas::testing
