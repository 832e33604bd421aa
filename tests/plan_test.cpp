// Operands of gemm that a plan keeps on the device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "mblas/mblas.hpp"
#include "support.hpp"

namespace mblas::testing {
namespace {

constexpr std::int64_t kM = 201, kN = 333, kK = 517;  // rows that only copies align

template <class T>
class OnDevice {
 public:
  OnDevice(std::int64_t size, unsigned seed) : size_(std::size_t(size)) {
    EXPECT_EQ(cudaMalloc(&data_, size_ * sizeof(T)), cudaSuccess);
    fill(seed);
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  T* get() const { return static_cast<T*>(data_); }
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> number(-1, 1);
    std::vector<T> host(size_);
    for (T& x : host) x = T(number(random));
    EXPECT_EQ(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyDefault), cudaSuccess);
  }
  std::vector<float> fetch() const {
    std::vector<T> host(size_);
    EXPECT_EQ(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDefault), cudaSuccess);
    return {host.begin(), host.end()};
  }

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

class Plan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string& reason = find_backend("cuda").unavailable(); !reason.empty())
      GTEST_SKIP() << reason;
    if (find_backend("cuda").make_queue({})->device().capability != 90)
      GTEST_SKIP() << "for compute capability 9.0";
  }
};

/// C of a product in the layout, with an operand in the plan.
template <class T>
std::vector<float> product(Context& context, Layout layout, Compute compute, const OnDevice<T>& A,
                           const OnDevice<T>& B, GemmPlan* plan) {
  OnDevice<T> C(kM * kN, 3);
  const bool rows = layout == Layout::RowMajor;
  GemmOptions options;
  options.compute = compute;
  options.plan = plan;
  gemm(context, layout, Op::NoTrans, Op::NoTrans, kM, kN, kK, 1.f, A.get(), rows ? kK : kM, B.get(),
       rows ? kN : kK, 0.f, C.get(), rows ? kN : kM, options);
  context.synchronize();
  return C.fetch();
}

template <class T>
void keeps_its_operand(const char* kernel, Compute compute) {
  Context context("cuda");
  context.set_kernel(std::string("gemm=") + kernel);
  OnDevice<T> A(kM * kK, 1), B(kK * kN, 2);
  for (const Layout layout : {Layout::RowMajor, Layout::ColMajor})
    for (const auto operand : {GemmPlan::Operand::A, GemmPlan::Operand::B}) {
      SCOPED_TRACE(std::string(kernel) + (operand == GemmPlan::Operand::A ? " A" : " B"));
      OnDevice<T>& kept = operand == GemmPlan::Operand::A ? A : B;
      OnDevice<T>& other = operand == GemmPlan::Operand::A ? B : A;
      const auto call = [&](GemmPlan* plan) {
        return product(context, layout, compute, A, B, plan);
      };
      GemmPlan plan(operand);
      EXPECT_EQ(plan.bytes(), 0u);
      const std::vector<float> first = call(nullptr);
      EXPECT_EQ(call(&plan), first);
      EXPECT_GT(plan.bytes(), 0u);
      EXPECT_EQ(call(&plan), first);
      // The other operand is read each time, this one is not until it is said to have changed.
      other.fill(7);
      const std::vector<float> second = call(nullptr);
      EXPECT_NE(second, first);
      EXPECT_EQ(call(&plan), second);
      kept.fill(8);
      EXPECT_EQ(call(&plan), second);
      plan.clear();
      EXPECT_EQ(plan.bytes(), 0u);
      EXPECT_EQ(call(&plan), call(nullptr));
    }
}

TEST_F(Plan, KeepsPlanesOfBfloat16) { keeps_its_operand<float>("tensor_bf16x6", Compute::BF16x6); }
TEST_F(Plan, KeepsPlanesOfHalf) { keeps_its_operand<float>("tensor_fp16x3", Compute::FP16x3); }
TEST_F(Plan, KeepsCopies) { keeps_its_operand<bfloat16>("tensor_wgmma", Compute::Default); }

// Another matrix at another address, and another kernel, find nothing of theirs.
TEST_F(Plan, IsOfOneOperand) {
  Context context("cuda");
  OnDevice<float> A(kM * kK, 1), B(kK * kN, 2), other(kK * kN, 5);
  GemmPlan plan(GemmPlan::Operand::B);
  for (const Compute compute : {Compute::BF16x6, Compute::FP16x3, Compute::BF16x6})
    for (const OnDevice<float>* b : {&B, &other, &B})
      EXPECT_EQ(product(context, Layout::RowMajor, compute, A, *b, &plan),
                product(context, Layout::RowMajor, compute, A, *b, nullptr));
}

// NaN in an operand that is kept still leave the product to native arithmetic.
TEST_F(Plan, KeepsWhatPlanesDoNotSuit) {
  Context context("cuda");
  OnDevice<float> A(kM * kK, 1), B(kK * kN, 2);
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
  OnDevice<float> A(kM * kK, 1), B(kK * kN, 2), C(kM * kN, 3);
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
  EXPECT_EQ(replay([&] { B.fill(9); }), want);
  context.set_stream(nullptr);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace mblas::testing
