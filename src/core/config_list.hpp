// A kernel's configurations: what Args::config numbers, and what Kernel::configs lists.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mblas {

template <class Config>
class ConfigList {
 public:
  ConfigList() = default;
  ConfigList(ConfigList&&) = default;  // a copy's names would be those of the original

  void add(const Config& config, std::string name) {
    configs_.push_back(config);
    names_.push_back(texts_.emplace_back(std::move(name)));
  }
  const Config& operator[](int i) const { return configs_[std::size_t(i)]; }
  std::span<const std::string_view> names() const { return names_; }

 private:
  std::vector<Config> configs_;
  std::deque<std::string> texts_;  // whose elements stay where they are
  std::vector<std::string_view> names_;
};

}  // namespace mblas
