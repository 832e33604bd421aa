#include "json.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mblas::bench {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", int(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string json_number(double v) { return std::isfinite(v) ? fmt::format("{}", v) : "null"; }

JsonObject& JsonObject::raw(std::string_view key, std::string_view json) {
  members_.push_back(fmt::format("{}: {}", json_string(key), json));
  return *this;
}

std::string JsonObject::text(int indent) const {
  if (indent < 0) return fmt::format("{{{}}}", fmt::join(members_, ", "));
  const std::string margin(std::size_t(indent), ' ');
  return fmt::format("{{\n{0}  {1}\n{0}}}", margin,
                     fmt::join(members_, fmt::format(",\n{}  ", margin)));
}

std::string json_array(const std::vector<std::string>& values, int indent) {
  const std::string margin(std::size_t(indent), ' ');
  return values.empty() ? "[]"
                        : fmt::format("[\n{0}  {1}\n{0}]", margin,
                                      fmt::join(values, fmt::format(",\n{}  ", margin)));
}

}  // namespace mblas::bench
