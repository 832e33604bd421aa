// A backend that a program brings along, as docs/ADDING_A_BACKEND.md builds it.
#include <gtest/gtest.h>

#include "example_backend.hpp"
#include "support.hpp"
#include "sweep_cases.hpp"

namespace mblas::testing {
namespace {

struct ProgramsBackend : ::testing::Test {
  static void SetUpTestSuite() { register_backend(make_reference_backend()); }
};

TEST_F(ProgramsBackend, ComputesWhatItsTableSays) {
  Context context("reference");
  for (const Types& types : types_of(op_name<GemmArgs>)) {
    int ran = 0, declined = 0;
    for (const cases::Case& c : sampled_cases(op_name<GemmArgs>, types, 60)) {
      const Result result = run_case(c, context);
      ASSERT_NE(result.fate, Fate::Failed) << cases::command(cases::resolve(c)) << result.text;
      ran += result.fate == Fate::Ran;
      declined += result.fate == Fate::Declined;
    }
    const bool takes = types.in == DType::f32 || types.in == DType::f64;
    EXPECT_EQ(ran > 0, takes) << name_of(types.in);
    EXPECT_EQ(declined > 0, !takes) << name_of(types.in);
  }
  EXPECT_EQ(run_case(cases::GeamCase{}, context).fate, Fate::Declined);
}

TEST_F(ProgramsBackend, IsPartOfEveryList) {
  EXPECT_EQ(&find_backend("reference"), backends().back());
  expect_throws(Status::UnknownName, {"reference", "openmp"}, [] { find_backend("referense"); });
  expect_throws(Status::InvalidArgument, {"'reference' is taken"},
                [] { register_backend(make_reference_backend()); });
  Context context("reference,openmp");
  EXPECT_EQ(run_case(cases::GemmCase{}, context).fate, Fate::Ran);
  EXPECT_EQ(context.last_dispatch().backend, "reference");
  EXPECT_EQ(context.last_dispatch().kernel, "naive");
  EXPECT_EQ(run_case(cases::GemmCase{.in = DType::f16, .out = DType::f16}, context).fate,
            Fate::Ran);
  EXPECT_EQ(context.last_dispatch().backend, "openmp");
  ASSERT_FALSE(context.last_dispatch().declined.empty());
  EXPECT_EQ(context.last_dispatch().declined[0].backend, "reference");
  EXPECT_EQ(context.last_dispatch().declined[0].reason, "multiplies float and double only");
}

TEST_F(ProgramsBackend, VerifiesAndIsVerified) {
  for (const auto& [works, checks] : {std::pair{"reference", "openmp"}, {"openmp", "reference"}}) {
    Context context(works);
    context.set_verify(checks);
    for (const cases::Case& c : sampled_cases(op_name<GemmArgs>, {DType::f32, DType::f32}, 40)) {
      const Result result = run_case(c, context);
      ASSERT_NE(result.fate, Fate::Failed) << cases::command(cases::resolve(c)) << result.text;
      if (result.fate == Fate::Ran) {
        EXPECT_EQ(context.last_dispatch().backend, works);
      }
    }
  }
}

TEST_F(ProgramsBackend, VerificationOfEveryOperation) {
  Context context("openmp");
  context.set_verify("openmp");
  for (const std::string_view op : {op_name<GemmArgs>, op_name<GeamArgs>, op_name<TransposeArgs>,
                                    op_name<TransposeInplaceArgs>, op_name<Gf256Args>})
    for (const Types& types : types_of(op))
      for (const cases::Case& c : sampled_cases(op, types, 25)) {
        const Result result = run_case(c, context);
        ASSERT_NE(result.fate, Fate::Failed) << cases::command(cases::resolve(c)) << result.text;
      }
}

}  // namespace
}  // namespace mblas::testing
