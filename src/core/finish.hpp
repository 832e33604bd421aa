// What a gemm asks for beyond its product, epilogue and conversion, where the kernel does not fuse
// it: the product without, and then Backend::finish().
#pragma once

#include "mblas/accuracy.hpp"
#include "mblas/backend.hpp"

namespace mblas {

/// Numbers in the call's bias; 0 where it has none.
inline std::int64_t bias_length(const GemmArgs& g) {
  const BiasPer per = g.epilogue.bias.per;
  return per == BiasPer::None ? 0 : per == BiasPer::Row ? g.m : g.n;
}

inline bool needs_finish(const GemmArgs& g) {
  return !g.epilogue.is_none() || (g.in == DType::i8 && g.out == DType::f32);
}

/// A call in two steps. The sums go to C itself where they are of its size and C is not needed any
/// more, else to workspace: C that is narrower than the accumulator is still rounded only once.
struct TwoSteps {
  GemmArgs product;
  FinishArgs finish;
  std::size_t bytes = 0;  ///< of workspace, for sums beside C

  explicit TwoSteps(const GemmArgs& g) : product(g) {
    const bool converts = g.in == DType::i8;
    const bool beside = size_of(g.out) == 2 || (converts && g.beta != Scalar{});
    const bool by_pass = beside || converts;  // alpha and beta
    product.epilogue = {};
    product.out = accumulator_of(g.in);
    if (converts) product.alpha = {1, 0};
    if (by_pass) product.beta = {};
    finish.in = product.out;
    finish.out = g.out;
    finish.m = g.m;
    finish.n = g.n;
    finish.alpha = !converts ? Scalar{1, 0} : g.k == 0 ? Scalar{} : g.alpha;
    finish.beta = by_pass ? g.beta : Scalar{};
    finish.epilogue = g.epilogue;
    finish.C = g.C;
    finish.batch = g.batch;
    if (beside) {
      const std::int64_t row = kRow / size_of(product.out);
      product.C = {nullptr, (g.n + row - 1) / row * row};
      product.C.stride = g.m * product.C.ld;
      bytes = std::size_t(g.batch * product.C.stride) * std::size_t(size_of(product.out));
    }
    set_sums(product.C.data);
  }

  /// Where the sums go, if not to C.
  void set_sums(void* at) {
    product.C.data = at;
    finish.S = {at, product.C.ld, product.C.stride, product.C.pointers};
  }

 private:
  static constexpr std::int64_t kRow = 16;  // bytes that rows of sums are multiples of
};

}  // namespace mblas
