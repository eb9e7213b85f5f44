#include "model/programs/value_function.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.h"

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

namespace {

constexpr std::size_t kDeepestFormula = 200;
constexpr std::size_t kMostNodes = 20'000;

ValueNodePtr number(double x) {
  return std::make_shared<const ValueNode>(ValueNode{.kind = NodeKind::number, .number = x});
}
ValueNodePtr parameter(std::size_t i) {
  return std::make_shared<const ValueNode>(ValueNode{.kind = NodeKind::parameter, .parameter = i});
}

using Nodes = std::vector<ValueNodePtr>;

// Everything that is known of a function that formulas call.
struct Known {
  const char* name;
  std::size_t operands;
  double (*exact)(double, double);
  float (*fp32)(float, float);
  const char* device;  // with {} for each operand
  // The derivative by operand `which`, given the operands and the call itself.
  ValueNodePtr (*slope)(const Nodes& x, const ValueNodePtr& self, std::size_t which);
};

std::size_t index_of(std::string_view name);

ValueNodePtr call(std::string_view name, Nodes parts) {
  const auto is = [](const ValueNodePtr& p, double x) {
    return p->kind == NodeKind::number && p->number == x;
  };
  if (name == "*" && (is(parts[0], 0) || is(parts[1], 0))) return number(0);
  if (name == "*" && is(parts[0], 1)) return parts[1];
  if (name == "*" && is(parts[1], 1)) return parts[0];
  if (name == "+" && is(parts[0], 0)) return parts[1];
  if ((name == "+" || name == "-") && is(parts[1], 0)) return parts[0];
  if (name == "/" && is(parts[0], 0)) return number(0);
  return std::make_shared<const ValueNode>(
      ValueNode{.kind = NodeKind::call, .function = index_of(name), .parts = std::move(parts)});
}
ValueNodePtr times(ValueNodePtr a, ValueNodePtr b) {
  return call("*", {std::move(a), std::move(b)});
}
ValueNodePtr minus(ValueNodePtr a, ValueNodePtr b) {
  return call("-", {std::move(a), std::move(b)});
}
ValueNodePtr over(ValueNodePtr a, ValueNodePtr b) {
  return call("/", {std::move(a), std::move(b)});
}

// What is larger or smaller counts; of equal ones the first.
ValueNodePtr taken(const Nodes& x, std::size_t which, bool smaller) {
  const ValueNodePtr ahead = smaller ? minus(x[0], x[1]) : minus(x[1], x[0]);
  const ValueNodePtr second = call("step", {ahead});
  return which == 1 ? second : minus(number(1), second);
}

const std::array kKnown = {
    Known{"+", 2, [](double a, double b) { return a + b; }, [](float a, float b) { return a + b; },
          "({} + {})", [](const Nodes&, const ValueNodePtr&, std::size_t) { return number(1); }},
    Known{"-", 2, [](double a, double b) { return a - b; }, [](float a, float b) { return a - b; },
          "({} - {})",
          [](const Nodes&, const ValueNodePtr&, std::size_t which) {
            return number(which == 0 ? 1 : -1);
          }},
    Known{"*", 2, [](double a, double b) { return a * b; }, [](float a, float b) { return a * b; },
          "({} * {})",
          [](const Nodes& x, const ValueNodePtr&, std::size_t which) { return x[1 - which]; }},
    Known{"/", 2, [](double a, double b) { return a / b; }, [](float a, float b) { return a / b; },
          "({} / {})",
          [](const Nodes& x, const ValueNodePtr& self, std::size_t which) {
            if (which == 0) return over(number(1), x[1]);
            return call("negate", {over(self, x[1])});
          }},
    Known{"negate", 1, [](double a, double) { return -a; }, [](float a, float) { return -a; },
          "(-{})", [](const Nodes&, const ValueNodePtr&, std::size_t) { return number(-1); }},
    Known{"exp", 1, [](double a, double) { return std::exp(a); },
          [](float a, float) { return std::exp(a); }, "expf({})",
          [](const Nodes&, const ValueNodePtr& self, std::size_t) { return self; }},
    Known{"log", 1, [](double a, double) { return std::log(a); },
          [](float a, float) { return std::log(a); }, "logf({})",
          [](const Nodes& x, const ValueNodePtr&, std::size_t) { return over(number(1), x[0]); }},
    Known{"sqrt", 1, [](double a, double) { return std::sqrt(a); },
          [](float a, float) { return std::sqrt(a); }, "sqrtf({})",
          [](const Nodes&, const ValueNodePtr& self, std::size_t) {
            return over(number(0.5), self);
          }},
    Known{"rsqrt", 1, [](double a, double) { return 1 / std::sqrt(a); },
          [](float a, float) { return 1 / std::sqrt(a); }, "rsqrtf({})",
          [](const Nodes& x, const ValueNodePtr& self, std::size_t) {
            return times(number(-0.5), over(self, x[0]));
          }},
    Known{"tanh", 1, [](double a, double) { return std::tanh(a); },
          [](float a, float) { return std::tanh(a); }, "tanhf({})",
          [](const Nodes&, const ValueNodePtr& self, std::size_t) {
            return minus(number(1), times(self, self));
          }},
    Known{"sigmoid", 1, [](double a, double) { return 1 / (1 + std::exp(-a)); },
          [](float a, float) { return 1 / (1 + std::exp(-a)); }, "(1.0F / (1.0F + expf(-{})))",
          [](const Nodes&, const ValueNodePtr& self, std::size_t) {
            return times(self, minus(number(1), self));
          }},
    Known{"erf", 1, [](double a, double) { return std::erf(a); },
          [](float a, float) { return std::erf(a); }, "erff({})",
          [](const Nodes& x, const ValueNodePtr&, std::size_t) {
            return times(number(2 / std::sqrt(std::numbers::pi)),
                         call("exp", {call("negate", {times(x[0], x[0])})}));
          }},
    Known{"sin", 1, [](double a, double) { return std::sin(a); },
          [](float a, float) { return std::sin(a); }, "sinf({})",
          [](const Nodes& x, const ValueNodePtr&, std::size_t) { return call("cos", {x[0]}); }},
    Known{"cos", 1, [](double a, double) { return std::cos(a); },
          [](float a, float) { return std::cos(a); }, "cosf({})",
          [](const Nodes& x, const ValueNodePtr&, std::size_t) {
            return call("negate", {call("sin", {x[0]})});
          }},
    Known{"abs", 1, [](double a, double) { return std::fabs(a); },
          [](float a, float) { return std::fabs(a); }, "fabsf({})",
          [](const Nodes& x, const ValueNodePtr&, std::size_t) {
            return minus(times(number(2), call("step", {x[0]})), number(1));
          }},
    Known{"step", 1, [](double a, double) { return a > 0 ? 1.0 : 0.0; },
          [](float a, float) { return a > 0 ? 1.0F : 0.0F; }, "({} > 0.0F ? 1.0F : 0.0F)",
          [](const Nodes&, const ValueNodePtr&, std::size_t) { return number(0); }},
    Known{"max", 2, [](double a, double b) { return std::max(a, b); },
          [](float a, float b) { return std::max(a, b); }, "fmaxf({}, {})",
          [](const Nodes& x, const ValueNodePtr&, std::size_t which) {
            return taken(x, which, false);
          }},
    Known{"min", 2, [](double a, double b) { return std::min(a, b); },
          [](float a, float b) { return std::min(a, b); }, "fminf({}, {})",
          [](const Nodes& x, const ValueNodePtr&, std::size_t which) {
            return taken(x, which, true);
          }},
};

std::size_t index_of(std::string_view name) {
  const auto at = std::ranges::find_if(kKnown, [&](const Known& k) { return name == k.name; });
  FUSELINE_ASSERT(at != kKnown.end(), "a function of the table");
  return static_cast<std::size_t>(at - kKnown.begin());
}

bool is_operator(const Known& k) {
  return std::isalpha(static_cast<unsigned char>(k.name[0])) == 0;
}

ValueNodePtr substituted(const ValueNodePtr& node, const Nodes& arguments) {
  if (node->kind == NodeKind::number) return node;
  if (node->kind == NodeKind::parameter) return arguments.at(node->parameter);
  ValueNode out = *node;
  for (ValueNodePtr& part : out.parts) part = substituted(part, arguments);
  return std::make_shared<const ValueNode>(std::move(out));
}

// The same, with what the numbers make simpler.
ValueNodePtr rebuilt(const ValueNodePtr& node, const Nodes& arguments) {
  if (node->kind == NodeKind::number) return node;
  if (node->kind == NodeKind::parameter) return arguments.at(node->parameter);
  Nodes parts;
  for (const ValueNodePtr& part : node->parts) parts.push_back(rebuilt(part, arguments));
  return call(kKnown[node->function].name, std::move(parts));
}

bool depends(const ValueNode& node, std::size_t parameter) {
  if (node.kind == NodeKind::parameter) return node.parameter == parameter;
  return std::ranges::any_of(node.parts,
                             [&](const ValueNodePtr& part) { return depends(*part, parameter); });
}

class Parser {
 public:
  Parser(TokenCursor& cursor, const std::vector<std::string>& parameters,
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
  ValueNodePtr made(std::string_view name, Nodes parts) {
    if (++nodes_ > kMostNodes)
      cursor_.fail(cursor_.here(), {.message = "the formula is too long",
                                    .allowed = fmt::format("at most {} steps", kMostNodes)});
    return std::make_shared<const ValueNode>(
        ValueNode{.kind = NodeKind::call, .function = index_of(name), .parts = std::move(parts)});
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
      return number(value);
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
      return parameter(static_cast<std::size_t>(mine - parameters_.begin()));
    if (name == "pi") return number(std::numbers::pi);
    cursor_.fail(at, {.value = name,
                      .message = "is no parameter of the function",
                      .allowed = fmt::format("{}", fmt::join(parameters_, ", ")),
                      .nearest = nearest_name(name, parameters_)});
  }

  ValueNodePtr called(const std::string& name, Position at) {
    Nodes arguments;
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
    for (const Known& k : kKnown) {
      if (is_operator(k) || name != k.name) continue;
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
  const Known& k = kKnown[node.function];
  const T a = evaluated<T>(*node.parts[0], values);
  const T b = node.parts.size() > 1 ? evaluated<T>(*node.parts[1], values) : T(0);
  if constexpr (std::is_same_v<T, float>)
    return k.fp32(a, b);
  else
    return k.exact(a, b);
}

ValueNodePtr slope(const ValueNodePtr& node, std::size_t by) {
  if (node->kind == NodeKind::number) return number(0);
  if (node->kind == NodeKind::parameter) return number(node->parameter == by ? 1 : 0);
  ValueNodePtr sum = number(0);
  for (std::size_t i = 0; i < node->parts.size(); ++i) {
    const ValueNodePtr inner = slope(node->parts[i], by);
    if (inner->kind == NodeKind::number && inner->number == 0) continue;
    sum = call("+", {sum, times(kKnown[node->function].slope(node->parts, node, i), inner)});
  }
  return sum;
}

int rank(const ValueNode& node) {
  if (node.kind == NodeKind::number) return node.number < 0 ? 3 : 4;
  if (node.kind == NodeKind::parameter) return 4;
  const std::string_view name = kKnown[node.function].name;
  return name == "+" || name == "-" ? 1 : name == "*" || name == "/" ? 2 : name == "negate" ? 3 : 4;
}

std::string written(const ValueNode& node, const std::vector<std::string>& names) {
  const auto within = [&](const ValueNode& part, int least) {
    const std::string text = written(part, names);
    return rank(part) < least ? "(" + text + ")" : text;
  };
  if (node.kind == NodeKind::number) return fmt::format("{}", node.number);
  if (node.kind == NodeKind::parameter) return names.at(node.parameter);
  const Known& k = kKnown[node.function];
  const int own = rank(node);
  if (own == 3) return "-" + within(*node.parts[0], 3);
  if (is_operator(k))
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
  const Known& k = kKnown[node.function];
  const std::string a = on_device(*node.parts[0], names);
  if (node.parts.size() == 1) return fmt::format(fmt::runtime(k.device), a);
  return fmt::format(fmt::runtime(k.device), a, on_device(*node.parts[1], names));
}

}  // namespace

ValueFunction::ValueFunction(std::vector<std::string> parameters, ValueNodePtr body)
    : parameters_(std::move(parameters)), body_(std::move(body)) {}

ValueFunction ValueFunction::parse(TokenCursor& cursor, std::vector<std::string> parameters,
                                   std::span<const NamedFunction> known) {
  ValueNodePtr body = Parser(cursor, parameters, known).sum();
  return {std::move(parameters), std::move(body)};
}

ValueFunction ValueFunction::of_text(const std::string& text, std::vector<std::string> parameters) {
  TokenCursor cursor(std::make_shared<const SourceText>(SourceText{"formula", text}), {});
  ValueFunction f = parse(cursor, std::move(parameters));
  cursor.need_line_end();
  return f;
}

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
  Nodes arguments;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (i == which) {
      arguments.push_back(fuseline::number(x));
      continue;
    }
    arguments.push_back(parameter(others.size()));
    others.push_back(parameters_[i]);
  }
  return {others, rebuilt(body_, arguments)};
}
std::string ValueFunction::text() const { return written(*body_, parameters_); }
std::string ValueFunction::device_text() const { return on_device(*body_, parameters_); }

std::vector<std::string> value_function_names() {
  std::vector<std::string> names;
  for (const Known& k : kKnown)
    if (!is_operator(k) && std::string_view(k.name) != "negate") names.emplace_back(k.name);
  return names;
}

}  // namespace fuseline
