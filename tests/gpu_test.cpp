// What the sweep does not reach on a device: pointers on the wrong side, operands larger than the
// workspace or than 2^31 elements, several contexts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "support.hpp"
#include "sweep_cases.hpp"

namespace mblas::testing {
namespace {

class Gpu : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    Backend& backend = find_backend(GetParam());
    if (const std::string& reason = backend.unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    queue = backend.make_queue({});
  }
  /// By the kernels of `spec`, against the oracle.
  void expect_correct(cases::Problem& problem, const std::string& spec) {
    cases::Run run(problem, queue.get());
    Context context(GetParam());
    context.set_kernel(spec);
    run(context);
    const cases::Outcome outcome = run.verify();
    EXPECT_TRUE(outcome.ok) << cases::command(problem.description()) << " " << spec
                            << outcome.message;
  }
  std::unique_ptr<Queue> queue;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Gpu);

std::vector<std::string> device_backends() {
  std::vector<std::string> names;
  for (Backend* backend : backends())
    if (backend->memory() == Memory::Device) names.emplace_back(backend->name());
  return names;
}

std::vector<cases::Case> some_of_each(int count) {
  std::vector<cases::Case> all;
  for (const std::string_view op :
       {op_name<GemmArgs>, op_name<GeamArgs>, op_name<TransposeArgs>, op_name<Gf256Args>})
    for (const Types& types : types_of(op))
      for (cases::Case& c : sampled_cases(op, types, count)) all.push_back(std::move(c));
  return all;
}

TEST_P(Gpu, PointersOnTheWrongSide) {
  const auto problem = cases::prepare(cases::GemmCase{.m = 8, .n = 8, .k = 8});
  cases::Run host(*problem), device(*problem, queue.get());
  const auto call = [&](Context& context, bool a, bool b, bool c) {
    const auto at = [&](int operand, bool on_device) {
      return static_cast<float*>((on_device ? device : host).operands()[std::size_t(operand)].at());
    };
    gemm(context, R, Op::NoTrans, Op::NoTrans, 8, 8, 8, 1, at(0, a), 8, at(1, b), 8, 0, at(2, c),
         8);
  };
  Context context(GetParam()), cpu("openmp"), automatic("auto");
  expect_throws(Status::WrongMemory, {"gemm", "B is in host memory", "A is in"},
                [&] { call(context, true, false, true); });
  expect_throws(Status::WrongMemory, {"gemm", "C is in host memory"},
                [&] { call(context, true, true, false); });
  expect_throws(Status::WrongMemory, {"gemm", "openmp", "host memory only"},
                [&] { call(cpu, true, true, true); });
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(host.operands()[i].fetch().check_unchanged(problem->operands()[i]), "");
    EXPECT_EQ(device.operands()[i].fetch().check_unchanged(problem->operands()[i]), "");
  }
  call(context, true, true, true);
  EXPECT_TRUE(device.verify().ok);
  call(context, false, false, false);
  EXPECT_GT(context.last_dispatch().staged_blocks, 0);
  EXPECT_TRUE(host.verify().ok);
  call(automatic, true, true, true);
  EXPECT_EQ(find_backend(automatic.last_dispatch().backend).memory(), Memory::Device);
}

TEST_P(Gpu, HostOperandsLargerThanTheWorkspace) {
  Context context(GetParam());
  for (const std::size_t limit : {std::size_t{1} << 20, std::size_t{1} << 16}) {
    context.set_workspace_limit(limit);
    for (const cases::Case& c : some_of_each(4)) {
      if (cases::footprint(cases::resolve(c)) > 64 * double(limit)) continue;
      const Result result = run_case(c, context);
      const bool lacks = result.fate == Fate::Declined || result.status == Status::OutOfMemory;
      EXPECT_TRUE(result.fate != Fate::Failed || lacks)
          << limit << ": " << cases::command(cases::resolve(c)) << "\n"
          << result.text;
    }
    const Result result = run_case(cases::GemmCase{.m = 500, .n = 400, .k = 300}, context);
    if (GetParam() == "cublas") {  // whose every row has a workspace of megabytes
      EXPECT_EQ(result.fate, Fate::Declined);
      EXPECT_NE(result.text.find("workspace"), std::string::npos) << result.text;
      continue;
    }
    EXPECT_EQ(result.fate, Fate::Ran) << result.text;
    EXPECT_GT(context.last_dispatch().staged_blocks, 1);
  }
}

// A row that packs its operands takes them in blocks of k, of the columns and of the rows.
TEST_P(Gpu, ProductsOverGf256InBlocks) {
  for (const Kernel<Gf256Args>& kernel : find_backend(GetParam()).gf256_kernels()) {
    Context context(GetParam());
    context.set_kernel("gf256=" + std::string(kernel.name));
    for (const auto& [m, n] : {std::pair{70, 5500}, std::pair{5500, 70}}) {
      const cases::Gf256Case c{.m = m, .n = n, .k = 8300, .ldc = n + 3, .accumulate = m < n};
      const Result result = run_case(c, context, queue.get());
      EXPECT_NE(result.fate, Fate::Failed) << kernel.name << ": " << result.text;
    }
  }
}

TEST_P(Gpu, VerificationReadsDeviceMemory) {
  Context context(GetParam());
  context.set_verify("openmp");
  for (const cases::Case& c : some_of_each(3)) {
    const Result result = run_case(c, context, queue.get());
    EXPECT_NE(result.fate, Fate::Failed) << cases::command(cases::resolve(c)) << result.text;
  }
}

TEST_P(Gpu, ContextsInSeveralThreads) {
  const std::vector<cases::Case> all = some_of_each(3);
  std::vector<std::string> failures(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < failures.size(); ++t)
    threads.emplace_back([&, t] {
      Context context(GetParam());
      const auto own = find_backend(GetParam()).make_queue({});
      for (std::size_t i = t; i < all.size() && failures[t].empty(); ++i) {
        const Result result = run_case(all[i], context, i % 2 ? own.get() : nullptr);
        if (result.fate == Fate::Failed)
          failures[t] = cases::command(cases::resolve(all[i])) + ": " + result.text;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

/// Repeats a call that has been run once, up to `runs` in all: the number of the first whose result
/// is not the same, or 0.
int first_that_differs(cases::Run& run, Context& context, int runs) {
  const cases::Buffer first = run.operands().back().fetch().clone();
  for (int r = 1; r < runs; ++r) {
    run(context);
    if (run.operands().back().fetch().check_unchanged(first) != "") return r;
  }
  return 0;
}

// While other contexts keep the device busy: a sum whose order depended on which block comes first
// would show.
TEST_P(Gpu, SameBitsUnderLoad) {
  if (GetParam() != "cuda") GTEST_SKIP() << "promised of the library's own backends";
  constexpr std::int64_t kShapes[][3] = {{300, 290, 310}, {64, 64, 20000}, {1, 3000, 1500},
                                         {16, 200, 9000}, {31, 29, 27},    {700, 900, 130},
                                         {384, 768, 4096}};
  constexpr DType kTypes[] = {DType::f32, DType::f64, DType::cf32, DType::cf64, DType::bf16};
  constexpr int kRepeats = 100;
  std::vector<cases::GemmCase> all;
  for (const auto& [m, n, k] : kShapes)
    for (const DType type : kTypes)
      all.push_back({.in = type, .out = type, .m = m, .n = n, .k = k, .batch = m < 32 ? 50 : 1});
  std::vector<std::string> failures(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < failures.size(); ++t)
    threads.emplace_back([&, t] {
      const auto own = find_backend(GetParam()).make_queue({.own_stream = true});
      Context context(GetParam());
      context.set_stream(stream_of(*own));
      for (std::size_t i = t; i < all.size() && failures[t].empty(); i += failures.size()) {
        const auto problem = cases::prepare(all[i], 0);
        cases::Run run(*problem, own.get());
        run(context);
        if (const int r = first_that_differs(run, context, kRepeats))
          failures[t] =
              cases::command(problem->description()) + " differs in run " + std::to_string(r);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

// Large enough for every multiprocessor to wait for memory now and then. Of results of that size a
// sample is verified; what a race spoils elsewhere is not the same each time.
TEST_P(Gpu, LargeProductsAreTheSameEachTime) {
  if (GetParam() != "cuda") GTEST_SKIP() << "promised of the library's own backends";
  constexpr int kRepeats = 8;
  struct Kind {
    DType type;
    Compute compute = Compute::Default;
    std::int64_t size = 3072;
  };
  // bf16 1536 has tiles of its own.
  constexpr Kind kKinds[] = {{DType::f32},
                             {DType::f32, Compute::Pedantic},
                             {DType::f32, Compute::TF32},
                             {DType::f32, Compute::FP16x3},
                             {DType::f64},
                             {DType::f64, Compute::OzakiFP64},
                             {DType::cf32, Compute::Default, 2048},
                             {DType::cf32, Compute::Pedantic, 2048},
                             {DType::cf64, Compute::Default, 2048},
                             {DType::bf16},
                             {DType::bf16, Compute::Default, 1536},
                             {DType::i8}};
  for (const auto& [type, compute, size] : kKinds)
    for (const Op a : {Op::NoTrans, Op::Trans})
      for (const Op b : {Op::NoTrans, Op::Trans}) {
        const auto problem =
            cases::prepare(cases::GemmCase{.in = type,
                                           .out = type == DType::i8 ? DType::i32 : type,
                                           .transA = a,
                                           .transB = b,
                                           .m = size,
                                           .n = size - 64,
                                           .k = size,
                                           .compute = compute});
        cases::Run run(*problem, queue.get());
        Context context(GetParam());
        run(context);
        const cases::Outcome outcome = run.verify();
        ASSERT_TRUE(outcome.ok) << cases::command(problem->description()) << outcome.message;
        ASSERT_EQ(first_that_differs(run, context, kRepeats), 0)
            << cases::command(problem->description());
      }
}

/// m×n×k of one type.
cases::GemmCase product_of(DType type, Op a, Op b, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.in = type, .out = type, .transA = a, .transB = b, .m = m, .n = n, .k = k};
}

/// Copies that turn operands, one or both: tiles that rows end in, from rows at multiples of 16
/// bytes and from anywhere, in batches and of a matrix that all of one share. Of 16 bits tiles that
/// want both along k, or neither.
TEST_P(Gpu, TransposedCopies) {
  if (GetParam() != "cuda") GTEST_SKIP() << "for tensor_wgmma and tensor_mma";
  struct Kind {
    DType in, out;
    Compute compute;
    const char* kernel;
  };
  constexpr Kind kKinds[] = {
      {DType::i8, DType::i32, Compute::Default, "gemm=tensor_wgmma"},
      {DType::i8, DType::i32, Compute::Default, "gemm=tensor_mma"},
      {DType::f32, DType::f32, Compute::TF32, "gemm=tensor_wgmma:64x128"},
      {DType::f32, DType::f32, Compute::TF32, "gemm=tensor_mma"},
      {DType::bf16, DType::bf16, Compute::Default, "gemm=tensor_wgmma:112x128"},
      {DType::f16, DType::f16, Compute::Default, "gemm=tensor_wgmma:160x128"},
  };
  constexpr std::int64_t kShapes[][3] = {{257, 131, 300}, {272, 144, 128}, {40, 1000, 37}};
  constexpr Op kN = Op::NoTrans, kT = Op::Trans;
  constexpr std::pair<Op, Op> kOps[] = {{kT, kN}, {kN, kN}, {kT, kT}};
  for (const Kind& kind : kKinds) {
    const std::string kernel = kind.kernel;
    if (queue->device().capability != 90 && kernel.starts_with("gemm=tensor_wgmma")) continue;
    for (const auto& [m, n, k] : kShapes)
      for (const auto& [a, b] : kOps)
        for (const std::int64_t ld : {1008, 1011})
          for (const std::int64_t batch : {1, 3})
            for (const std::int64_t offset : {0, 1}) {
              const bool half = size_of(kind.in) == 2;  // C goes out as boxes
              if (half && offset > 0) continue;
              const std::int64_t cols = half ? (n + 7) / 8 * 8 : n;
              cases::GemmCase c = product_of(kind.in, a, b, m, cols, k);
              c.out = kind.out;
              c.compute = kind.compute;
              c.lda = c.ldb = ld;
              c.batch = batch;
              if (batch > 1 && offset == 0) c.strideB = 0;
              c.offset = offset;
              expect_correct(*cases::prepare(c), kernel);
            }
  }
}

TEST_P(Gpu, ForcedTilesInBatches) {
  if (GetParam() != "cuda" || queue->device().capability != 90) GTEST_SKIP() << "for tensor_wgmma";
  for (const char* config : {"128x112",          "128x144_cluster2",
                             "128x144_cluster4", "128x80_cluster4",
                             "128x176_slices2",  "64x128_joined2",
                             "64x128_joined3",   "128x64",
                             "128x64_joined2",   "64x112_joined3",
                             "64x96_joined2",    "128x64_cluster2",
                             "128x64_cluster4",  "64x64",
                             "64x64_cluster2",   "64x64_cluster4",
                             "64x64_slices3",    "64x64_joined2",
                             "64x192",           "64x192_cluster2",
                             "64x192_slices3",   "192x64",
                             "192x64_cluster4"})
    for (const auto& [a, b] :
         {std::pair{Op::NoTrans, Op::Trans}, {Op::Trans, Op::Trans}, {Op::Trans, Op::NoTrans}}) {
      if (b == Op::NoTrans && std::string(config).find("joined") != std::string::npos) continue;
      cases::GemmCase c = product_of(DType::bf16, a, b, 200, 328, 1536);
      c.batch = 2;
      const auto problem = cases::prepare(c);
      expect_correct(*problem, std::string("gemm=tensor_wgmma:") + config);
    }
}

/// What of a tile of 128 rows lies beyond C is not multiplied, in units of 64: C that ends around
/// each of them, of whole tiles and of slices.
TEST_P(Gpu, TilesThatCEndsIn) {
  if (GetParam() != "cuda" || queue->device().capability != 90) GTEST_SKIP() << "for tensor_wgmma";
  struct Kind {
    DType in, out;
    Compute compute;
  };
  constexpr Kind kKinds[] = {{DType::bf16, DType::bf16, Compute::Default},
                             {DType::f16, DType::f16, Compute::Default},
                             {DType::i8, DType::i32, Compute::Default},
                             {DType::f32, DType::f32, Compute::TF32}};
  constexpr Op kN = Op::NoTrans, kT = Op::Trans;
  const auto expect_each = [&](const Kind& kind, Op a, Op b, const char* config, std::int64_t cols,
                               std::int64_t step) {
    for (std::int64_t m = 64 - step; m <= 64 + step; m += step)
      for (std::int64_t n = 64; n <= cols + 64; n += 64)
        for (const std::int64_t beyond : {-step, std::int64_t(0), step}) {
          cases::GemmCase c = product_of(kind.in, a, b, 128 + m, n + beyond, 520);
          c.out = kind.out;
          c.compute = kind.compute;
          expect_correct(*cases::prepare(c), std::string("gemm=tensor_wgmma:") + config);
        }
  };
  for (const Kind& kind : kKinds)
    for (const auto& [a, b] : {std::pair{kN, kN}, {kN, kT}, {kT, kN}, {kT, kT}}) {
      for (const char* config : {"128x256", "128x256_cluster2", "128x256_slices2"})
        expect_each(kind, a, b, config, 256, 1);
      expect_each(kind, a, b, "128x192", 192, 1);
      expect_each(kind, a, b, "128x128", 128, 1);
      if (kind.in != DType::bf16) continue;
      expect_each(kind, a, b, "128x240", 240, 8);
      expect_each(kind, a, b, "128x208_slices2", 208, 8);
      expect_each(kind, a, b, "128x176", 176, 8);
      expect_each(kind, a, b, "128x160", 160, 8);
    }
}

/// An epilogue by every tile of 16 bits: whole ones and those that C ends in, of C and of C^T,
/// slices that a second kernel or a cluster adds up, clusters across.
TEST_P(Gpu, ForcedTilesWithEpilogues) {
  if (GetParam() != "cuda" || queue->device().capability != 90) GTEST_SKIP() << "for tensor_wgmma";
  int which = 0;
  const auto expect_finished = [&](const char* config, Op a, Op b, std::int64_t m, std::int64_t n) {
    for (const BiasPer bias : {BiasPer::Row, BiasPer::Column}) {
      const bool half = ++which % 5 == 0;
      const DType type = half ? DType::f16 : DType::bf16;
      cases::GemmCase c = product_of(type, a, b, m, n, 520);
      c.alpha = {0.5, 0};
      c.bias = bias;
      c.activation = Activation(which / 2 % 3);
      c.scale = which % 3 == 0 ? -1.5 : 1;
      const auto problem = cases::prepare(c);
      expect_correct(*problem, std::string("gemm=tensor_wgmma:") + config);
    }
  };
  for (const Op a : {Op::NoTrans, Op::Trans})
    for (const Op b : {Op::NoTrans, Op::Trans}) {
      for (const char* config :
           {"128x256", "128x192_cluster2", "128x128", "64x128", "64x128_joined2", "64x64",
            "64x64_slices3", "64x64_joined2", "128x64", "128x64_joined2", "64x192",
            "64x192_cluster2", "192x64", "192x64_cluster2", "64x192_slices2", "192x64_slices2"})
        expect_finished(config, a, b, 200, 328);
      const bool neither = a == Op::Trans && b == Op::NoTrans;  // runs along k
      for (const char* config :
           {"128x240", "128x224", "128x208_cluster2", "128x240_slices2", "128x176", "128x160",
            "128x160_slices2", "128x144_cluster2", "128x112", "128x176_slices2"})
        expect_finished(config, a, b, 200, 328);
      if (neither || (a == Op::NoTrans && b == Op::Trans))
        for (const char* config :
             {"240x128", "224x128_slices3", "208x128_cluster2", "208x128_slices2", "160x128",
              "176x128", "176x128_cluster2", "176x128_slices2", "112x128_cluster2"})
          expect_finished(config, a, b, 200, 328);
      if (neither) continue;
      for (const char* config : {"128x96", "128x80_slices2", "64x112_joined2", "64x96_joined3",
                                 "64x80", "64x48_joined2", "64x32"})
        expect_finished(config, a, b, 200, 328);
      if (a == Op::NoTrans && b == Op::Trans)
        for (const char* config : {"96x128", "80x128_slices2", "80x128_cluster2"})
          expect_finished(config, a, b, 200, 328);
      for (const char* config : {"64x48_cluster2", "64x112_cluster2", "64x128_cluster4"})
        if (b == Op::Trans) expect_finished(config, a, b, 56, 400);
    }
}

/// Tiles side by side that share the rows' operand, of C and of C^T: one round of them, several,
/// and rows and steps that end inside of a tile. Those of 64 rows are for sums long enough.
TEST_P(Gpu, ForcedTilesAcross) {
  if (GetParam() != "cuda" || queue->device().capability != 90) GTEST_SKIP() << "for tensor_wgmma";
  struct Across {
    Op a, b;
    std::int64_t m, n;
    const char* config;
    std::int64_t k = 328;
  };
  constexpr Op N = Op::NoTrans, T = Op::Trans;
  for (const Across& x :
       {Across{N, T, 160, 328, "80x128_cluster2"},  {N, T, 312, 3000, "80x128_cluster4"},
        {N, T, 189, 12808, "96x128_cluster2"},      {N, T, 220, 328, "112x128_cluster2"},
        {N, T, 328, 160, "128x80_cluster2"},        {T, T, 3001, 312, "128x80_cluster4"},
        {T, T, 12807, 184, "128x96_cluster2"},      {N, T, 328, 216, "128x112_cluster2"},
        {N, N, 155, 328, "128x80_cluster2"},        {N, N, 320, 3000, "128x80_cluster4"},
        {N, N, 190, 12808, "128x96_cluster2"},      {N, N, 136, 4032, "64x80_cluster2", 4032},
        {N, T, 200, 4096, "128x64_cluster2", 4096}, {N, T, 4032, 136, "64x96_cluster2", 4096},
        {T, T, 4096, 200, "64x112_cluster2", 4032}, {T, N, 72, 1760, "64x64_cluster4", 1416},
        {T, N, 220, 328, "112x128_cluster2"},       {T, N, 440, 3000, "112x128_cluster4"},
        {T, N, 328, 216, "128x112_cluster2"},       {T, N, 12808, 216, "128x112_cluster2"},
        {T, T, 160, 2040, "64x64_cluster2", 2048}})
    for (const DType type : {DType::bf16, DType::f16}) {
      const auto problem = cases::prepare(product_of(type, x.a, x.b, x.m, x.n, x.k));
      expect_correct(*problem, std::string("gemm=tensor_wgmma:") + x.config);
    }
}

/// Few rows or columns of C: an operand that does not run along k is one box, as wide as they need,
/// of which each block of a cluster brings some rows: the last step in part, rows that end inside
/// of a sector. Likewise narrow tiles, whose columns run along k.
TEST_P(Gpu, ForcedTilesOfFewColumns) {
  if (GetParam() != "cuda" || queue->device().capability != 90) GTEST_SKIP() << "for tensor_wgmma";
  using Configs = std::initializer_list<const char*>;
  constexpr std::int64_t kMany = 328;
  const auto expect_few = [&](Op a, Op b, std::int64_t few, std::initializer_list<int> depths,
                              Configs configs) {
    for (const char* config : configs)
      for (const bool rows : {false, true})
        for (const int k : depths) {
          cases::GemmCase c =
              product_of(DType::bf16, a, b, rows ? few : kMany, rows ? kMany : few, k);
          c.batch = 2;
          const auto problem = cases::prepare(c);
          expect_correct(*problem, std::string("gemm=tensor_wgmma:") + config);
        }
  };
  for (const std::int64_t few : {8, 16, 24, 40, 64}) {
    for (const Op op : {Op::NoTrans, Op::Trans})
      expect_few(
          op, op, few, {400, 1000},
          {"64x64", "64x128", "128x64", "128x64_joined2", "64x32", "64x32_slices2", "64x32_joined2",
           "64x48", "64x48_joined3", "64x80_slices2", "64x96", "64x96_joined2", "64x112_slices3"});
    expect_few(Op::Trans, Op::NoTrans, few, {400, 1000},
               {"64x64_slices2", "64x128", "64x128_joined2", "128x64", "128x64_slices3"});
    if (few >= 24)
      expect_few(Op::NoTrans, Op::NoTrans, few, {200, 1000},
                 {"64x64_cluster2", "64x64_cluster4", "64x64_cluster2_slices2", "64x128_cluster4",
                  "128x192_cluster2", "128x256_cluster4", "64x32", "64x32_cluster2",
                  "64x32_cluster4", "64x32_slices2", "64x32_joined2", "64x48_cluster2",
                  "64x96_cluster2", "64x112_cluster4"});
  }
}

/// Tiles of all widths, cut, or in slices of k that a cluster adds up: k's last step and the last
/// tiles in part, by all numbers of fragments of a warp, C read or not, its rows at multiples of 16
/// bytes, of 64 (complex: whole lines), or anywhere.
TEST_P(Gpu, ForcedTilesOfDoubles) {
  if (GetParam() != "cuda" || queue->device().capability != 90)
    GTEST_SKIP() << "for tensor_f64_tma";
  const auto expect_tiles = [&](DType type, std::int64_t m, std::int64_t n, std::int64_t k,
                                const std::string& config) {
    for (const Op a : {Op::NoTrans, Op::Trans})
      for (const Op b : {Op::NoTrans, type == DType::cf64 ? Op::ConjTrans : Op::Trans})
        for (const std::int64_t ldc : {n + n % 2 + 2, (n + 15) / 8 * 8, (n + 2) | 1}) {
          cases::GemmCase c = product_of(type, a, b, m, n, k);
          c.ldc = ldc;
          c.alpha = {0.5, 0};
          c.beta = {ldc % 2 != 0 ? 2.0 : 0.0, 0};
          c.batch = 2;
          const auto problem = cases::prepare(c);
          expect_correct(*problem, "gemm=tensor_f64_tma:" + config);
        }
  };
  for (const char* config :
       {"64x80", "64x48_two", "64x80_cut", "64x48_two_cut", "64x80_join2", "64x64_join3",
        "64x48_join4", "64x32_join6", "64x80_two_join2", "64x64_two_join6", "64x48_two_join3"})
    expect_tiles(DType::f64, 136, 74, 526, config);
  for (const char* config : {"64x80", "64x64", "64x48", "64x32", "64x80_two", "64x48_two"})
    for (const std::int64_t size : {6, 18, 26, 34, 42, 50, 58, 66, 74, 82, 100})
      expect_tiles(DType::f64, size, 106 - size, 36, config);
  for (const char* config : {"64x128_cut", "64x48_cut", "64x32_two_cut", "64x48_join2",
                             "64x32_join6", "64x48_two_join4", "64x32_two_join3"})
    expect_tiles(DType::cf64, 136, 74, 526, config);
  for (const char* config : {"64x128", "64x48", "64x32", "64x48_two", "64x32_two"})
    for (const std::int64_t size : {1, 9, 17, 25, 33, 41, 49, 57, 65, 99})
      expect_tiles(DType::cf64, size, 100 - size, 19, config);
}

/// Whole and cut along k, in batches: C that ends around a tile's edges, k around a step's,
/// operands as they lie and copied, C read or not, its rows anywhere.
TEST_P(Gpu, ForcedTilesOfFloats) {
  if (GetParam() != "cuda" || queue->device().capability != 90) GTEST_SKIP() << "for simt_tma";
  struct Size {
    std::int64_t m, n, k;
  };
  constexpr Size kSizes[] = {{127, 255, 95}, {129, 257, 96}, {256, 128, 145}, {300, 515, 4 * 97},
                             {1, 300, 100},  {513, 1, 256},  {255, 129, 81}};
  for (const Op a : {Op::NoTrans, Op::Trans})
    for (const Op b : {Op::NoTrans, Op::Trans})
      for (const char* config : {"128x256", "128x256_cut"})
        for (const auto& [m, n, k] : kSizes)
          for (const bool loose : {false, true}) {
            cases::GemmCase c = product_of(DType::f32, a, b, m, n, k);
            const auto ld_of = [&](std::int64_t cols) {
              return loose ? cols | 1 : (cols + 3) / 4 * 4;
            };
            c.compute = Compute::Pedantic;
            c.lda = ld_of(a == Op::NoTrans ? k : m);
            c.ldb = ld_of(b == Op::NoTrans ? n : k);
            c.ldc = ld_of(n + 3);
            c.alpha = {0.5, 0};
            c.beta = {loose ? 2.0 : 0.0, 0};
            c.batch = k < 100 ? 3 : 1;
            if (k == 95) c.strideB = 0;
            const auto problem = cases::prepare(c);
            expect_correct(*problem, std::string("gemm=simt_tma:") + config);
          }
  // More tiles than blocks, which then take several.
  for (const Op a : {Op::NoTrans, Op::Trans})
    for (const Op b : {Op::NoTrans, Op::Trans})
      for (const char* config : {"128x256", "128x256_cut"}) {
        cases::GemmCase c = product_of(DType::f32, a, b, 2200, 2500, 176);
        c.compute = Compute::Pedantic;
        expect_correct(*cases::prepare(c), std::string("gemm=simt_tma:") + config);
      }
}

/// From where GELU is -10^-8 to where it is x, by every way out of the tensor cores' kernel.
TEST_P(Gpu, GeluOfBfloat16) {
  if (GetParam() != "cuda" || queue->device().capability != 90) GTEST_SKIP() << "for tensor_wgmma";
  constexpr int m = 1400, n = 256, k = 256;
  std::vector<bfloat16> A(m * k, bfloat16(0)), B(k * n, bfloat16(0)), C(m * n);
  for (int i = 0; i < m; ++i) A[std::size_t(i * k)] = bfloat16(float(i - m / 2) / 128);
  for (int j = 0; j < n; ++j) B[std::size_t(j)] = bfloat16(1);
  GemmOptions options;
  options.epilogue.activation = Activation::Gelu;
  Context context(GetParam());
  for (const char* config : {"128x256", "128x128", "64x128_slices2"})
    for (const int cols : {n, n - 3}) {
      context.set_kernel(std::string("gemm=tensor_wgmma:") + config);
      gemm(context, R, Op::NoTrans, Op::NoTrans, m, cols, k, 1, A.data(), k, B.data(), n, 0,
           C.data(), n, options);
      for (int i = 0; i < m; ++i) {
        const double x = float(A[std::size_t(i * k)]);
        const double gelu =
            x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        const double bound = unit_roundoff(DType::bf16) * std::fabs(gelu) + 0x1p-11 * std::fabs(x);
        for (int j = 0; j < cols; ++j) {
          const double error = std::fabs(float(C[std::size_t(i * n + j)]) - gelu);
          ASSERT_TRUE(error <= bound) << config << ", column " << j << ": GELU of " << x;
        }
      }
    }
}

struct Sizes {
  std::int64_t m, n, k, batch;
};
/// Case number `which` of a test: C is read by every other one, and operands begin fewer than
/// `offsets` elements after their storage.
cases::GemmCase numbered(int which, const Types& types, Op a, Op b, const Sizes& s, int offsets) {
  return {.in = types.in,
          .out = types.out,
          .transA = a,
          .transB = b,
          .m = s.m,
          .n = s.n,
          .k = s.k,
          .beta = {double(which % 2), 0},
          .batch = s.batch,
          .offset = which % offsets,
          .seed = std::uint64_t(which)};
}

/// Runs of memory that begin anywhere, in batches that fill the device where they have to.
TEST_P(Gpu, TinyMatricesWhoseRowsStartAnywhere) {
  if (GetParam() != "cuda") GTEST_SKIP() << "for tiny";
  constexpr Sizes kSizes[] = {{9, 23, 17, 5},   {33, 33, 33, 300}, {47, 63, 61, 3},
                              {64, 31, 49, 4},  {65, 65, 65, 80},  {80, 77, 101, 67},
                              {95, 101, 83, 70}};
  constexpr Types kTypes[] = {{DType::f16, DType::f16},
                              {DType::bf16, DType::bf16},
                              {DType::bf16, DType::f32},
                              {DType::i8, DType::i32},
                              {DType::i8, DType::f32}};
  int which = 0;
  for (const Sizes& s : kSizes)
    for (const Types& types : kTypes)
      for (const Op a : {Op::NoTrans, Op::Trans})
        for (const Op b : {Op::NoTrans, Op::Trans}) {
          ++which;
          const auto problem = cases::prepare(numbered(which, types, a, b, s, 7));
          expect_correct(*problem, "gemm=tiny");
        }
}

/// Doubles by each tile of a warp, whole and in part, one to a product and several; steps along k
/// that end anywhere; by two, and one by one where sizes, rows or addresses are odd.
TEST_P(Gpu, ProductsOfAWarpEach) {
  if (GetParam() != "cuda" || queue->device().capability < 80) GTEST_SKIP() << "for tiny_warp";
  constexpr std::int64_t kMany = 2001;  // for one warp each
  constexpr Sizes kSizes[] = {
      {1, 1, 1, 5},        {3, 32, 7, 4},       {7, 8, 8, 5},      {8, 9, 200, 3},
      {9, 7, 16, 4},       {15, 16, 17, 3},     {16, 16, 16, 5},   {16, 17, 33, 3},
      {17, 15, 64, 3},     {18, 24, 200, 3},    {23, 25, 17, 3},   {24, 24, 24, 5},
      {25, 31, 8, 3},      {31, 32, 65, 3},     {32, 32, 32, 5},   {32, 32, 256, 2},
      {31, 31, 33, kMany}, {20, 28, 0, kMany},  {8, 8, 16, kMany}, {16, 16, 34, kMany},
      {12, 24, 10, kMany}, {16, 32, 12, kMany}, {24, 6, 8, kMany}, {30, 16, 18, kMany},
      {32, 22, 20, kMany}, {28, 32, 24, kMany}};
  constexpr Op kRealOps[] = {Op::NoTrans, Op::Trans};
  constexpr Op kComplexOps[] = {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans};
  int which = 0;
  for (const Sizes& s : kSizes)
    for (const DType type : {DType::f64, DType::cf64}) {
      const std::span<const Op> ops =
          is_complex(type) ? std::span<const Op>(kComplexOps) : kRealOps;
      for (const Op a : ops)
        for (const Op b : ops)
          for (const bool apart : {false, true}) {
            ++which;
            if (s.batch == kMany && which % 7 != 0) continue;  // takes long
            cases::GemmCase c = numbered(which / 2, {type, type}, a, b, s, apart ? 3 : 1);
            c.beta = {which / 2 % 2 * 1.5, 0};
            if (apart) {
              c.lda = std::max<std::int64_t>(1, is_transposed(a) ? s.m : s.k) + which % 3;
              c.ldb = std::max<std::int64_t>(1, is_transposed(b) ? s.k : s.n) + which % 5;
              c.ldc = s.n + which % 4;
              c.pointers = which % 8 < 4;
            }
            expect_correct(*cases::prepare(c), "gemm=tiny_warp");
          }
    }
}

/// Several blocks along both sides of C by each number of columns, of few rows and as many as they
/// have, and batches; operands from vectors and from single elements, conjugated or not.
TEST_P(Gpu, ShortSumsInSeveralBlocks) {
  if (GetParam() != "cuda") GTEST_SKIP() << "for short_k";
  constexpr Sizes kSizes[] = {{300, 1300, 24, 1}, {299, 1301, 17, 1}, {1027, 140, 8, 1},
                              {77, 190, 5, 40},   {40, 96, 16, 200},  {513, 261, 32, 2},
                              {61, 2050, 1, 3},   {20011, 37, 8, 1},  {5003, 61, 29, 1}};
  constexpr Op kRealOps[] = {Op::NoTrans, Op::Trans};
  constexpr Op kComplexOps[] = {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans};
  int which = 0;
  for (const char* config : {"1", "2", "4", "8"})
    for (const Sizes& s : kSizes)
      for (const DType type : {DType::f32, DType::f64, DType::cf32}) {
        const int registers = (int(s.k) + 7) / 8 * 8 * (*config - '0') * size_of(type) / 4;
        if (registers > 192) continue;  // declined
        const std::span<const Op> ops =
            is_complex(type) ? std::span<const Op>(kComplexOps) : kRealOps;
        for (const Op a : ops)
          for (const Op b : ops) {
            ++which;
            const auto problem = cases::prepare(numbered(which, {type, type}, a, b, s, 3));
            expect_correct(*problem, std::string("gemm=short_k:columns") + config);
          }
      }
}

/// Threads of each size, one product of a block and several; operands in vectors and not, in runs
/// and rows apart, conjugated or not.
TEST_P(Gpu, WholeBatches) {
  if (GetParam() != "cuda") GTEST_SKIP() << "for whole_batch";
  constexpr Sizes kSizes[] = {{65, 65, 65, 7}, {48, 40, 36, 9}, {31, 17, 5, 40}, {100, 24, 12, 5}};
  constexpr Op kRealOps[] = {Op::NoTrans, Op::Trans};
  constexpr Op kComplexOps[] = {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans};
  struct Size {
    const char* name;
    bool of_complex, in_vectors, of_others;
  };
  constexpr Size kThreads[] = {{"8x8", false, true, true},  {"8x4", false, true, false},
                               {"6x6", false, false, true}, {"4x4", false, true, true},
                               {"8x4", true, true, true},   {"4x4", true, true, true}};
  int which = 0;
  for (const auto& [name, of_complex, in_vectors, of_others] : kThreads)
    for (const char* group : {"x1", "x2"})
      for (const Sizes& s : kSizes)
        for (const bool apart : {false, true}) {
          const bool vectors = apart || (s.m % 4 == 0 && s.n % 4 == 0 && s.k % 4 == 0);
          if (vectors ? !in_vectors : !of_others) continue;      // not compiled
          if (group[1] == '2' && s.m * s.n > 48 * 40) continue;  // too many threads
          const DType type = of_complex ? DType::cf32 : DType::f32;
          const std::span<const Op> ops = of_complex ? std::span<const Op>(kComplexOps) : kRealOps;
          for (const Op a : ops)
            for (const Op b : ops) {
              ++which;
              cases::GemmCase c = numbered(which, {type, type}, a, b, s, 1);
              if (apart) {
                c.lda = (is_transposed(a) ? s.m : s.k) + 1;
                c.ldb = (is_transposed(b) ? s.k : s.n) + 1;
                c.ldc = s.n + 1;
              }
              expect_correct(*cases::prepare(c), std::string("gemm=whole_batch:") + name + group);
            }
        }
}

/// Warps of each size, one product of a block and several; rows in vectors and in single elements,
/// in runs and apart, conjugated or not.
TEST_P(Gpu, TensorBatches) {
  if (GetParam() != "cuda") GTEST_SKIP() << "for tensor_batch";
  constexpr Sizes kSizes[] = {{65, 65, 65, 7},  {48, 40, 36, 9}, {31, 17, 5, 40},
                              {100, 24, 12, 5}, {50, 66, 34, 6}, {16, 7, 130, 9}};
  constexpr Op kRealOps[] = {Op::NoTrans, Op::Trans};
  constexpr Op kComplexOps[] = {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans};
  struct Of {
    Types types;
    Compute compute;
    std::vector<std::string> sizes;
  };
  const std::vector<std::string> halves = {"16x16", "16x24", "16x32", "16x40", "16x56", "16x72",
                                           "32x16", "32x32", "32x40", "32x48", "48x48", "64x32"};
  const Of kOf[] = {
      {{DType::bf16, DType::bf16}, Compute::Default, halves},
      {{DType::bf16, DType::f32}, Compute::Default, halves},
      {{DType::f16, DType::f16}, Compute::Default, halves},
      {{DType::f16, DType::f32}, Compute::Default, halves},
      {{DType::f64, DType::f64},
       Compute::Default,
       {"16x8", "16x16", "16x24", "16x32", "16x40", "16x56", "32x16", "32x24", "32x32", "48x16",
        "48x24", "64x16"}},
      {{DType::f32, DType::f32},
       Compute::TF32,
       {"16x16", "16x24", "16x40", "16x56", "32x16", "32x24", "32x32", "32x40", "48x24", "48x40",
        "64x24", "64x32"}},
      {{DType::cf64, DType::cf64}, Compute::Default, {"16x8", "16x16", "16x24", "32x8", "32x16"}}};
  int which = 0, taken = 0;
  for (const auto& [types, compute, sizes] : kOf)
    for (const std::string& size : sizes)
      for (const int group : {1, 2})
        for (const Sizes& s : kSizes) {
          const int rows = std::stoi(size), cols = std::stoi(size.substr(size.find('x') + 1));
          const std::int64_t warps = (s.m + rows - 1) / rows * ((s.n + cols - 1) / cols) * group;
          if (warps > 8) continue;  // more than some sizes have
          ++taken;
          const std::span<const Op> ops =
              is_complex(types.in) ? std::span<const Op>(kComplexOps) : kRealOps;
          for (const bool apart : {false, true})
            for (const Op a : ops)
              for (const Op b : ops) {
                ++which;
                cases::GemmCase c = numbered(which, types, a, b, s, apart ? 3 : 1);
                c.compute = compute;
                if (apart) {
                  c.lda = (is_transposed(a) ? s.m : s.k) + 1;
                  c.ldb = (is_transposed(b) ? s.k : s.n) + 1;
                  c.ldc = s.n + 1;
                  c.pointers = which % 8 < 4;
                }
                expect_correct(*cases::prepare(c),
                               "gemm=tensor_batch:" + size + "x" + std::to_string(group));
              }
        }
  EXPECT_GT(taken, 100);
}

/// Lines that start at each place of a word, whose first and last words are partly outside of the
/// matrix, with NaN between them; whole words and none; one part of k and several.
TEST_P(Gpu, FewVectorsOf16Bits) {
  if (GetParam() != "cuda") GTEST_SKIP() << "for few_vectors";
  struct Shape {
    std::int64_t length, k, batch;
  };
  constexpr Shape kShapes[] = {{711, 3000, 1}, {128, 2101, 3}, {249, 515, 2},
                               {1031, 128, 5}, {257, 9001, 1}, {4104, 136, 1}};
  constexpr Types kTypes[] = {{DType::f16, DType::f16},
                              {DType::f16, DType::f32},
                              {DType::bf16, DType::bf16},
                              {DType::bf16, DType::f32}};
  constexpr int kOffsets = 7, kPads = 5;
  int which = 0;
  for (const Shape& s : kShapes)
    for (int few = 1; few <= 8; ++few)
      for (const bool rows : {false, true})
        for (const Op a : {Op::NoTrans, Op::Trans})
          for (const Op b : {Op::NoTrans, Op::Trans}) {
            ++which;
            const Types& types = kTypes[(which + few + int(&s - kShapes)) % 4];
            const Sizes sizes = {rows ? few : s.length, rows ? s.length : few, s.k, s.batch};
            cases::GemmCase c = numbered(which, types, a, b, sizes, kOffsets);
            c.beta = {which % kOffsets % 2 * -0.5, 0};
            if (const int pad = which % kPads; pad > 0) {
              c.lda = (a == Op::NoTrans ? c.k : c.m) + pad;
              c.ldb = (b == Op::NoTrans ? c.n : c.k) + pad % 3;
              c.ldc = c.n + pad % 2;
            }
            c.pointers = c.batch > 1 && which % 3 == 0;
            const auto problem = cases::prepare(c);
            expect_correct(*problem, "gemm=few_vectors");
          }
}

/// Every tile, with one part of k and several, also such as get no steps; sides around the tiles'
/// edges, either one the long one; several tiles a block; batches with a shared operand, strides
/// and pointers; rows at multiples of 16 bytes and not; C that is read, and rows of it apart.
TEST_P(Gpu, PlanesMadeOnTheWay) {
  if (GetParam() != "cuda" || queue->device().capability != 90) GTEST_SKIP() << "for fused_bf16x6";
  constexpr Sizes kSizes[] = {{129, 33, 65, 1}, {64, 191, 96, 3},  {193, 95, 97, 2},
                              {385, 8, 31, 1},  {17, 127, 511, 2}, {256, 64, 64, 4},
                              {1, 300, 160, 1}, {5000, 8, 33, 9}};
  constexpr Op kRealOps[] = {Op::NoTrans, Op::Trans};
  constexpr Op kComplexOps[] = {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans};
  int which = 0;
  for (const DType type : {DType::f32, DType::cf32})
    for (const char* config :
         {"16", "16_parts3", "32", "32_parts2", "48", "48_parts5", "64", "64_parts2", "96",
          "96_parts8", "128", "128_parts3", "64_both", "64_both_parts3", "96_both",
          "96_both_parts2", "128_both", "128_both_parts8"})
      for (const Sizes& s : kSizes) {
        const std::span<const Op> ops =
            is_complex(type) ? std::span<const Op>(kComplexOps) : kRealOps;
        for (const Op a : ops)
          for (const Op b : ops) {
            ++which;
            if (s.m > 1000 && which % 3 != 0) continue;
            cases::GemmCase c = numbered(which, {type, type}, a, b, s, 3);
            if (which % 2 == 0) {
              c.lda = (is_transposed(a) ? s.m : s.k) + 1 + which % 3;
              c.ldb = (is_transposed(b) ? s.k : s.n) + 1 + which % 5;
              c.ldc = s.n + which % 4;
            }
            c.beta = {which % 3 * 0.5, is_complex(type) && which % 5 == 0 ? 1.0 : 0.0};
            c.pointers = c.batch > 1 && which % 4 == 1;
            if (c.batch > 1 && which % 4 == 2) (s.m >= s.n ? c.strideB : c.strideA) = 0;
            expect_correct(*cases::prepare(c), std::string("gemm=fused_bf16x6:") + config);
          }
      }
}

/// One number that planes do not suit, in either operand, leaves its tiles to native arithmetic,
/// and C is read once; numbers that are small do suit.
TEST_P(Gpu, PlanesMadeOnTheWayWhereTheySuit) {
  if (GetParam() != "cuda" || queue->device().capability != 90) GTEST_SKIP() << "for fused_bf16x6";
  constexpr int m = 500, n = 40, k = 300;
  std::vector<float> A(m * k), B(k * n), old(m * n);
  std::uint32_t state = 1;
  const auto next = [&] {
    state = state * 1664525 + 1013904223;
    return float(int(state >> 8) - (1 << 23)) * 0x1p-23f;
  };
  for (auto* x : {&A, &B, &old})
    for (float& e : *x) e = next();
  const auto product = [&](const char* kernel, bool turned, float beta) {
    Context context(GetParam());
    context.set_kernel(kernel);
    std::vector<float> C = old;
    if (turned)  // as C^T = B^T A^T
      gemm(context, R, Op::Trans, Op::Trans, n, m, k, 1, B.data(), n, A.data(), k, beta, C.data(),
           m);
    else
      gemm(context, R, Op::NoTrans, Op::NoTrans, m, n, k, 1, A.data(), k, B.data(), n, beta,
           C.data(), n);
    return C;
  };
  const auto expect_like_native = [&](const char* what, bool suits) {
    for (const char* kernel :
         {"gemm=fused_bf16x6:16", "gemm=fused_bf16x6:48", "gemm=fused_bf16x6:48_parts3",
          "gemm=fused_bf16x6:64_both", "gemm=fused_bf16x6:128_both_parts3"})
      for (const bool turned : {false, true})
        for (const float beta : {0.f, 0.5f}) {
          SCOPED_TRACE(::testing::Message() << what << ", " << kernel << turned << beta);
          const std::vector<float> C = product(kernel, turned, beta);
          const std::vector<float> native = product("gemm=simt", turned, beta);
          if (suits && beta == 0) {  // else C may be what matters
            EXPECT_NE(std::memcmp(C.data(), native.data(), sizeof(float) * m * n), 0);
          }
          float largest = 0;
          for (const float x : native)
            if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
          for (std::size_t i = 0; i < C.size(); ++i) {
            if (std::isfinite(native[i]))
              ASSERT_TRUE(std::abs(C[i] - native[i]) <= 1e-5f * largest) << i;
            else
              ASSERT_TRUE(std::isnan(native[i]) ? std::isnan(C[i]) : C[i] == native[i]) << i;
          }
        }
  };
  expect_like_native("plain", true);
  for (auto* x : {&A, &B})
    for (const float odd : {1e-40f, 3e38f, INFINITY, NAN}) {
      float& e = (*x)[x->size() / 2 + 7];
      const float kept = std::exchange(e, odd);
      expect_like_native(x == &A ? "one of A" : "one of B", false);
      e = kept;
    }
  for (float& x : A) x = std::copysign(std::max(std::abs(x), 0x1p-20f) * 0x1p-100f, x);
  for (float& x : B) x *= 0x1p60f;
  expect_like_native("small", true);
}

/// Pieces of A that planes of bfloat16 do not suit are multiplied as they are, and only those.
TEST_P(Gpu, TallProductsByPlanes) {
  if (GetParam() != "cuda" || queue->device().capability != 90) GTEST_SKIP() << "for tall's planes";
  for (const cases::Data data : {cases::Data::Uniform, cases::Data::Wide, cases::Data::Scaled,
                                 cases::Data::Cancelling, cases::Data::Special, cases::Data::Tiny})
    for (const Op a : {Op::NoTrans, Op::Trans})
      for (const auto& [n, k] :
           {std::pair{64, 64}, std::pair{64, 16}, std::pair{33, 61}, std::pair{60, 33}}) {
        const auto problem = cases::prepare(cases::GemmCase{.in = DType::f32,
                                                            .out = DType::f32,
                                                            .transA = a,
                                                            .m = 8200,
                                                            .n = n,
                                                            .k = k,
                                                            .beta = {0.5, 0},
                                                            .data = data});
        expect_correct(*problem, "gemm=tall:planes");
      }

  constexpr int m = 8192, n = 64, k = 64, piece = 16;
  std::vector<float> A(m * k), B(k * n);
  std::uint32_t state = 1;
  const auto next = [&] {
    state = state * 1664525 + 1013904223;
    return float(int(state >> 8) - (1 << 23)) * 0x1p-23f;
  };
  for (float& x : A) x = next();
  for (float& x : B) x = next();
  const auto product = [&](const char* config) {
    Context context(GetParam());
    context.set_kernel(std::string("gemm=tall:") + config);
    std::vector<float> C(m * n);
    gemm(context, R, Op::NoTrans, Op::NoTrans, m, n, k, 1, A.data(), k, B.data(), n, 0, C.data(),
         n);
    return C;
  };
  const std::vector<float> before = product("planes");
  const std::pair<int, float> odd[] = {
      {3, 1e-40f}, {1000, 3e38f}, {2001, INFINITY}, {5017, NAN}, {m - 1, 0x1p-101f}};
  for (const auto& [row, value] : odd) A[std::size_t(row * k + row % k)] = value;
  const std::vector<float> planes = product("planes"), native = product("multiply_adds");
  ASSERT_NE(std::memcmp(before.data(), native.data(), sizeof(float) * m * n), 0);
  for (int row = 0; row < m; ++row) {
    const bool suits =
        std::ranges::none_of(odd, [&](const auto& o) { return o.first / piece == row / piece; });
    const auto& expected = suits ? before : native;
    ASSERT_EQ(std::memcmp(&planes[std::size_t(row * n)], &expected[std::size_t(row * n)],
                          sizeof(float) * n),
              0)
        << "row " << row;
  }
}

/// So many lines that a warp has several turns, one of which is not whole; results by vectors and
/// by way of shared memory; the long operand as either one.
TEST_P(Gpu, TallProductsOfHalves) {
  if (GetParam() != "cuda") GTEST_SKIP() << "for tall_mma";
  constexpr std::int64_t kLong = 70003;
  for (const DType in : {DType::bf16, DType::f16})
    for (const DType out : {in, DType::f32})
      for (const bool turned : {false, true})
        for (const bool is_b : {false, true})
          for (const auto& [few, k, more] :
               {std::tuple{5, 3, 0}, std::tuple{16, 40, 0}, std::tuple{31, 70, 1},
                std::tuple{32, 64, 5}, std::tuple{45, 9, 0}, std::tuple{80, 33, 5}}) {
            cases::GemmCase c{.in = in, .out = out};
            c.transA = c.transB = turned ? Op::Trans : Op::NoTrans;
            c.m = is_b ? few : kLong + more;
            c.n = is_b ? kLong + more : few;
            c.k = k;
            c.ldc = c.n + more;
            if (k == 40) c.beta = {0.5, 0};
            expect_correct(*cases::prepare(c), "gemm=tall_mma");
          }
}

TEST_P(Gpu, ContextsGiveTheirMemoryBack) {
  const auto use = [&] {
    Context context(GetParam());
    EXPECT_EQ(run_case(cases::GemmCase{.m = 2000, .n = 2000, .k = 50}, context).fate, Fate::Ran);
  };
  use();  // what the driver and libraries keep is kept from now on
  const std::size_t before = queue->memory_free();
  for (int i = 0; i < 5; ++i) use();
  EXPECT_GE(queue->memory_free() + (std::size_t{64} << 20), before);
}

TEST_P(Gpu, LaunchesAreDescribedWithoutBeingRun) {
  const auto own = find_backend(GetParam()).make_queue({.own_stream = true});
  const auto problem = cases::prepare(cases::GemmCase{.m = 200, .n = 200, .k = 200});
  cases::Run run(*problem, own.get());
  Context context(GetParam());
  context.set_stream(stream_of(*own));
  run(context);
  context.synchronize();
  run.reset();
  const std::vector<Launch> launches = launches_of(*own, [&] { run(context); });
  own->synchronize();
  EXPECT_EQ(run.operands().back().fetch().check_unchanged(problem->operands().back()), "");
  if (GetParam() == "cuda") {
    EXPECT_FALSE(launches.empty());
  }
  for (const Launch& launch : launches) {
    EXPECT_GE(launch.grid[0] * launch.grid[1] * launch.grid[2], 1);
    EXPECT_GE(launch.block[0] * launch.block[1] * launch.block[2], 32);
    EXPECT_GT(launch.registers, 0);
    EXPECT_GT(launch.occupancy, 0);
    EXPECT_LE(launch.occupancy, 1);
  }
  run(context);
  context.synchronize();
  EXPECT_TRUE(run.verify().ok);
}

TEST_P(Gpu, MatricesPast2To31Elements) {
  constexpr std::int64_t m = 46351, n = 46349;
  constexpr std::size_t kBytes = std::size_t(m) * std::size_t(n);
  if (queue->memory_free() < 3 * kBytes) GTEST_SKIP() << "needs " << 3 * kBytes << " bytes";
  std::vector<std::uint8_t> a(kBytes), b(kBytes);
  for (std::size_t i = 0; i < kBytes; i += 3) a[i] = std::uint8_t(i % 251);
  auto* A = static_cast<std::uint8_t*>(queue->allocate(kBytes));
  auto* B = static_cast<std::uint8_t*>(queue->allocate(kBytes));
  cases::copy_bytes(*queue, A, a.data(), std::int64_t(kBytes), CopyKind::HostToDevice);
  queue->synchronize();
  for (const Kernel<TransposeArgs>& kernel : find_backend(GetParam()).transpose_kernels()) {
    Context context(GetParam());
    context.set_kernel("transpose=" + std::string(kernel.name));
    const Status status = try_transpose(context, R, m, n, A, n, B, m);
    if (status == Status::NotSupported) continue;  // a row of cuBLAS, whose indices have 32 bits
    ASSERT_EQ(status, Status::Ok) << context.last_error();
    context.synchronize();
    cases::copy_bytes(*queue, b.data(), B, std::int64_t(kBytes), CopyKind::DeviceToHost);
    queue->synchronize();
    std::int64_t wrong = 0;
    constexpr std::int64_t kTile = 64;
    for (std::int64_t i0 = 0; i0 < m; i0 += kTile)
      for (std::int64_t j0 = 0; j0 < n; j0 += kTile)
        for (std::int64_t i = i0; i < std::min(m, i0 + kTile); ++i)
          for (std::int64_t j = j0; j < std::min(n, j0 + kTile); ++j)
            wrong += a[std::size_t(i * n + j)] != b[std::size_t(j * m + i)];
    EXPECT_EQ(wrong, 0) << kernel.name;
    std::memset(b.data(), 0, kBytes);
  }
  queue->deallocate(A);
  queue->deallocate(B);
}

// Rows that are a multiple of 128 KiB apart have their tiles in an order of its own.
TEST_P(Gpu, TransposesOfRowsThatMeetInFewBanks) {
  constexpr std::int64_t kPitch = 128 << 10, kWidth = 40 << 10;  // bytes
  Context context(GetParam());
  const auto run = [&](const auto& c, int size) {
    const Result result = run_case(c, context, queue.get());
    EXPECT_TRUE(result.fate == Fate::Ran || result.status == Status::NotSupported)
        << size << " bytes, " << c.m << "x" << c.n << ": " << result.text;
  };
  for (const int extra : {0, 3})
    for (const Types& types : types_of(op_name<TransposeArgs>)) {
      const std::int64_t size = size_of(types.in);
      run(cases::TransposeCase{.type = types.in,
                               .m = 272 + extra,
                               .n = kWidth / size + extra,
                               .lda = kPitch / size,
                               .batch = 2},
          int(size));
    }
  for (const Types& types : types_of(op_name<GeamArgs>))
    for (const double beta : {0., 2.})
      run(cases::GeamCase{.type = types.in,
                          .transA = Op::Trans,
                          .m = kWidth / size_of(types.in),
                          .n = 272,
                          .lda = kPitch / size_of(types.in),
                          .beta = {beta, 0}},
          int(size_of(types.in)));
}

// Which have tiles of their own.
TEST_P(Gpu, TransposesBeyondTheCache) {
  constexpr std::int64_t kBytes = 66 << 20;
  for (const Types& types : types_of(op_name<TransposeArgs>))
    for (const auto& [n, offset] : {std::pair{4099, 1}, {4096, 0}}) {
      const std::int64_t m = kBytes / size_of(types.in) / n / 16 * 16 + 3 * offset;
      Context context(GetParam());
      const Result result =
          run_case(cases::TransposeCase{.type = types.in, .m = m, .n = n, .offset = offset},
                   context, queue.get());
      EXPECT_TRUE(result.fate == Fate::Ran || result.status == Status::NotSupported)
          << name_of(types.in) << " " << m << "x" << n << ": " << result.text;
    }
}

// Published values of the field's products, and of a code's parity, by every kernel.
TEST_P(Gpu, Gf256Vectors) {
  std::vector<std::uint8_t> all(256);
  for (std::size_t x = 0; x < all.size(); ++x) all[x] = std::uint8_t(x);
  constexpr std::int64_t kColumns = 1024;  // the same ones
  const std::vector<std::uint8_t> coefficients = gf256::cauchy_matrix(4, 10);
  std::vector<std::uint8_t> data;
  for (int shard = 1; shard <= 10; ++shard)
    data.insert(data.end(), std::size_t(kColumns), std::uint8_t(shard));

  for (const auto& kernel : find_backend(GetParam()).gf256_kernels()) {
    Context context(GetParam());
    context.set_kernel("gf256=" + std::string(kernel.name));
    // All products of two bytes; as sums of one product and zeros where one alone is not taken.
    std::vector<std::uint8_t> products(256 * 256);
    Status taken = Status::NotSupported;
    for (const std::int64_t k : {1, 256}) {
      if (taken == Status::Ok) break;
      std::vector<std::uint8_t> a(std::size_t(256 * k)), b(std::size_t(k * 256), 0xa5);
      for (std::size_t x = 0; x < all.size(); ++x) a[x * std::size_t(k)] = b[x] = all[x];
      taken =
          gf256::try_gemm(context, 256, 256, k, a.data(), k, b.data(), 256, products.data(), 256);
    }
    ASSERT_EQ(taken, Status::Ok) << kernel.name;
    std::uint32_t hash = 2166136261u;  // FNV-1a
    for (const std::uint8_t x : products) hash = (hash ^ x) * 16777619u;
    EXPECT_EQ(hash, 0xb6b61b45u) << kernel.name;

    std::vector<std::uint8_t> parity(4 * kColumns);
    const Status status = gf256::try_gemm(context, 4, kColumns, 10, coefficients.data(), 10,
                                          data.data(), kColumns, parity.data(), kColumns);
    if (status == Status::NotSupported) continue;  // there are faster kernels for it
    ASSERT_EQ(status, Status::Ok) << kernel.name;
    constexpr std::uint8_t kParity[] = {0x35, 0xaa, 0x61, 0x37};
    for (std::size_t i = 0; i < parity.size(); ++i)
      ASSERT_EQ(parity[i], kParity[i / kColumns]) << kernel.name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Gpu, ::testing::ValuesIn(device_backends()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace mblas::testing
