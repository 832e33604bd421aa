// What the CPU kernels for products over GF(2^8) share: the coefficients of a field, how the work
// is spread over the threads, and where each of them finds its memory.
//
// A Way to multiply has a Coefficient, what it multiplies by a byte with; of(c, poly) for c a power
// of two and sum(a, b) for the others, as the product is linear in c too; columns(), compiled for
// the instruction set in use; and kGrain, the products that a thread should get for its start to
// pay.
#pragma once

#include <array>
#include <cstddef>

#include "cpu/isa.hpp"
#include "mblas/backend.hpp"
#include "mblas/gf256.hpp"

namespace mblas::cpu {

/// All that a kernel needs to know of a field.
template <class Way>
using Coefficients = std::array<typename Way::Coefficient, 256>;

template <class Way>
constexpr void fill_coefficients(Coefficients<Way>& all, unsigned poly) {
  all[0] = {};
  for (unsigned bit = 1; bit < 256; bit *= 2) {
    all[bit] = Way::of(std::uint8_t(bit), poly);
    for (unsigned rest = 1; rest < bit; ++rest) all[bit + rest] = Way::sum(all[bit], all[rest]);
  }
}

/// Those of the default polynomial are in the program.
template <class Way>
inline constexpr Coefficients<Way> kDefaultCoefficients = [] {
  Coefficients<Way> all{};
  fill_coefficients<Way>(all, gf256::kDefaultPoly);
  return all;
}();

/// How many threads share the rows of C, and how many its columns.
struct Gf256Threads {
  int rows, columns;
  int count() const { return rows * columns; }
};
Gf256Threads gf256_threads(const Gf256Args& args, double grain, int most);

/// Bytes of the block of expanded coefficients and the panel of a thread.
std::size_t gf256_thread_bytes(const Gf256Args& args, std::size_t coefficient_bytes);

/// Is it so little that a call would notice how it gets its threads and its memory? One thread
/// computes it then, on its stack, with up to kGf256Small bytes of coefficients.
bool gf256_is_small(const Gf256Args& args, double grain, std::size_t coefficient_bytes);
inline constexpr std::size_t kGf256Small = 8 << 10;

/// All columns of the product, without the memory of a thread.
Gf256Columns gf256_whole(const Gf256Args& args, const void* coefficients);

/// `columns` on each thread's part of C; `memory` has gf256_thread_bytes() for each of them.
void gf256_run(const Gf256Args& args, Gf256Threads threads, const void* coefficients,
               std::byte* memory, std::size_t thread_bytes, void (*columns)(const Gf256Columns&));

/// Computes small products with the default polynomial; false, with nothing written: others.
template <class Way>
bool small_product(const Gf256Args& args) {
  if (!gf256_is_small(args, Way::kGrain, sizeof(typename Way::Coefficient))) return false;
  alignas(64) std::byte memory[kGf256Panel + kGf256Small];
  Gf256Columns all = gf256_whole(args, &kDefaultCoefficients<Way>);
  all.panel = reinterpret_cast<std::uint8_t*>(memory);
  all.block = memory + kGf256Panel;
  Way::columns()(all);
  return true;
}

template <class Way>
std::size_t product_workspace(const Gf256Args& args, const DeviceInfo& device) {
  if (gf256_is_small(args, Way::kGrain, sizeof(typename Way::Coefficient))) return 0;
  const std::size_t own = args.poly == gf256::kDefaultPoly ? 0 : sizeof(Coefficients<Way>);
  return own + gf256_thread_bytes(args, sizeof(typename Way::Coefficient)) *
                   std::size_t(gf256_threads(args, Way::kGrain, device.num_threads).count());
}

template <class Way>
void product(const Gf256Args& args, Queue& queue) {
  if (small_product<Way>(args)) return;
  std::byte* memory = queue.workspace.data();
  const Coefficients<Way>* coefficients = &kDefaultCoefficients<Way>;
  if (args.poly != gf256::kDefaultPoly) {
    auto* const own = reinterpret_cast<Coefficients<Way>*>(memory);
    fill_coefficients<Way>(*own, args.poly);
    coefficients = own;
    memory += sizeof *own;
  }
  gf256_run(args, gf256_threads(args, Way::kGrain, queue.device().num_threads), coefficients,
            memory, gf256_thread_bytes(args, sizeof(typename Way::Coefficient)), Way::columns());
}

}  // namespace mblas::cpu
