// float in planes of 16 bits on the device: what planes do not suit is left to native arithmetic,
// and the results are of the same class, NaN, an infinity or finite, element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "mblas/mblas.hpp"
#include "support.hpp"

namespace mblas::testing {
namespace {

constexpr std::int64_t kM = 150, kN = 270, kK = 700;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Operands {
  std::vector<float> A, B, C;

  Operands() : A(kM * kK), B(kK * kN), C(kM * kN) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> number(-1, 1);
    for (auto* x : {&A, &B, &C})
      for (float& e : *x) e = number(random);
  }
  float& a(std::int64_t i, std::int64_t l) { return A[std::size_t(i * kK + l)]; }
  float& b(std::int64_t l, std::int64_t j) { return B[std::size_t(l * kN + j)]; }
};

struct Data {
  const char* name;
  std::function<void(Operands&)> change;
};

void scale(std::vector<float>& x, float factor) {
  for (float& e : x) e *= factor;
}

const std::vector<Data>& data() {
  static const std::vector<Data> all = {
      {"Plain", [](Operands&) {}},
      {"Zeros", [](Operands& x) { scale(x.A, 0); }},
      {"OneInfinity", [](Operands& x) { x.a(3, 5) = kInfinity; }},
      {"OneNan", [](Operands& x) { x.b(699, 269) = std::nanf(""); }},
      {"InfinitiesThatCancel",
       [](Operands& x) {
         x.a(149, 5) = kInfinity, x.a(149, 640) = kInfinity;
         x.b(5, 0) = 1, x.b(640, 0) = -1;
       }},
      {"InfinityTimesZero",
       [](Operands& x) {
         x.a(0, 0) = -kInfinity;
         x.b(0, 17) = 0;
       }},
      {"NearOverflow", [](Operands& x) { x.a(8, 8) = 3.4e38f, x.b(8, 9) = 0.5f; }},
      {"Overflow",
       [](Operands& x) {
         for (std::int64_t l = 0; l < kK; ++l) x.a(8, l) = 1e30f, x.b(l, 9) = 1e30f;
       }},
      {"Subnormals", [](Operands& x) { scale(x.A, 0x1p-140f), scale(x.B, 0x1p100f); }},
      {"ProductsThatUnderflow", [](Operands& x) { scale(x.A, 0x1p-70f), scale(x.B, 0x1p-70f); }},
      {"RowsOfManyScales",
       [](Operands& x) {
         for (std::int64_t i = 0; i < kM; ++i)
           for (std::int64_t l = 0; l < kK; ++l) x.a(i, l) *= std::ldexp(1.f, int(i % 3 - 1) * 100);
       }},
      {"ColumnsOfManyScales",
       [](Operands& x) {
         for (std::int64_t l = 0; l < kK; ++l)
           for (std::int64_t j = 0; j < kN; ++j) x.b(l, j) *= std::ldexp(1.f, int(j % 3 - 1) * 60);
       }},
      {"FarBelowTheLargest",
       [](Operands& x) {
         for (std::int64_t l = 0; l < kK; ++l) x.a(5, l) *= std::ldexp(1.f, -int(l % 60));
       }},
      {"Cancellation",
       [](Operands& x) {
         for (std::int64_t l = 1; l < kK; l += 2) {
           for (std::int64_t i = 0; i < kM; ++i) x.a(i, l) = -x.a(i, l - 1);
           for (std::int64_t j = 0; j < kN; ++j) x.b(l, j) = std::nextafter(x.b(l - 1, j), 2.f);
         }
       }},
  };
  return all;
}

int class_of(float x) { return std::isnan(x) ? 2 : std::isinf(x) ? (x > 0 ? 1 : -1) : 0; }

struct Mode {
  const char* kernel;
  Compute compute;
};

double largest(const Operands& x, std::int64_t i, std::int64_t j) {
  double of_row = 0, of_col = 0;
  for (std::int64_t l = 0; l < kK; ++l) {
    of_row = std::max(of_row, double(std::abs(x.A[std::size_t(i * kK + l)])));
    of_col = std::max(of_col, double(std::abs(x.B[std::size_t(l * kN + j)])));
  }
  return double(kK) * of_row * of_col;
}

class Planes : public ::testing::TestWithParam<Data> {};

TEST_P(Planes, KeepTheBoundAndTheClassOfNativeArithmetic) {
  if (const std::string& reason = find_backend("cuda").unavailable(); !reason.empty())
    GTEST_SKIP() << reason;
  if (find_backend("cuda").make_queue({})->device().capability != 90)
    GTEST_SKIP() << "for compute capability 9.0";
  Operands x;
  GetParam().change(x);
  const auto product = [&](const char* kernel, Compute compute, float beta) {
    Context context("cuda");
    context.set_kernel(std::string("gemm=") + kernel);
    std::vector<float> C = x.C;
    gemm(context, Layout::RowMajor, Op::NoTrans, Op::NoTrans, kM, kN, kK, 1.f, x.A.data(), kK,
         x.B.data(), kN, beta, C.data(), kN, {.compute = compute});
    return C;
  };
  for (const float beta : {0.f, 0.5f}) {
    const std::vector<float> native = product("simt", Compute::Pedantic, beta);
    for (const auto& [kernel, compute] : {Mode{"tensor_bf16x6", Compute::BF16x6},
                                          Mode{"tensor_bf16x6:128x128_slices4", Compute::BF16x6},
                                          Mode{"tensor_fp16x3", Compute::FP16x3},
                                          Mode{"tensor_fp16x3:64x128_slices3", Compute::FP16x3}}) {
      const std::vector<float> C = product(kernel, compute, beta);
      for (std::int64_t i = 0; i < kM; ++i)
        for (std::int64_t j = 0; j < kN; ++j) {
          const auto at = std::size_t(i * kN + j);
          ASSERT_EQ(class_of(C[at]), class_of(native[at])) << kernel << " " << i << " " << j;
          if (class_of(native[at]) != 0) continue;
          double value = beta * double(x.C[at]), magnitude = std::abs(value);
          for (std::int64_t l = 0; l < kK; ++l) {
            const double term = double(x.a(i, l)) * x.b(l, j);
            value += term;
            magnitude += std::abs(term);
          }
          const double bound =
              gemm_bound(DType::f32, DType::f32, kK, magnitude, std::abs(value), compute, {}, 0,
                         compute == Compute::FP16x3 ? largest(x, i, j) : 0);
          ASSERT_TRUE(std::abs(C[at] - value) <= bound) << kernel << " " << i << " " << j;
        }
      // Else nothing would show that planes are ever used.
      if (std::string(GetParam().name) == "Plain") {
        EXPECT_NE(C, native);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Data, Planes, ::testing::ValuesIn(data()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace mblas::testing
