// Matrices in memory with guards around them: Buffer is the content, Placed a copy of it where a
// backend can work on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "guarded_pages.hpp"
#include "mblas/backend.hpp"
#include "mblas/types.hpp"

namespace mblas::cases {

/// `batch` matrices as they lie in memory: each is `lines` lines of `length` consecutive elements,
/// `ld` elements apart; rows or columns according to the layout. Matrices are `stride` elements
/// apart; a stride of 0 repeats one.
struct Shape {
  DType type = DType::f32;
  std::int64_t lines = 0, length = 0, ld = 0, stride = 0, batch = 1;

  /// Matrices that are stored: 1 where the stride repeats one.
  std::int64_t stored() const { return stride == 0 ? std::min<std::int64_t>(batch, 1) : batch; }
  /// Elements from the first to the last, inclusive.
  std::int64_t span() const;
  /// Does the element `index` places after the first belong to a matrix?
  bool contains(std::int64_t index) const;
};

/// Shape of a matrix of rows × cols elements in `layout`. ld 0: the smallest legal; stride kPacked:
/// matrices follow one another.
inline constexpr std::int64_t kPacked = -1;
Shape shape_of(DType type, Layout layout, std::int64_t rows, std::int64_t cols, std::int64_t ld,
               std::int64_t stride, std::int64_t batch);

/// Host memory holding the matrices of a shape between two guards. Guards and padding hold a
/// pattern that differs from element to element, and is NaN in floating-point types.
class Buffer {
 public:
  static constexpr std::int64_t kGuardBytes = 256;

  /// Where things lie in the allocation, in bytes.
  struct Geometry {
    Shape shape;
    std::int64_t first = 0, room = 0, total = 0;  ///< room: bytes between the guards
  };

  /// Everything holds the pattern. The first element lies `offset` elements past a 256-byte
  /// boundary; there is room for `room` elements at least, should the matrices need fewer.
  explicit Buffer(const Shape& shape, std::int64_t offset = 0, std::int64_t room = 0);
  explicit Buffer(const Geometry& geometry);
  /// Large buffers made from now on ask the system for huge pages.
  static void use_huge_pages(bool use);
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;
  Buffer clone() const;

  const Geometry& geometry() const { return geometry_; }
  const Shape& shape() const { return geometry_.shape; }
  /// First element of matrix `b`.
  void* at(std::int64_t b = 0) {
    return data_.get() + geometry_.first + b * shape().stride * size_of(shape().type);
  }
  const void* at(std::int64_t b = 0) const { return const_cast<Buffer*>(this)->at(b); }
  void* line(std::int64_t b, std::int64_t i) {
    return static_cast<std::byte*>(at(b)) + i * shape().ld * size_of(shape().type);
  }

  /// The whole allocation, guards included.
  std::span<std::byte> bytes() { return {data_.get(), std::size_t(geometry_.total)}; }
  std::span<const std::byte> bytes() const { return {data_.get(), std::size_t(geometry_.total)}; }

  /// Compares every guard and padding byte with those of `before`, a buffer of the same geometry.
  /// Returns an empty string, or where the first difference is.
  std::string check_untouched(const Buffer& before) const;
  /// The same where another shape than the buffer's own was written at its place, and the elements
  /// of the buffer's own may have changed too.
  std::string check_untouched(const Buffer& before, const Shape& written) const;
  /// Compares every byte.
  std::string check_unchanged(const Buffer& before) const;

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  /// Compares everything between the lines of `written`, except the bytes that are excused.
  template <class Excused>
  std::string check_gaps(const Buffer& before, const Shape& written, Excused excused) const;
  std::string difference(const Buffer& before, std::int64_t byte) const;

  Geometry geometry_;
  std::unique_ptr<std::byte[], Free> data_;
};

/// A copy of a buffer, guards included, in host memory or in that of a queue.
class Placed {
 public:
  /// `queue` null: host memory. The queue must outlive this object.
  Placed(const Buffer& content, Queue* queue);
  /// In guarded pages, which must outlive this object and hold nothing else, against one of their
  /// ends; of the guards as much as there is room for. What is not `written` may only be read.
  Placed(const Buffer& content, GuardedPages& pages, Flush flush, bool written);
  ~Placed();
  Placed(Placed&&) noexcept;
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  void* at(std::int64_t b = 0) const;
  /// A pointer to each matrix of the batch, last matrix first, so that a kernel that mistakes them
  /// for a strided batch cannot be right.
  std::span<void* const> pointers() const { return pointers_; }
  const Shape& shape() const { return geometry_.shape; }

  /// Makes the memory equal to `content` again.
  void reset(const Buffer& content);
  /// What the memory holds now; valid until the next call of a function of this object.
  const Buffer& fetch();

 private:
  /// What of the content, guards included, lies in the pages: as bytes of the content.
  struct Window {
    std::int64_t begin = 0, end = 0;
  };

  Queue* queue_ = nullptr;
  Buffer::Geometry geometry_;
  void* device_ = nullptr;
  std::byte* pages_ = nullptr;  ///< where the content would begin in the writable pages
  std::ptrdiff_t shown_ = 0;    ///< from there to what at() shows
  Window window_;
  std::unique_ptr<Buffer> host_;  ///< the copy itself, or what fetch() brought back from a device
  std::vector<void*> pointers_;
};

/// Plain copy of any number of bytes through a queue.
void copy_bytes(Queue& queue, void* dst, const void* src, std::int64_t bytes, CopyKind kind);

}  // namespace mblas::cases
