#include "core/json.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <stdexcept>

namespace mblas {
namespace {

constexpr int kMostDepth = 32;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json whole() {
    Json value = parse(0);
    blanks();
    if (at_ < text_.size()) fail("something after the end");
    return value;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, at_), '\n');
    throw std::invalid_argument("line " + std::to_string(line) + ": " + what);
  }
  void blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    blanks();
    if (next() != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Json parse(int depth) {
    if (depth > kMostDepth) fail("nested too deeply");
    blanks();
    Json value;
    if (take('{')) {
      value.kind = Json::Kind::Object;
      if (take('}')) return value;
      do {
        blanks();
        std::string name = string();
        if (!take(':')) fail("':' is missing");
        value.members.emplace_back(std::move(name), parse(depth + 1));
      } while (take(','));
      if (!take('}')) fail("'}' is missing");
    } else if (take('[')) {
      value.kind = Json::Kind::Array;
      if (take(']')) return value;
      do value.items.push_back(parse(depth + 1));
      while (take(','));
      if (!take(']')) fail("']' is missing");
    } else if (next() == '"') {
      value.kind = Json::Kind::String;
      value.text = string();
    } else if (take_word("true") || take_word("false")) {
      value.kind = Json::Kind::Bool;
      value.boolean = text_[at_ - 2] == 'u';
    } else if (!take_word("null")) {
      value.kind = Json::Kind::Number;
      const char* const from = text_.data() + at_;
      const auto [end, error] = std::from_chars(from, text_.data() + text_.size(), value.number);
      if (error != std::errc()) fail("a value is missing");
      at_ += std::size_t(end - from);
    }
    return value;
  }

  std::string string() {
    if (next() != '"') fail("'\"' is missing");
    ++at_;
    std::string out;
    while (next() != '"') {
      if (at_ >= text_.size()) fail("a string does not end");
      const char c = text_[at_++];
      if (c == '\n') fail("a string does not end");
      out += c == '\\' ? escape() : c;
    }
    ++at_;
    return out;
  }

  char escape() {
    const char c = next();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        return c;
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'u': {  // of control characters only: everything else is written as it is
        unsigned code = 0;
        const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4 || code > 0x7f)
          fail("an escape that is not known");
        at_ += 4;
        return char(code);
      }
      default:
        fail("an escape that is not known");
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Json::Json() = default;
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

const Json* Json::find(std::string_view name) const {
  for (const auto& [key, value] : members)
    if (key == name) return &value;
  return nullptr;
}

Json parse_json(std::string_view text) { return Parser(text).whole(); }

}  // namespace mblas
