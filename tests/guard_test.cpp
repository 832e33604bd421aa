// Every row of the host backends' tables reads and writes only what it may: operands lie against
// inaccessible pages, inputs can only be read, C's padding and surroundings are compared bit by
// bit. All small sizes, and some around the edges of larger tiles. The elements are small multiples
// of 1/8, so that every sum is exact and results are compared for equality.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "element_types.hpp"
#include "guarded_pages.hpp"
#include "oracle.hpp"
#include "random.hpp"
#include "scalars.hpp"
#include "support.hpp"
#include "sweep_cases.hpp"

namespace mblas::testing {
namespace {

using cases::Alias;
using cases::Flush;
using cases::GuardedPages;
using cases::Random;
using Index = std::int64_t;

constexpr Flush kFlushes[] = {Flush::End, Flush::Start};
constexpr Index kPads[] = {0, 3};
/// What is worth the time of the longest loops.
constexpr std::pair<Flush, Index> kPlaces[] = {{Flush::End, 0}, {Flush::End, 3}, {Flush::Start, 3}};

// ---------------------------------------------------------------------------------------------------
// What is being run, for the message of a fault.

struct Current {
  std::string_view kernel;
  cases::Case description;
  Flush flush = Flush::End;
  const GuardedPages* operands = nullptr;  ///< three
};
Current current;

/// A line that repeats the call, but for where its operands lie.
std::string describe() {
  return "mblas bench " + cases::command(current.description) + " --kernel " +
         std::string(current.kernel) + ", operands against the " +
         (current.flush == Flush::End ? "end" : "start") + " of their pages";
}

/// Not made for signal handlers, but the process ends here anyway.
void on_fault(int, siginfo_t* info, void*) {
  const char* where = "outside of all operands";
  const char* names[] = {"by A", "by B", "by C"};
  for (int i = 0; current.operands && i < 3; ++i)
    if (current.operands[i].contains(info->si_addr)) where = names[i];
  std::fprintf(stderr, "inaccessible memory touched %s (%p): %s\n", where, info->si_addr,
               describe().c_str());
  std::fflush(nullptr);
  _exit(1);
}

const bool handling = [] {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGSEGV, SIGBUS}) sigaction(signal, &action, nullptr);
  return true;
}();

// ---------------------------------------------------------------------------------------------------
// Values that no sum of products rounds.

template <class T>
T exact_value(Random& random) {
  const auto eighths = [&] { return 2 * double(random.below(8)) - 7; };  // odd: never zero
  if constexpr (std::is_integral_v<T>)
    return T(eighths());
  else if constexpr (cases::is_complex_v<T>)
    return T(typename T::value_type(eighths() / 8), typename T::value_type(eighths() / 8));
  else
    return T(float(eighths() / 8));
}

template <class T>
T narrow(const cases::wide_t<T>& x) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return T(float(x));
  else
    return T(x);
}

template <class T>
bool same_value(const T& a, const T& b) {
  return cases::widen(a) == cases::widen(b);
}
bool same_value(const cases::Bytes16& a, const cases::Bytes16& b) { return a == b; }

/// rows × cols values, whatever the operation that an operand stores them under.
template <class T>
struct Values {
  Index rows, cols;
  std::vector<T> data;
  Values(Index r, Index c, std::uint64_t seed) : rows(r), cols(c), data(std::size_t(r * c)) {
    Random random(seed);
    for (T& x : data) x = exact_value<T>(random);
  }
  const T& at(Index i, Index j) const { return data[std::size_t(i * cols + j)]; }
};

template <class T>
T conjugated(T x, bool conjugate) {
  if constexpr (cases::is_complex_v<T>)
    return conjugate ? std::conj(x) : x;
  else
    return x;
}

/// op(X) in memory, flush against an end of the pages; X is the upper left rows × cols of values.
template <class T>
struct Input {
  const T* data;
  Index ld;
};
template <class T>
Input<T> place(GuardedPages& pages, Flush flush, const Values<T>& values, Op op, Index rows,
               Index cols, Index pad) {
  const bool trans = is_transposed(op);
  const Index lines = trans ? cols : rows, length = trans ? rows : cols, ld = length + pad;
  const auto bytes = std::size_t((lines - 1) * ld + length) * sizeof(T);
  pages.reserve(bytes);
  const std::size_t start = flush == Flush::Start ? 0 : pages.size() - bytes;
  T* const to = reinterpret_cast<T*>(pages.writable() + start);
  std::memset(static_cast<void*>(to), 0xff, bytes);  // NaN in every floating-point type
  for (Index i = 0; i < lines; ++i)
    for (Index j = 0; j < length; ++j) to[i * ld + j] = trans ? values.at(j, i) : values.at(i, j);
  return {reinterpret_cast<const T*>(pages.readable() + start), ld};
}
/// A pointer that must not be used.
template <class T>
const T* forbidden(const GuardedPages& pages) {
  return reinterpret_cast<const T*>(pages.readable() + pages.size());
}

/// C: a matrix that a call writes, with surroundings that it must leave alone.
template <class T>
class Output {
 public:
  Output(GuardedPages& pages, Flush flush, Index rows, Index cols, Index pad, Index room = 0)
      : rows_(rows), cols_(cols), ld_(cols + pad) {
    const auto payload =
        std::max(std::size_t((rows - 1) * ld_ + cols), std::size_t(room)) * sizeof(T);
    pages.reserve(payload);
    const std::size_t start = flush == Flush::Start ? 0 : pages.size() - payload;
    const std::size_t begin = start - std::min(start, kSurroundings);
    const std::size_t end = std::min(start + payload + kSurroundings, pages.size());
    seen_ = pages.writable() + begin;
    data_ = reinterpret_cast<T*>(pages.writable() + start);
    offset_ = (start - begin) / sizeof(T);
    std::memset(seen_, 0xff, end - begin);
    want_.assign((end - begin + sizeof(T) - 1) / sizeof(T) * sizeof(T), std::byte{0xff});
    bytes_ = end - begin;
  }

  T* data() const { return data_; }
  Index ld() const { return ld_; }
  /// Element (i, j) that the call must leave behind.
  T& want(Index i, Index j) {
    return reinterpret_cast<T*>(want_.data())[offset_ + std::size_t(i * ld_ + j)];
  }

  /// Empty, or what is wrong.
  std::string check() const {
    if (std::memcmp(seen_, want_.data(), bytes_) == 0) return {};
    const T* got = reinterpret_cast<const T*>(seen_);
    const T* want = reinterpret_cast<const T*>(want_.data());
    for (std::size_t i = 0; i < bytes_ / sizeof(T); ++i) {
      if (std::memcmp(got + i, want + i, sizeof(T)) == 0) continue;
      const Index at = Index(i) - Index(offset_);
      const bool element = at >= 0 && at / ld_ < rows_ && at % ld_ < cols_;
      if (element && same_value(got[i], want[i])) continue;  // zeros of different sign
      return element ? "element (" + std::to_string(at / ld_) + ", " + std::to_string(at % ld_) +
                           ") is wrong"
                     : "written outside the result, " + std::to_string(at) +
                           " elements after its first";
    }
    return {};
  }

 private:
  static constexpr std::size_t kSurroundings = 128;
  Index rows_, cols_, ld_;
  std::byte* seen_;
  T* data_;
  std::size_t offset_, bytes_;
  // Aligned for any element.
  std::vector<std::byte> want_;
};

// ---------------------------------------------------------------------------------------------------

struct Row {
  std::string_view op;
  Backend* backend;
  std::string_view kernel;
  Types types;
};
std::string name_of_row(const Row& row) {
  std::string name(row.op);
  name.append("_").append(row.backend->name()).append("_").append(row.kernel);
  name.append("_").append(name_of(row.types.in));
  if (row.types.out != row.types.in) name.append("_").append(name_of(row.types.out));
  return test_name(name);
}
void PrintTo(const Row& row, std::ostream* out) { *out << name_of_row(row); }

template <class Args>
std::vector<Row> rows_of() {
  std::vector<Row> rows;
  for (Backend* backend : backends())
    if (backend->memory() == Memory::Host)
      for (const Kernel<Args>& kernel : backend->kernels<Args>())
        for (const Types& types : types_of(op_name<Args>))
          rows.push_back({op_name<Args>, backend, kernel.name, types});
  return rows;
}

class Guard : public ::testing::TestWithParam<Row> {
 protected:
  void SetUp() override {
    const Row& row = GetParam();
    if (const std::string& reason = row.backend->unavailable(); !reason.empty())
      GTEST_SKIP() << reason;
    try {
      context_.emplace(row.backend->name());
    } catch (const Error& e) {  // of MBLAS_ARCH
      if (e.status() != Status::UnknownName) throw;
      GTEST_SKIP() << e.what();
    }
    context_->set_kernel(std::string(row.op) + "=" + std::string(row.kernel));
    context_->set_num_threads(1);
    current.kernel = row.kernel;
    current.operands = pages_;
  }
  void TearDown() override {
    current.operands = nullptr;
    if (!HasFatalFailure() && !HasNonfatalFailure() && !IsSkipped() && ran_ == 0)
      GTEST_SKIP() << declined_;
  }

  /// Calls, unless the row has declined; then checks C. False: enough has gone wrong.
  template <class T, class F>
  bool run(Flush flush, const cases::Case& description, const Output<T>& C, F&& call) {
    current.flush = flush;
    current.description = description;
    try {
      call(*context_);
    } catch (const Error& e) {
      if (e.status() != Status::NotSupported) {
        ADD_FAILURE() << e.what() << "\n" << describe();
        return ++failed_ < 5;
      }
      if (declined_.empty()) declined_ = e.what();
      return true;
    }
    ++ran_;
    if (const std::string found = C.check(); !found.empty()) {
      ADD_FAILURE() << found << "\n" << describe();
      return ++failed_ < 5;
    }
    return true;
  }

  GuardedPages pages_[3];
  std::optional<Context> context_;
  std::string declined_;  ///< a reason

 private:
  int ran_ = 0, failed_ = 0;
};

// ---------------------------------------------------------------------------------------------------
// gemm

/// The sizes of a type's products.
struct Sizes {
  std::vector<Index> m, n, k;
};
std::vector<Index> up_to(Index last) {
  std::vector<Index> all;
  for (Index i = 1; i <= last; ++i) all.push_back(i);
  return all;
}
Sizes small_sizes(DType type) {
#ifdef MBLAS_TEST_SANITIZED
  const std::vector<Index> few{1, 3, 8, 17};
#else
  if (type == DType::f32 || type == DType::f64) return {up_to(20), up_to(20), up_to(20)};
  const std::vector<Index> few{1, 2, 3, 5, 8, 13, 16, 17, 20};
#endif
  static_cast<void>(type);
  return {few, few, {1, 2, 3, 4, 7, 16, 20, 33, 65}};
}

std::vector<Op> ops_of(DType type) {
  if (is_complex(type)) return {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans};
  return {Op::NoTrans, Op::Trans};
}
/// A scalar that is neither 0 nor 1, and 1.
Scalar other_scalar(DType type) {
  return type == DType::i8  ? Scalar{-3, 0}
         : is_complex(type) ? Scalar{0.75, -1.25}
                            : Scalar{-0.75, 0};
}

class GuardGemm : public Guard {
 protected:
  template <class TA, class TC>
  struct Problem {
    using W = cases::wide_t<TA>;
    const Values<TA>&X, &Y;
    const Values<TC>& Z;  ///< C before
    Index m, n, k;
    Op transA, transB;
    Scalar alpha, beta;
  };

  /// Asks the row beforehand: those that decline nearly everything would take most of the time.
  template <class TA, class TC>
  bool declines(const Problem<TA, TC>& p, const Input<TA>& A, const Input<TA>& B) {
    if (p.alpha == Scalar{}) return false;
    if (!kernel_) {
      for (const Kernel<GemmArgs>& kernel : GetParam().backend->gemm_kernels())
        if (kernel.name == GetParam().kernel) kernel_ = &kernel;
      queue_ = GetParam().backend->make_queue({});
      queue_->set_num_threads(1);
    }
    GemmArgs args;
    args.in = dtype_v<TA>, args.out = dtype_v<TC>;
    args.transA = p.transA, args.transB = p.transB;
    args.m = p.m, args.n = p.n, args.k = p.k;
    args.alpha = p.alpha, args.beta = p.beta;
    args.A = {A.data, A.ld}, args.B = {B.data, B.ld}, args.C = {pages_[2].writable(), p.n};
    if (args.in == DType::i8 && !(kernel_->fuses && kernel_->fuses(args)))
      args.out = DType::i32;  // what the row is given
    const char* reason = kernel_->declines(args, queue_->device());
    if (reason) declined_ = reason;
    return reason != nullptr;
  }

  /// One call; `sum(i, j)` is element (i, j) of op(A) op(B).
  template <class TA, class TC, class Sum>
  bool multiply(Flush flush, Index pad, const Problem<TA, TC>& p, const Input<TA>& A,
                const Input<TA>& B, Sum&& sum) {
    using W = std::conditional_t<std::is_integral_v<TA>, cases::wide_t<TC>, cases::wide_t<TA>>;
    if (declines(p, A, B)) return true;
    Output<TC> C(pages_[2], flush, p.m, p.n, pad);
    const auto alpha = cases::scalar<W>(p.alpha), beta = cases::scalar<W>(p.beta);
    const bool reads_c = !(p.beta == Scalar{});
    for (Index i = 0; i < p.m; ++i) {
      for (Index j = 0; j < p.n; ++j) {
        W value = p.alpha == Scalar{} ? W(0) : alpha * W(sum(i, j));
        if (reads_c) {
          C.data()[i * C.ld() + j] = p.Z.at(i, j);
          value += beta * W(cases::widen(p.Z.at(i, j)));
        }
        C.want(i, j) = narrow<TC>(cases::wide_t<TC>(value));
      }
    }
    const cases::GemmCase description{.in = dtype_v<TA>,
                                      .out = dtype_v<TC>,
                                      .transA = p.transA,
                                      .transB = p.transB,
                                      .m = p.m,
                                      .n = p.n,
                                      .k = p.k,
                                      .lda = A.ld,
                                      .ldb = B.ld,
                                      .ldc = C.ld(),
                                      .alpha = p.alpha,
                                      .beta = p.beta,
                                      .data = cases::Data::Integers};
    using S = scalar_t<TA, TC>;
    return run(flush, description, C, [&](Context& context) {
      gemm(context, R, p.transA, p.transB, p.m, p.n, p.k, cases::scalar<S>(p.alpha), A.data, A.ld,
           B.data, B.ld, cases::scalar<S>(p.beta), C.data(), C.ld());
    });
  }

  template <class TA, class TC>
  void small() {
    using W = cases::wide_t<TA>;
    const Sizes sizes = small_sizes(dtype_v<TA>);
    const Index most_m = sizes.m.back(), most_n = sizes.n.back(), most_k = sizes.k.back();
    const Values<TA> X(most_m, most_k, 1), Y(most_k, most_n, 2);
    const Values<TC> Z(most_m, most_n, 3);
    // sums[conjugated A][conjugated B][k][i][j]
    std::vector<W> sums[2][2];
    const auto at = [&](Index k, Index i, Index j) {
      return std::size_t((k * most_m + i) * most_n + j);
    };
    for (const bool ca : {false, true}) {
      for (const bool cb : {false, true}) {
        if ((ca || cb) && !is_complex(dtype_v<TA>)) continue;
        std::vector<W>& table = sums[ca][cb];
        table.assign(at(most_k + 1, 0, 0), W(0));
        for (Index k = 0; k < most_k; ++k)
          for (Index i = 0; i < most_m; ++i)
            for (Index j = 0; j < most_n; ++j)
              table[at(k + 1, i, j)] =
                  table[at(k, i, j)] + W(cases::widen(conjugated(X.at(i, k), ca))) *
                                           W(cases::widen(conjugated(Y.at(k, j), cb)));
      }
    }
    const std::vector<Op> ops = ops_of(dtype_v<TA>);
    const Scalar one{1, 0}, other = other_scalar(dtype_v<TA>);
    for (const auto& [flush, pad] : kPlaces)
      for (const Op ta : ops)
        for (const Index m : sizes.m)
          for (const Index k : sizes.k) {
            const Input<TA> A = place(pages_[0], flush, X, ta, m, k, pad);
            for (const Op tb : ops)
              for (const Index n : sizes.n) {
                const Input<TA> B = place(pages_[1], flush, Y, tb, k, n, pad);
                const std::vector<W>& table = sums[is_conjugated(ta)][is_conjugated(tb)];
                const auto sum = [&](Index i, Index j) { return table[at(k, i, j)]; };
                for (const Scalar beta : {Scalar{}, one, other}) {
                  const Scalar alpha = (m + n + k) % 2 ? one : other;
                  const Problem<TA, TC> p{X, Y, Z, m, n, k, ta, tb, alpha, beta};
                  if (!multiply(flush, pad, p, A, B, sum)) return;
                }
              }
          }
    // Operands that must not be read.
    for (const Index m : {1, 5, 17})
      for (const Index n : {1, 6, 16})
        for (const Index k : {1, 3, 20})
          for (const Scalar beta : {Scalar{}, one, other}) {
            const Problem<TA, TC> p{X, Y, Z, m, n, k, Op::NoTrans, Op::NoTrans, {}, beta};
            const Input<TA> A{forbidden<TA>(pages_[0]), k}, B{forbidden<TA>(pages_[1]), n};
            if (!multiply(Flush::End, 0, p, A, B, [](Index, Index) { return W(0); })) return;
          }
  }

  /// Around the edges of tiles and blocks, on one thread and several.
  template <class TA, class TC>
  void large() {
    using W = cases::wide_t<TA>;
    constexpr Index kEdges[] = {1,  3,  15, 16,  17,  24,  31,  33,  47,  48,  63,  64,
                                65, 96, 97, 127, 128, 129, 191, 193, 255, 257, 384, 385};
#ifdef MBLAS_TEST_SANITIZED
    const int samples = 4;
    const double most = 3e5;
#else
    const int samples = dtype_v<TA> == DType::f32 || dtype_v<TA> == DType::f64 ? 24 : 12;
    const double most = 4e6;
#endif
    Random random(std::uint64_t(dtype_v<TA>) * 16 + std::uint64_t(dtype_v<TC>));
    const auto edge = [&] { return kEdges[random.below(std::size(kEdges))]; };
    std::vector<std::array<Index, 3>> shapes{
        {1, 700, 900}, {700, 1, 900}, {8, 8, 3001}, {2001, 16, 16}, {300, 300, 5}};
    while (int(shapes.size()) < samples)
      if (const std::array<Index, 3> s{edge(), edge(), edge()};
          double(s[0]) * double(s[1]) * double(s[2]) <= most)
        shapes.push_back(s);
    // A few rows or columns, all numbers of them that kernels may have code for.
    for (const Index few : {2, 3, 4, 5, 6, 7, 8, 9, 17, 24})
      for (int turn = 0; turn < 3; ++turn) {
        shapes.push_back({few, 64 + 23 * turn + few, 64 + few});
        shapes.push_back({64 + 23 * turn + few, few, 64 + few});
      }
    const std::vector<Op> ops = ops_of(dtype_v<TA>);
    for (const auto& [m, n, k] : shapes) {
      const Values<TA> X(m, k, 1), Y(k, n, 2);
      const Values<TC> Z(m, n, 3);
      const Op ta = ops[std::size_t(random.below(Index(ops.size())))];
      const Op tb = ops[std::size_t(random.below(Index(ops.size())))];
      std::vector<W> sums(std::size_t(m * n)), line(static_cast<std::size_t>(n));
      for (Index i = 0; i < m; ++i) {
        std::fill(line.begin(), line.end(), W(0));
        for (Index l = 0; l < k; ++l) {
          const W x(cases::widen(conjugated(X.at(i, l), is_conjugated(ta))));
          for (Index j = 0; j < n; ++j)
            line[std::size_t(j)] += x * W(cases::widen(conjugated(Y.at(l, j), is_conjugated(tb))));
        }
        std::copy(line.begin(), line.end(), sums.begin() + i * n);
      }
      const Scalar one{1, 0}, other = other_scalar(dtype_v<TA>);
      for (const Flush flush : kFlushes) {
        const Index pad = random.below(2) * 3;
        const Scalar beta = std::array{Scalar{}, one, other}[std::size_t(random.below(3))];
        const Input<TA> A = place(pages_[0], flush, X, ta, m, k, pad);
        const Input<TA> B = place(pages_[1], flush, Y, tb, k, n, pad);
        const Problem<TA, TC> p{X, Y, Z, m, n, k, ta, tb, random.below(2) ? one : other, beta};
        for (const int threads : {1, 3}) {
          context_->set_num_threads(threads);
          if (!multiply(flush, pad, p, A, B,
                        [&](Index i, Index j) { return sums[std::size_t(i * n + j)]; }))
            return;
        }
      }
    }
  }

  const Kernel<GemmArgs>* kernel_ = nullptr;
  std::unique_ptr<Queue> queue_;

  template <class F>
  void visit(F&& f) {
    cases::visit_gemm_types(GetParam().types.in, GetParam().types.out, f);
  }
};

TEST_P(GuardGemm, Small) {
  visit(
      [&]<class TA, class TC>(std::type_identity<TA>, std::type_identity<TC>) { small<TA, TC>(); });
}
TEST_P(GuardGemm, Large) {
  visit(
      [&]<class TA, class TC>(std::type_identity<TA>, std::type_identity<TC>) { large<TA, TC>(); });
}
INSTANTIATE_TEST_SUITE_P(Rows, GuardGemm, ::testing::ValuesIn(rows_of<GemmArgs>()),
                         ::testing::PrintToStringParamName());

// ---------------------------------------------------------------------------------------------------
// geam

class GuardGeam : public Guard {
 protected:
  template <class T>
  bool add(Flush flush, Index pad, Index m, Index n, Op ta, Op tb, Scalar alpha, Scalar beta,
           const Values<T>& X, const Values<T>& Y, const Input<T>& A, const Input<T>& B,
           Alias alias = Alias::None) {
    using W = cases::wide_t<T>;
    Output<T> C(pages_[2], flush, m, n, pad);
    const auto a = cases::scalar<W>(alpha), b = cases::scalar<W>(beta);
    for (Index i = 0; i < m; ++i) {
      for (Index j = 0; j < n; ++j) {
        W value(0);
        if (!(alpha == Scalar{}))
          value += a * W(cases::widen(conjugated(X.at(i, j), is_conjugated(ta))));
        if (!(beta == Scalar{}))
          value += b * W(cases::widen(conjugated(Y.at(i, j), is_conjugated(tb))));
        C.want(i, j) = narrow<T>(value);
        if (alias != Alias::None)
          C.data()[i * C.ld() + j] = alias == Alias::A ? X.at(i, j) : Y.at(i, j);
      }
    }
    const T* const pa = alias == Alias::A ? C.data() : A.data;
    const T* const pb = alias == Alias::B ? C.data() : B.data;
    const cases::GeamCase description{.type = dtype_v<T>,
                                      .transA = ta,
                                      .transB = tb,
                                      .m = m,
                                      .n = n,
                                      .lda = A.ld,
                                      .ldb = B.ld,
                                      .ldc = C.ld(),
                                      .alpha = alpha,
                                      .beta = beta,
                                      .alias = alias,
                                      .data = cases::Data::Integers};
    using S = scalar_t<T>;
    return run(flush, description, C, [&](Context& context) {
      geam(context, R, ta, tb, m, n, cases::scalar<S>(alpha), pa, A.ld, cases::scalar<S>(beta), pb,
           B.ld, C.data(), C.ld());
    });
  }

  template <class T>
  void sizes(const std::vector<Index>& rows, const std::vector<Index>& cols, int one_of) {
    const Values<T> X(rows.back(), cols.back(), 1), Y(rows.back(), cols.back(), 2);
    const Scalar one{1, 0}, other = other_scalar(dtype_v<T>);
    int turn = 0;
    for (const Flush flush : kFlushes)
      for (const Index pad : kPads)
        for (const Index m : rows)
          for (const Index n : cols)
            for (const Op ta : ops_of(dtype_v<T>))
              for (const Op tb : ops_of(dtype_v<T>)) {
                if (++turn % one_of) continue;
                const Input<T> A = place(pages_[0], flush, X, ta, m, n, pad);
                const Input<T> B = place(pages_[1], flush, Y, tb, m, n, pad);
                for (const Scalar alpha : {Scalar{}, one, other})
                  for (const Scalar beta : {Scalar{}, one, other}) {
                    const Input<T> no_a{forbidden<T>(pages_[0]), A.ld};
                    const Input<T> no_b{forbidden<T>(pages_[1]), B.ld};
                    if (!add<T>(flush, pad, m, n, ta, tb, alpha, beta, X, Y,
                                alpha == Scalar{} ? no_a : A, beta == Scalar{} ? no_b : B))
                      return;
                  }
                if (!is_transposed(ta) &&
                    !add<T>(flush, pad, m, n, ta, tb, other, one, X, Y, A, B, Alias::A))
                  return;
                if (!is_transposed(tb) &&
                    !add<T>(flush, pad, m, n, ta, tb, one, other, X, Y, A, B, Alias::B))
                  return;
              }
  }
};

TEST_P(GuardGeam, Small) {
  cases::visit_float(GetParam().types.in, [&]<class T>(std::type_identity<T>) {
    const DType type = GetParam().types.in;
    const Sizes s = small_sizes(type);
    sizes<T>(s.m, s.n, is_complex(type) ? 5 : 1);
  });
}
TEST_P(GuardGeam, Large) {
  cases::visit_float(GetParam().types.in, [&]<class T>(std::type_identity<T>) {
    const int one_of = is_complex(GetParam().types.in) ? 17 : 5;
    sizes<T>({33, 65, 131}, {31, 64, 67, 257}, one_of);
    for (const int threads : {1, 3}) {
      context_->set_num_threads(threads);
      sizes<T>({515}, {1027}, one_of);
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Rows, GuardGeam, ::testing::ValuesIn(rows_of<GeamArgs>()),
                         ::testing::PrintToStringParamName());

// ---------------------------------------------------------------------------------------------------
// Transposes

template <class T>
T bytes_of(Index i, Index j) {
  // Bytes that differ between neighbours and are never those of the surroundings.
  const auto word =
      (std::uint64_t(i) * 0x9e3779b97f4a7c15u + std::uint64_t(j) * 0xd1342543de82ef95u) &
      0x7f7f7f7f7f7f7f7fu;
  if constexpr (sizeof(T) == 16)
    return T{{word, word * 3 & 0x7f7f7f7f7f7f7f7fu}};
  else
    return T(word >> (64 - 8 * sizeof(T)));
}

std::vector<std::array<Index, 2>> transposed_shapes([[maybe_unused]] int element_bytes) {
  std::vector<std::array<Index, 2>> list;
  const std::vector<Index> edges{47, 48, 49, 63, 64, 65, 127, 129};
#ifdef MBLAS_TEST_SANITIZED
  const Index most = 18;
#else
  const Index most = 40;
#endif
  for (Index m = 1; m <= most; ++m)
    for (Index n = 1; n <= most; ++n) list.push_back({m, n});
  for (const Index m : edges)
    for (const Index n : edges) list.push_back({m, n});
  for (const Index m : edges)
    for (const Index n : {1, 7, 20}) list.insert(list.end(), {{m, n}, {n, m}});
  list.insert(
      list.end(),
      {{513, 1027}, {512, 512}, {4093, 1030}, {33, 5000}, {5000, 17}, {3, 20000}, {20000, 2}});
#ifndef MBLAS_TEST_SANITIZED
  // About 20 MB: beyond most caches.
  const Index side = element_bytes == 1   ? 4493
                     : element_bytes == 2 ? 3181
                     : element_bytes == 4 ? 2251
                     : element_bytes == 8 ? 1597
                                          : 1123;
  list.insert(list.end(), {{side, side}, {side + 14, side - 10}});
#endif
  return list;
}

class GuardTranspose : public Guard {};
TEST_P(GuardTranspose, All) {
  cases::visit_untyped(GetParam().types.in, [&]<class T>(std::type_identity<T>) {
    for (const auto& [m, n] : transposed_shapes(int(sizeof(T)))) {
      for (const Flush flush : kFlushes) {
        for (const Index pad : kPads) {
          const bool large = m * n > 100000;
          // Each way once is enough of the largest; 4093 rows with padding against the end of
          // their pages begin alike, but not on lines.
          if (m * n > 4300000 && (pad != 0) != (flush == Flush::Start)) continue;
          const Index lda = n + pad;
          const auto bytes = std::size_t((m - 1) * lda + n) * sizeof(T);
          pages_[0].reserve(bytes);
          const std::size_t start = flush == Flush::Start ? 0 : pages_[0].size() - bytes;
          T* const to = reinterpret_cast<T*>(pages_[0].writable() + start);
          Output<T> B(pages_[2], flush, n, m, pad);
          for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < n; ++j) to[i * lda + j] = bytes_of<T>(i, j);
          for (Index j = 0; j < n; ++j)
            for (Index i = 0; i < m; ++i) B.want(j, i) = bytes_of<T>(i, j);
          const auto* const A = reinterpret_cast<const T*>(pages_[0].readable() + start);
          const cases::TransposeCase description{
              .type = GetParam().types.in, .m = m, .n = n, .lda = lda, .ldb = B.ld()};
          context_->set_num_threads(large ? 3 : 1);
          if (!run(flush, description, B, [&](Context& context) {
                transpose(context, R, m, n, A, lda, B.data(), B.ld());
              }))
            return;
        }
      }
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Rows, GuardTranspose, ::testing::ValuesIn(rows_of<TransposeArgs>()),
                         ::testing::PrintToStringParamName());

class GuardTransposeInplace : public Guard {};
TEST_P(GuardTransposeInplace, All) {
  cases::visit_untyped(GetParam().types.in, [&]<class T>(std::type_identity<T>) {
    for (const auto& [m, n] : transposed_shapes(int(sizeof(T)))) {
      for (const Flush flush : kFlushes) {
        for (const Index pad : kPads) {
          const bool large = m * n > 100000;
          if (large && (pad != 0) != (flush == Flush::Start)) continue;
          const Index lda = n + pad;
          Output<T> A(pages_[2], flush, n, m, pad, (m - 1) * lda + n);
          for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < n; ++j) A.data()[i * lda + j] = bytes_of<T>(i, j);
          for (Index j = 0; j < n; ++j)
            for (Index i = 0; i < m; ++i) A.want(j, i) = bytes_of<T>(i, j);
          const cases::TransposeInplaceCase description{
              .type = GetParam().types.in, .m = m, .n = n, .lda = lda, .ldb = A.ld()};
          context_->set_num_threads(large ? 3 : 1);
          if (!run(flush, description, A, [&](Context& context) {
                transpose_inplace(context, R, m, n, A.data(), lda, A.ld());
                // What belonged to the source only is undefined.
                for (Index i = 0; i < m; ++i)
                  for (Index j = 0; j < n; ++j)
                    if (const Index at = i * lda + j; at / A.ld() >= n || at % A.ld() >= m)
                      std::memset(static_cast<void*>(A.data() + at), 0xff, sizeof(T));
              }))
            return;
        }
      }
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Rows, GuardTransposeInplace,
                         ::testing::ValuesIn(rows_of<TransposeInplaceArgs>()),
                         ::testing::PrintToStringParamName());

// ---------------------------------------------------------------------------------------------------
// GF(2^8)

class GuardGf256 : public Guard {
 protected:
  /// C = A B, or Z + A B, of which `sums` has A B in rows of `pitch`; false where it failed.
  bool product(Flush flush, const Input<std::uint8_t>& A, const Input<std::uint8_t>& B,
               const Values<std::uint8_t>& Z, Index m, Index n, Index k, Index pad, bool accumulate,
               const std::vector<std::uint8_t>& sums, Index pitch) {
    Output<std::uint8_t> C(pages_[2], flush, m, n, pad);
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        C.want(i, j) = sums[std::size_t(i * pitch + j)];
        if (accumulate) {
          C.data()[i * C.ld() + j] = Z.at(i, j);
          C.want(i, j) ^= Z.at(i, j);
        }
      }
    const cases::Gf256Case description{
        .m = m, .n = n, .k = k, .lda = A.ld, .ldb = B.ld, .ldc = C.ld(), .accumulate = accumulate};
    return run(flush, description, C, [&](Context& context) {
      gf256::gemm(context, m, n, k, A.data, A.ld, B.data, B.ld, C.data(), C.ld(),
                  {.accumulate = accumulate});
    });
  }
};
TEST_P(GuardGf256, Small) {
  constexpr Index kMostRows = 20, kMostDepth = 17;
  std::vector<Index> widths = up_to(
#ifdef MBLAS_TEST_SANITIZED
      33
#else
      140
#endif
  );
  widths.push_back(1000);
  const Values<std::uint8_t> X(kMostRows, kMostDepth, 1), Y(kMostDepth, widths.back(), 2);
  const Values<std::uint8_t> Z(kMostRows, widths.back(), 3);
  std::vector<std::uint8_t> sum(std::size_t(kMostRows * widths.back()));
  for (Index k = 1, done = 0; k <= kMostDepth; k += k < 5 ? 1 : 6) {
    for (; done < k; ++done)  // sum is X Y of the first k columns of X
      for (Index i = 0; i < kMostRows; ++i)
        for (Index j = 0; j < widths.back(); ++j)
          sum[std::size_t(i * widths.back() + j)] ^= gf256::multiply(X.at(i, done), Y.at(done, j));
    for (const Flush flush : kFlushes)
      for (const Index pad : kPads)
        for (const Index m : {1, 2, 3, 4, 5, 8, 17, 20}) {
          const auto A = place(pages_[0], flush, X, Op::NoTrans, m, k, pad);
          for (const Index n : widths) {
            const auto B = place(pages_[1], flush, Y, Op::NoTrans, k, n, pad);
            for (const bool accumulate : {false, true})
              if (!product(flush, A, B, Z, m, n, k, pad, accumulate, sum, widths.back())) return;
          }
        }
  }
}
TEST_P(GuardGf256, Large) {
  // Deep ones and tall ones, in blocks and panels; the last one is written past the caches where
  // its rows begin alike.
#ifdef MBLAS_TEST_SANITIZED
  const std::vector<std::array<Index, 3>> shapes{{5, 130, 300}, {140, 70, 20}, {9, 3001, 33}};
#else
  const std::vector<std::array<Index, 3>> shapes{{3, 200, 1000}, {130, 300, 520}, {300, 131, 20},
                                                 {16, 5001, 32}, {20, 2999, 100}, {4, 700'001, 10}};
#endif
  std::vector<std::array<std::uint8_t, 256>> times(256);
  for (unsigned a = 0; a < 256; ++a)
    for (unsigned b = 0; b < 256; ++b)
      times[a][b] = gf256::multiply(std::uint8_t(a), std::uint8_t(b));
  for (const auto& [m, n, k] : shapes) {
    const Values<std::uint8_t> X(m, k, 1), Y(k, n, 2), Z(m, n, 3);
    std::vector<std::uint8_t> sums(std::size_t(m * n));
    for (Index i = 0; i < m; ++i)
      for (Index l = 0; l < k; ++l) {
        const auto& by = times[X.at(i, l)];
        for (Index j = 0; j < n; ++j) sums[std::size_t(i * n + j)] ^= by[Y.at(l, j)];
      }
    for (const Flush flush : kFlushes)
      for (const Index pad : {(64 - n % 64) % 64, Index{3}})
        for (const int threads : {1, 3}) {
          const bool accumulate = (pad == 3) == (threads == 1);
          const auto A = place(pages_[0], flush, X, Op::NoTrans, m, k, pad);
          const auto B = place(pages_[1], flush, Y, Op::NoTrans, k, n, pad);
          context_->set_num_threads(threads);
          if (!product(flush, A, B, Z, m, n, k, pad, accumulate, sums, n)) return;
        }
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, GuardGf256, ::testing::ValuesIn(rows_of<Gf256Args>()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace mblas::testing
