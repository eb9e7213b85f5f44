// Numbers and words of one piece of work as a text that is read back to the bit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace fuseline {

class PieceWriter {
 public:
  PieceWriter& real(double value);  // infinite ones and those that are no number too
  PieceWriter& whole(std::int64_t value);
  PieceWriter& bits(std::uint64_t value);
  PieceWriter& flag(bool value) { return whole(value ? 1 : 0); }
  PieceWriter& word(std::string_view text);  // whatever is in it
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

// InternalError: there is something else than what is asked for.
class PieceReader {
 public:
  // `text` must outlive it.
  explicit PieceReader(std::string_view text) : rest_(text) {}

  double real();
  std::int64_t whole();
  std::uint64_t bits();
  bool flag() { return whole() != 0; }
  std::string word();
  [[nodiscard]] bool more() const { return !rest_.empty(); }

 private:
  std::string_view next();

  std::string_view rest_;
};

}  // namespace fuseline
