// Reads formulas of values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <numbers>
#include <utility>

#include "base/error.h"
#include "model/programs/value_nodes.h"

namespace fuseline {

namespace {

constexpr std::size_t kDeepestFormula = 200;
constexpr std::size_t kMostNodes = 20'000;

ValueNodePtr substituted(const ValueNodePtr& node, const ValueNodes& arguments) {
  if (node->kind == NodeKind::number) return node;
  if (node->kind == NodeKind::parameter) return arguments.at(node->parameter);
  ValueNode out = *node;
  for (ValueNodePtr& part : out.parts) part = substituted(part, arguments);
  return std::make_shared<const ValueNode>(std::move(out));
}

class FormulaParser {
 public:
  FormulaParser(TokenCursor& cursor, const std::vector<std::string>& parameters,
                std::span<const NamedFunction> known)
      : cursor_(cursor), parameters_(parameters), known_(known) {}

  ValueNodePtr sum() {
    if (++depth_ > kDeepestFormula)
      cursor_.fail(cursor_.here(), {.message = "the formula is too deep",
                                    .allowed = fmt::format("at most {} levels", kDeepestFormula)});
    ValueNodePtr value = product();
    while (cursor_.is("+") || cursor_.is("-")) {
      const std::string sign(cursor_.next().text);
      value = made(sign, {value, product()});
    }
    --depth_;
    return value;
  }

 private:
  ValueNodePtr made(std::string_view name, ValueNodes parts) {
    if (++nodes_ > kMostNodes)
      cursor_.fail(cursor_.here(), {.message = "the formula is too long",
                                    .allowed = fmt::format("at most {} steps", kMostNodes)});
    return std::make_shared<const ValueNode>(ValueNode{
        .kind = NodeKind::call, .function = index_of_function(name), .parts = std::move(parts)});
  }

  ValueNodePtr product() {
    ValueNodePtr value = negated();
    while (cursor_.is("*") || cursor_.is("/")) {
      const std::string sign(cursor_.next().text);
      value = made(sign, {value, negated()});
    }
    return value;
  }

  ValueNodePtr negated() {
    if (!cursor_.take("-")) return primary();
    const Position at = cursor_.here();
    if (++depth_ > kDeepestFormula)
      cursor_.fail(at, {.message = "the formula is too deep",
                        .allowed = fmt::format("at most {} levels", kDeepestFormula)});
    ValueNodePtr inner = negated();
    --depth_;
    return made("negate", {std::move(inner)});
  }

  ValueNodePtr primary() {
    const Position at = cursor_.here();
    if (cursor_.kind() == TokenKind::number) {
      const std::string_view text = cursor_.next().text;
      double value = 0;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return number_node(value);
    }
    if (cursor_.take("(")) {
      ValueNodePtr inner = sum();
      cursor_.need(")");
      return inner;
    }
    if (cursor_.kind() != TokenKind::name)
      cursor_.expected("a number, a name, a call or a bracket");
    const std::string name(cursor_.next().text);
    if (cursor_.take("(")) return called(name, at);
    const auto mine = std::ranges::find(parameters_, name);
    if (mine != parameters_.end())
      return parameter_node(static_cast<std::size_t>(mine - parameters_.begin()));
    if (name == "pi") return number_node(std::numbers::pi);
    cursor_.fail(at, {.value = name,
                      .message = "is no parameter of the function",
                      .allowed = fmt::format("{}", fmt::join(parameters_, ", ")),
                      .nearest = nearest_name(name, parameters_)});
  }

  ValueNodePtr called(const std::string& name, Position at) {
    ValueNodes arguments;
    do arguments.push_back(sum());
    while (cursor_.take(","));
    cursor_.need(")");
    std::vector<std::string> names = value_function_names();
    for (const NamedFunction& f : known_) {
      names.push_back(f.name);
      if (f.name != name) continue;
      count(name, at, arguments.size(), f.parameters);
      return substituted(f.body, arguments);
    }
    for (const KnownFunction& k : value_functions()) {
      if (is_value_operator(k) || name != k.name) continue;
      count(name, at, arguments.size(), k.operands);
      return made(name, std::move(arguments));
    }
    cursor_.fail(at, {.value = name,
                      .message = "no function has this name",
                      .allowed = fmt::format("{}", fmt::join(names, ", ")),
                      .nearest = nearest_name(name, names)});
  }

  void count(const std::string& name, Position at, std::size_t given, std::size_t wanted) const {
    if (given == wanted) return;
    cursor_.fail(
        at, {.value = name, .message = fmt::format("takes {} arguments, not {}", wanted, given)});
  }

  TokenCursor& cursor_;
  const std::vector<std::string>& parameters_;
  std::span<const NamedFunction> known_;
  std::size_t depth_ = 0;
  std::size_t nodes_ = 0;
};

}  // namespace

ValueFunction ValueFunction::parse(TokenCursor& cursor, std::vector<std::string> parameters,
                                   std::span<const NamedFunction> known) {
  ValueNodePtr body = FormulaParser(cursor, parameters, known).sum();
  return {std::move(parameters), std::move(body)};
}

ValueFunction ValueFunction::of_text(const std::string& text, std::vector<std::string> parameters) {
  TokenCursor cursor(std::make_shared<const SourceText>(SourceText{"formula", text}), {});
  ValueFunction f = parse(cursor, std::move(parameters));
  cursor.need_line_end();
  return f;
}

}  // namespace fuseline
