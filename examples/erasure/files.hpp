// Files as the erasure tool needs them: read and written at once or not at all, and results that
// appear under their name only when they are complete and on the disk.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace erasure {

/// What the user is told; the tool then ends with status 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// After SIGINT, SIGTERM or SIGHUP.
struct Interrupted : std::exception {};

/// From now on these signals make stop_if_interrupted() throw; a second one ends the process.
void catch_signals();
void stop_if_interrupted();

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

/// A regular file that is open for reading.
class Input {
 public:
  explicit Input(const std::filesystem::path& path);
  Input(Input&& other) noexcept;
  Input& operator=(Input&& other) = delete;
  ~Input();

  const std::filesystem::path& path() const { return path_; }
  std::int64_t size() const { return size_; }
  /// Bytes read, fewer where the file ends or cannot be read any further.
  std::size_t read(std::int64_t at, Bytes to) const;
  /// Has the file been written to since it was opened?
  bool changed() const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  std::int64_t size_, written_ns_;
};

/// A file that is written under another name beside its own, and vanishes unless it is committed.
class Output {
 public:
  explicit Output(std::filesystem::path path);
  Output(Output&& other) noexcept;
  Output& operator=(Output&& other) = delete;
  ~Output();

  void write(ConstBytes bytes);

 private:
  friend void commit(std::vector<Output>& outputs, bool replace);
  std::filesystem::path path_, temporary_;
  int descriptor_;
};

/// Brings all outputs to the disk, and then under their names. Unless `replace`, none of those may
/// exist; if one does, none of the outputs is left.
void commit(std::vector<Output>& outputs, bool replace);

/// A bar on stderr, if that is a terminal and the work takes a while.
class Progress {
 public:
  Progress(std::string_view what, std::int64_t bytes);
  ~Progress();
  void at(std::int64_t done);

 private:
  using Clock = std::chrono::steady_clock;
  const std::string what_;
  const std::int64_t bytes_;
  const bool terminal_;
  const Clock::time_point start_;
  Clock::time_point shown_;
};

}  // namespace erasure
