// The oracle and the calls of transpose and transpose_inplace. Elements are moved, so equality is
// exact and every one is compared.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "element_types.hpp"
#include "fill.hpp"
#include "mblas/transpose.hpp"
#include "parallel.hpp"
#include "problem.hpp"

namespace mblas::cases {
namespace {

std::string hex(const void* element, std::size_t size) {
  std::string text;
  for (std::size_t i = size; i-- > 0;) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<const unsigned char*>(element)[i];
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

/// Compares `batch` matrices: line i, element j of `to` with line j, element i of `from`.
template <class T>
void compare_transposed(const Buffer& from, const Shape& from_shape, const Buffer& to,
                        const Shape& to_shape, Outcome& outcome) {
  constexpr std::int64_t kTile = 64;
  const std::int64_t tiles = (to_shape.lines + kTile - 1) / kTile;
  const double work = double(to_shape.batch) * double(to_shape.lines) * double(to_shape.length);
  const auto source = [&](std::int64_t b, std::int64_t i, std::int64_t j) {
    return static_cast<const T*>(from.at()) + b * from_shape.stride + j * from_shape.ld + i;
  };
  const auto result = [&](std::int64_t b, std::int64_t i, std::int64_t j) {
    return static_cast<const T*>(to.at()) + b * to_shape.stride + i * to_shape.ld + j;
  };
  const auto in_tile_row = [&](std::int64_t tile_row, auto&& found) {
    const std::int64_t b = tile_row / tiles, i0 = tile_row % tiles * kTile;
    const std::int64_t i1 = std::min(to_shape.lines, i0 + kTile);
    for (std::int64_t j0 = 0; j0 < to_shape.length; j0 += kTile)
      for (std::int64_t i = i0; i < i1; ++i)
        for (std::int64_t j = j0; j < std::min(to_shape.length, j0 + kTile); ++j)
          if (!(*source(b, i, j) == *result(b, i, j))) return found(b, i, j);
  };

  std::atomic<std::int64_t> first_bad = to_shape.batch * tiles;
  parallel_for(to_shape.batch * tiles, work, [&](std::int64_t tile_row) {
    in_tile_row(tile_row, [&](auto...) {
      for (std::int64_t old = first_bad; tile_row < old;)
        if (first_bad.compare_exchange_weak(old, tile_row)) break;
    });
  });
  if (first_bad == to_shape.batch * tiles) return;
  outcome.max_error = outcome.worst_ratio = std::numeric_limits<double>::infinity();
  in_tile_row(first_bad, [&](std::int64_t b, std::int64_t i, std::int64_t j) {
    outcome.fail("matrix " + std::to_string(b) + ", line " + std::to_string(i) + ", element " +
                 std::to_string(j) + ": got " + hex(result(b, i, j), sizeof(T)) + ", want " +
                 hex(source(b, i, j), sizeof(T)));
  });
}

class TransposeProblem final : public Problem {
 public:
  explicit TransposeProblem(const TransposeCase& c) : Problem(c), c_(c) {
    for (const Shape& shape : shapes(c)) operands_.emplace_back(shape, c.offset);
    fill(operands_[0], c.data, c.seed, 0);
  }

  void call(Context& context, std::span<const Placed> at) const override {
    visit_untyped(c_.type, [&]<class T>(std::type_identity<T>) {
      const auto* A = static_cast<const T*>(at[0].at());
      auto* B = static_cast<T*>(at[1].at());
      if (c_.batch != 1)
        transpose_strided_batched(context, c_.layout, c_.m, c_.n, A, c_.lda, c_.strideA, B, c_.ldb,
                                  c_.strideB, c_.batch);
      else
        transpose(context, c_.layout, c_.m, c_.n, A, c_.lda, B, c_.ldb);
    });
  }

 private:
  void compare_result(const Buffer& result, Outcome& outcome) const override {
    visit_untyped(c_.type, [&]<class T>(std::type_identity<T>) {
      compare_transposed<T>(operands_[0], operands_[0].shape(), result, result.shape(), outcome);
    });
  }

  const TransposeCase c_;
};

class TransposeInplaceProblem final : public Problem {
 public:
  explicit TransposeInplaceProblem(const TransposeInplaceCase& c)
      : Problem(c), c_(c), after_(shape_of(c.type, c.layout, c.n, c.m, c.ldb, c.strideA, c.batch)) {
    operands_.emplace_back(shapes(c)[0], c.offset, room(c));
    fill(operands_[0], c.data, c.seed, 0);
  }

  void call(Context& context, std::span<const Placed> at) const override {
    visit_untyped(c_.type, [&]<class T>(std::type_identity<T>) {
      auto* A = static_cast<T*>(at[0].at());
      if (c_.batch != 1)
        transpose_inplace_strided_batched(context, c_.layout, c_.m, c_.n, A, c_.lda, c_.ldb,
                                          c_.strideA, c_.batch);
      else
        transpose_inplace(context, c_.layout, c_.m, c_.n, A, c_.lda, c_.ldb);
    });
  }

 private:
  void compare_result(const Buffer& result, Outcome& outcome) const override {
    visit_untyped(c_.type, [&]<class T>(std::type_identity<T>) {
      compare_transposed<T>(operands_[0], operands_[0].shape(), result, after_, outcome);
    });
  }
  std::string check_untouched(const Buffer& result) const override {
    return result.check_untouched(operands_[0], after_);
  }

  const TransposeInplaceCase c_;
  const Shape after_;
};

}  // namespace

std::unique_ptr<Problem> prepare_case(const TransposeCase& c, double) {
  return std::make_unique<TransposeProblem>(c);
}

std::unique_ptr<Problem> prepare_case(const TransposeInplaceCase& c, double) {
  return std::make_unique<TransposeInplaceProblem>(c);
}

}  // namespace mblas::cases
