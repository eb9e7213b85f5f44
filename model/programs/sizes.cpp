#include "model/programs/sizes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <vector>

#include "base/error.h"

namespace fuseline {

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 40;
constexpr int kDeepest = 50;

[[noreturn]] void too_large(const TokenCursor& cursor, Position at) {
  cursor.fail(at, {.message = "the size is out of range",
                   .allowed = fmt::format("a whole number from 0 to {}", kLargest)});
}

}  // namespace

std::int64_t Sizes::read(TokenCursor& cursor) const { return sum(cursor, false, 0); }

std::int64_t Sizes::sum(TokenCursor& cursor, bool up, int depth) const {
  const Position at = cursor.here();
  if (depth > kDeepest) cursor.fail(at, {.message = "too many brackets within each other"});
  std::int64_t value = product(cursor, up, depth);
  while (cursor.is("+") || cursor.is("-")) {
    const bool plus = cursor.next().text == "+";
    const std::int64_t other = product(cursor, up, depth);
    value = plus ? value + other : value - other;
    if (value < 0 || value > kLargest) too_large(cursor, at);
  }
  return value;
}

std::int64_t Sizes::product(TokenCursor& cursor, bool up, int depth) const {
  const Position at = cursor.here();
  std::int64_t value = factor(cursor, depth);
  for (;;) {
    if (cursor.take("/")) {
      const std::int64_t by = factor(cursor, depth);
      if (by == 0 || (!up && value % by != 0))
        cursor.fail(at, {.message = fmt::format("{} / {} is no whole number", value, by),
                         .allowed = "a divisor, or ⌈a/b⌉"});
      value = (value + by - 1) / by;
      continue;
    }
    const bool sign = cursor.take("·") || cursor.take("*");
    // "4095:4096 of every 4096": a word behind a size, and no factor.
    if (!sign && cursor.is_name("of")) return value;
    if (!sign && cursor.kind() != TokenKind::name && cursor.kind() != TokenKind::number &&
        !cursor.is("(") && !cursor.is("⌈"))
      return value;
    const std::int64_t other = factor(cursor, depth);
    if (other != 0 && value > kLargest / other) too_large(cursor, at);
    value *= other;
  }
}

std::int64_t Sizes::factor(TokenCursor& cursor, int depth) const {
  const Position at = cursor.here();
  if (cursor.take("(")) {
    const std::int64_t value = sum(cursor, false, depth + 1);
    cursor.need(")");
    return value;
  }
  if (cursor.take("⌈")) {
    const std::int64_t value = sum(cursor, true, depth + 1);
    cursor.need("⌉");
    return value;
  }
  if (cursor.kind() == TokenKind::number) {
    const std::string_view text = cursor.next().text;
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > kLargest)
      too_large(cursor, at);
    return value;
  }
  if (cursor.kind() != TokenKind::name) cursor.expected("a size: a number or a letter");
  const std::string letter(cursor.next().text);
  const auto found = sizes_.find(letter);
  if (found != sizes_.end()) return found->second;
  std::vector<std::string> letters;
  for (const auto& [name, size] : sizes_) letters.push_back(name);
  cursor.fail(at, {.value = letter,
                   .message = "has no size: no line \"size\" gives it one",
                   .allowed = letters.empty() ? std::string("a number")
                                              : fmt::format("{}", fmt::join(letters, ", ")),
                   .nearest = nearest_name(letter, letters)});
}

bool Sizes::known(const TokenCursor& cursor) const {
  for (std::size_t i = 0;; ++i) {
    const Token& t = cursor.token(i);
    if (t.kind == TokenKind::name) {
      if (!sizes_.contains(std::string(t.text))) return false;
      continue;
    }
    if (t.kind != TokenKind::number && t.kind != TokenKind::sign) return true;
    if (t.text == "," || t.text == "]" || t.text == ":") return true;
  }
}

}  // namespace fuseline
