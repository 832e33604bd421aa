#include "buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "parallel.hpp"

namespace mblas::cases {
namespace {

constexpr std::align_val_t kAlignment{256};

constexpr std::int64_t kPage = 4096, kWorthHugePages = std::int64_t{4} << 20;
bool huge_pages = false;

/// Bits that make any pattern of the type a quiet NaN.
std::uint64_t nan_bits(DType type) {
  switch (type) {
    case DType::f32:
    case DType::cf32:
      return 0x7fc00000'7fc00000u;
    case DType::f64:
    case DType::cf64:
      return 0x7ff80000'00000000u;
    case DType::f16:
      return 0x7e007e00'7e007e00u;
    case DType::bf16:
      return 0x7fc07fc0'7fc07fc0u;
    default:
      return 0;
  }
}

/// Fills whole words of eight bytes.
void fill_pattern(std::span<std::byte> bytes, DType type) {
  const std::uint64_t mask = nan_bits(type);
  constexpr std::int64_t kChunk = 1 << 20;
  const auto total = std::int64_t(bytes.size());
  parallel_for((total + kChunk - 1) / kChunk, double(total) / 8, [&](std::int64_t chunk) {
    const std::int64_t end = std::min(total, (chunk + 1) * kChunk);
    for (std::int64_t i = chunk * kChunk; i < end; i += 8) {
      const std::uint64_t word = (std::uint64_t(i) * 0x9e3779b97f4a7c15u) | mask;
      std::memcpy(bytes.data() + i, &word, 8);
    }
  });
}

}  // namespace

std::int64_t Shape::span() const {
  if (batch == 0 || lines == 0 || length == 0) return 0;
  return (stored() - 1) * stride + (lines - 1) * ld + length;
}

bool Shape::contains(std::int64_t index) const {
  if (index < 0 || index >= span()) return false;
  // A batch whose matrices interleave has elements of several matrices between two first elements.
  const std::int64_t extent = (lines - 1) * ld + length;
  for (std::int64_t b = stride == 0 ? 0 : std::min(stored() - 1, index / stride); b >= 0; --b) {
    const std::int64_t within = index - b * stride;
    if (within >= extent) return false;
    if (within % ld < length) return true;
  }
  return false;
}

Shape shape_of(DType type, Layout layout, std::int64_t rows, std::int64_t cols, std::int64_t ld,
               std::int64_t stride, std::int64_t batch) {
  Shape s;
  s.type = type;
  s.lines = layout == Layout::RowMajor ? rows : cols;
  s.length = layout == Layout::RowMajor ? cols : rows;
  s.ld = ld > 0 ? ld : std::max<std::int64_t>(1, s.length);
  s.batch = batch;
  s.stride = stride == kPacked ? s.lines * s.ld : stride;
  return s;
}

void Buffer::Free::operator()(std::byte* p) const { ::operator delete[](p, kAlignment); }

Buffer::Buffer(const Shape& shape, std::int64_t offset, std::int64_t room)
    : Buffer([&] {
        const int size = size_of(shape.type);
        const std::int64_t first = kGuardBytes + offset * size;
        const std::int64_t elements = std::max(shape.span(), room);
        return Geometry{shape, first, elements * size,
                        (first + elements * size + kGuardBytes + 255) / 256 * 256};
      }()) {
  fill_pattern(bytes(), shape.type);
}

Buffer::Buffer(const Geometry& geometry)
    : geometry_(geometry),
      data_(static_cast<std::byte*>(::operator new[](std::size_t(geometry.total), kAlignment))) {
  if (!huge_pages || geometry.total < kWorthHugePages) return;
  const auto start = reinterpret_cast<std::uintptr_t>(data_.get());
  const std::uintptr_t first = (start + kPage - 1) / kPage * kPage;
  madvise(reinterpret_cast<void*>(first), std::size_t(geometry.total - kPage), MADV_HUGEPAGE);
}

void Buffer::use_huge_pages(bool use) { huge_pages = use; }

Buffer Buffer::clone() const {
  Buffer copy(geometry_);
  std::memcpy(copy.data_.get(), data_.get(), bytes().size());
  return copy;
}

std::string Buffer::difference(const Buffer& before, std::int64_t byte) const {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto hex = [&](std::byte b) {
    return std::string{kDigits[int(b) >> 4], kDigits[int(b) & 15]};
  };
  const auto& [s, first, room, total] = geometry_;
  const std::int64_t end = first + s.span() * size_of(s.type);
  std::string where;
  if (byte < first) {
    where = "guard, " + std::to_string(first - byte) + " bytes before the first element";
  } else if (byte >= end) {
    where = "guard, " + std::to_string(byte - end) + " bytes after the last element";
  } else {
    const std::int64_t index = (byte - first) / size_of(s.type);
    const std::int64_t b = s.stride > 0 ? index / s.stride : 0;
    const std::int64_t within = index - b * s.stride;
    where = "matrix " + std::to_string(b) + ", line " + std::to_string(within / s.ld) +
            ", element " + std::to_string(within % s.ld) + " of that line (length " +
            std::to_string(s.length) + ", ld " + std::to_string(s.ld) + ")";
  }
  return where + ": byte changed from " + hex(before.data_[byte]) + " to " + hex(data_[byte]);
}

std::string Buffer::check_unchanged(const Buffer& before) const {
  if (std::memcmp(data_.get(), before.data_.get(), bytes().size()) == 0) return {};
  const auto [mine, theirs] =
      std::mismatch(data_.get(), data_.get() + geometry_.total, before.data_.get());
  return difference(before, mine - data_.get());
}

std::string Buffer::check_untouched(const Buffer& before) const {
  return check_gaps(before, shape(), [](std::int64_t) { return false; });
}

std::string Buffer::check_untouched(const Buffer& before, const Shape& written) const {
  return check_gaps(before, written, [&](std::int64_t byte) {
    return byte >= geometry_.first &&
           shape().contains((byte - geometry_.first) / size_of(shape().type));
  });
}

template <class Excused>
std::string Buffer::check_gaps(const Buffer& before, const Shape& written, Excused excused) const {
  const auto check = [&](std::int64_t from, std::int64_t to) -> std::string {
    if (to <= from || std::memcmp(&data_[from], &before.data_[from], std::size_t(to - from)) == 0)
      return {};
    for (std::int64_t i = from; i < to; ++i)
      if (data_[i] != before.data_[i] && !excused(i)) return difference(before, i);
    return {};
  };
  // Lines in the order of their addresses: matrices that are written do not interleave.
  const int size = size_of(written.type);
  std::int64_t from = 0;
  if (written.span() > 0) {
    for (std::int64_t b = 0; b < written.stored(); ++b) {
      for (std::int64_t i = 0; i < written.lines; ++i) {
        const std::int64_t start = geometry_.first + (b * written.stride + i * written.ld) * size;
        if (std::string found = check(from, start); !found.empty()) return found;
        from = start + written.length * size;
      }
    }
  }
  return check(from, geometry_.total);
}

void copy_bytes(Queue& queue, void* dst, const void* src, std::int64_t bytes, CopyKind kind) {
  queue.copy({dst, bytes, src, bytes, bytes, 1}, kind);
}

Placed::Placed(const Buffer& content, Queue* queue) : queue_(queue), geometry_(content.geometry()) {
  if (queue_) {
    device_ = queue_->allocate(content.bytes().size());
    reset(content);
  } else {
    host_ = std::make_unique<Buffer>(content.clone());
  }
  pointers_.reserve(std::size_t(shape().batch));
  for (std::int64_t b = shape().batch; b-- > 0;) pointers_.push_back(at(b));
}

Placed::Placed(const Buffer& content, GuardedPages& pages, Flush flush, bool written)
    : geometry_(content.geometry()) {
  pages.reserve(std::size_t(geometry_.room));
  const auto size = std::int64_t(pages.size());
  const std::int64_t before = flush == Flush::Start ? 0 : size - geometry_.room;
  pages_ = pages.writable() + before - geometry_.first;
  shown_ = written ? 0 : pages.readable() - pages.writable();
  window_ = {std::max<std::int64_t>(0, geometry_.first - before),
             std::min(geometry_.total, geometry_.first - before + size)};
  host_ = std::make_unique<Buffer>(content.clone());
  reset(content);
  pointers_.reserve(std::size_t(shape().batch));
  for (std::int64_t b = shape().batch; b-- > 0;) pointers_.push_back(at(b));
}

Placed::~Placed() {
  if (device_) queue_->deallocate(device_);
}

Placed::Placed(Placed&& other) noexcept
    : queue_(other.queue_),
      geometry_(other.geometry_),
      device_(std::exchange(other.device_, nullptr)),
      pages_(other.pages_),
      shown_(other.shown_),
      window_(other.window_),
      host_(std::move(other.host_)),
      pointers_(std::move(other.pointers_)) {}

void* Placed::at(std::int64_t b) const {
  std::byte* base = device_  ? static_cast<std::byte*>(device_)
                    : pages_ ? pages_ + shown_
                             : host_->bytes().data();
  return base + geometry_.first + b * shape().stride * size_of(shape().type);
}

void Placed::reset(const Buffer& content) {
  const std::span<const std::byte> bytes = content.bytes();
  if (device_) {
    copy_bytes(*queue_, device_, bytes.data(), std::int64_t(bytes.size()), CopyKind::HostToDevice);
    queue_->synchronize();
  } else if (pages_) {
    std::memcpy(pages_ + window_.begin, bytes.data() + window_.begin,
                std::size_t(window_.end - window_.begin));
  } else {
    std::memcpy(host_->bytes().data(), bytes.data(), bytes.size());
  }
}

const Buffer& Placed::fetch() {
  if (device_) {
    if (!host_) host_ = std::make_unique<Buffer>(geometry_);
    const std::span<std::byte> bytes = host_->bytes();
    copy_bytes(*queue_, bytes.data(), device_, std::int64_t(bytes.size()), CopyKind::DeviceToHost);
    queue_->synchronize();
  } else if (pages_) {
    std::memcpy(host_->bytes().data() + window_.begin, pages_ + window_.begin,
                std::size_t(window_.end - window_.begin));
  }
  return *host_;
}

}  // namespace mblas::cases
