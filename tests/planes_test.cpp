// float in planes of 16 bits on the device: what planes do not suit is left to native arithmetic,
// and the results are of the same class, NaN, an infinity or finite, element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
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
  if (const std::string reason = no_hopper(); !reason.empty()) GTEST_SKIP() << reason;
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
                                          Mode{"fused_bf16x6:128", Compute::BF16x6},
                                          Mode{"fused_bf16x6:64_parts3", Compute::BF16x6},
                                          Mode{"fused_bf16x6:96_both", Compute::BF16x6},
                                          Mode{"fused_bf16x6:128_both_parts3", Compute::BF16x6},
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

// Complex numbers: every pair of ops, every kind of factor, odd sizes and rows with gaps.
using Complex = std::complex<float>;
using Wide = std::complex<double>;

struct ComplexData {
  const char* name;
  std::function<void(std::vector<Complex>& A, std::vector<Complex>& B)> change;
  bool finite = true;  ///< all results
};
const ComplexData kComplexData[] = {
    {"Plain", [](auto&, auto&) {}},
    {"OneInfinity",
     [](auto& A, auto&) {
       A[7] = {1, -kInfinity};
     },
     false},
    {"OneNan",
     [](auto&, auto& B) {
       B[11] = {std::nanf(""), 1};
     },
     false},
    {"NearOverflow",
     [](auto& A, auto& B) {
       A[8] = {0, 0x1p127f};
       for (Complex& x : B) x *= 0.1f;
     }},
    {"Subnormals",
     [](auto& A, auto& B) {
       for (Complex& x : A) x *= 0x1p-140f;
       for (Complex& x : B) x *= 0x1p100f;
     }},
};

class ComplexPlanes : public ::testing::TestWithParam<ComplexData> {};

TEST_P(ComplexPlanes, KeepTheBoundForEveryOpAndFactor) {
  if (const std::string reason = no_hopper(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr std::int64_t m = 131, n = 75, k = 197, ldc = n + 2;
  std::mt19937 random(9);
  std::uniform_real_distribution<float> number(-1, 1);
  const auto numbers = [&](std::int64_t size) {
    std::vector<Complex> all(std::size_t(size), Complex{});
    for (Complex& x : all) x = {number(random), number(random)};
    return all;
  };
  std::vector<Complex> A = numbers((m + 3) * (k + 3)), B = numbers((k + 4) * (n + 4));
  const std::vector<Complex> old = numbers(m * ldc);
  GetParam().change(A, B);
  const auto is_finite = [](Complex x) {
    return std::isfinite(x.real()) && std::isfinite(x.imag());
  };
  const auto transposed = [](Op op) { return op == Op::Trans || op == Op::ConjTrans; };
  const auto element = [&](const std::vector<Complex>& x, Op op, std::int64_t ld, std::int64_t i,
                           std::int64_t j) {
    const Complex e = x[std::size_t(transposed(op) ? j * ld + i : i * ld + j)];
    return Wide(op == Op::ConjTrans || op == Op::ConjNoTrans ? std::conj(e) : e);
  };
  constexpr Op kOps[] = {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans};
  const std::pair<Complex, Complex> kFactors[] = {{{1, 0}, {0, 0}},
                                                  {{-2, 0}, {0.5f, 0}},
                                                  {{0.5f, -1}, {0, 0}},
                                                  {{1, 0}, {0, 2}},
                                                  {{2, 1}, {1, 0}}};
  Context planes("cuda"), fused("cuda"), both("cuda"), native("cuda");
  planes.set_kernel("gemm=tensor_bf16x6:64x128_slices2");
  fused.set_kernel("gemm=fused_bf16x6:48_parts3");
  both.set_kernel("gemm=fused_bf16x6:64_both_parts2");
  native.set_kernel("gemm=simt");
  for (const Op a : kOps)
    for (const Op b : kOps) {
      // One leading dimension is even and one odd: pairs of numbers are aligned or not.
      const std::int64_t lda = transposed(a) ? m + 3 : k + 2, ldb = transposed(b) ? k + 3 : n + 2;
      std::vector<Wide> product(std::size_t(m * n));
      std::vector<double> magnitude(std::size_t(m * n));
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t l = 0; l < k; ++l)
          for (std::int64_t j = 0; j < n; ++j) {
            const Wide x = element(A, a, lda, i, l), y = element(B, b, ldb, l, j);
            product[std::size_t(i * n + j)] += x * y;
            magnitude[std::size_t(i * n + j)] += std::abs(x) * std::abs(y);
          }
      for (const auto& [alpha, beta] : kFactors) {
        const auto run = [&](Context& context, Compute compute) {
          std::vector<Complex> C = old;
          gemm(context, Layout::RowMajor, a, b, m, n, k, alpha, A.data(), lda, B.data(), ldb, beta,
               C.data(), ldc, {.compute = compute});
          return C;
        };
        const std::vector<Complex> other = run(native, Compute::Pedantic);
        for (Context* context : {&planes, &fused, &both}) {
          const std::vector<Complex> C = run(*context, Compute::Default);
          SCOPED_TRACE(::testing::Message() << context->last_dispatch().kernel << " " << char(a)
                                            << char(b) << " " << alpha << " " << beta);
          if (std::string(GetParam().name) == "Plain") {
            EXPECT_NE(C, other);
          }
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < ldc; ++j) {
              const auto at = std::size_t(i * ldc + j), of = std::size_t(i * n + j);
              if (j >= n) {
                ASSERT_EQ(C[at], old[at]) << i << " " << j;
                continue;
              }
              // Infinite parts times a factor's parts that are 0 are NaN in one kernel or the
              // other.
              ASSERT_EQ(is_finite(C[at]), is_finite(other[at])) << i << " " << j;
              if (!is_finite(other[at])) {
                ASSERT_FALSE(GetParam().finite) << i << " " << j;
                continue;
              }
              const Wide value = Wide(alpha) * product[of] + Wide(beta) * Wide(old[at]);
              const double all = double(std::abs(alpha)) * magnitude[of] +
                                 double(std::abs(beta)) * double(std::abs(old[at]));
              const double bound = gemm_bound(DType::cf32, DType::cf32, k, all, std::abs(value));
              ASSERT_TRUE(std::abs(Wide(C[at]) - value) <= bound) << i << " " << j;
            }
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Data, ComplexPlanes, ::testing::ValuesIn(kComplexData),
                         [](const auto& tested) { return std::string(tested.param.name); });

INSTANTIATE_TEST_SUITE_P(Data, Planes, ::testing::ValuesIn(data()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace mblas::testing
