// The transpose of a panel whose result goes past the caches.
//
// Memory wants few sequential streams of reads that its prefetcher can run ahead of, and whole
// lines written, two or more side by side. So strips of rows are read along, a cache line of each
// at a time, transposed in registers, and gathered in a buffer that has a slot for every column; a
// slot is written once it holds a run of kRun bytes. Rows of the result that do not begin on a line
// set their last, incomplete line aside until the next run completes it. Short rows of a result
// without padding are written as one sequence.
//
// Measured on an Emerald Rapids Xeon with AVX-512, one / two threads, in shares of the best copy of
// as many bytes, operands on pages: f32 8192² 0.95 / 0.85, 16384² 0.88 / 0.73, 1024² 0.93 / 0.85,
// 4096×3072 0.93 / 0.89, 4093×4099 0.66 / 0.66, 1000000×16 0.89 / 0.88. What is left: a power of
// two between the rows of the result, where runs of a strip meet in few sets and banks; lines that
// are shared by runs; and for 1- and 2-byte elements (0.5 to 0.7) strips of 64 rows, which are more
// streams than are prefetched. A Zen 5 EPYC prefetches fewer: there lines are fetched ahead by hand
// (one thread, shares of the copy without and with: 4 bytes 4093² 0.42 and 0.80, 8 bytes 8192² 0.86
// and 0.94, 16 bytes 8192² 0.61 and 0.94, 4093² 0.42 and 0.90), and large panels of smaller
// elements have a pipeline of their own (pipelined.hpp).
#include "cpu/isa.hpp"
#include "cpu/simd.hpp"
#include "cpu/transpose/pipelined.hpp"
#include "cpu/transpose/slots.hpp"
#include "cpu/transpose/stream.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

constexpr std::int64_t kGroup = 16;  // rows

template <int Size>
struct Shape {
  static constexpr std::int64_t kTile = kLine / Size;  // columns
  static constexpr std::int64_t kPiece = kGroup * Size;
  static constexpr std::int64_t kRun = kPiece > 128 ? kPiece : 128;
  static constexpr std::int64_t kRunRows = kRun / Size;
  static constexpr std::int64_t kSlot = kLine + kRun;
  // Columns: a page of a row, or what the buffer has slots for.
  static constexpr std::int64_t kSlots = (kStreamBuffer - kLine) / kSlot / kTile * kTile;
  static constexpr std::int64_t kChunk = 4096 / Size < kSlots ? 4096 / Size : kSlots;
};

// GCC's own headers use uninitialised operands where all lanes are replaced.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// The 16-byte lanes of a vector, `stride` apart.
template <class V>
MBLAS_INLINE void store_lanes(std::byte* p, [[maybe_unused]] std::int64_t stride, const V& v) {
#if defined(__AVX512F__)
  const __m512i x = __builtin_bit_cast(__m512i, v);
  store(p, _mm512_castsi512_si128(x));
  store(p + stride, _mm512_extracti32x4_epi32(x, 1));
  store(p + 2 * stride, _mm512_extracti32x4_epi32(x, 2));
  store(p + 3 * stride, _mm512_extracti32x4_epi32(x, 3));
#elif defined(__AVX2__)
  const __m256i x = __builtin_bit_cast(__m256i, v);
  store(p, _mm256_castsi256_si128(x));
  store(p + stride, _mm256_extracti128_si256(x, 1));
#else
  store(p, v);
#endif
}

#pragma GCC diagnostic pop

/// Columns of 16 rows of a line each, to slots `pitch` apart.
template <int Size>
MBLAS_INLINE void fill(const std::byte* src, std::int64_t src_pitch, std::byte* slots,
                       std::int64_t pitch) {
  if constexpr (Size >= 4) {
    constexpr int side = kSquare<Size>;
#pragma GCC unroll 1
    for (int i = 0; i < kGroup; i += side)
#pragma GCC unroll 1
      for (int j = 0; j < kLine / Size; j += side)
        transpose_square<Size>(src + i * src_pitch + j * Size, src_pitch,
                               slots + j * pitch + i * Size, pitch);
  } else {
    constexpr int n = kBlock<Size>;
    using V = Vector<typename Bits<Size>::type>;
#pragma GCC unroll 1
    for (int i = 0; i < kGroup; i += n) {
#pragma GCC unroll 1
      for (int j = 0; j < kLine / Size; j += kVectorBytes / Size) {
        V v[n];
#pragma GCC unroll 16
        for (int r = 0; r < n; ++r) v[r] = load<V>(src + (i + r) * src_pitch + j * Size);
        transpose_lanes<Size>(v);
#pragma GCC unroll 16
        for (int c = 0; c < n; ++c) {
          std::byte* slot = slots + (j + c) * pitch + i * Size;
          store_lanes(slot, n * pitch, v[c]);
        }
      }
    }
  }
}

/// fill() of kTall rows, for small elements: whole lines of slots.
template <int Size>
inline constexpr int kTall = kLine / Size;
template <int Size>
MBLAS_INLINE void fill_tall(const std::byte* src, std::int64_t src_pitch, std::byte* slots,
                            std::int64_t pitch) {
#pragma GCC unroll 1
  for (int i = 0; i < kTall<Size>; i += kTileRows<Size>)
#pragma GCC unroll 1
    for (int j = 0; j < kLine / Size; j += kTileCols<Size>)
      transpose_tile<Size>(src + i * src_pitch + j * Size, src_pitch, slots + j * pitch + i * Size,
                           pitch);
}

/// The same of `cols` columns, fewer than a line has, some more of which may be read and filled.
template <int Size>
MBLAS_INLINE void fill_narrow(const std::byte* src, std::int64_t src_pitch, std::int64_t cols,
                              std::byte* slots, std::int64_t pitch) {
  constexpr int n = kBlock<Size>;
  for (std::int64_t j = 0; j < cols; j += n)
#pragma GCC unroll 1
    for (int i = 0; i < kGroup; i += n)
      transpose_square<Size, 16>(src + i * src_pitch + j * Size, src_pitch,
                                 slots + j * pitch + i * Size, pitch);
}

/// fill() of `rows` and `cols` that do not make a group; the rest of the slots gets anything.
template <int Size>
__attribute__((noinline)) void fill_part(const std::byte* src, std::int64_t src_pitch,
                                         std::int64_t rows, std::int64_t cols, std::byte* slots,
                                         std::int64_t pitch) {
  alignas(64) std::byte whole[kGroup * kLine];
  for (std::int64_t i = 0; i < rows; ++i) {
    if (cols == kLine / Size)
      __builtin_memcpy(whole + i * kLine, src + i * src_pitch, kLine);
    else
      copy_part(whole + i * kLine, src + i * src_pitch, cols * Size);
  }
  for (std::int64_t i = rows; i < kGroup; ++i) __builtin_memset(whole + i * kLine, 0, kLine);
  if (cols == kLine / Size)
    fill<Size>(whole, kLine, slots, pitch);
  else
    fill_narrow<Size>(whole, kLine, cols, slots, pitch);
}

/// Slots one after the other to consecutive addresses, for rows of the result that are short and
/// without padding.
class Appender {
 public:
  /// `lines` has kRoom bytes.
  Appender(std::byte* dst, std::byte* lines)
      : dst_(dst - line_offset(dst)), lines_(lines), skip_(line_offset(dst)), filled_(skip_) {}

  static constexpr std::int64_t kRoom = 8192;
  /// Longest slot. Slots may be read 15 bytes beyond their end.
  static constexpr std::int64_t kLongest = 512;

  void put(const Out& out, std::int64_t slot_pitch) {
    for (std::int64_t c = 0; c < out.count; ++c) {
      const std::byte* slot = out.slots + c * slot_pitch;
      for (std::int64_t b = 0; b < out.bytes; b += 16)
        __builtin_memcpy(lines_ + filled_ + b, slot + b, 16);
      filled_ += out.bytes;
      if (filled_ > kRoom - kLongest - 16) flush();
    }
  }
  void finish() {
    flush();
    copy_part(dst_ + skip_, lines_ + skip_, filled_ - skip_);
  }

 private:
  void flush() {
    std::int64_t b = 0;
    if (skip_ > 0 && filled_ >= kLine) {
      copy_part(dst_ + skip_, lines_ + skip_, kLine - skip_);
      skip_ = 0;
      b = kLine;
    }
    for (; b + kLine <= filled_; b += kLine) stream_line(dst_ + b, lines_ + b);
    dst_ += b, filled_ -= b;
    if (b > 0) __builtin_memcpy(lines_, lines_ + b, kLine);
  }

  std::byte* dst_;  // of the first of lines_
  std::byte* lines_;
  std::int64_t skip_, filled_;  // bytes at the start that are not ours, bytes in all
};

template <int Size>
void chunk(const TransposePanel& p, std::int64_t j0, std::int64_t cols, Appender* appender,
           std::int64_t long_slot) {
  using S = Shape<Size>;
  const std::byte* src = p.src + j0 * Size;
  std::byte* dst = p.dst + j0 * p.dst_pitch;
  const bool lines = !appender && p.dst_pitch % kLine == 0 && line_offset(p.dst) % Size == 0;
  // Where all rows begin alike, a first shorter run makes the others begin on lines.
  const std::int64_t skip =
      std::int64_t(reinterpret_cast<std::uintptr_t>(p.dst) % std::uintptr_t(S::kRun)) / Size;
  const std::int64_t run_rows = appender ? p.rows : S::kRunRows;
  const std::int64_t first_rows = lines ? run_rows - skip : run_rows;
  const std::int64_t slot_pitch = appender ? long_slot : S::kSlot;
  // Rows that are read side by side. Where a power of two separates them, lines of more than 32
  // that are fetched ahead of their use displace one another in the second-level cache.
  const bool fetches = follows_few_rows();
  const std::int64_t power = fetches ? 4096 : 8192;
  const std::int64_t strip = kGroup * (Size <= 2   ? p.src_pitch % power == 0 ? 2 : 4
                                       : Size == 4 ? 2
                                                   : 1);
  // Slots that are written as soon as they are filled need not outlive their tile.
  const bool keep = run_rows > strip;
  std::byte* const carry = keep || lines ? nullptr : p.buffer;
  std::byte* const slots = p.buffer + kLine + (carry ? 4096 / Size * kLine : 0);
  const std::int64_t ahead = smaller(8, cols / S::kTile / 2) * S::kTile;
  // Rows without gaps: what is read beyond the end of one belongs to the next.
  const std::int64_t overread =
      p.src_pitch == p.cols * Size ? p.rows - (kLine + p.src_pitch - 1) / p.src_pitch : 0;

  for (std::int64_t i0 = 0, i1; i0 < p.rows; i0 = i1) {
    i1 = smaller(i0 == 0 ? first_rows : i0 + run_rows, p.rows);
    const bool first = i0 == 0, last = i1 == p.rows;
    const bool whole = lines && line_offset(dst + i0 * Size) == 0 && (i1 - i0) * Size % kLine == 0;
    for (std::int64_t g0 = i0; g0 < i1; g0 += strip) {
      const std::int64_t g1 = smaller(g0 + strip, i1);
      Out out{};
      const auto put = [&]() __attribute__((always_inline)) {
        if (appender)
          appender->put(out, slot_pitch);
        else if (whole)
          put_lines(out, slot_pitch, p.dst_pitch);
        else
          put_any(out, slot_pitch, p.dst_pitch, first, last);
      };
      for (std::int64_t j = 0; j < cols; j += S::kTile) {
        const std::int64_t width = smaller(S::kTile, cols - j);
        std::byte* to = slots + (keep ? j : j & S::kTile) * slot_pitch;
        if (carry && !first)
          for (std::int64_t c = 0; c < width; ++c)
            __builtin_memcpy(to + c * slot_pitch - kLine, carry + (j + c) * kLine, kLine);
        for (std::int64_t i = g0; i < g1; i += kGroup) {
          const std::byte* from = src + i * p.src_pitch + j * Size;
          std::byte* piece = to + (i - i0) * Size;
          if (Size <= 2 && i + kTall<Size> <= g1 && p.cols - j0 - j >= S::kTile) {
            fill_tall<Size>(from, p.src_pitch, piece, slot_pitch);
            i += kTall<Size> - kGroup;
            continue;
          }
          if (i + kGroup <= g1 && (p.cols - j0 - j >= S::kTile || i + kGroup <= overread)) {
            if (width * Size > 32)
              fill<Size>(from, p.src_pitch, piece, slot_pitch);
            else
              fill_narrow<Size>(from, p.src_pitch, width, piece, slot_pitch);
          } else {
            fill_part<Size>(from, p.src_pitch, smaller(kGroup, g1 - i), width, piece, slot_pitch);
          }
        }
        if (g1 == i1) {  // written one tile later, when what was stored to slots can be loaded
          put();
          out = {to, dst + j * p.dst_pitch + i0 * Size, carry ? carry + j * kLine : nullptr, width,
                 (i1 - i0) * Size};
        }
        if (fetches && ahead > 0 && j + ahead < cols)
          for (std::int64_t i = g0; i < g1; ++i)
            __builtin_prefetch(src + i * p.src_pitch + (j + ahead) * Size, 0, 2);
        // The first lines of the next strip, which no prefetcher knows of.
        if (const std::int64_t line = j - (cols - ahead); line >= 0) {
          const std::int64_t end = smaller(g1 + strip, p.rows);
          for (std::int64_t i = g1; i < end; ++i)
            __builtin_prefetch(src + i * p.src_pitch + line * Size, 0, 2);
        }
      }
      put();
    }
  }
}

template <int Size>
void transpose_one(const TransposePanel& p) {
  using S = Shape<Size>;
  const std::int64_t row_bytes = p.rows * Size;
  const bool append = p.dst_pitch == row_bytes && row_bytes <= Appender::kLongest;
  Appender appender(p.dst, p.buffer);
  TransposePanel rest = p;
  std::int64_t slot = S::kSlot, most = S::kChunk;
  if (append) {
    // An odd number of lines, so that slots do not share sets of the caches.
    slot = (round_up(row_bytes + kGroup * Size + 16, kLine) / kLine | 1) * kLine;
    rest.buffer += Appender::kRoom;
    const std::int64_t slots = (kStreamBuffer - Appender::kRoom - kLine) / slot;
    most = smaller(4096 / Size, slots / S::kTile * S::kTile);
  }
  // Loads that do not cross lines, where the rows begin alike.
  const std::int64_t offset = line_offset(p.src);
  std::int64_t j = 0;
  if (p.src_pitch % kLine == 0 && offset % Size == 0 && offset > 0 && p.cols >= 8 * S::kTile) {
    j = (kLine - offset) / Size;
    chunk<Size>(rest, 0, j, append ? &appender : nullptr, slot);
  }
  for (; j < p.cols; j += most)
    chunk<Size>(rest, j, smaller(most, p.cols - j), append ? &appender : nullptr, slot);
  if (append) appender.finish();
}

/// False: not here.
template <int Size>
bool pipeline([[maybe_unused]] const TransposePanel& p) {
#if defined(__AVX512BW__)
  if constexpr (Size <= 4)
    if (follows_few_rows() && Pipeline<Size>::takes(p)) {
      Pipeline<Size>(p).run();
      return true;
    }
#endif
  return false;
}

/// A batch, whose matrices may be too small for the above.
template <int Size>
void panel(const TransposePanel& batch) {
  TransposePanel p = batch;
  const std::int64_t bytes = p.rows * p.cols * Size;
  if (bytes <= 16 << 10 && p.dst_pitch == p.rows * Size &&
      (p.count == 1 || p.dst_stride == bytes)) {
    // As many as make half of the first-level cache, written as one.
    const std::int64_t most = bytes > 0 ? (16 << 10) / bytes : 1;
    for (std::int64_t b = 0; b < p.count; b += most) {
      const std::int64_t some = smaller(most, p.count - b);
      for (std::int64_t i = 0; i < some; ++i)
        transpose_block<Size>(p.src + (b + i) * p.src_stride, p.src_pitch, p.buffer + i * bytes,
                              p.dst_pitch, p.rows, p.cols);
      stream_copy(p.dst + b * bytes, p.buffer, some * bytes);
    }
  } else {
    for (std::int64_t b = 0; b < p.count; ++b) {
      if (!pipeline<Size>(p)) transpose_one<Size>(p);
      p.src += p.src_stride;
      p.dst += p.dst_stride;
    }
  }
  stream_fence();
}

}  // namespace

constinit const TransposePanelKernel transpose_panels[5] = {
    panel<1>, panel<2>, panel<4>, panel<8>, panel<16>,
};

}  // namespace mblas::cpu::MBLAS_ISA
