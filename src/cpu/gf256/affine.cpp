// Products over GF(2^8) by matrices of bits, on CPUs that multiply by those: affine_isa.cpp
// computes.
#include "cpu/gf256/affine.hpp"

#include "core/gf256_field.hpp"
#include "cpu/gf256/product.hpp"
#include "cpu/kernels.hpp"

namespace mblas::cpu {
namespace {

struct Affine {
  using Coefficient = std::uint64_t;
  static constexpr double kGrain = 1 << 20;

  static constexpr Coefficient of(std::uint8_t c, unsigned poly) { return gf256_matrix(c, poly); }
  static constexpr Coefficient sum(Coefficient a, Coefficient b) { return a ^ b; }
  static auto columns() { return isa().gf256_affine; }
};

}  // namespace

const char* gf256_affine_declines(const Gf256Args& /*args*/, const DeviceInfo& /*device*/) {
  return isa().gf256_affine && has_gfni() ? nullptr
                                          : "this CPU has no GFNI, or AVX2 is not to be used";
}

std::size_t gf256_affine_workspace(const Gf256Args& args, const DeviceInfo& device) {
  return product_workspace<Affine>(args, device);
}

bool gf256_affine_immediate(const Gf256Args& args) {
  return isa().gf256_affine && has_gfni() && small_product<Affine>(args);
}

void gf256_affine(const Gf256Args& args, Queue& queue) { product<Affine>(args, queue); }

}  // namespace mblas::cpu
