// Three loops and the field's shift-and-xor product: one thread, some 30 operations a byte and
// coefficient.
#include "core/gf256_field.hpp"
#include "cpu/kernels.hpp"

namespace mblas::cpu {
namespace {

template <class Void>
auto* row(const Operand<Void>& X, std::int64_t i) {
  using Byte = std::conditional_t<std::is_const_v<Void>, const std::uint8_t, std::uint8_t>;
  return static_cast<Byte*>(X.pointers ? X.pointers[i]
                                       : static_cast<Void*>(static_cast<Byte*>(X.data) + i * X.ld));
}

}  // namespace

void gf256_naive(const Gf256Args& args, Queue& /*queue*/) {
  for (std::int64_t i = 0; i < args.m; ++i) {
    std::uint8_t* c = row(args.C, i);
    for (std::int64_t j = 0; j < args.n; ++j) {
      unsigned sum = args.accumulate ? c[j] : 0;
      for (std::int64_t p = 0; p < args.k; ++p)
        sum ^= gf256::detail::gf_multiply(row(args.A, i)[p], row(args.B, p)[j], args.poly);
      c[j] = std::uint8_t(sum);
    }
  }
}

}  // namespace mblas::cpu
