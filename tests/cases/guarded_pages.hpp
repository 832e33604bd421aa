// Memory in which a read or write beyond the end is a fault.
#pragma once

#include <cstddef>

namespace mblas::cases {

/// The end of guarded pages that an operand lies against.
enum class Flush : char { Start = 'S', End = 'E' };

/// Pages between two that are inaccessible, twice in the address space: once to be written, once
/// only to be read.
class GuardedPages {
 public:
  /// Throws std::bad_alloc.
  explicit GuardedPages(std::size_t bytes = 1);
  ~GuardedPages();
  GuardedPages(const GuardedPages&) = delete;

  /// Makes room for that many bytes; what was there is lost where there is less.
  void reserve(std::size_t bytes);
  std::byte* writable() const { return writable_; }
  std::byte* readable() const { return readable_; }
  /// Bytes, whole pages.
  std::size_t size() const { return size_; }
  /// Does the address lie in the pages or the two around them?
  bool contains(const void* address) const;

 private:
  void map(std::size_t bytes);
  void unmap();

  std::byte *writable_ = nullptr, *readable_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace mblas::cases
