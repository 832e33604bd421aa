// The checks must find what is wrong: faults are planted in right results, one at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "oracle.hpp"
#include "problem.hpp"
#include "support.hpp"
#include "sweep_cases.hpp"

namespace mblas::testing {
namespace {

using cases::Buffer;
using cases::Case;
using cases::Placed;

/// Runs the case, lets `plant` spoil the written operand, and returns what verify() says then.
template <class Plant>
std::string spoiled(const Case& c, Plant&& plant) {
  const auto problem = cases::prepare(c);
  cases::Run run(*problem);
  Context context("openmp");
  run(context);
  EXPECT_TRUE(run.verify().ok) << run.verify().message;
  // fetch() of host memory is the memory itself.
  plant(const_cast<Buffer&>(run.operands().back().fetch()));
  const cases::Outcome outcome = run.verify();
  EXPECT_EQ(outcome.ok, outcome.message.empty());
  return outcome.message;
}

void flip(void* p) { *static_cast<unsigned char*>(p) ^= 0x41; }

cases::GemmCase product(DType in, DType out) {
  return {.in = in, .out = out, .m = 17, .n = 19, .k = 23, .ldc = 21, .batch = 3};
}

template <class T>
void expect_wrong_elements_found(const cases::GemmCase& c, T wrong) {
  for (const std::int64_t b : {0, 1, 2})
    for (const std::int64_t i : {0, 8, 16})
      for (const std::int64_t j : {0, 9, 18}) {
        const std::string message =
            spoiled(c, [&](Buffer& C) { static_cast<T*>(C.line(b, i))[j] = wrong; });
        EXPECT_NE(message.find("matrix " + std::to_string(b) + ", element (" + std::to_string(i) +
                               ", " + std::to_string(j) + ")"),
                  std::string::npos)
            << "'" << message << "'";
      }
}

TEST(PlantedFaults, AWrongElementOfAnyEntry) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto infinity = std::numeric_limits<float>::infinity();
  for (const float wrong : {1e6f, nan, infinity, -infinity})
    expect_wrong_elements_found(product(DType::f32, DType::f32), wrong);
  expect_wrong_elements_found(product(DType::f64, DType::f64), std::nan(""));
  expect_wrong_elements_found(product(DType::f16, DType::f16), half(300.0f));
  expect_wrong_elements_found(product(DType::bf16, DType::bf16), bfloat16(nan));
  expect_wrong_elements_found(product(DType::i8, DType::i32), std::int32_t(1 << 30));
  expect_wrong_elements_found(product(DType::cf32, DType::cf32), std::complex<float>(0, 1e4f));
  expect_wrong_elements_found(product(DType::cf64, DType::cf64),
                              std::complex<double>(0, std::nan("")));
}

TEST(PlantedFaults, AnElementJustOutsideTheBound) {
  cases::GemmCase c = product(DType::f32, DType::f32);
  c.data = cases::Data::Positive;  // |A||B| is the result itself
  const double bound = gemm_bound(c.in, c.out, c.k, 1, 1);
  for (const double part : {0.25, 4.0}) {
    const std::string message = spoiled(c, [&](Buffer& C) {
      auto& x = static_cast<float*>(C.line(1, 5))[7];
      x = float(double(x) * (1 + part * bound));
    });
    EXPECT_EQ(message.empty(), part < 1) << message;
  }
}

TEST(PlantedFaults, SwappedEntriesOfABatch) {
  const cases::GemmCase c = product(DType::f32, DType::f32);
  EXPECT_NE(spoiled(c,
                    [&](Buffer& C) {
                      for (std::int64_t i = 0; i < c.m; ++i)
                        std::swap_ranges(static_cast<float*>(C.line(1, i)),
                                         static_cast<float*>(C.line(1, i)) + c.n,
                                         static_cast<float*>(C.line(2, i)));
                    }),
            "");
}

TEST(PlantedFaults, ATouchedGuardOrPadding) {
  cases::TransposeCase transpose{.type = DType::b2, .m = 17, .n = 19, .ldb = 20, .batch = 2};
  cases::TransposeInplaceCase inplace{.m = 17, .n = 19, .ldb = 20, .batch = 2};
  cases::GeamCase geam{.m = 17, .n = 19, .ldc = 22, .batch = 2};
  cases::Gf256Case gf{.m = 5, .n = 19, .k = 4, .ldc = 22};
  for (const Case& c : {Case(product(DType::f32, DType::f32)), Case(transpose), Case(inplace),
                        Case(geam), Case(gf)}) {
    const auto find = [&](const char* what, auto&& plant) {
      EXPECT_NE(spoiled(c, plant).find(what), std::string::npos)
          << cases::command(cases::resolve(c)) << ": " << spoiled(c, plant);
    };
    find("guard, 1 bytes before", [](Buffer& C) { flip(static_cast<std::byte*>(C.at()) - 1); });
    find("guard", [](Buffer& C) { flip(&C.bytes().front()); });
    find("guard", [](Buffer& C) { flip(&C.bytes().back()); });
  }
  for (const Case& c :
       {Case(product(DType::f32, DType::f32)), Case(transpose), Case(geam), Case(gf)}) {
    const std::string message = spoiled(c, [](Buffer& C) {
      const cases::Shape& s = C.shape();
      flip(static_cast<std::byte*>(C.line(0, 2)) + s.length * size_of(s.type));
    });
    EXPECT_NE(message.find("line 2"), std::string::npos) << message;
  }
}

TEST(PlantedFaults, AChangedInput) {
  const auto problem = cases::prepare(product(DType::f64, DType::f64));
  for (const std::size_t input : {0, 1}) {
    cases::Run run(*problem);
    Context context("openmp");
    run(context);
    const Buffer& content = run.operands()[input].fetch();
    flip(const_cast<Buffer&>(content).at(1));
    EXPECT_NE(run.verify().message.find("input " + std::to_string(input) + " changed"),
              std::string::npos);
  }
}

TEST(PlantedFaults, EveryElementOfSmallResultsOfEveryOperation) {
  for (const std::string_view op : {op_name<GeamArgs>, op_name<TransposeArgs>,
                                    op_name<TransposeInplaceArgs>, op_name<Gf256Args>})
    for (const Types& types : types_of(op)) {
      Case c = cases::make_case(op);
      std::visit(
          [&](auto& d) {
            d.m = d.n = 5;
            if constexpr (requires { d.k; }) d.k = 3;
            if constexpr (requires { d.type; }) d.type = types.in;
          },
          c);
      for (std::int64_t i = 0; i < 5; ++i)
        for (std::int64_t j = 0; j < 5; ++j) {
          const std::string message = spoiled(c, [&](Buffer& C) {
            // The last byte holds the sign and most of the exponent.
            const int size = size_of(types.in);
            flip(static_cast<std::byte*>(C.line(0, i)) + (j + 1) * size - 1);
          });
          EXPECT_NE(message, "") << op << " " << name_of(types.in) << " " << i << " " << j;
        }
    }
}

/// Elements of a result.
struct Part {
  std::int64_t i, j, rows = 1, cols = 1;
};
/// Adds `error` to one part at a time of a result that verification samples, which is to find it.
void expect_found_in_sample(const cases::GemmCase& c, std::span<const Part> parts, float error) {
  const auto problem = cases::prepare(c, 1 << 20);
  cases::Run run(*problem);
  Context context("openmp");
  run(context);
  ASSERT_TRUE(run.verify().ok);
  ASSERT_TRUE(run.verify().sampled);
  auto& C = const_cast<Buffer&>(run.operands().back().fetch());
  const Buffer right = C.clone();
  for (const Part& part : parts) {
    for (std::int64_t i = part.i; i < part.i + part.rows; ++i)
      for (std::int64_t j = part.j; j < part.j + part.cols; ++j)
        static_cast<float*>(C.line(0, i))[j] += error;
    EXPECT_FALSE(run.verify().ok) << part.i << " " << part.j;
    std::ranges::copy(right.bytes(), C.bytes().begin());
  }
  EXPECT_TRUE(run.verify().ok);
}

TEST(PlantedFaults, CornersAndEdgesOfSampledResults) {
  constexpr Part kParts[] = {{0, 0},   {0, 599},   {699, 0}, {699, 599},
                             {350, 0}, {350, 599}, {0, 300}, {699, 300}};
  expect_found_in_sample({.m = 700, .n = 600, .k = 300}, kParts, 1);
}

// A part of a tile of 64×64 elements that is wrong does not go unnoticed.
TEST(PlantedFaults, PartsOfSampledResults) {
  constexpr std::int64_t kSide = 64;
  const cases::GemmCase c{.m = 700, .n = 600, .k = 300};
  std::vector<Part> parts;
  for (std::int64_t i = 1; i + kSide < c.m; i += kSide)
    for (std::int64_t j = 1; j + kSide < c.n; j += kSide) parts.push_back({i, j, kSide, kSide});
  expect_found_in_sample(c, parts, 1024);
}

TEST(Cases, TheCommandOfACaseMakesTheCaseAgain) {
  for (const std::string_view op : {op_name<GemmArgs>, op_name<GeamArgs>, op_name<TransposeArgs>,
                                    op_name<TransposeInplaceArgs>, op_name<Gf256Args>})
    for (const Types& types : types_of(op))
      for (const Case& c : sampled_cases(op, types, 10))
        EXPECT_EQ(cases::command(c).substr(0, op.size() + 1), std::string(op) + " ");
  EXPECT_THROW(cases::make_case("gamm"), std::invalid_argument);
}

TEST(Operands, FormulasAreOfTheMatricesAfterOp) {
  for (const Layout layout : {Layout::RowMajor, Layout::ColMajor}) {
    for (const Op op : {Op::NoTrans, Op::Trans}) {
      const cases::GemmCase c = cases::resolve({.in = DType::f64,
                                                .out = DType::f64,
                                                .layout = layout,
                                                .transA = op,
                                                .transB = op,
                                                .m = 5,
                                                .n = 6,
                                                .k = 7,
                                                .data = cases::Data::Formulas});
      const auto problem = cases::prepare(c);
      const auto operands = problem->operands();
      const auto A = cases::view_of<double>(operands[0].at(0), layout, op, c.lda);
      const auto B = cases::view_of<double>(operands[1].at(0), layout, op, c.ldb);
      EXPECT_EQ(A.at(0, 0), 1);
      EXPECT_EQ(A.at(4, 6), (4 - 0.1 * 6 + 1) / 11);
      EXPECT_EQ(A.at(3, 0), 1);
      EXPECT_EQ(B.at(6, 5), (5 - 0.2 * 6 + 1) * 12 / (36 + 25 + 1));
      EXPECT_EQ(B.at(0, 2), 3 * 3 / 5.0);
    }
  }
}

TEST(Operands, AreScaledAndCancelAfterOp) {
  for (const Op op : {Op::NoTrans, Op::Trans}) {
    cases::GemmCase c;
    c.m = 5, c.n = 6, c.k = 7;
    c.transA = c.transB = op;
    const auto with = [&](cases::Data data, auto&& check) {
      c.data = data;
      const cases::GemmCase resolved = cases::resolve(c);
      const auto problem = cases::prepare(resolved);
      const auto operands = problem->operands();
      check(cases::view_of<float>(operands[0].at(0), c.layout, op, resolved.lda),
            cases::view_of<float>(operands[1].at(0), c.layout, op, resolved.ldb));
    };
    with(cases::Data::Uniform, [&](const auto& A, const auto& B) {
      const float a = A.at(3, 2), b = B.at(2, 3), a_low = A.at(2, 3);
      with(cases::Data::Scaled, [&](const auto& scaled, const auto& same) {
        EXPECT_EQ(scaled.at(3, 2), a * 0x1p100f);
        EXPECT_EQ(scaled.at(2, 3), a_low * 0x1p-100f);
        EXPECT_EQ(same.at(2, 3), b);
      });
      with(cases::Data::Cancelling, [&](const auto& signs, const auto& near) {
        EXPECT_EQ(signs.at(3, 2), a);
        EXPECT_EQ(signs.at(3, 3), -a);
        EXPECT_EQ(near.at(2, 3), b);
        EXPECT_EQ(near.at(3, 3), std::nextafter(b, 2.f));
      });
    });
  }
}

}  // namespace
}  // namespace mblas::testing
