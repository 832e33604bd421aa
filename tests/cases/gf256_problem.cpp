// The oracle and the calls of gf256. Products are exact, so equality is too.
#include <array>
#include <cstring>
#include <optional>

#include "blocks.hpp"
#include "fill.hpp"
#include "mblas/gf256.hpp"
#include "parallel.hpp"
#include "problem.hpp"

namespace mblas::cases {
namespace {

/// All products of two bytes, from the definition: shift, reduce, add.
std::array<std::array<std::uint8_t, 256>, 256> products(unsigned poly) {
  std::array<std::array<std::uint8_t, 256>, 256> table{};
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      unsigned power = a, sum = 0;  // a x^i modulo poly
      for (unsigned i = 0; i < 8; ++i) {
        if (b >> i & 1) sum ^= power;
        power <<= 1;
        if (power & 0x100) power ^= poly;
      }
      table[a][b] = std::uint8_t(sum);
    }
  }
  return table;
}

class Gf256Problem final : public Problem {
 public:
  Gf256Problem(const Gf256Case& c, double full_up_to) : Problem(c), c_(c) {
    if (c.pointers && c.accumulate)
      throw std::invalid_argument("encoding behind pointers does not accumulate");
    int operand = 0;
    for (const Shape& shape : shapes(c)) {
      Buffer& buffer = operands_.emplace_back(shape, c.offset);
      if (operand < 2 || c.accumulate) fill(buffer, Data::Uniform, c.seed, operand);
      ++operand;
    }
    if (c.pointers) {
      code_.emplace(int(c.k), int(c.m), c.poly);
      for (std::int64_t i = 0; i < c.m; ++i)
        std::memcpy(operands_[0].line(0, i), &code_->matrix()[std::size_t(i * c.k)],
                    std::size_t(c.k));
    }
    expect(full_up_to);
  }

  void call(Context& context, std::span<const Placed> at) const override {
    const auto* A = static_cast<const std::uint8_t*>(at[0].at());
    const auto* B = static_cast<const std::uint8_t*>(at[1].at());
    auto* C = static_cast<std::uint8_t*>(at[2].at());
    if (c_.pointers) {
      std::array<const std::uint8_t*, 256> data;
      std::array<std::uint8_t*, 256> parity;
      for (std::int64_t p = 0; p < c_.k; ++p) data[std::size_t(p)] = B + p * c_.ldb;
      for (std::int64_t i = 0; i < c_.m; ++i) parity[std::size_t(i)] = C + i * c_.ldc;
      code_->encode(context, std::span(data).first(std::size_t(c_.k)),
                    std::span(parity).first(std::size_t(c_.m)), c_.n);
    } else {
      gf256::gemm(context, c_.m, c_.n, c_.k, A, c_.lda, B, c_.ldb, C, c_.ldc,
                  {.accumulate = c_.accumulate, .poly = c_.poly});
    }
  }

 private:
  void expect(double full_up_to) {
    const double cost = double(std::max<std::int64_t>(1, c_.k));
    Selection selection = select_blocks(c_.m, c_.n, 1, cost, full_up_to, c_.seed);
    sampled_ = selection.sampled;
    blocks_ = std::move(selection.blocks);
    std::int64_t elements = 0;
    for (const Block& block : blocks_) {
      first_.push_back(elements);
      elements += block.rows * block.cols;
    }
    expected_.resize(std::size_t(elements));
    const auto times = products(c_.poly);
    const auto* A = static_cast<const std::uint8_t*>(operands_[0].at());
    const auto* B = static_cast<const std::uint8_t*>(operands_[1].at());
    const auto* C = static_cast<const std::uint8_t*>(operands_[2].at());
    parallel_for(std::int64_t(blocks_.size()), double(elements) * cost, [&](std::int64_t index) {
      const Block& block = blocks_[std::size_t(index)];
      std::uint8_t* to = &expected_[std::size_t(first_[std::size_t(index)])];
      for (std::int64_t i = block.i; i < block.i + block.rows; ++i, to += block.cols) {
        if (c_.accumulate) std::memcpy(to, C + i * c_.ldc + block.j, std::size_t(block.cols));
        for (std::int64_t p = 0; p < c_.k; ++p) {
          const auto& by = times[A[i * c_.lda + p]];
          const std::uint8_t* row = B + p * c_.ldb + block.j;
          for (std::int64_t j = 0; j < block.cols; ++j) to[j] ^= by[row[j]];
        }
      }
    });
  }

  void compare_result(const Buffer& result, Outcome& outcome) const override {
    outcome.sampled = sampled_;
    const auto* C = static_cast<const std::uint8_t*>(result.at());
    const std::uint8_t* want = expected_.data();
    for (const Block& block : blocks_) {
      for (std::int64_t i = block.i; i < block.i + block.rows; ++i) {
        for (std::int64_t j = block.j; j < block.j + block.cols; ++j, ++want) {
          const std::uint8_t got = C[i * c_.ldc + j];
          if (got == *want) continue;
          outcome.max_error = outcome.worst_ratio = std::numeric_limits<double>::infinity();
          outcome.fail(place(0, i, j) + ": got " + std::to_string(got) + ", want " +
                       std::to_string(*want));
          return;
        }
      }
    }
  }

  const Gf256Case c_;
  std::optional<gf256::ReedSolomon> code_;  ///< of shards behind pointers
  bool sampled_ = false;
  std::vector<Block> blocks_;
  std::vector<std::int64_t> first_;  ///< index in expected_ of each block
  std::vector<std::uint8_t> expected_;
};

}  // namespace

std::unique_ptr<Problem> prepare_case(const Gf256Case& c, double full_up_to) {
  return std::make_unique<Gf256Problem>(c, full_up_to);
}

}  // namespace mblas::cases
