// The products by dot-product instructions, of AMX tiles and of vectors: values that these treat
// differently from ordinary arithmetic, and the mode that only AMX has. Skipped where they cannot
// run.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "mblas/accuracy.hpp"
#include "support.hpp"
#include "sweep_cases.hpp"

namespace mblas::testing {
namespace {

/// Why the row cannot run here, if so.
std::optional<std::string> unable(const char* kernel, DType in, DType out) {
  Context context("openmp");
  context.set_kernel(std::string("gemm=") + kernel);
  cases::GemmCase c;
  c.in = in;
  c.out = out;
  if (in == DType::f32) c.compute = Compute::BF16x6;
  const Result result = run_case(c, context);
  if (result.fate == Fate::Ran) return {};
  return result.text;
}

float to_float(float x) { return x; }
float to_float(half x) { return float(x); }
float to_float(bfloat16 x) { return float(x); }

/// At least 70×75×101.
struct Sizes {
  std::int64_t m = 70, n = 75, k = 101;
  Op op_b = Op::NoTrans;
};
/// Few rows and a B that no second-level cache holds, packed a part at a time.
constexpr Sizes kFewRows = {70, 700, 900};
constexpr Sizes kFewRowsT = {70, 700, 1100, Op::Trans};

/// C = A op(B) on `kernel`, checked against double arithmetic element by element: finite ones
/// against the bound, the others to be of the same kind.
template <class TA, class TC>
class Special {
 public:
  const std::int64_t m, n, k;

  Special(const char* kernel, const Sizes& sizes)
      : m(sizes.m),
        n(sizes.n),
        k(sizes.k),
        op_b_(sizes.op_b),
        context_("openmp"),
        A(std::size_t(m * k)),
        B(std::size_t(k * n)) {
    context_.set_kernel(std::string("gemm=") + kernel);
    for (std::size_t i = 0; i < A.size(); ++i) A[i] = TA(pattern(i, 7));
    for (std::size_t i = 0; i < B.size(); ++i) B[i] = TA(pattern(i, 11));
  }
  TA& a(std::int64_t i, std::int64_t p) { return A[std::size_t(i * k + p)]; }
  TA& b(std::int64_t p, std::int64_t j) {
    return B[std::size_t(op_b_ == Op::NoTrans ? p * n + j : j * k + p)];
  }

  void check() {
    const Compute compute = std::is_same_v<TA, float> ? Compute::BF16x6 : Compute::Default;
    std::vector<TC> first;
    for (const int threads : {1, 2, 5}) {
      context_.set_num_threads(threads);
      std::vector<TC> C(std::size_t(m * n), TC(std::numeric_limits<float>::quiet_NaN()));
      gemm(context_, Layout::RowMajor, Op::NoTrans, op_b_, m, n, k, 1.0f, A.data(), k, B.data(),
           op_b_ == Op::NoTrans ? n : k, 0.0f, C.data(), n, {compute});
      if (first.empty())
        first = C;
      else
        ASSERT_EQ(std::memcmp(first.data(), C.data(), C.size() * sizeof(TC)), 0) << threads;
    }
    int wrong = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0, magnitude = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          const double product = double(to_float(a(i, p))) * double(to_float(b(p, j)));
          sum += product;
          magnitude += std::abs(product);
        }
        const double got = to_float(first[std::size_t(i * n + j)]);
        bool good;
        if (std::isnan(sum)) {
          good = std::isnan(got);
        } else if (std::isinf(sum)) {
          good = got == sum;
        } else {
          const double bound =
              gemm_bound(dtype_v<TA>, dtype_v<TC>, k, magnitude, std::abs(sum), compute);
          good = std::abs(got - sum) <= bound;
        }
        if (!good && ++wrong < 5)
          ADD_FAILURE() << "C(" << i << ", " << j << ") is " << got << ", not " << sum;
      }
    }
    EXPECT_EQ(wrong, 0);
  }

 private:
  static float pattern(std::size_t i, std::size_t step) {
    return float(int(i * step % 1021) - 510) / 512;
  }
  const Op op_b_;
  Context context_;

 public:
  std::vector<TA> A, B;
};

template <class TA, class TC>
void run_all(const char* kernel, const Sizes& sizes = {}) {
  if (const auto reason = unable(kernel, dtype_v<TA>, dtype_v<TC>)) GTEST_SKIP() << *reason;
  using S = Special<TA, TC>;
  const float inf = std::numeric_limits<float>::infinity();
  const auto with = [&](auto&& change) {
    S s(kernel, sizes);
    change(s);
    s.check();
  };
  {
    SCOPED_TRACE("ordinary");
    with([](S&) {});
  }
  {
    SCOPED_TRACE("NaN");
    with([](S& s) { s.a(3, 5) = TA(std::numeric_limits<float>::quiet_NaN()); });
    with([](S& s) { s.b(s.k - 1, s.n - 1) = TA(std::numeric_limits<float>::quiet_NaN()); });
  }
  {
    SCOPED_TRACE("infinities");
    with([&](S& s) { s.a(40, 0) = TA(inf), s.b(1, 40) = TA(-inf); });
    with([&](S& s) { s.a(69, 7) = TA(inf), s.a(69, 8) = TA(-inf); });
    with([&](S& s) {  // times 0
      s.a(2, 9) = TA(inf);
      for (std::int64_t j = 0; j < s.n; ++j) s.b(9, j) = TA(0.0f);
    });
  }
  {
    SCOPED_TRACE("zeros");
    with([](S& s) {
      for (TA& x : s.A) x = TA(0.0f);
    });
    with([&](S& s) {
      for (TA& x : s.A) x = TA(-0.0f);
      s.b(0, 0) = TA(inf);
    });
  }
  if constexpr (std::is_same_v<TA, half>) {
    SCOPED_TRACE("subnormal operands");
    with([](S& s) {
      for (std::int64_t p = 0; p < s.k; ++p) s.a(5, p) = TA(0x1p-24f * float(p % 7));
    });
    with([](S& s) {  // products around 2^-48
      for (TA& x : s.A) x = TA(to_float(x) * 0x1p-20f);
      for (TA& x : s.B) x = TA(to_float(x) * 0x1p-20f);
    });
    with([](S& s) { s.a(1, 1) = TA(65504.0f); });
  } else {
    {
      SCOPED_TRACE("subnormal operands");
      with([](S& s) {  // that large ones make normal again
        for (std::int64_t p = 0; p < s.k; ++p) s.a(5, p) = TA(0x1p-130f * float(1 + p % 7));
        for (TA& x : s.B) x = TA(to_float(x) * 0x1p40f);
      });
    }
    {
      SCOPED_TRACE("subnormal products");
      for (const int exponent : {-30, -45, -55, -60, -66, -70})
        with([&](S& s) {
          for (TA& x : s.A) x = TA(std::ldexp(to_float(x), exponent));
          for (TA& x : s.B) x = TA(std::ldexp(to_float(x), exponent));
        });
    }
    {
      SCOPED_TRACE("a wide range");
      with([](S& s) {
        for (std::size_t i = 0; i < s.A.size(); ++i)
          s.A[i] = TA(std::ldexp(to_float(s.A[i]), int(i % 90) - 70));
      });
    }
    {
      SCOPED_TRACE("near overflow");
      const float most = std::numeric_limits<float>::max();
      with([&](S& s) {  // rounds to infinity in fewer bits
        for (TA& x : s.A) x = TA(0.0f);
        s.a(3, 3) = std::is_same_v<TA, float> ? TA(most) : TA(most * 0.99f);
        for (TA& x : s.B) x = TA(std::abs(to_float(x)) * 0.5f);
      });
      with([&](S& s) {  // a sum that only just fits
        const int each = 126 - std::ilogb(1.25 * double(s.k));
        for (TA& x : s.A) x = TA(std::ldexp(1.0f, each));
        for (TA& x : s.B) x = TA(1.25f);
      });
    }
  }
}

TEST(Amx, Bfloat16) { run_all<bfloat16, bfloat16>("amx"); }
TEST(Amx, Bfloat16ToFloat) { run_all<bfloat16, float>("amx"); }
TEST(Amx, Half) { run_all<half, half>("amx"); }
TEST(Amx, HalfToFloat) { run_all<half, float>("amx"); }
TEST(Amx, FloatInPlanes) { run_all<float, float>("bf16x6"); }
TEST(Amx, FewRows) { run_all<bfloat16, float>("amx", kFewRows); }
TEST(Amx, FewRowsTransposed) { run_all<bfloat16, bfloat16>("amx", kFewRowsT); }
TEST(Amx, FewRowsOfHalf) { run_all<half, float>("amx", kFewRowsT); }
TEST(Amx, FewRowsInPlanes) { run_all<float, float>("bf16x6", kFewRows); }
TEST(Dot, Bfloat16) { run_all<bfloat16, bfloat16>("dot"); }
TEST(Dot, Bfloat16ToFloat) { run_all<bfloat16, float>("dot"); }
TEST(Dot, FewRows) { run_all<bfloat16, float>("dot", kFewRows); }
TEST(Dot, FewRowsTransposed) { run_all<bfloat16, bfloat16>("dot", kFewRowsT); }

// Vectors multiply bytes of which one has no sign.
void run_bytes(const char* kernel) {
  if (const auto reason = unable(kernel, DType::i8, DType::i32)) GTEST_SKIP() << *reason;
  constexpr std::int64_t m = 45, n = 51, k = 1100;
  constexpr std::int8_t kValues[] = {-128, 127, -128, -1, 127, 0, 1};
  std::vector<std::int8_t> A(m * k), B(k * n);
  for (std::size_t i = 0; i < A.size(); ++i) A[i] = kValues[i / 3 * 5 % 7];
  for (std::size_t i = 0; i < B.size(); ++i) B[i] = kValues[i / 2 * 3 % 7];
  for (std::int64_t i = 0; i < k; ++i) A[std::size_t(i)] = B[std::size_t(i * n)] = -128;
  Context context("openmp");
  context.set_kernel(std::string("gemm=") + kernel);
  std::vector<std::int32_t> C(m * n, -7);
  gemm(context, Layout::RowMajor, Op::NoTrans, Op::NoTrans, m, n, k, 1, A.data(), k, B.data(), n, 0,
       C.data(), n);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      std::int32_t sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += std::int32_t(A[std::size_t(i * k + p)]) * B[std::size_t(p * n + j)];
      ASSERT_EQ(C[std::size_t(i * n + j)], sum) << i << " " << j;
    }
}
TEST(Amx, Bytes) { run_bytes("amx"); }
TEST(Dot, Bytes) { run_bytes("dot"); }

void run_long(const char* kernel, DType in, std::int64_t m, std::int64_t n, std::int64_t k) {
  Context context("openmp");
  context.set_kernel(std::string("gemm=") + kernel);
  cases::GemmCase c;
  c.in = in;
  c.out = in == DType::i8 ? DType::i32 : DType::f32;
  c.m = m, c.n = n, c.k = k;
  c.alpha = {2, 0}, c.beta = {-1, 0};
  if (in == DType::f32) c.compute = Compute::BF16x6;
  for (const int threads : {1, 3, 8}) {
    context.set_num_threads(threads);
    const Result result = run_case(c, context);
    EXPECT_EQ(result.fate, Fate::Ran) << cases::command(cases::resolve(cases::Case(c))) << "\n"
                                      << result.text;
  }
}

// More depth, or more columns, than are packed at a time; more threads than panels.
TEST(Amx, DeepAndWide) {
  if (const auto reason = unable("amx", DType::bf16, DType::f32)) GTEST_SKIP() << *reason;
  for (const DType in : {DType::bf16, DType::f16, DType::i8}) run_long("amx", in, 70, 40, 9001);
  run_long("amx", DType::bf16, 30, 20, 9001);
  run_long("amx", DType::bf16, 64, 64, 9001);
  run_long("amx", DType::i8, 40, 1100, 3000);
  run_long("bf16x6", DType::f32, 70, 40, 4200);
  run_long("bf16x6", DType::f32, 33, 2200, 4000);
}
TEST(Dot, DeepAndWide) {
  if (const auto reason = unable("dot", DType::bf16, DType::f32)) GTEST_SKIP() << *reason;
  for (const DType in : {DType::bf16, DType::i8}) run_long("dot", in, 70, 40, 9001);
  run_long("dot", DType::bf16, 30, 20, 9001);
  run_long("dot", DType::i8, 300, 2200, 2000);
  run_long("dot", DType::i8, 40, 1100, 3000);
}

// The mode takes any size; as the default it declines those where native arithmetic is faster.
TEST(Amx, TheModeTakesWhatTheSweepTries) {
  constexpr Types kTypes{DType::f32, DType::f32};
  if (const auto reason = unable("bf16x6", DType::f32, DType::f32)) GTEST_SKIP() << *reason;
  Context context("openmp");
  context.set_kernel("gemm=bf16x6");
  std::vector<cases::Case> list = tiny_cases(op_name<GemmArgs>, kTypes);
  for (const cases::Case& c : sampled_cases(op_name<GemmArgs>, kTypes, 250)) list.push_back(c);
  int ran = 0, failed = 0;
  for (const cases::Case& c : list) {
    cases::GemmCase one = std::get<cases::GemmCase>(c);
    one.compute = Compute::BF16x6;
    const Result result = run_case(one, context);
    ran += result.fate == Fate::Ran;
    if (result.fate != Fate::Failed) continue;
    ADD_FAILURE() << "mblas bench " << cases::command(cases::resolve(cases::Case(one))) << "\n"
                  << result.text;
    if (++failed == 5) FAIL() << "the rest was not run";
  }
  EXPECT_GT(ran, 200);
}

}  // namespace
}  // namespace mblas::testing
