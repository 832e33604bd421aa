// Products over GF(2^8) by split-nibble tables, one pair for each of the 256 possible coefficients:
// 8 KiB, whatever m and k. Columns are spread over the threads; table_isa.cpp computes a range of
// them.
#include "core/gf256_field.hpp"
#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"

namespace mblas::cpu {
namespace {

using Products = std::uint8_t[32];

void fill_tables(unsigned poly, Products* products) {
  for (unsigned c = 0; c < 256; ++c) {
    products[c][0] = products[c][16] = 0;
    // Powers of two by the field, the rest by linearity.
    for (unsigned x = 1; x < 16; ++x) {
      const unsigned lowest = x & -x, others = x ^ lowest;
      for (unsigned shift : {0u, 4u}) {
        std::uint8_t* table = products[c] + 4 * shift;
        table[x] =
            others ? std::uint8_t(table[others] ^ table[lowest])
                   : gf256::detail::gf_multiply(std::uint8_t(c), std::uint8_t(x << shift), poly);
      }
    }
  }
}

template <class Void>
Rows rows_of(const Operand<Void>& X) {
  // The kernel only writes to C's rows.
  return {static_cast<std::byte*>(const_cast<void*>(X.data)), X.ld,
          const_cast<void* const*>(X.pointers)};
}

}  // namespace

std::size_t gf256_table_workspace(const Gf256Args& /*args*/, const DeviceInfo& /*device*/) {
  return 256 * sizeof(Products);
}

void gf256_table(const Gf256Args& args, Queue& queue) {
  // A thread should get this many products, and whole cache lines.
  constexpr double grain = 1 << 18;
  constexpr std::int64_t line = 64;
  auto* products = reinterpret_cast<Products*>(queue.workspace.data());
  fill_tables(args.poly, products);
  const double work = double(args.m) * double(args.n) * double(args.k + 1);
  const Gf256Columns all{args.m, args.k, rows_of(args.A), rows_of(args.B), rows_of(args.C),
                         0,      args.n, args.accumulate, products};
  parallel(threads_for(work, grain, queue.device().num_threads), [&](int thread, int granted) {
    const Range columns = share_of(args.n, thread, granted, line);
    Gf256Columns mine = all;
    mine.begin = columns.begin;
    mine.end = columns.end;
    isa().gf256(mine);
  });
}

}  // namespace mblas::cpu
