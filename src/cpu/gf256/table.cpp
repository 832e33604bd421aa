// Products over GF(2^8) by split-nibble tables; table_isa.cpp computes, on every instruction set.
#include "core/gf256_field.hpp"
#include "cpu/gf256/product.hpp"
#include "cpu/kernels.hpp"

namespace mblas::cpu {
namespace {

struct Table {
  using Coefficient = Gf256Table;
  static constexpr double kGrain = 1 << 18;

  static constexpr Coefficient of(std::uint8_t c, unsigned poly) {
    Coefficient table{};
    for (unsigned x = 1; x < 16; ++x) {
      table.low[x] = gf256::detail::gf_multiply(c, std::uint8_t(x), poly);
      table.high[x] = gf256::detail::gf_multiply(c, std::uint8_t(x << 4), poly);
    }
    return table;
  }
  static constexpr Coefficient sum(const Coefficient& a, const Coefficient& b) {
    Coefficient table{};
    for (int x = 0; x < 16; ++x) {
      table.low[x] = a.low[x] ^ b.low[x];
      table.high[x] = a.high[x] ^ b.high[x];
    }
    return table;
  }
  static auto columns() { return isa().gf256_table; }
};

}  // namespace

std::size_t gf256_table_workspace(const Gf256Args& args, const DeviceInfo& device) {
  return product_workspace<Table>(args, device);
}

void gf256_table(const Gf256Args& args, Queue& queue) { product<Table>(args, queue); }

}  // namespace mblas::cpu
