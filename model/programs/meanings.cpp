#include "model/programs/meanings.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/primitives/functions.h"
#include "model/programs/defined_map.h"

namespace fuseline {

namespace {

constexpr const char* kGelu = "0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))";

ValueFunction of_map(const std::string& text) {
  return ValueFunction::of_text(text, {"x", "z", "c"});
}

// A function of the table with x called otherwise, and its derivative.
std::string with(const std::string& name, std::string text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool alone =
        text[i] == 'x' && (i == 0 || !std::isalpha(static_cast<unsigned char>(text[i - 1]))) &&
        (i + 1 == text.size() || !std::isalpha(static_cast<unsigned char>(text[i + 1])));
    out += alone ? name : std::string(1, text[i]);
  }
  return out;
}

std::vector<std::pair<MapFn, ValueFunction>> own_maps() {
  const auto slope = [](const char* text) { return of_map(text).derivative(0); };
  constexpr const char* kErf = "0.5 * x * (1 + erf(x / sqrt(2)))";
  std::vector<std::pair<MapFn, ValueFunction>> all;
  const auto add = [&](MapFn fn, ValueFunction f) { all.emplace_back(fn, std::move(f)); };
  add(maps::absolute, of_map("abs(x)"));
  add(maps::add, of_map("x + z"));
  add(maps::add_constant, of_map("x + c"));
  add(maps::at_least, of_map("max(x, c)"));
  add(maps::copy, of_map("x"));
  add(maps::divide, of_map("x / z"));
  add(maps::exp, of_map("exp(x)"));
  add(maps::gelu_erf, of_map(kErf));
  add(maps::gelu_erf_slope, slope(kErf));
  add(maps::gelu_tanh, of_map(kGelu));
  add(maps::gelu_tanh_slope, slope(kGelu));
  add(maps::log, of_map("log(x)"));
  add(maps::mul, of_map("x * z"));
  add(maps::negate, of_map("-x"));
  add(maps::reciprocal, of_map("1 / x"));
  add(maps::relu, of_map("max(x, 0)"));
  add(maps::rsqrt, of_map("rsqrt(x)"));
  add(maps::scale_by_constant, of_map("x * c"));
  add(maps::sigmoid, of_map("sigmoid(x)"));
  add(maps::silu, of_map("x * sigmoid(x)"));
  add(maps::softplus, of_map("max(x, 0) + log(1 + exp(-abs(x)))"));
  add(maps::square, of_map("x * x"));
  add(maps::step, of_map("step(x)"));
  add(maps::sub, of_map("x - z"));
  add(maps::tanh, of_map("tanh(x)"));
  return all;
}

std::vector<std::pair<MapFn, ValueFunction>>& map_table() {
  static std::vector<std::pair<MapFn, ValueFunction>> all = own_maps();
  return all;
}

using Parts = std::vector<ValueFunction>;

Parts gated(const std::string& activation) {
  return {ValueFunction::of_text("(" + with("gate", activation) + ") * up", {"gate", "up"})};
}

// By the derivative of what is joined: of gate and up, times d; then the result again.
Parts gradient_of(const Parts& joined) {
  const auto times_d = [](const ValueFunction& f) {
    return ValueFunction::of_text("d * (" + f.text() + ")", {"gate", "up", "d"});
  };
  return {times_d(joined[0].derivative(0)), times_d(joined[0].derivative(1)), joined[0]};
}

const std::vector<std::pair<PairFn, Parts>>& pair_table() {
  static const auto all = [] {
    const std::vector<std::string> letters = {"a", "b", "c", "s", "t"};
    const auto turned = [&](const char* first, const char* second) {
      return Parts{ValueFunction::of_text(first, letters), ValueFunction::of_text(second, letters)};
    };
    const Parts swiglu = gated("x * sigmoid(x)"), geglu = gated(kGelu);
    return std::vector<std::pair<PairFn, Parts>>{
        {pairs::swiglu, swiglu},
        {pairs::geglu, geglu},
        {pairs::swiglu_backward, gradient_of(swiglu)},
        {pairs::geglu_backward, gradient_of(geglu)},
        {pairs::rope, turned("a * c - b * s", "b * c + a * s")},
        {pairs::rope_inverse, turned("a * c + b * t", "b * c - a * t")}};
  }();
  return all;
}

[[noreturn]] void missing(const std::string& what) {
  throw MissingError(what + " states no meaning in fp64, by which a program could be verified");
}

}  // namespace

const ValueFunction& meaning_of(MapFn fn) {
  if (const ValueFunction* defined = definition_of(fn)) return *defined;
  for (const auto& [known, f] : map_table())
    if (known == fn) return f;
  missing(std::string("the map ") + fn->name.value);
}

const ValueFunction& meaning_of(PairFn fn, int part) {
  for (const auto& [known, parts] : pair_table())
    if (known == fn) return parts.at(static_cast<std::size_t>(part));
  missing(std::string("the pair map ") + fn->name.value);
}

ExactReduction meaning_of(ReduceFn fn) {
  if (fn == ReduceFn(reductions::max))
    return [](const double* v, std::int64_t n) { return *std::max_element(v, v + n); };
  if (fn == ReduceFn(reductions::sum_squares))
    return [](const double* v, std::int64_t n) { return std::inner_product(v, v + n, v, 0.0); };
  if (fn == ReduceFn(reductions::mean))
    return [](const double* v, std::int64_t n) {
      return std::accumulate(v, v + n, 0.0) / static_cast<double>(n);
    };
  if (fn == ReduceFn(reductions::sum) || fn == ReduceFn(reductions::sum_and_squares))
    return [](const double* v, std::int64_t n) { return std::accumulate(v, v + n, 0.0); };
  missing(std::string("the reduction ") + fn->name.value);
}

AddedMeaning::AddedMeaning(MapFn fn, const std::string& text) {
  map_table().emplace_back(fn, of_map(text));
}

}  // namespace fuseline
