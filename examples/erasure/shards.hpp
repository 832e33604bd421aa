// Shard files. A file is cut into stripes, a stripe into k data blocks of one length, to which a
// Reed-Solomon code adds m parity blocks; shard i holds block i of every stripe.
//
//   header   512 bytes, below
//   stripe   `block` bytes, in the last stripe what the rest of the file needs, then zeros; then
//            the CRC-32C of the place of the block (file, shard and stripe) and of its bytes, so
//            that blocks that were exchanged are found too
//
// Numbers are little-endian.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mblas/gf256.hpp>
#include <optional>
#include <string>
#include <vector>

#include "files.hpp"

namespace erasure {

struct Header {
  static constexpr char kMagic[8] = {'M', 'B', 'L', 'A', 'S', 'E', 'C', '\n'};
  static constexpr std::uint32_t kVersion = 1;

  char magic[8];
  std::uint32_t version;
  std::uint32_t data, parity;  ///< shards: k and m
  std::uint32_t index;         ///< of this one; data first
  std::uint32_t poly;          ///< of the field
  std::uint32_t block;         ///< bytes
  std::uint64_t file_bytes;
  std::uint64_t id[2];  ///< random: which shards belong together
  char name[256];       ///< of the file, ends with 0
  char reserved[196];
  std::uint32_t check;  ///< CRC-32C of what is before

  int count() const { return int(data + parity); }
  std::int64_t stripes() const;
  /// Bytes of a block of the stripe.
  std::int64_t block_of(std::int64_t stripe) const;
  /// Where the block lies in a shard; of stripes(), the shard's size.
  std::int64_t place_of(std::int64_t stripe) const;
  std::uint32_t checksum(std::int64_t stripe, std::uint32_t shard, ConstBytes block) const;
  /// "NAME.003.shard"
  std::string shard_name(int shard) const;
};
static_assert(sizeof(Header) == 512);

inline constexpr std::int64_t kCheckBytes = 4;

void write_header(Output& to, Header header, int index);
void write_block(Output& to, const Header& header, std::int64_t stripe, int index,
                 ConstBytes block);

/// A shard as it was found.
struct Shard {
  std::optional<Input> file;       ///< none: missing
  std::int64_t damaged = 0;        ///< blocks
  std::int64_t first_damaged = 0;  ///< stripe
  bool too_long = false;

  bool whole() const { return file && damaged == 0 && !too_long; }
};

/// The shards of one file.
class ShardSet {
 public:
  /// From shard files, or from all of a folder. Failure where they are of different files, where
  /// two are the same shard, or where none can be read.
  explicit ShardSet(const std::vector<std::filesystem::path>& paths);

  const Header& header() const { return header_; }
  std::vector<Shard>& shards() { return shards_; }
  /// Where a shard is, or belongs if it is missing.
  std::filesystem::path path_of(int index) const;
  /// What was found but cannot be used, and why.
  const std::vector<std::string>& unusable() const { return unusable_; }
  /// Was a file found at the path that is a shard but for its damaged header?
  bool is_wreck(const std::filesystem::path& path) const;

  /// Reads a block; false where it is missing or damaged.
  bool read(int index, std::int64_t stripe, Bytes to) const;
  /// Reads everything, and notes what is damaged. The stripes that have too few blocks left.
  std::int64_t check();

 private:
  void add(Input file);

  std::filesystem::path folder_;
  Header header_{};
  std::vector<Shard> shards_;
  std::vector<std::string> unusable_;
  std::vector<std::filesystem::path> wrecks_;
};

/// The blocks of a stripe in memory.
class Stripe {
 public:
  explicit Stripe(const Header& header);

  Bytes block(int index, std::int64_t bytes) const {
    return {memory_.get() + std::int64_t(index) * pitch_, std::size_t(bytes)};
  }
  /// Data blocks one after the other, as in the file.
  void encode(std::int64_t bytes);
  /// Reads blocks until there are enough, at first the `wanted` ones, and makes those that are
  /// damaged or missing. Failure where too many are.
  void restore(const ShardSet& set, std::int64_t stripe, const std::vector<bool>& wanted);

 private:
  mblas::gf256::ReedSolomon code_;
  std::int64_t pitch_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<std::uint8_t*> pointers_;
};

}  // namespace erasure
