// The oracle and the call of geam.
#include "blocks.hpp"
#include "element_types.hpp"
#include "fill.hpp"
#include "mblas/geam.hpp"
#include "problem.hpp"
#include "scalars.hpp"

namespace mblas::cases {
namespace {

template <class T>
class GeamProblem final : public Problem {
  using W = wide_t<T>;

 public:
  GeamProblem(const GeamCase& c, double full_up_to) : Problem(c), c_(c) {
    if (c.alias != Alias::None && !aliased_as_c())
      throw std::invalid_argument(
          "an operand that C is may not be transposed, and has C's ld and stride");
    const std::vector<Shape> all = shapes(c);
    if (c.alias != Alias::A) add_input(a_, all[0], c.alpha);
    if (c.alias != Alias::B) add_input(b_, all[1], c.beta);
    const std::size_t c_index = operands_.size();
    Buffer& C = operands_.emplace_back(all[2], c.offset);
    if (c.alias != Alias::None) fill(C, c.data, c.seed, int(c_index));
    if (c.alias == Alias::A) a_ = c_index;
    if (c.alias == Alias::B) b_ = c_index;

    Selection selection = select_blocks(c.m, c.n, c.batch, 1, full_up_to, c.seed);
    sampled_ = selection.sampled;
    blocks_ = std::move(selection.blocks);
  }

  void call(Context& context, std::span<const Placed> at) const override {
    using S = scalar_t<T>;
    const auto alpha = scalar<S>(c_.alpha), beta = scalar<S>(c_.beta);
    const auto* A = static_cast<const T*>(at[a_].at());
    const auto* B = static_cast<const T*>(at[b_].at());
    auto* C = static_cast<T*>(at.back().at());
    if (c_.batch != 1)
      geam_strided_batched(context, c_.layout, c_.transA, c_.transB, c_.m, c_.n, alpha, A, c_.lda,
                           c_.strideA, beta, B, c_.ldb, c_.strideB, C, c_.ldc, c_.strideC,
                           c_.batch);
    else
      geam(context, c_.layout, c_.transA, c_.transB, c_.m, c_.n, alpha, A, c_.lda, beta, B, c_.ldb,
           C, c_.ldc);
  }

 private:
  bool aliased_as_c() const {
    const bool a = c_.alias == Alias::A;
    return !is_transposed(a ? c_.transA : c_.transB) && (a ? c_.lda : c_.ldb) == c_.ldc &&
           (c_.batch == 1 || (a ? c_.strideA : c_.strideB) == c_.strideC);
  }

  void add_input(std::size_t& index, const Shape& shape, const Scalar& factor) {
    index = operands_.size();
    Buffer& buffer = operands_.emplace_back(shape, c_.offset);
    if (!(factor == Scalar{}) || !c_.nan_unread) fill(buffer, c_.data, c_.seed, int(index));
  }

  void compare_result(const Buffer& result, Outcome& outcome) const override {
    outcome.sampled = sampled_;
    const auto alpha = scalar<W>(c_.alpha), beta = scalar<W>(c_.beta);
    for (const Block& block : blocks_) {
      const auto A = view_of<T>(operands_[a_].at(block.b), c_.layout, c_.transA, c_.lda);
      const auto B = view_of<T>(operands_[b_].at(block.b), c_.layout, c_.transB, c_.ldb);
      const auto C = view_of<T>(result.at(block.b), c_.layout, Op::NoTrans, c_.ldc);
      for (std::int64_t i = block.i; i < block.i + block.rows; ++i) {
        for (std::int64_t j = block.j; j < block.j + block.cols; ++j) {
          Expected<W> want;
          const auto add = [&](const Scalar& given, const W& factor, const View<T>& X) {
            if (given == Scalar{}) return;
            const W x = X.at(i, j);
            want.value += factor * x;
            want.magnitude += magnitude(factor) * magnitude(x);
          };
          add(c_.alpha, alpha, A);
          add(c_.beta, beta, B);
          const double bound = geam_bound(c_.type, want.magnitude, magnitude(want.value));
          compare(*C.from(i, j).data, want, c_.type, bound, block.b, i, j, outcome);
        }
      }
    }
  }

  const GeamCase c_;
  std::size_t a_ = 0, b_ = 0;  ///< which operand is A, which B
  bool sampled_ = false;
  std::vector<Block> blocks_;
};

}  // namespace

std::unique_ptr<Problem> prepare_case(const GeamCase& c, double full_up_to) {
  return visit_float(c.type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Problem> {
    return std::make_unique<GeamProblem<T>>(c, full_up_to);
  });
}

}  // namespace mblas::cases
