// Matrix products over GF(2^8) and the Reed-Solomon codes built on them. Matrices of bytes,
// row-major, leading dimensions in bytes. Addition is xor; products are polynomials over GF(2)
// modulo `poly`, an irreducible polynomial of degree 8 (bit i is the coefficient of x^i). Errors
// and the forms without Context and as try_…: as in gemm.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mblas/context.hpp"
#include "mblas/error.hpp"
#include "mblas/export.hpp"
#include "mblas/forms.hpp"

namespace mblas::gf256 {

/// x^8 + x^4 + x^3 + x^2 + 1, the polynomial of most Reed-Solomon codes in storage.
inline constexpr unsigned kDefaultPoly = 0x11D;

struct Options {
  bool accumulate = false;       ///< C = C + A B
  unsigned poly = kDefaultPoly;  ///< InvalidArgument unless irreducible and of degree 8
};

/// C (m×n) = A (m×k) B (k×n), or C + A B. k == 0: C = 0, or unchanged where accumulating.
MBLAS_EXPORT void gemm(Context& context, std::int64_t m, std::int64_t n, std::int64_t k,
                       const std::uint8_t* A, std::int64_t lda, const std::uint8_t* B,
                       std::int64_t ldb, std::uint8_t* C, std::int64_t ldc,
                       const Options& options = {});
MBLAS_FORMS(gemm)

/// a b.
MBLAS_EXPORT std::uint8_t multiply(std::uint8_t a, std::uint8_t b, unsigned poly = kDefaultPoly);
/// The inverse of a; Status::Singular for 0.
MBLAS_EXPORT std::uint8_t inverse(std::uint8_t a, unsigned poly = kDefaultPoly);

/// m×k, element (r, i) the inverse of (k + r) xor i: every square submatrix is invertible, so k
/// data and m parity shards survive any m losses. m, k ≥ 0, k + m ≤ 256, else InvalidArgument.
MBLAS_EXPORT std::vector<std::uint8_t> cauchy_matrix(int m, int k, unsigned poly = kDefaultPoly);
/// m×k, element (r, i) the r-th power of the field element i (0^0 = 1). Not every square submatrix
/// is invertible: Reed-Solomon uses the Cauchy matrix.
MBLAS_EXPORT std::vector<std::uint8_t> vandermonde_matrix(int m, int k,
                                                          unsigned poly = kDefaultPoly);
/// The inverse of the n×n matrix A; Status::Singular where there is none.
MBLAS_EXPORT std::vector<std::uint8_t> invert(int n, std::span<const std::uint8_t> A,
                                              unsigned poly = kDefaultPoly);
MBLAS_EXPORT Status try_invert(int n, std::span<const std::uint8_t> A,
                               std::vector<std::uint8_t>& result,
                               unsigned poly = kDefaultPoly) noexcept;

/// A systematic Reed-Solomon code: k data shards, m parity shards, any k of the k + m give the data
/// back. Shards are byte arrays of one length, behind arrays of pointers in host memory; the shards
/// themselves lie in host or device memory. Copyable, immutable, usable from several threads.
class MBLAS_EXPORT ReedSolomon {
 public:
  /// k ≥ 1, m ≥ 0, k + m ≤ 256, else InvalidArgument.
  ReedSolomon(int k, int m, unsigned poly = kDefaultPoly);

  int data_shards() const { return k_; }
  int parity_shards() const { return m_; }
  /// The m×k coefficients of the parity shards.
  std::span<const std::uint8_t> matrix() const { return matrix_; }

  /// parity[0 … m-1] from data[0 … k-1], each of `length` bytes.
  void encode(Context& context, std::span<const std::uint8_t* const> data,
              std::span<std::uint8_t* const> parity, std::int64_t length) const;
  /// Brings the parity up to date after data shard `index` changed by `delta` = old xor new.
  void update(Context& context, int index, const std::uint8_t* delta,
              std::span<std::uint8_t* const> parity, std::int64_t length) const;
  /// Rebuilds the shards that are not `present` (data first, then parity; k + m of each). Those
  /// present are only read. Fewer than k present: InvalidArgument that says how many are missing.
  void reconstruct(Context& context, std::span<std::uint8_t* const> shards,
                   std::span<const bool> present, std::int64_t length) const;

  // The same on default_context(), and with a Status in place of exceptions.
  template <class Data, class Parity>
  void encode(const Data& data, const Parity& parity, std::int64_t length) const {
    encode(default_context(), data, parity, length);
  }
  template <class Parity>
  void update(int index, const std::uint8_t* delta, const Parity& parity,
              std::int64_t length) const {
    update(default_context(), index, delta, parity, length);
  }
  template <class Shards, class Present>
  void reconstruct(const Shards& shards, const Present& present, std::int64_t length) const {
    reconstruct(default_context(), shards, present, length);
  }
  template <class... Args>
  Status try_encode(Args&&... args) const noexcept {
    return mblas::detail::to_status(mblas::detail::context_of(args...),
                                    [&] { encode(std::forward<Args>(args)...); });
  }
  template <class... Args>
  Status try_update(Args&&... args) const noexcept {
    return mblas::detail::to_status(mblas::detail::context_of(args...),
                                    [&] { update(std::forward<Args>(args)...); });
  }
  template <class... Args>
  Status try_reconstruct(Args&&... args) const noexcept {
    return mblas::detail::to_status(mblas::detail::context_of(args...),
                                    [&] { reconstruct(std::forward<Args>(args)...); });
  }

 private:
  int k_, m_;
  unsigned poly_;
  std::vector<std::uint8_t> matrix_;
};

}  // namespace mblas::gf256
