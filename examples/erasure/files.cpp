#include "files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

namespace erasure {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

volatile std::sig_atomic_t interrupted = 0;

[[noreturn]] void fail(std::string_view what, const fs::path& path) {
  throw Failure(fmt::format("{} {}: {}", what, path.string(), std::strerror(errno)));
}

std::int64_t written_ns(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// rename() that leaves an existing file alone, where the file system knows how.
bool rename_new(const fs::path& from, const fs::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (fs::exists(to)) {
    errno = EEXIST;
    return false;
  }
  return std::rename(from.c_str(), to.c_str()) == 0;
}

}  // namespace

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = int(SA_RESETHAND | SA_RESTART);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

void stop_if_interrupted() {
  if (interrupted) throw Interrupted();
}

Input::Input(const fs::path& path) : path_(path), descriptor_(open(path.c_str(), O_RDONLY)) {
  struct stat status;
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) fail("cannot open", path);
  if (!S_ISREG(status.st_mode)) {
    close(descriptor_);
    throw Failure(path.string() + " is not a regular file");
  }
  size_ = status.st_size;
  written_ns_ = written_ns(status);
  posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

Input::Input(Input&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      written_ns_(other.written_ns_) {}

Input::~Input() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::size_t Input::read(std::int64_t at, Bytes to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t n =
        pread(descriptor_, to.data() + done, to.size() - done, at + std::int64_t(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += std::size_t(n);
  }
  return done;
}

bool Input::changed() const {
  struct stat status;
  return fstat(descriptor_, &status) != 0 || status.st_size != size_ ||
         written_ns(status) != written_ns_;
}

Output::Output(fs::path path)
    : path_(std::move(path)),
      temporary_(folder_of(path_) / fmt::format(".{}.{}.tmp", path_.filename().string(), getpid())),
      descriptor_(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail("cannot create", temporary_);
}

Output::Output(Output&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

Output::~Output() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void Output::write(ConstBytes bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot write", temporary_);
    bytes = bytes.subspan(std::size_t(n));
  }
}

void commit(std::vector<Output>& outputs, bool replace) {
  for (Output& output : outputs)
    if (fsync(output.descriptor_) != 0) fail("cannot write", output.temporary_);
  stop_if_interrupted();
  std::set<fs::path> folders;
  std::vector<fs::path> done;
  for (Output& output : outputs) {
    const bool renamed = replace ? std::rename(output.temporary_.c_str(), output.path_.c_str()) == 0
                                 : rename_new(output.temporary_, output.path_);
    if (!renamed) {
      const int error = errno;
      if (!replace)
        for (const fs::path& path : done) unlink(path.c_str());
      errno = error;
      fail("cannot create", output.path_);
    }
    close(std::exchange(output.descriptor_, -1));
    done.push_back(output.path_);
    folders.insert(folder_of(output.path_));
  }
  for (const fs::path& folder : folders) {  // the names too
    const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
    if (descriptor < 0) continue;
    fsync(descriptor);
    close(descriptor);
  }
}

Progress::Progress(std::string_view what, std::int64_t bytes)
    : what_(what),
      bytes_(std::max<std::int64_t>(bytes, 1)),
      terminal_(isatty(STDERR_FILENO)),
      start_(Clock::now()),
      shown_(start_) {}

Progress::~Progress() {
  if (shown_ != start_) fmt::print(stderr, "\r\033[K");
}

void Progress::at(std::int64_t done) {
  constexpr int kWidth = 40;
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now - start_ < 500ms || now - shown_ < 100ms) return;
  shown_ = now;
  const double share = double(done) / double(bytes_);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const int filled = int(share * kWidth);
  fmt::print(stderr, "\r{} [{:#<{}}{:{}}] {:3.0f} %, {:.0f} MB/s, {:.0f} s left\033[K", what_, "",
             filled, "", kWidth - filled, 100 * share, double(done) / seconds / 1e6,
             share > 0 ? seconds * (1 / share - 1) : 0);
  std::fflush(stderr);
}

}  // namespace erasure
