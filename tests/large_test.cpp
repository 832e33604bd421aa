// Matrices of more than 2^31 elements: every index must be 64 bits wide.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>

#include "support.hpp"

namespace mblas::testing {
namespace {

constexpr std::size_t GiB = std::size_t{1} << 30;

std::size_t memory_available() {
  std::size_t kilobytes = 0;
  if (std::FILE* f = std::fopen("/proc/meminfo", "re")) {
    char line[128];
    while (std::fgets(line, sizeof line, f))
      if (std::sscanf(line, "MemAvailable: %zu kB", &kilobytes) == 1) break;
    std::fclose(f);
  }
  return kilobytes * 1024;
}

/// Zeroed memory that costs nothing until it is touched.
class Bytes {
 public:
  explicit Bytes(std::size_t n)
      : size_(n),
        data_(mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0)) {}
  ~Bytes() { munmap(data_, size_); }
  Bytes(const Bytes&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  template <class T>
  T* as() {
    return static_cast<T*>(data_);
  }

 private:
  std::size_t size_;
  void* data_;
};

#define NEED(bytes)                                                      \
  if (memory_available() < (bytes) + GiB)                                \
  GTEST_SKIP() << "needs " << ((bytes) >> 20) << " MiB, there are only " \
               << (memory_available() >> 20) << " MiB"

std::uint8_t mark(std::int64_t i, std::int64_t j) {
  return std::uint8_t(1 + (i * 31 + j * 7) % 251);
}

TEST(Large, Transpose) {
  // 46341 squared is just above 2^31.
  constexpr std::int64_t m = 46351, n = 46349;
  NEED(2 * std::size_t(m * n));
  Bytes A(std::size_t(m * n)), B(std::size_t(m * n));
  ASSERT_TRUE(A.ok() && B.ok());
  auto *a = A.as<std::uint8_t>(), *b = B.as<std::uint8_t>();
  for (std::int64_t i = 0; i < m; i += 7)
    for (std::int64_t j = i % 11; j < n; j += 11) a[i * n + j] = mark(i, j);
  for (std::int64_t j = 0; j < n; ++j) a[(m - 1) * n + j] = mark(m - 1, j);
  Context context("openmp");
  transpose(context, R, m, n, a, n, b, m);
  std::int64_t wrong = 0;
  constexpr std::int64_t kTile = 64;
  for (std::int64_t i0 = 0; i0 < m; i0 += kTile)
    for (std::int64_t j0 = 0; j0 < n; j0 += kTile)
      for (std::int64_t i = i0; i < std::min(m, i0 + kTile); ++i)
        for (std::int64_t j = j0; j < std::min(n, j0 + kTile); ++j)
          wrong += a[i * n + j] != b[j * m + i];
  EXPECT_EQ(wrong, 0);
}

TEST(Large, TransposeInplace) {
  constexpr std::int64_t n = 46349;
  NEED(std::size_t(n * n));
  Bytes A(std::size_t(n * n));
  ASSERT_TRUE(A.ok());
  auto* a = A.as<std::uint8_t>();
  for (std::int64_t i = 0; i < n; ++i) a[i * n + (n - 1)] = mark(i, n - 1);
  a[(n - 1) * n] = 77;
  Context context("openmp");
  transpose_inplace(context, R, n, n, a, n, n);
  for (std::int64_t j = 1; j < n; ++j) ASSERT_EQ(a[(n - 1) * n + j], mark(j, n - 1)) << j;
  EXPECT_EQ(a[n - 1], 77);
  EXPECT_EQ(a[1 * n + n - 1], 0);
}

TEST(Large, GemmWithAWideB) {
  // B has 2^31 + elements and C four times its bytes: int8 with 3 rows of C.
  constexpr std::int64_t m = 1, k = 3, n = (std::int64_t{1} << 31) / k + 12345;
  NEED(std::size_t(n) * (k + 4 * m));
  Bytes B(std::size_t(n * k)), C(std::size_t(n * m) * 4);
  ASSERT_TRUE(B.ok() && C.ok());
  auto* b = B.as<std::int8_t>();
  auto* c = C.as<std::int32_t>();
  for (std::int64_t j = 0; j < n; j += 4093)
    for (std::int64_t p = 0; p < k; ++p) b[p * n + j] = std::int8_t(j % 101 - 50 + p);
  for (std::int64_t p = 0; p < k; ++p) b[p * n + n - 1] = std::int8_t(100 + p);
  const std::int8_t a[k] = {1, -2, 3};
  Context context("openmp");
  gemm(context, R, Op::NoTrans, Op::NoTrans, m, n, k, 2, a, k, b, n, 0, c, n);
  for (std::int64_t j = 0; j < n - 1; j += 4093) {
    const std::int64_t x = j % 101 - 50;
    ASSERT_EQ(c[j], 2 * (x - 2 * (x + 1) + 3 * (x + 2))) << j;
    ASSERT_EQ(c[j + 1], j + 1 == n - 1 ? c[n - 1] : 0) << j;
  }
  EXPECT_EQ(c[n - 1], 2 * (100 - 2 * 101 + 3 * 102));
}

TEST(Large, LeadingDimensionsThatReachFar) {
  // Few elements, far apart: untouched pages cost nothing.
  constexpr std::int64_t ld = (std::int64_t{1} << 31) + 5, rows = 3;
  Bytes A(std::size_t((rows - 1) * ld + 8) * 4), C(std::size_t((rows - 1) * ld + 8) * 4);
  if (!A.ok() || !C.ok()) GTEST_SKIP() << "no address space";
  auto *a = A.as<float>(), *c = C.as<float>();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < 4; ++j) a[i * ld + j] = float(10 * i + j);
  const float identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  Context context("openmp");
  int took = 0;
  for (const Kernel<GemmArgs>& kernel : find_backend("openmp").gemm_kernels()) {
    context.set_kernel("gemm=" + std::string(kernel.name));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < 4; ++j) c[i * ld + j] = -1;
    const Status status =
        try_gemm(context, R, Op::NoTrans, Op::NoTrans, 3, 4, 3, 1, identity, 3, a, ld, 0, c, ld);
    if (status == Status::NotSupported) continue;  // the row is for other shapes
    ASSERT_EQ(status, Status::Ok) << context.last_error();
    ++took;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < 4; ++j) ASSERT_EQ(c[i * ld + j], float(10 * i + j));
    EXPECT_EQ(c[4], 0);
  }
  EXPECT_GE(took, 4);  // small, packed, blocked, naive
  for (const Kernel<GeamArgs>& kernel : find_backend("openmp").geam_kernels()) {
    context.set_kernel("geam=" + std::string(kernel.name));
    const Status status =
        try_geam(context, R, Op::NoTrans, Op::NoTrans, 3, 4, 2, a, ld, 1, a, ld, c, ld);
    if (status == Status::NotSupported) continue;
    ASSERT_EQ(status, Status::Ok) << context.last_error();
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < 4; ++j) ASSERT_EQ(c[i * ld + j], 3 * float(10 * i + j));
  }
}

TEST(Large, Gf256WithAWideB) {
  constexpr std::int64_t k = 2, n = (std::int64_t{1} << 30) + 777;
  NEED(std::size_t(n) * (k + 1));
  Bytes B(std::size_t(n * k)), C(std::size_t{n});
  ASSERT_TRUE(B.ok() && C.ok());
  auto *b = B.as<std::uint8_t>(), *c = C.as<std::uint8_t>();
  for (std::int64_t j = 0; j < n; j += 4093) b[j] = mark(j, 0), b[n + j] = mark(j, 1);
  b[n - 1] = 9, b[2 * n - 1] = 200;
  const std::uint8_t a[k] = {2, 3};
  Context context("openmp");
  gf256::gemm(context, 1, n, k, a, k, b, n, c, n);
  const auto want = [](std::uint8_t x, std::uint8_t y) {
    return gf256::multiply(2, x) ^ gf256::multiply(3, y);
  };
  for (std::int64_t j = 0; j < n - 1; j += 4093) ASSERT_EQ(c[j], want(b[j], b[n + j])) << j;
  EXPECT_EQ(c[n - 1], want(9, 200));
}

}  // namespace
}  // namespace mblas::testing
