#include "model/programs/value_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/programs/value_nodes.h"

namespace fuseline {

namespace {

// The same, with what the numbers make simpler.
ValueNodePtr rebuilt(const ValueNodePtr& node, const ValueNodes& arguments) {
  if (node->kind == NodeKind::number) return node;
  if (node->kind == NodeKind::parameter) return arguments.at(node->parameter);
  ValueNodes parts;
  for (const ValueNodePtr& part : node->parts) parts.push_back(rebuilt(part, arguments));
  return call_node(value_functions()[node->function].name, std::move(parts));
}

bool depends(const ValueNode& node, std::size_t parameter) {
  if (node.kind == NodeKind::parameter) return node.parameter == parameter;
  return std::ranges::any_of(node.parts,
                             [&](const ValueNodePtr& part) { return depends(*part, parameter); });
}

template <class T>
T evaluated(const ValueNode& node, std::span<const T> values) {
  switch (node.kind) {
    case NodeKind::number:
      return static_cast<T>(node.number);
    case NodeKind::parameter:
      return values[node.parameter];
    case NodeKind::call:
      break;
  }
  const KnownFunction& k = value_functions()[node.function];
  const T a = evaluated<T>(*node.parts[0], values);
  const T b = node.parts.size() > 1 ? evaluated<T>(*node.parts[1], values) : T(0);
  if constexpr (std::is_same_v<T, float>)
    return k.fp32(a, b);
  else
    return k.exact(a, b);
}

ValueNodePtr slope(const ValueNodePtr& node, std::size_t by) {
  if (node->kind == NodeKind::number) return number_node(0);
  if (node->kind == NodeKind::parameter) return number_node(node->parameter == by ? 1 : 0);
  ValueNodePtr sum = number_node(0);
  for (std::size_t i = 0; i < node->parts.size(); ++i) {
    const ValueNodePtr inner = slope(node->parts[i], by);
    if (inner->kind == NodeKind::number && inner->number == 0) continue;
    sum = call_node(
        "+", {sum, call_node("*", {value_functions()[node->function].slope(node->parts, node, i),
                                   inner})});
  }
  return sum;
}

int rank(const ValueNode& node) {
  if (node.kind == NodeKind::number) return node.number < 0 ? 3 : 4;
  if (node.kind == NodeKind::parameter) return 4;
  const std::string_view name = value_functions()[node.function].name;
  return name == "+" || name == "-" ? 1 : name == "*" || name == "/" ? 2 : name == "negate" ? 3 : 4;
}

std::string written(const ValueNode& node, const std::vector<std::string>& names) {
  const auto within = [&](const ValueNode& part, int least) {
    const std::string text = written(part, names);
    return rank(part) < least ? "(" + text + ")" : text;
  };
  if (node.kind == NodeKind::number) return fmt::format("{}", node.number);
  if (node.kind == NodeKind::parameter) return names.at(node.parameter);
  const KnownFunction& k = value_functions()[node.function];
  const int own = rank(node);
  if (own == 3) return "-" + within(*node.parts[0], 3);
  if (is_value_operator(k))
    return fmt::format("{} {} {}", within(*node.parts[0], own), k.name,
                       within(*node.parts[1], own + 1));
  std::string text = k.name + std::string("(");
  for (std::size_t i = 0; i < node.parts.size(); ++i)
    text += (i > 0 ? ", " : "") + written(*node.parts[i], names);
  return text + ")";
}

std::string on_device(const ValueNode& node, const std::vector<std::string>& names) {
  if (node.kind == NodeKind::number) return fmt::format("({:#.9g}F)", node.number);
  if (node.kind == NodeKind::parameter) return names.at(node.parameter);
  const KnownFunction& k = value_functions()[node.function];
  const std::string a = on_device(*node.parts[0], names);
  if (node.parts.size() == 1) return fmt::format(fmt::runtime(k.device), a);
  return fmt::format(fmt::runtime(k.device), a, on_device(*node.parts[1], names));
}

}  // namespace

ValueFunction::ValueFunction(std::vector<std::string> parameters, ValueNodePtr body)
    : parameters_(std::move(parameters)), body_(std::move(body)) {}

double ValueFunction::operator()(std::span<const double> values) const {
  return evaluated<double>(*body_, values);
}
float ValueFunction::in_fp32(std::span<const float> values) const {
  return evaluated<float>(*body_, values);
}
ValueFunction ValueFunction::derivative(std::size_t by) const {
  return {parameters_, slope(body_, by)};
}
std::optional<double> ValueFunction::number() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (reads(i)) return std::nullopt;
  const std::vector<double> none(parameters_.size());
  return (*this)(none);
}
bool ValueFunction::reads(std::size_t parameter) const { return depends(*body_, parameter); }
ValueFunction ValueFunction::with_number(std::size_t which, double x) const {
  std::vector<std::string> others;
  ValueNodes arguments;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (i == which) {
      arguments.push_back(number_node(x));
      continue;
    }
    arguments.push_back(parameter_node(others.size()));
    others.push_back(parameters_[i]);
  }
  return {others, rebuilt(body_, arguments)};
}
std::string ValueFunction::text() const { return written(*body_, parameters_); }
std::string ValueFunction::device_text() const { return on_device(*body_, parameters_); }

std::vector<std::string> value_function_names() {
  std::vector<std::string> names;
  for (const KnownFunction& k : value_functions())
    if (!is_value_operator(k) && std::string_view(k.name) != "negate") names.emplace_back(k.name);
  return names;
}

}  // namespace fuseline
