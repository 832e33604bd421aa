// Choices that kernels make by models of their time, kept for the next call of the same shape.
#pragma once

#include <array>
#include <cstddef>

#include "mblas/backend.hpp"

namespace mblas::cuda {

/// Bytes a second of the device's memory; an H200's where it is not known.
inline double memory_rate_of(const DeviceInfo& device) {
  constexpr double kH200 = 4.9e12;
  return device.memory_rate > 0 ? device.memory_rate : kH200;
}

/// The newest few results of a function, one memo for each thread: `thread_local`.
template <class Key, class Value>
class Memo {
 public:
  /// That of `key`, which `f` computes where it is not among them.
  template <class F>
  const Value& operator()(const Key& key, F&& f) {
    for (std::size_t i = 0; i < count_; ++i)
      if (entries_[i].key == key) return entries_[i].value;
    const std::size_t to = next_++ % entries_.size();
    entries_[to] = {key, f()};
    if (count_ < entries_.size()) ++count_;
    return entries_[to].value;
  }

 private:
  struct Entry {
    Key key;
    Value value;
  };
  std::array<Entry, 16> entries_ = {};
  std::size_t count_ = 0, next_ = 0;
};

}  // namespace mblas::cuda
