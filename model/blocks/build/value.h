// What an expression of a block's text can be.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/blocks/shape_size.h"
#include "model/graph.h"

namespace fuseline {

// A tensor, or rows and columns of one, with its shape in words.
struct TensorValue {
  Operand operand;
  ShapeSize rows, cols;
  // Of what a cache gives: tokens of each sequence that the cache holds, and the words for those of
  // them that are read. 0: it is no cache.
  std::int64_t cached_tokens = 0;
  std::string tokens_words{};
};

struct Nothing {};  // an argument that its condition leaves out

struct TextValue;
using TextValues = std::vector<TextValue>;

struct TextValue {
  std::variant<Nothing, ShapeSize, double, bool, std::string, TensorValue, TextValues> held;

  template <class T>
  [[nodiscard]] const T* get() const {
    return std::get_if<T>(&held);
  }
};

// "a tensor", "a whole number"
const char* kind_of(const TextValue& value);

}  // namespace fuseline
