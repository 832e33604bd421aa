// Every row of every table of every backend, on every type, against the oracle. Rows come from the
// tables; nothing here knows a kernel's name. Compiled once for host and once for device backends.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support.hpp"
#include "sweep_cases.hpp"

namespace mblas::testing {
namespace {

constexpr Memory kMemory = Memory::MBLAS_SWEEP_MEMORY;

/// A row of a table (none: the backend's choice), a type, and the side that the operands are on.
struct Row {
  std::string_view op;
  Backend* backend;
  std::string_view kernel;
  std::span<const std::string_view> configs;
  bool on_device;
  Types types;
};

std::string name_of_row(const Row& row) {
  std::string name(row.op);
  name.append("_").append(row.backend->name()).append("_").append(row.kernel);
  if (kMemory == Memory::Device) name += row.on_device ? "_device" : "_staged";
  name.append("_").append(name_of(row.types.in));
  if (row.types.out != row.types.in) name.append("_").append(name_of(row.types.out));
  if (row.types.compute != Compute::Default) name.append("_").append(name_of(row.types.compute));
  return test_name(name);
}

void PrintTo(const Row& row, std::ostream* out) { *out << name_of_row(row); }

template <class Args>
void add_rows(std::vector<Row>& rows) {
  for (Backend* backend : backends()) {
    if (backend->memory() != kMemory) continue;
    std::vector<Types> all = types_of(op_name<Args>);
    if (std::is_same_v<Args, GemmArgs> && kMemory == Memory::Device) {
      for (const Compute compute : {Compute::TF32, Compute::BF16x6, Compute::FP16x3})
        all.push_back({DType::f32, DType::f32, compute});
      all.push_back({DType::cf32, DType::cf32, Compute::BF16x6});
      all.push_back({DType::f64, DType::f64, Compute::OzakiFP64});
    }
    for (const Kernel<Args>& kernel : backend->kernels<Args>())
      for (const Types& types : all) {
        rows.push_back({op_name<Args>, backend, kernel.name, kernel.configs,
                        kMemory == Memory::Device, types});
        if (kMemory == Memory::Device)
          rows.push_back({op_name<Args>, backend, kernel.name, kernel.configs, false, types});
      }
  }
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  add_rows<GemmArgs>(rows);
  add_rows<GeamArgs>(rows);
  add_rows<TransposeArgs>(rows);
  add_rows<TransposeInplaceArgs>(rows);
  add_rows<Gf256Args>(rows);
  return rows;
}

/// Those with configurations, on the side of the backend's memory.
std::vector<Row> tunable_rows() {
  std::vector<Row> rows = all_rows();
  std::erase_if(rows, [](const Row& row) {
    return row.configs.empty() || row.on_device != (kMemory == Memory::Device);
  });
  return rows;
}

/// A context that uses this row and no other, and a queue for operands.
struct Place {
  Context context;
  std::unique_ptr<Queue> queue;

  explicit Place(const Row& row, std::string_view config = {}) : context(row.backend->name()) {
    context.set_kernel(forced(row, config));
    if (row.on_device) queue = row.backend->make_queue({});
  }
  /// Staged in-place transposes go through the kernels of the transpose out of place.
  static bool forces(const Row& row) {
    return row.op != op_name<TransposeInplaceArgs> || kMemory == Memory::Host || row.on_device;
  }
  static std::string forced(const Row& row, std::string_view config) {
    if (!forces(row) || row.kernel.empty()) return "";
    std::string text(row.op);
    text.append("=").append(row.kernel);
    if (!config.empty()) text.append(":").append(config);
    return text;
  }
};

class Sweep : public ::testing::TestWithParam<Row> {
 protected:
  void run(const std::vector<cases::Case>& list) {
    const Row& row = GetParam();
    if (const std::string& reason = row.backend->unavailable(); !reason.empty())
      GTEST_SKIP() << row.backend->name() << ": " << reason;
    Place place(row);
    int ran = 0, failed = 0;
    std::string declined;
    for (const cases::Case& c : list) {
      const Result result = run_case(c, place.context, place.queue.get());
      switch (result.fate) {
        case Fate::Nothing:
          break;
        case Fate::Ran:
          ++ran;
          if (Place::forces(row)) {
            EXPECT_EQ(place.context.last_dispatch().kernel, row.kernel);
          }
          EXPECT_EQ(place.context.last_dispatch().backend, row.backend->name());
          EXPECT_EQ(place.context.last_dispatch().operation, row.op);
          break;
        case Fate::Declined:
          if (declined.empty()) declined = result.text;
          break;
        case Fate::Failed:
          ADD_FAILURE() << "mblas bench " << cases::command(cases::resolve(c)) << "\n"
                        << result.text;
          if (++failed == 5) FAIL() << "the rest was not run";
      }
    }
    RecordProperty("ran", ran);
    if (ran == 0) GTEST_SKIP() << declined;
  }
  std::vector<cases::Case> sample(int count) const {
    return sampled_cases(GetParam().op, GetParam().types, count);
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Sweep);

/// The rows that can be tuned.
class Configurations : public ::testing::TestWithParam<Row> {
 protected:
  /// Every `step`th configuration on every case.
  void run(const std::vector<cases::Case>& list, std::size_t step = 1) {
    const Row& row = GetParam();
    std::vector<bool> ran(row.configs.size());
    for (const cases::Case& c : list) {
      const auto problem = cases::prepare(c, 0);
      for (std::size_t i = 0; i < row.configs.size(); i += step) {
        Place place(row, row.configs[i]);
        cases::Run run(*problem, place.queue.get());
        try {
          run(place.context);
        } catch (const Error& e) {
          ASSERT_EQ(e.status(), Status::NotSupported) << row.configs[i] << ": " << e.what();
          continue;
        }
        ran[i] = true;
        EXPECT_EQ(place.context.last_dispatch().config, row.configs[i]);
        const cases::Outcome outcome = run.verify();
        ASSERT_TRUE(outcome.ok) << row.configs[i] << ": " << outcome.message << "\n"
                                << cases::command(problem->description());
      }
    }
    const auto count = std::ranges::count(ran, true);
    RecordProperty("ran", int(count));
    if (count == 0) GTEST_SKIP() << "declined";
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Configurations);

cases::Case resized(cases::Case c, std::int64_t m, std::int64_t n, std::int64_t k) {
  std::visit(
      [&](auto& descriptor) {
        descriptor.m = m;
        descriptor.n = n;
        if constexpr (requires { descriptor.k; }) descriptor.k = k;
      },
      c);
  return c;
}

/// With the smallest leading dimensions.
cases::Case packed(cases::Case c) {
  std::visit(
      [](auto& descriptor) {
        descriptor.lda = descriptor.ldb = 0;
        if constexpr (requires { descriptor.ldc; }) descriptor.ldc = 0;
      },
      c);
  return c;
}

/// All on the host; on a device, where a case is mostly allocations and copies, some 300 spread
/// evenly.
std::vector<cases::Case> affordable(std::vector<cases::Case> list) {
  constexpr std::size_t kMost = 300;
  if (kMemory == Memory::Host || list.size() <= kMost) return list;
  std::vector<cases::Case> some;
  for (std::size_t i = 0; i < kMost; ++i) some.push_back(list[i * list.size() / kMost]);
  return some;
}

TEST_P(Sweep, Tiny) { run(affordable(tiny_cases(GetParam().op, GetParam().types))); }
TEST_P(Sweep, Sampled) { run(sample(kMemory == Memory::Host ? 250 : 80)); }
TEST_P(Sweep, Few) { run(sample(12)); }
TEST_P(Sweep, Thin) {
  if (kMemory == Memory::Host && GetParam().types.in != types_of(GetParam().op).front().in)
    GTEST_SKIP() << "one type is enough on the host";
  run(thin_cases(GetParam().op, GetParam().types));
}
TEST_P(Sweep, FewVectors) {
  if (GetParam().op != op_name<GemmArgs>) GTEST_SKIP() << "products only";
  run(affordable(few_vector_cases(GetParam().op, GetParam().types)));
}
TEST_P(Sweep, Large) {
  std::vector<cases::Case> list{large_case(GetParam().op, GetParam().types)};
  if (GetParam().op == op_name<TransposeInplaceArgs>)  // some rows take squares only
    list.push_back(resized(list.front(), 1025, 1025, 0));
  run(list);
}

// Every configuration of a row that can be tuned: on a small square, odd shapes, a long k, and
// for products all pairs of operations, with rows that lie at multiples of 16 bytes.
TEST_P(Configurations, EachOne) {
  const Row& row = GetParam();
  if (const std::string& reason = row.backend->unavailable(); !reason.empty())
    GTEST_SKIP() << reason;
  constexpr std::int64_t kShapes[][3] = {
      {64, 64, 64}, {259, 131, 77}, {3, 259, 4133}, {70, 133, 30016}};
  std::vector<cases::Case> list;
  for (const auto& [m, n, k] : kShapes)
    list.push_back(packed(resized(large_case(row.op, row.types), m, n, k)));
  if (auto* sliced = std::get_if<cases::GemmCase>(&list.back()))
    if (sliced->out != DType::i32) sliced->bias = BiasPer::Row;
  if (row.op == op_name<GemmArgs>)
    for (const Op a : {Op::NoTrans, Op::Trans})
      for (const Op b : {Op::NoTrans, Op::Trans}) {
        auto c = std::get<cases::GemmCase>(resized(list.front(), 272, 144, 208));
        c.transA = a;
        c.transB = b;
        if (a != b && c.out != DType::i32) c.bias = BiasPer::Column, c.scale = 2;
        list.push_back(c);
        // Plain products, about the edges of tiles that are only for those, with a k long enough
        // for slices, and with few rows.
        for (const auto& [m, n, k, ldc] : {std::array<std::int64_t, 4>{129, 184, 208, 0},
                                           {255, 344, 136, 352},
                                           {150, 200, 3008, 0},
                                           {7, 300, 4128, 0}}) {
          c = std::get<cases::GemmCase>(resized(list.front(), m, n, k));
          c.layout = Layout::RowMajor;
          c.transA = a;
          c.transB = b;
          c.beta = {};
          c.ldc = ldc;
          list.push_back(c);
        }
      }
  run(list);
}

/// The least leading dimension for rows of `length` elements of `size` bytes that start at
/// multiples of `access` bytes, and of no more up to 16.
std::int64_t apart(std::int64_t length, int size, std::int64_t access) {
  return (length * size + 15) / 16 * (16 / size) + std::max<std::int64_t>(access / size, 1);
}

// All pairs of operations on rows that do not start at multiples of 16 bytes, with some k, whole
// steps of it or not, and enough of it for parts. Where configurations are many, some of them.
TEST_P(Configurations, LooseRows) {
  const Row& row = GetParam();
  if (row.op != op_name<GemmArgs>) GTEST_SKIP() << "products only";
  if (const std::string& reason = row.backend->unavailable(); !reason.empty())
    GTEST_SKIP() << reason;
  struct Shape {
    std::int64_t m, n, k, access;
  };
  constexpr Shape kShapes[] = {{67, 130, 24, 8},  {130, 67, 21, 4},  {65, 129, 200, 2},
                               {129, 65, 128, 1}, {66, 70, 1100, 8}, {70, 66, 1111, 4},
                               {67, 71, 4099, 1}};
  std::vector<cases::Case> list;
  for (const Shape& s : kShapes)
    for (const Op a : {Op::NoTrans, Op::Trans})
      for (const Op b : {Op::NoTrans, Op::Trans}) {
        auto c = std::get<cases::GemmCase>(resized(large_case(row.op, row.types), s.m, s.n, s.k));
        const int size = size_of(c.in);
        c.layout = Layout::RowMajor;
        c.transA = a;
        c.transB = b;
        c.lda = apart(a == Op::NoTrans ? s.k : s.m, size, s.access);
        c.ldb = apart(b == Op::NoTrans ? s.n : s.k, size, s.access);
        c.ldc = s.n + s.access % 3;
        if (s.k < 100) c.batch = 3;
        if (s.k == 24) c.strideB = 0;
        if (s.k == 21) c.pointers = true;
        list.push_back(c);
      }
  constexpr std::size_t kMost = 8;
  run(list, (row.configs.size() + kMost - 1) / kMost);
}

/// Does the row compute the same in contexts of 1, 2, 3 and 8 threads? `ran` becomes true unless it
/// declines the case.
::testing::AssertionResult same_bits(const Row& row, const cases::Case& c, bool& ran) {
  const auto problem = cases::prepare(c, 0);
  std::unique_ptr<cases::Buffer> first;
  for (const int threads : {1, 2, 3, 8}) {
    Place place(row);
    place.context.set_num_threads(threads);
    cases::Run run(*problem, place.queue.get());
    try {
      run(place.context);
    } catch (const Error& e) {
      if (e.status() == Status::NotSupported) break;
      return ::testing::AssertionFailure() << e.what();
    }
    const cases::Buffer& result = run.operands().back().fetch();
    if (!first) {
      first = std::make_unique<cases::Buffer>(result.clone());
      continue;
    }
    ran = true;
    if (const std::string found = result.check_unchanged(*first); !found.empty())
      return ::testing::AssertionFailure()
             << found << "; " << threads << " threads: " << cases::command(problem->description());
  }
  return ::testing::AssertionSuccess();
}

// The promise of the library's own backends: the same bits, whatever the number of threads, in
// every context and every time.
TEST_P(Sweep, SameBits) {
  const Row& row = GetParam();
  if (!row.backend->unavailable().empty()) GTEST_SKIP() << row.backend->unavailable();
  if (row.backend->name() != "openmp" && row.backend->name() != "cuda")
    GTEST_SKIP() << "promised of the library's own backends";
  std::vector<cases::Case> list = sample(8);
  // Every way in which work may be split: rows, columns, sums, none.
#ifdef MBLAS_TEST_SANITIZED
  constexpr std::int64_t kShapes[][3] = {
      {259, 261, 120}, {8, 8, 5000}, {1, 900, 300}, {5, 300, 200}};
#else
  constexpr std::int64_t kShapes[][3] = {
      {259, 261, 120}, {260, 260, 31}, {420, 330, 150}, {8, 8, 6000},   {3000, 16, 16},
      {16, 3000, 16},  {1, 700, 500},  {700, 1, 500},   {40, 41, 42},   {150, 170, 700},
      {5, 700, 400},   {700, 11, 400}, {3, 200, 40000}, {60, 140, 320}, {60, 140, 470}};
#endif
  for (const auto& [m, n, k] : kShapes) {
    list.push_back(packed(resized(large_case(row.op, row.types), m, n, k)));
    if (auto* gemm = std::get_if<cases::GemmCase>(&list.back()); gemm && gemm->out != DType::i32)
      gemm->bias = BiasPer::Row;
  }
  // Of a size that kernels for large products on a device are not estimated to be slower for.
  if (kMemory == Memory::Device)
    list.push_back(packed(resized(large_case(row.op, row.types), 640, 640, 640)));
  bool ran = false;
  for (const cases::Case& c : list) ASSERT_TRUE(same_bits(row, c, ran));
  if (!ran) GTEST_SKIP() << "declined";
}

// The promise holds too where the kernel depends on the number of threads.
TEST(SameBits, OfProductsWithoutAForcedKernel) {
  for (Backend* backend : backends()) {
    if (backend->memory() != kMemory || !backend->unavailable().empty()) continue;
    if (backend->name() != "openmp" && backend->name() != "cuda") continue;
    bool ran = false;
    for (const Types& types : types_of(op_name<GemmArgs>)) {
      const Row row{op_name<GemmArgs>, backend, "", {}, kMemory == Memory::Device, types};
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{63, 64, 65},
                                    {20, 128, 128},
                                    {128, 40, 64},
                                    {74, 75, 76},
                                    {100, 101, 103},
                                    {120, 120, 120},
                                    {14, 32, 800},
                                    {8, 8, 4000},
                                    {30, 400, 30},
                                    {200, 30, 62},
                                    {3, 300, 300},
                                    {1, 300, 300}})
        ASSERT_TRUE(same_bits(row, packed(resized(large_case(row.op, types), m, n, k)), ran));
    }
    EXPECT_TRUE(ran);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Sweep, ::testing::ValuesIn(all_rows()),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Rows, Configurations, ::testing::ValuesIn(tunable_rows()),
                         ::testing::PrintToStringParamName());

/// `c` with the ops that it has, and a product also with A as it is stored and by columns, on
/// aligned rows.
std::vector<cases::Case> with_ops(const cases::Case& c) {
  std::vector<cases::Case> list = {c};
  if (const auto* gemm = std::get_if<cases::GemmCase>(&c)) {
    for (const Op op : {Op::NoTrans, Op::Trans}) {
      auto plain = *gemm;
      plain.layout = Layout::RowMajor;
      plain.transA = op, plain.transB = Op::NoTrans;
      list.push_back(packed(plain));
    }
  } else {
    list.push_back(packed(c));
  }
  return list;
}

/// Does the row run a case of its type: square or not, vector-shaped or deep, tiny in a batch, one
/// of a mode of its own, or, where it takes nothing smaller, a larger one? `lacking` becomes true
/// where it needs instructions that this CPU has not.
bool takes(const Row& row, bool& lacking) {
  struct Shape {
    std::int64_t m, n, k, batch = 1;
  };
  constexpr Shape kShapes[] = {{17, 17, 19},   {17, 18, 19},   {1, 180, 190}, {17, 18, 4100},
                               {300, 13, 19},  {12, 13, 190},  {4, 184, 7},   {3, 180, 190},
                               {7, 5, 9, 100}, {360, 360, 360}};
  Place place(row);
  for (const auto& [m, n, k, batch] : kShapes) {
    cases::Case sized = resized(large_case(row.op, row.types), m, n, k);
    std::visit(
        [&](auto& descriptor) {
          if constexpr (requires { descriptor.batch; }) descriptor.batch = batch;
        },
        sized);
    const Compute own = row.types.in == DType::f64 ? Compute::OzakiFP64 : Compute::BF16x6;
    for (cases::Case& c : with_ops(sized)) {
      for (const Compute compute : {row.types.compute, own}) {
        auto* gemm = std::get_if<cases::GemmCase>(&c);
        if (compute == own && (!gemm || (row.types.in != DType::f32 && row.types.in != DType::f64)))
          continue;
        if (gemm) gemm->compute = compute;
        const Result result = run_case(c, place.context, place.queue.get());
        if (result.fate == Fate::Ran) return true;
        lacking |= result.text.find("this CPU has no") != result.text.npos;
      }
    }
  }
  return false;
}

// A row that always declines, or a type that nothing takes, would pass every test above.
TEST(Coverage, EveryRowRunsAndTheOwnBackendsTakeEveryType) {
  std::map<std::string, bool> ran;
  for (const Row& row : all_rows()) {
    if (!row.backend->unavailable().empty()) continue;
    bool lacking = false;
    const bool took = takes(row, lacking);
    if (lacking) continue;
    const std::string where = std::string(row.op) + " on " + std::string(row.backend->name());
    ran[where + "/" + std::string(row.kernel)] |= took;
    if (row.backend->name() == "openmp" || row.backend->name() == "cuda")
      ran[where + ", type " + std::string(name_of(row.types.in)) + ", " +
          std::string(name_of(row.types.out)) + (row.on_device ? ", device" : ", host")] |= took;
  }
  if (ran.empty()) GTEST_SKIP() << "no backend of this kind can run here";
  for (const auto& [what, took] : ran) EXPECT_TRUE(took) << what << " never ran";
}

}  // namespace
}  // namespace mblas::testing
