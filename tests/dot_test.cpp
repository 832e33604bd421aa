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

/// Bit for bit.
template <class T>
bool same(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

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
        plans_(kernel != std::string("thin")),  // which leaves them to others
        context_("openmp"),
        A(std::size_t(m * k)),
        B(std::size_t(k * n)) {
    context_.set_kernel(std::string("gemm=") + kernel);
    for (std::size_t i = 0; i < A.size(); ++i) A[i] = TA(pattern(i, 7));
    for (std::size_t i = 0; i < B.size(); ++i) B[i] = TA(pattern(i, 11));
  }
  // Rows and columns beyond the sizes are counted from the first again.
  TA& a(std::int64_t i, std::int64_t p) { return A[std::size_t(i % m * k + p)]; }
  TA& b(std::int64_t p, std::int64_t j) {
    return B[std::size_t(op_b_ == Op::NoTrans ? p * n + j % n : j % n * k + p)];
  }

  void check() {
    const Compute compute = std::is_same_v<TA, float> ? Compute::BF16x6 : Compute::Default;
    std::vector<TC> first;
    const auto call = [&](GemmPlan* plan) {
      std::vector<TC> C(std::size_t(m * n), TC(std::numeric_limits<float>::quiet_NaN()));
      GemmOptions options;
      options.compute = compute;
      options.plan = plan;
      gemm(context_, Layout::RowMajor, Op::NoTrans, op_b_, m, n, k, 1.0f, A.data(), k, B.data(),
           op_b_ == Op::NoTrans ? n : k, 0.0f, C.data(), n, options);
      return C;
    };
    for (const int threads : {1, 2, 5}) {
      context_.set_num_threads(threads);
      const std::vector<TC> C = call(nullptr);
      if (first.empty()) first = C;
      ASSERT_TRUE(same(C, first)) << threads;
      if (!plans_) continue;
      for (const auto operand : {GemmPlan::Operand::A, GemmPlan::Operand::B}) {
        GemmPlan plan(operand);
        for (const char* what : {"fills a plan", "uses it"})
          ASSERT_TRUE(same(call(&plan), first)) << threads << " " << what << " " << int(operand);
      }
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
  const bool plans_;
  Context context_;

 public:
  std::vector<TA> A, B;
};

template <class TA, class TC>
void run_all(const char* kernel, const Sizes& sizes = {}) {
  if (kernel != std::string("thin"))  // which is everywhere
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
      with([](S& s) {  // one in a column that has zeros else
        for (TA& x : s.A) x = TA(to_float(x) * 0x1p40f);
        for (std::int64_t p = 0; p < s.k; ++p) s.b(p, 17) = TA(p == 9 ? 0x1p-130f : 0.0f);
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

/// A product of the bytes of largest magnitude and few others, with leading dimensions that leave
/// gaps. Sums wrap. The kernel that ran.
std::string run_bytes(Context& context, const Sizes& sizes, Op op_a = Op::NoTrans) {
  constexpr std::int8_t kValues[] = {-128, 127, -128, -1, 127, 0, 1};
  const auto [m, n, k, op_b] = sizes;
  const std::int64_t lda = (op_a == Op::NoTrans ? k : m) + 3;
  const std::int64_t ldb = (op_b == Op::NoTrans ? n : k) + 5, ldc = n + 2;
  std::vector<std::int8_t> A(std::size_t((op_a == Op::NoTrans ? m : k) * lda));
  std::vector<std::int8_t> B(std::size_t((op_b == Op::NoTrans ? k : n) * ldb));
  for (std::size_t i = 0; i < A.size(); ++i) A[i] = kValues[i / 3 * 5 % 7];
  for (std::size_t i = 0; i < B.size(); ++i) B[i] = kValues[i / 2 * 3 % 7];
  const auto a = [&](std::int64_t i, std::int64_t p) -> std::int8_t& {
    return A[std::size_t(op_a == Op::NoTrans ? i * lda + p : p * lda + i)];
  };
  const auto b = [&](std::int64_t p, std::int64_t j) -> std::int8_t& {
    return B[std::size_t(op_b == Op::NoTrans ? p * ldb + j : j * ldb + p)];
  };
  for (std::int64_t p = 0; p < k; ++p) a(m / 2, p) = b(p, n / 2) = -128;
  constexpr std::int32_t kBefore = -7;
  std::vector<std::int32_t> C(std::size_t(m * ldc), kBefore);
  gemm(context, Layout::RowMajor, op_a, op_b, m, n, k, 1, A.data(), lda, B.data(), ldb, 0, C.data(),
       ldc);
  int wrong = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < ldc; ++j) {
      std::uint32_t sum = 0;
      for (std::int64_t p = 0; p < k && j < n; ++p)
        sum += std::uint32_t(std::int32_t(a(i, p)) * b(p, j));
      wrong += C[std::size_t(i * ldc + j)] != (j < n ? std::int32_t(sum) : kBefore);
    }
  EXPECT_EQ(wrong, 0) << m << "x" << n << "x" << k << " " << int(op_a) << " " << int(op_b);
  return std::string(context.last_dispatch().kernel);
}

// Few rows or columns of a matrix that is read where it lies, along its rows or across them.
TEST(Thin, Bfloat16Across) { run_all<bfloat16, float>("thin", {7, 200, 300}); }
TEST(Thin, Bfloat16Along) { run_all<bfloat16, bfloat16>("thin", {7, 200, 300, Op::Trans}); }
TEST(Thin, Bfloat16FewColumns) { run_all<bfloat16, float>("thin", {200, 6, 300}); }
TEST(Thin, Bfloat16LongAcross) { run_all<bfloat16, float>("thin", {2, 70, 16500}); }
TEST(Thin, Bfloat16LongAlong) { run_all<bfloat16, float>("thin", {2, 70, 16500, Op::Trans}); }

// Vectors multiply bytes of which one has no sign.
void run_bytes(const char* kernel) {
  if (const auto reason = unable(kernel, DType::i8, DType::i32)) GTEST_SKIP() << *reason;
  Context context("openmp");
  context.set_kernel(std::string("gemm=") + kernel);
  run_bytes(context, {45, 51, 1100});
}
TEST(Amx, Bytes) { run_bytes("amx"); }
TEST(Dot, Bytes) { run_bytes("dot"); }

// Along the rows of a matrix and across them, of one larger than the second-level cache and of a
// smaller one, by every number of vectors at a time and more; ends of rows and of columns.
TEST(Thin, Bytes) {
  Context context("openmp");
  int thin = 0;
  for (const int threads : {1, 3}) {
    context.set_num_threads(threads);
    for (const std::int64_t few : {1, 2, 3, 4, 5, 6, 7, 8, 11, 16})
      for (const std::int64_t k : {1027, 1028, 1085}) {
        thin += run_bytes(context, {few, 1101, k}) == "thin";
        thin += run_bytes(context, {few, 201, k, Op::Trans}) == "thin";
        thin += run_bytes(context, {1089, few, k}, Op::Trans) == "thin";
        thin += run_bytes(context, {70, few, k}) == "thin";
      }
    // Vectors that the first-level cache does not hold, a matrix that the second does not.
    thin += run_bytes(context, {8, 2090, 5003, Op::Trans}) == "thin";
    thin += run_bytes(context, {2090, 7, 5003}) == "thin";
    for (const Op op : {Op::NoTrans, Op::Trans})  // sums that do not fit
      thin += run_bytes(context, {2, 70, 140000, op}) == "thin";
  }
  EXPECT_GT(thin, 100);
}

/// C of a product whose A or B a plan keeps, or of one without a plan.
template <class T, class TC>
std::vector<TC> product(Context& context, Layout layout, Op op_b, const std::vector<T>& A,
                        const std::vector<T>& B, const Sizes& s, GemmPlan* plan,
                        std::int64_t batch = 1) {
  using S = std::conditional_t<std::is_same_v<T, std::int8_t>, std::int32_t, float>;
  const bool rows = layout == Layout::RowMajor;
  std::vector<TC> C(std::size_t(batch * s.m * s.n), TC(1.0f));
  GemmOptions options;
  if (std::is_same_v<T, float>) options.compute = Compute::BF16x6;
  options.plan = plan;
  if (!std::is_same_v<T, std::int8_t>) options.epilogue.scale = 0.5;
  // Where a plan keeps one, the other changes from entry to entry.
  const bool keeps_a = !plan || plan->operand() == GemmPlan::Operand::A;
  gemm_strided_batched(context, layout, Op::NoTrans, op_b, s.m, s.n, s.k, S(2), A.data(),
                       rows ? s.k : s.m, keeps_a ? 0 : s.m * s.k, B.data(),
                       rows == (op_b == Op::NoTrans) ? s.n : s.k, keeps_a ? s.k * s.n : 0, S(-1),
                       C.data(), rows ? s.n : s.m, s.m * s.n, batch, options);
  return C;
}

template <class T>
std::vector<T> numbers(std::int64_t count, int step) {
  std::vector<T> list(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const int x = int(i * std::size_t(step) % 251) - 125;
    list[i] = std::is_same_v<T, std::int8_t> ? T(x) : T(float(x) / 64);
  }
  if constexpr (!std::is_same_v<T, std::int8_t>) list[77] = T(0x1p-24f);  // ranges are kept, too
  return list;
}

template <class T>
void change(T& x) {
  x = T(float(x) > 0 ? -float(x) - 1 : 1 - float(x));
}

template <class T, class TC>
void run_plans(const char* kernel) {
  if (const auto reason = unable(kernel, dtype_v<T>, dtype_v<TC>)) GTEST_SKIP() << *reason;
  const Sizes sizes[] = {{70, 75, 101}, {40, 700, 900}, {5, 1100, 4500}, {700, 33, 1300}};
  for (const Sizes& s : sizes) {
    for (const Layout layout : {Layout::RowMajor, Layout::ColMajor}) {
      for (const Op op_b : {Op::NoTrans, Op::Trans}) {
        for (const auto operand : {GemmPlan::Operand::A, GemmPlan::Operand::B}) {
          for (const int threads : {1, 3}) {
            SCOPED_TRACE(::testing::Message()
                         << s.m << "x" << s.n << "x" << s.k << " " << int(layout) << int(op_b)
                         << int(operand) << " threads " << threads);
            Context context("openmp");
            context.set_kernel(std::string("gemm=") + kernel);
            context.set_num_threads(threads);
            auto A = numbers<T>(s.m * s.k, 7), B = numbers<T>(s.k * s.n, 11);
            const auto call = [&](GemmPlan* plan) {
              return product<T, TC>(context, layout, op_b, A, B, s, plan);
            };
            GemmPlan plan(operand);
            const auto first = call(nullptr);
            EXPECT_EQ(plan.bytes(), 0u);
            EXPECT_TRUE(same(call(&plan), first));
            EXPECT_GE(plan.bytes(), (operand == GemmPlan::Operand::A ? A : B).size() * sizeof(T));
            EXPECT_TRUE(same(call(&plan), first));
            auto& kept = operand == GemmPlan::Operand::A ? A : B;
            change(kept[kept.size() / 2]);
            const auto second = call(nullptr);
            EXPECT_FALSE(same(second, first));
            EXPECT_TRUE(same(call(&plan), first));  // as the plan knows it
            plan.clear();
            EXPECT_EQ(plan.bytes(), 0u);
            EXPECT_TRUE(same(call(&plan), second));
            // The plan is taken over by another operand.
            auto other = kept;
            change(other[0]);
            std::swap(kept, other);
            const auto third = call(nullptr);
            EXPECT_FALSE(same(third, second));
            EXPECT_TRUE(same(call(&plan), third));
          }
        }
      }
    }
  }
}
TEST(Dot, PlansOfBfloat16) { run_plans<bfloat16, bfloat16>("dot"); }
TEST(Dot, PlansOfBytes) { run_plans<std::int8_t, std::int32_t>("dot"); }
TEST(Amx, PlansOfBfloat16) { run_plans<bfloat16, float>("amx"); }
TEST(Amx, PlansOfHalf) { run_plans<half, half>("amx"); }
TEST(Amx, PlansOfBytes) { run_plans<std::int8_t, std::int32_t>("amx"); }
TEST(Amx, PlansOfFloat) { run_plans<float, float>("bf16x6"); }

// One matrix for a batch is kept, matrices of their own are not.
TEST(Dot, PlansOfBatches) {
  if (const auto reason = unable("dot", DType::bf16, DType::f32)) GTEST_SKIP() << *reason;
  const Sizes s = {20, 90, 130};
  constexpr std::int64_t kBatch = 5;
  for (const auto operand : {GemmPlan::Operand::A, GemmPlan::Operand::B}) {
    const bool a = operand == GemmPlan::Operand::A;
    for (const int threads : {1, 3}) {
      Context context("openmp");
      context.set_kernel("gemm=dot");
      context.set_num_threads(threads);
      const auto A = numbers<bfloat16>(s.m * s.k * (a ? 1 : kBatch), 7);
      const auto B = numbers<bfloat16>(s.k * s.n * (a ? kBatch : 1), 11);
      GemmPlan plan(operand);
      const auto all =
          product<bfloat16, float>(context, Layout::RowMajor, Op::NoTrans, A, B, s, &plan, kBatch);
      EXPECT_GT(plan.bytes(), 0u);
      for (std::int64_t b = 0; b < kBatch; ++b) {
        const std::vector<bfloat16> one_a(A.begin() + (a ? 0 : b * s.m * s.k), A.end());
        const std::vector<bfloat16> one_b(B.begin() + (a ? b * s.k * s.n : 0), B.end());
        const auto one = product<bfloat16, float>(context, Layout::RowMajor, Op::NoTrans, one_a,
                                                  one_b, s, nullptr);
        EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + b * s.m * s.n)) << b;
      }
    }
  }
  GemmPlan plan(GemmPlan::Operand::B);
  Context context("openmp");
  context.set_kernel("gemm=dot");
  const auto A = numbers<bfloat16>(2 * s.m * s.k, 7), B = numbers<bfloat16>(2 * s.k * s.n, 11);
  std::vector<float> C(std::size_t(2 * s.m * s.n));
  GemmOptions options;
  options.plan = &plan;
  gemm_strided_batched(context, Layout::RowMajor, Op::NoTrans, Op::NoTrans, s.m, s.n, s.k, 1.0f,
                       A.data(), s.k, s.m * s.k, B.data(), s.n, s.k * s.n, 0.0f, C.data(), s.n,
                       s.m * s.n, 2, options);
  EXPECT_EQ(plan.bytes(), 0u);
}

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
