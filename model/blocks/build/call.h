// The arguments of a call in a block's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/blocks/build/builder.h"

namespace fuseline {

// The arguments of a call: those in order, then those by name.
class Call {
 public:
  Call(BlockBuilder& builder, const Expression& e) : builder_(builder), e_(e) {}

  [[nodiscard]] const Expression& expression() const { return e_; }
  [[nodiscard]] Position at() const { return e_.at; }
  // How many stand in order.
  [[nodiscard]] std::size_t in_order() const;
  [[nodiscard]] Position place(std::size_t i) const;

  // InputError: missing, or something else than is asked for.
  TensorValue tensor(std::size_t i, const char* what);
  std::optional<TensorValue> tensor_or_nothing(std::size_t i, const char* name);
  ShapeSize whole(std::size_t i, const char* what);
  std::optional<ShapeSize> whole_named(const char* name, std::int64_t least, std::int64_t most);
  std::optional<double> number_named(const char* name);
  std::optional<bool> flag_named(const char* name);
  // A bare word: mask = causal.
  std::string word_named(const char* name, const std::vector<std::string>& words,
                         const char* absent);
  // All arguments by name that no function asked for so far, as tensors.
  std::vector<std::pair<std::string, TensorValue>> other_tensors();
  // InputError: an argument that nobody asked for, with those that were asked for.
  void finish() const;

  [[nodiscard]] const Argument* named(const char* name);

 private:
  BlockBuilder& builder_;
  const Expression& e_;
  std::set<std::string> asked_;
  std::size_t most_in_order_ = 0;
};

}  // namespace fuseline
