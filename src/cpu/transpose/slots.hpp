// Slots: columns of a panel, gathered to be written past the caches.
#pragma once

#include "cpu/transpose/stream.hpp"

namespace mblas::cpu::MBLAS_ISA {
namespace {

/// Slots to be written.
struct Out {
  std::byte* slots;
  std::byte* dst;
  std::byte* carry;           // lines that the slots' rows left incomplete; null: before each slot
  std::int64_t count, bytes;  // slots, and bytes of each
};

/// Writes slots that begin and end on lines.
inline void put_lines(const Out& out, std::int64_t slot_pitch, std::int64_t dst_pitch) {
  for (std::int64_t c = 0; c < out.count; ++c) {
    const std::byte* slot = out.slots + c * slot_pitch;
    std::byte* dst = out.dst + c * dst_pitch;
    for (std::int64_t b = 0; b < out.bytes; b += kLine) stream_line(dst + b, slot + b);
  }
}

/// Writes the lines that slots complete, and the incomplete ones at the ends of a row.
inline void put_any(const Out& out, std::int64_t slot_pitch, std::int64_t dst_pitch, bool first,
                    bool last) {
  for (std::int64_t c = 0; c < out.count; ++c) {
    std::byte* slot = out.slots + c * slot_pitch;
    std::byte* dst = out.dst + c * dst_pitch;
    const std::int64_t before = line_offset(dst);
    std::int64_t b = first ? 0 : -before;
    if (first && before > 0) {
      b = kLine - before;
      copy_part(dst, slot, smaller(b, out.bytes));
    }
    for (; b + kLine <= out.bytes; b += kLine) stream_line(dst + b, slot + b);
    if (last) {
      if (b < out.bytes) copy_part(dst + b, slot + b, out.bytes - b);
    } else {
      // Of short slots the two overlap.
      __builtin_memmove(out.carry ? out.carry + c * kLine : slot - kLine, slot + out.bytes - kLine,
                        kLine);
    }
  }
}

}  // namespace
}  // namespace mblas::cpu::MBLAS_ISA
