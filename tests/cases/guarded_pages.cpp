#include "guarded_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <new>

namespace mblas::cases {
namespace {

std::size_t page() {
  static const auto bytes = std::size_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// The file's bytes with an inaccessible page on either side.
std::byte* map_between(int file, std::size_t bytes, int protection) {
  void* const whole = mmap(nullptr, bytes + 2 * page(), PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) throw std::bad_alloc();
  std::byte* const inner = static_cast<std::byte*>(whole) + page();
  if (mmap(inner, bytes, protection, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    munmap(whole, bytes + 2 * page());
    throw std::bad_alloc();
  }
  return inner;
}

void unmap_between(std::byte* inner, std::size_t bytes) {
  if (inner) munmap(inner - page(), bytes + 2 * page());
}

}  // namespace

GuardedPages::GuardedPages(std::size_t bytes) { map(bytes); }
GuardedPages::~GuardedPages() { unmap(); }

void GuardedPages::reserve(std::size_t bytes) {
  if (bytes <= size_) return;
  unmap();
  map(bytes);
}

void GuardedPages::map(std::size_t bytes) {
  const std::size_t size = (bytes + page() - 1) / page() * page();
  const int file = memfd_create("guarded", MFD_CLOEXEC);
  if (file < 0) throw std::bad_alloc();
  try {
    if (ftruncate(file, off_t(size)) != 0) throw std::bad_alloc();
    size_ = size;
    writable_ = map_between(file, size, PROT_READ | PROT_WRITE);
    readable_ = map_between(file, size, PROT_READ);
  } catch (...) {
    close(file);
    unmap();
    throw;
  }
  close(file);
}

void GuardedPages::unmap() {
  unmap_between(writable_, size_);
  unmap_between(readable_, size_);
  writable_ = readable_ = nullptr;
  size_ = 0;
}

bool GuardedPages::contains(const void* address) const {
  const std::less<const void*> before;
  for (const std::byte* start : {writable_, readable_})
    if (!before(address, start - page()) && before(address, start + size_ + page())) return true;
  return false;
}

}  // namespace mblas::cases
