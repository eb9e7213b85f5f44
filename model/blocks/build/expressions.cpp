// TextValues of expressions: sizes, numbers, choices, and the operators between tensors.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "model/blocks/build/builder.h"
#include "model/operators/all_operators.h"

namespace fuseline {

namespace {

bool is_vector(const TensorValue& t) { return t.operand.rows == 1; }

std::optional<double> as_number(const TextValue& v) {
  if (const auto* size = v.get<ShapeSize>()) return static_cast<double>(size->value());
  if (const auto* number = v.get<double>()) return *number;
  return std::nullopt;
}

}  // namespace

TextValue BlockBuilder::evaluate(const Expression& e, const Naming& naming) {
  switch (e.kind) {
    case ExpressionKind::number:
      return number_value(e);
    case ExpressionKind::name:
      return name_value(e);
    case ExpressionKind::quoted:
      return {e.text};
    case ExpressionKind::tensor:
      return weight(e);
    case ExpressionKind::call:
      return call(e, naming);
    case ExpressionKind::negate: {
      const TextValue v = evaluate(*e.parts[0], {.outermost = false});
      const auto number = as_number(v);
      if (!number)
        fail(e.at, {.message = fmt::format("{} has no negative here", kind_of(v)),
                    .allowed = "a number"});
      if (v.get<ShapeSize>() == nullptr) return {-*number};
      return sized({.kind = ExpressionKind::binary, .at = e.at, .text = "-"}, {ShapeSize(0)}, v);
    }
    case ExpressionKind::invert:
      return {!truth(*e.parts[0])};
    case ExpressionKind::binary:
      return binary_value(e, naming);
    case ExpressionKind::choice:
      if (truth(*e.parts[1])) return evaluate(*e.parts[0], naming);
      if (e.parts.size() > 2) return evaluate(*e.parts[2], naming);
      return {Nothing{}};
  }
  return {Nothing{}};
}

TextValue BlockBuilder::number_value(const Expression& e) {
  std::int64_t whole = 0;
  const char* const end = e.text.data() + e.text.size();
  const auto [stopped, error] = std::from_chars(e.text.data(), end, whole);
  if (error == std::errc() && stopped == end) return {ShapeSize(whole)};
  double number = 0;
  const auto [at, wrong] = std::from_chars(e.text.data(), end, number);
  if (wrong != std::errc() || at != end || !std::isfinite(number))
    fail(e.at, {.value = e.text, .message = "is too large or too small a number"});
  return {number};
}

TextValue BlockBuilder::name_value(const Expression& e) {
  if (const auto found = scope().names.find(e.text); found != scope().names.end())
    return found->second;
  if (const auto found = letters_.find(e.text); found != letters_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, value] : scope().names) names.push_back(name);
  for (const auto& [name, value] : letters_) names.push_back(name);
  const bool looks_like_weight = e.text.starts_with("w_") || e.text.starts_with("b_");
  fail(e.at, {.value = e.text,
              .message = "has no meaning here: nothing above gives it one",
              .allowed = looks_like_weight
                             ? "a weight has its sizes where it is read first: " + e.text + "[N, D]"
                             : "a size of the block, or a name from a line above",
              .nearest = nearest_name(e.text, names)});
}

bool BlockBuilder::truth(const Expression& e) {
  const TextValue v = evaluate(e, {.outermost = false});
  if (const bool* flag = v.get<bool>()) return *flag;
  if (const auto* size = v.get<ShapeSize>()) return size->value() != 0;
  fail(e.at, {.value = expression_text(e),
              .message = fmt::format("is {}", kind_of(v)),
              .allowed = "yes or no, or a comparison"});
}

ShapeSize BlockBuilder::size_of_shape(const Expression& e) {
  const TextValue v = evaluate(e, {.outermost = false});
  const auto* size = v.get<ShapeSize>();
  if (size == nullptr)
    fail(e.at, {.value = expression_text(e),
                .message = fmt::format("is {}, and a shape has whole numbers", kind_of(v))});
  return *size;
}

TextValue BlockBuilder::binary_value(const Expression& e, const Naming& naming) {
  if (e.text == "and") return {truth(*e.parts[0]) && truth(*e.parts[1])};
  if (e.text == "or") return {truth(*e.parts[0]) || truth(*e.parts[1])};
  const Naming inner{.site = naming.site, .op = {}, .targets = naming.targets, .outermost = false};
  const TextValue a = evaluate(*e.parts[0], inner);
  const TextValue b = evaluate(*e.parts[1], inner);
  if (a.get<TensorValue>() != nullptr || b.get<TensorValue>() != nullptr)
    return of_tensors(e, a, b, naming);
  const bool compares = e.text == "==" || e.text == "!=" || e.text == "<" || e.text == ">" ||
                        e.text == "<=" || e.text == ">=";
  return compares ? compared(e, a, b) : sized(e, a, b);
}

TextValue BlockBuilder::compared(const Expression& e, const TextValue& a, const TextValue& b) {
  const bool* p = a.get<bool>();
  const bool* q = b.get<bool>();
  if (p != nullptr && q != nullptr && (e.text == "==" || e.text == "!="))
    return {(*p == *q) == (e.text == "==")};
  const auto x = as_number(a);
  const auto y = as_number(b);
  if (!x || !y)
    fail(e.at, {.message = fmt::format("{} and {} are not compared with '{}'", kind_of(a),
                                       kind_of(b), e.text),
                .allowed = "two numbers"});
  if (e.text == "==") return {*x == *y};
  if (e.text == "!=") return {*x != *y};
  if (e.text == "<") return {*x < *y};
  if (e.text == ">") return {*x > *y};
  if (e.text == "<=") return {*x <= *y};
  return {*x >= *y};
}

// Whole numbers stay whole: a division that leaves a rest is an error, not a rounding.
TextValue BlockBuilder::sized(const Expression& e, const TextValue& a, const TextValue& b) {
  const auto* m = a.get<ShapeSize>();
  const auto* n = b.get<ShapeSize>();
  if (m != nullptr && n != nullptr) {
    const auto result = e.text == "+"   ? ShapeSize::add(*m, *n)
                        : e.text == "-" ? ShapeSize::subtract(*m, *n)
                        : e.text == "/" ? ShapeSize::divide(*m, *n)
                                        : ShapeSize::multiply(*m, *n);
    if (result) return {*result};
    fail(e.at, {.value = expression_text(e),
                .message = e.text == "/"
                               ? fmt::format("{} is not a multiple of {}", m->value(), n->value())
                               : "is beyond 64 bits",
                .allowed = e.text == "/" ? "a whole quotient" : "smaller sizes"});
  }
  const auto x = as_number(a);
  const auto y = as_number(b);
  if (!x || !y)
    fail(e.at, {.message = fmt::format("{} and {} have no '{}'", kind_of(a), kind_of(b), e.text),
                .allowed = "two numbers, or tensors"});
  const double result = e.text == "+"   ? *x + *y
                        : e.text == "-" ? *x - *y
                        : e.text == "/" ? *x / *y
                                        : *x * *y;
  if (!std::isfinite(result)) fail(e.at, {.value = expression_text(e), .message = "is no number"});
  return {result};
}

// x + f(x): the branch is added to the stream that it left. A row of one vector goes to every row.
TextValue BlockBuilder::of_tensors(const Expression& e, const TextValue& a, const TextValue& b,
                                   const Naming& naming) {
  const auto* x = a.get<TensorValue>();
  const auto* y = b.get<TensorValue>();
  const Position left = e.parts[0]->at;
  const Position right = e.parts[1]->at;
  if (x != nullptr && y != nullptr && e.text == "+") {
    if (is_vector(*y) && !is_vector(*x))
      return apply(operators::bias_add, {*x, *y}, {left, right}, {}, naming, e.at);
    return apply(operators::residual_add, {*y, *x}, {right, left}, {}, naming, e.at);
  }
  if (x != nullptr && y != nullptr && (e.text == "*" || e.text == "·")) {
    if (is_vector(*y) && !is_vector(*x))
      return apply(operators::mul_cols, {*x, *y}, {left, right}, {}, naming, e.at);
    if (y->operand.cols == 1 && x->operand.cols > 1)
      return apply(operators::mul_rows, {*x, *y}, {left, right}, {}, naming, e.at);
    return apply(operators::mul, {*x, *y}, {left, right}, {}, naming, e.at);
  }
  const TensorValue* tensor = x != nullptr ? x : y;
  const auto factor = as_number(x != nullptr ? b : a);
  if (factor && (e.text == "*" || e.text == "·"))
    return apply(operators::scale, {*tensor}, {e.at}, Scalar{*factor}, naming, e.at);
  fail(e.at, {.message = fmt::format("{} and {} have no '{}'", kind_of(a), kind_of(b), e.text),
              .allowed = "tensor + tensor, tensor * tensor, number * tensor, or a call"});
}

// w_qkv[(H + 2 Hkv) d, D]. A weight that is read again is written with the same sizes.
TextValue BlockBuilder::weight(const Expression& e) {
  if (e.parts.size() > 3)
    fail(e.at, {.value = e.text, .message = "has too many sizes", .allowed = "at most three"});
  std::vector<ShapeSize> sizes;
  for (const ExpressionPtr& part : e.parts) sizes.push_back(size_of_shape(*part));
  const ShapeSize cols = sizes.back();
  ShapeSize rows = sizes.size() == 1 ? ShapeSize(1) : sizes[0];
  if (sizes.size() == 3) {
    const auto all = ShapeSize::multiply(sizes[0], sizes[1]);
    if (!all) fail(e.at, {.value = e.text, .message = "has sizes beyond 64 bits"});
    rows = *all;
  }
  // In a part that is used again, its weights are those of that use: w_image_qkv.
  std::string name = scope().prefix + e.text;
  if (!scope().prefix.empty() && (e.text.starts_with("w_") || e.text.starts_with("b_")))
    name = e.text.substr(0, 2) + scope().prefix + e.text.substr(2);
  if (const auto found = scope().names.find(e.text); found != scope().names.end()) {
    const auto* known = found->second.get<TensorValue>();
    if (known == nullptr || graph_.tensor(known->operand.tensor).role != Role::weight)
      fail(e.at, {.value = e.text,
                  .message = "is no weight: a line above gives the name to something else"});
    if (known->operand.rows != rows.value() || known->operand.cols != cols.value())
      fail(e.at, {.value = e.text,
                  .message = fmt::format("was {} where it was read first", shape_in_words(*known)),
                  .allowed = "the same sizes"});
    return found->second;
  }
  TensorValue tensor = new_tensor(name, Role::weight, rows, cols, e.at);
  if (sizes.size() == 3)
    graph_.tensor(tensor.operand.tensor).outer = {sizes[0].value(), sizes[1].value()};
  give_name(e.text, {tensor}, e.at);
  return {tensor};
}

}  // namespace fuseline
