#include "model/blocks/shape_size.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace fuseline {

namespace {

constexpr std::size_t kMostTerms = 64;  // of a polynomial that anybody would read

std::optional<std::int64_t> checked(std::int64_t a, std::int64_t b, char sign) {
  std::int64_t out = 0;
  const bool overflow = sign == '+'   ? __builtin_add_overflow(a, b, &out)
                        : sign == '-' ? __builtin_sub_overflow(a, b, &out)
                                      : __builtin_mul_overflow(a, b, &out);
  if (overflow) return std::nullopt;
  return out;
}

std::optional<Polynomial> sum(const Polynomial& a, const Polynomial& b, std::int64_t sign) {
  Polynomial out = a;
  for (const auto& [letters, count] : b) {
    const auto signed_count = checked(count, sign, '*');
    if (!signed_count) return std::nullopt;
    const auto total = checked(out[letters], *signed_count, '+');
    if (!total) return std::nullopt;
    out[letters] = *total;
    if (*total == 0) out.erase(letters);
  }
  if (out.size() > kMostTerms) return std::nullopt;
  return out;
}

std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
  Polynomial out;
  if (a.size() * b.size() > kMostTerms) return std::nullopt;
  for (const auto& [x, m] : a) {
    for (const auto& [y, n] : b) {
      Monomial letters = x;
      letters.insert(letters.end(), y.begin(), y.end());
      if (letters.size() > kMostTerms) return std::nullopt;
      std::sort(letters.begin(), letters.end());
      const auto count = checked(m, n, '*');
      if (!count) return std::nullopt;
      const auto all = sum(out, {{letters, *count}}, 1);
      if (!all) return std::nullopt;
      out = *all;
    }
  }
  return out;
}

std::string words_of(const Monomial& letters, std::int64_t count) {
  const std::string text = fmt::format("{}", fmt::join(letters, "·"));
  if (letters.empty()) return std::to_string(count);
  return count == 1 ? text : std::to_string(count) + text;
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

ShapeSize::ShapeSize(std::int64_t number)
    : value_(number), written_(std::to_string(number)), polynomial_(Polynomial{}) {
  if (number != 0) (*polynomial_)[{}] = number;
  if (number < 0) binding_ = Binding::sum;
}

ShapeSize::ShapeSize(const std::string& letter, std::int64_t value)
    : value_(value), written_(letter), polynomial_(Polynomial{{{letter}, 1}}) {}

std::string ShapeSize::within(Binding binding) const {
  return binding_ > binding ? "(" + written_ + ")" : written_;
}

std::optional<ShapeSize> ShapeSize::add(const ShapeSize& a, const ShapeSize& b) {
  const auto value = checked(a.value_, b.value_, '+');
  if (!value) return std::nullopt;
  ShapeSize out;
  out.value_ = *value;
  out.written_ = a.written_ + "+" + b.written_;
  out.binding_ = Binding::sum;
  out.polynomial_ =
      a.polynomial_ && b.polynomial_ ? sum(*a.polynomial_, *b.polynomial_, 1) : std::nullopt;
  return out;
}

std::optional<ShapeSize> ShapeSize::subtract(const ShapeSize& a, const ShapeSize& b) {
  const auto value = checked(a.value_, b.value_, '-');
  if (!value) return std::nullopt;
  ShapeSize out;
  out.value_ = *value;
  out.written_ = a.written_ + "-" + b.within(Binding::product);
  out.binding_ = Binding::sum;
  out.polynomial_ =
      a.polynomial_ && b.polynomial_ ? sum(*a.polynomial_, *b.polynomial_, -1) : std::nullopt;
  return out;
}

std::optional<ShapeSize> ShapeSize::multiply(const ShapeSize& a, const ShapeSize& b) {
  const auto value = checked(a.value_, b.value_, '*');
  if (!value) return std::nullopt;
  ShapeSize out;
  out.value_ = *value;
  // "2H" and "2(H+1)", but "2·3" and "H·d".
  const std::string right = b.within(Binding::product);
  const bool joined = is_number(a.written_) && (right[0] < '0' || right[0] > '9');
  out.written_ = a.within(Binding::product) + (joined ? "" : "·") + right;
  out.binding_ = Binding::product;
  out.polynomial_ =
      a.polynomial_ && b.polynomial_ ? product(*a.polynomial_, *b.polynomial_) : std::nullopt;
  return out;
}

std::optional<ShapeSize> ShapeSize::divide(const ShapeSize& a, const ShapeSize& b) {
  if (b.value_ == 0 || a.value_ % b.value_ != 0) return std::nullopt;
  if (a.value_ == std::numeric_limits<std::int64_t>::min() && b.value_ == -1) return std::nullopt;
  ShapeSize out;
  out.value_ = a.value_ / b.value_;
  out.written_ = a.within(Binding::product) + "/" + b.within(Binding::atom);
  out.binding_ = Binding::product;
  out.polynomial_ = std::nullopt;
  // A half of 2F is F.
  if (!a.polynomial_ || !is_number(b.written_)) return out;
  Polynomial quotient;
  for (const auto& [letters, count] : *a.polynomial_) {
    if (count % b.value_ != 0) return out;
    quotient[letters] = count / b.value_;
  }
  out.polynomial_ = quotient;
  if (quotient.size() == 1)
    out.written_ = words_of(quotient.begin()->first, quotient.begin()->second);
  return out;
}

ShapeSize ShapeSize::in_words(const std::string& words) const {
  ShapeSize out = *this;
  out.written_ = words;
  out.binding_ = Binding::atom;
  return out;
}

void ShapeWords::equal(const std::string& letter, const std::string& same) {
  const auto found = equal_.find(same);
  equal_[letter] = found == equal_.end() ? same : found->second;
}

void ShapeWords::product(const std::string& letter, const std::string& times,
                         const std::string& same) {
  products_.push_back({letter, times, same});
}

Monomial ShapeWords::reduced(Monomial letters) const {
  for (std::string& letter : letters) {
    const auto found = equal_.find(letter);
    if (found != equal_.end()) letter = found->second;
  }
  for (const Product& p : products_) {
    const auto a = std::find(letters.begin(), letters.end(), p.letter);
    if (a == letters.end()) continue;
    const auto b = std::find(letters.begin(), letters.end(), p.times);
    if (b == letters.end() || a == b) continue;
    *a = p.same;
    letters.erase(b);
  }
  std::sort(letters.begin(), letters.end());
  return letters;
}

std::string ShapeWords::text(const ShapeSize& size) const {
  if (!size.polynomial()) return size.written();
  Polynomial out;
  for (const auto& [letters, count] : *size.polynomial()) {
    const Monomial words = reduced(letters);
    out[words] += count;
    if (out[words] == 0) out.erase(words);
  }
  if (out.size() != 1 || *size.polynomial() == out) return size.written();
  return words_of(out.begin()->first, out.begin()->second);
}

}  // namespace fuseline
