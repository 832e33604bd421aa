#include "case_flags.hpp"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>
#include <type_traits>

namespace mblas::bench {
namespace {

using cases::Case;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t end; (end = text.find(separator)) != text.npos; text.remove_prefix(end + 1))
    parts.emplace_back(text.substr(0, end));
  parts.emplace_back(text);
  return parts;
}

/// lo:hi:step, lo:hi:*factor or a value.
void add_range(const std::string& text, std::vector<std::int64_t>& values) {
  const std::vector<std::string> parts = split(text, ':');
  std::int64_t low, high, step = 1;
  cases::parse(parts[0], low);
  if (parts.size() == 1) return values.push_back(low);
  if (parts.size() > 3)
    throw std::invalid_argument("a range is lo:hi, lo:hi:step or lo:hi:*factor");
  cases::parse(parts[1], high);
  const bool geometric = parts.size() == 3 && parts[2].starts_with('*');
  if (parts.size() == 3) cases::parse(parts[2].substr(geometric), step);
  if (low > high || (geometric ? step < 2 || low < 1 : step < 1))
    throw std::invalid_argument("the range '" + text + "' does not ascend");
  for (std::int64_t v = low; v <= high; v = geometric ? v * step : v + step) values.push_back(v);
}

template <class T>
std::vector<T> values_of(const std::string& text) {
  std::vector<T> values;
  if constexpr (std::is_same_v<T, Scalar>) {
    cases::parse(text, values.emplace_back());
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    for (const std::string& part : split(text, ',')) add_range(part, values);
  } else {
    for (const std::string& part : split(text, ',')) {
      T value{};
      cases::parse(part, value);
      values.push_back(value);
    }
  }
  return values;
}

/// Sizes that no call could be made with, nor operands be laid out for.
template <class C>
void check_ranges(const C& c) {
  C::fields(c, [](std::string_view flag, const auto& value, std::string_view) {
    if constexpr (std::is_same_v<decltype(value), const std::int64_t&>) {
      const std::int64_t least = flag.starts_with("--stride") ? cases::kPacked : 0;
      if (value < least)
        throw std::invalid_argument(fmt::format("{}: {} is negative", flag, value));
    }
  });
}

template <class C>
std::vector<Case> expand_case(const C& base, const FlagTexts& flags) {
  std::vector<C> combinations{base};
  C::fields(base, [&]<class T>(std::string_view flag, const T&, std::string_view) {
    const auto given = flags.find(flag);
    if (given == flags.end()) return;
    std::vector<C> next;
    try {
      for (const C& c : combinations) {
        const bool same_as_m = given->second == "m" && (flag == "-n" || flag == "-k");
        const std::vector<T> values = values_of<T>(same_as_m ? cases::to_text(c.m) : given->second);
        for (const T& value : values) {
          C::fields(next.emplace_back(c), [&]<class U>(std::string_view name, U& member, auto) {
            if constexpr (std::is_same_v<T, U>)
              if (name == flag) member = value;
          });
        }
      }
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(fmt::format("{}: {}", flag, e.what()));
    }
    combinations = std::move(next);
  });
  for (C& c : combinations) {
    if constexpr (requires { c.out; }) {
      if (!flags.contains("--out")) c.out = c.in == DType::i8 ? DType::i32 : c.in;
    }
    check_ranges(c);
  }
  return {combinations.begin(), combinations.end()};
}

}  // namespace

std::vector<Case> expand(std::string_view op, const FlagTexts& flags) {
  return std::visit([&](const auto& base) { return expand_case(base, flags); },
                    cases::make_case(op));
}

std::vector<Case> expand_line(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string op, word, flag;
  words >> op;
  FlagTexts flags;
  while (words >> word) {
    const bool is_flag = word[0] == '-' && word.size() > 1 && !std::isdigit(word[1]);
    if (!is_flag) {
      flags[flag] = word;
      continue;
    }
    const std::size_t equals = word.find('=');
    flag = word.substr(0, equals);
    flags[flag] = equals == word.npos ? "true" : word.substr(equals + 1);
  }
  return expand(op, flags);
}

}  // namespace mblas::bench
