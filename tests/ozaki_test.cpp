// double through residues on the device: errors against the norms of rows and columns, and what is
// not finite, which is left to native arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "mblas/mblas.hpp"
#include "support.hpp"

namespace mblas::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Operands {
  std::int64_t m, n, k;
  std::vector<double> A, B, C;

  Operands(std::int64_t m_, std::int64_t n_, std::int64_t k_)
      : m(m_), n(n_), k(k_), A(m * k), B(k * n), C(m * n) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> number(-1, 1);
    for (auto* x : {&A, &B, &C})
      for (double& e : *x) e = number(random);
  }
  double& a(std::int64_t i, std::int64_t l) { return A[std::size_t(i * k + l)]; }
  double& b(std::int64_t l, std::int64_t j) { return B[std::size_t(l * n + j)]; }
};

struct Data {
  const char* name;
  std::int64_t m, n, k;
  std::function<void(Operands&)> change;
};

void scale(std::vector<double>& x, double factor) {
  for (double& e : x) e *= factor;
}

const std::vector<Data>& data() {
  const auto none = [](Operands&) {};
  static const std::vector<Data> all = {
      {"Plain", 150, 270, 700, none},
      {"OneStep", 150, 270, 1, none},
      {"LongSums", 20, 33, 65536, none},
      {"SumsInParts", 20, 33, 65537 + 300, none},
      {"LargestSums", 17, 18, 65536,
       [](Operands& x) {
         for (double& e : x.A) e = 1 - 0x1p-53;
         for (double& e : x.B) e = -1;
       }},
      {"Zeros", 150, 270, 700, [](Operands& x) { scale(x.A, 0); }},
      {"RowOfZeros", 150, 270, 700,
       [](Operands& x) {
         for (std::int64_t l = 0; l < x.k; ++l) x.a(9, l) = 0;
       }},
      {"OneInfinity", 150, 270, 700, [](Operands& x) { x.a(3, 5) = kInfinity; }},
      {"OneNan", 150, 270, 700, [](Operands& x) { x.b(699, 269) = std::nan(""); }},
      {"InfinityTimesZero", 150, 270, 700,
       [](Operands& x) {
         x.a(0, 0) = -kInfinity;
         x.b(0, 17) = 0;
       }},
      {"RowsOfManyScales", 150, 270, 700,
       [](Operands& x) {
         for (std::int64_t i = 0; i < x.m; ++i)
           for (std::int64_t l = 0; l < x.k; ++l) x.a(i, l) *= std::ldexp(1., int(i % 3 - 1) * 100);
         for (std::int64_t l = 0; l < x.k; ++l)
           for (std::int64_t j = 0; j < x.n; ++j) x.b(l, j) *= std::ldexp(1., int(j % 3 - 1) * 900);
       }},
      {"ManyScalesInARow", 150, 270, 700,
       [](Operands& x) {
         for (std::int64_t l = 0; l < x.k; ++l)
           for (std::int64_t i = 0; i < x.m; ++i)
             x.a(i, l) *= std::ldexp(1., int(l % 41 - 20) * 50);
       }},
      {"ScalesOfARowAgainstThoseOfAColumn", 150, 270, 700,
       [](Operands& x) {
         for (std::int64_t l = 0; l < x.k; ++l) {
           const double factor = std::ldexp(1., int(l % 61) - 30);
           for (std::int64_t i = 0; i < x.m; ++i) x.a(i, l) *= factor;
           for (std::int64_t j = 0; j < x.n; ++j) x.b(l, j) /= factor;
         }
       }},
      {"Subnormals", 150, 270, 700,
       [](Operands& x) { scale(x.A, 0x1p-1060), scale(x.B, 0x1p1000); }},
      {"SubnormalResults", 150, 270, 700,
       [](Operands& x) { scale(x.A, 0x1p-530), scale(x.B, 0x1p-530), scale(x.C, 0x1p-1060); }},
      {"NearOverflow", 150, 270, 700,
       [](Operands& x) { scale(x.A, 0x1p1023), scale(x.B, 0x1p-10), x.a(8, 8) = 0x1.8p1023; }},
      {"Overflow", 150, 270, 700,
       [](Operands& x) {
         for (std::int64_t l = 0; l < x.k; ++l) x.a(8, l) = 1e200, x.b(l, 9) = 1e200;
       }},
      {"Cancellation", 150, 270, 700,
       [](Operands& x) {
         for (std::int64_t l = 1; l < x.k; l += 2) {
           for (std::int64_t i = 0; i < x.m; ++i) x.a(i, l) = -x.a(i, l - 1);
           for (std::int64_t j = 0; j < x.n; ++j) x.b(l, j) = std::nextafter(x.b(l - 1, j), 2.);
         }
       }},
      {"Integers", 150, 270, 700,
       [](Operands& x) {
         for (auto* y : {&x.A, &x.B, &x.C})
           for (double& e : *y) e = std::round(e * 1000);
       }},
  };
  return all;
}

int class_of(double x) { return std::isnan(x) ? 2 : std::isinf(x) ? (x > 0 ? 1 : -1) : 0; }

class Ozaki : public ::testing::TestWithParam<Data> {};

TEST_P(Ozaki, IsWithinItsBoundAndLeavesTheRestToNativeArithmetic) {
  if (const std::string reason = no_hopper(); !reason.empty()) GTEST_SKIP() << reason;
  Operands x(GetParam().m, GetParam().n, GetParam().k);
  GetParam().change(x);
  const auto product = [&](const char* kernel, Compute compute, double beta) {
    Context context("cuda");
    context.set_kernel(std::string("gemm=") + kernel);
    std::vector<double> C = x.C;
    gemm(context, Layout::RowMajor, Op::NoTrans, Op::NoTrans, x.m, x.n, x.k, 1., x.A.data(), x.k,
         x.B.data(), x.n, beta, C.data(), x.n, {.compute = compute});
    return C;
  };
  const auto finite = [](double e) { return std::isfinite(e); };
  const bool left =
      !std::all_of(x.A.begin(), x.A.end(), finite) || !std::all_of(x.B.begin(), x.B.end(), finite);
  const bool exact = std::string(GetParam().name) == "Integers";
  for (const double beta : {0., 0.5}) {
    const std::vector<double> native = product("tensor_f64", Compute::Pedantic, beta);
    const std::vector<double> C = product("tensor_ozaki", Compute::OzakiFP64, beta);
    if (left) {
      EXPECT_EQ(std::memcmp(C.data(), native.data(), C.size() * sizeof(double)), 0);
      continue;
    }
    for (std::int64_t i = 0; i < x.m; ++i)
      for (std::int64_t j = 0; j < x.n; ++j) {
        const auto at = std::size_t(i * x.n + j);
        ASSERT_EQ(class_of(C[at]), class_of(native[at])) << i << " " << j;
        if (class_of(native[at]) != 0) continue;
        if (exact) {
          ASSERT_EQ(C[at], native[at]) << i << " " << j;
        }
        long double value = beta * static_cast<long double>(x.C[at]), of_a = 0, of_b = 0;
        const long double signed_added = value, added = std::abs(value);
        for (std::int64_t l = 0; l < x.k; ++l) {
          const long double a = x.a(i, l), b = x.b(l, j);
          value += a * b;
          of_a += a * a;
          of_b += b * b;
        }
        // What rounding to integers costs; then the sum and what is added to it are rounded, of two
        // parts of k twice.
        const long double norms = std::sqrt(of_a) * std::sqrt(of_b);
        const long double integers = std::sqrt(static_cast<long double>(x.k)) / 16 * norms;
        const long double sums = (x.k > 65536 ? norms : 0) + std::abs(value - signed_added) + added;
        const long double bound = 0x1p-53L * (integers + 3 * sums) + 0x1p-1073L;
        ASSERT_TRUE(std::abs(C[at] - value) <= bound)
            << i << " " << j << " " << C[at] << " " << double(value) << " " << double(bound);
      }
    // Else nothing would show that residues are ever used.
    if (std::string(GetParam().name) == "Plain") {
      EXPECT_NE(C, native);
    }
  }
}

// No more moduli than the call's tolerance needs, and no fewer.
TEST(OzakiTolerance, IsKeptAndMadeUseOf) {
  if (const std::string reason = no_hopper(); !reason.empty()) GTEST_SKIP() << reason;
  Operands x(70, 90, 700);
  Context context("cuda");
  context.set_kernel("gemm=tensor_ozaki");
  const auto multiply = [&](double tolerance) {
    gemm(context, Layout::RowMajor, Op::NoTrans, Op::NoTrans, x.m, x.n, x.k, 1., x.A.data(), x.k,
         x.B.data(), x.n, 0., x.C.data(), x.n,
         {.compute = Compute::OzakiFP64, .tolerance = tolerance});
  };
  std::size_t workspace = 0;
  for (const double tolerance : {2e-3, 1e-4, 4e-6, 2e-8, 1e-9, 5e-11, 3e-12, 1e-13, 1e-14}) {
    multiply(tolerance);
    EXPECT_GT(context.last_dispatch().workspace_bytes, workspace) << tolerance;
    workspace = context.last_dispatch().workspace_bytes;
    long double worst = 0;
    for (std::int64_t i = 0; i < x.m; ++i)
      for (std::int64_t j = 0; j < x.n; ++j) {
        long double value = 0, of_a = 0, of_b = 0;
        for (std::int64_t l = 0; l < x.k; ++l) {
          const long double a = x.a(i, l), b = x.b(l, j);
          value += a * b;
          of_a += a * a;
          of_b += b * b;
        }
        const long double error = std::abs(x.C[std::size_t(i * x.n + j)] - value);
        ASSERT_TRUE(error <=
                    tolerance * std::sqrt(of_a) * std::sqrt(of_b) + 0x1p-53L * std::abs(value))
            << tolerance << " " << i << " " << j;
        worst = std::max(worst, error / (std::sqrt(of_a) * std::sqrt(of_b)));
      }
    EXPECT_GT(worst, tolerance / 5000) << tolerance;
  }
  x.C.assign(x.C.size(), 7);
  try {
    multiply(1e-18);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::NotSupported);
    EXPECT_NE(std::string(error.what()).find("tolerates"), std::string::npos) << error.what();
  }
  EXPECT_EQ(x.C, std::vector<double>(x.C.size(), 7));
}

// Products of about 1 from rows and columns of much larger norms: what is off by more than any
// componentwise bound allows.
TEST(OzakiVerification, KnowsTheBound) {
  if (const std::string reason = no_hopper(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr std::int64_t kM = 40, kN = 50, kK = 300;
  for (const Op op_a : {Op::NoTrans, Op::Trans})
    for (const Op op_b : {Op::NoTrans, Op::Trans}) {
      const bool turned_a = op_a == Op::Trans, turned_b = op_b == Op::Trans;
      Operands x(turned_a ? kK : kM, turned_b ? kK : kN, turned_a ? kM : kK);
      x.B.resize(kK * kN);
      x.C.assign(kM * kN, 0);
      for (std::int64_t l = 0; l < kK; ++l) {
        const double factor = std::ldexp(1., int(l % 61) - 30);
        for (std::int64_t i = 0; i < kM; ++i)
          x.A[std::size_t(turned_a ? l * kM + i : i * kK + l)] *= factor;
        for (std::int64_t j = 0; j < kN; ++j)
          x.B[std::size_t(turned_b ? j * kK + l : l * kN + j)] = double(1 + l % 7) / factor;
      }
      Context context("cuda");
      context.set_kernel("gemm=tensor_ozaki");
      context.set_verify("openmp");
      gemm(context, Layout::RowMajor, op_a, op_b, kM, kN, kK, 1., x.A.data(), turned_a ? kM : kK,
           x.B.data(), turned_b ? kK : kN, 0., x.C.data(), kN, {.compute = Compute::OzakiFP64});
      EXPECT_EQ(context.last_dispatch().kernel, "tensor_ozaki");
    }
}

// So long and wide that the residues of B do not fit the workspace at once, and the blocks of C's
// columns, for which A's are kept, differ in size.
TEST(OzakiBlocks, ShareTheRowsOfA) {
  if (const std::string reason = no_hopper(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr std::int64_t kM = 40, kN = 5000, kK = 32768;
  const std::unique_ptr<Queue> queue = find_backend("cuda").make_queue({});
  const auto on_device = [&](const std::vector<double>& x) {
    const auto bytes = std::int64_t(x.size() * sizeof(double));
    auto* const p = static_cast<double*>(queue->allocate(std::size_t(bytes)));
    queue->copy({p, bytes, x.data(), bytes, bytes, 1}, CopyKind::HostToDevice);
    queue->synchronize();
    return p;
  };
  std::uint64_t state = 1;
  const auto filled = [&](std::int64_t count) {
    std::vector<double> x(std::size_t(count), 0.);
    for (double& e : x) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      e = double(std::int64_t(state)) * 0x1p-63;
    }
    return x;
  };
  const std::vector<double> A = filled(kM * kK), B = filled(kN * kK);
  std::vector<double> C(kM * kN, 0.);
  double* const at[] = {on_device(A), on_device(B), on_device(C)};
  {
    Context context("cuda");
    context.set_kernel("gemm=tensor_ozaki");
    gemm(context, Layout::RowMajor, Op::NoTrans, Op::Trans, kM, kN, kK, 1., at[0], kK, at[1], kK,
         0., at[2], kN, {.compute = Compute::OzakiFP64});
    context.synchronize();
    EXPECT_LE(context.last_dispatch().workspace_bytes, std::size_t{2} << 30);
  }
  constexpr std::int64_t kBytes = kM * kN * std::int64_t(sizeof(double));
  queue->copy({C.data(), kBytes, at[2], kBytes, kBytes, 1}, CopyKind::DeviceToHost);
  queue->synchronize();
  for (double* p : at) queue->deallocate(p);
  for (std::int64_t j = 0; j < kN; j += 37)
    for (std::int64_t i = j % 13; i < kM; i += 13) {
      long double value = 0;
      for (std::int64_t l = 0; l < kK; ++l)
        value += static_cast<long double>(A[std::size_t(i * kK + l)]) * B[std::size_t(j * kK + l)];
      ASSERT_TRUE(std::abs(C[std::size_t(i * kN + j)] - value) < 1e-12) << i << " " << j;
    }
}

INSTANTIATE_TEST_SUITE_P(Data, Ozaki, ::testing::ValuesIn(data()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace mblas::testing
