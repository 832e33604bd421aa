// The field, the matrices and the codes of gf256, against published vectors and definitions. The
// products themselves are in the sweep.
#include "mblas/gf256.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "cpu/gf256/affine.hpp"
#include "mblas/backend.hpp"
#include "random.hpp"
#include "support.hpp"

#ifdef MBLAS_TEST_ISAL
#include <isa-l/erasure_code.h>
#endif

namespace mblas::testing {
namespace {

using gf256::kDefaultPoly;
using Bytes = std::vector<std::uint8_t>;
constexpr unsigned kAes = 0x11B;

TEST(Gf256Field, Vectors) {
  EXPECT_EQ(gf256::multiply(0x02, 0x80), 0x1d);
  EXPECT_EQ(gf256::multiply(0x53, 0xca), 0x8f);
  EXPECT_EQ(gf256::multiply(0x53, 0xca, kAes), 0x01);  // FIPS 197 multiplies with this one
  EXPECT_EQ(gf256::inverse(0x02), 0x8e);
  EXPECT_EQ(gf256::inverse(0x53), 0x8c);
  EXPECT_EQ(gf256::inverse(0x53, kAes), 0xca);
  EXPECT_EQ(gf256::multiply(0x57, 0x83, kAes), 0xc1);  // the example of FIPS 197, section 4.2
}

TEST(Gf256Field, FingerprintOfAllProducts) {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (unsigned x = 0; x < 256; ++x)
    for (unsigned y = 0; y < 256; ++y)
      hash = (hash ^ gf256::multiply(std::uint8_t(x), std::uint8_t(y))) * 16777619u;
  EXPECT_EQ(hash, 0xb6b61b45u);
}

TEST(Gf256Field, FingerprintOfAllProductsOfEveryRow) {
  Bytes all(256);
  for (std::size_t x = 0; x < 256; ++x) all[x] = std::uint8_t(x);
  for (const Kernel<Gf256Args>& row : find_backend("openmp").gf256_kernels()) {
    Context context("openmp");  // has read the environment, which can name an instruction set
    if (row.declines({}, {})) continue;
    context.set_kernel("gf256=" + std::string(row.name));
    Bytes products(256 * 256);
    gf256::gemm(context, 256, 256, 1, all.data(), 1, all.data(), 256, products.data(), 256);
    std::uint32_t hash = 2166136261u;
    for (const std::uint8_t product : products) hash = (hash ^ product) * 16777619u;
    EXPECT_EQ(hash, 0xb6b61b45u) << row.name;
  }
}

/// GF2P8AFFINEQB on one byte, as Intel's manual describes it.
std::uint8_t affine(std::uint64_t matrix, std::uint8_t x) {
  std::uint8_t result = 0;
  for (int i = 0; i < 8; ++i) {
    const auto row = std::uint8_t(matrix >> (8 * (7 - i)));
    result |= std::uint8_t((std::popcount(std::uint8_t(row & x)) & 1) << i);
  }
  return result;
}

TEST(Gf256Field, MatricesOfBitsMultiply) {
  for (const unsigned poly : {kDefaultPoly, kAes, 0x12Bu})
    for (unsigned c = 0; c < 256; ++c)
      for (unsigned x = 0; x < 256; ++x)
        ASSERT_EQ(affine(cpu::gf256_matrix(std::uint8_t(c), poly), std::uint8_t(x)),
                  gf256::multiply(std::uint8_t(c), std::uint8_t(x), poly))
            << poly << " " << c << " " << x;
  EXPECT_EQ(cpu::gf256_matrix(1, kDefaultPoly), 0x0102040810204080u);  // the identity
}

TEST(Gf256Field, EveryIrreduciblePolynomialMakesAField) {
  int fields = 0;
  for (unsigned poly = 0x100; poly < 0x200; ++poly) {
    Bytes inverse;
    try {
      for (unsigned a = 1; a < 256; ++a) inverse.push_back(gf256::inverse(std::uint8_t(a), poly));
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), Status::InvalidArgument);
      continue;
    }
    ++fields;
    for (unsigned a = 1; a < 256; ++a)
      ASSERT_EQ(gf256::multiply(std::uint8_t(a), inverse[a - 1], poly), 1) << poly << " " << a;
  }
  EXPECT_EQ(fields, 30);  // the number of irreducible polynomials of degree 8 over GF(2)
  expect_throws(Status::InvalidArgument, {"poly"}, [] { gf256::multiply(1, 1, 0x31D); });
  expect_throws(Status::InvalidArgument, {"poly"}, [] { gf256::multiply(1, 1, 0); });
  expect_throws(Status::Singular, {"0 has no inverse"}, [] { gf256::inverse(0); });
}

TEST(Gf256Matrices, Cauchy) {
  const Bytes matrix = gf256::cauchy_matrix(4, 10);
  EXPECT_EQ(Bytes(matrix.begin(), matrix.begin() + 10),
            (Bytes{0xdd, 0x98, 0xad, 0x9d, 0x5d, 0x96, 0x3d, 0xaa, 0x8e, 0xf4}));
  EXPECT_EQ(Bytes(matrix.end() - 10, matrix.end()),
            (Bytes{0xaa, 0x3d, 0x96, 0x5d, 0x9d, 0xad, 0x98, 0xdd, 0xa7, 0x47}));
  EXPECT_EQ(gf256::cauchy_matrix(0, 5).size(), 0u);
  EXPECT_EQ(gf256::cauchy_matrix(128, 128).size(), 128u * 128u);
  expect_throws(Status::InvalidArgument, {"cauchy_matrix", "256"},
                [] { gf256::cauchy_matrix(129, 128); });
  expect_throws(Status::InvalidArgument, {"cauchy_matrix"}, [] { gf256::cauchy_matrix(-1, 8); });
}

TEST(Gf256Matrices, Vandermonde) {
  const Bytes matrix = gf256::vandermonde_matrix(3, 5);
  EXPECT_EQ(matrix, (Bytes{1, 1, 1, 1, 1, 0, 1, 2, 3, 4, 0, 1, 4, 5, 16}));
  expect_throws(Status::InvalidArgument, {"vandermonde"},
                [] { gf256::vandermonde_matrix(1, 257); });
}

Bytes multiply(int n, const Bytes& A, const Bytes& B, unsigned poly) {
  Bytes C(A.size());
  Context context("openmp");
  gf256::gemm(context, n, n, n, A.data(), n, B.data(), n, C.data(), n, {.poly = poly});
  return C;
}

Bytes identity(int n) {
  Bytes I(std::size_t(n * n));
  for (int i = 0; i < n; ++i) I[std::size_t(i * n + i)] = 1;
  return I;
}

TEST(Gf256Matrices, InvertRandomMatrices) {
  cases::Random random(11);
  int singular = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const unsigned poly = trial % 3 ? kDefaultPoly : kAes;
    const int n = 1 + int(random.below(trial < 290 ? 12 : 100));
    Bytes A(std::size_t(n * n)), inverse{1, 2, 3};
    for (std::uint8_t& a : A) a = std::uint8_t(random.below(4) ? random.below(256) : 0);
    const Status status = gf256::try_invert(n, A, inverse, poly);
    if (status == Status::Singular) {
      ++singular;
      EXPECT_EQ(inverse, (Bytes{1, 2, 3}));
      continue;
    }
    ASSERT_EQ(status, Status::Ok);
    EXPECT_EQ(multiply(n, A, inverse, poly), identity(n));
    EXPECT_EQ(multiply(n, inverse, A, poly), identity(n));
  }
  EXPECT_GT(singular, 0);
}

TEST(Gf256Matrices, SingularOnes) {
  expect_throws(Status::Singular, {"invert", "singular"}, [] {
    gf256::invert(2, Bytes{1, 2, 1, 2});
  });
  expect_throws(Status::Singular, {"column 0"}, [] { gf256::invert(2, Bytes{0, 2, 0, 3}); });
  // The third row is 5 times the first plus 7 times the second.
  Bytes A{1, 2, 3, 9, 8, 6, 0, 0, 0};
  for (std::size_t j = 0; j < 3; ++j)
    A[6 + j] = gf256::multiply(5, A[j]) ^ gf256::multiply(7, A[3 + j]);
  expect_throws(Status::Singular, {"column 2"}, [&] { gf256::invert(3, A); });
  expect_throws(Status::InvalidArgument, {"8 elements", "n = 3"},
                [] { gf256::invert(3, Bytes(8)); });
  expect_throws(Status::InvalidArgument, {"n = -1"}, [] { gf256::invert(-1, Bytes{}); });
  EXPECT_TRUE(gf256::invert(0, Bytes{}).empty());
}

TEST(ReedSolomon, ParityOfTheVector) {
  const gf256::ReedSolomon code(10, 4);
  Bytes data(10), parity(4);
  std::vector<const std::uint8_t*> from;
  std::vector<std::uint8_t*> to;
  for (std::size_t i = 0; i < 10; ++i) data[i] = std::uint8_t(i + 1), from.push_back(&data[i]);
  for (std::uint8_t& p : parity) to.push_back(&p);
  code.encode(from, to, 1);
  EXPECT_EQ(parity, (Bytes{0x35, 0xaa, 0x61, 0x37}));
}

struct Shards {
  Shards(int count, std::int64_t length, std::uint64_t seed) {
    cases::Random random(seed);
    for (int i = 0; i < count; ++i) {
      Bytes& shard = bytes.emplace_back(std::size_t(length));
      for (std::uint8_t& b : shard) b = std::uint8_t(random.bits());
    }
    for (Bytes& shard : bytes) pointers.push_back(shard.data());
  }
  Shards(const Shards&) = delete;
  std::span<const std::uint8_t* const> data(int k) const {
    return {const_cast<const std::uint8_t* const*>(pointers.data()), std::size_t(k)};
  }
  std::span<std::uint8_t* const> parity(int k) const {
    return std::span<std::uint8_t* const>(pointers).subspan(std::size_t(k));
  }
  std::vector<Bytes> bytes;
  std::vector<std::uint8_t*> pointers;
};

/// f(context) for every row of the openmp backend that this CPU can run.
template <class F>
void for_each_row(const F& f) {
  for (const Kernel<Gf256Args>& row : find_backend("openmp").gf256_kernels()) {
    Context context("openmp");
    if (row.declines({}, {})) continue;
    SCOPED_TRACE(row.name);
    context.set_kernel("gf256=" + std::string(row.name));
    f(context);
  }
}

/// Overwrites what is not present, has it made anew, and compares.
void expect_restored(Context& context, const gf256::ReedSolomon& code, Shards& shards,
                     std::span<const bool> present, const std::vector<Bytes>& whole) {
  for (std::size_t i = 0; i < present.size(); ++i)
    if (!present[i]) std::fill(shards.bytes[i].begin(), shards.bytes[i].end(), 0xee);
  code.reconstruct(context, shards.pointers, present, std::int64_t(whole[0].size()));
  ASSERT_EQ(shards.bytes, whole);
}

void every_erasure_of_four_of_fourteen(Context& context) {
  constexpr int k = 10, m = 4;
  constexpr std::int64_t length = 101;
  for (const unsigned poly : {kDefaultPoly, kAes}) {
    const gf256::ReedSolomon code(k, m, poly);
    Shards shards(k + m, length, poly);
    code.encode(context, shards.data(k), shards.parity(k), length);
    const std::vector<Bytes> whole = shards.bytes;
    int patterns = 0;
    for (unsigned lost = 0; lost < 1u << (k + m); ++lost) {
      if (std::popcount(lost) > m) continue;
      if (std::popcount(lost) == m) ++patterns;
      bool present[k + m];
      for (unsigned i = 0; i < k + m; ++i) present[i] = !(lost >> i & 1);
      expect_restored(context, code, shards, present, whole);
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(patterns, 1001);
  }
}
TEST(ReedSolomon, EveryErasureOfFourOfFourteen) { for_each_row(every_erasure_of_four_of_fourteen); }

TEST(ReedSolomon, RandomErasuresOfLargerCodes) {
  for_each_row([](Context& context) {
    cases::Random random(5);
    for (const auto& [k, m] : {std::pair{20, 4}, {32, 16}, {100, 20}, {128, 128}, {200, 56}}) {
      const gf256::ReedSolomon code(k, m);
      const std::int64_t length = 300 + random.below(300);
      Shards shards(k + m, length, std::uint64_t(m));
      code.encode(context, shards.data(k), shards.parity(k), length);
      const std::vector<Bytes> whole = shards.bytes;
      const auto present = std::make_unique<bool[]>(std::size_t(k + m));
      for (int pattern = 0; pattern < 4; ++pattern) {
        std::fill_n(present.get(), k + m, true);
        for (int lost = 0; lost < m; ++lost) present[std::size_t(random.below(k + m))] = false;
        expect_restored(context, code, shards, std::span(present.get(), std::size_t(k + m)), whole);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

TEST(ReedSolomon, UpdateEqualsEncodingAnew) {
  constexpr int k = 5, m = 3;
  constexpr std::int64_t length = 77;
  const gf256::ReedSolomon code(k, m);
  Shards shards(k + m, length, 3), fresh(1, length, 4);
  code.encode(shards.data(k), shards.parity(k), length);
  for (int index = 0; index < k; ++index) {
    Bytes delta = shards.bytes[std::size_t(index)];
    for (std::size_t i = 0; i < delta.size(); ++i) delta[i] ^= fresh.bytes[0][i];
    std::copy(fresh.bytes[0].begin(), fresh.bytes[0].end(),
              shards.bytes[std::size_t(index)].begin());
    code.update(index, delta.data(), shards.parity(k), length);
    const std::vector<Bytes> updated = shards.bytes;
    code.encode(shards.data(k), shards.parity(k), length);
    EXPECT_EQ(shards.bytes, updated) << index;
  }
}

TEST(ReedSolomon, CodesOfOtherSizes) {
  for (const auto& [k, m] : {std::pair{1, 0}, {1, 1}, {1, 255}, {255, 1}, {128, 128}, {3, 2}}) {
    for (const std::int64_t length : {0, 1, 63, 1000}) {
      const gf256::ReedSolomon code(k, m);
      EXPECT_EQ(code.data_shards(), k);
      EXPECT_EQ(code.parity_shards(), m);
      EXPECT_EQ(code.matrix().size(), std::size_t(k * m));
      Shards shards(k + m, length, std::uint64_t(k));
      code.encode(shards.data(k), shards.parity(k), length);
      const std::vector<Bytes> whole = shards.bytes;
      const auto present = std::make_unique<bool[]>(std::size_t(k + m));
      for (int i = 0; i < k + m; ++i) {  // the first min(k, m) … are lost
        present[std::size_t(i)] = i >= m;
        if (i < m) std::fill_n(shards.pointers[std::size_t(i)], length, 0x77);
      }
      code.reconstruct(shards.pointers, std::span(present.get(), std::size_t(k + m)), length);
      EXPECT_EQ(shards.bytes, whole) << k << "+" << m;
    }
  }
}

// Kernels may know what the coefficients of a code have in common.
TEST(ReedSolomon, ParityIsTheProductWithItsMatrix) {
  for_each_row([](Context& context) {
    for (const int m : {2, 3, 4, 6, 8, 10, 18}) {
      for (const int k : {2, 3, 4, 6, 10, 20, 100}) {
        for (const int n : {1, 63, 64, 65, 128, 191, 1100}) {
          const gf256::ReedSolomon code(k, m);
          Shards shards(k + m, n, std::uint64_t(m + 100 * k + n));
          const std::vector<Bytes> before = shards.bytes;
          code.encode(context, shards.data(k), shards.parity(k), n);
          Bytes A(code.matrix().begin(), code.matrix().end());
          if (n == 65) A[std::size_t(k)] ^= 1;  // an element that is not its neighbours'
          Bytes B, C;
          for (int i = 0; i < k + m; ++i) {
            const Bytes& row = before[std::size_t(i)];
            (i < k ? B : C).insert((i < k ? B : C).end(), row.begin(), row.end());
          }
          gf256::gemm(context, m, n, k, A.data(), k, B.data(), n, C.data(), n,
                      {.accumulate = true});
          for (int r = 0; r < m; ++r) {
            for (int j = 0; j < n; j += n < 100 ? 1 : 9) {
              std::uint8_t sum = 0, other = 0;
              for (int p = 0; p < k; ++p) {
                const std::uint8_t x = before[std::size_t(p)][std::size_t(j)];
                const std::size_t at = std::size_t(r * k + p);
                sum ^= gf256::multiply(code.matrix()[at], x);
                other ^= gf256::multiply(A[at], x);
              }
              const Bytes& parity = shards.bytes[std::size_t(k + r)];
              ASSERT_EQ(parity[std::size_t(j)], sum) << m << "×" << n << "×" << k;
              ASSERT_EQ(C[std::size_t(r * n + j)],
                        other ^ before[std::size_t(k + r)][std::size_t(j)])
                  << m << "×" << n << "×" << k;
            }
          }
        }
      }
    }
  });
}

TEST(ReedSolomon, TryForms) {
  const gf256::ReedSolomon code(2, 1);
  Shards shards(3, 8, 9);
  EXPECT_EQ(code.try_encode(shards.data(2), shards.parity(2), 8), Status::Ok);
  EXPECT_EQ(code.try_encode(shards.data(2), shards.parity(2), -8), Status::InvalidArgument);
  EXPECT_NE(default_context().last_error().find("length is -8"), std::string_view::npos);
  Context context("openmp");
  EXPECT_EQ(code.try_update(context, 5, shards.pointers[0], shards.parity(2), 8),
            Status::InvalidArgument);
  EXPECT_NE(context.last_error().find("index is 5"), std::string_view::npos);
  const bool none[3] = {};
  EXPECT_EQ(code.try_reconstruct(shards.pointers, std::span<const bool>(none), 8),
            Status::InvalidArgument);
}

#ifdef MBLAS_TEST_ISAL
// Intel's library as the oracle.
TEST(Gf256Peers, IsalAgrees) {
  cases::Random random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const int m = 1 + int(random.below(20)), k = 1 + int(random.below(trial < 50 ? 20 : 120));
    const int n = 1 + int(random.below(trial < 50 ? 400 : 5000));
    Shards shards(k + m, n, std::uint64_t(trial)), matrix(1, m * k, std::uint64_t(trial) + 100);
    Bytes tables(std::size_t(32 * k * m));
    ec_init_tables(k, m, matrix.pointers[0], tables.data());
    ec_encode_data(n, k, m, tables.data(), shards.pointers.data(), shards.pointers.data() + k);
    for_each_row([&](Context& context) {
      Bytes B, C(std::size_t(m) * std::size_t(n)), want;
      for (int i = 0; i < k + m; ++i) {
        Bytes& to = i < k ? B : want;
        const Bytes& from = shards.bytes[std::size_t(i)];
        to.insert(to.end(), from.begin(), from.end());
      }
      gf256::gemm(context, m, n, k, matrix.pointers[0], k, B.data(), n, C.data(), n);
      EXPECT_EQ(C, want) << m << "×" << n << "×" << k;
    });
  }
}
#endif

}  // namespace
}  // namespace mblas::testing
