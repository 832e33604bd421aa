#include "shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "crc32c.hpp"

namespace erasure {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");
namespace fs = std::filesystem;

template <class T>
ConstBytes bytes_of(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

std::uint32_t check_of(const Header& header) {
  return crc32c(bytes_of(header).first(offsetof(Header, check)));
}

/// Empty, or what is wrong with the header of a shard.
std::string fault_of(const Input& file, Header& header) {
  if (file.read(0, std::as_writable_bytes(std::span(&header, 1))) < sizeof header)
    return "is shorter than the header of a shard";
  if (std::memcmp(header.magic, Header::kMagic, sizeof header.magic) != 0)
    return "is not a shard, or its header is damaged";
  if (check_of(header) != header.check) return "has a damaged header";
  if (header.version != Header::kVersion)
    return fmt::format("has version {}, this program knows {}", header.version, Header::kVersion);
  if (header.data < 1 || header.count() > 256 || header.index >= std::uint32_t(header.count()) ||
      header.block < 1 || header.name[sizeof header.name - 1] != 0 ||
      std::strchr(header.name, '/') != nullptr)
    return "has a header that makes no sense";
  return {};
}

bool same_file(const Header& a, const Header& b) { return std::ranges::equal(a.id, b.id); }

/// Do headers of one file agree in all but the index?
bool agree(Header a, const Header& b) {
  a.index = b.index;
  a.check = b.check;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

std::int64_t Header::stripes() const {
  const std::uint64_t stripe = std::uint64_t{data} * block;
  return std::int64_t((file_bytes + stripe - 1) / stripe);
}
std::int64_t Header::block_of(std::int64_t stripe) const {
  const std::uint64_t rest = file_bytes - std::uint64_t(stripe) * data * block;
  return std::int64_t(std::min<std::uint64_t>(block, (rest + data - 1) / data));
}
std::int64_t Header::place_of(std::int64_t stripe) const {
  const std::int64_t whole = std::int64_t(sizeof(Header)) + stripe * (block + kCheckBytes);
  return stripe == 0 || stripe < stripes() ? whole : whole - block + block_of(stripe - 1);
}
std::uint32_t Header::checksum(std::int64_t stripe, std::uint32_t shard, ConstBytes bytes) const {
  const std::uint64_t place[] = {id[0], id[1], std::uint64_t(stripe), shard};
  return crc32c(bytes, crc32c(bytes_of(place)));
}
std::string Header::shard_name(int shard) const {
  return fmt::format("{}.{:03}.shard", name, shard);
}

void write_header(Output& to, Header header, int index) {
  header.index = std::uint32_t(index);
  header.check = check_of(header);
  to.write(bytes_of(header));
}

void write_block(Output& to, const Header& header, std::int64_t stripe, int index,
                 ConstBytes block) {
  to.write(block);
  to.write(bytes_of(header.checksum(stripe, std::uint32_t(index), block)));
}

ShardSet::ShardSet(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(path))
      if (entry.is_regular_file() && entry.path().extension() == ".shard")
        files.push_back(entry.path());
    if (folder_.empty()) folder_ = path;
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) add(Input(file));
  if (!shards_.empty()) {
    if (folder_.empty()) folder_ = files.front().parent_path();
    return;
  }
  std::string reasons = "no usable shard is there";
  for (const std::string& reason : unusable_) reasons += "\n  " + reason;
  throw Failure(reasons);
}

void ShardSet::add(Input file) {
  Header header;
  if (const std::string fault = fault_of(file, header); !fault.empty()) {
    unusable_.push_back(file.path().string() + " " + fault);
    if (fault.find("damaged") != fault.npos || fault.find("shorter") != fault.npos)
      wrecks_.push_back(file.path());
    return;
  }
  if (shards_.empty()) {
    header_ = header;
    shards_.resize(std::size_t(header.count()));
  }
  const auto before = std::ranges::find_if(shards_, [](const Shard& s) { return bool(s.file); });
  if (before != shards_.end()) {
    const std::string other = before->file->path().string();
    if (!same_file(header, header_))
      throw Failure(
          fmt::format("{} is a shard of {}, but {} is one of {} that was split at another "
                      "time or is another file: name the shards of one",
                      file.path().string(), header.name, other, header_.name));
    if (!agree(header, header_))
      throw Failure(fmt::format("{} and {} are shards of one file, but disagree about it",
                                file.path().string(), other));
  }
  Shard& shard = shards_[header.index];
  if (shard.file)
    throw Failure(fmt::format("{} and {} are the same shard, number {}",
                              shard.file->path().string(), file.path().string(), header.index));
  shard.file.emplace(std::move(file));
}

fs::path ShardSet::path_of(int index) const {
  const Shard& shard = shards_[std::size_t(index)];
  return shard.file ? shard.file->path() : folder_ / header_.shard_name(index);
}

bool ShardSet::is_wreck(const fs::path& path) const {
  return std::ranges::any_of(wrecks_,
                             [&](const fs::path& wreck) { return fs::equivalent(wreck, path); });
}

bool ShardSet::read(int index, std::int64_t stripe, Bytes to) const {
  const Shard& shard = shards_[std::size_t(index)];
  if (!shard.file) return false;
  const std::int64_t at = header_.place_of(stripe);
  std::uint32_t check;
  return shard.file->read(at, to) == to.size() &&
         shard.file->read(at + std::int64_t(to.size()),
                          std::as_writable_bytes(std::span(&check, 1))) == kCheckBytes &&
         check == header_.checksum(stripe, std::uint32_t(index), to);
}

std::int64_t ShardSet::check() {
  const std::int64_t size = header_.place_of(header_.stripes());
  for (Shard& shard : shards_) shard.too_long = shard.file && shard.file->size() > size;
  std::vector<std::byte> block(header_.stripes() > 0 ? std::size_t(header_.block_of(0)) : 0);
  Progress progress("Checking", size * header_.count());
  std::int64_t lost = 0;
  for (std::int64_t stripe = 0; stripe < header_.stripes(); ++stripe) {
    const auto bytes = std::size_t(header_.block_of(stripe));
    int good = 0;
    for (int i = 0; i < header_.count(); ++i) {
      stop_if_interrupted();
      Shard& shard = shards_[std::size_t(i)];
      if (read(i, stripe, Bytes(block).first(bytes)))
        ++good;
      else if (shard.file && shard.damaged++ == 0)
        shard.first_damaged = stripe;
    }
    lost += good < int(header_.data);
    progress.at(header_.place_of(stripe + 1) * header_.count());
  }
  return lost;
}

Stripe::Stripe(const Header& header)
    : code_(int(header.data), int(header.parity), header.poly),
      pitch_(header.stripes() > 0 ? (header.block_of(0) + 63) / 64 * 64 : 0),
      memory_(new std::byte[std::size_t(pitch_ * header.count())]) {
  for (int i = 0; i < header.count(); ++i)
    pointers_.push_back(reinterpret_cast<std::uint8_t*>(block(i, 0).data()));
}

void Stripe::encode(std::int64_t bytes) {
  const auto data = std::size_t(code_.data_shards());
  const std::vector<const std::uint8_t*> from(pointers_.begin(),
                                              pointers_.begin() + std::ptrdiff_t(data));
  code_.encode(from, std::span<std::uint8_t* const>(pointers_).subspan(data), bytes);
}

void Stripe::restore(const ShardSet& set, std::int64_t stripe, const std::vector<bool>& wanted) {
  const std::int64_t bytes = set.header().block_of(stripe);
  const auto read = [&](int i) { return set.read(i, stripe, block(i, bytes)); };
  bool present[256] = {}, complete = true;
  const int count = set.header().count();
  for (int i = 0; i < count; ++i)
    if (wanted[std::size_t(i)]) complete &= present[i] = read(i);
  if (complete) return;
  int good = 0;
  for (int i = 0; i < count; ++i) {
    if (!wanted[std::size_t(i)]) present[i] = read(i);
    good += present[i];
  }
  if (good < code_.data_shards())
    throw Failure(fmt::format("stripe {}: {} blocks are left, {} are needed", stripe, good,
                              code_.data_shards()));
  code_.reconstruct(pointers_, std::span<const bool>(present, std::size_t(count)), bytes);
}

}  // namespace erasure
