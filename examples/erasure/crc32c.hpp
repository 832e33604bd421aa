// CRC-32C, the checksum of iSCSI and ext4: reflected polynomial 0x82f63b78, eight bytes at a time
// by tables. M. E. Kounavis, F. L. Berry, "Novel table lookup-based algorithms for high-performance
// CRC generation", IEEE Transactions on Computers 57 (2008). "123456789" gives e3069283.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace erasure {

inline constexpr auto kCrcTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t t = 1; t < 8; ++t)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[t - 1][byte];
      tables[t][byte] = before >> 8 ^ tables[0][before & 255];
    }
  return tables;
}();

/// The checksum of `bytes`, or of what has the checksum `before` followed by them.
inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  const auto& t = kCrcTables;
  std::uint32_t crc = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint32_t low, high;  // little-endian
    std::memcpy(&low, bytes.data(), 4);
    std::memcpy(&high, bytes.data() + 4, 4);
    low ^= crc;
    crc = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^
          t[3][high & 255] ^ t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
  }
  for (const std::byte b : bytes) crc = crc >> 8 ^ t[0][(crc ^ std::uint32_t(b)) & 255];
  return ~crc;
}

}  // namespace erasure
