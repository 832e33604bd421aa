// Libraries with the C interface of BLAS and 32-bit sizes: OpenBLAS, BLIS and others. Batches go
// through their batched function where there is one, and else problem by problem.
#include <fmt/format.h>

#include <complex>
#include <filesystem>
#include <limits>
#include <optional>
#include <type_traits>

#include "mblas/error.hpp"
#include "peer.hpp"
#include "shared_library.hpp"

namespace mblas::bench {
namespace {

using cases::Case;
using cases::GeamCase;
using cases::GemmCase;
using cases::TransposeCase;
using cases::TransposeInplaceCase;

// The interface, as its reference defines it.
constexpr int kRowMajor = 101, kColMajor = 102;
constexpr int kNoTrans = 111, kTrans = 112, kConjTrans = 113;

template <class S>
using Gemm = void(int order, int trans_a, int trans_b, int m, int n, int k, S alpha, const void* A,
                  int lda, const void* B, int ldb, S beta, void* C, int ldc);
template <class S>
using GemmBatch = void(int order, const int* trans_a, const int* trans_b, const int* m,
                       const int* n, const int* k, const S* alpha, const void** A, const int* lda,
                       const void** B, const int* ldb, const S* beta, void** C, const int* ldc,
                       int groups, const int* group_size);
template <class S>
using Omatcopy = void(int order, int trans, int rows, int cols, S alpha, const void* A, int lda,
                      void* B, int ldb);
template <class S>
using Imatcopy = void(int order, int trans, int rows, int cols, S alpha, void* A, int lda, int ldb);
template <class S>
using Geadd = void(int order, int rows, int cols, S alpha, const void* A, int lda, S beta, void* C,
                   int ldc);

int order_of(Layout layout) { return layout == Layout::RowMajor ? kRowMajor : kColMajor; }

/// Conjugation without transposition has no name in the interface.
std::optional<int> trans_of(Op op, DType type) {
  if (!is_complex(type)) return is_transposed(op) ? kTrans : kNoTrans;
  if (op == Op::ConjNoTrans) return std::nullopt;
  return op == Op::NoTrans ? kNoTrans : op == Op::Trans ? kTrans : kConjTrans;
}

template <class... Sizes>
bool fit_int(Sizes... sizes) {
  return ((sizes <= std::numeric_limits<int>::max()) && ...);
}

/// f(letter of the type in names, scalar); false where the interface lacks the type.
template <class F>
bool with_scalar(DType type, const Scalar& s, F&& f) {
  switch (type) {
    case DType::f32:
      f('s', float(s.re));
      return true;
    case DType::f64:
      f('d', s.re);
      return true;
    case DType::cf32:
      f('c', std::complex<float>(float(s.re), float(s.im)));
      return true;
    case DType::cf64:
      f('z', std::complex<double>(s.re, s.im));
      return true;
    default:
      return false;
  }
}

template <class S>
constexpr bool kComplexScalar = requires {
  typename S::value_type;
};
/// How the interface takes the scalar: complex ones by their address.
template <class S>
using Passed = std::conditional_t<kComplexScalar<S>, const void*, S>;
template <class S>
Passed<S> pass(const S& s) {
  if constexpr (kComplexScalar<S>)
    return &s;
  else
    return s;
}

class Cblas final : public Peer {
 public:
  Cblas(const std::string& path, int threads) : library_(path) {
    library_.get<void()>("cblas_sgemm");
    identify();
    set_threads(threads);
  }

  std::vector<Way> ways(const Case& resolved, std::span<cases::Run> runs) const override {
    std::vector<Way> list;
    std::visit(
        [&](const auto& c) {
          if constexpr (requires { add(c, runs, list); }) add(c, runs, list);
        },
        resolved);
    return list;
  }

 private:
  void identify() {
    const std::string file = std::filesystem::path(library_.path()).filename();
    name_ = file.substr(0, file.find(".so"));
    std::string version;
    if (const auto config = library_.find<char*()>("openblas_get_config")) {
      version = config();
      if (version.find("USE64BITINT") != version.npos) refuse_64_bit();
      name_ = "openblas";
      if (const auto parallel = library_.find<int()>("openblas_get_parallel"))
        name_ += parallel() == 2 ? "-openmp" : parallel() == 1 ? "-pthread" : "";
    } else if (const auto blis = library_.find<char*()>("bli_info_get_version_str")) {
      version = fmt::format("BLIS {}", blis());
      const auto has = [&](const char* question) {
        const auto answer = library_.find<long()>(question);
        return answer && answer() != 0;
      };
      const auto bits = library_.find<long()>("bli_info_get_blas_int_type_size");
      if (bits && bits() == 64) refuse_64_bit();
      name_ = "blis";
      name_ += has("bli_info_get_enable_openmp")     ? "-openmp"
               : has("bli_info_get_enable_pthreads") ? "-pthread"
                                                     : "";
    }
    description_ = fmt::format("{}{}{}", version, version.empty() ? "" : ", ", library_.path());
  }

  [[noreturn]] void refuse_64_bit() const {
    throw Error(
        Status::BackendUnavailable,
        fmt::format("{} takes 64-bit sizes; load its build for 32-bit ones", library_.path()));
  }

  void set_threads(int threads) const {
    // Those of OpenMP's runtime first: the library's own setting has the last word.
    if (const auto omp = library_.find<void(int)>("omp_set_num_threads")) omp(threads);
    if (const auto set = library_.find<void(int)>("openblas_set_num_threads")) set(threads);
    if (const auto set = library_.find<void(std::int64_t)>("bli_thread_set_num_threads"))
      set(threads);
  }

  template <class F>
  F* find(char letter, std::string_view rest) const {
    return library_.find<F>(fmt::format("cblas_{}{}", letter, rest).c_str());
  }

  void add(const GemmCase& c, std::span<cases::Run> runs, std::vector<Way>& list) const {
    if (!is_product(c)) return;
    const auto trans_a = trans_of(c.transA, c.in), trans_b = trans_of(c.transB, c.in);
    if (!trans_a || !trans_b || !fit_int(c.m, c.n, c.k, c.lda, c.ldb, c.ldc)) return;
    const auto add_plain = [&]<class S>(const char* name, const S& alpha, const S& beta) {
      const auto gemm = library_.find<Gemm<Passed<S>>>(name);
      if (!gemm) return;
      Way& way = list.emplace_back(Way{name, {}});
      for (cases::Run& run : runs) {
        const auto at = run.operands();
        const auto call = [=, order = order_of(c.layout), ta = *trans_a, tb = *trans_b,
                           m = int(c.m), n = int(c.n), k = int(c.k), lda = int(c.lda),
                           ldb = int(c.ldb),
                           ldc = int(c.ldc)](const void* A, const void* B, void* C) {
          gemm(order, ta, tb, m, n, k, pass(alpha), A, lda, B, ldb, pass(beta), C, ldc);
        };
        if (c.batch == 1)
          way.calls.push_back(
              [call, A = at[0].at(), B = at[1].at(), C = at[2].at()] { call(A, B, C); });
        else
          way.calls.push_back([call, problems = problems_of(at, c.batch)] {
            for (const Problem& p : problems) call(p.A, p.B, p.C);
          });
      }
    };
    if (c.in == DType::bf16 && c.out == DType::f32)
      return add_plain("cblas_sbgemm", float(c.alpha.re), float(c.beta.re));
    if (c.in != c.out) return;
    with_scalar(c.in, c.alpha, [&]<class S>(char letter, const S& alpha) {
      with_scalar(c.in, c.beta, [&]<class T>(char, const T& beta) {
        if constexpr (std::is_same_v<S, T>) {
          add_plain(fmt::format("cblas_{}gemm", letter).c_str(), alpha, beta);
          if (c.batch != 1) add_batch(letter, c, *trans_a, *trans_b, alpha, beta, runs, list);
        }
      });
    });
  }

  struct Problem {
    const void *A, *B;
    void* C;
  };
  static std::vector<Problem> problems_of(std::span<cases::Placed> at, std::int64_t batch) {
    std::vector<Problem> problems;
    for (std::int64_t b = 0; b < batch; ++b)
      problems.push_back({at[0].at(b), at[1].at(b), at[2].at(b)});
    return problems;
  }

  template <class S>
  void add_batch(char letter, const GemmCase& c, int trans_a, int trans_b, const S& alpha,
                 const S& beta, std::span<cases::Run> runs, std::vector<Way>& list) const {
    const auto gemm = find<GemmBatch<S>>(letter, "gemm_batch");
    if (!gemm || !fit_int(c.batch)) return;
    Way& way = list.emplace_back(Way{fmt::format("cblas_{}gemm_batch", letter), {}});
    for (cases::Run& run : runs) {
      std::vector<const void*> A, B;
      std::vector<void*> C;
      for (const Problem& p : problems_of(run.operands(), c.batch)) {
        A.push_back(p.A);
        B.push_back(p.B);
        C.push_back(p.C);
      }
      way.calls.push_back([=, order = order_of(c.layout), m = int(c.m), n = int(c.n), k = int(c.k),
                           lda = int(c.lda), ldb = int(c.ldb), ldc = int(c.ldc),
                           size = int(c.batch)]() mutable {
        gemm(order, &trans_a, &trans_b, &m, &n, &k, &alpha, A.data(), &lda, B.data(), &ldb, &beta,
             C.data(), &ldc, 1, &size);
      });
    }
  }

  /// The floating-point type that is moved like elements of the size.
  static DType mover(DType type) {
    return size_of(type) == 4    ? DType::f32
           : size_of(type) == 8  ? DType::f64
           : size_of(type) == 16 ? DType::cf64
                                 : DType::b1;
  }

  void add(const TransposeCase& c, std::span<cases::Run> runs, std::vector<Way>& list) const {
    if (c.batch != 1 || !fit_int(c.m, c.n, c.lda, c.ldb)) return;
    with_scalar(mover(c.type), {1, 0}, [&]<class S>(char letter, const S& one) {
      const auto copy = find<Omatcopy<Passed<S>>>(letter, "omatcopy");
      if (!copy) return;
      Way& way = list.emplace_back(Way{fmt::format("cblas_{}omatcopy", letter), {}});
      for (cases::Run& run : runs)
        way.calls.push_back([=, A = run.operands()[0].at(), B = run.operands()[1].at()] {
          copy(order_of(c.layout), kTrans, int(c.m), int(c.n), pass(one), A, int(c.lda), B,
               int(c.ldb));
        });
    });
  }

  void add(const TransposeInplaceCase& c, std::span<cases::Run> runs,
           std::vector<Way>& list) const {
    if (c.batch != 1 || !fit_int(c.m, c.n, c.lda, c.ldb)) return;
    with_scalar(mover(c.type), {1, 0}, [&]<class S>(char letter, const S& one) {
      const auto copy = find<Imatcopy<Passed<S>>>(letter, "imatcopy");
      if (!copy) return;
      Way& way = list.emplace_back(Way{fmt::format("cblas_{}imatcopy", letter), {}});
      for (cases::Run& run : runs)
        way.calls.push_back([=, A = run.operands()[0].at()] {
          copy(order_of(c.layout), kTrans, int(c.m), int(c.n), pass(one), A, int(c.lda),
               int(c.ldb));
        });
    });
  }

  /// alpha op(A) + beta op(B) as BLAS has it: scaled copies, and a sum of matrices that are not
  /// transposed.
  void add(const GeamCase& c, std::span<cases::Run> runs, std::vector<Way>& list) const {
    const auto trans_a = trans_of(c.transA, c.type), trans_b = trans_of(c.transB, c.type);
    if (c.batch != 1 || c.alias != cases::Alias::None || !trans_a || !trans_b ||
        !fit_int(c.m, c.n, c.lda, c.ldb, c.ldc))
      return;
    with_scalar(c.type, c.alpha, [&]<class S>(char letter, const S& alpha) {
      with_scalar(c.type, c.beta, [&]<class T>(char, const T& beta) {
        if constexpr (std::is_same_v<S, T>)
          add_sum(letter, c, *trans_a, *trans_b, alpha, beta, runs, list);
      });
    });
  }

  template <class S>
  void add_sum(char letter, const GeamCase& c, int trans_a, int trans_b, const S& alpha,
               const S& beta, std::span<cases::Run> runs, std::vector<Way>& list) const {
    const auto copy = find<Omatcopy<Passed<S>>>(letter, "omatcopy");
    const auto sum = find<Geadd<Passed<S>>>(letter, "geadd");
    if (!copy || !sum) return;
    Way& way = list.emplace_back(Way{fmt::format("cblas_{0}omatcopy, cblas_{0}geadd", letter), {}});
    const bool by_rows = c.layout == Layout::RowMajor;
    for (cases::Run& run : runs) {
      const auto at = run.operands();
      // A transposed operand is copied, into C or, where C is taken, into a matrix of its own.
      const bool both = trans_a != kNoTrans && trans_b != kNoTrans;
      std::vector<S> spare(both ? std::size_t(c.ldc) * std::size_t(by_rows ? c.m : c.n) : 0);
      way.calls.push_back([=, spare = std::move(spare), order = order_of(c.layout), A = at[0].at(),
                           B = at[1].at(), C = at[2].at()]() mutable {
        const auto copy_to = [&](int trans, const S& factor, const void* X, std::int64_t ldx,
                                 void* to) {
          const bool same = trans == kNoTrans;
          copy(order, trans, int(same ? c.m : c.n), int(same ? c.n : c.m), pass(factor), X,
               int(ldx), to, int(c.ldc));
        };
        const S one(1);
        const auto add_to_c = [&](const S& factor, const void* X, std::int64_t ldx) {
          sum(order, int(c.m), int(c.n), pass(factor), X, int(ldx), pass(one), C, int(c.ldc));
        };
        if (trans_a == kNoTrans) {
          copy_to(trans_b, beta, B, c.ldb, C);
          add_to_c(alpha, A, c.lda);
        } else {
          copy_to(trans_a, alpha, A, c.lda, C);
          if (trans_b == kNoTrans) {
            add_to_c(beta, B, c.ldb);
          } else {
            copy_to(trans_b, beta, B, c.ldb, spare.data());
            add_to_c(one, spare.data(), c.ldc);
          }
        }
      });
    }
  }

  SharedLibrary library_;
};

}  // namespace

std::unique_ptr<Peer> load_cblas(const std::string& path, int threads) {
  return std::make_unique<Cblas>(path, threads);
}

}  // namespace mblas::bench
