// The transpose of a panel of small elements, past the caches, for CPUs with AVX-512 whose
// prefetchers follow few rows.
//
// Reading lines of many rows, turning them and writing are each limited by what can be under way at
// once, and add up where they take turns. So all goes on together, some lines at a time: between
// the steps of transposing a square, runs of the result that are complete are written, and as many
// lines are fetched of the rows that come next. Lines of a row are fetched, and written, several
// one after the other: single ones, rows a power of two apart, take three times as long to write.
// Columns are taken some hundred at a time, as each row of the result is on a page of its own.
//
// Measured on a Zen 5 EPYC, one thread, in shares of a copy of as many bytes, with this and with
// the strips of streamed_isa.cpp: 1 byte 4096×3072 0.90 and 0.52, 4096² 0.87 and 0.57, 4093×4099
// 0.62 and 0.44, 16384² 0.83 and 0.56; 2 bytes 4093×4099 0.72 and 0.60, 4096² 0.70 and 0.62, 16384²
// 0.46 and 0.43; 4 bytes 4096² 1.1 and 0.87, 8192² 0.99 and 0.83. Of 4 bytes, rows of the result
// that do not begin alike, or are shorter than 16 KiB, gain nothing; 8 bytes lose a third there,
// and gain less than 10 % elsewhere, 16 bytes lose throughout. Rows of the result shorter than a
// few runs lose.
//
// What did not help: copying rows to a buffer first, in order, and turning them from there (half
// the speed); other distances and cache levels of what is fetched; a burst of fetches, or of
// writes, for each tile instead of some for each step (1 byte 4096² 0.46 instead of 0.71).
#pragma once

#include "cpu/isa.hpp"
#include "cpu/simd.hpp"
#include "cpu/transpose/slots.hpp"
#include "cpu/transpose/stream.hpp"

#if defined(__AVX512BW__)

namespace mblas::cpu::MBLAS_ISA {
namespace {

/// The first 1 to 64.
MBLAS_INLINE __mmask64 first_bytes(std::int64_t count) { return ~__mmask64{0} >> (64 - count); }

template <int Size>
class Pipeline {
 public:
  static bool takes(const TransposePanel& p) {
    const bool gains = Size <= 2 || (alike(p) && p.dst_pitch >= 16 << 10);
    return p.rows * Size >= 1024 && p.cols * Size >= kPiece * kLine && gains;
  }

  explicit Pipeline(const TransposePanel& p)
      : p_(p),
        slots_{p.buffer + kLine, p.buffer + kLine + kTile * kSlot},
        kept_(alike(p) ? nullptr : p.buffer + 2 * kTile * kSlot),
        first_strip_(alike(p) ? kStrip - offset(p) / Size : kStrip) {}

  void run() {
    const std::int64_t parts = (p_.cols + kMostCols - 1) / kMostCols;
    const std::int64_t cols = round_up((p_.cols + parts - 1) / parts, kPiece * kTile);
    for (std::int64_t j = 0; j < p_.cols; j += cols) columns(j, smaller(cols, p_.cols - j));
    finish(0);
  }

 private:
  static constexpr std::int64_t kTile = kLine / Size;  // rows and columns of a square
  static constexpr std::int64_t kRunLines = Size == 1 ? 4 : 8, kRun = kRunLines * kLine;
  static constexpr std::int64_t kStrip = kRun / Size;  // rows
  static constexpr std::int64_t kSlot = kLine + kRun;  // a column of a strip, after what is kept
  static constexpr std::int64_t kPiece = 8;            // lines of a row
  static constexpr std::int64_t kMostCols = (Size == 1 ? 512 : 1024) / Size;
  // Lines that are fetched and written after each of a square's steps, as many as it has in all.
  static constexpr std::int64_t kTurning = kTile / 8, kMerging = kTile / 2 / kBlock<Size>;
  static_assert(kStrip % kPiece == 0 && kTurning % 2 == 0 && kMerging % 2 == 0);
  static_assert(2 * kTile * kSlot + kMostCols * kLine <= kStreamBuffer);

  /// Lines to be fetched, `lines` of a piece, of some rows one after the other.
  struct Ahead {
    const std::byte* row;
    std::int64_t pitch, rows, lines;

    MBLAS_INLINE void fetch(std::int64_t line, std::int64_t count) const {
      if (line / kPiece >= rows) return;
      const std::byte* at = row + line / kPiece * pitch;
      for (std::int64_t l = line % kPiece; l < smaller(line % kPiece + count, lines); ++l)
        __builtin_prefetch(at + l * kLine, 0, 2);
    }
  };

  static std::int64_t offset(const TransposePanel& p) {
    return std::int64_t(reinterpret_cast<std::uintptr_t>(p.dst) % std::uintptr_t(kRun));
  }
  /// Do all rows of the result begin at the same place of a line? Then a shorter first run lets the
  /// others begin on lines.
  static bool alike(const TransposePanel& p) {
    return p.dst_pitch % kLine == 0 && offset(p) % Size == 0;
  }

  void columns(std::int64_t j0, std::int64_t cols) {
    const std::byte* src = p_.src + j0 * Size;
    const std::int64_t tiles = (cols + kTile - 1) / kTile;
    for (std::int64_t i0 = 0, i1; i0 < p_.rows; i0 = i1) {
      i1 = smaller(i0 == 0 ? first_strip_ : i0 + kStrip, p_.rows);
      const bool first = i0 == 0, last = i1 == p_.rows;
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t j = t * kTile, width = smaller(kTile, cols - j);
        // The piece that comes next along these rows, or the first one of the next rows: an eighth
        // of the rows with each tile of this piece.
        const std::int64_t piece = t - t % kPiece + kPiece;
        const bool on = piece < tiles;
        const std::int64_t row = (on ? i0 : i1) + t % kPiece * (kStrip / kPiece);
        const std::int64_t end = on ? i1 : smaller(i1 + kStrip, p_.rows);
        const Ahead ahead{src + row * p_.src_pitch + (on ? piece : 0) * kLine, p_.src_pitch,
                          smaller(kStrip / kPiece, end - row), on ? tiles - piece : tiles};
        std::byte* const slots = slots_[odd_ = !odd_];
        if (kept_ && !first)
          for (std::int64_t c = 0; c < width; ++c)
            __builtin_memcpy(slots + c * kSlot - kLine, kept_ + (j + c) * kLine, kLine);
        std::int64_t line = 0;
        for (std::int64_t i = i0; i < i1; i += kTile, line += kTile) {
          const std::byte* from = src + i * p_.src_pitch + j * Size;
          std::byte* to = slots + (i - i0) * Size;
          if (i + kTile <= i1 && width == kTile)
            square<true>(from, kTile, kTile, to, ahead, line);
          else
            square<false>(from, smaller(kTile, i1 - i), width, to, ahead, line);
        }
        finish(line);
        std::byte* const dst = p_.dst + (j0 + j) * p_.dst_pitch + i0 * Size;
        out_ = {slots, dst, nullptr, width, (i1 - i0) * Size};
        first_ = first, last_ = last;
        lines_ = out_.bytes == kRun && (!kept_ || !(first || last)) ? width * kRunLines : 0;
        if (kept_ && !last)
          for (std::int64_t c = 0; c < width; ++c)
            __builtin_memcpy(kept_ + (j + c) * kLine, slots + c * kSlot + out_.bytes - kLine,
                             kLine);
      }
    }
  }

  /// Columns of a square of lines, some of which may not exist, to slots.
  template <bool Whole>
  MBLAS_INLINE void square(const std::byte* src, std::int64_t rows, std::int64_t cols,
                           std::byte* slots, const Ahead& ahead, std::int64_t line) {
    constexpr int n = kBlock<Size>;
    using V = Vector<typename Bits<Size>::type>;
    using Q = Vector<std::uint64_t>;
    const __mmask64 in = first_bytes(cols * Size), out = first_bytes(rows * Size);
    alignas(64) std::byte turned[4 * n * kLine];  // line 4 c + g: rows g n … of columns c, n + c, …
#pragma GCC unroll 1
    for (int g = 0; g < 4; ++g) {
      V v[n];
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) {
        const std::byte* row = src + (g * n + i) * p_.src_pitch;
        if constexpr (Whole)
          v[i] = load<V>(row);
        else
          v[i] = __builtin_bit_cast(V, _mm512_maskz_loadu_epi8(g * n + i < rows ? in : 0, row));
      }
      transpose_lanes<Size>(v);
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) store(turned + (4 * i + g) * kLine, v[i]);
      go_on(ahead, line + g * kTurning, kTurning);
    }
#pragma GCC unroll 1
    for (int i = 0; i < n; ++i) {
      const auto group = [&](int g) __attribute__((always_inline)) {
        return load<Q>(turned + (4 * i + g) * kLine);
      };
      const auto column = [&](int l, const Q& x) __attribute__((always_inline)) {
        std::byte* slot = slots + (l * n + i) * kSlot;
        if constexpr (Whole)
          store(slot, x);
        else
          _mm512_mask_storeu_epi8(slot, out, __builtin_bit_cast(__m512i, x));
      };
      regroup_lanes(group(0), group(1), group(2), group(3), column);
      go_on(ahead, line + kTile / 2 + i * kMerging, kMerging);
    }
  }

  /// What else goes on meanwhile: `count` lines from number `line` on are fetched and written.
  MBLAS_INLINE void go_on(const Ahead& ahead, std::int64_t line, std::int64_t count) const {
    ahead.fetch(line, count);
    put(line, count);
  }
  /// Lines, of those that put() may write, in pairs.
  MBLAS_INLINE void put(std::int64_t line, std::int64_t count) const {
    for (std::int64_t l = line; l < smaller(line + count, lines_); l += 2) {
      std::byte* dst = out_.dst + l / kRunLines * p_.dst_pitch;
      const std::int64_t at = l % kRunLines * kLine - line_offset(dst);
      const std::byte* slot = out_.slots + l / kRunLines * kSlot;
      stream_line(dst + at, slot + at);
      stream_line(dst + at + kLine, slot + at + kLine);
    }
  }
  /// Writes what is left of a tile after its first lines.
  void finish(std::int64_t line) const {
    if (lines_ > 0)
      put(line, lines_);
    else
      put_any(out_, kSlot, p_.dst_pitch, first_, last_);
  }

  const TransposePanel& p_;
  std::byte* const slots_[2];
  std::byte* const kept_;  // the last line of each column of the strip before; null: not needed
  const std::int64_t first_strip_;  // rows
  bool odd_ = false;
  // The tile before: what of the result it is, and the lines of it that put() may write, which are
  // all if its runs are whole.
  Out out_{};
  bool first_ = true, last_ = true;
  std::int64_t lines_ = 0;
};

}  // namespace
}  // namespace mblas::cpu::MBLAS_ISA

#endif
