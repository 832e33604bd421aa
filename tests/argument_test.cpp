// Bad arguments of every function: the status, a message that names the argument, C unchanged bit
// for bit, and a context that still works.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support.hpp"

namespace mblas::testing {
namespace {

constexpr auto kHuge = std::numeric_limits<std::int64_t>::max();
constexpr auto kNoLayout = static_cast<Layout>('X');
constexpr auto kNoOp = static_cast<Op>('X');

/// Room for every call below. C's content is compared afterwards.
struct Arrays {
  std::vector<float> a = std::vector<float>(4096, 1), b = std::vector<float>(4096, 2),
                     c = std::vector<float>(4096, 3);
};

struct Gemm {
  Layout layout = R;
  Op transA = Op::NoTrans, transB = Op::NoTrans;
  std::int64_t m = 4, n = 5, k = 6;
  const float* A = nullptr;
  std::int64_t lda = 6, strideA = 24;
  const float* B = nullptr;
  std::int64_t ldb = 5, strideB = 30;
  float alpha = 1, beta = 0;
  float* C = nullptr;
  std::int64_t ldc = 5, strideC = 20, batch = 3;
  Compute compute = Compute::Default;
  Epilogue epilogue;
  double tolerance = 0;

  explicit Gemm(Arrays& x) : A(x.a.data()), B(x.b.data()), C(x.c.data()) {}
  void operator()(Context& context) const {
    gemm_strided_batched(context, layout, transA, transB, m, n, k, alpha, A, lda, strideA, B, ldb,
                         strideB, beta, C, ldc, strideC, batch,
                         GemmOptions{compute, epilogue, nullptr, tolerance});
  }
};

struct Geam {
  Layout layout = R;
  Op transA = Op::NoTrans, transB = Op::NoTrans;
  std::int64_t m = 4, n = 5;
  const float* A = nullptr;
  std::int64_t lda = 5, strideA = 20;
  const float* B = nullptr;
  std::int64_t ldb = 5, strideB = 20;
  float alpha = 1, beta = 1;
  float* C = nullptr;
  std::int64_t ldc = 5, strideC = 20, batch = 3;

  explicit Geam(Arrays& x) : A(x.a.data()), B(x.b.data()), C(x.c.data()) {}
  void operator()(Context& context) const {
    geam_strided_batched(context, layout, transA, transB, m, n, alpha, A, lda, strideA, beta, B,
                         ldb, strideB, C, ldc, strideC, batch);
  }
};

struct Transpose {
  Layout layout = R;
  std::int64_t m = 4, n = 5;
  const float* A = nullptr;
  std::int64_t lda = 5, strideA = 20;
  float* B = nullptr;
  std::int64_t ldb = 4, strideB = 20, batch = 3;

  explicit Transpose(Arrays& x) : A(x.a.data()), B(x.c.data()) {}
  void operator()(Context& context) const {
    transpose_strided_batched(context, layout, m, n, A, lda, strideA, B, ldb, strideB, batch);
  }
};

struct TransposeInplace {
  Layout layout = R;
  std::int64_t m = 4, n = 5;
  float* A = nullptr;
  std::int64_t lda = 5, ldb = 4, strideA = 20, batch = 3;

  explicit TransposeInplace(Arrays& x) : A(x.c.data()) {}
  void operator()(Context& context) const {
    transpose_inplace_strided_batched(context, layout, m, n, A, lda, ldb, strideA, batch);
  }
};

struct Gf256 {
  std::int64_t m = 4, n = 5, k = 6;
  const std::uint8_t* A = nullptr;
  std::int64_t lda = 6;
  const std::uint8_t* B = nullptr;
  std::int64_t ldb = 5;
  std::uint8_t* C = nullptr;
  std::int64_t ldc = 5;
  gf256::Options options;

  explicit Gf256(Arrays& x)
      : A(reinterpret_cast<const std::uint8_t*>(x.a.data())),
        B(reinterpret_cast<const std::uint8_t*>(x.b.data())),
        C(reinterpret_cast<std::uint8_t*>(x.c.data())) {}
  void operator()(Context& context) const {
    gf256::gemm(context, m, n, k, A, lda, B, ldb, C, ldc, options);
  }
};

template <class Call>
struct Wrong {
  std::function<void(Call&)> change;
  Status status;
  std::vector<std::string_view> words;
};

/// Each change of a valid call must be refused as it says, by each host backend.
template <class Call>
void expect_all(std::string_view op, const std::vector<Wrong<Call>>& list) {
  for (Backend* backend : backends()) {
    if (backend->memory() != Memory::Host || !backend->unavailable().empty()) continue;
    Context context(backend->name());
    for (const Wrong<Call>& wrong : list) {
      Arrays arrays;
      const Arrays before = arrays;
      Call call(arrays);
      wrong.change(call);
      SCOPED_TRACE(std::string(op) + " call " + std::to_string(&wrong - list.data()));
      try {
        call(context);
        ADD_FAILURE() << "nothing was thrown, expected " << name_of(wrong.status);
      } catch (const Error& e) {
        const std::string_view what = e.what();
        EXPECT_EQ(name_of(e.status()), name_of(wrong.status)) << what;
        EXPECT_EQ(what.substr(0, op.size() + 1), std::string(op) + ":");
        for (const std::string_view word : wrong.words)
          EXPECT_NE(what.find(word), what.npos) << "'" << word << "' is not in: " << what;
        EXPECT_EQ(context.last_error(), what);
      }
      EXPECT_EQ(arrays.c, before.c);
      EXPECT_EQ(arrays.a, before.a);
      EXPECT_EQ(arrays.b, before.b);
    }
    Arrays arrays;
    if constexpr (std::is_same_v<Call, Gf256>)
      if (backend->gf256_kernels().empty()) continue;
    if constexpr (std::is_same_v<Call, TransposeInplace>) context.set_backend("openmp");
    EXPECT_NO_THROW(Call{arrays}(context)) << "a valid call afterwards";
  }
}

constexpr Status kInvalid = Status::InvalidArgument;

constexpr auto kNoActivation = static_cast<Activation>(3);
constexpr auto kNoBiasPer = static_cast<BiasPer>(7);

TEST(BadArguments, Epilogues) {
  static const double doubles[8] = {};
  expect_all<Gemm>(
      "gemm", {{[](Gemm& g) { g.epilogue.activation = kNoActivation; }, kInvalid, {"activation"}},
               {[](Gemm& g) {
                  g.epilogue.bias = {kNoBiasPer, DType::f32, g.A};
                },
                kInvalid,
                {"bias"}},
               {[](Gemm& g) { g.epilogue.bias = bias_per_row(doubles); },
                kInvalid,
                {"bias is of type f64", "C of f32"}},
               {[](Gemm& g) { g.epilogue.bias = bias_per_row<float>(nullptr); },
                Status::NullPointer,
                {"bias is null"}},
               // The last element that each reads, one matrix after another.
               {[](Gemm& g) { g.epilogue.bias = bias_per_row(g.C - 3); },
                Status::Overlap,
                {"C[0] shares elements with bias"}},
               {[](Gemm& g) { g.epilogue.bias = bias_per_column(g.C + 59); },
                Status::Overlap,
                {"C[2] shares elements with bias"}},
               {[](Gemm& g) {
                  g.layout = Layout::ColMajor;
                  g.lda = 4, g.ldb = 6, g.ldc = 4;
                  g.epilogue.bias = bias_per_column(g.C - 4);
                },
                Status::Overlap,
                {"C[0] shares elements with bias"}}});
  Context context("openmp");
  struct Apart {
    BiasPer per;
    int offset;  // from C, which has 60 elements
  };
  for (const auto& [per, offset] : {Apart{BiasPer::Row, 60},
                                    {BiasPer::Column, 60},
                                    {BiasPer::Row, -4},
                                    {BiasPer::Column, -5}}) {
    Arrays x;
    Gemm call(x);
    call.C += 16;
    call.epilogue.bias = {per, DType::f32, call.C + offset};
    EXPECT_NO_THROW(call(context));
  }
}

TEST(BadArguments, EpiloguesOfTypesWithoutThem) {
  Context context("openmp");
  const std::int8_t a[4] = {};
  std::int32_t c[4] = {};
  GemmOptions options;
  options.epilogue.scale = 2;
  const auto integers = [&] {
    gemm(context, R, Op::NoTrans, Op::NoTrans, 2, 2, 2, 1, a, 2, a, 2, 0, c, 2, options);
  };
  expect_throws(kInvalid, {"gemm: a C of i32 takes no epilogue"}, integers);
  options.epilogue = {};
  EXPECT_NO_THROW(integers());

  std::complex<float> x[4] = {}, y[4] = {};
  options.epilogue.bias = bias_per_row(x);
  const auto complex = [&] {
    gemm(context, R, Op::NoTrans, Op::NoTrans, 2, 2, 2, 1.0f, x, 2, x, 2, 0.0f, y, 2, options);
  };
  EXPECT_NO_THROW(complex());
  options.epilogue.activation = Activation::Relu;
  expect_throws(kInvalid, {"gemm: a C of cf32 takes no activation"}, complex);

  const float z[4] = {};
  float to[4] = {};
  GemmGroup<float> group{
      .m = 2, .n = 2, .k = 2, .A = z, .lda = 2, .B = z, .ldb = 2, .C = to, .ldc = 2};
  expect_throws(kInvalid, {"gemm_grouped", "each problem has its own"},
                [&] { gemm_grouped(context, std::vector{group}, options); });
  GemmPlan plan(GemmPlan::Operand::A);
  expect_throws(kInvalid, {"gemm_grouped", "a plan"},
                [&] { gemm_grouped(context, std::vector{group}, GemmOptions{.plan = &plan}); });
  group.epilogue.bias = bias_per_row(to + 1);
  expect_throws(Status::Overlap, {"problem 0: gemm: C shares elements with bias"},
                [&] { gemm_grouped(context, std::vector{group}); });
  float other[4] = {};
  GemmGroup<float> second = group;
  second.C = other;
  group.epilogue = {};
  expect_throws(Status::Overlap, {"C of problem 0 shares elements with bias of problem 1"}, [&] {
    gemm_grouped(context, std::vector{group, second});
  });
}

TEST(BadArguments, Gemm) {
  expect_all<Gemm>(
      "gemm",
      {{[](Gemm& g) { g.m = -1; }, kInvalid, {"m is -1"}},
       {[](Gemm& g) { g.n = -7; }, kInvalid, {"n is -7"}},
       {[](Gemm& g) { g.k = -2; }, kInvalid, {"k is -2"}},
       {[](Gemm& g) { g.batch = -3; }, kInvalid, {"batch_count is -3"}},
       {[](Gemm& g) { g.layout = kNoLayout; }, kInvalid, {"layout"}},
       {[](Gemm& g) { g.transA = kNoOp; }, kInvalid, {"transA"}},
       {[](Gemm& g) { g.transB = kNoOp; }, kInvalid, {"transB"}},
       // One less than the least, in each layout and operation.
       {[](Gemm& g) { g.lda = 5; }, kInvalid, {"lda is 5", "6"}},
       {[](Gemm& g) { g.ldb = 4; }, kInvalid, {"ldb is 4", "5"}},
       {[](Gemm& g) { g.ldc = 4; }, kInvalid, {"ldc is 4", "5"}},
       {[](Gemm& g) { g.transA = Op::Trans, g.lda = 3; }, kInvalid, {"lda is 3", "4"}},
       {[](Gemm& g) { g.transB = Op::ConjTrans, g.ldb = 5; }, kInvalid, {"ldb is 5", "6"}},
       {[](Gemm& g) { g.layout = Layout::ColMajor, g.lda = 3; }, kInvalid, {"lda is 3", "4"}},
       {[](Gemm& g) { g.layout = Layout::ColMajor, g.ldb = 5; }, kInvalid, {"ldb is 5", "6"}},
       {[](Gemm& g) { g.layout = Layout::ColMajor, g.ldb = 6, g.ldc = 3; }, kInvalid, {"ldc is 3"}},
       {[](Gemm& g) { g.layout = Layout::ColMajor, g.transA = Op::Trans, g.lda = 5; },
        kInvalid,
        {"lda is 5", "6"}},
       {[](Gemm& g) { g.layout = Layout::ColMajor, g.transB = Op::Trans, g.ldb = 4; },
        kInvalid,
        {"ldb is 4", "5"}},
       {[](Gemm& g) { g.lda = 0, g.k = 0; }, kInvalid, {"lda is 0", "1 element"}},
       {[](Gemm& g) { g.ldc = -5; }, kInvalid, {"ldc is -5"}},
       {[](Gemm& g) { g.strideA = -1; }, kInvalid, {"strideA is -1"}},
       {[](Gemm& g) { g.strideB = -1; }, kInvalid, {"strideB is -1"}},
       {[](Gemm& g) { g.strideC = -20; }, kInvalid, {"strideC is -20"}},
       {[](Gemm& g) { g.A = nullptr; }, Status::NullPointer, {"A is null"}},
       {[](Gemm& g) { g.B = nullptr; }, Status::NullPointer, {"B is null"}},
       {[](Gemm& g) { g.C = nullptr; }, Status::NullPointer, {"C is null"}},
       {[](Gemm& g) { g.alpha = 0, g.C = nullptr; }, Status::NullPointer, {"C is null"}},
       {[](Gemm& g) { g.strideC = 0; }, Status::Overlap, {"C[0]", "C[1]"}},
       {[](Gemm& g) { g.strideC = 19; }, Status::Overlap, {"C[0]", "C[1]"}},
       {[](Gemm& g) { g.m = g.k = 1, g.strideC = 4; }, Status::Overlap, {"C[0]", "C[1]"}},
       {[](Gemm& g) { g.A = g.C; }, Status::Overlap, {"C[0]", "A[0]"}},
       {[](Gemm& g) { g.B = g.C + 59; }, Status::Overlap, {"C[2]", "B[0]"}},
       {[](Gemm& g) { g.A = g.C + 20, g.strideA = 0; }, Status::Overlap, {"C[1]", "A[0]"}},
       {[](Gemm& g) { g.lda = kHuge / 2; }, Status::SizeOverflow, {"extent of A"}},
       {[](Gemm& g) { g.ldb = kHuge / 4; }, Status::SizeOverflow, {"extent of B"}},
       {[](Gemm& g) { g.ldc = kHuge / 3; }, Status::SizeOverflow, {"extent of C"}},
       {[](Gemm& g) { g.strideC = kHuge / 2; }, Status::SizeOverflow, {"extent of C"}},
       {[](Gemm& g) { g.batch = kHuge / 2; }, Status::SizeOverflow, {"extent of C"}},
       {[](Gemm& g) { g.m = kHuge; }, Status::SizeOverflow, {"extent of C"}},
       {[](Gemm& g) { g.k = g.lda = kHuge; }, Status::SizeOverflow, {"extent of A"}},
       {[](Gemm& g) { g.n = g.ldb = g.ldc = kHuge; }, Status::SizeOverflow, {"extent of C"}},
       {[](Gemm& g) { g.compute = Compute::OzakiFP64; }, kInvalid, {"ozaki", "f32"}},
       {[](Gemm& g) { g.tolerance = 1e-9; }, kInvalid, {"tolerance", "ozaki", "default"}},
       {[](Gemm& g) { g.tolerance = -1e-9; }, kInvalid, {"tolerance", "0 or positive"}},
       {[](Gemm& g) { g.tolerance = std::nan(""); }, kInvalid, {"tolerance", "nan"}},
       {[](Gemm& g) { g.tolerance = HUGE_VAL; }, kInvalid, {"tolerance", "inf"}},
       {[](Gemm& g) { g.compute = Compute::TF32; }, Status::NotSupported, {"no kernel takes"}}});
}

TEST(BadArguments, Geam) {
  expect_all<Geam>(
      "geam",
      {{[](Geam& g) { g.m = -1; }, kInvalid, {"m is -1"}},
       {[](Geam& g) { g.n = -7; }, kInvalid, {"n is -7"}},
       {[](Geam& g) { g.batch = -3; }, kInvalid, {"batch_count is -3"}},
       {[](Geam& g) { g.layout = kNoLayout; }, kInvalid, {"layout"}},
       {[](Geam& g) { g.transA = kNoOp; }, kInvalid, {"transA"}},
       {[](Geam& g) { g.transB = kNoOp; }, kInvalid, {"transB"}},
       {[](Geam& g) { g.lda = 4; }, kInvalid, {"lda is 4", "5"}},
       {[](Geam& g) { g.ldb = 4; }, kInvalid, {"ldb is 4", "5"}},
       {[](Geam& g) { g.ldc = 4; }, kInvalid, {"ldc is 4", "5"}},
       {[](Geam& g) { g.transA = Op::Trans, g.lda = 3; }, kInvalid, {"lda is 3", "4"}},
       {[](Geam& g) { g.layout = Layout::ColMajor, g.ldb = 3; }, kInvalid, {"ldb is 3", "4"}},
       {[](Geam& g) { g.strideA = -1; }, kInvalid, {"strideA is -1"}},
       {[](Geam& g) { g.strideB = -1; }, kInvalid, {"strideB is -1"}},
       {[](Geam& g) { g.strideC = -1; }, kInvalid, {"strideC is -1"}},
       {[](Geam& g) { g.A = nullptr; }, Status::NullPointer, {"A is null"}},
       {[](Geam& g) { g.B = nullptr; }, Status::NullPointer, {"B is null"}},
       {[](Geam& g) { g.C = nullptr; }, Status::NullPointer, {"C is null"}},
       {[](Geam& g) { g.strideC = 0; }, Status::Overlap, {"C[0]", "C[1]"}},
       {[](Geam& g) { g.A = g.C + 1; }, Status::Overlap, {"C[0]", "A[0]"}},
       {[](Geam& g) { g.A = g.C, g.transA = Op::Trans, g.lda = 5; },
        Status::Overlap,
        {"C[0]", "A"}},
       {[](Geam& g) { g.B = g.C, g.ldb = 6, g.strideB = 24; }, Status::Overlap, {"C[0]", "B[0]"}},
       {[](Geam& g) { g.A = g.C, g.strideA = 0; }, Status::Overlap, {"C[", "A[0]"}},
       {[](Geam& g) { g.lda = kHuge / 2; }, Status::SizeOverflow, {"extent of A"}},
       {[](Geam& g) { g.strideB = kHuge / 2; }, Status::SizeOverflow, {"extent of B"}}});
}

TEST(BadArguments, Transpose) {
  expect_all<Transpose>(
      "transpose",
      {{[](Transpose& t) { t.m = -1; }, kInvalid, {"m is -1"}},
       {[](Transpose& t) { t.n = -7; }, kInvalid, {"n is -7"}},
       {[](Transpose& t) { t.batch = -3; }, kInvalid, {"batch_count is -3"}},
       {[](Transpose& t) { t.layout = kNoLayout; }, kInvalid, {"layout"}},
       {[](Transpose& t) { t.lda = 4; }, kInvalid, {"lda is 4", "5"}},
       {[](Transpose& t) { t.ldb = 3; }, kInvalid, {"ldb is 3", "4"}},
       {[](Transpose& t) { t.layout = Layout::ColMajor, t.lda = 3; }, kInvalid, {"lda is 3", "4"}},
       {[](Transpose& t) { t.layout = Layout::ColMajor, t.ldb = 4; }, kInvalid, {"ldb is 4", "5"}},
       {[](Transpose& t) { t.strideA = -1; }, kInvalid, {"strideA is -1"}},
       {[](Transpose& t) { t.strideB = -1; }, kInvalid, {"strideB is -1"}},
       {[](Transpose& t) { t.A = nullptr; }, Status::NullPointer, {"A is null"}},
       {[](Transpose& t) { t.B = nullptr; }, Status::NullPointer, {"B is null"}},
       {[](Transpose& t) { t.strideB = 0; }, Status::Overlap, {"B[0]", "B[1]"}},
       {[](Transpose& t) { t.A = t.B; }, Status::Overlap, {"B[0]", "A[0]"}},
       {[](Transpose& t) { t.lda = kHuge / 2; }, Status::SizeOverflow, {"extent of A"}},
       {[](Transpose& t) { t.ldb = kHuge / 2; }, Status::SizeOverflow, {"extent of B"}}});
}

TEST(BadArguments, TransposeInplace) {
  using T = TransposeInplace;
  expect_all<T>("transpose_inplace",
                {{[](T& t) { t.m = -1; }, kInvalid, {"m is -1"}},
                 {[](T& t) { t.n = -7; }, kInvalid, {"n is -7"}},
                 {[](T& t) { t.batch = -3; }, kInvalid, {"batch_count is -3"}},
                 {[](T& t) { t.layout = kNoLayout; }, kInvalid, {"layout"}},
                 {[](T& t) { t.lda = 4; }, kInvalid, {"lda is 4", "5"}},
                 {[](T& t) { t.ldb = 3; }, kInvalid, {"ldb is 3", "4"}},
                 {[](T& t) { t.strideA = -1; }, kInvalid, {"strideA is -1"}},
                 {[](T& t) { t.A = nullptr; }, Status::NullPointer, {"A is null"}},
                 {[](T& t) { t.strideA = 0; }, Status::Overlap, {"A[0]", "A[1]"}},
                 {[](T& t) { t.strideA = 19; }, Status::Overlap, {"A[0]", "A[1]"}},
                 // Apart before, not after.
                 {[](T& t) { t.ldb = 5; }, Status::Overlap, {"A[0]", "A[1]"}},
                 {[](T& t) { t.lda = kHuge / 2; }, Status::SizeOverflow, {"extent of A"}},
                 {[](T& t) { t.ldb = kHuge / 2; }, Status::SizeOverflow, {"extent of A"}}});
}

TEST(BadArguments, Gf256) {
  expect_all<Gf256>("gf256",
                    {{[](Gf256& g) { g.m = -1; }, kInvalid, {"m is -1"}},
                     {[](Gf256& g) { g.n = -7; }, kInvalid, {"n is -7"}},
                     {[](Gf256& g) { g.k = -2; }, kInvalid, {"k is -2"}},
                     {[](Gf256& g) { g.lda = 5; }, kInvalid, {"lda is 5", "6"}},
                     {[](Gf256& g) { g.ldb = 4; }, kInvalid, {"ldb is 4", "5"}},
                     {[](Gf256& g) { g.ldc = 4; }, kInvalid, {"ldc is 4", "5"}},
                     {[](Gf256& g) { g.options.poly = 0x11C; }, kInvalid, {"poly"}},
                     {[](Gf256& g) { g.options.poly = 0x1D; }, kInvalid, {"poly"}},
                     {[](Gf256& g) { g.options.poly = 0x211D; }, kInvalid, {"poly"}},
                     {[](Gf256& g) { g.A = nullptr; }, Status::NullPointer, {"A is null"}},
                     {[](Gf256& g) { g.B = nullptr; }, Status::NullPointer, {"B is null"}},
                     {[](Gf256& g) { g.C = nullptr; }, Status::NullPointer, {"C is null"}},
                     {[](Gf256& g) { g.A = g.C; }, Status::Overlap, {"C", "A"}},
                     {[](Gf256& g) { g.B = g.C + 1; }, Status::Overlap, {"C", "B"}},
                     {[](Gf256& g) { g.lda = kHuge / 2; }, Status::SizeOverflow, {"extent of A"}},
                     {[](Gf256& g) { g.ldc = kHuge / 2; }, Status::SizeOverflow, {"extent of C"}}});
}

// What must not be refused.
TEST(GoodArguments, QuickReturnsTakeNullPointers) {
  Context context("openmp");
  Arrays x;
  const Arrays before = x;
  const auto gemm_as = [&](auto change) {
    Gemm g(x);
    change(g);
    EXPECT_NO_THROW(g(context));
    EXPECT_EQ(context.last_dispatch().operation, "gemm");
    EXPECT_EQ(context.last_dispatch().backend, "");
    EXPECT_EQ(x.c, before.c);
  };
  gemm_as([](Gemm& g) { g.m = 0, g.A = g.B = g.C = nullptr; });
  gemm_as([](Gemm& g) { g.n = 0, g.A = g.B = nullptr, g.C = nullptr; });
  gemm_as([](Gemm& g) { g.batch = 0, g.A = g.B = nullptr, g.C = nullptr; });
  gemm_as([](Gemm& g) { g.k = 0, g.beta = 1, g.A = g.B = nullptr; });
  gemm_as([](Gemm& g) { g.alpha = 0, g.beta = 1, g.A = g.B = nullptr; });
  Gemm zero(x);
  zero.alpha = 0, zero.A = zero.B = nullptr;
  EXPECT_NO_THROW(zero(context));
  EXPECT_EQ(x.c[0], 0);

  Geam geam(x);
  geam.alpha = 0, geam.A = nullptr;
  EXPECT_NO_THROW(geam(context));
  geam.alpha = 1, geam.beta = 0, geam.A = x.a.data(), geam.B = nullptr;
  EXPECT_NO_THROW(geam(context));
  Transpose transpose(x);
  transpose.m = 0, transpose.A = nullptr, transpose.B = nullptr;
  EXPECT_NO_THROW(transpose(context));
  Gf256 gf(x);
  gf.k = 0, gf.A = gf.B = nullptr;
  EXPECT_NO_THROW(gf(context));
}

TEST(GoodArguments, StridesOfASingleMatrixAndOfInputs) {
  Context context("openmp");
  Arrays x;
  Gemm g(x);
  g.batch = 1, g.strideC = 0;
  EXPECT_NO_THROW(g(context));
  g.batch = 3, g.strideC = 20, g.strideA = 0, g.strideB = 0;
  EXPECT_NO_THROW(g(context));
  g.strideA = 1;  // matrices of an input may overlap
  EXPECT_NO_THROW(g(context));
}

TEST(BadArguments, BatchesBehindPointers) {
  Context context("openmp");
  Arrays x;
  const Arrays before = x;
  std::vector<const float*> A{&x.a[0], &x.a[100]}, B{&x.b[0], &x.b[100]};
  std::vector<float*> C{&x.c[0], &x.c[100]};
  const auto call = [&] {
    gemm_batched(context, R, Op::NoTrans, Op::NoTrans, 4, 5, 6, 1, A, 6, B, 5, 0, C, 5);
  };
  A[1] = nullptr;
  expect_throws(Status::NullPointer, {"gemm", "A[1] is null"}, call);
  A[1] = &x.a[0];  // the same matrix twice is fine
  C[1] = nullptr;
  expect_throws(Status::NullPointer, {"C[1] is null"}, call);
  C[1] = &x.c[19];
  expect_throws(Status::Overlap, {"C[0]", "C[1]"}, call);
  C[1] = &x.c[20];
  B[0] = &x.c[39];
  expect_throws(Status::Overlap, {"C[1]", "B[0]"}, call);
  B.push_back(&x.b[0]);
  expect_throws(Status::InvalidArgument, {"gemm_batched", "A has 2", "B 3", "C 2"}, call);
  EXPECT_EQ(x.c, before.c);
  B = {&x.b[0], &x.b[0]};
  EXPECT_NO_THROW(call());
  A.clear(), B.clear(), C.clear();
  EXPECT_NO_THROW(call());
}

TEST(BadArguments, GroupedLeavesEveryCUnchanged) {
  Context context("openmp");
  Arrays x;
  const Arrays before = x;
  GemmGroup<float> g;
  g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 4;
  g.A = x.a.data();
  g.B = x.b.data();
  std::vector<GemmGroup<float>> groups(4, g);
  for (int i = 0; i < 4; ++i) groups[std::size_t(i)].C = x.c.data() + 16 * i;
  const auto call = [&] { gemm_grouped(context, groups); };
  const auto wrong = [&](auto change, Status status,
                         std::initializer_list<std::string_view> words) {
    const auto valid = groups;
    change(groups);
    expect_throws(status, words, call);
    EXPECT_EQ(x.c, before.c);
    groups = valid;
  };
  wrong([](auto& all) { all[3].m = -1; }, kInvalid, {"problem 3", "m is -1"});
  wrong([](auto& all) { all[2].ldb = 3; }, kInvalid, {"problem 2", "ldb is 3"});
  wrong([](auto& all) { all[1].A = nullptr; }, Status::NullPointer, {"problem 1", "A is null"});
  wrong([](auto& all) { all[3].transA = kNoOp; }, kInvalid, {"problem 3", "transA"});
  wrong([](auto& all) { all[3].C = all[0].C + 15; }, Status::Overlap, {"C of problem"});
  wrong([](auto& all) { all[2].B = all[0].C; }, Status::Overlap,
        {"C of problem 0", "B of problem 2"});
  EXPECT_NO_THROW(call());
  EXPECT_EQ(x.c[63], 8);
  EXPECT_EQ(x.c[64], 3);
  EXPECT_NO_THROW(gemm_grouped(context, std::vector<GemmGroup<float>>{}));
}

TEST(BadArguments, Views) {
  struct View {
    float* data;
    std::int64_t extents[2], strides[2];
    float* data_handle() const { return data; }
    std::int64_t extent(int r) const { return extents[r]; }
    std::int64_t stride(int r) const { return strides[r]; }
  };
  Context context("openmp");
  Arrays x;
  const Arrays before = x;
  const View A{x.a.data(), {4, 6}, {6, 1}}, B{x.b.data(), {6, 5}, {1, 6}};
  const View C{x.c.data(), {4, 5}, {5, 1}};
  const auto wrong = [&](const View& a, const View& b, const View& c,
                         std::initializer_list<std::string_view> words) {
    expect_throws(kInvalid, words, [&] { gemm(context, 1, a, b, 0, c); });
    EXPECT_EQ(x.c, before.c);
  };
  wrong({x.a.data(), {4, 6}, {12, 2}}, B, C, {"gemm", "A has strides 12 and 2"});
  wrong(A, {x.b.data(), {6, 5}, {2, 12}}, C, {"B has strides 2 and 12"});
  wrong(A, B, {x.c.data(), {4, 5}, {3, 1}}, {"C has strides 3 and 1"});
  wrong(A, {x.b.data(), {5, 5}, {1, 5}}, C, {"A is 4×6", "B 5×5", "do not multiply"});
  wrong(A, B, {x.c.data(), {5, 5}, {5, 1}}, {"C 5×5"});
  for (const View& to : {C, View{x.c.data(), {4, 5}, {1, 4}}}) {  // row- and column-strided
    EXPECT_NO_THROW(gemm(context, 1, A, B, 0, to));
    EXPECT_EQ(x.c[19], 12);
    x.c = before.c;
  }
}

TEST(BadArguments, ReedSolomon) {
  Context context("openmp");
  expect_throws(kInvalid, {"ReedSolomon", "k = 0"}, [] { gf256::ReedSolomon(0, 4); });
  expect_throws(kInvalid, {"ReedSolomon", "m = -1"}, [] { gf256::ReedSolomon(10, -1); });
  expect_throws(kInvalid, {"256"}, [] { gf256::ReedSolomon(200, 57); });
  expect_throws(kInvalid, {"poly"}, [] { gf256::ReedSolomon(10, 4, 0x100); });
  const gf256::ReedSolomon code(2, 2);
  std::uint8_t bytes[4][8] = {};
  std::vector<const std::uint8_t*> data{bytes[0], bytes[1]};
  std::vector<std::uint8_t*> parity{bytes[2], bytes[3]},
      all{bytes[0], bytes[1], bytes[2], bytes[3]};
  const auto encode = [&] { code.encode(context, data, parity, 8); };
  data.push_back(bytes[0]);
  expect_throws(kInvalid, {"encode", "data has 3", "2"}, encode);
  data.pop_back();
  parity[1] = nullptr;
  expect_throws(Status::NullPointer, {"encode", "parity[1] is null"}, encode);
  parity[1] = bytes[0];
  expect_throws(Status::Overlap, {"C", "B"}, encode);
  parity[1] = bytes[2] + 7;
  expect_throws(Status::Overlap, {"C"}, encode);
  parity[1] = bytes[3];
  expect_throws(kInvalid, {"length is -1"}, [&] { code.encode(context, data, parity, -1); });
  expect_throws(kInvalid, {"update", "index is 2"},
                [&] { code.update(context, 2, bytes[0], parity, 8); });
  expect_throws(Status::NullPointer, {"update", "delta is null"},
                [&] { code.update(context, 0, nullptr, parity, 8); });
  const bool one[4] = {true, false, false, false};
  expect_throws(kInvalid, {"reconstruct", "3 shards are missing", "1 are present"},
                [&] { code.reconstruct(context, all, one, 8); });
  expect_throws(kInvalid, {"present has 3"},
                [&] { code.reconstruct(context, all, std::span(one).first(3), 8); });
  EXPECT_NO_THROW(encode());
}

TEST(BadSettings, NamesAreRefusedAndTheContextKeepsWhatItHad) {
  Context context("openmp");
  expect_throws(Status::UnknownName, {"backend=opnemp", "opnemp", "openmp", "there are"},
                [&] { context.set_backend("opnemp"); });
  expect_throws(Status::UnknownName, {"''", "openmp"}, [&] { context.set_backend(""); });
  expect_throws(Status::UnknownName, {"openmp,nonsense"},
                [&] { context.set_backend("openmp,nonsense"); });
  expect_throws(Status::UnknownName, {"nonsense", "there are", "openmp"},
                [] { Context unknown("nonsense"); });
  expect_throws(Status::UnknownName, {"kernel", "'gemm'", "OPERATION=KERNEL"},
                [&] { context.set_kernel("gemm"); });
  expect_throws(Status::UnknownName, {"'gamm=naive'", "transpose_inplace"},
                [&] { context.set_kernel("gamm=naive"); });
  expect_throws(Status::UnknownName, {"no kernel of gemm is called 'fastest'", "there are"},
                [&] { context.set_kernel("gemm=fastest"); });
  expect_throws(Status::UnknownName, {"verify", "nobody"}, [&] { context.set_verify("nobody"); });
  expect_throws(Status::UnknownName, {"one backend"}, [&] { context.set_verify("auto"); });
  expect_throws(kInvalid, {"fraction"}, [&] { context.set_verify("openmp:1.5"); });
  expect_throws(kInvalid, {"fraction"}, [&] { context.set_verify("openmp:0"); });
  expect_throws(kInvalid, {"fraction"}, [&] { context.set_verify("openmp:"); });
  expect_throws(kInvalid, {"set_num_threads", "-2"}, [&] { context.set_num_threads(-2); });
  expect_throws(kInvalid, {"set_verbose", "3"}, [&] { context.set_verbose(3); });
  expect_throws(kInvalid, {"set_device", "-1"}, [&] { context.set_device(-1); });
  expect_throws(Status::NullPointer, {"set_workspace"}, [&] { context.set_workspace(nullptr, 8); });
  Arrays x;
  EXPECT_NO_THROW(Gemm{x}(context));
  EXPECT_EQ(context.last_dispatch().backend, "openmp");
}

TEST(BadSettings, ABackendThatCannotRunSaysWhy) {
  for (const std::string name : {"cuda", "cublas", "eigen"}) {
    std::string reason = "not built";
    for (Backend* backend : backends())
      if (backend->name() == name) reason = backend->unavailable();
    if (reason.empty()) continue;  // it runs
    Context context("openmp");
    expect_throws(Status::BackendUnavailable, {name, reason, "there are", "openmp"},
                  [&] { context.set_backend(name); });
    for (const std::string& list : {"openmp," + name, name + ",openmp"}) {
      EXPECT_NO_THROW(context.set_backend(list));
      EXPECT_EQ(run_case(cases::GemmCase{}, context).fate, Fate::Ran);
      EXPECT_EQ(context.last_dispatch().backend, "openmp");
    }
  }
}

TEST(BadSettings, AForcedKernelThatDeclinesIsAnErrorThatQuotesIt) {
  // Some row of some table declines something: find it, force it.
  Context context("openmp");
  for (const Kernel<TransposeInplaceArgs>& kernel :
       find_backend("openmp").transpose_inplace_kernels()) {
    TransposeInplaceArgs args;
    args.m = 4, args.n = 5;
    args.A.ld = 5, args.ldb = 4;
    const char* reason = kernel.declines(args, DeviceInfo{});
    if (!reason) continue;
    context.set_kernel("transpose_inplace=" + std::string(kernel.name));
    Arrays x;
    const Arrays before = x;
    expect_throws(Status::NotSupported, {"transpose_inplace", "openmp/", kernel.name, reason},
                  [&] { TransposeInplace{x}(context); });
    EXPECT_EQ(x.c, before.c);
    ASSERT_EQ(context.last_dispatch().declined.size(), 1u);
    EXPECT_EQ(context.last_dispatch().declined[0].kernel, kernel.name);
    context.set_kernel("");
    EXPECT_NO_THROW(TransposeInplace{x}(context));
    EXPECT_FALSE(context.last_dispatch().declined.empty()) << "the row that was passed over";
    return;
  }
  FAIL() << "no row declines a rectangle";
}

TEST(BadSettings, AKernelOfAnotherBackendOnly) {
  Context context("openmp");
  for (Backend* backend : backends())
    for (const Kernel<GemmArgs>& kernel : backend->gemm_kernels()) {
      bool shared = false;
      for (const Kernel<GemmArgs>& own : find_backend("openmp").gemm_kernels())
        shared = shared || own.name == kernel.name;
      if (shared) continue;
      context.set_kernel("gemm=" + std::string(kernel.name));
      Arrays x;
      expect_throws(Status::NotSupported, {"gemm", "openmp", "forced name"},
                    [&] { Gemm{x}(context); });
    }
}

TEST(Limits, ASmallWorkspaceLimitPicksAKernelWithoutOne) {
  Context context("openmp");
  Arrays x;
  for (const std::size_t limit : {std::size_t{1}, std::size_t{4096}, std::size_t{0}}) {
    context.set_workspace_limit(limit);
    EXPECT_NO_THROW(Gemm{x}(context));
    if (limit > 0) {
      EXPECT_LE(context.last_dispatch().workspace_bytes, limit);
    }
    EXPECT_EQ(run_case(cases::GemmCase{.m = 200, .n = 200, .k = 200}, context).fate, Fate::Ran);
    if (limit > 0) {
      EXPECT_LE(context.last_dispatch().workspace_bytes, limit);
    }
    EXPECT_EQ(run_case(cases::TransposeInplaceCase{.m = 100, .n = 77}, context).fate, Fate::Ran);
    if (limit > 0) {
      EXPECT_LE(context.last_dispatch().workspace_bytes, limit);
    }
    EXPECT_EQ(run_case(cases::Gf256Case{}, context).fate, Fate::Ran);
    if (limit > 0) {
      EXPECT_LE(context.last_dispatch().workspace_bytes, limit);
    }
  }
}

TEST(Limits, TheCallersWorkspaceIsUsedAndNotExceeded) {
  constexpr std::size_t kBytes = 32 << 20, kGuard = 4096;
  std::vector<std::byte> memory(kBytes + 2 * kGuard, std::byte{0x5a});
  Context context("openmp");
  const cases::GemmCase c{.m = 200, .n = 200, .k = 200};
  ASSERT_EQ(run_case(c, context).fate, Fate::Ran);
  const std::size_t needed = context.last_dispatch().workspace_bytes;
  ASSERT_LE(needed, kBytes);
  // 256-byte aligned, as the context's own.
  auto* start = memory.data() + kGuard;
  start += 256 - reinterpret_cast<std::uintptr_t>(start) % 256;
  for (const std::size_t bytes : {needed, std::size_t{64}, std::size_t{0}}) {
    context.set_workspace(bytes ? start : nullptr, bytes);
    ASSERT_EQ(run_case(c, context).fate, Fate::Ran);
    if (bytes) {
      EXPECT_LE(context.last_dispatch().workspace_bytes, bytes);
    }
    for (std::byte* p = memory.data(); p < start; ++p) ASSERT_EQ(*p, std::byte{0x5a});
    for (std::byte* p = start + needed; p < memory.data() + memory.size(); ++p)
      ASSERT_EQ(*p, std::byte{0x5a});
  }
}

TEST(Backends, NamesThatCannotBeRegistered) {
  struct Named : Backend {
    explicit Named(std::string n) : called(std::move(n)) {}
    std::string_view name() const override { return called; }
    std::string called;
  };
  for (const char* name : {"", "auto", "a,b", "a:b", "a=b", "a b", "openmp", "cuda", "cublas"})
    expect_throws(kInvalid, {"register_backend"},
                  [&] { register_backend(std::make_unique<Named>(name)); });
  expect_throws(Status::NullPointer, {"register_backend"}, [] { register_backend(nullptr); });
}

}  // namespace
}  // namespace mblas::testing
