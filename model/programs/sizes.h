// Sizes in letters: "size M = 2048, D = 4096", then "3D", "B·T", "⌈D/128⌉".
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/text/token_cursor.h"

namespace fuseline {

class Sizes {
 public:
  void set(const std::string& letter, std::int64_t size) { sizes_[letter] = size; }
  [[nodiscard]] const std::map<std::string, std::int64_t>& all() const { return sizes_; }

  // InputError at its place: a letter without a size, what is no whole number from 0 to 2^40, a
  // division with a rest. "⌈a/b⌉" rounds up.
  std::int64_t read(TokenCursor& cursor) const;
  // Whether the tokens ahead up to "," or "]" are letters that all have sizes.
  [[nodiscard]] bool known(const TokenCursor& cursor) const;

 private:
  std::int64_t sum(TokenCursor& cursor, bool up, int depth) const;
  std::int64_t product(TokenCursor& cursor, bool up, int depth) const;
  std::int64_t factor(TokenCursor& cursor, int depth) const;

  std::map<std::string, std::int64_t> sizes_;
};

}  // namespace fuseline
