#include "link.hpp"

#include <algorithm>

#include "buffer.hpp"

namespace mblas::bench {

Link::Link(Backend& backend, int device, const cases::Case& c, std::span<cases::Run> runs)
    : up_(backend.make_queue({.device = device, .own_stream = true})),
      down_(backend.make_queue({.device = device, .own_stream = true})) {
  const auto written = std::int64_t(cases::bytes_written(c));
  const auto read = std::int64_t(cases::bytes(c)) - written;
  memory_ = up_->allocate(std::size_t(read + written));
  for (cases::Run& run : runs) {
    calls_.push_back([this, operands = run.operands(), read, written] {
      auto* to = static_cast<std::byte*>(memory_);
      std::int64_t left = read;
      for (cases::Placed& operand : operands) {
        const auto bytes = operand.fetch().bytes();
        const std::int64_t count = std::min(left, std::int64_t(bytes.size()));
        if (count > 0) cases::copy_bytes(*up_, to, bytes.data(), count, CopyKind::HostToDevice);
        to += count;
        left -= count;
      }
      cases::copy_bytes(*down_, operands.back().at(), to, written, CopyKind::DeviceToHost);
      up_->synchronize();
      down_->synchronize();
    });
  }
}

Link::~Link() { up_->deallocate(memory_); }

}  // namespace mblas::bench
