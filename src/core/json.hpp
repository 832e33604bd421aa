// Reading JSON: as much as the tune file needs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mblas {

struct Json {
  enum class Kind { Null, Bool, Number, String, Array, Object } kind = Kind::Null;
  bool boolean = false;
  double number = 0;
  std::string text;
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;

  // Elsewhere: here, before the class is complete, a pair of it cannot be asked about it.
  Json();
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  /// The member of that name; null where there is none.
  const Json* find(std::string_view name) const;
};

/// std::invalid_argument says in which line the text stops being JSON.
Json parse_json(std::string_view text);

}  // namespace mblas
