// Just enough JSON to write results.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace mblas::bench {

/// A text as a JSON string.
std::string json_string(std::string_view text);
/// A number; null where it is not finite.
std::string json_number(double v);

/// An object under construction; members keep their order.
class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string_view v) { return raw(key, json_string(v)); }
  JsonObject& add(std::string_view key, const char* v) { return raw(key, json_string(v)); }
  JsonObject& add(std::string_view key, bool v) { return raw(key, v ? "true" : "false"); }
  JsonObject& add(std::string_view key, double v) { return raw(key, json_number(v)); }
  JsonObject& add(std::string_view key, std::integral auto v) {
    return raw(key, std::to_string(v));
  }
  /// A member whose value is JSON already.
  JsonObject& raw(std::string_view key, std::string_view json);
  /// One member a line, indented by `indent`; on one line where that is negative.
  std::string text(int indent = -1) const;

 private:
  std::vector<std::string> members_;
};

/// An array of JSON values, one a line, indented by `indent`.
std::string json_array(const std::vector<std::string>& values, int indent);

}  // namespace mblas::bench
