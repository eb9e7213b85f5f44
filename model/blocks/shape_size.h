// A size with the words it was written in: 12,288 that reads "3D". Shapes in plans and reports show
// the words.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

// A sum of products of letters: {["H", "d"]: 1, ["Hkv", "d"]: 2} is H·d + 2Hkv·d.
using Monomial = std::vector<std::string>;  // sorted letters
using Polynomial = std::map<Monomial, std::int64_t>;

// Arithmetic that leaves 64 bits, a division that is not whole, a division by zero: no result.
class ShapeSize {
 public:
  ShapeSize() = default;
  explicit ShapeSize(std::int64_t number);
  ShapeSize(const std::string& letter, std::int64_t value);

  [[nodiscard]] std::int64_t value() const { return value_; }
  // As it was written: "(H+2Hkv)·d".
  [[nodiscard]] const std::string& written() const { return written_; }
  [[nodiscard]] const std::optional<Polynomial>& polynomial() const { return polynomial_; }

  static std::optional<ShapeSize> add(const ShapeSize& a, const ShapeSize& b);
  static std::optional<ShapeSize> subtract(const ShapeSize& a, const ShapeSize& b);
  static std::optional<ShapeSize> multiply(const ShapeSize& a, const ShapeSize& b);
  static std::optional<ShapeSize> divide(const ShapeSize& a, const ShapeSize& b);
  // The same number in other words: what a part calls D may be what its block calls F.
  [[nodiscard]] ShapeSize in_words(const std::string& words) const;

 private:
  enum class Binding : std::uint8_t { atom, product, sum };
  [[nodiscard]] std::string within(Binding binding) const;

  std::int64_t value_ = 0;
  std::string written_ = "0";
  Binding binding_ = Binding::atom;
  std::optional<Polynomial> polynomial_ = Polynomial{};  // none: it has no such form
};

// Letters that stand for others where their values make it so: Hkv = H, or d = D / H, which makes
// H·d the same as D.
class ShapeWords {
 public:
  // `letter` is `same`; or `letter` times `times` is `same`.
  void equal(const std::string& letter, const std::string& same);
  void product(const std::string& letter, const std::string& times, const std::string& same);

  // As written, or the one product that it becomes: "3D" for (H + 2 Hkv) d of plain attention.
  [[nodiscard]] std::string text(const ShapeSize& size) const;

 private:
  struct Product {
    std::string letter, times, same;
  };
  [[nodiscard]] Monomial reduced(Monomial letters) const;

  std::map<std::string, std::string> equal_;
  std::vector<Product> products_;
};

}  // namespace fuseline
