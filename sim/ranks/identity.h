// Short numbers that tell texts and files apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fuseline {

// FNV-1a, 64 bits (Fowler, Noll, Vo): against mistakes, not against attackers.
class TextHash {
 public:
  TextHash& add(std::string_view text) {
    for (const char c : text) {
      value_ ^= static_cast<unsigned char>(c);
      value_ *= 1099511628211ULL;
    }
    return *this;
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }
  [[nodiscard]] std::string text() const;  // 16 hexadecimal digits

 private:
  std::uint64_t value_ = 14695981039346656037ULL;
};

}  // namespace fuseline
