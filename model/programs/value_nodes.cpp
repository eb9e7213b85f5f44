#include "model/programs/value_nodes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "base/error.h"

namespace fuseline {

ValueNodePtr number_node(double x) {
  return std::make_shared<const ValueNode>(ValueNode{.kind = NodeKind::number, .number = x});
}
ValueNodePtr parameter_node(std::size_t i) {
  return std::make_shared<const ValueNode>(ValueNode{.kind = NodeKind::parameter, .parameter = i});
}

ValueNodePtr call_node(std::string_view name, ValueNodes parts) {
  const auto is = [](const ValueNodePtr& p, double x) {
    return p->kind == NodeKind::number && p->number == x;
  };
  if (name == "*" && (is(parts[0], 0) || is(parts[1], 0))) return number_node(0);
  if (name == "*" && is(parts[0], 1)) return parts[1];
  if (name == "*" && is(parts[1], 1)) return parts[0];
  if (name == "+" && is(parts[0], 0)) return parts[1];
  if ((name == "+" || name == "-") && is(parts[1], 0)) return parts[0];
  if (name == "/" && is(parts[0], 0)) return number_node(0);
  return std::make_shared<const ValueNode>(ValueNode{
      .kind = NodeKind::call, .function = index_of_function(name), .parts = std::move(parts)});
}

namespace {

ValueNodePtr times(ValueNodePtr a, ValueNodePtr b) {
  return call_node("*", {std::move(a), std::move(b)});
}
ValueNodePtr minus(ValueNodePtr a, ValueNodePtr b) {
  return call_node("-", {std::move(a), std::move(b)});
}
ValueNodePtr over(ValueNodePtr a, ValueNodePtr b) {
  return call_node("/", {std::move(a), std::move(b)});
}

// What is larger or smaller counts; of equal ones the first.
ValueNodePtr taken(const ValueNodes& x, std::size_t which, bool smaller) {
  const ValueNodePtr ahead = smaller ? minus(x[0], x[1]) : minus(x[1], x[0]);
  const ValueNodePtr second = call_node("step", {ahead});
  return which == 1 ? second : minus(number_node(1), second);
}

// On the device exp, a quotient and a sigmoid are the epilogues' own
// (cuda/kernels/epilogue/map.cuh): the hardware's instructions, 2 ulp. The compiler's exact ones
// take so many instructions that an activation of 22 million numbers kept tensor cores waiting for
// 60 µs of 330 (H100, 2026-11-25).
const std::array kKnown = {
    KnownFunction{
        "+", 2, [](double a, double b) { return a + b; }, [](float a, float b) { return a + b; },
        "({} + {})",
        [](const ValueNodes&, const ValueNodePtr&, std::size_t) { return number_node(1); }},
    KnownFunction{"-", 2, [](double a, double b) { return a - b; },
                  [](float a, float b) { return a - b; }, "({} - {})",
                  [](const ValueNodes&, const ValueNodePtr&, std::size_t which) {
                    return number_node(which == 0 ? 1 : -1);
                  }},
    KnownFunction{
        "*", 2, [](double a, double b) { return a * b; }, [](float a, float b) { return a * b; },
        "({} * {})",
        [](const ValueNodes& x, const ValueNodePtr&, std::size_t which) { return x[1 - which]; }},
    KnownFunction{"/", 2, [](double a, double b) { return a / b; },
                  [](float a, float b) { return a / b; }, "({} * fast_reciprocal({}))",
                  [](const ValueNodes& x, const ValueNodePtr& self, std::size_t which) {
                    if (which == 0) return over(number_node(1), x[1]);
                    return call_node("negate", {over(self, x[1])});
                  }},
    KnownFunction{
        "negate", 1, [](double a, double) { return -a; }, [](float a, float) { return -a; },
        "(-{})",
        [](const ValueNodes&, const ValueNodePtr&, std::size_t) { return number_node(-1); }},
    KnownFunction{"exp", 1, [](double a, double) { return std::exp(a); },
                  [](float a, float) { return std::exp(a); }, "fast_exp({})",
                  [](const ValueNodes&, const ValueNodePtr& self, std::size_t) { return self; }},
    KnownFunction{"log", 1, [](double a, double) { return std::log(a); },
                  [](float a, float) { return std::log(a); }, "logf({})",
                  [](const ValueNodes& x, const ValueNodePtr&, std::size_t) {
                    return over(number_node(1), x[0]);
                  }},
    KnownFunction{"sqrt", 1, [](double a, double) { return std::sqrt(a); },
                  [](float a, float) { return std::sqrt(a); }, "sqrtf({})",
                  [](const ValueNodes&, const ValueNodePtr& self, std::size_t) {
                    return over(number_node(0.5), self);
                  }},
    KnownFunction{"rsqrt", 1, [](double a, double) { return 1 / std::sqrt(a); },
                  [](float a, float) { return 1 / std::sqrt(a); }, "rsqrtf({})",
                  [](const ValueNodes& x, const ValueNodePtr& self, std::size_t) {
                    return times(number_node(-0.5), over(self, x[0]));
                  }},
    KnownFunction{"tanh", 1, [](double a, double) { return std::tanh(a); },
                  [](float a, float) { return std::tanh(a); }, "tanhf({})",
                  [](const ValueNodes&, const ValueNodePtr& self, std::size_t) {
                    return minus(number_node(1), times(self, self));
                  }},
    KnownFunction{"sigmoid", 1, [](double a, double) { return 1 / (1 + std::exp(-a)); },
                  [](float a, float) { return 1 / (1 + std::exp(-a)); }, "sigmoid_of({})",
                  [](const ValueNodes&, const ValueNodePtr& self, std::size_t) {
                    return times(self, minus(number_node(1), self));
                  }},
    KnownFunction{"erf", 1, [](double a, double) { return std::erf(a); },
                  [](float a, float) { return std::erf(a); }, "erff({})",
                  [](const ValueNodes& x, const ValueNodePtr&, std::size_t) {
                    return times(number_node(2 / std::sqrt(std::numbers::pi)),
                                 call_node("exp", {call_node("negate", {times(x[0], x[0])})}));
                  }},
    KnownFunction{"sin", 1, [](double a, double) { return std::sin(a); },
                  [](float a, float) { return std::sin(a); }, "sinf({})",
                  [](const ValueNodes& x, const ValueNodePtr&, std::size_t) {
                    return call_node("cos", {x[0]});
                  }},
    KnownFunction{"cos", 1, [](double a, double) { return std::cos(a); },
                  [](float a, float) { return std::cos(a); }, "cosf({})",
                  [](const ValueNodes& x, const ValueNodePtr&, std::size_t) {
                    return call_node("negate", {call_node("sin", {x[0]})});
                  }},
    KnownFunction{"abs", 1, [](double a, double) { return std::fabs(a); },
                  [](float a, float) { return std::fabs(a); }, "fabsf({})",
                  [](const ValueNodes& x, const ValueNodePtr&, std::size_t) {
                    return minus(times(number_node(2), call_node("step", {x[0]})), number_node(1));
                  }},
    KnownFunction{
        "step", 1, [](double a, double) { return a > 0 ? 1.0 : 0.0; },
        [](float a, float) { return a > 0 ? 1.0F : 0.0F; }, "({} > 0.0F ? 1.0F : 0.0F)",
        [](const ValueNodes&, const ValueNodePtr&, std::size_t) { return number_node(0); }},
    KnownFunction{"max", 2, [](double a, double b) { return std::max(a, b); },
                  [](float a, float b) { return std::max(a, b); }, "fmaxf({}, {})",
                  [](const ValueNodes& x, const ValueNodePtr&, std::size_t which) {
                    return taken(x, which, false);
                  }},
    KnownFunction{"min", 2, [](double a, double b) { return std::min(a, b); },
                  [](float a, float b) { return std::min(a, b); }, "fminf({}, {})",
                  [](const ValueNodes& x, const ValueNodePtr&, std::size_t which) {
                    return taken(x, which, true);
                  }},
};

}  // namespace

std::span<const KnownFunction> value_functions() { return kKnown; }

std::size_t index_of_function(std::string_view name) {
  const auto at =
      std::ranges::find_if(kKnown, [&](const KnownFunction& k) { return name == k.name; });
  FUSELINE_ASSERT(at != kKnown.end(), "a function of the table");
  return static_cast<std::size_t>(at - kKnown.begin());
}

bool is_value_operator(const KnownFunction& k) {
  return std::isalpha(static_cast<unsigned char>(k.name[0])) == 0;
}

}  // namespace fuseline
