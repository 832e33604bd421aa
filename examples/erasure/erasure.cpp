// Splits a file into k + m shards, any k of which give it back. Shards carry checksums: what is
// damaged is found, and made anew together with what is missing, block by block, so that different
// shards may be damaged in different places. Files of any size are worked on a stripe at a time.
// Results appear complete or not at all; nothing that exists is overwritten but damaged shards by
// whole ones.
//
//   erasure split FILE --data 10 --parity 4 --dir DIR
//   erasure check DIR | SHARD…
//   erasure repair DIR | SHARD…
//   erasure join DIR | SHARD… --output FILE
//
// Exit status: 0; 1 where something failed or too much is lost; 2 for a command that makes no
// sense; 3 where check found damage that repair can undo; 130 after an interruption.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <mblas/mblas.hpp>
#include <random>

#include "files.hpp"
#include "shards.hpp"

namespace erasure {
namespace {

namespace fs = std::filesystem;
constexpr int kFailed = 1, kUsage = 2, kDamaged = 3, kInterrupted = 130;
constexpr std::int64_t kMostMemory = std::int64_t{1} << 30;  // of a stripe

struct SplitOptions {
  fs::path file, folder = ".";
  int data = 10, parity = 4;
  std::int64_t block = 1 << 20;
};

Header header_for(const SplitOptions& options, const Input& file) {
  Header header{};
  std::memcpy(header.magic, Header::kMagic, sizeof header.magic);
  header.version = Header::kVersion;
  header.data = std::uint32_t(options.data);
  header.parity = std::uint32_t(options.parity);
  header.poly = mblas::gf256::kDefaultPoly;
  header.block = std::uint32_t(options.block);
  header.file_bytes = std::uint64_t(file.size());
  std::random_device random;
  for (std::uint64_t& word : header.id) word = std::uint64_t{random()} << 32 | random();
  const std::string name = options.file.filename();
  if (name.size() >= sizeof header.name) throw Failure("the name of the file is too long");
  std::ranges::copy(name, header.name);
  return header;
}

int split(const SplitOptions& options) {
  const Input file(options.file);
  const Header header = header_for(options, file);
  if (options.block > kMostMemory / header.count())
    throw Failure(fmt::format("blocks of {} bytes for {} shards need more than {} bytes of memory",
                              options.block, header.count(), kMostMemory));
  Stripe stripe(header);  // refuses sizes that no code has
  fs::create_directories(options.folder);
  std::vector<Output> outputs;
  for (int i = 0; i < header.count(); ++i) {
    const fs::path path = options.folder / header.shard_name(i);
    if (fs::exists(path)) throw Failure(path.string() + " exists already");
    outputs.emplace_back(path);
    write_header(outputs.back(), header, i);
  }
  Progress progress("Splitting", file.size());
  std::int64_t at = 0;
  for (std::int64_t s = 0; s < header.stripes(); ++s) {
    const std::int64_t bytes = header.block_of(s);
    for (int i = 0; i < options.data; ++i, at += bytes) {
      const Bytes block = stripe.block(i, bytes);
      const std::int64_t rest = std::clamp<std::int64_t>(file.size() - at, 0, bytes);
      if (file.read(at, block.first(std::size_t(rest))) < std::size_t(rest))
        throw Failure("cannot read all of " + options.file.string());
      std::ranges::fill(block.subspan(std::size_t(rest)), std::byte{0});
    }
    stripe.encode(bytes);
    for (int i = 0; i < header.count(); ++i) {
      stop_if_interrupted();
      write_block(outputs[std::size_t(i)], header, s, i, stripe.block(i, bytes));
    }
    progress.at(at);
  }
  if (file.changed()) throw Failure(options.file.string() + " was changed while it was read");
  commit(outputs, false);
  return 0;
}

/// Says what is wrong with the shards; the number of those.
int report(ShardSet& set) {
  const Header& header = set.header();
  int faults = 0;
  for (int i = 0; i < header.count(); ++i) {
    const Shard& shard = set.shards()[std::size_t(i)];
    if (shard.whole()) continue;
    ++faults;
    const std::string path = set.path_of(i);
    if (!shard.file)
      fmt::print("{}: missing\n", path);
    else if (shard.damaged > 0)
      fmt::print("{}: {} of {} blocks are damaged or cut off, the first in stripe {}\n", path,
                 shard.damaged, header.stripes(), shard.first_damaged);
    else
      fmt::print("{}: longer than it should be\n", path);
  }
  for (const std::string& text : set.unusable()) fmt::print("{}\n", text);
  return faults;
}

/// Checks and says what was found; Failure where too much is lost. The number of faulty shards.
int inspect(ShardSet& set) {
  const std::int64_t lost = set.check();
  const int faults = report(set);
  const Header& header = set.header();
  int missing = 0;
  for (const Shard& shard : set.shards()) missing += !shard.file;
  if (missing > int(header.parity))
    throw Failure(fmt::format("{} of {} shards are missing; the file can be restored without {}",
                              missing, header.count(), header.parity));
  if (lost > 0)
    throw Failure(
        fmt::format("{} of {} stripes have fewer than {} good blocks left: the file "
                    "cannot be restored",
                    lost, header.stripes(), header.data));
  return faults;
}

int check(const std::vector<fs::path>& paths) {
  ShardSet set(paths);
  const int faults = inspect(set);
  const Header& header = set.header();
  fmt::print("{}, {} bytes, {} + {} shards: {}\n", header.name, header.file_bytes, header.data,
             header.parity, faults ? "can be repaired" : "all is well");
  return faults ? kDamaged : 0;
}

int repair(const std::vector<fs::path>& paths) {
  ShardSet set(paths);
  if (inspect(set) == 0) {
    fmt::print("nothing to repair\n");
    return 0;
  }
  const Header& header = set.header();
  std::vector<int> made;
  std::vector<bool> wanted(std::size_t(header.count()), false);
  std::vector<Output> outputs;
  for (int i = 0; i < header.count(); ++i) {
    const Shard& shard = set.shards()[std::size_t(i)];
    if (shard.whole()) continue;
    const fs::path path = set.path_of(i);
    if (!shard.file && fs::exists(path) && !set.is_wreck(path))
      throw Failure(path.string() + " is in the way: it is not a damaged shard of this file");
    wanted[std::size_t(i)] = true;
    made.push_back(i);
    outputs.emplace_back(path);
    write_header(outputs.back(), header, i);
  }
  Stripe stripe(header);
  Progress progress("Repairing", std::int64_t(header.file_bytes));
  for (std::int64_t s = 0; s < header.stripes(); ++s) {
    stripe.restore(set, s, wanted);
    const std::int64_t bytes = header.block_of(s);
    for (std::size_t i = 0; i < made.size(); ++i) {
      stop_if_interrupted();
      write_block(outputs[i], header, s, made[i], stripe.block(made[i], bytes));
    }
    progress.at((s + 1) * std::int64_t{header.data} * header.block);
  }
  commit(outputs, true);
  for (const int i : made) fmt::print("{}: repaired\n", set.path_of(i).string());
  return 0;
}

int join(const std::vector<fs::path>& paths, const fs::path& output) {
  if (fs::exists(output)) throw Failure(output.string() + " exists already");
  const ShardSet set(paths);
  const Header& header = set.header();
  std::vector<bool> wanted(std::size_t(header.count()), false);
  std::fill_n(wanted.begin(), header.data, true);
  std::vector<Output> outputs;
  outputs.emplace_back(output);
  Stripe stripe(header);
  Progress progress("Joining", std::int64_t(header.file_bytes));
  auto rest = std::int64_t(header.file_bytes);
  for (std::int64_t s = 0; s < header.stripes(); ++s) {
    stripe.restore(set, s, wanted);
    for (int i = 0; i < int(header.data); ++i) {
      stop_if_interrupted();
      const Bytes block = stripe.block(i, std::min(rest, header.block_of(s)));
      outputs.front().write(block);
      rest -= std::int64_t(block.size());
    }
    progress.at(std::int64_t(header.file_bytes) - rest);
  }
  commit(outputs, false);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("Splits files into shards of a Reed-Solomon code, and puts them together again");
  app.require_subcommand(1);
  SplitOptions options;
  CLI::App* split_command = app.add_subcommand("split", "Split a file into shards");
  split_command->add_option("file", options.file)->required();
  split_command->add_option("--data", options.data, "shards that the file is spread over")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  split_command
      ->add_option("--parity", options.parity, "shards more: as many may be lost, whichever")
      ->check(CLI::Range(0, 255))
      ->capture_default_str();
  split_command->add_option("--dir", options.folder, "where the shards go")->capture_default_str();
  split_command->add_option("--block", options.block, "bytes of a shard that are coded at a time")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  std::vector<fs::path> paths;
  fs::path output;
  const auto command = [&](const char* name, const char* help) {
    CLI::App* added = app.add_subcommand(name, help);
    added->add_option("shards", paths, "shards of one file, or the folder that holds them")
        ->required();
    return added;
  };
  CLI::App* check_command = command("check", "Say what is missing or damaged");
  CLI::App* repair_command = command("repair", "Make what is missing or damaged anew");
  CLI::App* join_command = command("join", "Put the file together");
  join_command->add_option("--output", output, "the file, which must not exist")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  }
  if (*split_command) return split(options);
  if (*check_command) return check(paths);
  if (*repair_command) return repair(paths);
  return join(paths, output);
}

}  // namespace
}  // namespace erasure

int main(int argc, char** argv) {
  erasure::catch_signals();
  try {
    return erasure::run(argc, argv);
  } catch (const erasure::Interrupted&) {
    fmt::print(stderr, "erasure: interrupted, nothing was changed\n");
    return erasure::kInterrupted;
  } catch (const std::exception& e) {
    fmt::print(stderr, "erasure: {}\n", e.what());
    return erasure::kFailed;
  }
}
