// GF(2^8): field arithmetic, the matrices that codes are made of, and Reed-Solomon codes. All
// products of more than a few bytes go through the backends' gf256 kernels.
#include "mblas/gf256.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "core/api.hpp"
#include "core/gf256_field.hpp"
#include "mblas/backend.hpp"
#include "mblas/gemm.hpp"

namespace mblas::gf256 {
namespace {

using detail::gf_inverse;
using detail::gf_multiply;

constexpr int kFieldSize = 256;

[[noreturn]] void invalid(std::string_view function, const std::string& what) {
  throw Error(Status::InvalidArgument, "gf256::" + std::string(function) + ": " + what);
}

void check_poly(std::string_view function, unsigned poly) {
  if (!detail::is_irreducible_degree8(poly))
    invalid(function, "poly " + std::to_string(poly) + " is not irreducible of degree 8");
}

void check_length(std::string_view function, std::int64_t length) {
  if (length < 0)
    invalid(function, "length is " + std::to_string(length) + ", must not be negative");
}

void check_count(std::string_view function, std::string_view argument, std::size_t have, int want) {
  if (have != std::size_t(want))
    invalid(function, std::string(argument) + " has " + std::to_string(have) +
                          " entries, the code needs " + std::to_string(want));
}

template <class Pointer>
void check_shards(std::string_view function, std::string_view argument,
                  std::span<Pointer const> shards, int count, std::int64_t length) {
  check_count(function, argument, shards.size(), count);
  if (length == 0) return;
  const auto null = std::ranges::find(shards, nullptr);
  if (null != shards.end())
    throw Error(Status::NullPointer, "gf256::" + std::string(function) + ": " +
                                         std::string(argument) + "[" +
                                         std::to_string(null - shards.begin()) + "] is null");
}

/// Multiplies rows by one coefficient: c x = c (x's low nibble) + c (x's high nibble).
class RowScaler {
 public:
  RowScaler(std::uint8_t c, unsigned poly) {
    for (unsigned nibble = 0; nibble < 16; ++nibble) {
      low_[nibble] = gf_multiply(c, std::uint8_t(nibble), poly);
      high_[nibble] = gf_multiply(c, std::uint8_t(nibble << 4), poly);
    }
  }
  std::uint8_t operator()(std::uint8_t x) const {
    return std::uint8_t(low_[x & 15u] ^ high_[x >> 4]);
  }

 private:
  std::array<std::uint8_t, 16> low_, high_;
};

using Row = std::span<std::uint8_t>;

void scale(Row row, std::uint8_t c, unsigned poly) {
  const RowScaler times_c(c, poly);
  for (std::uint8_t& x : row) x = times_c(x);
}

/// row += c source.
void add_multiple(Row row, std::uint8_t c, std::span<const std::uint8_t> source, unsigned poly) {
  const RowScaler times_c(c, poly);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] ^= times_c(source[i]);
}

/// The index of every shard that is `value` in `present`, in order.
std::vector<int> indices_where(std::span<const bool> present, bool value) {
  std::vector<int> indices;
  for (std::size_t i = 0; i < present.size(); ++i)
    if (present[i] == value) indices.push_back(int(i));
  return indices;
}

}  // namespace

void gemm(Context& context, std::int64_t m, std::int64_t n, std::int64_t k, const std::uint8_t* A,
          std::int64_t lda, const std::uint8_t* B, std::int64_t ldb, std::uint8_t* C,
          std::int64_t ldc, const Options& options) {
  Gf256Args args;
  args.m = m;
  args.n = n;
  args.k = k;
  args.A = {A, lda};
  args.B = {B, ldb};
  args.C = {C, ldc};
  args.accumulate = options.accumulate;
  args.poly = options.poly;
  mblas::detail::gf256(context, args);
}

std::uint8_t multiply(std::uint8_t a, std::uint8_t b, unsigned poly) {
  check_poly("multiply", poly);
  return gf_multiply(a, b, poly);
}

std::uint8_t inverse(std::uint8_t a, unsigned poly) {
  check_poly("inverse", poly);
  if (a == 0) throw Error(Status::Singular, "gf256::inverse: 0 has no inverse");
  return gf_inverse(a, poly);
}

std::vector<std::uint8_t> cauchy_matrix(int m, int k, unsigned poly) {
  check_poly("cauchy_matrix", poly);
  if (m < 0 || k < 0 || m > kFieldSize - k)
    invalid("cauchy_matrix", "m = " + std::to_string(m) + " and k = " + std::to_string(k) +
                                 " must not be negative, nor k + m exceed 256");
  std::vector<std::uint8_t> matrix;
  matrix.reserve(std::size_t(m) * std::size_t(k));
  for (int r = 0; r < m; ++r)
    for (int i = 0; i < k; ++i) matrix.push_back(gf_inverse(std::uint8_t((k + r) ^ i), poly));
  return matrix;
}

std::vector<std::uint8_t> vandermonde_matrix(int m, int k, unsigned poly) {
  check_poly("vandermonde_matrix", poly);
  if (m < 0 || k < 0 || k > kFieldSize)
    invalid("vandermonde_matrix", "m = " + std::to_string(m) + " and k = " + std::to_string(k) +
                                      " must not be negative, nor k exceed 256");
  const std::size_t columns = std::size_t(k);
  std::vector<std::uint8_t> matrix(std::size_t(m) * columns, 1);
  for (std::size_t at = columns; at < matrix.size(); ++at)
    matrix[at] = gf_multiply(matrix[at - columns], std::uint8_t(at % columns), poly);
  return matrix;
}

// Gauss-Jordan elimination. Any pivot but 0 serves: there is no rounding.
std::vector<std::uint8_t> invert(int n, std::span<const std::uint8_t> A, unsigned poly) {
  check_poly("invert", poly);
  const std::size_t size = n < 0 ? 0 : std::size_t(n);
  if (n < 0 || A.size() != size * size)
    invalid("invert", "A has " + std::to_string(A.size()) + " elements, n = " + std::to_string(n));

  std::vector<std::uint8_t> work(A.begin(), A.end()), result(size * size);
  const auto row = [size](std::vector<std::uint8_t>& matrix, std::size_t i) {
    return Row(matrix).subspan(i * size, size);
  };
  for (std::size_t i = 0; i < size; ++i) result[i * size + i] = 1;
  for (std::size_t col = 0; col < size; ++col) {
    std::size_t pivot = col;
    while (pivot < size && work[pivot * size + col] == 0) ++pivot;
    if (pivot == size)
      throw Error(Status::Singular, "gf256::invert: the matrix is singular, column " +
                                        std::to_string(col) + " depends on those before it");
    for (auto* matrix : {&work, &result}) {
      if (pivot != col) std::ranges::swap_ranges(row(*matrix, pivot), row(*matrix, col));
    }
    const std::uint8_t to_one = gf_inverse(work[col * size + col], poly);
    scale(row(work, col), to_one, poly);
    scale(row(result, col), to_one, poly);
    for (std::size_t r = 0; r < size; ++r) {
      const std::uint8_t c = work[r * size + col];
      if (r == col || c == 0) continue;
      add_multiple(row(work, r), c, row(work, col), poly);
      add_multiple(row(result, r), c, row(result, col), poly);
    }
  }
  return result;
}

Status try_invert(int n, std::span<const std::uint8_t> A, std::vector<std::uint8_t>& result,
                  unsigned poly) noexcept {
  return mblas::detail::to_status(nullptr, [&] { result = invert(n, A, poly); });
}

ReedSolomon::ReedSolomon(int k, int m, unsigned poly) : k_(k), m_(m), poly_(poly) {
  check_poly("ReedSolomon", poly);
  if (k < 1 || m < 0 || m > kFieldSize - k)
    invalid("ReedSolomon", "k = " + std::to_string(k) + " and m = " + std::to_string(m) +
                               " must be at least 1 and 0, and k + m at most 256");
  matrix_ = cauchy_matrix(m, k, poly);
}

void ReedSolomon::encode(Context& context, std::span<const std::uint8_t* const> data,
                         std::span<std::uint8_t* const> parity, std::int64_t length) const {
  mblas::detail::remember(context, [&](Context::Impl&) {
    check_length("encode", length);
    check_shards("encode", "data", data, k_, length);
    check_shards("encode", "parity", parity, m_, length);
    Gf256Args args;
    args.m = m_;
    args.n = length;
    args.k = k_;
    args.A = {matrix_.data(), k_};
    args.B = {nullptr, length, 0, mblas::detail::erase_pointers(data)};
    args.C = {nullptr, length, 0, mblas::detail::erase_pointers(parity)};
    args.poly = poly_;
    mblas::detail::gf256(context, args);
  });
}

void ReedSolomon::update(Context& context, int index, const std::uint8_t* delta,
                         std::span<std::uint8_t* const> parity, std::int64_t length) const {
  mblas::detail::remember(context, [&](Context::Impl&) {
    check_length("update", length);
    if (index < 0 || index >= k_)
      invalid("update", "index is " + std::to_string(index) + ", the code has " +
                            std::to_string(k_) + " data shards");
    check_shards("update", "parity", parity, m_, length);
    if (length > 0 && delta == nullptr)
      throw Error(Status::NullPointer, "gf256::update: delta is null");
    const void* const deltas[] = {delta};
    Gf256Args args;
    args.m = m_;
    args.n = length;
    args.k = 1;
    args.A = {matrix_.data() + index, k_};
    args.B = {nullptr, length, 0, deltas};
    args.C = {nullptr, length, 0, mblas::detail::erase_pointers(parity)};
    args.accumulate = true;
    args.poly = poly_;
    mblas::detail::gf256(context, args);
  });
}

// All shards are G x, x the data and G the identity on top of the parity coefficients. k of them
// that are present give x = S^-1 (those shards), S their rows of G; so the missing ones are their
// rows of G S^-1 times those shards: one product for data and parity alike.
void ReedSolomon::reconstruct(Context& context, std::span<std::uint8_t* const> shards,
                              std::span<const bool> present, std::int64_t length) const {
  mblas::detail::remember(context, [&](Context::Impl&) {
    check_length("reconstruct", length);
    check_shards("reconstruct", "shards", shards, k_ + m_, length);
    check_count("reconstruct", "present", present.size(), k_ + m_);
    std::vector<int> sources = indices_where(present, true);
    const std::vector<int> missing = indices_where(present, false);
    const std::size_t k = std::size_t(k_);
    if (sources.size() < k)
      invalid("reconstruct", std::to_string(missing.size()) +
                                 " shards are missing, the code survives " + std::to_string(m_) +
                                 ": " + std::to_string(sources.size()) + " are present, " +
                                 std::to_string(k_) + " are needed");
    if (missing.empty()) return;
    sources.resize(k);

    const auto parity_row = [&](int shard) {
      return matrix().subspan(std::size_t(shard - k_) * k, k);
    };
    std::vector<std::uint8_t> source_rows(k * k);
    for (std::size_t r = 0; r < k; ++r) {
      const auto to = source_rows.begin() + std::ptrdiff_t(r * k);
      if (sources[r] < k_)
        to[sources[r]] = 1;
      else
        std::ranges::copy(parity_row(sources[r]), to);
    }
    const std::vector<std::uint8_t> solution = invert(k_, source_rows, poly_);
    const auto solution_row = [&](std::size_t r) { return std::span(solution).subspan(r * k, k); };

    std::vector<std::uint8_t> decode(missing.size() * k);
    for (std::size_t r = 0; r < missing.size(); ++r) {
      const Row to = Row(decode).subspan(r * k, k);
      if (missing[r] < k_) {
        std::ranges::copy(solution_row(std::size_t(missing[r])), to.begin());
      } else {
        for (std::size_t i = 0; i < k; ++i)
          add_multiple(to, parity_row(missing[r])[i], solution_row(i), poly_);
      }
    }

    std::array<const void*, kFieldSize> from{};
    std::array<void*, kFieldSize> to{};
    for (std::size_t i = 0; i < k; ++i) from[i] = shards[std::size_t(sources[i])];
    for (std::size_t i = 0; i < missing.size(); ++i) to[i] = shards[std::size_t(missing[i])];
    Gf256Args args;
    args.m = std::int64_t(missing.size());
    args.n = length;
    args.k = k_;
    args.A = {decode.data(), k_};
    args.B = {nullptr, length, 0, from.data()};
    args.C = {nullptr, length, 0, to.data()};
    args.poly = poly_;
    mblas::detail::gf256(context, args);
  });
}

}  // namespace mblas::gf256
