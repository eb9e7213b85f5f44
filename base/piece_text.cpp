#include "base/piece_text.h"

#include <bit>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline {

namespace {

template <class Number>
Number number_of(std::string_view text, int base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  FUSELINE_ASSERT(error == std::errc() && end == text.data() + text.size(),
                  "a piece of work holds no number where one belongs");
  return value;
}

}  // namespace

PieceWriter& PieceWriter::real(double value) { return bits(std::bit_cast<std::uint64_t>(value)); }

PieceWriter& PieceWriter::whole(std::int64_t value) {
  text_ += fmt::format("{} ", value);
  return *this;
}

PieceWriter& PieceWriter::bits(std::uint64_t value) {
  text_ += fmt::format("{:x} ", value);
  return *this;
}

PieceWriter& PieceWriter::word(std::string_view text) {
  text_ += fmt::format("{} {} ", text.size(), text);
  return *this;
}

std::string_view PieceReader::next() {
  const std::size_t end = rest_.find(' ');
  FUSELINE_ASSERT(end != std::string_view::npos, "a piece of work ends too early");
  const std::string_view one = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  return one;
}

double PieceReader::real() { return std::bit_cast<double>(bits()); }
std::int64_t PieceReader::whole() { return number_of<std::int64_t>(next(), 10); }
std::uint64_t PieceReader::bits() { return number_of<std::uint64_t>(next(), 16); }

std::string PieceReader::word() {
  const auto size = static_cast<std::size_t>(whole());
  FUSELINE_ASSERT(size < rest_.size() && rest_[size] == ' ', "a piece of work ends too early");
  std::string text(rest_.substr(0, size));
  rest_.remove_prefix(size + 1);
  return text;
}

}  // namespace fuseline
