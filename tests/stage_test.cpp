// Host operands on a device backend, and device operands as they are: on a device that is not
// there, so that every machine tests it.
#include <gtest/gtest.h>

#include <vector>

#include "fake_device.hpp"
#include "support.hpp"
#include "sweep_cases.hpp"

namespace mblas::testing {
namespace {

using cases::Case;

constexpr std::size_t KiB = 1024;

class Stage : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_backend();
    fake_device().capacity = std::size_t{1} << 30;
    fake_device().lazy = true;
    fake_device().no_more_faults();
  }
  void TearDown() override {
    EXPECT_EQ(fake_device().take_misuse(), "");
    EXPECT_EQ(fake_device().used(), 0u) << "device memory was not given back";
  }
};

struct StageCase {
  std::string_view op;
  Types types;
};
void PrintTo(const StageCase& c, std::ostream* out) {
  *out << c.op << "_" << name_of(c.types.in) << "_" << name_of(c.types.out);
}

std::vector<StageCase> all_types() {
  std::vector<StageCase> list;
  for (const std::string_view op : {op_name<GemmArgs>, op_name<GeamArgs>, op_name<TransposeArgs>,
                                    op_name<TransposeInplaceArgs>, op_name<Gf256Args>})
    for (const Types& types : types_of(op)) list.push_back({op, types});
  return list;
}

class StageTypes : public Stage, public ::testing::WithParamInterface<StageCase> {
 protected:
  std::vector<Case> sample(int count) const {
    return sampled_cases(GetParam().op, GetParam().types, count);
  }
};

TEST_P(StageTypes, DeviceOperandsAreUsedAsTheyAre) {
  Context context("fake");
  const auto queue = fake_backend().make_queue({});
  fake_device().lazy = false;  // the operands' queue and the context's are two
  for (const Case& c : sample(80)) {
    const Result result = run_case(c, context, queue.get());
    ASSERT_NE(result.fate, Fate::Failed) << cases::command(cases::resolve(c)) << "\n"
                                         << result.text;
    EXPECT_EQ(context.last_dispatch().staged_blocks, 0);
  }
}

TEST_P(StageTypes, BlocksOfAnySizeGiveTheResult) {
  // From 64 KiB on everything but a whole rectangle in place must be possible; below, what a block
  // needs at least (a row of A and a column of B) may not fit. A column of bytes has rows of 16,
  // and where int8 products become float it is not cut.
  const bool whole_k = GetParam().types.in == DType::i8 && GetParam().types.out == DType::f32;
  const std::size_t enough = whole_k ? 128 * KiB : 64 * KiB;
  for (const std::size_t limit : {std::size_t{0}, 512 * KiB, 64 * KiB, 16 * KiB, 4 * KiB, KiB}) {
    for (const bool by_capacity : {false, true}) {
      Context context("fake");
      if (by_capacity && limit > 0)
        fake_device().capacity = limit * 10 / 9 + 1;
      else
        context.set_workspace_limit(limit);
      int ran = 0;
      for (const Case& c : sample(50)) {
        // Blocks of few elements would make a large problem take forever.
        if (limit > 0 && cases::footprint(cases::resolve(c)) > 64 * double(limit)) continue;
        const Result result = run_case(c, context);
        ran += result.fate == Fate::Ran;
        const bool may_lack =
            GetParam().op == op_name<TransposeInplaceArgs> || (limit > 0 && limit < enough);
        if (may_lack && (result.fate == Fate::Declined || result.status == Status::OutOfMemory))
          continue;
        ASSERT_TRUE(result.fate == Fate::Ran || result.fate == Fate::Nothing)
            << "limit " << limit << (by_capacity ? " by capacity: " : ": ")
            << cases::command(cases::resolve(c)) << "\n"
            << result.text;
        if (result.fate == Fate::Ran) {
          EXPECT_GE(context.last_dispatch().staged_blocks, 1);
          if (limit > 0) {
            EXPECT_LE(context.last_dispatch().workspace_bytes, limit);
          }
        }
      }
      EXPECT_GT(ran, limit == 0 || limit > KiB ? 0 : -1) << "limit " << limit;
      fake_device().capacity = std::size_t{1} << 30;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, StageTypes, ::testing::ValuesIn(all_types()),
                         ::testing::PrintToStringParamName());

/// Problems that need several blocks in 64 KiB, one for each way of staging.
std::vector<Case> several_blocks() {
  cases::GemmCase gemm{.m = 150, .n = 130, .k = 170, .lda = 0, .beta = {0.5, 0}};
  cases::GemmCase deep{.m = 9, .n = 7, .k = 6000, .ldc = 11, .beta = {1, 0}};
  cases::GemmCase strided{.m = 40, .n = 30, .k = 20, .beta = {1, 0}, .batch = 9, .strideB = 0};
  cases::GemmCase pointers = strided;
  pointers.strideB = cases::kPacked;
  pointers.pointers = true;
  cases::GemmCase half = gemm;
  half.in = half.out = DType::f16;
  cases::GemmCase columns = gemm;
  columns.layout = Layout::ColMajor;
  columns.transA = columns.transB = Op::Trans;
  columns.ldc = 163;
  cases::GemmCase rows = gemm;
  rows.bias = BiasPer::Row;
  rows.activation = Activation::Gelu;
  rows.scale = 2;
  cases::GemmCase deep_bias = deep;
  deep_bias.bias = BiasPer::Column;
  deep_bias.activation = Activation::Relu;
  cases::GemmCase half_bias = half;
  half_bias.layout = Layout::ColMajor;
  half_bias.bias = BiasPer::Row;
  cases::GemmCase integers = pointers;
  integers.in = DType::i8;
  integers.alpha = {0.25, 0};
  integers.bias = BiasPer::Column;
  cases::GeamCase geam{.transA = Op::Trans, .m = 150, .n = 131, .ldc = 140, .beta = {2, 0}};
  cases::GeamCase in_place{.m = 150, .n = 131, .beta = {2, 0}, .alias = cases::Alias::A};
  cases::TransposeCase transpose{.m = 150, .n = 131, .ldb = 160};
  cases::TransposeInplaceCase inplace{.m = 200, .n = 200, .lda = 210, .ldb = 210, .batch = 2};
  cases::Gf256Case gf{.m = 70, .n = 1000, .k = 90, .accumulate = true};
  cases::Gf256Case shards{.m = 4, .n = 20000, .k = 10, .pointers = true};
  return {gemm,      deep,     strided, pointers, half,      columns, rows, deep_bias,
          half_bias, integers, geam,    in_place, transpose, inplace, gf,   shards};
}

TEST_F(Stage, ProblemsAreCutIntoBlocks) {
  Context context("fake");
  context.set_workspace_limit(64 * KiB);
  for (const Case& c : several_blocks()) {
    const Result result = run_case(c, context);
    EXPECT_EQ(result.fate, Fate::Ran) << cases::command(cases::resolve(c)) << "\n" << result.text;
    EXPECT_GT(context.last_dispatch().staged_blocks, 2) << cases::command(cases::resolve(c));
  }
}

TEST_F(Stage, PanelsThatStayAreSentOnce) {
  Context context("fake");
  context.set_workspace_limit(64 * KiB);
  cases::GemmCase c{.m = 3000, .n = 20, .k = 20};  // every block has the same B
  fake_device().reset_counts();
  ASSERT_EQ(run_case(c, context).fate, Fate::Ran);
  const std::int64_t blocks = context.last_dispatch().staged_blocks;
  ASSERT_GT(blocks, 4);
  EXPECT_EQ(fake_device().copies_to_device, blocks + 2);  // A for each block, B for each lane
  EXPECT_EQ(fake_device().copies_to_host, blocks);
}

TEST_F(Stage, LongRowsAreCutIntoShortBlocks) {
  Context context("fake");
  ASSERT_EQ(run_case(cases::Gf256Case{.m = 1, .n = 8 << 20, .k = 1}, context).fate, Fate::Ran);
  // Three of 2 Mi columns, and one each of 1 Mi, 512 Ki, 256 Ki and 256 Ki.
  EXPECT_EQ(context.last_dispatch().staged_blocks, 7);
  ASSERT_EQ(run_case(cases::Gf256Case{.m = 8, .n = 1 << 20, .k = 8}, context).fate, Fate::Ran);
  EXPECT_EQ(context.last_dispatch().staged_blocks, 1);
}

TEST_F(Stage, NoAllocationAfterTheFirstCallOfAShape) {
  Context context("fake");
  for (const Case& c : several_blocks()) {
    ASSERT_EQ(run_case(c, context).fate, Fate::Ran);
    fake_device().reset_counts();
    ASSERT_EQ(run_case(c, context).fate, Fate::Ran);
    EXPECT_EQ(fake_device().allocations, 0) << cases::command(cases::resolve(c));
  }
}

TEST_F(Stage, OutOfDeviceMemoryLeavesCUnchanged) {
  for (const Case& c : several_blocks()) {
    for (int call = 0; call < 8; ++call) {
      Context context("fake");
      context.set_workspace_limit(64 * KiB);
      fake_device().fail(Entry::Allocate, call, Status::OutOfMemory);
      const Result result = run_case(c, context);
      EXPECT_TRUE(result.fate == Fate::Ran || result.status == Status::OutOfMemory ||
                  result.status == Status::NotSupported)
          << cases::command(cases::resolve(c)) << "\n"
          << result.text;
      fake_device().no_more_faults();
      if (!fake_device().failed()) break;
      EXPECT_EQ(run_case(c, context).fate, Fate::Ran) << "afterwards";
    }
    Context context("fake");
    fake_device().capacity = 100;
    EXPECT_NE(run_case(c, context).fate, Fate::Ran);
    EXPECT_FALSE(context.last_error().empty());
    fake_device().capacity = std::size_t{1} << 30;
    EXPECT_EQ(run_case(c, context).fate, Fate::Ran) << "afterwards";
  }
}

TEST_F(Stage, AFaultOfTheDeviceIsReportedAndLeavesTheContextUsable) {
  for (const bool lazy : {true, false}) {
    fake_device().lazy = lazy;
    for (const Case& c : several_blocks()) {
      const auto problem = cases::prepare(c);
      for (const Entry entry : {Entry::Copy, Entry::Run, Entry::Synchronize}) {
        for (int call = 0;; call += 1 + call / 2) {
          Context context("fake");
          context.set_workspace_limit(64 * KiB);
          cases::Run run(*problem);
          fake_device().fail(entry, call, Status::DeviceError);
          Status status = Status::Ok;
          try {
            run(context);
          } catch (const Error& e) {
            status = e.status();
          }
          fake_device().no_more_faults();
          if (!fake_device().failed()) {
            EXPECT_EQ(status, Status::Ok);
            break;
          }
          EXPECT_EQ(name_of(status), name_of(Status::DeviceError));
          // C is undefined now; everything else is as it was.
          for (std::size_t i = 0; i + 1 < run.operands().size(); ++i)
            EXPECT_EQ(run.operands()[i].fetch().check_unchanged(problem->operands()[i]), "");
          EXPECT_EQ(run.operands().back().fetch().check_untouched(problem->operands().back()), "");
          run.reset();
          run(context);
          const cases::Outcome outcome = run.verify();
          EXPECT_TRUE(outcome.ok) << cases::command(problem->description()) << outcome.message;
        }
      }
    }
  }
}

TEST_F(Stage, MixedPointersAreRefusedByName) {
  fake_device().lazy = false;  // operands are freed before the contexts
  Context context("fake");
  const auto queue = fake_backend().make_queue({});
  const cases::GemmCase c{.m = 8, .n = 8, .k = 8};
  const auto problem = cases::prepare(c);
  cases::Run host(*problem), device(*problem, queue.get());
  const auto at = [&](int operand, bool on_device) {
    return static_cast<float*>((on_device ? device : host).operands()[std::size_t(operand)].at());
  };
  const auto call = [&](Context& with, bool a, bool b, bool to) {
    gemm(with, Layout::RowMajor, Op::NoTrans, Op::NoTrans, 8, 8, 8, 1, at(0, a), 8, at(1, b), 8, 0,
         at(2, to), 8);
  };
  const auto unchanged = [&] {
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(host.operands()[i].fetch().check_unchanged(problem->operands()[i]), "");
      EXPECT_EQ(device.operands()[i].fetch().check_unchanged(problem->operands()[i]), "");
    }
  };
  expect_throws(Status::WrongMemory, {"gemm", "B is in host memory", "A is in", "fake"},
                [&] { call(context, true, false, false); });
  expect_throws(Status::WrongMemory, {"C is in host memory", "fake"},
                [&] { call(context, true, true, false); });
  expect_throws(Status::WrongMemory, {"C is in", "fake", "A is in host memory"},
                [&] { call(context, false, false, true); });
  unchanged();
  Context cpu("openmp");
  expect_throws(Status::WrongMemory, {"gemm", "A is in", "fake", "openmp", "host memory only"},
                [&] { call(cpu, true, true, true); });
  Context several("openmp,fake");
  call(several, true, true, true);
  EXPECT_EQ(several.last_dispatch().backend, "fake");
  Context automatic("auto");
  call(automatic, true, true, true);
  EXPECT_EQ(automatic.last_dispatch().backend, "fake");
  call(automatic, false, false, false);
  EXPECT_EQ(automatic.last_dispatch().backend, backends().front()->name());
  call(context, true, true, true);  // still usable
}

// In a process of its own: the device must come after the first call.
TEST(Later, MemoryOfADeviceThatComesLaterIsRefused) {
  Context context("openmp");
  std::vector<float> host(48, 1);
  const auto call = [&](const float* A) {
    gemm(context, Layout::RowMajor, Op::NoTrans, Op::NoTrans, 4, 4, 4, 1, A, 4, host.data() + 16, 4,
         0, host.data() + 32, 4);
  };
  call(host.data());
  EXPECT_EQ(host[32], 4);
  const auto queue = fake_backend().make_queue({});
  auto* const device = static_cast<float*>(queue->allocate(16 * sizeof(float)));
  expect_throws(Status::WrongMemory, {"A is in", "fake"}, [&] { call(device); });
  call(host.data());
  queue->deallocate(device);
}

TEST_F(Stage, PointersOfABatchAreCheckedOneByOne) {
  Context context("fake");
  const auto queue = fake_backend().make_queue({});
  std::vector<float> host(64, 1);
  auto* device = static_cast<float*>(queue->allocate(64 * sizeof(float)));
  const std::vector<const float*> A{device, host.data()}, B{device + 16, device + 20};
  const std::vector<float*> C{device + 32, device + 36};
  expect_throws(Status::WrongMemory, {"gemm", "A is in host memory", "fake"}, [&] {
    gemm_batched(context, Layout::RowMajor, Op::NoTrans, Op::NoTrans, 2, 2, 2, 1, A, 2, B, 2, 0, C,
                 2);
  });
  queue->deallocate(device);
}

TEST_F(Stage, Gf256TakesItsCoefficientsFromTheHost) {
  const auto queue = fake_backend().make_queue({});
  fake_device().lazy = false;
  Context context("fake");
  const cases::Gf256Case c{.m = 4, .n = 500, .k = 10, .pointers = true};
  EXPECT_EQ(run_case(c, context, queue.get()).fate, Fate::Ran);
}

TEST_F(Stage, SettingADeviceThatIsNotThere) {
  Context context("fake");
  expect_throws(Status::InvalidArgument, {"set_device", "1", "fake"},
                [&] { context.set_device(1); });
  expect_throws(Status::InvalidArgument, {"set_device", "-1"}, [&] { context.set_device(-1); });
  EXPECT_EQ(run_case(cases::GemmCase{}, context).fate, Fate::Ran);
}

TEST_F(Stage, WorkspaceOfGraphsOutlivesTheContextsUseOfTheirStream) {
  const auto queue = fake_backend().make_queue({});
  fake_device().lazy = false;
  int streams[2];
  Context context("fake");
  const auto call = [&] {
    EXPECT_EQ(run_case(cases::GemmCase{}, context, queue.get()).fate, Fate::Ran);
  };
  context.set_stream(&streams[0]);
  call();
  const std::size_t one = fake_device().used();
  ASSERT_GT(one, 0u);
  context.set_stream(&streams[1]);
  EXPECT_EQ(fake_device().used(), 0u) << "no graph was captured";
  context.set_stream(&streams[0]);
  call();
  fake_device().capturing = true;
  call();
  fake_device().capturing = false;
  context.set_stream(&streams[1]);
  EXPECT_EQ(fake_device().used(), one);
  call();
  EXPECT_EQ(fake_device().used(), 2 * one);
  context.set_stream(&streams[0]);
  call();
  EXPECT_EQ(fake_device().used(), one) << "there it is used again";
  context.set_device(0);
  EXPECT_EQ(fake_device().used(), one);
}

TEST_F(Stage, VerificationReadsDeviceMemory) {
  const auto queue = fake_backend().make_queue({});
  fake_device().lazy = false;
  Context context("fake");
  context.set_verify("openmp");
  for (const Case& c : several_blocks()) {
    const Result device = run_case(c, context, queue.get()), host = run_case(c, context);
    EXPECT_EQ(device.fate, Fate::Ran) << device.text;
    EXPECT_EQ(host.fate, Fate::Ran) << host.text;
  }
}

}  // namespace
}  // namespace mblas::testing
