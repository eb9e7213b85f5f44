// Formulas as trees: what a formula's steps are, and the table of the functions that they call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/programs/value_function.h"

namespace fuseline {

enum class NodeKind : std::uint8_t { number, parameter, call };

// A call is of a function of the table; operators are functions too.
struct ValueNode {
  NodeKind kind = NodeKind::number;
  double number = 0;
  std::size_t parameter = 0;
  std::size_t function = 0;
  std::vector<ValueNodePtr> parts{};
};

using ValueNodes = std::vector<ValueNodePtr>;

// Everything that is known of a function that formulas call.
struct KnownFunction {
  const char* name;
  std::size_t operands;
  double (*exact)(double, double);
  float (*fp32)(float, float);
  const char* device;  // with {} for each operand
  // The derivative by operand `which`, given the operands and the call itself.
  ValueNodePtr (*slope)(const ValueNodes& x, const ValueNodePtr& self, std::size_t which);
};

// The table, operators among it.
std::span<const KnownFunction> value_functions();
std::size_t index_of_function(std::string_view name);
bool is_value_operator(const KnownFunction& k);  // written between or ahead of its operands

ValueNodePtr number_node(double x);
ValueNodePtr parameter_node(std::size_t i);
// With what the numbers 0 and 1 make simpler.
ValueNodePtr call_node(std::string_view name, ValueNodes parts);

}  // namespace fuseline
