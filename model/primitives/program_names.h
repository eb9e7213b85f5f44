// Names of values and operands in a program's text.
#pragma once

#include <span>
#include <string>

#include "model/primitives/basics.h"

namespace fuseline {

// One line of a program's text: the comment may be empty.
struct CodeLine {
  std::string code;
  std::string comment{};
};

class ProgramNames {
 public:
  // Both must outlive it. `names`: of values; may be short or have empty ones.
  ProgramNames(const Graph& graph, std::span<const std::string> names)
      : graph_(graph), names_(names) {}

  // "y" of value 0 and "v3" of value 3 where the program names them otherwise nowhere.
  [[nodiscard]] std::string name(Value v) const;
  // "qkv[M,3D]", or for a slice "qkv[M, 4096:8192]".
  [[nodiscard]] std::string text(const Operand& operand) const;

 private:
  const Graph& graph_;
  std::span<const std::string> names_;
};

}  // namespace fuseline
