// The oracle and the call of gemm.
#include <numbers>

#include "blocks.hpp"
#include "element_types.hpp"
#include "fill.hpp"
#include "mblas/gemm.hpp"
#include "parallel.hpp"
#include "problem.hpp"
#include "scalars.hpp"

namespace mblas::cases {
namespace {

template <class TA, class TC>
class GemmProblem final : public Problem {
  using W = wide_t<TA>;                                                ///< of the product
  using R = std::conditional_t<std::is_integral_v<W>, wide_t<TC>, W>;  ///< of what C is given

 public:
  GemmProblem(const GemmCase& c, double full_up_to) : Problem(c), c_(c) {
    int operand = 0;
    for (const Shape& shape : shapes(c)) {
      Buffer& buffer = operands_.emplace_back(shape, c.offset);
      const bool is_c = operand == int(shapes(c).size()) - 1;
      const bool read = operand < 2 ? !(c.alpha == Scalar{}) : !is_c || !(c.beta == Scalar{});
      if (read || !c.nan_unread) fill(buffer, c.data, c.seed, operand);
      if (read && operand < 2 && is_arranged(c.data)) arrange(buffer, operand);
      ++operand;
    }
    expect(full_up_to);
  }

  void call(Context& context, std::span<const Placed> at) const override {
    using S = scalar_t<TA, TC>;
    const GemmOptions options = options_of(c_, at);
    const auto alpha = scalar<S>(c_.alpha), beta = scalar<S>(c_.beta);
    const auto* A = static_cast<const TA*>(at[0].at());
    const auto* B = static_cast<const TA*>(at[1].at());
    auto* C = static_cast<TC*>(at.back().at());
    if (c_.pointers) {
      gemm_batched(context, c_.layout, c_.transA, c_.transB, c_.m, c_.n, c_.k, alpha,
                   typed<const TA>(at[0]), c_.lda, typed<const TA>(at[1]), c_.ldb, beta,
                   typed<TC>(at.back()), c_.ldc, options);
    } else if (c_.batch != 1) {
      gemm_strided_batched(context, c_.layout, c_.transA, c_.transB, c_.m, c_.n, c_.k, alpha, A,
                           c_.lda, c_.strideA, B, c_.ldb, c_.strideB, beta, C, c_.ldc, c_.strideC,
                           c_.batch, options);
    } else {
      gemm(context, c_.layout, c_.transA, c_.transB, c_.m, c_.n, c_.k, alpha, A, c_.lda, B, c_.ldb,
           beta, C, c_.ldc, options);
    }
  }

 private:
  template <class T>
  static std::span<T* const> typed(const Placed& operand) {
    const std::span<void* const> pointers = operand.pointers();
    return {reinterpret_cast<T* const*>(pointers.data()), pointers.size()};
  }

  /// Whether data depends on places in op(A) and op(B).
  static bool is_arranged(Data data) {
    return data == Data::Formulas || data == Data::Scaled || data == Data::Cancelling;
  }
  void arrange(Buffer& buffer, int operand) const {
    if constexpr (std::is_floating_point_v<TA>) {
      const Shape& s = buffer.shape();
      // Lines are rows of op(X), or its columns.
      const bool rows =
          is_transposed(operand == 0 ? c_.transA : c_.transB) == (c_.layout == Layout::ColMajor);
      const auto extent_i = rows ? s.lines : s.length, extent_j = rows ? s.length : s.lines;
      for (std::int64_t b = 0; b < s.stored(); ++b) {
        const auto at = [&](std::int64_t i, std::int64_t j) -> TA& {
          return static_cast<TA*>(buffer.line(b, rows ? i : j))[rows ? j : i];
        };
        for (std::int64_t i = 0; i < extent_i; ++i)
          for (std::int64_t j = 0; j < extent_j; ++j) {
            TA& x = at(i, j);
            if (c_.data == Data::Formulas) {
              const auto di = double(i), dj = double(j);
              x = TA(operand == 0 ? (di - 0.1 * dj + 1) / (di + dj + 1)
                                  : (dj - 0.2 * di + 1) * (di + dj + 1) / (di * di + dj * dj + 1));
            } else if (c_.data == Data::Scaled) {
              if (operand == 0) x = std::ldexp(x, 100 * int(1 - i % 3));
            } else if (c_.data == Data::Cancelling) {
              if (operand == 0 && j % 2 == 1) x = -at(i, j - 1);
              if (operand == 1 && i % 2 == 1) x = std::nextafter(at(i - 1, j), TA(2));
            }
          }
      }
    }
  }

  void expect(double full_up_to) {
    const double cost = double(std::max<std::int64_t>(1, c_.k)) * (is_complex_v<TA> ? 4 : 1);
    Selection selection = select_blocks(c_.m, c_.n, c_.batch, cost, full_up_to, c_.seed);
    sampled_ = selection.sampled;
    blocks_ = std::move(selection.blocks);
    std::int64_t elements = 0;
    for (const Block& block : blocks_) {
      first_.push_back(elements);
      elements += block.rows * block.cols;
    }
    expected_.resize(std::size_t(elements));
    sums_.resize(std::size_t(elements));
    parallel_for(std::int64_t(blocks_.size()), double(elements) * cost, [&](std::int64_t i) {
      expect(blocks_[std::size_t(i)], &expected_[first_[i]], &sums_[first_[i]]);
    });
  }

  /// What follows the product and beta C, with the magnitude of the sum before the activation.
  double finish(Expected<R>& x, std::int64_t i, std::int64_t j) const {
    if (c_.bias != BiasPer::None) {
      const auto* bias = static_cast<const TC*>(operands_[2].at());
      const auto b = R(widen(bias[c_.bias == BiasPer::Row ? i : j]));
      x.value += b;
      x.magnitude += magnitude(b);
    }
    const double sum = magnitude(x.value);
    if constexpr (std::is_floating_point_v<R>) {
      if (c_.activation == Activation::Relu) x.value = x.value <= 0 ? 0 : x.value;
      if (c_.activation == Activation::Gelu) {
        const R root = std::sqrt(2 / std::numbers::pi_v<R>), v = x.value;
        x.value = v / (1 + std::exp(-2 * root * (v + R(0.044715L) * v * v * v)));
      }
      x.value *= R(c_.scale);
    } else if constexpr (is_complex_v<TC>) {
      if (c_.scale != 1) x.value *= typename R::value_type(c_.scale);
    }
    return sum;
  }

  void expect(const Block& block, Expected<R>* to, double* sum) const {
    const auto alpha = scalar<R>(c_.alpha), beta = scalar<R>(c_.beta);
    std::vector<Expected<W>> products(std::size_t(block.rows * block.cols));
    if (!(c_.alpha == Scalar{})) {
      const auto A = view_of<TA>(operands_[0].at(block.b), c_.layout, c_.transA, c_.lda);
      const auto B = view_of<TA>(operands_[1].at(block.b), c_.layout, c_.transB, c_.ldb);
      multiply(A.from(block.i, 0), B.from(0, block.j), block.rows, block.cols, c_.k,
               products.data(), block.cols, 1);
      if (is_normwise(c_.compute)) find_largest(A, B, block, products);
    }
    const auto C = view_of<TC>(operands_.back().at(block.b), c_.layout, Op::NoTrans, c_.ldc);
    const Expected<W>* product = products.data();
    for (std::int64_t i = 0; i < block.rows; ++i) {
      for (std::int64_t j = 0; j < block.cols; ++j, ++to, ++sum, ++product) {
        // A product with alpha == 0 would make NaN of an infinity that must not be read.
        if (!(c_.alpha == Scalar{})) *to = scaled(alpha, *product);
        if (!(c_.beta == Scalar{})) {
          const auto old = R(C.at(block.i + i, block.j + j));
          to->value += beta * old;
          to->magnitude += magnitude(beta) * magnitude(old);
        }
        if constexpr (std::is_integral_v<R>) to->value = std::int32_t(to->value);
        *sum = finish(*to, block.i + i, block.j + j);
      }
    }
  }

  void find_largest(const View<TA>& A, const View<TA>& B, const Block& block,
                    std::vector<Expected<W>>& products) const {
    std::vector<double> of_rows(std::size_t(block.rows)), of_cols(std::size_t(block.cols));
    for (std::int64_t p = 0; p < c_.k; ++p) {
      for (std::int64_t i = 0; i < block.rows; ++i)
        of_rows[i] = std::max(of_rows[i], double(magnitude(A.at(block.i + i, p))));
      for (std::int64_t j = 0; j < block.cols; ++j)
        of_cols[j] = std::max(of_cols[j], double(magnitude(B.at(p, block.j + j))));
    }
    for (std::size_t e = 0; e < products.size(); ++e)
      products[e].largest =
          double(c_.k) * of_rows[e / of_cols.size()] * of_cols[e % of_cols.size()];
  }

  static Expected<R> scaled(const R& alpha, const Expected<W>& product) {
    if constexpr (std::is_same_v<R, W>) {
      const double factor = magnitude(alpha);
      return {alpha * product.value, factor * product.magnitude, factor * product.largest};
    } else {  // exact but for the conversion: int32 wraps
      const auto sum = R(std::int32_t(product.value));
      return {alpha * sum, magnitude(alpha) * magnitude(sum)};
    }
  }

  void compare_result(const Buffer& result, Outcome& outcome) const override {
    outcome.sampled = sampled_;
    const Expected<R>* want = expected_.data();
    const double* sum = sums_.data();
    for (const Block& block : blocks_) {
      const auto C = view_of<TC>(result.at(block.b), c_.layout, Op::NoTrans, c_.ldc);
      for (std::int64_t i = 0; i < block.rows; ++i) {
        for (std::int64_t j = 0; j < block.cols; ++j, ++want, ++sum) {
          const double bound =
              gemm_bound(c_.in, c_.out, c_.k, want->magnitude, magnitude(want->value), c_.compute,
                         epilogue_of(c_), *sum, want->largest, c_.tolerance);
          compare(*C.from(block.i + i, block.j + j).data, *want, c_.in, bound, block.b, block.i + i,
                  block.j + j, outcome);
        }
      }
    }
  }

  const GemmCase c_;
  bool sampled_ = false;
  std::vector<Block> blocks_;
  std::vector<std::int64_t> first_;  ///< index in expected_ of each block
  std::vector<Expected<R>> expected_;
  std::vector<double> sums_;  ///< magnitudes, before the activation
};

}  // namespace

GemmOptions options_of(const GemmCase& c, std::span<const Placed> at) {
  GemmOptions options{.compute = c.compute, .epilogue = epilogue_of(c), .tolerance = c.tolerance};
  if (c.bias != BiasPer::None) options.epilogue.bias.data = at[2].at();
  return options;
}

std::unique_ptr<Problem> prepare_case(const GemmCase& c, double full_up_to) {
  return visit_gemm_types(
      c.in, c.out,
      [&]<class TA, class TC>(std::type_identity<TA>,
                              std::type_identity<TC>) -> std::unique_ptr<Problem> {
        return std::make_unique<GemmProblem<TA, TC>>(c, full_up_to);
      });
}

}  // namespace mblas::cases
